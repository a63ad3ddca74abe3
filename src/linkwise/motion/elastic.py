"""Motions of robots with elastic joints: where motors and springs must be for the links to follow a plan.

The springs carry the torque τ of the rigid robot behind them, −K δ − D δ̇ = τ(q, q̇, q̈), so the deflection δ, and with it
the motor θ = q − δ, follow from the plan, and the motor's acceleration from four of its derivatives (A. De Luca,
"Feedforward/feedback laws for the control of flexible robots", 2000). Derivatives of τ by time are exact: inverse
dynamics is run on truncated Taylor series. With a damper, δ = −τ/K + D τ̇/K² − D² τ̈/K³: what is left out is
(D ω/K)³ of it.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.errors import LinkwiseError
from linkwise.functions.table import mechanism_of
from linkwise.joint_laws import has_dry_friction
from linkwise.motion.arguments import duration as checked_duration
from linkwise.motion.arguments import number, positions
from linkwise.motion.fourier import FourierSeries
from linkwise.motion.polynomial import PiecewisePolynomial
from linkwise.motion.series import Series
from linkwise.motion.trajectory import Moment, Trajectory
from linkwise.robot.robot import Robot

ORDER = 5  # numbers of derivatives of the plan, its positions included


class ElasticMotionError(LinkwiseError, ValueError):
    """A plan that the motors of elastic joints cannot follow; the message says why."""


class ElasticMotion(Trajectory):
    """The motion of motors and springs while the links follow a plan; for the coordinates of the elastic robot.

    Any controller follows it; ``control.FeedForward`` has its motor torques.

    Args:
        robot: a robot with elastic joints.
        plan: a motion of ``robot.link_side()`` with four continuous derivatives: a polynomial (``motion.nonic``) or a
            Fourier series.
    """

    def __init__(self, robot: Robot, plan: Trajectory):
        self.robot, self.plan = robot, plan
        self.rigid = robot.link_side()
        if robot.nq != robot.dof:
            raise ElasticMotionError(f"{robot.name}: motions of elastic joints are for arms")
        if not robot.elastic_joints:
            raise ElasticMotionError(f"{robot.name} has no elastic joints; see robot.with_elastic_joints")
        if plan.dof != self.rigid.dof:
            raise ElasticMotionError(
                f"plan: expected a motion of the {self.rigid.dof} joints {', '.join(self.rigid.joint_names)}, "
                f"got one of {plan.dof}"
            )
        if not isinstance(plan, (PiecewisePolynomial, FourierSeries)):
            raise ElasticMotionError(
                "plan: expected a polynomial or a Fourier series, whose derivatives are known, "
                f"got {type(plan).__name__}"
            )
        self.dof, self.begin, self.end = robot.dof, plan.begin, plan.end
        # friction of a joint acts in its own row, which no spring carries, unless other joints follow it
        followers = any(joint.mimic is not None and joint.mimic.coupled for joint in self.rigid.joints)
        self.friction = followers
        rubbing = [joint.name for joint in self.rigid.moving_joints if has_dry_friction(joint)]
        if followers and rubbing:
            raise ElasticMotionError(
                f"{robot.name}: joints follow each other, and joint {rubbing[0]!r} has dry friction: motors would have "
                "to jump where it turns back"
            )
        self._check_smooth()

    def _check_smooth(self) -> None:
        """Jumps of jerk or snap would need torques without bound."""
        if not isinstance(self.plan, PiecewisePolynomial):
            return
        at_ends = derivatives(self.plan, np.array([self.plan.begin, self.plan.end]))
        within = derivatives(self.plan, np.linspace(self.plan.begin, self.plan.end, 50))
        for k in range(1, ORDER):
            if np.abs(at_ends[k]).max() > 1e-9 * np.abs(within[k]).max():
                raise ElasticMotionError(
                    f"plan: its derivative of order {k} does not vanish at an end, so that motors would have to jump; "
                    "motion.nonic(start, end, duration) begins and ends at rest to the fourth"
                )
        knots = self.plan.times[1:-1]
        left, right = derivatives(self.plan, np.nextafter(knots, -np.inf)), derivatives(self.plan, knots)
        for k in range(ORDER):
            jump = np.abs(left[k] - right[k]).max(axis=-1)
            if (jump > 1e-6 * max(1e-300, np.abs(within[k]).max())).any():
                raise ElasticMotionError(
                    f"plan: its derivative of order {k} jumps at {knots[int(np.argmax(jump))]:.4g} s, so that motors "
                    "would have to jump"
                )

    def torques(self, t) -> np.ndarray:
        """The motor torques [N·m or N] at the times t, shape (..., n): zero at the springs."""
        q, qd, qdd = self.at(t)
        tau = np.array(self.robot.inverse_dynamics(q, qd, qdd))
        springs = {pair.spring.name for pair in self.robot.elastic_joints}
        tau[..., [name in springs for name in self.robot.joint_names]] = 0.0
        return tau

    def _inside(self, t: np.ndarray) -> Moment:
        q = derivatives(self.plan, t)
        columns = [
            [Series(*(q[k + i][..., j] for i in range(3))) for j in range(self.rigid.dof)] for k in range(3)
        ]
        links = mechanism_of(self.rigid)
        loads = coordinates.inverse_dynamics(links, *columns, friction=self.friction)  # type: ignore[arg-type]
        pairs = {pair.motor.name: pair for pair in self.robot.elastic_joints}
        moved: dict[str, np.ndarray] = {}
        for j, name in enumerate(self.rigid.joint_names):
            own = np.stack([q[k][..., j] for k in range(3)])
            if name in pairs:
                given_way = _deflection(loads[j], pairs[name].stiffness, pairs[name].damping, own.shape[1:])
                moved[pairs[name].spring.name] = given_way
                own = own - given_way
            moved[name] = own
        parts = np.stack([moved[name] for name in self.robot.joint_names], axis=-1)
        return Moment(*parts)


def _deflection(load, stiffness: float, damping: float, shape: tuple[int, ...]) -> np.ndarray:
    """(δ, δ̇, δ̈) for the torque that the spring carries."""
    torque, rate, bend = (np.broadcast_to(np.asarray(x, dtype=float), shape) for x in Series.parts(load))
    slow = damping / stiffness
    return np.stack([-torque + slow * rate - slow**2 * bend, -rate + slow * bend, -bend]) / stiffness


def derivatives(plan: Trajectory, t: np.ndarray) -> list[np.ndarray]:
    """q and its first four derivatives at times within the plan, each (..., n)."""
    if isinstance(plan, FourierSeries):
        w = 2 * math.pi / plan.period * np.arange(1, len(plan.sine) + 1)
        s, c = np.sin(np.multiply.outer(t, w)), np.cos(np.multiply.outer(t, w))
        rows = []
        for k in range(ORDER):
            turned = ((s, c), (c, -s), (-s, -c), (-c, s))[k % 4]
            value = (turned[0] * w**k) @ plan.sine + (turned[1] * w**k) @ plan.cosine
            rows.append(plan.centre + value if k == 0 else value)
        return rows
    assert isinstance(plan, PiecewisePolynomial)
    segment = np.clip(np.searchsorted(plan.times, t, side="right") - 1, 0, len(plan.times) - 2)
    local = (t - plan.times[segment])[..., np.newaxis]
    rows, coefficients = [], plan.coefficients
    for _ in range(ORDER):
        value = np.zeros((*np.shape(t), plan.dof))
        for k in reversed(range(coefficients.shape[1])):
            value = value * local + coefficients[segment, k]
        rows.append(value)
        powers = np.arange(coefficients.shape[1])[:, np.newaxis]
        coefficients = (powers * coefficients)[:, 1:]
        if coefficients.shape[1] == 0:
            coefficients = np.zeros((len(plan.times) - 1, 1, plan.dof))
    return rows


def nonic(start, end, duration: float, *, begin: float = 0.0) -> PiecewisePolynomial:
    """From ``start`` to ``end`` [rad or m], shape (n,), in ``duration`` [s] by one polynomial of degree nine.

    Velocity, acceleration, jerk and snap vanish at both ends, as motors behind springs need it.

    Args:
        start: [rad or m], shape (n,).
        end: [rad or m], shape (n,).
        duration: [s].
        begin: time of the start [s].
    """
    first = positions("start", start)
    last = positions("end", end, first.size)
    duration, begin = checked_duration(duration), number("begin", begin)
    shape = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 126.0, -420.0, 540.0, -315.0, 70.0])
    coefficients = (shape / duration ** np.arange(10))[:, np.newaxis] * (last - first)
    coefficients[0] = first
    return PiecewisePolynomial([begin, begin + duration], coefficients[np.newaxis])
