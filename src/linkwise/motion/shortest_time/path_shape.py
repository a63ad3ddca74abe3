"""Where a path stands still, has no tangent or a corner, and a grid that fits it.

Between points at which derivatives jump or the tangent vanishes, the grid's parameter σ has

    dσ/ds = w,   w² = |dq/ds|² + FLOOR² · mean(|dq/ds|²) · β(z),   z from 0 to 1 between the points.

β has its maximum 1 in between and vanishes at both points with their orders, so that σ is the arc length there and
passes them smoothly. At the ends of the path and at corners that is needed only where the tangent vanishes. Where no
speed between two points is that low, σ is the arc length.
"""

from __future__ import annotations

import numpy as np

from linkwise.motion.shortest_time.cells import GRADED, SHARP, VANISHED, Kinds, PathCells, nearest
from linkwise.motion.shortest_time.paths import JointPath
from linkwise.motion.trajectory import Moment

FINE = 400  # samples of a path with few corners
ASIDE = 1e-9  # of the parameter's range: how far beside a corner its sides are evaluated
BESIDE = 1e-3  # of the distance to the next corner: the same where the tangent vanishes
FEWEST = 6  # cells between two corners
HIGHEST_ORDER = 6
DENSE = 8001  # points at which functions of users are evaluated: they may change quickly anywhere
SEEN = 0.05  # of second derivatives: what nine points of a cell may miss
EVEN = 2.0  # the most by which P and w may differ inside of a cell
HALVINGS = 10  # of cells in which there is more
FLOOR = 0.5  # of the mean speed: w is at least that far from points of rest
FITTED = np.array(
    [0.2, 0.4, 0.6, 0.8]
)  # of cells at whose end the tangent vanishes: there P has the values of w
DIP = 0.8  # of that: where no speed between two points is below it, σ is the arc length
STEEPEST = 2.4  # w′·length/w in a cell at most: w stays positive


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


def path_cells(path: JointPath, count: int, grid: np.ndarray | None = None) -> PathCells:
    """About ``count`` cells along a path, evenly by σ, smaller beside points of rest.

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
    hard = jumps | stops | (orders > 0).any(axis=1)
    hard[0] = hard[-1] = True
    matched = jumps & ~stops
    matched[0] = matched[-1] = False
    floor = _Floor(points[hard], orders[hard], matched[hard], s, speed)
    return _gridded(path, points, orders, stops, floor, s, speed, count, grid)


class _Floor:
    """FLOOR² · mean(|dq/ds|²) · β and its derivative by s, for s between points of rest or jumps."""

    def __init__(self, points, orders, matched, s, speed):
        """``matched``: points at which derivatives jump and σ must be the arc length on both sides."""
        self.points = points
        exponents = np.where(orders > 0, 2 * orders + 2, 2 * matched[:, np.newaxis])
        self.left, self.right = exponents[:-1, 1].astype(float), exponents[1:, 0].astype(float)
        squares = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] ** 2 + speed[:-1] ** 2) * np.diff(s))])
        at_points = np.interp(points, s, squares)
        total = np.maximum(self.left + self.right, 1.0)
        peak = (self.left / total) ** self.left * (self.right / total) ** self.right
        self.size = FLOOR**2 * np.diff(at_points) / np.diff(points) / peak
        dips = np.flatnonzero(speed**2 < DIP**2 * self.at(s)[0])
        stretches = np.clip(np.searchsorted(points, s[dips], side="right") - 1, 0, len(self.size) - 1)
        self.size[np.setdiff1d(np.arange(len(self.size)), stretches)] = 0.0

    def at(self, s: np.ndarray, side: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """At s; ``side`` −1 takes the stretch before a point, 1 the one after it."""
        place = np.searchsorted(self.points, s, side="right" if side > 0 else "left") - 1
        k = np.clip(place, 0, len(self.size) - 1)
        width = self.points[k + 1] - self.points[k]
        z = np.clip((s - self.points[k]) / width, 0.0, 1.0)
        a, b = self.left[k], self.right[k]
        value = self.size[k] * z**a * (1 - z) ** b
        slope = a * z ** np.maximum(a - 1, 0.0) * (1 - z) ** b - b * z**a * (1 - z) ** np.maximum(b - 1, 0.0)
        return value, self.size[k] * slope / width


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
    zeros = (
        np.linalg.norm(path.at(middle).qd, axis=-1) < 1e-5 * largest if k.size else np.zeros(0, dtype=bool)
    )
    return middle[zeros]


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


def _gridded(path, points, orders, stops, floor, s, speed, count, grid) -> PathCells:
    """Nodes between points, evenly by σ."""
    weight = np.sqrt(speed**2 + floor.at(s)[0])
    sigma = np.concatenate([[0.0], np.cumsum(0.5 * (weight[1:] + weight[:-1]) * np.diff(s))])
    length = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(s))])
    at_points = np.interp(points, s, sigma)
    nodes, kept = [], []
    fewest = min(max(count // (len(points) - 1), 1), FEWEST)  # paths of many pieces get a cell for each
    for k in range(len(points) - 1):
        share = (at_points[k + 1] - at_points[k]) / sigma[-1]
        cells = max(int(np.ceil(count * share)), fewest)
        fractions = np.arange(1, cells) / cells
        if k == 0 or stops[k]:
            fractions = np.concatenate([np.array(GRADED) / cells, fractions])
        if k == len(points) - 2 or stops[k + 1]:
            fractions = np.concatenate([fractions, 1 - np.array(GRADED[::-1]) / cells])
        distances = at_points[k] + fractions * (at_points[k + 1] - at_points[k])
        if grid is None:
            inside = np.interp(distances, sigma, s)
        else:
            inside = np.interp(grid * length[-1], length, s)
        width = points[k + 1] - points[k]
        inside = np.unique(
            inside[(inside > points[k] + 1e-6 * width) & (inside < points[k + 1] - 1e-6 * width)]
        )
        if len(inside) < 2 and (orders[k, 1] or orders[k + 1, 0] or fewest > 2):
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
    return _fitted(path, np.array(nodes), Kinds(breaks, stop, order), floor, (s, length))


def _fitted(path, nodes, kinds, floor, distance) -> PathCells:
    """Cells with these nodes, and more where the path changes too quickly for its parameter."""
    dense = np.linspace(path.begin, path.end, DENSE if path.dense else 0)
    bend = np.abs(path.at(dense).qdd) if path.dense else np.zeros((0, path.dof))
    for _ in range(HALVINGS):
        weights = _weights(path, nodes, kinds, floor)
        uneven = _uneven(path, nodes, kinds, floor, weights)
        if path.dense:
            uneven |= _hidden(path, nodes, dense, bend)
        if not uneven.any():
            break
        cell = np.flatnonzero(uneven)
        nodes = np.insert(nodes, cell + 1, 0.5 * (nodes[cell] + nodes[cell + 1]))
        kinds = kinds.with_plain(cell + 1)
    else:
        weights = _weights(path, nodes, kinds, floor)
    return PathCells(path, nodes, kinds, weights, distance)


def _uneven(path, nodes, kinds, floor, weights) -> np.ndarray:
    """Cells in which P is far from w, so that σ goes on much faster or slower than the path."""
    share = np.linspace(0, 1, 6)[1:-1]
    eta = np.where(kinds.mirrored[:, np.newaxis], 1 - share, share)
    span = np.diff(nodes)[:, np.newaxis]
    w = span * _rate(path, floor, nodes[:-1, np.newaxis] + span * share, 1)[0]
    value = np.zeros_like(eta)
    for coefficient in weights.T[::-1]:
        value = value * eta + coefficient[:, np.newaxis]
    return ((value > EVEN * w) | (w > EVEN * value)).any(axis=1)


def _hidden(path, nodes, dense, bend) -> np.ndarray:
    """Cells of which nine points do not see second derivatives ``bend`` at points ``dense``, and their neighbours."""
    place = np.clip(np.searchsorted(nodes, dense, side="right") - 1, 0, len(nodes) - 2)
    most = np.zeros((len(nodes) - 1, path.dof))
    np.maximum.at(most, place, bend)
    points = nodes[:-1, np.newaxis] + np.diff(nodes)[:, np.newaxis] * np.linspace(0, 1, 9)
    seen = np.abs(path.at(points).qdd).max(axis=1)
    hidden = (most > (1 + SEEN) * seen + SEEN * bend.max(axis=0)).any(axis=1)
    cells = hidden.copy()
    cells[1:] |= hidden[:-1]
    cells[:-1] |= hidden[1:]
    return cells


def _weights(path: JointPath, nodes: np.ndarray, kinds: Kinds, floor: _Floor) -> np.ndarray:
    """Coefficients of P = dσ/dη as ``PathCells`` has them: cubics with w and dw/ds at both ends of a cell."""
    span, breaks = np.diff(nodes), kinds.breaks
    first, last = kinds.inside(nodes)
    (w0, w1), (rise, fall) = (
        np.stack(parts)
        for parts in zip(_rate(path, floor, first, 1), _rate(path, floor, last, -1), strict=True)
    )
    # positive between the ends: |w′| is bounded by both cells beside a point
    order = kinds.order
    steepest = np.where(order > 0, 1e9, STEEPEST)  # where the tangent vanishes, w is fitted below
    low, high = -steepest * w0 / span, steepest * w1 / span
    rise, fall = np.maximum(rise, low), np.minimum(fall, high)
    inner = ~breaks[1:-1]
    fall[:-1][inner] = np.maximum(fall[:-1], low[1:])[inner]
    rise[1:][inner] = np.minimum(rise[1:], high[:-1])[inner]
    coefficients = np.zeros((len(span), max(4, int(order.max()) + len(FITTED) + 3) if order.any() else 4))
    one, end, up, down = span * w0, span * w1, span * span * rise, span * span * fall
    with np.errstate(invalid="ignore"):
        coefficients[:, :4] = np.stack(
            [one, up, 3 * (end - one) - 2 * up - down, 2 * (one - end) + up + down], axis=1
        )
    for cell in np.flatnonzero(order):
        k, mirrored = int(order[cell]), kinds.mirrored[cell]
        value, slope = (one[cell], -up[cell]) if mirrored else (end[cell], down[cell])
        inside = np.append(nearest(order[cell]), FITTED)
        s = nodes[cell + 1] - span[cell] * inside if mirrored else nodes[cell] + span[cell] * inside
        values = span[cell] * _rate(path, floor, s, 1)[0] / inside**k
        coefficients[cell] = 0.0
        made = _quotient(inside, values, value, slope - k * value)
        coefficients[cell, k : k + len(made)] = made
    return coefficients


def _rate(path: JointPath, floor: _Floor, s: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """w and dw/ds."""
    _, first, second = path.at(s)
    value, slope = floor.at(s, side)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.sqrt((first * first).sum(axis=-1) + value)
        return w, ((first * second).sum(axis=-1) + 0.5 * slope) / w


def _quotient(eta: np.ndarray, values: np.ndarray, value: float, slope: float) -> np.ndarray:
    """Coefficients of P/ηᵏ: through values at η, with a value and a slope at η = 1; a constant if that is negative."""
    powers = np.arange(len(eta) + 2)
    rows = np.concatenate([eta[:, np.newaxis] ** powers, [np.ones(len(powers)), powers]])
    coefficients = np.linalg.solve(rows, np.concatenate([values, [value, slope]]))
    dense = np.polynomial.polynomial.polyval(np.linspace(0, 1, 65), coefficients)
    return coefficients if dense.min() > 0.2 * min(values.min(), value) else np.array([value])
