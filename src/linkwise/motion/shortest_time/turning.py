"""Grid points at which joints turn back: dry friction jumps there."""

from __future__ import annotations

import numpy as np

from linkwise.motion.shortest_time.cells import Cells
from linkwise.motion.shortest_time.path_limits import TURNING, Limits, peak

FOUND = 1e-13  # of a cell: where a joint turns back
NARROW = 1e-4  # share of a cell: no grid point is put nearer to its ends


def with_turning_points(limits: Limits, cells: Cells) -> Cells:
    """Grid points where a joint with dry friction turns back: its friction jumps there."""
    for _ in range(4 if limits.turns else 0):
        first = cells.samples().qd
        small = TURNING * np.abs(first).max()
        samples = np.where(np.abs(first) < small, 0.0, first)
        back = (peak(samples) > small) & (peak(-samples) > small)
        ends = samples[:, 0] * samples[:, -1]
        twice, once = np.nonzero(back & (ends >= 0))[0], np.nonzero(back & (ends < 0))
        if not twice.size and not once[0].size:
            break
        cells = _divided(cells, *once) if not twice.size else cells.halved(np.unique(twice))
    return cells


def _divided(cells: Cells, cell: np.ndarray, joint: np.ndarray) -> Cells:
    """The cells divided where the tangents of joints change their signs, by regula falsi (Illinois)."""
    k = np.arange(cell.size)
    low, high = np.zeros(cell.size), np.ones(cell.size)
    f, g = (cells.at(cell, end).qd[k, joint] for end in (low, high))
    for _ in range(12):
        apart = np.sign(f) * np.sign(g) < 0  # otherwise the zero is found: at ``high``
        middle = np.where(apart, (low * g - high * f) / np.where(apart, g - f, 1.0), high)
        value = cells.at(cell, middle).qd[k, joint]
        other = np.sign(value) * np.sign(g) < 0
        low, f = np.where(other & apart, high, low), np.where(other & apart, g, 0.5 * f)
        moved = np.abs(middle - high).max(initial=0.0)
        high, g = middle, np.where(apart, value, 0.0)
        if moved < FOUND:
            break
    inner = (high > NARROW) & (high < 1 - NARROW)
    cell, high = cell[inner], high[inner]
    order = np.lexsort((high, cell))  # joints may turn back together
    cell, high = cell[order], high[order]
    apart = np.ones(cell.size, dtype=bool)
    apart[1:] = (np.diff(cell) > 0) | (np.diff(high) > NARROW)
    return cells.divided_at(cell[apart], high[apart])


def spline_turning_points(knots: np.ndarray, coefficients: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Grid points of splines and those at which joints turn back; NaN behind the last where a path has fewer.

    Of two points that are next to each other one is left: a way-point, or else one at which a joint turns back.

    Args:
        knots: as those of ``Splines``, (paths, m).
        coefficients: likewise, (paths, m − 1, 4, n).
        nodes: grid points, (paths, cells + 1).
    """
    _, c1, c2, c3 = np.moveaxis(coefficients, 2, 0)
    h = np.diff(knots)[..., np.newaxis]
    with np.errstate(all="ignore"):  # zeros of c1 + 2 c2 t + 3 c3 t², without cancellation
        sum_ = -(c2 + np.where(c2 < 0, -1.0, 1.0) * np.sqrt(c2 * c2 - 3 * c1 * c3))
        at = np.stack([sum_ / (3 * c3), c1 / sum_], axis=1)
        fastest = np.maximum(np.abs(c1), np.abs(c1 + h * (2 * c2 + 3 * c3 * h)))
    moves = fastest > TURNING * np.abs(c1).max(axis=(1, 2), keepdims=True)
    inside = (at > 0) & (at < h[:, np.newaxis]) & moves[:, np.newaxis]
    turns = np.where(inside, knots[:, np.newaxis, :-1, np.newaxis] + at, np.nan)
    points = np.concatenate([nodes, turns.reshape(len(nodes), -1)], axis=1)
    order = np.argsort(points, axis=1)
    points, added = np.take_along_axis(points, order, axis=1), order >= nodes.shape[1]
    rank = np.where((points[..., np.newaxis] == knots[:, np.newaxis]).any(axis=-1), 2, added)
    near = np.diff(points, axis=1) < NARROW * knots[:, -1:] / nodes.shape[1]  # to the next point
    drop = np.zeros(points.shape, dtype=bool)
    drop[:, :-1] = near & (rank[:, :-1] < rank[:, 1:])
    drop[:, 1:] |= near & (rank[:, :-1] >= rank[:, 1:])
    points = np.sort(np.where(drop, np.nan, points), axis=1)
    return points[:, : int(np.isfinite(points).sum(axis=1).max())]
