"""Capsules that enclose points, spheres and meshes.

A capsule encloses a set of spheres if the distance of each centre to its segment is at most its radius less theirs.
For a given direction of the segment the smallest such capsule follows from the smallest circle around the spheres seen
along that direction; directions are principal axes, improved by small turns. A mesh is divided into pieces across its
length as long as that saves volume. Every triangle of the mesh lies in one of the capsules, so nothing outside can
touch the mesh before it touches a capsule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.core.products import length, times
from linkwise.geometry.solids import Mesh
from linkwise.solve import linear

MOST_PIECES = 4  # capsules for one mesh
GAIN = 0.85  # a mesh is divided if the pieces have at most this part of the volume
WIDER = (1.0, 1.03, 1.08, 1.15, 1.25, 1.4)  # radii that are tried, as multiples of the smallest one
LONGEST_EDGE = 0.125  # of triangles, as a part of the extent of their mesh, before it is divided
MOST_TRIANGLES = 20_000  # that are looked at after dividing edges
SMALL = 0.03  # [m] a piece whose capsule is no thicker is not divided
TURNS = np.array([0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.02, 0.02])  # [rad] by which directions are improved
_CUTS = np.linspace(0.2, 0.8, 7)
_TRIED = 3  # cuts that are compared exactly
_DIRECTIONS = np.random.default_rng(0).normal(size=(96, 3))

Fit = tuple[np.ndarray, np.ndarray, float]  # start and end [m], radius [m]


def enclosing_capsule(points: np.ndarray, radii: np.ndarray | float = 0.0) -> Fit:
    """A small capsule around spheres: (start, end, radius).

    Args:
        points: their centres [m], shape (k, 3).
        radii: their radii [m], shape (k,) or one number.
    """
    points = np.asarray(points, dtype=float).reshape(-1, 3)
    sizes = np.broadcast_to(np.asarray(radii, dtype=float), len(points))
    few = _outermost(points, sizes)
    axes = np.eye(3)
    if len(points) > 1:
        axes = np.concatenate([axes, _principal(points[few])])
    axis = _best_axis(points[few], sizes[few], axes)
    turned = axis + TURNS[:, None] * np.random.default_rng(0).normal(size=(len(TURNS), 3))
    turned = np.concatenate([axis[None], turned / np.sqrt((turned**2).sum(axis=1, keepdims=True))])
    axis = _best_axis(points[few], sizes[few], turned)
    return _along(points, sizes, axis[None], few)[0]


def _best_axis(points: np.ndarray, radii: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The direction, of these unit vectors, of the smallest capsule."""
    fits = _along(points, radii, axes)
    return axes[min(range(len(fits)), key=lambda k: volume(fits[k]))]


def _outermost(points: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Numbers of the spheres that reach farthest in one of many directions: a direction is searched with these."""
    if len(points) <= len(_DIRECTIONS):
        return np.arange(len(points))
    return np.unique((times(points, _DIRECTIONS.T) + radii[:, None]).argmax(axis=0))


def volume(fit: Fit) -> float:
    """Of a capsule [m³]."""
    start, end, radius = fit
    return math.pi * radius**2 * (length(end - start) + 4.0 / 3.0 * radius)


def contains(outer: Fit, inner: Fit) -> bool:
    """Whether a capsule lies in another: the spheres at its ends do."""
    return all(_distance(point, outer) + inner[2] <= outer[2] + 1e-12 for point in inner[:2])


def joined(fits: Sequence[Fit]) -> Fit:
    """A capsule around capsules."""
    ends = np.array([end for fit in fits for end in fit[:2]])
    return enclosing_capsule(ends, np.repeat([fit[2] for fit in fits], 2))


def reduced(fits: Sequence[Fit], most: int, waste: float = 1.05) -> list[Fit]:
    """Fewer capsules that contain the given ones: at most ``most``, and fewer where joining two adds little volume.

    Args:
        fits: the capsules.
        most: how many may be left.
        waste: two are joined if that has at most this multiple of their volume.
    """
    left: list[Fit] = []
    for fit in sorted(fits, key=volume, reverse=True):
        if not any(contains(other, fit) for other in left):
            left.append(fit)
    while len(left) > 1:
        pairs = [(i, k) for i in range(len(left)) for k in range(i)]
        found = {pair: joined([left[pair[0]], left[pair[1]]]) for pair in pairs}
        added = {
            pair: volume(fit) - volume(left[pair[0]]) - volume(left[pair[1]]) for pair, fit in found.items()
        }
        best = min(added, key=lambda pair: added[pair])
        parts = volume(left[best[0]]) + volume(left[best[1]])
        if len(left) <= most and volume(found[best]) > waste * parts:
            break
        left = [fit for k, fit in enumerate(left) if k not in best]
        left = [found[best], *(fit for fit in left if not contains(found[best], fit))]
    return left


def mesh_capsules(mesh: Mesh, most: int = MOST_PIECES) -> list[Fit]:
    """Capsules around the triangles of a mesh.

    Args:
        mesh: the triangles [m].
        most: number of capsules at most.
    """
    triangles = divided_edges(mesh.vertices[mesh.faces])
    pieces = [(triangles, _around(triangles))]
    while len(pieces) < most:
        options = [
            (k, cut) for k, (piece, fit) in enumerate(pieces) if (cut := _best_cut(piece, fit)) is not None
        ]
        if not options:
            break
        k, (gain, mask) = max(options, key=lambda option: option[1][0])
        if gain < (1.0 - GAIN) * volume(pieces[k][1]):
            break
        piece = pieces.pop(k)[0]
        pieces += [(part, _around(part)) for part in (piece[mask], piece[~mask])]
    return [fit for _, fit in pieces]


# -- one capsule ------------------------------------------------------------------------------------------------------


def _around(triangles: np.ndarray) -> Fit:
    return enclosing_capsule(triangles.reshape(-1, 3))


def _along(
    points: np.ndarray, radii: np.ndarray, axes: np.ndarray, few: np.ndarray | slice = slice(None)
) -> list[Fit]:
    """A small capsule along each unit vector; axes: shape (d, 3). Its centre line is that of the ``few`` outermost."""
    aside = np.stack([_across(axis) for axis in axes])
    flat = times(points, aside.transpose(0, 2, 1))
    centres = _centres(flat[:, few], radii[few])
    away = np.sqrt(((flat - centres[:, None]) ** 2).sum(axis=2))
    smallest = (away + radii).max(axis=1)
    height = times(axes, points.T)
    found: list[Fit] = []
    for k, axis in enumerate(axes):
        radius = np.array(WIDER)[:, None] * smallest[k]
        room = np.sqrt(np.maximum((radius - radii) ** 2 - away[k] ** 2, 0.0))
        low, high = (height[k] + room).min(axis=1), (height[k] - room).max(axis=1)
        low, high = np.where(low > high, (low + high) / 2, low), np.where(low > high, (low + high) / 2, high)
        origin = times(centres[k], aside[k])
        options = zip(low, high, radius[:, 0], strict=True)
        fits: list[Fit] = [(origin + a * axis, origin + b * axis, float(r)) for a, b, r in options]
        found.append(min(fits, key=volume))
    return found


def _principal(points: np.ndarray) -> np.ndarray:
    """Directions of a cloud of points as rows, the longest first."""
    centred = points - points.mean(axis=0)
    return linear.symmetric_eigen(times(centred.T, centred))[1].T[::-1]


def _across(axis: np.ndarray) -> np.ndarray:
    """Two unit vectors across a unit vector, as rows."""
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first /= length(first)
    return np.stack([first, np.cross(axis, first)])


def _centres(points: np.ndarray, radii: np.ndarray, rounds: int = 40) -> np.ndarray:
    """Centres (d, 2) of small circles around circles in planes; points: shape (d, k, 2).

    A centre moves towards the farthest circle by smaller and smaller steps (Bădoiu and Clarkson 2003).
    """
    rows = np.arange(len(points))
    centre = (points.min(axis=1) + points.max(axis=1)) / 2
    best, least = centre, np.full(len(points), np.inf)
    for k in range(1, rounds):
        x, y = (points - centre[:, None]).transpose(2, 0, 1)
        far = np.sqrt(x * x + y * y) + radii
        farthest = far.argmax(axis=1)
        size = far[rows, farthest]
        best = np.where((size < least)[:, None], centre, best)
        least = np.minimum(size, least)
        centre = centre + (points[rows, farthest] - centre) / (k + 1)
    return best


def _distance(point: np.ndarray, fit: Fit) -> float:
    start, end, _ = fit
    along = end - start
    square = float(times(along, along))
    part = min(max(float(times(point - start, along)) / square, 0.0), 1.0) if square > 0 else 0.0
    return length(point - start - part * along)


# -- pieces of a mesh -------------------------------------------------------------------------------------------------


def divided_edges(triangles: np.ndarray, longest: float | None = None) -> np.ndarray:
    """The same surface in triangles without long edges.

    Args:
        triangles: [m], shape (k, 3, 3).
        longest: [m], by default a part of the extent.
    """
    if longest is None:
        longest = LONGEST_EDGE * float(np.ptp(triangles.reshape(-1, 3), axis=0).max(initial=0.0))
    return np.ascontiguousarray(divided_rows(np.ascontiguousarray(triangles.T), longest).T)


def divided_rows(wide: np.ndarray, longest: float) -> np.ndarray:
    """``divided_edges`` of triangles (axes, corners, triangles), in the same layout: rows of numbers are long.

    Args:
        wide: [m], shape (3, 3, k).
        longest: [m].
    """
    short: list[np.ndarray] = []
    count = 0
    for _ in range(8):
        x, y, z = wide[:, [1, 2, 0]] - wide
        for each in (x, y, z):
            each *= each
        x += y
        x += z
        edges = np.sqrt(x, out=x)
        long = np.maximum(np.maximum(edges[0], edges[1]), edges[2]) > longest
        if not long.any() or count + wide.shape[2] > MOST_TRIANGLES:
            break
        short.append(wide[:, :, ~long])
        count += short[-1].shape[2]
        cut, first = wide[:, :, long], edges[:, long].argmax(axis=0)
        rows = np.arange(cut.shape[2])
        a, b, c = (cut[:, (first + k) % 3, rows] for k in range(3))
        middle = (a + b) / 2
        wide = np.empty((3, 3, 2 * len(rows)))
        wide[:, 0, : len(rows)], wide[:, 0, len(rows) :] = a, middle
        wide[:, 1, : len(rows)], wide[:, 1, len(rows) :] = middle, b
        wide[:, 2, : len(rows)], wide[:, 2, len(rows) :] = c, c
    return np.concatenate([*short, wide], axis=2)


def groups_of(points: np.ndarray, most: int) -> list[np.ndarray]:
    """Numbers of points in groups that lie beside each other.

    Args:
        points: shape (k, 3).
        most: points in a group.
    """
    groups, wide = [], [np.arange(len(points))]
    while wide:
        mine = wide.pop()
        if len(mine) <= most:
            groups.append(mine)
            continue
        axis = int(np.ptp(points[mine], axis=0).argmax())
        order = mine[np.argsort(points[mine, axis], kind="stable")]
        wide += [order[: len(order) // 2], order[len(order) // 2 :]]
    return groups


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Lengths of three vectors each, shape (3, k).

    Args:
        vectors: shape (k, 3, 3).
    """
    x, y, z = vectors.T
    return np.sqrt(x * x + y * y + z * z)


def _best_cut(triangles: np.ndarray, fit: Fit) -> tuple[float, np.ndarray] | None:
    """(saved volume, which triangles are on one side) of the best plane that divides a piece."""
    if fit[2] <= SMALL or len(triangles) < 4:
        return None
    centres = triangles.mean(axis=1)
    chosen = slice(None, None, max(1, len(triangles) // 400))
    cuts: list[tuple[float, np.ndarray]] = []
    for axis in _principal(centres):
        height = times(centres, axis)
        low, high = float(height.min()), float(height.max())
        for cut in low + _CUTS * (high - low):
            mask = height < cut
            parts = [triangles[chosen][side[chosen]] for side in (mask, ~mask)]
            if min(map(len, parts)) >= 2:
                cuts.append((sum(volume(_quick(part, axis)) for part in parts), mask))
    cuts.sort(key=lambda option: option[0])
    exact = [
        (volume(fit) - sum(volume(_around(triangles[side])) for side in (mask, ~mask)), mask)
        for _, mask in cuts[:_TRIED]
    ]
    return max(exact, key=lambda option: option[0], default=None)


def _quick(triangles: np.ndarray, axis: np.ndarray) -> Fit:
    """A capsule for comparing cuts: along or across the cut."""
    points = triangles.reshape(-1, 3)
    found: list[Fit] = []
    for way in (axis, _principal(points)[0]):
        aside = _across(way)
        flat, height = times(points, aside.T), times(points, way)
        middle = (flat.min(axis=0) + flat.max(axis=0)) / 2
        radius = float(np.sqrt(((flat - middle) ** 2).sum(axis=1)).max())
        low, high = float(height.min()) + 0.5 * radius, float(height.max()) - 0.5 * radius
        low, high = (low, high) if low < high else ((low + high) / 2,) * 2
        line = times(middle, aside)
        found.append((line + low * way, line + high * way, radius))
    return min(found, key=volume)
