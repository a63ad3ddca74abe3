"""Spheres that cover the triangles of a body and reach beyond its surface by no more than a given excess.

Candidates are the largest spheres inside the solid that touch its surface from within (its medial axis): enlarged by
the excess they reach no farther beyond the surface. Of these the one that covers most triangles is taken, until all are
covered. What is inside is found on a grid: cells that cannot be reached from outside through cells without surface.
Surfaces inside a solid, as of screws and nested shells, do not make the spheres smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkwise.collision import fit

CELLS = 40  # of the grid along the longest edge of a part
MOST_TRIANGLES = 12_000  # of a body; corners of more are moved to a grid
FINEST = 120  # cells of this grid along the longest edge of a body
CHOSEN = 700  # triangles of a body by which spheres are chosen at first
_ROUGH = 4e-3  # [m] depth of grooves and edges that do not make the spheres inside a part smaller
_ROUNDS = 8  # in which triangles that are not covered yet are added to the chosen ones
_KEPT = 0.15  # part of the excess that is for triangles beside the chosen ones
_LARGER = 1.15  # factor of the excess where it needs too many spheres
_ADDED = 400  # of them in a round
_SURFACE = 1500  # points by which spheres inside are bounded
_ROUNDING = 1e-6  # [m] of distances by which spheres are chosen; their radii are computed in double precision
_SHOWN = 48  # points of a sphere's surface by which its excess is measured


@dataclass(frozen=True)
class Covering:
    """Spheres and which triangle is in which: centres (k, 3), radii (k,), and for each triangle the number of a sphere
    that contains it."""

    centre: np.ndarray
    radius: np.ndarray
    owner: np.ndarray


class Cover:
    """Coverings of the triangles of one body.

    Args:
        parts: triangles (k, 3, 3) of each of its meshes [m].
    """

    def __init__(self, parts: list[np.ndarray]):
        corners = np.concatenate([part.reshape(-1, 3) for part in parts])
        self.extent = float(np.ptp(corners, axis=0).max(initial=0.0)) + 1e-6
        parts, self.grown = _with_fewer(parts, self.extent)
        self.triangles = np.concatenate(
            [fit.divided_edges(part, max(self.extent / 24, 5e-3)) for part in parts]
        )
        self._inside = _Inside(self.triangles)
        self._whole = self._candidates(_spread(self.triangles, CHOSEN))

    def count(self, excess: float) -> int:
        """Spheres that are needed for the chosen triangles.

        Args:
            excess: [m].
        """
        return len(self._whole.chosen(excess))

    def spheres(self, excess: float) -> Covering:
        """Spheres that contain all triangles.

        Args:
            excess: how far they reach beyond the surface [m], about.
        """
        found = self._covering(self.triangles, self._whole, excess, len(self.triangles))[0]
        assert found is not None
        return self._enlarged(found)

    def _enlarged(self, found: Covering) -> Covering:
        return Covering(found.centre, found.radius + self.grown, found.owner)

    def part(self, triangles: np.ndarray, excess: float, most: int) -> Covering:
        """Spheres that contain some of the triangles.

        Args:
            triangles: some of ``triangles``.
            excess: how far they reach beyond the surface [m], about; more where else ``most`` are not enough.
            most: number of spheres.
        """
        candidates = self._candidates(_spread(triangles, CHOSEN))
        while len(candidates.chosen(excess)) > most:
            excess *= _LARGER
        while True:
            found, candidates = self._covering(triangles, candidates, excess, most)
            if found is not None:
                return self._enlarged(found)
            excess *= _LARGER

    def _covering(
        self, triangles: np.ndarray, candidates: _Candidates, excess: float, most: int
    ) -> tuple[Covering | None, _Candidates]:
        """Spheres that contain all triangles, None where ``most`` are not enough, and what they were chosen of:
        triangles that a choice leaves out are added to what it is made by."""
        owner, chosen = np.zeros(0, int), np.zeros(0, int)
        middle, around = (each.astype(np.float32) for each in _own(triangles))
        for _ in range(_ROUNDS):
            reach, chosen = candidates.reach(excess), candidates.chosen(excess)
            if len(chosen) > most:
                return None, candidates
            beyond = _distances(middle, candidates.centre[chosen])
            beyond += around[:, None] - reach[chosen]
            owner = beyond.argmin(axis=1)
            unsure = np.flatnonzero(beyond[np.arange(len(owner)), owner] > 0.0)
            beyond = corner_distances(triangles[unsure], candidates.centre[chosen]) - reach[chosen]
            owner[unsure] = beyond.argmin(axis=1)
            lacking = unsure[beyond.min(axis=1, initial=np.inf) > _KEPT * excess]
            if not len(lacking):
                break
            more = self._candidates(triangles[lacking[:: max(1, len(lacking) // _ADDED)]])
            candidates = candidates.with_further(more)
        used, owner = np.unique(owner, return_inverse=True)
        centre = candidates.centre[chosen][used]
        size = np.zeros(len(used))
        reach = np.sqrt(((triangles - centre[owner][:, None]) ** 2).sum(axis=-1)).max(axis=1)
        np.maximum.at(size, owner, reach)
        return Covering(centre, size, owner), candidates

    def _candidates(self, few: np.ndarray) -> _Candidates:
        inside, own = self._inside.spheres(few), _own(few)
        centre = np.concatenate([inside[0], own[0]])
        radius = np.concatenate([inside[1], np.zeros(len(few))])
        least = np.concatenate([np.zeros(len(inside[1])), own[1]])
        return _Candidates(few, centre, radius, least, corner_distances(few, centre))


def _with_fewer(parts: list[np.ndarray], extent: float) -> tuple[list[np.ndarray], float]:
    """Fewer triangles where a body has very many: corners are moved to the points of a grid. And by how much they are
    moved at most [m]: no point of a triangle is moved by more."""
    if sum(map(len, parts)) <= MOST_TRIANGLES:
        return parts, 0.0
    cell = max(extent / FINEST, 2e-3)
    found: list[np.ndarray] = []
    largest = 0.0
    for part in parts:
        low = part.reshape(-1, 3).min(axis=0)
        place = np.rint((part - low) / cell).astype(np.int64)
        moved = low + cell * place - part
        largest = max(largest, float((moved * moved).sum(axis=-1).max()))
        number = np.sort((place[..., 0] * 2048 + place[..., 1]) * 2048 + place[..., 2], axis=1)
        order = np.lexsort((number[:, 2], number[:, 1], number[:, 0]))
        first = np.append(True, (np.diff(number[order], axis=0) != 0).any(axis=1))
        found.append(low + cell * place[order[first]])
    return found, float(np.sqrt(largest))


class _Candidates(NamedTuple):
    """Triangles by which spheres are chosen; spheres inside that touch them, and spheres about their middles, so that
    each is covered by one: centres, radii inside the solid, least radii; distances of the triangles' farthest corners
    to the centres."""

    few: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    least: np.ndarray
    far: np.ndarray

    def reach(self, excess: float) -> np.ndarray:
        """Radii of spheres that reach less far beyond the surface than the excess [m], or as little as they can."""
        return (np.maximum(self.radius + (1.0 - _KEPT) * excess, self.least) + _ROUNDING).astype(np.float32)

    def chosen(self, excess: float) -> np.ndarray:
        """Numbers of few spheres that cover the triangles."""
        return _chosen(self.far <= self.reach(excess))

    def with_further(self, more: _Candidates) -> _Candidates:
        """These and others."""
        few = np.concatenate([self.few, more.few])
        above = np.vstack([self.far, corner_distances(more.few, self.centre)])
        far = np.hstack([above, np.vstack([corner_distances(self.few, more.centre), more.far])])
        centre = np.concatenate([self.centre, more.centre])
        radius = np.concatenate([self.radius, more.radius])
        return _Candidates(few, centre, radius, np.concatenate([self.least, more.least]), far)


def _chosen(covers: np.ndarray) -> np.ndarray:
    """Numbers of candidates that together cover what any covers; covers: (triangles, candidates)."""
    covers = covers[covers.any(axis=1)]
    gain = covers.sum(axis=0, dtype=np.int32)
    chosen: list[int] = []
    while len(covers):
        best = int(gain.argmax())
        chosen.append(best)
        new = covers[:, best]
        gain -= covers[new].sum(axis=0, dtype=np.int32)
        covers = covers[~new]
    return np.array(chosen, dtype=int)


def _spread(triangles: np.ndarray, count: int) -> np.ndarray:
    """About so many of the triangles, in different places: one in each cell of a grid."""
    if len(triangles) <= count:
        return triangles
    middle = triangles.mean(axis=1)
    low, size = middle.min(axis=0), float(np.ptp(middle, axis=0).max()) + 1e-9
    kept = np.arange(len(triangles))
    for cells in (48, 36, 28, 22, 17, 13, 10, 8, 6, 4):
        place = ((middle - low) / size * cells).astype(int)
        first = np.full(cells**3, -1)
        first[((place[:, 0] * cells + place[:, 1]) * cells + place[:, 2])[::-1]] = np.arange(len(place))[::-1]
        kept = first[first >= 0]
        if len(kept) <= count:
            break
    return triangles[kept]


def _own(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Spheres about the middles of triangles, through their farthest corners: centres and radii."""
    middle = triangles.mean(axis=1)
    away = triangles - middle[:, None]
    return middle, np.sqrt((away * away).sum(axis=-1)).max(axis=1)


class _Inside:
    """The solid that triangles enclose: where its surface is, and spheres inside."""

    def __init__(self, triangles: np.ndarray):
        self._outside, self._low, self._cell = _outside(triangles)
        self._extent = float(np.ptp(triangles.reshape(-1, 3), axis=0).max(initial=0.0))
        point, _, sides = self._seen(triangles)
        surface = point[sides.any(axis=0)]
        self._surface = surface[:: max(1, len(surface) // _SURFACE)]

    def _is_outside(self, points: np.ndarray) -> np.ndarray:
        place = np.clip(((points - self._low) / self._cell).astype(int), 0, np.array(self._outside.shape) - 1)
        return self._outside[place[..., 0], place[..., 1], place[..., 2]]

    def _seen(self, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Middles, outward normals, and which sides can be reached from outside (2, k)."""
        point = triangles.mean(axis=1)
        normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        size = np.sqrt((normal * normal).sum(axis=1))
        normal = normal / np.maximum(size, 1e-300)[:, None]
        sides = np.array([self._is_outside(point + side * 1.8 * self._cell * normal) for side in (1.0, -1.0)])
        normal = np.where((sides[1] & ~sides[0])[:, None], -normal, normal)
        return point, normal, sides & (size > 0.0)

    def spheres(self, few: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest spheres inside that touch the surface at the middles of triangles: centres and radii."""
        point, normal, sides = self._seen(few)
        shown = sides[0] != sides[1]
        point, inward = point[shown], -normal[shown]
        others, place, along_way = (each.astype(np.float32) for each in (self._surface, point, inward))
        along, square = np.zeros((2, len(point), len(others)), np.float32)
        for axis in range(3):
            away = others[:, axis] - place[:, axis, None]
            along += away * along_way[:, axis, None]
            square += away * away
        inside = along > np.maximum(_ROUGH, 1e-3 * np.sqrt(square))
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = np.where(inside, square / (2.0 * along), np.inf).min(axis=1, initial=np.inf)
        radius = np.minimum(radius.astype(float), 0.5 * self._extent)
        return point + radius[:, None] * inward, radius


def _outside(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Which cells of a grid around a part can be reached from its border, its lowest corner, and the edge of a cell."""
    corners = triangles.reshape(-1, 3)
    extent = float(np.ptp(corners, axis=0).max(initial=0.0))
    cell = extent / CELLS + 1e-9
    low = corners.min(axis=0) - 1.5 * cell
    shape = tuple(((corners.max(axis=0) - low) / cell).astype(int) + 3)
    surface = np.zeros(shape, bool)
    small = fit.divided_edges(triangles, 0.9 * cell)
    middles = (small + np.roll(small, 1, axis=1)) / 2
    for points in (small.reshape(-1, 3), middles.reshape(-1, 3), small.mean(axis=1)):
        place = ((points - low) / cell).astype(int)
        surface[place[:, 0], place[:, 1], place[:, 2]] = True
    free = ~surface
    reached = np.zeros(shape, bool)
    for axis in range(3):
        border = [slice(None)] * 3
        for end in (0, -1):
            border[axis] = end  # type: ignore[call-overload]
            reached[tuple(border)] = free[tuple(border)]
    while True:
        before = int(reached.sum())
        for axis in range(3):
            for way in (1, -1):
                _sweep(reached, free, axis, way)
        if int(reached.sum()) == before:
            return reached, low, cell


def _sweep(reached: np.ndarray, free: np.ndarray, axis: int, way: int) -> None:
    """Reach further cells along one axis."""
    cells, open_ones = np.moveaxis(reached, axis, 0)[::way], np.moveaxis(free, axis, 0)[::way]
    for k in range(1, len(cells)):
        cells[k] |= cells[k - 1] & open_ones[k]


def corner_distances(triangles: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Distance of the farthest corner of each triangle to each centre in single precision, (triangles, centres).

    Args:
        triangles: [m], shape (k, 3, 3).
        centres: [m], shape (m, 3).
    """
    corners, points = triangles.astype(np.float32), centres.astype(np.float32)
    found = np.zeros((len(triangles), len(centres)), np.float32)
    for corner in range(3):
        square = np.zeros_like(found)
        for axis in range(3):
            away = corners[:, corner, axis, None] - points[:, axis]
            away *= away
            square += away
        np.maximum(found, square, out=found)
    return np.sqrt(found, out=found)


def _distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Distances of points to centres in single precision, (points, centres)."""
    ends = points.astype(np.float32), centres.astype(np.float32)
    square = np.zeros((len(points), len(centres)), np.float32)
    for axis in range(3):
        away = ends[0][:, axis, None] - ends[1][:, axis]
        away *= away
        square += away
    return np.sqrt(square, out=square)


def excess_of(centre: np.ndarray, radius: np.ndarray, triangles: np.ndarray) -> float:
    """Largest distance [m] of points on the outside of the spheres to corners and centres of the triangles.

    Args:
        centre: of the spheres [m], shape (k, 3).
        radius: [m], shape (k,).
        triangles: [m], shape (m, 3, 3).
    """
    k = np.arange(_SHOWN) + 0.5
    height, turn = 1.0 - 2.0 * k / _SHOWN, np.pi * (1.0 + 5.0**0.5) * k
    width = np.sqrt(1.0 - height * height)
    directions = np.stack([width * np.cos(turn), width * np.sin(turn), height], axis=-1)
    points = (centre[:, None] + radius[:, None, None] * directions).reshape(-1, 3)
    apart = np.sqrt(((points[:, None] - centre) ** 2).sum(axis=-1))
    outside = points[(apart >= radius - 1e-9).all(axis=1)]
    known = triangles[:: max(1, len(triangles) // 600)]
    surface = np.concatenate([known.reshape(-1, 3), known.mean(axis=1)])
    if not len(outside) or not len(surface):
        return 0.0
    least = [
        np.sqrt(((part[:, None] - surface) ** 2).sum(axis=-1)).min(axis=1)
        for part in np.array_split(outside, 1 + len(outside) // 200)
    ]
    return float(np.concatenate(least).max())
