"""Way-points as a smooth path: straight lines, with parabolas in place of the corners.

A parabola that begins and ends at the same distance from a corner fits both lines with their directions, when the
parameter is the distance along them. Its curvature is constant; it stays in the triangle of its three control points.
"""

from __future__ import annotations

import numpy as np

from linkwise.core.products import times
from linkwise.motion.polynomial import PiecewisePolynomial

SHORT = 1e-9  # [rad or m] pieces that are left out


def control_points(points: np.ndarray, cut: np.ndarray) -> np.ndarray:
    """Control points (pieces, 3, n) of lines and parabolas, one after the other.

    Args:
        points: way-points (m, n), each at another position than the one before.
        cut: how far from each inner way-point its parabola begins, shape (m − 2,); 0 for a corner that stays.
    """
    way = np.diff(points, axis=0)
    size = np.sqrt((way * way).sum(axis=1))
    unit = way / size[:, None]
    pieces: list[np.ndarray] = []
    here = points[0]
    for k in range(1, len(points)):
        last = k == len(points) - 1
        corner = points[k]
        begin = corner if last else corner - cut[k - 1] * unit[k - 1]
        if float(times(begin - here, begin - here)) > SHORT**2:
            pieces.append(np.array([here, (here + begin) / 2, begin]))
            here = begin
        if not last and cut[k - 1] > SHORT:
            end = corner + cut[k - 1] * unit[k]
            pieces.append(np.array([here, corner, end]))
            here = end
    return np.array(pieces)


def smooth_path(pieces: np.ndarray) -> PiecewisePolynomial:
    """The path of these pieces; its parameter is the distance along the lines.

    Args:
        pieces: control points (pieces, 3, n).
    """
    a, b, c = pieces.transpose(1, 0, 2)
    length = np.sqrt(((b - a) ** 2).sum(axis=1)) + np.sqrt(((c - b) ** 2).sum(axis=1))
    knots = np.concatenate([[0.0], np.cumsum(length)])
    first = 2.0 * (b - a) / length[:, None]
    second = (a - 2.0 * b + c) / (length * length)[:, None]
    return PiecewisePolynomial(knots, np.stack([a, first, second], axis=1))


def largest_cuts(points: np.ndarray) -> np.ndarray:
    """Half of the shorter line at each inner way-point, shape (m − 2,).

    Args:
        points: way-points (m, n).
    """
    way = np.diff(points, axis=0)
    size = np.sqrt((way * way).sum(axis=1))
    return 0.5 * np.minimum(size[:-1], size[1:])


def without_repeats(points: np.ndarray) -> np.ndarray:
    """Way-points of which none is at the position of the one before or on the line between its neighbours.

    Args:
        points: way-points (m, n).
    """
    kept = [points[0]]
    for point in points[1:]:
        if float(((point - kept[-1]) ** 2).sum()) > 1e-12:
            kept.append(point)
    if len(kept) == 1:
        return np.array(kept)
    straight: list[np.ndarray] = [kept[0]]
    for before, here, after in zip(kept[:-2], kept[1:-1], kept[2:], strict=True):
        one, two = here - before, after - here
        sizes = float(np.sqrt((one * one).sum() * (two * two).sum()))
        if float(times(one, two)) < (1.0 - 1e-9) * sizes:
            straight.append(here)
    return np.array([*straight, kept[-1]])
