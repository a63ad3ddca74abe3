"""Signs of a simulation that failed: numbers without bounds, joints beyond their range, constraints
that are not kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwise.algorithms.contact.recovery import RECOVERY_SPEED
from linkwise.errors import ConstraintError
from linkwise.model.contacts import stops_of
from linkwise.robot.constrained import turns_and_gaps
from linkwise.robot.robot import Robot

FASTEST = 1e6  # [rad/s or m/s] no joint is that fast: the integration has diverged
SLACK = 1e-9  # [rad or m] relative to limits beyond 1: round-off at a limit is no excursion
START_SLACK = 1e-3  # [rad or m, rad/s or m/s] of constraints in an initial state
UNMET = 1e-4  # [rad or m] from which a constraint counts as not kept
_CHUNK = 1024  # rows that are compared at once


@dataclass(frozen=True)
class Divergence:
    """The first robot whose state is not finite or faster than ``FASTEST``."""

    time: float
    """[s]: that of the first such row."""
    joint: str
    """The one that was fastest, or lost first."""
    robot: tuple[int, ...]
    """Its place in the batch."""

    def __str__(self) -> str:
        place = f" of robot {', '.join(map(str, self.robot))}" if self.robot else ""
        return (
            f"the simulation diverged at t = {self.time:g} s: joint {self.joint!r}{place} is not finite or faster than "
            f"{FASTEST:g}; a smaller step or lower gains may help"
        )


ONLY_STOPS = "only stops would hold it (with_contacts)"


@dataclass(frozen=True)
class Excursion:
    """A joint that has left its range: only robots with stops (``with_contacts(stops=True)``) are held there."""

    joint: str
    robot: tuple[int, ...]
    """Its place in the batch."""
    time: float
    """[s]: that of the first row beyond the range."""
    limit: float
    """[rad or m]: the end of the range that it passed first."""
    by: float
    """[rad or m]: how far at most."""
    unit: str
    stops: bool = False
    """Whether the joint has a stop, which brings back slowly what began beyond it."""

    def __str__(self) -> str:
        place = f" of robot {', '.join(map(str, self.robot))}" if self.robot else ""
        brings = f"its stop brings it back with at most {RECOVERY_SPEED:g} {self.unit}/s"
        return (
            f"joint {self.joint!r}{place} left its range at t = {self.time:g} s: beyond {self.limit:g} {self.unit} "
            f"by up to {self.by:.3g} {self.unit}; {brings if self.stops else ONLY_STOPS}"
        )


@dataclass(frozen=True)
class Unmet:
    """A constraint that was not kept."""

    constraint: str
    robot: tuple[int, ...]
    """Its place in the batch."""
    time: float
    """[s]: that of the row where it was furthest off."""
    by: float
    """[rad or m]: how far there, in the worst of its directions."""

    def __str__(self) -> str:
        place = f" of robot {', '.join(map(str, self.robot))}" if self.robot else ""
        return (
            f"{self.constraint}{place} is not kept: off by {self.by:.3g} at t = {self.time:g} s; it cannot be met "
            "there, or the step is too large"
        )


def lost(robot: Robot, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Which joints are not finite or too fast, shape (..., joints); a comparison with NaN is False."""
    positions = _by_joint(np.logical_or, ~np.isfinite(q), [joint.nq for joint in robot.coordinate_joints])
    speeds = ~(np.abs(qd) < FASTEST)
    return positions | _by_joint(np.logical_or, speeds, [joint.dof for joint in robot.coordinate_joints])


def first_lost(robot: Robot, t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> tuple[float, str] | None:
    """(time, joint) of the first row of one robot that is lost; of several joints the fastest one before.

    ``q`` has shape (rows, nq), ``qd`` (rows, n).
    """
    bad = lost(robot, q, qd)
    rows = bad.any(axis=-1)
    if not rows.any():
        return None
    row = int(np.argmax(rows))
    before = np.abs(qd[max(row - 1, 0)])
    speed = np.where(np.isfinite(before), before, np.inf)
    speed = _by_joint(np.maximum, speed, [joint.dof for joint in robot.coordinate_joints])
    return float(t[row]), robot.joint_names[int(np.argmax(np.where(bad[row], speed, -1.0)))]


def _by_joint(join: np.ufunc, values: np.ndarray, sizes: list[int]) -> np.ndarray:
    """One value for each joint from those of its coordinates, along the last axis."""
    if all(size == 1 for size in sizes):
        return values
    return join.reduceat(values, np.cumsum([0, *sizes[:-1]]), axis=-1)


def excursions(robot: Robot, t: np.ndarray, q: np.ndarray) -> Iterator[Excursion]:
    """Every joint of every robot that is beyond its range in some row of q (..., rows, nq); t (rows,)."""
    lower, upper = ranges(robot)
    columns = np.cumsum([0, *(joint.nq for joint in robot.coordinate_joints)])
    for *place, number in np.argwhere(beyond_range(robot, q)).tolist():
        k = int(columns[number])
        column = q[(*place, slice(None), k)]
        column = np.where(np.isfinite(column), column, np.nan)  # a state that is lost is no excursion
        rows = np.nan_to_num(np.fmax(lower[k] - column, column - upper[k]), nan=0.0)
        first = int(np.argmax(rows > 0.0))
        joint = robot.coordinate_joints[number]
        passed = joint.limits.upper if column[first] > upper[k] else joint.limits.lower
        unit = "rad" if joint.turns else "m"
        stops = any(stop.joint == joint.name for stop in stops_of(robot.contact_parts))
        yield Excursion(joint.name, tuple(place), float(t[first]), passed, float(rows.max()), unit, stops)


def beyond_range(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Which joints of which robots are beyond their range in some row of q (..., rows, nq); shape (..., joints)."""
    lower, upper = ranges(robot)
    joints = robot.coordinate_joints
    if not q.size or not _leaves(q, lower, upper):
        return np.zeros((*q.shape[:-2], len(joints)), dtype=bool)
    found = np.asarray((((q < lower) | (q > upper)) & np.isfinite(q)).any(axis=-2))
    return _by_joint(np.logical_or, found, [joint.nq for joint in joints])


def ranges(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) ends of the joints' ranges, a little widened for round-off; shape (nq,).

    Ball and floating joints have no range.
    """
    ends = [
        (-math.inf, math.inf) if joint.free else (joint.limits.lower, joint.limits.upper)
        for joint in robot.coordinate_joints
        for _ in range(joint.nq)
    ]
    lower, upper = np.array(ends).T
    return lower - _slack(lower), upper + _slack(upper)


# -- constraints ------------------------------------------------------------------------------------------------------


def check_start(robot: Robot, q: np.ndarray, qd: np.ndarray, stabilization: float | str) -> None:
    """Raise ConstraintError, naming the constraint, where an initial state is not one that the constraints allow.

    With a rate of stabilization errors decay, so any start is allowed.
    """
    if isinstance(stabilization, float) and stabilization > 0.0:
        return
    off = np.abs(turns_and_gaps(robot, q))
    if (worst := _worst_row(robot, off, START_SLACK)) is not None:
        label, by = worst
        raise ConstraintError(
            f"{robot.name}: the initial position does not meet {label}: off by {by:.3g}; "
            "robot.meet_constraints(q) finds one that does, and stabilization=20.0 lets errors decay"
        )
    J = robot.constraint_jacobian(q)
    speed = np.abs(np.einsum("...ij,...j->...i", J, np.broadcast_to(qd, (*q.shape[:-1], robot.dof))))
    if (worst := _worst_row(robot, speed, START_SLACK)) is not None:
        label, by = worst
        raise ConstraintError(
            f"{robot.name}: the initial velocities do not keep {label}: they leave it at {by:.3g} per second; "
            "robot.impact(q, qd) gives velocities that do"
        )


def _worst_row(robot: Robot, values: np.ndarray, most: float) -> tuple[str, float] | None:
    rows = [constraint.label for constraint in robot.constraints for _ in range(constraint.rows)]
    largest = values.reshape(-1, len(rows)).max(axis=0, initial=0.0)
    worst = int(np.argmax(largest))
    return (rows[worst], float(largest[worst])) if largest[worst] > most else None


def unmet(robot: Robot, t: np.ndarray, q: np.ndarray) -> list[Unmet]:
    """Constraints that are off in some row of q (..., rows, nq) by more than at the start and ``UNMET``; t (rows,)."""
    if not robot.constraints or not q.size:
        return []
    off = np.abs(robot.constraint_errors(q))
    most = np.maximum(UNMET, 1.0000001 * off[..., :1, :])
    found, at = [], 0
    for constraint in robot.constraints:
        own = slice(at, at + constraint.rows)
        at += constraint.rows
        by = np.where(off[..., own] > most[..., own], off[..., own], 0.0).max(axis=-1)
        for place in np.argwhere(by.max(axis=-1) > 0.0).tolist():
            row = int(np.argmax(by[tuple(place)]))
            found.append(Unmet(constraint.label, tuple(place), float(t[row]), float(by[(*place, row)])))
    return found


def _slack(limits: np.ndarray) -> np.ndarray:
    return SLACK * np.maximum(1.0, np.where(np.isfinite(limits), np.abs(limits), 1.0))


def _leaves(q: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether anything is beyond: the extremes of all rows, over long stretches of memory, since q may be large."""
    if math.inf == upper.min() and -math.inf == lower.max():
        return False
    flat = q.reshape(-1, q.shape[-1])
    whole = len(flat) // _CHUNK * _CHUNK
    parts = [flat[whole:]]
    if whole:
        wide = flat[:whole].reshape(_CHUNK, -1) if flat.flags.c_contiguous else flat[:whole]
        parts += [part.reshape(-1, q.shape[-1]) for part in (np.fmin.reduce(wide), np.fmax.reduce(wide))]
    return any(bool(((part < lower) | (part > upper)).any()) for part in parts)
