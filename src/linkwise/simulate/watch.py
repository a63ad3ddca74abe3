"""What a simulated motion shows that no arm does: numbers beyond all bounds, and joints beyond their range."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwise.robot import Robot

FASTEST = 1e6  # [rad/s or m/s] no joint is that fast: the integration has diverged
SLACK = 1e-9  # [rad or m] relative to limits beyond 1: round-off at a limit is no excursion
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


@dataclass(frozen=True)
class Excursion:
    """A joint that has left its range: joint stops are not simulated."""

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

    def __str__(self) -> str:
        place = f" of robot {', '.join(map(str, self.robot))}" if self.robot else ""
        return (
            f"joint {self.joint!r}{place} left its range at t = {self.time:g} s: beyond {self.limit:g} {self.unit} "
            f"by up to {self.by:.3g} {self.unit}; stops are not simulated"
        )


def lost(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Which joints are not finite or too fast, in the shape of q; a comparison with NaN is False."""
    return ~(np.isfinite(q) & (np.abs(qd) < FASTEST))


def first_lost(robot: Robot, t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> tuple[float, str] | None:
    """(time, joint) of the first row (rows, n) of one robot that is lost; of several joints the fastest one before."""
    bad = lost(q, qd)
    rows = bad.any(axis=-1)
    if not rows.any():
        return None
    row = int(np.argmax(rows))
    before = np.abs(qd[max(row - 1, 0)])
    speed = np.where(np.isfinite(before), before, np.inf)
    return float(t[row]), robot.joint_names[int(np.argmax(np.where(bad[row], speed, -1.0)))]


def excursions(robot: Robot, t: np.ndarray, q: np.ndarray) -> Iterator[Excursion]:
    """Every joint of every robot that is beyond its range in some row of q (..., rows, n); t (rows,)."""
    lower, upper = ranges(robot)
    for *place, k in np.argwhere(beyond_range(robot, q)).tolist():
        column = q[(*place, slice(None), k)]
        column = np.where(np.isfinite(column), column, upper[k])  # a state that is lost is no excursion
        rows = np.maximum(lower[k] - column, column - upper[k])
        first = int(np.argmax(rows > 0.0))
        joint = robot.coordinate_joints[k]
        passed = joint.limits.upper if column[first] > upper[k] else joint.limits.lower
        unit = "rad" if joint.turns else "m"
        yield Excursion(joint.name, tuple(place), float(t[first]), passed, float(rows.max()), unit)


def beyond_range(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Which joints of which robots are beyond their range in some row of q (..., rows, n); shape (..., n)."""
    lower, upper = ranges(robot)
    if not q.size or not _leaves(q, lower, upper):
        return np.zeros((*q.shape[:-2], q.shape[-1]), dtype=bool)
    return np.asarray((((q < lower) | (q > upper)) & np.isfinite(q)).any(axis=-2))


def ranges(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) ends of the joints' ranges, a little widened for round-off; shape (n,)."""
    limits = [joint.limits for joint in robot.coordinate_joints]
    lower, upper = (np.array([getattr(limit, side) for limit in limits]) for side in ("lower", "upper"))
    return lower - _slack(lower), upper + _slack(upper)


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
