"""Checks of what users give to a simulation: every number that cannot be right is refused by its name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.compiler.runtime.arrays import is_foreign
from linkwise.errors import LinkwiseError, ShapeError
from linkwise.robot.robot import Robot

DECAY = 20.0  # [1/s] of errors of constraints, where no rate is given


class SimulationError(LinkwiseError, ValueError):
    """An argument of a simulation cannot be right; the message names it."""


_checks = Numbers(SimulationError)
array, number, per_joint, whole = _checks.array, _checks.number, _checks.each, _checks.whole


def multiple(name: str, time: Any, unit: float, what: str, least: int) -> int:
    """How many ``unit`` [s] a time [s] is; it must be a whole number of them, from ``least`` on."""
    seconds = number(name, time, least=0.0)
    count = round(min(seconds / unit, 2.0**62))
    if count < least or not math.isclose(count * unit, seconds, rel_tol=1e-9, abs_tol=1e-12):
        raise SimulationError(f"{name}: expected a whole number of {what} of {unit:g} s, got {seconds:g} s")
    return count


def state(name: str, value: Any, dof: int) -> Any:
    """Positions (..., nq) or velocities (..., n). NaN is allowed: it stays with its robot, which counts as diverged."""
    found = value
    if not is_foreign(value):
        try:
            found = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise SimulationError(f"{name}: expected numbers, got {value!r}") from None
    if tuple(found.shape[-1:]) != (dof,):
        raise ShapeError(f"{name}: expected shape (..., {dof}), got {tuple(found.shape)}")
    return found


def check_sensors(robot: Robot, sensors: Any) -> None:
    """Refuse noisy or coarse positions of ball and floating joints, which are not added up as numbers are."""
    if not (sensors.noisy or sensors.counts or sensors.differs):
        return
    for joint in robot.coordinate_joints:
        if joint.free:
            raise SimulationError(
                f"sensors: noise, resolution and differences are for arms; joint {joint.name!r} is {joint.type}"
            )


def stabilization(robot: Robot, value: Any) -> float | str:
    """What keeps constraints from drifting: a rate from 0 on [1/s], or "projection" (default where none is soft)."""
    soft = [constraint for constraint in robot.constraints if constraint.compliance]
    if value is None:
        return 0.0 if not robot.constraints else DECAY if soft else "projection"
    if isinstance(value, str):
        if soft:
            raise SimulationError(
                f"stabilization: {soft[0].label} is soft; give a rate [1/s] instead of {value!r}"
            )
        if value != "projection":
            raise SimulationError(f"stabilization: expected 'projection' or a rate [1/s], got {value!r}")
        return value if robot.constraints else 0.0
    rate = number("stabilization", value, least=0.0)
    return rate if robot.constraints else 0.0


def accuracy(value: Any) -> float | None:
    """Of contacts: a residual above 0; None is the default."""
    return None if value is None else number("accuracy", value, above=0.0)
