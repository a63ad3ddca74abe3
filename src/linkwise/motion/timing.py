"""Slower or faster along the same path, so that torques stay within their limits.

With the time stretched by κ = 1/x, velocities shrink by x and accelerations by x²: the torque at a point of
the path is a·x² + b·x + c with a the dynamic torques of the original motion, b viscous friction and c
gravity, springs and Coulomb friction. So the greatest x at which no torque leaves its limits follows from
quadratic equations, one per point and joint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import joint_terms
from linkwise.algorithms.coupling import expanded, reduced
from linkwise.arguments.flags import flag
from linkwise.functions.table import mechanism_of
from linkwise.model.coordinates import check_motors
from linkwise.model.mechanism import Mechanism
from linkwise.motion import arguments
from linkwise.motion.limits import POINTS, LimitError, check_same_joints, holding_torques, times
from linkwise.motion.polynomial import PiecewisePolynomial
from linkwise.motion.trajectory import Moment, Trajectory, check_trajectory
from linkwise.robot.robot import Robot


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
        points: number of times at which the motion is checked.

    Raises:
        ValueError: no limit bounds the speed, or the robot has constraints and friction.
        LimitError: the holding torques alone exceed the limits, so no speed is slow enough.
        ConstraintError: the motion breaks a constraint of the robot.
    """
    check_same_joints(trajectory, robot)
    check_motors(robot, "fastest")
    velocity, speed_up = flag("velocity", velocity), flag("speed_up", speed_up)
    t = times(trajectory, points)
    moment = trajectory.at(t)
    arguments.check_keeps_constraints(robot, moment.q, "trajectory")
    limits = robot.effort_limits if torque is None else arguments.limits("torque", torque, robot.dof)
    x = _greatest_speed(robot, moment, t, limits)
    if velocity:
        speed = robot.velocity_limits
        peak = np.abs(moment.qd).max(axis=0)
        x = min(x, float(np.min(np.where(peak > 0, speed / np.where(peak > 0, peak, 1.0), np.inf))))
    if not math.isfinite(x):
        raise ValueError("fastest: no limit bounds the speed of this motion; give torque=")
    if not speed_up:
        x = min(x, 1.0)
    return slowed(trajectory, 1 / x)


def _greatest_speed(robot: Robot, moment: Moment, t: np.ndarray, limits: np.ndarray) -> float:
    q, qd, qdd = moment
    joints = robot.coordinate_joints
    gravity = holding_torques(robot, q)
    a = robot.inverse_dynamics(q, qd, qdd, friction=False) - gravity
    links = mechanism_of(robot)
    columns = (expanded(links, list(q.T), positions=True), expanded(links, list(qd.T)))
    joint_terms.check_no_load_friction(links)
    joint_terms.check_no_drag(links)
    b = _rows(links, joint_terms.smooth_friction(links, *columns), qd)
    dry = _rows(links, joint_terms.dry_friction(links, *columns), qd)
    if robot.constraints and (b.any() or dry.any()):
        raise ValueError(f"fastest: {robot.name} has constraints and friction; use motion.time_optimal")
    c = gravity + dry
    beyond = np.abs(c) > limits
    if beyond.any():
        when, k = np.argwhere(beyond)[0]
        raise LimitError(
            f"no speed is slow enough: {joints[k].name} needs {c[when, k]:.4g} to hold still at {t[when]:.4f} s "
            f"(gravity and friction), its limit is {limits[k]:.4g}"
        )
    x = min(_smallest_root(a, b, c - limits), _smallest_root(-a, -b, -c - limits))
    if x == 0.0:
        raise LimitError(
            "no speed is slow enough: a joint at rest is at its torque limit, and the motion needs more"
        )
    return x


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
