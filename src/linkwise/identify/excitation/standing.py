"""Motions of a robot that stands on its feet: the base moves, the feet stay where they are.

The base follows Fourier series of position and rotation, joints that belong to no leg follow series of their own, and
the joints of the legs follow from the feet. What is judged is what a recording of the motion can tell: rows of base and
joints without the forces of the feet. Feet stay on the ground if every foot only pushes and no force leaves the cone
of friction, with the smallest forces that carry the robot; torques are those that go with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import needed
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.friction import AxisSignals, column, friction_named
from linkwise.identify.excitation.basis import FourierBasis
from linkwise.identify.walking import rotations
from linkwise.identify.walking.contacts import Foot, feet_of, jacobians
from linkwise.identify.walking.log import is_floating
from linkwise.identify.walking.observer import BASE, floating_base_of, force_basis, projected
from linkwise.model.checks import check_no_tendons
from linkwise.model.coordinates import check_motors
from linkwise.model.joint import bodies_behind
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

POINTS, FINE = (
    80,
    600,
)  # at which a motion is judged while it is searched, and at which it must keep its limits
NEWTON = 8  # steps of the legs' inverse kinematics
CLOSE = 1e-5  # [m] feet that stay
PLACES, TURNS, OTHERS = 0.06, 0.2, 0.5  # [m, rad, rad] amplitudes of the first motions
FRICTION = 0.5  # coefficient of the ground
PUSH = 0.05  # of the weight, with which every foot pushes at least
UNKNOWN = {"velocity": 2.0, "torque": np.inf}
POSTURES = 400  # random ones among which a posture is chosen
SMALLEST = 1e-6  # singular values below this part of the largest count as this


@dataclass(frozen=True, repr=False)
class StandingMotion(Summarised):
    """A motion on standing feet and how good it is.

    t (N,) [s]; q (N, nq), qd and qdd (N, dof) of all coordinates; ``torque`` (joints,) the largest ones, ``push`` the
    least vertical force of a foot [N] and ``slope`` the largest ratio of horizontal and vertical force. ``condition``
    is that of the base parameters, of those that standing shows; ``random`` that of the first random motion.
    """

    robot: Robot
    feet: tuple[Foot, ...]
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    torque: np.ndarray
    push: float
    slope: float
    condition: float
    random: float
    parameters: int
    seconds: float

    def _summary(self) -> Summary:
        names = self.robot.joint_names[1:]
        low, high = self.q[:, 7:].min(axis=0), self.q[:, 7:].max(axis=0)
        rows = list(zip(names, low, high, np.abs(self.qd[:, BASE:]).max(axis=0), self.torque, strict=True))
        said = [
            f"{self.t[-1]:g} s on {len(self.feet)} feet: each pushes with at least {self.push:.3g} N, forces lean by "
            f"at most {self.slope:.2g}",
            f"condition number {self.condition:.4g} of {self.parameters} base parameters ({self.random:.4g} for a "
            "random motion)",
        ]
        title = f"An exciting motion of {self.robot.name} on its feet"
        return Summary(title, ("joint", ">from", ">to", ">speed", ">torque"), rows, said)

    def table(self, rate: float = 500.0) -> dict[str, np.ndarray]:
        """Columns of a table at ``rate`` [Hz]: t, joints q, qd and qdd, and the pose of the base."""
        t = np.arange(round(self.t[-1] * rate) + 1) / rate
        spline = needed("scipy.interpolate", "identify").CubicSpline(self.t, self.q, axis=0)
        q, qd, qdd = (spline(t, order) for order in (0, 1, 2))
        found: dict[str, np.ndarray] = {"t": t}
        for name, values in (("q", q), ("qd", qd), ("qdd", qdd)):
            found |= {f"{name}{k + 1}": x for k, x in enumerate(values[:, 7:].T)}
        quaternion = q[:, 3:7] / np.sqrt((q[:, 3:7] ** 2).sum(axis=1, keepdims=True))
        found |= {f"base_pos_{axis}": x for axis, x in zip("xyz", q[:, :3].T, strict=True)}
        return found | {f"base_quat_{axis}": x for axis, x in zip("xyzw", quaternion.T, strict=True)}


def excite_standing(
    robot: Robot,
    *,
    feet: Sequence[str] | None = None,
    stand: Sequence[float] | None = None,
    duration: float = 10.0,
    order: int = 5,
    share: float = 0.8,
    friction: str = "viscous",
    ground: float = FRICTION,
    iterations: int = 60,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> StandingMotion:
    """A motion on standing feet that shows the base parameters of a robot as well as possible.

    Args:
        robot: with a floating base.
        feet: frames of the feet, as for ``identify``.
        stand: joint positions of the posture about which it moves, (joints,); by default one with bent legs.
        duration: [s].
        order: harmonics of 1/duration.
        share: of the speeds and torques in the robot file that may be used.
        friction: the friction model to be identified as well.
        ground: coefficient of friction between feet and ground.
        iterations: motions that are tried.
        seed: the same seed gives the same motion.
        progress: called with a text and the fraction done.

    Returns:
        The motion.

    Raises:
        IdentificationError: no motion keeps the feet on the ground and the limits.
    """
    begun = time.monotonic()
    if not is_floating(robot):
        raise IdentificationError(f'{robot.name} has no floating base; load it with base="floating"')
    check_motors(robot, "excite_standing")
    check_no_tendons(robot, "excitation")
    search = _Search(robot, feet_of(robot, feet), stand, duration, order, share, friction, ground, seed)
    rng = np.random.default_rng(seed)
    theta, motion = search.feasible(search.random(rng))
    first = value = search.value(motion)
    step = 0.5
    for number in range(iterations):
        tried = search.feasible(theta + step * search.random(rng))
        new = search.value(tried[1])
        if new < value:
            theta, value, step = tried[0], new, min(1.2 * step, 1.0)
        else:
            step = max(0.93 * step, 0.05)
        if progress is not None:
            progress(f"motion {number + 1} of {iterations}", (number + 1) / iterations)
    return search.judged(theta, first, time.monotonic() - begun)


Motion = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Times (N,), positions (N, nq), velocities and accelerations (N, dof)."""


class _Search:
    """Motions by their coefficients θ (size, 6 + other joints)."""

    def __init__(self, robot, feet, stand, duration, order, share, friction, ground, seed):
        self.robot, self.feet, self.share, self.ground = robot, feet, share, ground
        self.basis = FourierBasis(duration, order)
        self.limits = robot.limits
        self.legs = self._leg_joints()
        self.others = [k for k in range(robot.dof - BASE) if k not in self.legs]
        self.stand = self._posture(stand, seed)
        self.places = self._feet_at(self.stand[None])
        terms = friction_named(friction, robot.dof - BASE)
        self.placed = [(axis, term) for axis, own in enumerate(terms) for term in own]
        self.base = floating_base_of(robot, terms)
        self.links = 10 * len(robot.labelled_bodies())
        self.conditions: dict[float, float] = {}

    def _leg_joints(self) -> list[int]:
        bodies = [self.robot.locate(foot.frame)[0] for foot in self.feet]
        return sorted({k - 1 for body in bodies for k in bodies_behind(self.robot, body) if k > 0})

    def _feet_at(self, q: np.ndarray) -> np.ndarray:
        """Points of the feet, (N, feet, 3)."""
        places = []
        for foot in self.feet:
            pose = np.asarray(self.robot.pose(q, frame=foot.frame))
            places.append(pose[:, :3, 3] + (pose[:, :3, :3] * np.asarray(foot.offset)).sum(axis=-1))
        return np.stack(places, axis=1)

    def _posture(self, given, seed: int) -> np.ndarray:
        """Positions (nq,) with the lowest foot at height 0."""
        q = np.array(self.robot.neutral, dtype=float)
        q[:7] = (0, 0, 0, 0, 0, 0, 1)
        if given is not None:
            joints = np.asarray(given, dtype=float)
            if joints.shape != (self.robot.dof - BASE,):
                raise IdentificationError(
                    f"stand: expected {self.robot.dof - BASE} joint positions, got {joints.size}"
                )
            q[7:] = joints
        else:
            q = self._bent(q, np.random.default_rng(seed))
        q[2] -= float(self._feet_at(q[None])[0, :, 2].min())
        return q

    def _bent(self, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A posture in which every foot can be moved in all directions, all feet low and apart."""
        depth = self._depths()
        low, high = np.maximum(self.limits.lower[7:], -1.6), np.minimum(self.limits.upper[7:], 1.6)
        low, high = np.minimum(low, high), np.maximum(low, high)
        shares = rng.random((POSTURES, max(depth) + 1))[:, depth]
        tried = np.repeat(q[None], POSTURES, axis=0)
        tried[:, 7:] = np.where(
            [k in self.legs for k in range(len(depth))], low + shares * (high - low), q[7:]
        )
        places = self._feet_at(tried)
        reach = -places[:, :, 2].mean(axis=1)
        level = np.ptp(places[:, :, 2], axis=1)
        wide = np.ptp(places[:, :, 1], axis=1)
        up = np.broadcast_to((0.0, 0.0, 1.0), (POSTURES, 3))
        able = np.ones(POSTURES)
        for foot in self.feet:
            J = jacobians(self.robot, foot, tried, up)[:, BASE:, :3]
            able = np.minimum(able, np.linalg.svd(J, compute_uv=False)[:, 2])
        tall = max(float(reach.max()), 1e-9)
        score = able / tall + 0.5 * np.minimum(reach / tall, 0.8) + 0.2 * wide / tall - 5.0 * level / tall
        return tried[int(np.argmax(score))]

    def _depths(self) -> list[int]:
        """How many joints are between the base and each joint, by which legs are alike."""
        count = len(self.robot.moving_joints)
        return [sum(k > 0 for k in bodies_behind(self.robot, body)[1:]) for body in range(1, count)]

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Coefficients of a random motion of usual size."""
        sizes = np.concatenate([np.full(3, PLACES), np.full(3, TURNS), np.full(len(self.others), OTHERS)])
        theta = (
            (rng.random((12, self.basis.size, len(sizes))).sum(axis=0) - 6.0)
            * sizes
            / np.sqrt(self.basis.size)
        )
        theta[0] = 0.0
        return theta

    def feasible(self, theta: np.ndarray) -> tuple[np.ndarray, Motion]:
        """The motion with amplitudes that keep all limits at the points of the search; an error names what is hit."""
        why = ""
        for share in 0.8 ** np.arange(14):
            motion = self.motion(share * theta, POINTS)
            why = self.broken(motion)
            if not why:
                return share * theta, motion
        raise IdentificationError(f"{self.robot.name}: no motion on its feet keeps all limits: {why}")

    def motion(self, theta: np.ndarray, points: int) -> Motion:
        """The whole robot along a motion with coefficients θ; feet that cannot stay make ``broken`` say so."""
        t = np.linspace(0.0, self.basis.duration, points + 1)
        x = product(self.basis.matrices(t)[0], theta)
        x = x - x[0]
        quaternion = np.concatenate([0.5 * x[:, 3:6], np.ones((len(t), 1))], axis=1)
        quaternion = quaternion / np.sqrt((quaternion**2).sum(axis=1, keepdims=True))
        q = np.repeat(self.stand[None], len(t), axis=0)
        q[:, :3] += x[:, :3]
        q[:, 3:7] = quaternion
        q[:, [7 + k for k in self.others]] += x[:, 6:]
        q = self._with_feet(q)
        spline = needed("scipy.interpolate", "identify").CubicSpline(t, q, axis=0)
        rate, bend = spline(t, 1), spline(t, 2)
        spin = rotations.angular_velocity(q[:, 3:7], rate[:, 3:7])
        spin_rate = rotations.angular_velocity(q[:, 3:7], bend[:, 3:7])
        R = rotations.matrices(q[:, 3:7])
        slide = rotations.turned_back(R, rate[:, :3])
        slide_rate = rotations.turned_back(R, bend[:, :3]) - np.cross(spin, slide)
        v = np.concatenate([spin, slide, rate[:, 7:]], axis=1)
        return t, q, v, np.concatenate([spin_rate, slide_rate, bend[:, 7:]], axis=1)

    def _with_feet(self, q: np.ndarray) -> np.ndarray:
        """Legs whose feet are where they stand, by Newton's method; feet with an area stay flat, too."""
        up = np.broadcast_to((0.0, 0.0, 1.0), (len(q), 3))
        columns = [BASE + k for k in self.legs]
        first = [
            np.asarray(self.robot.pose(self.stand[None], frame=foot.frame))[0, :3, :3] for foot in self.feet
        ]
        for _ in range(NEWTON):
            parts, rows = [], []
            places = self._feet_at(q)
            for k, foot in enumerate(self.feet):
                error = [self.places[0, k] - places[:, k]]
                if foot.area:
                    R = np.asarray(self.robot.pose(q, frame=foot.frame))[:, :3, :3]
                    error.append(0.5 * sum(np.cross(R[:, :, a], first[k][:, a]) for a in range(3)))
                parts.append(np.concatenate(error, axis=1))
                plain = Foot(foot.name, foot.frame, foot.offset, 0.0, foot.area)
                rows.append(np.swapaxes(jacobians(self.robot, plain, q, up)[:, columns], 1, 2))
            J, e = np.concatenate(rows, axis=1), np.concatenate(parts, axis=1)
            damped = J @ np.swapaxes(J, 1, 2) + 1e-9 * np.eye(J.shape[1])
            q[:, [7 + k for k in self.legs]] += (
                np.swapaxes(J, 1, 2) @ np.linalg.solve(damped, e[..., None])
            )[..., 0]
        return q

    def broken(self, motion: Motion) -> str:
        """What a motion does not keep; "" where it keeps all."""
        _, q, v, _ = motion
        moved = float(np.abs(self._feet_at(q) - self.places).max())
        if moved > CLOSE:
            return f"feet move by {1e3 * moved:.2g} mm"
        names = self.robot.joint_names[1:]
        low, high = self.limits.lower[7:], self.limits.upper[7:]
        outside = np.maximum(low - q[:, 7:], q[:, 7:] - high).max(axis=0)
        if outside.max() > 0:
            return f"{names[int(np.argmax(outside))]} reaches its limit"
        speed = np.where(
            np.isfinite(self.limits.velocity[BASE:]), self.limits.velocity[BASE:], UNKNOWN["velocity"]
        )
        fast = np.abs(v[:, BASE:]).max(axis=0) / (self.share * speed)
        if fast.max() > 1:
            return f"{names[int(np.argmax(fast))]} is too fast"
        torque, push, slope = self.forces(motion)
        strong = np.abs(torque).max(axis=0) / (self.share * self.limits.effort[BASE:])
        if strong.max() > 1:
            return f"{names[int(np.argmax(strong))]} needs too much torque"
        if push < PUSH * self.weight / len(self.feet):
            return "a foot would leave the ground"
        return "a foot would slip" if slope > self.ground else ""

    @property
    def weight(self) -> float:
        """[N]"""
        mass = sum(body.mass for body in self.robot.labelled_bodies())
        return mass * float(np.sqrt((np.asarray(self.robot.gravity) ** 2).sum()))

    def forces(self, motion: Motion) -> tuple[np.ndarray, float, float]:
        """Torques (N, joints), the least vertical force of a foot and the largest lean, with the smallest forces."""
        _, q, v, a = motion
        up = np.broadcast_to((0.0, 0.0, 1.0), (len(q), 3))
        needs = np.asarray(self.robot.inverse_dynamics(q, v, a))
        J = np.concatenate([jacobians(self.robot, foot, q, up) for foot in self.feet], axis=2)
        f = (np.linalg.pinv(J[:, :BASE]) @ needs[:, :BASE, None])[..., 0]
        torque = needs[:, BASE:] - (J[:, BASE:] @ f[..., None])[..., 0]
        place, push, slope = 0, np.inf, 0.0
        for foot in self.feet:
            own = f[:, place : place + 3]
            place += foot.rows
            push = min(push, float(own[:, 2].min()))
            lean = np.sqrt((own[:, :2] ** 2).sum(axis=1)) / np.maximum(own[:, 2], 1e-9)
            slope = max(slope, float(lean.max()))
        return torque, push, slope

    def matrix(self, motion: Motion) -> np.ndarray:
        """Columns of the base parameters without forces, of unit length, (rows, p)."""
        _, q, v, a = motion
        Y = np.zeros((len(q), self.robot.dof, self.links + len(self.placed)))
        Y[..., : self.links] = np.asarray(self.robot.regressor(q, v, a))[..., : self.links]
        joints = (q[:, 7:], v[:, BASE:], a[:, BASE:])
        signals = AxisSignals.of(*joints, np.zeros_like(joints[0]), np.eye(self.robot.dof - BASE))
        for k, (axis, term) in enumerate(self.placed, self.links):
            Y[:, BASE + axis, k] = column(signals, term)[:, axis]
        up = np.broadcast_to((0.0, 0.0, 1.0), (len(q), 3))
        held = np.ones((len(q), len(self.feet) + 1), bool)
        held[:, -1] = False
        Q = force_basis(self.robot, self.feet, q, up, held, np.ones(self.robot.dof))
        return projected(Q, Y[..., list(self.base.columns)]).reshape(-1, len(self.base))

    def value(self, motion: Motion) -> float:
        """Mean negative logarithm of the singular values: the volume of the uncertainty."""
        s = linear.singular_values(self.matrix(motion))
        value = float(-linear.logarithm(np.maximum(s, SMALLEST * s[0])).mean())
        self.conditions[value] = self.condition(motion)[0]
        return value

    def condition(self, motion: Motion) -> tuple[float, int]:
        """Condition number of columns of unit length, and how many columns standing shows."""
        W = self.matrix(motion)
        length = np.sqrt((W**2).sum(axis=0))
        seen = length > SMALLEST * length.max()
        s = linear.singular_values(W[:, seen] / length[seen])
        known = s > SMALLEST * s[0]
        return float(s[0] / s[known][-1]), int(known.sum())

    def judged(self, theta: np.ndarray, first: float, seconds: float) -> StandingMotion:
        """The motion on a fine grid, smaller where it must be."""
        share, motion = 1.0, self.motion(theta, FINE)
        while why := self.broken(motion):
            share *= 0.95
            if share < 0.1:
                raise IdentificationError(f"{self.robot.name}: no motion on its feet keeps all limits: {why}")
            motion = self.motion(share * theta, FINE)
        torque, push, slope = self.forces(motion)
        condition, count = self.condition(self.motion(share * theta, POINTS))
        t, q, v, a = motion
        largest = np.abs(torque).max(axis=0)
        random = self.conditions.get(first, np.nan)
        return StandingMotion(
            self.robot, self.feet, t, q, v, a, largest, push, slope, condition, random, count, seconds
        )


__all__ = ["StandingMotion", "excite_standing"]
