"""Checks of what users give to motions: every number that cannot be right is refused by its name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.algorithms import coupling
from linkwise.algorithms.contact import lines
from linkwise.algorithms.kinematics import link_poses
from linkwise.arguments.numbers import Numbers, shown
from linkwise.compiler.runtime.arrays import as_reals
from linkwise.errors import ConstraintError, ShapeError
from linkwise.functions.table import mechanism_of
from linkwise.model.constraints import CONSTRAINT_ERROR
from linkwise.model.contacts import tendons_of
from linkwise.model.coordinates import check_one_axis
from linkwise.robot.robot import Robot


def numbers(name: str, value: Any) -> np.ndarray:
    """Real numbers of any shape, in float64; see ``as_reals`` for what is refused."""
    return as_reals(name, value).astype(float)


def finite(name: str, value: Any) -> np.ndarray:
    """Finite real numbers of any shape."""
    array = numbers(name, value)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got {shown(array)}")
    return array


def number(name: str, value: Any, *, positive: bool = False, unit: str = "") -> float:
    """One finite number."""
    array = numbers(name, value)
    kind = "positive " if positive else ""
    what = f"a {kind}number [{unit}]" if unit else f"a {kind}number"
    if array.shape != () or not math.isfinite(array) or (positive and not array > 0):
        raise ValueError(f"{name}: expected {what}, got {value!r}")
    return float(array)


whole = Numbers().whole


def duration(value: Any, name: str = "duration") -> float:
    """A finite positive time in seconds."""
    return Numbers().time(name, value)


def positions(name: str, values: Any, dof: int | None = None) -> np.ndarray:
    """A vector of one finite number per joint."""
    array = np.atleast_1d(finite(name, values))
    if array.ndim != 1 or (dof is not None and array.size != dof):
        expected = "(n,)" if dof is None else f"({dof},)"
        raise ShapeError(f"{name}: expected shape {expected}, got {np.shape(values)}")
    return array


def per_joint(name: str, values: Any, dof: int) -> np.ndarray:
    """One finite number per joint; a single number stands for all of them."""
    array = numbers(name, values)
    return positions(name, np.full(dof, float(array)) if array.ndim == 0 else array, dof)


def limits(name: str, values: Any, dof: int) -> np.ndarray:
    """One limit per joint, not negative; a single number stands for all of them, infinity for no limit."""
    array = numbers(name, values)
    if array.shape not in ((), (dof,)):
        raise ShapeError(f"{name}: expected one number or shape ({dof},), got {array.shape}")
    if not (array >= 0).all():
        raise ValueError(f"{name}: expected limits that are not negative, got {shown(array)}")
    return np.array(np.broadcast_to(array, (dof,)))


def pair(name: str, values: Any, dof: int) -> tuple[np.ndarray, np.ndarray]:
    """What joints have at the begin and at the end: two numbers, or two vectors of one number per joint."""
    try:
        first, last = values
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected two numbers or two vectors, got {values!r}") from None
    return per_joint(name, first, dof), per_joint(name, last, dof)


def check_robot(robot: Any) -> None:
    """Refuse what is no robot."""
    if not isinstance(robot, Robot):
        raise TypeError(f"robot: expected a Robot, got {type(robot).__name__}")
    check_one_axis(robot, "motions")


def check_keeps_constraints(robot: Robot, q: np.ndarray, what: str) -> None:
    """Refuse positions (..., nq) that break a constraint of the robot, which it cannot reach; soft ones give way.
    Those at which a tendon is beyond its range, too."""
    _check_keeps_tendons(robot, q, what)
    if not robot.constraints:
        return
    errors = np.abs(robot.constraint_errors(q)).reshape(-1, robot.constraint_rows).max(axis=0)
    rows = (constraint for constraint in robot.constraints for _ in range(constraint.rows))
    for constraint, error in zip(rows, errors, strict=True):
        if error > CONSTRAINT_ERROR and not constraint.compliance:
            raise ConstraintError(
                f"{what}: breaks the constraint {constraint.label!r} of {robot.name}, by up to {error:.3g} m or rad; "
                "robot.meet_constraints finds positions that keep it"
            )


def _check_keeps_tendons(robot: Robot, q: np.ndarray, what: str) -> None:
    tendons = tendons_of(robot.contact_parts)
    if not tendons:
        return
    links = mechanism_of(robot)
    columns: Any = [np.ascontiguousarray(column) for column in q.reshape(-1, robot.nq).T]
    at = coupling.expanded(links, columns, positions=True)
    frames = link_poses(links, at)
    for tendon, path in zip(tendons, lines.prepared(robot), strict=True):
        length = np.asarray(lines.tendon(links, at, frames, path)[0])
        beyond = float(np.maximum(path.lower - length, length - path.upper).max())
        if beyond > CONSTRAINT_ERROR:
            raise ConstraintError(
                f"{what}: {tendon.label} of {robot.name} would be beyond its range, by up to {beyond:.3g}"
            )


def matrices(name: str, value: Any, *shape: int) -> np.ndarray:
    """Finite arrays whose last axes have this shape."""
    return shaped(name, finite(name, value), *shape)


def shaped(name: str, value: Any, *shape: int) -> np.ndarray:
    """Arrays whose last axes have this shape; they may hold NaN, which stays where it is."""
    array = numbers(name, value)
    if array.shape[max(array.ndim - len(shape), 0) :] != shape:
        listed = ", ".join(map(str, shape))
        raise ShapeError(f"{name}: expected shape (..., {listed}), got {array.shape}")
    return array
