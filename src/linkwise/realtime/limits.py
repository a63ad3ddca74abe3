"""Limits and times of the real-time loop, checked before it starts. The C code checks them again."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot

FOLLOWING = (0.5, 0.25)  # [rad], [m]: default distance from the reference that stops the loop
FROZEN = (
    0.02,
    0.01,
)  # [rad], [m]: default motion of the reference with an unchanged position that stops the loop
LONGEST_STOP = 60.0  # [s]


class SettingsError(LinkwiseError, ValueError):
    """A setting of the real-time loop is invalid or missing; the message names it."""


_checks = Numbers(SettingsError)
whole, positive_time = _checks.whole, _checks.time


def stop_duration(value: object) -> float:
    """A time from 0 to LONGEST_STOP [s]."""
    found = _number("stop_time", value)
    if not 0 <= found <= LONGEST_STOP:
        raise SettingsError(f"stop_time: expected 0 to {LONGEST_STOP:g} seconds, got {value!r}")
    return found


def joint_limits(
    robot: Robot, given: Mapping[str, object] | None, *, simulated: bool
) -> dict[str, np.ndarray]:
    """Limits of every joint: those given, else the robot's, else defaults; shape (n,) each.

    Args:
        robot: its limits of position, velocity and effort are used where none are given.
        given: "lower", "upper", "speed", "effort", "following" or "frozen"; one number or (n,).
        simulated: a simulated plant may have no limits of speed and effort, hardware may not.

    Returns:
        "lower" and "upper" [rad or m], "speed" [rad/s or m/s], "effort" [N·m or N], "following" and "frozen" [rad or
        m].

    Raises:
        SettingsError: a limit is negative, zero, NaN or missing; the message names the joint.
    """
    found = _of_robot(robot)
    for name, values in dict(given or {}).items():
        if name not in found:
            raise SettingsError(f"limits: expected {', '.join(found)}, got {name!r}")
        try:
            numbers = np.asarray(values, dtype=float)
            found[name] = np.broadcast_to(numbers, (robot.dof,)).copy()
        except (TypeError, ValueError):
            raise SettingsError(
                f"limits: {name}: expected one number or {robot.dof} numbers, got {values!r}"
            ) from None
    for k, joint in enumerate(robot.joint_names):
        _check_joint(joint, {name: float(values[k]) for name, values in found.items()}, simulated)
    return found


def _of_robot(robot: Robot) -> dict[str, np.ndarray]:
    joints = robot.coordinate_joints
    return {
        "lower": np.array([joint.limits.lower for joint in joints]),
        "upper": np.array([joint.limits.upper for joint in joints]),
        "speed": robot.velocity_limits,
        "effort": robot.effort_limits,
        "following": np.array([FOLLOWING[not joint.revolute] for joint in joints]),
        "frozen": np.array([FROZEN[not joint.revolute] for joint in joints]),
    }


def _check_joint(joint: str, limits: Mapping[str, float], simulated: bool) -> None:
    if not limits["lower"] < limits["upper"]:
        raise SettingsError(
            f"limits: {joint}: lower ({limits['lower']:g}) must be less than upper ({limits['upper']:g})"
        )
    for name in ("speed", "effort", "following", "frozen"):
        if not limits[name] > 0:
            raise SettingsError(f"limits: {joint}: {name} must be greater than zero, got {limits[name]:g}")
    for name in ("speed", "effort"):
        if not simulated and math.isinf(limits[name]):
            raise SettingsError(
                f"limits: {joint} has no {name} limit; hardware is not driven without one, "
                f"give limits={{'{name}': ...}}"
            )


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SettingsError(f"{name}: expected a time in seconds, got {value!r}") from None
