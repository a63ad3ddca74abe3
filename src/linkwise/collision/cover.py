"""Spheres that cover the triangles of a body and reach beyond its surface by no more than a given excess.

Candidates are the largest spheres inside the solid that touch its surface from within (its medial axis): enlarged by
the excess they reach no farther beyond the surface. Of these the one that covers most triangles is taken, until all are
covered. What is inside is found on a grid: cells that cannot be reached from outside through cells without surface.
Surfaces inside a solid, as of screws and nested shells, do not make the spheres smaller.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwise.collision import fit

CELLS = 40  # of the grid along the longest edge of a part
MOST_TRIANGLES = 12_000  # of a body; corners of more are moved to a grid
FINEST = 120  # cells of this grid along the longest edge of a body
CHOSEN = 600  # triangles of a body by which spheres are chosen at first
PART_CHOSEN = 300  # of a part of a body
FINE_PIECE = 5e-3  # [m] longest edge of triangles of the file that are looked for near others
FINE_CHOSEN = 150  # of a small part
_FINE_SURFACE = 2500  # points of the surface near a small part, about
_ROUGH = 4e-3  # [m] depth of grooves and edges that do not make the spheres inside a part smaller
_LOCAL = 0.012  # [m] largest spheres inside where only what is near is looked at
_KEPT = 0.15  # part of the excess that is for triangles beside the chosen ones
_SPARE = 1.3  # times as many spheres are chosen at first; some are not needed once all are
_FURTHER = 1.5  # times as many spheres cover all triangles, at most, as the chosen ones need
_LARGER = 1.15  # factor of the excess where it needs too many spheres
_ADDED = 200  # triangles of those that are not covered yet by which further spheres are chosen
_FLAT = 1e-3  # sine of the angle below which points lie in the surface
BLOCK = 1 << 15  # numbers of a table that are computed at a time
_LANES = 32  # by which blocks are smaller where the place of a minimum is searched across their rows
_WIDE = 256  # columns from which on it is quicker to compare every row with the minimum
_SURFACE = 3000  # points by which spheres inside are bounded, at most
_AROUND = 1500  # points outside by which spheres inside are bounded where the surface does not do it, at most
_TOGETHER = 256  # spheres beside each other whose distances to others are computed together
_ROUNDING = 1e-6  # [m] of distances by which spheres are chosen; their radii are computed in double precision
_SOME = 16  # every so many points of a surface give bounds of distances to it
_AT_ONCE = 64  # points whose distances to a surface are computed at a time, those of the largest bounds first
_MEASURED = 2000  # triangles to which the excess is measured, at most
_SHOWN = 128  # points of a sphere's surface by which its excess is measured


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
        self._read = parts
        parts, self.grown = _with_fewer(parts, self.extent)
        self._boxes = [(part.min(axis=1), part.max(axis=1)) for part in self._read] if self.grown else []
        self.triangles = np.concatenate(
            [fit.divided_edges(part, max(self.extent / 24, 5e-3)) for part in parts]
        )
        self._own = _own(self.triangles)
        self.parts: dict[
            object, list[tuple[np.ndarray, np.ndarray]]
        ] = {}  # groups of parts, by the caller's key
        self._owners: dict[bytes, np.ndarray] = {}
        self._inside = _Inside(self.triangles, self._own[0])
        self._whole = self._candidates(_spread(self.triangles, CHOSEN, self._own[0]), 0.0)

    def count(self, excess: float) -> int:
        """Spheres that are needed for the chosen triangles.

        Args:
            excess: [m].
        """
        return len(self._whole.chosen(excess))

    def are_more(self, excess: float, most: int) -> bool:
        """Whether ``count`` is larger than ``most``.

        Args:
            excess: [m].
            most: number of spheres.
        """
        return self._whole.are_more(excess, most)

    def spheres(self, excess: float) -> Covering:
        """Spheres that contain all triangles.

        Args:
            excess: how far they reach beyond the surface [m], about; more where else very many are needed.
        """
        return self._within(self.triangles, self._whole, excess, int(_FURTHER * self.count(excess)) + 2)

    def owners(self, spheres: np.ndarray) -> np.ndarray:
        """In which of some spheres each of ``triangles`` is, or which it reaches beyond by the least.

        Args:
            spheres: centres and radii [m], shape (k, 4).
        """
        key = np.ascontiguousarray(spheres).tobytes()
        if key not in self._owners:
            self._owners[key] = nearest_spheres(self.triangles, spheres[:, :3], spheres[:, 3])[0]
        return self._owners[key]

    def part(self, triangles: np.ndarray, excess: float, most: int) -> Covering:
        """Spheres that contain some of the triangles.

        Args:
            triangles: some of ``triangles``.
            excess: how far they reach beyond the surface [m], about; more where else ``most`` are not enough.
            most: number of spheres.
        """
        return self._part(triangles, excess, most, self._inside, PART_CHOSEN)

    def finer(self, triangles: np.ndarray, excess: float, most: int) -> tuple[np.ndarray, Covering]:
        """``part`` for an excess of about a millimetre, by all of the surface that is near: the triangles in small
        pieces, and spheres that contain them.

        Args:
            triangles: some of ``triangles``.
            excess: how far they reach beyond the surface [m], about.
            most: number of spheres.
        """
        pieces = fit.divided_edges(self._read_near(triangles), 3.0 * excess)
        low, high = (edge(triangles.reshape(-1, 3), axis=0) for edge in (np.min, np.max))
        reach = 0.5 * float(fit.lengths(high - low)) + 2.0 * _LOCAL
        middle, around = self._own
        near = self.triangles[fit.lengths(middle - 0.5 * (low + high)) - around < reach]
        surface = _own(fit.divided_edges(near, 5.0 * excess))[0]
        surface = _spread(surface, _FINE_SURFACE, surface)
        found = self._part(pieces, excess, most, self._inside.near(surface, excess), FINE_CHOSEN)
        return pieces, replace(found, radius=found.radius - self.grown)

    def _read_near(self, triangles: np.ndarray) -> np.ndarray:
        """Triangles of the file some part of which was moved into the given ones."""
        if not self.grown:
            return triangles
        middle, around = _own(triangles)
        low, high = (edge(triangles.reshape(-1, 3), axis=0) for edge in (np.min, np.max))
        more = self.grown + FINE_PIECE
        found = [np.zeros((0, 3, 3))]
        for part, (lowest, highest) in zip(self._read, self._boxes, strict=True):
            beside = (highest >= low - more) & (lowest <= high + more)
            near = fit.divided_edges(part[beside.all(axis=1)], FINE_PIECE)
            found.append(near[_beside(*_own(near), middle, around, self.grown + 1e-5)])
        return np.concatenate(found)

    def _part(
        self, triangles: np.ndarray, excess: float, most: int, inside: _Inside, chosen: int
    ) -> Covering:
        few = _spread(triangles, chosen, _own(triangles)[0])
        return self._within(triangles, self._candidates(few, excess, inside), excess, most, inside)

    def _within(
        self,
        triangles: np.ndarray,
        candidates: _Candidates,
        excess: float,
        most: int,
        inside: _Inside | None = None,
    ) -> Covering:
        """At most so many spheres that contain the triangles, with a larger excess where that is needed."""
        while candidates.are_more(excess, most):
            excess *= _LARGER
        while isinstance(found := self._covering(triangles, candidates, excess, most, inside), int):
            excess *= max(_LARGER, found / (_LARGER * most))
        return Covering(found.centre, found.radius + self.grown, found.owner)

    def _covering(
        self,
        triangles: np.ndarray,
        candidates: _Candidates,
        excess: float,
        most: int,
        inside: _Inside | None,
    ) -> Covering | int:
        """Spheres that contain all triangles; where ``most`` are not enough, how many were chosen. To spheres for some
        of the triangles further ones are added for those that they leave out; then those that others make superfluous
        are dropped."""
        middle, around = self._own if triangles is self.triangles else _own(triangles)
        left, owner = np.arange(len(triangles)), np.zeros(len(triangles), int)
        centre, radius, few = np.zeros((0, 3)), np.zeros(0), candidates.few[:0]
        while len(left):
            chosen = candidates.chosen(excess)
            added, reach = candidates.centre[chosen], candidates.reach(excess)[chosen]
            first = len(centre)
            centre, radius = np.concatenate([centre, added]), np.append(radius, reach)
            few = np.concatenate([few, candidates.few])
            if len(centre) > _SPARE * most:
                return len(centre)
            nearest, beyond = nearest_spheres(middle[left, None], added, reach, around[left])
            unsure = np.flatnonzero(beyond > 0.0)
            nearest[unsure], beyond[unsure] = nearest_spheres(triangles[left[unsure]], added, reach)
            owner[left] = first + nearest
            left = left[beyond > _KEPT * excess]
            candidates = self._candidates(triangles[left[:: max(1, len(left) // _ADDED)]], excess, inside)
        kept = _chosen(corner_distances(few, centre) <= radius + _KEPT * excess)
        rest = np.flatnonzero(~_mask(kept, len(centre))[owner])
        nearest, beyond = nearest_spheres(triangles[rest], centre[kept], radius[kept])
        covered = beyond <= _KEPT * excess
        owner[rest[covered]] = kept[nearest[covered]]
        used = _mask(owner, len(centre))
        if used.sum() > most:
            return int(used.sum())
        centre, owner, size = centre[used], (np.cumsum(used) - 1)[owner], np.zeros(int(used.sum()))
        np.maximum.at(size, owner, fit.lengths(triangles - centre[owner][:, None]).max(axis=0))
        return Covering(centre, size, owner)

    def _candidates(self, few: np.ndarray, excess: float, solid: _Inside | None = None) -> _Candidates:
        """What spheres of at least this excess [m] are chosen of. A sphere about the middle of a triangle that is no
        larger than the excess lies in the one that touches the surface there."""
        shown, place, inside = (solid or self._inside).spheres(few)
        middle, around = _own(few)
        alone = ~shown | (around > (1.0 - _KEPT) * excess)
        centre = np.concatenate([place, middle[alone]])
        radius = np.concatenate([inside, np.zeros(int(alone.sum()))])
        least = np.concatenate([np.zeros(len(inside)), around[alone]])
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


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Triangles by which spheres are chosen; spheres inside that touch them, and spheres about their middles, so that
    each is covered by one: centres, radii inside the solid, least radii; distances of the triangles' farthest corners
    to the centres."""

    few: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    least: np.ndarray
    far: np.ndarray
    known: dict[float, np.ndarray] = field(
        default_factory=dict[float, np.ndarray]
    )  # chosen before, by excess

    def reach(self, excess: float) -> np.ndarray:
        """Radii of spheres that reach less far beyond the surface than the excess [m], or as little as they can."""
        return (np.maximum(self.radius + (1.0 - _KEPT) * excess, self.least) + _ROUNDING).astype(np.float32)

    def chosen(self, excess: float) -> np.ndarray:
        """Numbers of few spheres that cover the triangles."""
        if excess not in self.known:
            self.known[excess] = _chosen(self.far <= self.reach(excess))
        return self.known[excess]

    def are_more(self, excess: float, most: int) -> bool:
        """Whether more spheres than ``most`` would be chosen."""
        chosen = self.known.get(excess)
        if chosen is None:
            chosen = _at_most(self.far <= self.reach(excess), most)
            if chosen is not None:
                self.known[excess] = chosen
        return chosen is None or len(chosen) > most


def _beside(
    place: np.ndarray, size: np.ndarray, middle: np.ndarray, around: np.ndarray, within: float
) -> np.ndarray:
    """Which spheres (k,) are at most so far [m] from one of others; those beside each other are looked at together,
    with the others that are near."""
    found = np.zeros(len(place), bool)
    farthest = within + float(around.max(initial=0.0)) + float(size.max(initial=0.0)) + _ROUNDING
    for mine in fit.groups_of(place, _TOGETHER) if len(place) else ():
        some = place[mine]
        low, high = some.min(axis=0) - farthest, some.max(axis=0) + farthest
        near = np.flatnonzero(((middle >= low) & (middle <= high)).all(axis=1))
        if len(near):
            away = _farthest(
                some.T[:, None, None].astype(np.float32), middle[near].T[:, :, None].astype(np.float32)
            )
            away -= around[near, None].astype(np.float32)
            found[mine] = away.min(axis=0) - size[mine] <= within
    return found


def _mask(numbers: np.ndarray, count: int) -> np.ndarray:
    """Which of so many are among the numbers."""
    found = np.zeros(count, bool)
    found[numbers] = True
    return found


def _chosen(covers: np.ndarray) -> np.ndarray:
    """Numbers of candidates that together cover what any covers; covers: (triangles, candidates)."""
    found = _at_most(covers, len(covers))
    assert found is not None
    return found


def _at_most(covers: np.ndarray, most: int) -> np.ndarray | None:
    """``_chosen``; None as soon as it is known that they are more than ``most``: none that follows covers more than the
    one before."""
    left = np.asarray(covers.any(axis=1))
    count = int(left.sum())
    gain = covers.sum(axis=0, dtype=np.int32)
    chosen: list[int] = []
    while count:
        best = int(gain.argmax())
        if len(chosen) * int(gain[best]) + count > most * int(gain[best]):
            return None
        chosen.append(best)
        new = (covers[:, best] & left).nonzero()[0]
        gain -= np.add.reduce(covers[new], axis=0, dtype=np.int32)
        left[new] = False
        count -= len(new)
    return np.array(chosen, dtype=int)


def _spread(triangles: np.ndarray, count: int, middle: np.ndarray) -> np.ndarray:
    """About so many of the triangles with these middles, in different places: one in each cell of a grid. Every so many
    of them would not be in different places: triangles that were divided follow each other in an order of their own."""
    if len(triangles) <= count:
        return triangles
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
    rows = np.ascontiguousarray(triangles.T)  # (axes, corners, triangles)
    middle = (rows[:, 0] + rows[:, 1] + rows[:, 2]) / 3.0
    rows -= middle[:, None]
    rows *= rows
    square = rows[0]
    square += rows[1]
    square += rows[2]
    around = np.sqrt(np.maximum(np.maximum(square[0], square[1]), square[2]))
    return np.ascontiguousarray(middle.T), around


class _Inside:
    """The solid that triangles enclose: where its surface is, and spheres inside."""

    def __init__(self, triangles: np.ndarray, middle: np.ndarray):
        self._outside, self._low, self._cell, self._extent = _outside(np.ascontiguousarray(triangles.T))
        point, _, sides = self._seen(triangles, middle)
        surface = point[sides.any(axis=0)]
        around = _around(self._outside, self._low, self._cell)
        self._surface = np.concatenate(
            [_spread(surface, _SURFACE, surface), _spread(around, _AROUND, around)]
        )
        self._rough, self._largest = _ROUGH, 0.5 * self._extent

    def near(self, surface: np.ndarray, rough: float) -> _Inside:
        """The same with points of the surface that are near some place.

        Args:
            surface: these points [m], shape (k, 3).
            rough: depth [m] of grooves that do not make spheres smaller.
        """
        found = copy(self)
        found._surface, found._rough, found._largest = surface, rough, min(self._largest, _LOCAL)
        return found

    def _is_outside(self, points: np.ndarray) -> np.ndarray:
        """Whether points (3, k) lie in cells that can be reached from outside."""
        places = [
            np.clip(((row - low) / self._cell).astype(int), 0, size - 1)
            for row, low, size in zip(points, self._low, self._outside.shape, strict=True)
        ]
        return self._outside[places[0], places[1], places[2]]

    def _seen(self, triangles: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Middles, outward normals, and which sides can be reached from outside (2, k)."""
        rows, point = np.ascontiguousarray(triangles.T), np.ascontiguousarray(middle.T)
        a, b = rows[:, 1] - rows[:, 0], rows[:, 2] - rows[:, 0]
        normal = np.array([a[i] * b[k] - a[k] * b[i] for i, k in ((1, 2), (2, 0), (0, 1))])
        size = np.sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2])
        normal /= np.maximum(size, 1e-300)
        sides = np.array([self._is_outside(point + side * 1.8 * self._cell * normal) for side in (1.0, -1.0)])
        normal = np.where(sides[1] & ~sides[0], -normal, normal)
        return middle, normal.T, sides & (size > 0.0)

    def spheres(self, few: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The largest spheres inside that touch the surface at the middles of triangles: of which triangles, their
        centres and radii."""
        point, normal, sides = self._seen(few, _own(few)[0])
        shown = sides[0] != sides[1]
        point, inward = point[shown], -normal[shown]
        others, place, way = (each.astype(np.float32, order="C") for each in (self._surface.T, point, inward))
        radius = np.full(len(point), self._largest)
        for rows in blocks(len(point), len(self._surface)):
            along, square = np.zeros((2, len(place[rows]), len(self._surface)), np.float32)
            for axis in range(3):
                away = others[axis] - place[rows, axis, None]
                along += away * way[rows, axis, None]
                away *= away
                square += away
            beside = (along <= self._rough) | (along * along <= _FLAT * _FLAT * square)
            with np.errstate(divide="ignore", invalid="ignore"):
                square /= along
            square[beside] = np.inf
            radius[rows] = np.minimum(radius[rows], 0.5 * square.min(axis=1, initial=np.inf))
        return shown, point + radius[:, None] * inward, radius


def _outside(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Which cells of a grid around triangles (axes, corners, triangles) can be reached from its border, its lowest
    corner, the edge of a cell, and the longest edge of the box around the triangles."""
    least, most = (edge(rows.reshape(3, -1), axis=1) for edge in (np.min, np.max))
    extent = float((most - least).max())
    cell = extent / CELLS + 1e-9
    low = least - 3.5 * cell
    shape = tuple(((most - low) / cell).astype(int) + 5)
    surface = np.zeros(shape, bool)
    small = fit.divided_rows(rows, 0.9 * cell)
    a, b, c = (small[:, k] for k in range(3))
    for points in (a, b, c, (a + c) / 2, (b + a) / 2, (c + b) / 2, (a + b + c) / 3):
        x, y, z = ((each - start) / cell for each, start in zip(points, low, strict=True))
        surface[x.astype(int), y.astype(int), z.astype(int)] = True
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
            return reached, low, cell, extent


def _around(outside: np.ndarray, low: np.ndarray, cell: float) -> np.ndarray:
    """Points (k, 3) outside, a cell or two away from the solid: middles of cells that are outside with all around them,
    beside one that is not so."""
    free = _eroded(outside)
    places = np.argwhere(free & ~_eroded(free))
    return low + cell * (places + 0.5)


def _eroded(cells: np.ndarray) -> np.ndarray:
    """Cells with all of their neighbours, diagonal ones included; beyond the border all are."""
    found = cells.copy()
    for axis in range(3):
        line, before = np.moveaxis(found, axis, 0), np.moveaxis(found, axis, 0).copy()
        line[1:] &= before[:-1]
        line[:-1] &= before[1:]
    return found


def _sweep(reached: np.ndarray, free: np.ndarray, axis: int, way: int) -> None:
    """Reach further cells along one axis."""
    cells, open_ones = np.moveaxis(reached, axis, 0)[::way], np.moveaxis(free, axis, 0)[::way]
    for k in range(1, len(cells)):
        cells[k] |= cells[k - 1] & open_ones[k]


def nearest_spheres(
    corners: np.ndarray, centres: np.ndarray, radii: np.ndarray, around: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Which sphere the corners of each triangle reach beyond by the least, and how far [m], in single precision; below
    0 where they are inside.

    Args:
        corners: of each triangle, or points [m], shape (k, corners, 3).
        centres: of the spheres [m], shape (m, 3).
        radii: of the spheres [m], shape (m,).
        around: radii of spheres around the points [m], shape (k,).
    """
    places, points = (each.T.astype(np.float32, order="C") for each in (corners, centres))
    number, beyond = np.zeros(len(corners), int), np.full(len(corners), np.inf, np.float32)
    sizes = radii.astype(np.float32)
    wide = len(corners) >= _WIDE
    for some in blocks(len(centres), len(corners) if wide else _LANES * len(corners)):
        gaps = _farthest(places[:, :, None], points[:, some, None])
        gaps -= sizes[some, None]
        least = gaps.min(axis=0)
        better = least < beyond
        if wide:
            for k in reversed(range(len(gaps))):
                np.copyto(number, some.start + k, where=better & (gaps[k] == least))
        else:
            np.copyto(number, some.start + gaps.argmin(axis=0), where=better)
        np.minimum(beyond, least, out=beyond)
    return number, beyond + np.float32(around)


def corner_distances(corners: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Distance [m] of the farthest corner of each triangle to each centre in single precision, (triangles, centres).

    Args:
        corners: of each triangle [m], shape (k, corners, 3).
        centres: [m], shape (m, 3).
    """
    places, points = (each.T.astype(np.float32, order="C") for each in (corners, centres))
    found = np.zeros((len(corners), len(centres)), np.float32)
    for rows in blocks(*found.shape):
        found[rows] = _farthest(places[:, :, rows, None], points)
    return found


def _farthest(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distances of points (3, ...) to the farthest of corners (3, corners, ...), broadcast together."""
    far: Any = None
    for corner in range(corners.shape[1]):
        square = corners[0, corner] - points[0]
        square *= square
        for axis in (1, 2):
            away = corners[axis, corner] - points[axis]
            away *= away
            square += away
        far = square if far is None else np.maximum(far, square, out=far)
    return np.sqrt(far, out=far)


def blocks(rows: int, width: int) -> list[slice]:
    """Rows of a large table in blocks that stay in the caches.

    Args:
        rows: of the table.
        width: numbers in a row.
    """
    step = max(1, BLOCK // max(1, width))
    return [slice(start, start + step) for start in range(0, rows, step)]


def excess_of(centre: np.ndarray, radius: np.ndarray, triangles: np.ndarray, least: float = 0.0) -> float:
    """Largest distance [m] of points on the outside of the spheres to corners and centres of the triangles.

    Args:
        centre: of the spheres [m], shape (k, 3).
        radius: [m], shape (k,).
        triangles: [m], shape (m, 3, 3).
        least: [m] the result is at least this; smaller distances are not looked at.
    """
    k = np.arange(_SHOWN) + 0.5
    height, turn = 1.0 - 2.0 * k / _SHOWN, np.pi * (1.0 + 5.0**0.5) * k
    width = np.sqrt(1.0 - height * height)
    directions = np.stack([width * np.cos(turn), width * np.sin(turn), height], axis=-1)
    points = (centre[:, None] + radius[:, None, None] * directions).reshape(-1, 3)
    outside = points[nearest_spheres(points[:, None], centre, radius)[1] >= -_ROUNDING]
    if not len(outside) or not len(triangles):
        return least
    known = _spread(triangles, _MEASURED, _own(triangles)[0])
    surface = np.concatenate([known.reshape(-1, 3), known.mean(axis=1)])
    some = surface[::_SOME]
    most = nearest_spheres(outside[:, None], some, np.zeros(len(some)))[1]  # no distance is larger
    for rows in np.array_split(np.argsort(-most, kind="stable"), -(-len(most) // _AT_ONCE)):
        if most[rows[0]] <= least:
            break
        least = max(
            least, float(nearest_spheres(outside[rows, None], surface, np.zeros(len(surface)))[1].max())
        )
    return least
