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
    """For each state: the smallest distance [m], the sphere that it belongs to, the other one of a pair (−1: an
    obstacle), and the unit vector along which the distance grows when the first moves, (states, 3)."""

    distance: np.ndarray
    first: np.ndarray
    second: np.ndarray
    normal: np.ndarray


def nearest(checked: Checked, poses: np.ndarray, world: World) -> Nearest:
    """The nearest comparison of each state.

    Args:
        checked: what is compared.
        poses: of all bodies, the base last, shape (states, bodies + 1, 3, 4).
        world: the obstacles.
    """
    spheres, radius = checked.spheres, checked.spheres.radius
    points = np.concatenate([checked.spheres.centre, np.ones((len(checked.spheres.centre), 1))], axis=1)
    centres = (poses[:, checked.spheres.body] * points[:, None]).sum(axis=-1)
    states = len(poses)
    best = np.full(states, BEYOND)
    first = np.zeros(states, int)
    second = np.full(states, -1)
    normal = np.zeros((states, 3))
    moving = np.flatnonzero(spheres.body != BASE)

    def take(distance: np.ndarray, one: Any, two: Any, way: np.ndarray) -> None:
        better = distance < best
        best[better] = distance[better]
        first[better] = np.broadcast_to(one, states)[better]
        second[better] = np.broadcast_to(two, states)[better]
        size = np.sqrt((way * way).sum(axis=1, keepdims=True))
        normal[better] = (way / np.maximum(size, 1e-12))[better]

    rows = np.arange(states)
    for kind in COLUMNS:
        for row in world.solids[kind].tolist():
            x = tuple(np.moveaxis(centres[:, moving], -1, 0))
            gaps = solids.distance(kind, row, x, radius[moving])
            place = gaps.argmin(axis=1)
            point = centres[rows, moving[place]]
            take(gaps[rows, place], moving[place], -1, _direction(kind, row, point))
    for key, pairs in checked.pairs.compared.items():
        way = centres[:, pairs[:, 0]] - centres[:, pairs[:, 1]]
        gaps = np.sqrt((way * way).sum(axis=-1)) - checked.pairs.reaches[key]
        place = gaps.argmin(axis=1)
        take(gaps[rows, place], pairs[place, 0], pairs[place, 1], way[rows, place])
    return Nearest(best, first, second, normal)


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
