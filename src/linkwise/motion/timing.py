"""Slower or faster along the same path, so that torques stay within their limits.

With the time stretched by κ = 1/x, velocities shrink by x and accelerations by x²: the torque at a point of
the path is a·x² + b·x + c with a the dynamic torques of the original motion, b viscous friction and c
gravity, springs and Coulomb friction. So the greatest x at which no torque leaves its limits follows from
quadratic equations, one per point and joint. Other friction, such as Stribeck's, depends on the speed otherwise: then
the greatest x is sought with the friction that the slower or faster motion has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import joint_terms
from linkwise.algorithms.coupling import expanded, reduced
from linkwise.arguments.flags import flag
from linkwise.core.once import once
from linkwise.functions.table import mechanism_of
from linkwise.model.coordinates import check_motors
from linkwise.model.mechanism import Mechanism
from linkwise.motion import arguments
from linkwise.motion.limits import POINTS, LimitError, check_same_joints, holding_torques, times
from linkwise.motion.polynomial import PiecewisePolynomial
from linkwise.motion.trajectory import Moment, Trajectory, check_trajectory
from linkwise.robot.robot import Robot

FINER, PARTS = 4, 8
"""How often points are added between those at which a limit is nearly reached, and into how many parts."""
LEAST = 101
"""Points: with fewer a motion at rest at its ends would seem to need nothing."""
MOST = 500
"""Intervals that are divided in a round."""
PACE = 1.25
"""Ratio of speeds that are tried, where friction is no polynomial of the speed."""
SLOWEST, QUICKEST = 1e-6, 1e9
"""Of the motion as it is given: speeds between which the greatest one is sought then."""


class SlowedTrajectory(Trajectory):
    """Time-scaled copy of a motion: same path and start."""

    def __init__(self, original: Trajectory, factor: float):
        self.original, self.factor = original, factor
        self.dof = original.dof
        self.begin = original.begin
        self.end = original.begin + factor * original.duration

    @property
    def along(self) -> Trajectory:
        return self.original

    def _inside(self, t: np.ndarray) -> Moment:
        q, qd, qdd = self.original.at(self.begin + (t - self.begin) / self.factor)
        return Moment(q, qd / self.factor, qdd / self.factor / self.factor)

    def corners(self) -> np.ndarray:
        return self.begin + self.factor * (self.original.corners() - self.begin)


def slowed(trajectory: Trajectory, factor: float) -> Trajectory:
    """Time-scaled copy: same path and start, duration multiplied by ``factor``.

    Args:
        trajectory: the motion.
        factor: of the duration; below 1 the motion becomes faster.
    """
    check_trajectory(trajectory)
    factor = arguments.number("factor", factor, positive=True)
    if not math.isfinite(trajectory.begin):
        raise ValueError("a motion without a start cannot be scaled in time")
    if isinstance(trajectory, PiecewisePolynomial):
        return trajectory.stretched(factor)
    return SlowedTrajectory(trajectory, factor)


def fastest(
    trajectory: Trajectory,
    robot: Robot,
    *,
    torque=None,
    velocity: bool = True,
    speed_up: bool = True,
    points: int = POINTS,
) -> Trajectory:
    """The motion with its duration multiplied by the smallest factor that respects torque and velocity limits.

    Args:
        trajectory: the motion.
        robot: its limits.
        torque: limits [N·m or N], one number or (n,), in place of the robot's.
        velocity: whether velocity limits count.
        speed_up: False never makes the motion faster.
        points: number of times at which the motion is checked, at least 101; more are added where limits are reached.

    Raises:
        ValueError: no limit bounds the speed, or the robot has constraints and friction.
        LimitError: the holding torques alone exceed the limits, so no speed is slow enough.
        ConstraintError: the motion breaks a constraint of the robot.
    """
    check_same_joints(trajectory, robot)
    check_motors(robot, "fastest")
    velocity, speed_up = flag("velocity", velocity), flag("speed_up", speed_up)
    t = times(trajectory, max(arguments.whole("points", points, 2), LEAST))
    arguments.check_keeps_constraints(robot, trajectory.at(t).q, "trajectory")
    limits = robot.effort_limits if torque is None else arguments.limits("torque", torque, robot.dof)
    speeds = robot.velocity_limits if velocity else np.full(robot.dof, np.inf)
    x = math.inf
    for turn in range(FINER + 1):
        played = _Played(robot, trajectory.at(t))
        most = played.within(speeds) if speed_up else min(played.within(speeds), 1.0)
        x = played.greatest_speed(t, limits, most)
        if not math.isfinite(x):
            raise ValueError("fastest: no limit bounds the speed of this motion; give torque=")
        more = _between(t, played.used(x, limits, speeds)) if turn < FINER else t[:0]
        if not more.size:
            break
        t = np.union1d(t, more)
    return slowed(trajectory, 1 / x)


def _between(t: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Further times, where a limit may be exceeded between two of the times t.

    Args:
        t: at which limits are kept [s], ascending.
        used: what is used of each limit, (times, limits).
    """
    bends = np.zeros_like(used)
    bends[1:-1] = np.abs(used[2:] - 2.0 * used[1:-1] + used[:-2])
    bends[0], bends[-1] = bends[1], bends[-2]  # a parabola rises by an eighth of that between two points
    reached = np.maximum(used[1:], used[:-1]) + 0.25 * np.maximum(bends[1:], bends[:-1])
    highest = reached.max(axis=1)
    chosen = np.flatnonzero((highest > used.max()) & (np.diff(t) > 1e-12 * (t[-1] - t[0])))
    chosen = chosen[np.argsort(-highest[chosen], kind="stable")[:MOST]]
    parts = np.arange(1, PARTS) / PARTS
    return (t[chosen, np.newaxis] + parts * (t[chosen + 1] - t[chosen])[:, np.newaxis]).ravel()


class _Played:
    """A motion that is played x times as fast: torques are a x², friction at the speeds x q̇, and what holds still."""

    def __init__(self, robot: Robot, moment: Moment):
        q, qd, qdd = moment
        self.robot, self.qd = robot, qd
        self.still = holding_torques(robot, q)
        self.a = robot.inverse_dynamics(q, qd, qdd, friction=False) - self.still
        self.links = mechanism_of(robot)
        joint_terms.check_no_load_friction(self.links)
        joint_terms.check_no_drag(self.links)
        self.q = expanded(self.links, list(q.T), positions=True)
        self.smooth, self.dry = self._friction(1.0)
        if robot.constraints and (self.smooth.any() or self.dry.any()):
            raise ValueError(f"fastest: {robot.name} has constraints and friction; use motion.time_optimal")

    def _friction(self, x: float) -> tuple[np.ndarray, np.ndarray]:
        """(continuous at rest, dry) friction at x times the speed, (times, n) each."""
        given = (self.q, expanded(self.links, list(x * self.qd.T)))
        kinds = (joint_terms.smooth_friction, joint_terms.dry_friction)
        smooth, dry = (_rows(self.links, kind(self.links, *given), self.qd) for kind in kinds)
        return smooth, dry

    @once
    def polynomial(self) -> bool:
        """Whether friction is viscous or does not depend on the speed: torques are then a x² + b x + c."""
        size = 1e-9 * max(np.abs(self.smooth).max(initial=0.0), np.abs(self.dry).max(initial=0.0))
        for x in (0.01, 0.3, 10.0):
            smooth, dry = self._friction(x)
            if np.abs(smooth - x * self.smooth).max(initial=0.0) > size * max(x, 1.0):
                return False
            if np.abs(dry - self.dry).max(initial=0.0) > size:
                return False
        return True

    def within(self, speeds: np.ndarray) -> float:
        """The greatest x at which speeds keep their limits."""
        peak = np.abs(self.qd).max(axis=0)
        return float(np.min(np.where(peak > 0, speeds / np.where(peak > 0, peak, 1.0), np.inf)))

    def torques(self, x: float) -> np.ndarray:
        """Torques [N·m or N], (times, n)."""
        smooth, dry = (x * self.smooth, self.dry) if self.polynomial else self._friction(x)
        return x * x * self.a + smooth + dry + self.still

    def used(self, x: float, limits: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """What is used of limits of torques and speeds, (times, limits)."""
        parts = ((np.abs(self.torques(x)), limits), (x * np.abs(self.qd), speeds))
        columns = [values[:, most > 0] / most[most > 0] for values, most in parts]
        return np.concatenate([*columns, np.zeros((len(self.qd), 1))], axis=1)

    def greatest_speed(self, t: np.ndarray, limits: np.ndarray, most: float) -> float:
        """The greatest x, at most ``most``, at which no torque leaves its limits.

        Args:
            t: times of the motion [s], for messages.
            limits: of torques [N·m or N], (n,).
            most: the greatest x that counts.
        """
        if not self.polynomial:
            return self._sought(t, limits, most)
        a, b, c = self.a, self.smooth, self.still + self.dry
        if (np.abs(c) > limits).any():
            raise self._too_weak(t, c, limits)
        x = min(_smallest_root(a, b, c - limits), _smallest_root(-a, -b, -c - limits))
        if x == 0.0:
            raise LimitError(
                "no speed is slow enough: a joint at rest is at its torque limit, and the motion needs more"
            )
        return min(x, most)

    def _sought(self, t: np.ndarray, limits: np.ndarray, most: float) -> float:
        """The same by trials."""

        def kept(x: float) -> bool:
            return bool((np.abs(self.torques(x)) <= limits).all())

        if math.isfinite(most) and kept(most):
            return most
        low = high = min(1.0, most)
        if kept(low):
            while kept(high):
                low, high = high, high * PACE
                if high > QUICKEST:
                    return math.inf
        else:
            while not kept(low):
                low, high = low / PACE, low
                if low < SLOWEST:
                    raise self._too_weak(t, self.torques(low), limits)
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if kept(middle) else (low, middle)
        return min(low, most)

    def _too_weak(self, t: np.ndarray, torques: np.ndarray, limits: np.ndarray) -> LimitError:
        when, k = np.argwhere(np.abs(torques) > limits)[0]
        return LimitError(
            f"no speed is slow enough: {self.robot.coordinate_joints[k].name} needs {torques[when, k]:.4g} to hold "
            f"still at {t[when]:.4f} s (gravity and friction), its limit is {limits[k]:.4g}"
        )


def _rows(links: Mechanism, torques: Sequence[Any], like: np.ndarray) -> np.ndarray:
    """Torques of each joint, numbers or arrays over time, as (times, n): those of followers act on their leaders."""
    columns = reduced(links, torques, (True,))
    return np.stack([np.broadcast_to(column, like.shape[:1]) for column in columns], axis=-1)


def _smallest_root(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """The smallest x > 0 at which some a·x² + b·x + c, not positive at 0, becomes positive; infinity if none does, 0
    where one is zero there and grows."""
    small = 1e-9 * max(
        float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0))
    )  # less is round-off
    if ((c == 0) & ((b > small) | ((np.abs(b) <= small) & (a > small)))).any():
        return 0.0
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
        # c ≤ 0, so with this sign nothing cancels: for a > 0 the positive root, for a < 0 the smaller
        # positive one
        x = np.where(b >= 0, -2 * c / (b + root), np.where(a != 0, (root - b) / (2 * a), -c / b))
        real = (b * b - 4 * a * c >= 0) & np.isfinite(x) & (x > 0)
    return float(np.min(np.where(real, x, np.inf), initial=np.inf))
