"""Where a path stands still, has no tangent or a corner, and a grid that fits it."""

from __future__ import annotations

import numpy as np

from linkwise.motion.cells import GRADED, SHARP, VANISHED, ArcCells
from linkwise.motion.paths import JointPath
from linkwise.motion.trajectory import Moment

FINE = 400  # samples of a path with few corners
ASIDE = 1e-9  # of the parameter's range: how far beside a corner its sides are evaluated
BESIDE = 1e-3  # of the distance to the next corner: the same where the tangent vanishes
FEWEST = 6  # cells between two corners
HIGHEST_ORDER = 6


class _WithoutRests(JointPath):
    """A path without the intervals of its parameter in which no joint moves."""

    def __init__(self, path: JointPath, rests: list[tuple[float, float]]):
        self.path, self.dof = path, path.dof
        self.starts = np.array([first for first, _ in rests])
        lengths = np.cumsum([0.0] + [last - first for first, last in rests])
        self.lengths, self.begin, self.end = lengths, path.begin, path.end - lengths[-1]
        self.joints = self.starts - lengths[:-1]  # where rests are left out

    def at(self, s: np.ndarray) -> Moment:
        return self.path.at(s + self.lengths[np.searchsorted(self.joints, s, side="right")])

    def corners(self) -> np.ndarray:
        old = self.path.corners()
        skipped = np.searchsorted(self.starts, old, side="right")
        moved = np.where(
            skipped > 0, np.maximum(old - self.lengths[skipped], self.joints[np.maximum(skipped - 1, 0)]), old
        )
        kept = np.unique(np.concatenate([[self.begin, self.end], moved, self.joints]))
        near = np.concatenate([[True], np.diff(kept) > 1e-9 * (self.end - self.begin)])
        return kept[near & (kept >= self.begin) & (kept <= self.end)]


def path_cells(path: JointPath, count: int, grid: np.ndarray | None = None) -> ArcCells:
    """About ``count`` cells along a path, evenly by arc length, smaller beside points of rest.

    ``grid`` gives the points between them as fractions of the arc length instead; corners are added.

    Raises:
        ValueError: the path has no length, or positions that are not finite.
    """
    s, speed = _sampled(path)
    largest = speed.max()
    if not np.isfinite(speed).all():
        where = s[np.argmin(np.isfinite(speed))]
        raise ValueError(
            f"path: positions or derivatives are not finite numbers at {where:g} of its parameter"
        )
    if largest * (path.end - path.begin) < 1e-9:
        raise ValueError("path: no joint moves, so there is no path")
    rests = _rests(s, speed <= VANISHED * largest)
    if rests:
        path = _WithoutRests(path, rests)
        s, speed = _sampled(path)
    points = np.unique(np.concatenate([path.corners(), _zeros(path, s, speed, largest)]))
    apart = np.concatenate([[True], np.diff(points) > 1e-7 * (path.end - path.begin)])
    points = points[apart]
    points[-1] = path.end
    orders, stops, jumps = _kinds(path, points, largest)
    breaks = jumps | stops | (orders > 0).any(axis=1)
    if len(points) <= count // FEWEST:
        breaks[:] = True  # third derivatives may jump, too
    breaks[0] = breaks[-1] = True
    points, orders, stops = points[breaks], orders[breaks], stops[breaks]
    return _gridded(path, points, orders, stops, s, speed, count, grid)


def _sampled(path: JointPath) -> tuple[np.ndarray, np.ndarray]:
    """A fine grid of the parameter with all corners, and |dq/ds| there."""
    corners = path.corners()
    each = max(-(-FINE // (len(corners) - 1)), 8)
    s = np.append(
        (corners[:-1, np.newaxis] + np.diff(corners)[:, np.newaxis] * (np.arange(each) / each)).ravel(),
        path.end,
    )
    return s, np.linalg.norm(path.at(s).qd, axis=-1)


def _rests(s: np.ndarray, still: np.ndarray) -> list[tuple[float, float]]:
    """Intervals of at least four samples in which nothing moves."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]]).astype(int)))
    return [(float(s[a]), float(s[b - 1])) for a, b in change.reshape(-1, 2) if b - a >= 4]


def _zeros(path: JointPath, s: np.ndarray, speed: np.ndarray, largest: float) -> np.ndarray:
    """Inner points at which the tangent vanishes: minima of |dq/ds|, each narrowed down by thirds."""
    k = (
        np.flatnonzero(
            (speed[1:-1] <= speed[:-2]) & (speed[1:-1] <= speed[2:]) & (speed[1:-1] < 0.05 * largest)
        )
        + 1
    )
    low, high = s[k - 1], s[k + 1]
    for _ in range(60 if k.size else 0):
        inner = low + (high - low) / 3, high - (high - low) / 3
        a, b = (np.linalg.norm(path.at(x).qd, axis=-1) for x in inner)
        low, high = np.where(a > b, inner[0], low), np.where(a > b, high, inner[1])
    middle = 0.5 * (low + high)
    found = (
        np.linalg.norm(path.at(middle).qd, axis=-1) < 1e-5 * largest if k.size else np.zeros(0, dtype=bool)
    )
    return middle[found]


def _kinds(path: JointPath, points: np.ndarray, largest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Orders of vanishing tangents on both sides of points, whether the direction jumps, whether derivatives do."""
    gap = np.diff(points)
    sides = np.stack([np.concatenate([gap[:1], gap]), np.concatenate([gap, gap[-1:]])], axis=1)
    sign = np.array([-1.0, 1.0])
    near = ASIDE * (points[-1] - points[0])
    beside = np.clip(points[:, np.newaxis] + sign * np.minimum(near, 1e-3 * sides), path.begin, path.end)
    moment = path.at(beside)
    speed = np.linalg.norm(moment.qd, axis=-1)
    steps = np.minimum(BESIDE * sides, 0.2 * sides)
    far = [
        path.at(np.clip(points[:, np.newaxis] + sign * k * steps, path.begin, path.end)).qd for k in (1, 2)
    ]
    with np.errstate(all="ignore"):
        rates = [np.linalg.norm(each, axis=-1) for each in far]
        order = np.rint(np.log2(rates[1] / rates[0]))
        vanishes = (speed < VANISHED * largest) | (speed < 1e-3 * rates[0])
        order = np.where(vanishes & np.isfinite(order), np.clip(order, 1, HIGHEST_ORDER), 0).astype(int)
        direction = np.where(
            order[..., np.newaxis] > 0, far[0] / rates[0][..., np.newaxis], moment.qd / speed[..., np.newaxis]
        )
    order[0, 0] = order[-1, 1] = 0  # beyond the ends
    turn = np.linalg.norm(direction[:, 1] - direction[:, 0], axis=-1)
    stops = turn > np.where((order > 0).any(axis=1), 50 * BESIDE, SHARP)
    change = np.abs(moment.qdd[:, 1] - moment.qdd[:, 0]).max(axis=-1) + np.abs(
        moment.qd[:, 1] - moment.qd[:, 0]
    ).max(axis=-1)
    jumps = change > 1e-6 * (np.abs(moment.qdd).max() + largest)
    stops[0] = stops[-1] = False
    return order, stops, jumps


def _gridded(path, points, orders, stops, s, speed, count, grid) -> ArcCells:
    """Nodes between points, evenly by arc length."""
    length = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(s))])
    at_points = np.interp(points, s, length)
    nodes, kept = [], []
    for k in range(len(points) - 1):
        share = (at_points[k + 1] - at_points[k]) / length[-1]
        cells = max(int(np.ceil(count * share)), FEWEST)
        fractions = np.arange(1, cells) / cells
        if k == 0 or stops[k]:
            fractions = np.concatenate([np.array(GRADED) / cells, fractions])
        if k == len(points) - 2 or stops[k + 1]:
            fractions = np.concatenate([fractions, 1 - np.array(GRADED[::-1]) / cells])
        distances = at_points[k] + fractions * (at_points[k + 1] - at_points[k])
        inside = np.interp(distances if grid is None else grid * length[-1], length, s)
        width = points[k + 1] - points[k]
        inside = np.unique(
            inside[(inside > points[k] + 1e-6 * width) & (inside < points[k + 1] - 1e-6 * width)]
        )
        if len(inside) < 2:
            inside = points[k] + width * np.array([1 / 3, 2 / 3])
        kept.append(len(nodes))
        nodes += [points[k], *inside]
    kept.append(len(nodes))
    nodes.append(points[-1])
    size = len(nodes)
    at = np.array(kept)
    breaks, stop, order = (
        np.zeros(size, dtype=bool),
        np.zeros(size, dtype=bool),
        np.zeros((size, 2), dtype=int),
    )
    breaks[at], stop[at], order[at] = True, stops, orders
    return ArcCells(path, np.array(nodes), breaks, stop, order)
