"""Predictive control of walking robots: a plan at 50 Hz by real-time iteration, a whole-body law at 1 kHz that follows
it.

Every plan begins at the time from which it will be followed (``delay`` after its readings), with the state to which the
accelerations of the whole-body law lead until then. The gait is in world time, so a plan that comes late or not at all
changes nothing in which feet stand when. Footholds follow the commanded velocity from where the trunk is, and are moved
by the capture point of the velocity that was not commanded, so that a push is answered by a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.once import once
from linkwise.core.products import length
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import ShapeError
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError, whole
from linkwise.optimal.predictive.plans import REPORT
from linkwise.optimal.walking.feet import feet_of
from linkwise.optimal.walking.follower import Follower
from linkwise.optimal.walking.gait import Gait
from linkwise.optimal.walking.planner import STEPS, guess_of, plan_kernel, table_of, walking_problem
from linkwise.optimal.walking.rehearsal import Rehearsal, rehearsed
from linkwise.optimal.walking.stages import Stages, moved
from linkwise.robot.robot import Robot

PLANNED, KEPT, STANDING = "planned", "kept", "standing"
"""Where torques come from: the newest plan, an older one, no plan: then all feet stand."""
PENALTY = 20.0
"""Of friction cones and limits of states in a plan; the whole-body law keeps them exactly."""
FOOT_WEIGHT = 180.0
"""Of places of swinging feet, in units of the standing height."""
SOLE_WEIGHT = 20.0
"""Of the orientation of swinging soles [1/rad²]."""
HEIGHT, HEIGHT_OF_SOLES = 0.2, 0.1
"""Of the feet in a swing, in units of the standing height."""
LEASH = (0.5, 0.3)
"""How far the path may be from the trunk: in units of the standing height, and [rad]."""
ALWAYS = 1e6
"""[s]: the robot walks until then."""


@dataclass(frozen=True, eq=False)
class WalkingPlan:
    """States (horizon + 1, ns) and torques (horizon, m) from a time on [s]."""

    time: float
    states: np.ndarray
    torques: np.ndarray


class Walking(Summarised):
    """A controller of a walking robot: a function of (t, q, q̇, reference) for ``simulate``, with a memory.

    Call it at the rate of the whole-body law; it plans by itself whenever ``planning`` has passed. On a robot
    with two threads call ``plan`` in one and ``torques`` in the other.

    Args:
        robot: with a floating base.
        gait: "trot", "walk", "pace" or "bound", or a ``Gait``.
        velocity: forward, to the left [m/s], and about the vertical [rad/s]; ``command`` changes it.
        feet: names of frames at the centres of the feet; None: the spheres that touch the ground, see
            ``Robot.with_contacts``.
        stand: positions of the joints (nq − 7,) or of the robot (nq,) in which it stands; None: ``robot.neutral``.
        radius: of the feet [m]; None: that of the contacts, else 0.
        begin: when the first step begins [s]; before, the robot stands.
        swing: duration of a swing [s].
        stance: time on all feet before every swing [s].
        height: of the feet above the ground in a swing [m]; None: a fifth of the standing height, of soles a tenth.
        friction: coefficient of the ground that is counted on.
        torque_limits: [N·m or N], one number or (n,); None: the robot's; False: none.
        state_limits: whether limits of joint positions and velocities hold.
        horizon: number of steps of a plan.
        step: duration of one [s].
        planning: time from one plan to the next [s].
        delay: from readings to the time at which their plan is followed [s]; None: ``planning``.
        iterations: of the solver for every plan.
        first: iterations for the first plan.
    """

    def __init__(
        self,
        robot: Robot,
        gait: str | Gait = "trot",
        velocity: Sequence[float] = (0.5, 0.0, 0.0),
        *,
        feet: Sequence[str] | None = None,
        stand: Any = None,
        radius: float | None = None,
        begin: float = 0.2,
        swing: float = 0.24,
        stance: float = 0.06,
        height: float | None = None,
        friction: float = 0.6,
        torque_limits: Any = None,
        state_limits: bool = True,
        horizon: int = 30,
        step: float = 0.02,
        planning: float = 0.02,
        delay: float | None = None,
        iterations: int = 1,
        first: int = 30,
    ):
        self.feet = feet_of(robot, feet, stand, radius)
        self.robot = self.feet.robot
        self.gait = gait if isinstance(gait, Gait) else Gait.named(gait, swing, stance)
        if self.gait.feet != len(self.feet.names):
            raise ProblemError(f"gait: it has {self.gait.feet} feet, {robot.name} has {len(self.feet.names)}")
        long = float(self.feet.stand[2]) - self.feet.radius
        share = HEIGHT if self.feet.corners is None else HEIGHT_OF_SOLES
        lift = share * long if height is None else arguments.number("height", height, above=0.0)
        self.stages = Stages(
            self.gait, self.feet.names, self.feet.hips, self.feet.stand,
            arguments.number("step", step, above=0.0), lift, self.feet.radius, FOOT_WEIGHT / long**2, robot.dof,
            None if self.feet.corners is None else SOLE_WEIGHT,
        )  # fmt: skip
        friction = self.friction = arguments.number("friction", friction, above=0.0)
        self.problem = walking_problem(
            self.robot, self.stages, horizon=horizon, friction=friction,
            torque_limits=_limits_of_motors(self.robot, torque_limits),
            state_limits=flag("state_limits", state_limits),
            area=None if self.feet.corners is None else self.feet.area,
        )  # fmt: skip
        self.follower = Follower(self.feet, friction, torque_limits)
        self.iterations, self.first = whole("iterations", iterations, 1), whole("first", first, 1)
        self.begin = arguments.number("begin", begin, least=0.0)
        self.planning = arguments.number("planning", planning, above=0.0)
        self.delay = self.planning if delay is None else arguments.number("delay", delay, least=0.0)
        self._leash = LEASH[0] * long
        self._reaction = math.sqrt(long / 9.81)
        self.command(velocity)
        self.reset()

    def reset(self) -> None:
        """Forget the plan: before the next motion."""
        self.end = ALWAYS
        self.current: WalkingPlan | None = None
        self._next: WalkingPlan | None = None
        self._due = -math.inf
        self._time: float | None = None
        self._path: tuple[float, np.ndarray] | None = None
        self._mu = 0.0
        self.orders: np.ndarray | None = None
        self._places = self.feet.places.copy()
        self.status, self.failures, self.plans = STANDING, 0, 0
        self.report = dict.fromkeys(REPORT, math.nan)
        self.follower.reset()

    def command(self, velocity: Sequence[float]) -> None:
        """Another velocity from the next plan on.

        Args:
            velocity: forward, to the left [m/s], and about the vertical [rad/s].
        """
        self.velocity = arguments.numbers("velocity", velocity, (3,)).copy()

    def halt(self) -> None:
        """Stand from the next time on at which all feet are on the ground; ``reset`` makes the robot walk again."""
        now = self.begin if self._time is None else max(self._time + self.delay, self.begin)
        turn = self.gait.swing + self.gait.stance
        self.end = self.begin + math.ceil((now - self.begin) / turn - 1e-9) * turn

    def rehearse(self, seconds: float = 3.0, *, friction: float | None = None) -> Rehearsal:
        """Walk in the contact simulation before the robot does: whether it can follow this gait, or falls.

        Plans do not say that: friction is a penalty in them. The controller is reset.

        Args:
            seconds: duration of the walk [s].
            friction: coefficient of the ground; None: that of the robot's contacts, or the one that is counted on.
        """
        return rehearsed(self, seconds, friction)

    # -- one sample ---------------------------------------------------------------------------------------------------

    def __call__(self, t: float, q: Any, qd: Any, reference: Any = None) -> np.ndarray:
        """Torques [N·m or N], shape (n,).

        Args:
            t: time [s]; it starts anew where it goes back.
            q: measured positions, shape (nq,).
            qd: measured velocities, shape (n,).
            reference: not used.
        """
        t, q, qd = arguments.time("t", t), np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
        if q.shape != (self.robot.nq,) or qd.shape != (self.robot.dof,):
            raise ShapeError(
                f"q: walking is for one robot, expected shapes ({self.robot.nq},) and ({self.robot.dof},), "
                f"got {q.shape} and {qd.shape}"
            )
        if self._time is not None and t < self._time:
            self.reset()
        self._time = t
        if self._due == -math.inf:
            self.plan(t, q, qd)
            self._due = t + self.planning
        tau = self.torques(t, q, qd)
        if t >= self._due - 1e-9:
            self.plan(t, q, qd)  # with the accelerations of these torques
            self._due += self.planning
        return tau

    def plan(self, t: float, q: np.ndarray, qd: np.ndarray) -> bool:
        """Make the plan that is followed from ``delay`` later on; whether there is a new one.

        Args:
            t: time of the readings [s].
            q: measured positions, (nq,).
            qd: measured velocities, (n,).
        """
        if not (np.isfinite(q).all() and np.isfinite(qd).all()):
            self.failures += 1
            self.status = KEPT
            return False
        first = self.current is None and self._next is None
        at = t if first else t + self.delay
        x = np.concatenate([q, qd]) if first else self._predicted(t, at, q, qd)
        orders = self._orders_at(t, at, q, x)
        last = self.newest
        if last is None:
            table = table_of(self.problem, self.stages, self.stages.by_name(orders))
            states, torques = guess_of(self.problem, q, table)
            late, turns = 0.0, self.first
        else:
            states, torques, late, turns = (
                last.states,
                last.torques,
                (at - last.time) / self.problem.step,
                self.iterations,
            )
        made = None
        for _ in range(turns):
            new_states, new_torques, _, report = self.kernel(
                *self.given(orders, x, WalkingPlan(at, states, torques), late)
            )
            self.report = dict(zip(REPORT, report.tolist(), strict=True))
            self._mu = self.report["regularisation"]
            if self.report["usable"] > 0.5:
                made = WalkingPlan(at, new_states, new_torques)
                states, torques, late = new_states, new_torques, 0.0
        self.plans += 1
        if made is None:
            self.failures += 1
            self.status = KEPT
            return False
        self._next, self.status, self.orders = made, PLANNED, orders
        return True

    def torques(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Torques of the whole-body law along the newest plan [N·m or N], shape (n,).

        Args:
            t: time [s].
            q: measured positions, (nq,).
            qd: measured velocities, (n,).
        """
        if self._next is not None and t >= self._next.time - 1e-9:
            self.current, self._next = self._next, None
        plan = self.current
        known = plan is not None and t - plan.time <= self.problem.horizon * self.problem.step
        if not known:
            self.status = STANDING
        wanted = self.planned(t) if known else self._standing(q)
        if not (np.isfinite(q).all() and np.isfinite(qd).all()):
            q, qd = wanted[:2]
        held = self.held(t) if known else np.ones(len(self.feet.names))
        self._stood(q, held)
        return self.follower(q, qd, wanted, held, self._swings(t, held))

    # -- parts --------------------------------------------------------------------------------------------------------

    def held(self, t: float) -> np.ndarray:
        """1 for feet that stand at a time, else 0, (feet,).

        Args:
            t: time [s].
        """
        if not self.begin <= t + 1e-9 < self.end:
            return np.ones(self.gait.feet)
        time = t - self.begin + 1e-9
        return np.array([float(self.gait.held(time, k)) for k in range(self.gait.feet)])  # type: ignore[arg-type]

    def _stood(self, q: np.ndarray, held: np.ndarray) -> None:
        """Remember where the feet stand."""
        for k in np.flatnonzero(held > 0.5):
            self._places[k] = np.asarray(self.robot.pose(q, self.feet.names[k]))[:3, 3]

    def _swings(self, t: float, held: np.ndarray) -> dict[int, tuple[list[Any], ...]]:
        """Place, velocity, acceleration and orientation of every swinging foot."""
        if self.orders is None:
            return {}
        orders, swings = self.stages.by_name(self.orders), {}
        for k in np.flatnonzero(held < 0.5).tolist():
            since: Any = self.gait.since_lift_off(t - self.begin + 1e-9, k)
            down = t - self._ordered - since + self.gait.swing
            goal = self.stages.foothold(k, down, orders)
            turn = self.stages.level_turn(down, orders)
            swings[k] = (*self.stages.swung(self._places[k], goal, since / self.gait.swing), turn)
        return swings

    def planned(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and accelerations of the plan in force at a time.

        Args:
            t: time [s].
        """
        plan = self.current
        assert plan is not None
        h, nq = self.problem.step, self.robot.nq
        at = max((t - plan.time) / h, 0.0)
        k = min(int(at), self.problem.horizon - 1)
        part = min(at - k, 1.0)
        x, y = plan.states[k], plan.states[k + 1]
        between = x + part * (y - x)
        between[3:7] /= length(between[3:7])
        return between[:nq], between[nq:], (y[nq:] - x[nq:]) / h

    def _standing(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The robot stands where it is."""
        rest = np.zeros(self.robot.dof)
        target = self.feet.stand.copy()
        if np.isfinite(q).all():
            x, y, heading = _pose_of(q)
            target[:2] = x, y
            target[5:7] = math.sin(0.5 * heading), math.cos(0.5 * heading)
        return target, rest, rest

    def _predicted(self, t: float, at: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The state at a later time, with the accelerations of the whole-body law."""
        if self._next is not None and self._next.time <= t + 1e-9:
            self.current, self._next = self._next, None
        qdd, later = self.follower.accelerations, at - t
        new_qd = qd + later * qdd
        return np.concatenate([np.asarray(self.robot.integrate(q, 0.5 * later * (qd + new_qd))), new_qd])

    def _orders_at(self, t: float, at: float, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Numbers of ``stages.orders_of`` for a plan from a time on, one after the other."""
        self._stood(q, self.held(t))
        self._ordered = at
        trunk = np.array(_pose_of(x))
        if self._path is None:
            self._path = (at, trunk)
        then, place = self._path
        walked = min(max(at, self.begin), self.end) - min(max(then, self.begin), self.end)
        path = np.array(moved(place.tolist(), self.velocity.tolist(), walked))
        away = path - trunk
        away[2] = math.remainder(away[2], 2.0 * math.pi)
        far = math.hypot(away[0], away[1])
        away[:2] *= min(1.0, self._leash / max(far, 1e-9))
        away[2] = min(max(away[2], -LEASH[1]), LEASH[1])
        path = trunk + away
        self._path = (at, path)
        nq = self.robot.nq
        forward, left = _level_velocity(x[3:7], x[nq + 3 : nq + 6], trunk[2])
        error = np.array([forward - self.velocity[0], left - self.velocity[1]])
        c, s = math.cos(trunk[2]), math.sin(trunk[2])
        drift = self._reaction * np.array([c * error[0] - s * error[1], s * error[0] + c * error[1]])
        seen = at + self.problem.horizon * self.problem.step
        walking = self.begin <= seen and at + 0.5 * self.gait.period < self.end
        velocity = self.velocity if walking else np.zeros(3)
        time = math.fmod(at - self.begin, self.gait.period)
        span = (self.begin - at, self.end - at)
        return np.array([time, *span, *path, *trunk, *velocity, *drift, *self._places.ravel()])

    @once
    def kernel(self) -> Any:
        """From orders and one plan to the next in machine code."""
        return plan_kernel(self.problem, self.stages, steps=STEPS)

    def given(self, orders: np.ndarray, x: np.ndarray, plan: WalkingPlan, late: float) -> list[np.ndarray]:
        """What ``kernel`` takes.

        Args:
            orders: what the plan is made for, see ``orders_of`` in ``walking/stages.py``.
            x: state that the plan begins with, (ns,).
            plan: the last one.
            late: time from the begin of that one to the begin of the new one, in steps.
        """
        tables = [self._parameters, *self._multipliers, plan.states.ravel(), plan.torques.ravel()]
        return [orders, x, *tables, np.array([late]), np.array([self._mu])]

    @property
    def newest(self) -> WalkingPlan | None:
        """The plan that was made last."""
        return self._next or self.current

    @once
    def _parameters(self) -> np.ndarray:
        return self.problem.p.ravel()

    @once
    def _multipliers(self) -> list[np.ndarray]:
        table = np.zeros((self.problem.horizon + 1, self.problem.nm))
        table[:, -2], table[:, -1] = PENALTY, 1.0 / PENALTY
        return [table.ravel()]

    def _summary(self) -> Summary:
        problem = self.problem
        rows = [
            ["robot", f"{self.robot.name}, {len(self.feet.names)} feet, {problem.nu} motors"],
            ["gait", f"swings of {self.gait.swing:g} s, period {self.gait.period:g} s"],
            ["velocity", ", ".join(f"{v:g}" for v in self.velocity)],
            [
                "plan",
                f"{problem.horizon} steps of {problem.step:g} s every {self.planning:g} s, {self.delay:g} s ahead",
            ],
        ]
        return Summary("Walking", ("", ""), rows)


def _limits_of_motors(robot: Robot, torque_limits: Any) -> Any:
    """As ``Problem`` takes them."""
    from linkwise.control.controller import limits_of_torque
    from linkwise.control.whole_body.tasks import motors_of

    most = limits_of_torque(robot, torque_limits)[motors_of(robot)]
    return False if not np.isfinite(most).any() else list(np.where(np.isfinite(most), most, 1e6))


def _pose_of(q: np.ndarray) -> tuple[float, float, float]:
    """(x, y, heading) of the trunk."""
    x, y, z, w = q[3:7]
    heading = math.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)
    return float(q[0]), float(q[1]), heading


def _level_velocity(turn: np.ndarray, v: np.ndarray, heading: float) -> tuple[float, float]:
    """(forward, left) of a velocity in the trunk's axes, seen from above [m/s]."""
    vector = turn[:3]
    world = v + 2.0 * np.cross(vector, np.cross(vector, v) + turn[3] * v)
    c, s = math.cos(heading), math.sin(heading)
    return c * world[0] + s * world[1], -s * world[0] + c * world[1]
