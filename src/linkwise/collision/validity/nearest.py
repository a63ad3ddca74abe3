"""The nearest comparison of each configuration, on arrays: which spheres, how far, in which direction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from linkwise.algorithms.contact.distance import box_direction
from linkwise.collision.validity import solids
from linkwise.collision.validity.nests import BEYOND, Checked
from linkwise.collision.world import COLUMNS, World
from linkwise.geometry.skeleton import BASE


class Nearest(NamedTuple):
    """For each state: the smallest distance [m]; the bodies and points in their axes [m], (states, 4) with a last 1,
    between which it is, the second point (0, 0, 0, 0) for an obstacle; and the unit vector along which the distance
    grows when the first moves, (states, 3)."""

    distance: np.ndarray
    bodies: tuple[np.ndarray, np.ndarray]
    points: tuple[np.ndarray, np.ndarray]
    normal: np.ndarray


def nearest(checked: Checked, poses: np.ndarray, world: World) -> Nearest:
    """The nearest comparison of each state.

    Args:
        checked: what is compared.
        poses: of all bodies, the base last, shape (states, bodies + 1, 3, 4).
        world: the obstacles.
    """
    return _Search(checked, poses).found(world)


class _Search:
    """What is nearest so far."""

    def __init__(self, checked: Checked, poses: np.ndarray):
        self.checked, self.poses, self.states = checked, poses, len(poses)
        self.centres = self._placed(checked.spheres.body, checked.spheres.centre)
        self.best = np.full(self.states, BEYOND)
        self.bodies = (np.zeros(self.states, int), np.zeros(self.states, int))
        self.points = (np.zeros((self.states, 4)), np.zeros((self.states, 4)))
        self.normal = np.zeros((self.states, 3))

    def _placed(self, body: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """In base axes, (states, spheres, 3)."""
        points = np.concatenate([centre, np.ones((len(centre), 1))], axis=1)
        return (self.poses[:, body] * points[:, None]).sum(axis=-1)

    def _take(self, rows: np.ndarray, distance: np.ndarray, ends: list[Any], way: np.ndarray) -> None:
        """Use what is nearer than before; ends: (body, points in its axes), the second may be missing."""
        better = distance < self.best[rows]
        mine = rows[better]
        self.best[mine] = distance[better]
        size = np.sqrt((way * way).sum(axis=1, keepdims=True))
        self.normal[mine] = (way / np.maximum(size, 1e-12))[better]
        for k in range(2):
            self.points[k][mine] = 0.0
            if k < len(ends):
                self.bodies[k][mine] = np.broadcast_to(ends[k][0], len(rows))[better]
                self.points[k][mine, :3] = np.broadcast_to(ends[k][1], (len(rows), 3))[better]
                self.points[k][mine, 3] = 1.0

    def found(self, world: World) -> Nearest:
        spheres, rows = self.checked.spheres, np.arange(self.states)
        moving = np.flatnonzero(spheres.body != BASE)
        for kind in COLUMNS:
            for row in world.solids[kind].tolist():
                x = tuple(np.moveaxis(self.centres[:, moving], -1, 0))
                gaps = solids.distance(kind, row, x, spheres.radius[moving])
                place = gaps.argmin(axis=1)
                number = moving[place]
                way = _direction(kind, row, self.centres[rows, number])
                self._take(rows, gaps[rows, place], [(spheres.body[number], spheres.centre[number])], way)
        for pairs in self.checked.pairs.compared.values():
            for first, second in pairs.tolist():
                self._pair(first, second)
        return Nearest(self.best, self.bodies, self.points, self.normal)

    def _pair(self, first: int, second: int) -> None:
        spheres, small = self.checked.spheres, self.checked.small
        way = self.centres[:, first] - self.centres[:, second]
        gap = np.sqrt((way * way).sum(axis=-1)) - spheres.radius[first] - spheres.radius[second]
        rows = np.flatnonzero(gap < self.best)
        ends = [(spheres.body[k], spheres.centre[k]) for k in (first, second)]
        if not small or not (self.checked.pairs.of(first) or self.checked.pairs.of(second)):
            self._take(rows, gap[rows], ends, way[rows])
        elif len(rows):
            self._small_ones(rows, (first, second), gap[rows], way[rows])

    def _small_ones(
        self, rows: np.ndarray, numbers: tuple[int, int], gap: np.ndarray, way: np.ndarray
    ) -> None:
        """As the programs: the largest distance of spheres, groups and small spheres around the same parts."""
        spheres, small = self.checked.spheres, self.checked.small
        one, two = (int(spheres.body[k]) for k in numbers)
        top = np.append(spheres.centre[numbers[1]], spheres.radius[numbers[1]])
        for mine, start, stop in small.runs(*numbers):
            outer = self._between(rows, (one, small.groups[mine]), (two, top), (gap, way, [numbers]))
            for other in range(start, stop):
                groups = self._between(rows, (one, small.groups[mine]), (two, small.groups[other]), outer)
                if not (groups[0] < self.best[rows]).any():
                    continue
                for a in small.rows[small.starts[mine] : small.starts[mine + 1]]:
                    part = self._between(rows, (one, a), (two, small.groups[other]), groups)
                    for b in small.rows[small.starts[other] : small.starts[other + 1]]:
                        distance, along, ends = self._between(rows, (one, a), (two, b), part)
                        self._take(rows, distance, ends, along)

    def _between(self, rows: np.ndarray, first: Any, second: Any, before: Any) -> Any:
        """The larger one of a distance so far and that of two spheres, the way between them, and their ends."""
        x, y = (
            (self.poses[rows, body] * np.append(sphere[:3], 1.0)).sum(axis=-1)
            for body, sphere in (first, second)
        )
        way = x - y
        gap = np.sqrt((way * way).sum(axis=-1)) - first[1][3] - second[1][3]
        larger = gap > before[0]
        ends = [
            (body, np.where(larger[:, None], sphere[:3], _points(before[2], k, self.checked)))
            for k, (body, sphere) in enumerate((first, second))
        ]
        return np.where(larger, gap, before[0]), np.where(larger[:, None], way, before[1]), ends


def _points(ends: Any, k: int, checked: Checked) -> np.ndarray:
    """Points of the ends of a comparison, or of two spheres given by their numbers."""
    return checked.spheres.centre[ends[0][k]] if len(ends) == 1 else ends[k][1]


def _direction(kind: str, row: list[float], point: np.ndarray) -> np.ndarray:
    """Along which the distance of points to a solid grows fastest; any length."""
    x = tuple(point.T)
    if kind == "planes":
        return np.broadcast_to(np.array(row[:3]), point.shape)
    if kind in ("boxes", "turned_boxes"):
        local, half = solids.in_box(kind, row, x)  # type: ignore[arg-type]
        way = np.stack(np.broadcast_arrays(*box_direction(local, half)), axis=-1)
        if kind == "boxes":
            return way
        return (way[:, :, None] * np.array(row[3:12]).reshape(3, 3)).sum(axis=1)
    return np.stack(solids.to_axis(kind, row, x), axis=-1)  # type: ignore[arg-type]
