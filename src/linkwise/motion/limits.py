"""Whether a motion stays within the limits of a robot, and if not: which joint breaks which limit when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.errors import LinkwiseError
from linkwise.model.joint import leading_limits
from linkwise.motion import arguments
from linkwise.motion.trajectory import Trajectory, check_trajectory
from linkwise.robot.robot import Robot

POINTS = 2001
SLACK = 1e-9  # relative: a limit that is met exactly is not broken by round-off
WITHOUT_MOTOR = 1e-6  # of the largest torque: what rounding leaves at joints without a motor that need none
_UNITS = {
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "acceleration": ("rad/s²", "m/s²"),
    "torque": ("N·m", "N"),
}


class LimitError(LinkwiseError, ValueError):
    """A motion breaks limits; the message lists them."""


@dataclass(frozen=True)
class Violation:
    """A joint beyond one of its limits."""

    joint: str
    quantity: str
    """position, velocity, acceleration or torque."""
    limit: float
    time: float
    """When the limit is first crossed [s]."""
    worst: float
    """The value furthest beyond it,"""
    worst_time: float
    """and when [s]."""
    unit: str
    follower: str = ""
    """The joint whose own limit this is, where it follows the other one."""

    def __str__(self) -> str:
        whose = f" (that of {self.follower}, which follows it)" if self.follower else ""
        return (
            f"{self.joint}: {self.quantity} limit {self.limit:.4g} {self.unit}{whose} is crossed at "
            f"{self.time:.4f} s; worst {self.worst:.4g} {self.unit} at {self.worst_time:.4f} s"
        )


def check(
    trajectory: Trajectory,
    robot: Robot,
    *,
    acceleration=None,
    torque: bool = True,
    points: int = POINTS,
) -> list[Violation]:
    """Every limit that a motion violates: position, velocity, torque, acceleration.

    Args:
        trajectory: the motion.
        robot: its limits of position, velocity and torque.
        acceleration: limit [rad/s² or m/s²], one number or (n,); by default none.
        torque: whether torques are checked.
        points: number of times at which the motion is checked; a crossing is then located by bisection.

    Raises:
        ConstraintError: the motion breaks a constraint of the robot.
    """
    check_same_joints(trajectory, robot)
    torque = flag("torque", torque)
    t = times(trajectory, points)
    arguments.check_keeps_constraints(robot, trajectory.at(t).q, "trajectory")
    violations = []
    for quantity, evaluate, lower, upper in _quantities(trajectory, robot, acceleration, torque):
        values = evaluate(t)
        largest = float(np.abs(values).max()) if quantity == "torque" else 0.0
        for k in range(robot.dof):
            for limit, side in ((lower[k], -1.0), (upper[k], 1.0)):
                slack = SLACK * max(abs(limit), 1e-9) if limit else max(WITHOUT_MOTOR * largest, 1e-18)
                beyond = side * (values[:, k] - limit) - slack
                if np.isfinite(limit) and (beyond > 0).any():
                    violations.append(
                        _violation(robot, quantity, evaluate, t, values, k, float(limit), side, beyond)
                    )
    return sorted(violations, key=lambda violation: violation.time)


def _quantities(trajectory: Trajectory, robot: Robot, acceleration, torque: bool):
    """(name, its values at given times, lower limits, upper limits) of everything that is checked."""
    limits = [joint.limits for joint in robot.coordinate_joints]
    lower, upper = (np.array([getattr(limit, side) for limit in limits]) for side in ("lower", "upper"))
    speed, effort = robot.velocity_limits, robot.effort_limits
    yield "position", lambda t: trajectory.at(t).q, lower, upper
    yield "velocity", lambda t: trajectory.at(t).qd, -speed, speed
    if acceleration is not None:
        most = arguments.limits("acceleration", acceleration, robot.dof)
        yield "acceleration", lambda t: trajectory.at(t).qdd, -most, most
    if torque:
        if (
            not robot.constraints
        ):  # under constraints inverse dynamics refuses torques of joints without a motor
            names = [joint.name for joint in robot.coordinate_joints]
            effort = np.where([name in robot.passive for name in names], 0.0, effort)
        yield "torque", lambda t: robot.inverse_dynamics(*trajectory.at(t)), -effort, effort


def _violation(
    robot: Robot,
    quantity: str,
    evaluate: Callable,
    t,
    values,
    k: int,
    limit: float,
    side: float,
    beyond: np.ndarray,
) -> Violation:
    first, worst = int(np.argmax(beyond > 0)), int(np.argmax(beyond))
    when = t[0]
    if first > 0:
        when = _crossing(lambda x: side * (evaluate(x)[k] - limit), t[first - 1], t[first])
    joint = robot.coordinate_joints[k]
    unit = _UNITS[quantity][0 if joint.revolute else 1]
    peak, latest = float(values[worst, k]), float(t[worst])
    follower = _follower(robot, joint.name, quantity, limit)
    return Violation(joint.name, quantity, limit, float(when), peak, latest, unit, follower)


def _follower(robot: Robot, leader: str, quantity: str, limit: float) -> str:
    """The joint that follows ``leader`` and has this limit there; empty where the leader itself has it."""
    for joint, relation in zip(robot.moving_joints, robot.followed, strict=True):
        if relation is None or relation.joint != leader or relation.also:
            continue
        lower, upper, fastest = leading_limits(joint, relation)
        if limit in {"position": (lower, upper), "velocity": (-fastest, fastest)}.get(quantity, ()):
            own = next(each.limits for each in robot.moving_joints if each.name == leader)
            return "" if limit in (own.lower, own.upper, own.velocity, -own.velocity) else joint.name
    return ""


def require(trajectory: Trajectory, robot: Robot, **options) -> None:
    """Raise LimitError if the motion breaks a limit; options as for ``check``.

    Args:
        trajectory: the motion.
        robot: its limits.
        **options: those of ``check``.
    """
    violations = check(trajectory, robot, **options)
    if violations:
        raise LimitError("; ".join(map(str, violations)))


def check_same_joints(trajectory: Trajectory, robot: Robot) -> None:
    """Refuse a motion that is not one of this robot's joints."""
    check_trajectory(trajectory)
    arguments.check_robot(robot)
    if trajectory.dof != robot.dof:
        raise ValueError(f"trajectory: it has {trajectory.dof} joints, {robot.name} has {robot.dof}")


def holding_torques(robot: Robot, q: np.ndarray, threads: int | None = None) -> np.ndarray:
    """Torques at rest without friction [N·m or N]: with constraints the least ones of the motors, as those of inverse
    dynamics are."""
    if not robot.constraints:
        return robot.gravity_torques(q, threads=threads)
    rest = np.zeros(robot.dof)
    return robot.inverse_dynamics(q, rest, rest, friction=False, threads=threads)


def times(trajectory: Trajectory, points: int) -> np.ndarray:
    """Times at which a motion is checked: evenly spaced, and on both sides of every corner."""
    points = arguments.whole("points", points, 2)
    corners = trajectory.corners()
    begin, end = corners[0], corners[-1]
    tiny = 1e-9 * (end - begin)
    grid = [np.linspace(begin, end, points), corners, corners[1:-1] - tiny, corners[1:-1] + tiny]
    return np.unique(np.concatenate(grid))


def _crossing(value: Callable[[float], float], below: float, above: float) -> float:
    for _ in range(40):
        middle = 0.5 * (below + above)
        if value(middle) > 0:
            above = middle
        else:
            below = middle
    return above
