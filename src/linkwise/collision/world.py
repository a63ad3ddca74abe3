"""What stands around a robot: spheres, rods, boxes, half spaces, height fields and point clouds, in base axes.

A ``World`` is data: arrays of a few simple kinds that kernels read at run time, so that obstacles move without anything
being compiled again. Height fields and point clouds become boxes that contain them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.collision.room import Box
from linkwise.core.once import once
from linkwise.core.products import length, times
from linkwise.errors import ArgumentError
from linkwise.model import Transform

MOST_OBSTACLES = 100_000
"""Simple solids of a world, those of height fields and point clouds included."""
FARTHEST = 1e5
"""[m] Largest coordinates and sizes of obstacles; half spaces have no end."""
COLUMNS = {"spheres": 4, "rods": 8, "boxes": 6, "turned_boxes": 15, "planes": 4}
"""Kinds of simple solids, and the numbers that describe one."""
_CELLS = 1e15  # of point clouds, to each side: points beyond share one
_given = Numbers()


def _point(name: str, value: Any) -> np.ndarray:
    point = _given.array(name, value)
    if point.shape != (3,):
        raise ArgumentError(f"{name}: expected three numbers [m], got shape {point.shape}")
    return point


@dataclass(frozen=True)
class Sphere:
    """A sphere.

    Args:
        centre: [m], three numbers.
        radius: [m].
        name: for messages.
    """

    centre: Sequence[float]
    radius: float
    name: str = ""

    def __post_init__(self) -> None:
        _point("sphere: centre", self.centre)
        _given.number("sphere: radius", self.radius, least=0.0)

    def solids(self) -> dict[str, np.ndarray]:
        """Rows of the tables of simple solids."""
        return {"spheres": np.array([[*self.centre, self.radius]], dtype=float)}


@dataclass(frozen=True)
class Rod:
    """A rod with round ends (a capsule).

    Args:
        start: centre of one end [m].
        end: centre of the other end [m].
        radius: [m].
        name: for messages.
    """

    start: Sequence[float]
    end: Sequence[float]
    radius: float
    name: str = ""

    def __post_init__(self) -> None:
        _point("rod: start", self.start)
        _point("rod: end", self.end)
        _given.number("rod: radius", self.radius, least=0.0)

    def solids(self) -> dict[str, np.ndarray]:
        """Rows of the tables of simple solids."""
        start, along = np.asarray(self.start, float), np.subtract(self.end, self.start)
        square = float(times(along, along))
        if square == 0.0:
            return Sphere(self.start, self.radius).solids()
        return {"rods": np.array([[*start, *along, self.radius, 1.0 / square]])}


@dataclass(frozen=True)
class Cuboid:
    """A box in any orientation; ``Box`` is one along the axes.

    Args:
        centre: [m], three numbers.
        edges: lengths of the edges [m].
        rotation: its axes as columns, shape (3, 3); by default those of the base.
        name: for messages.
    """

    centre: Sequence[float]
    edges: Sequence[float]
    rotation: Any = None
    name: str = ""

    def __post_init__(self) -> None:
        _point("box: centre", self.centre)
        if (_point("box: edges", self.edges) < 0.0).any():
            raise ArgumentError(f"box: edges: expected lengths of at least 0, got {list(self.edges)}")
        if self.rotation is not None:
            turn = _given.array("box: rotation", self.rotation)
            if turn.shape != (3, 3) or np.abs(times(turn.T, turn) - np.eye(3)).max() > 1e-6:
                raise ArgumentError("box: rotation: expected a rotation matrix, shape (3, 3)")

    @classmethod
    def placed(cls, pose: Transform, edges: Sequence[float], name: str = "") -> Cuboid:
        """A box with this pose of its centre.

        Args:
            pose: of the centre.
            edges: [m].
            name: for messages.
        """
        return cls(pose.translation.tolist(), edges, pose.rotation, name)

    def solids(self) -> dict[str, np.ndarray]:
        """Rows of the tables of simple solids."""
        half = np.asarray(self.edges, float) / 2
        turn = np.eye(3) if self.rotation is None else np.asarray(self.rotation, float)
        if np.array_equal(np.abs(turn).round(12), np.eye(3)):
            return {"boxes": np.array([[*self.centre, *half]], float)}
        return {"turned_boxes": np.array([[*self.centre, *turn.T.reshape(-1), *half]], float)}


@dataclass(frozen=True)
class HalfSpace:
    """All points with normal·x ≤ height, as below a floor.

    Args:
        normal: direction away from the solid side; its length does not matter.
        height: of the surface along the unit normal [m].
        name: for messages.
    """

    normal: Sequence[float] = (0.0, 0.0, 1.0)
    height: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        if not _point("half space: normal", self.normal).any():
            raise ArgumentError("half space: normal: expected a direction, got zeros")
        _given.number("half space: height", self.height)

    def solids(self) -> dict[str, np.ndarray]:
        """Rows of the tables of simple solids."""
        normal = np.asarray(self.normal, float) / np.abs(self.normal).max()  # squares of long ones overflow
        normal /= length(normal)
        return {"planes": np.array([[*normal, self.height]])}


@dataclass(frozen=True)
class HeightField:
    """Ground of varying height over a grid: solid below the surface; between grid points the higher ones count.

    Args:
        heights: [m] at the grid points, shape (rows, columns): rows along x, columns along y.
        spacing: between grid points [m].
        origin: x and y of the first grid point [m].
        depth: of the ground below its lowest point [m].
        name: for messages.
    """

    heights: Any
    spacing: float
    origin: Sequence[float] = (0.0, 0.0)
    depth: float = 0.5
    name: str = ""

    def __post_init__(self) -> None:
        table = _given.array("height field: heights", self.heights)
        if table.ndim != 2 or min(table.shape) < 2 or table.size > MOST_OBSTACLES:
            raise ArgumentError(
                f"height field: heights: expected shape (rows, columns), at least (2, 2) and at most {MOST_OBSTACLES} "
                f"numbers, got {table.shape}"
            )
        _given.number("height field: spacing", self.spacing, above=0.0)
        _given.number("height field: depth", self.depth, least=0.0)
        if _given.array("height field: origin", self.origin).shape != (2,):
            raise ArgumentError("height field: origin: expected two numbers [m]")

    def solids(self) -> dict[str, np.ndarray]:
        """Boxes from below the ground to the highest corner of their cells; cells of similar height share one."""
        table = np.asarray(self.heights, float)
        cells = np.maximum.reduce([table[:-1, :-1], table[1:, :-1], table[:-1, 1:], table[1:, 1:]])
        bottom = float(table.min()) - self.depth
        rows: list[list[float]] = []
        stack = [(0, cells.shape[0], 0, cells.shape[1])]
        while stack:
            i0, i1, k0, k1 = stack.pop()
            part = cells[i0:i1, k0:k1]
            top = float(part.max())
            if part.size > 1 and top - float(part.min()) > 0.25 * self.spacing:
                if i1 - i0 >= k1 - k0:
                    middle = (i0 + i1) // 2
                    stack += [(i0, middle, k0, k1), (middle, i1, k0, k1)]
                else:
                    middle = (k0 + k1) // 2
                    stack += [(i0, i1, k0, middle), (i0, i1, middle, k1)]
                continue
            low = [self.origin[0] + i0 * self.spacing, self.origin[1] + k0 * self.spacing, bottom]
            high = [self.origin[0] + i1 * self.spacing, self.origin[1] + k1 * self.spacing, top]
            rows.append(_centre_and_half(low, high))
        return {"boxes": np.array(rows)}


@dataclass(frozen=True)
class PointCloud:
    """Points, each with a radius, as a depth camera gives them.

    Args:
        points: [m], shape (k, 3).
        radius: of every point [m].
        cell: points in a cell of this edge [m] share a box; by default twice the radius, at least 2 cm.
        name: for messages.
    """

    points: Any
    radius: float = 0.01
    cell: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        cloud = _given.array("point cloud: points", self.points)
        if cloud.ndim != 2 or cloud.shape[1:] != (3,) or len(cloud) > 100 * MOST_OBSTACLES:
            raise ArgumentError(f"point cloud: points: expected shape (k, 3), got {cloud.shape}")
        _given.number("point cloud: radius", self.radius, least=0.0)
        if self.cell is not None:
            _given.number("point cloud: cell", self.cell, above=0.0)

    def solids(self) -> dict[str, np.ndarray]:
        """A box around the points of each row of neighbouring cells, larger by the radius."""
        cloud = np.asarray(self.points, float).reshape(-1, 3)
        if not len(cloud):
            return {}
        cell = max(2 * self.radius, 0.02) if self.cell is None else self.cell
        with np.errstate(over="ignore"):
            place = np.floor(np.clip(cloud / cell, -_CELLS, _CELLS)).astype(np.int64)
        order = np.lexsort((place[:, 0], place[:, 1], place[:, 2]))
        cloud, place = cloud[order], place[order]
        step = np.diff(place, axis=0)
        new = (step[:, 1:] != 0).any(axis=1) | (step[:, 0] > 1)
        starts = np.concatenate([[0], np.flatnonzero(new) + 1])
        low = np.minimum.reduceat(cloud, starts) - self.radius
        high = np.maximum.reduceat(cloud, starts) + self.radius
        return {"boxes": np.concatenate([(low + high) / 2, (high - low) / 2], axis=1)}


Obstacle = Sphere | Rod | Box | Cuboid | HalfSpace | HeightField | PointCloud


@dataclass(frozen=True, eq=False)
class World:
    """Obstacles around a robot, in the axes of its base.

    Args:
        obstacles: ``Sphere``, ``Rod``, ``Box``, ``Cuboid``, ``HalfSpace``, ``HeightField`` and ``PointCloud``.
    """

    obstacles: Sequence[Obstacle] = field(default=())

    def __init__(self, obstacles: Iterable[Obstacle] = ()):
        object.__setattr__(self, "obstacles", tuple(obstacles))
        for each in self.obstacles:
            if not isinstance(each, Obstacle):
                raise ArgumentError(
                    "world: expected obstacles (Sphere, Rod, Box, Cuboid, HalfSpace, HeightField, PointCloud), got "
                    f"{type(each).__name__}"
                )
            if isinstance(each, Box) and not np.isfinite([*each.lower, *each.upper]).all():
                raise ArgumentError(f"world: a box needs finite corners, got {each.words}")
        if sum(map(len, self.solids.values())) > MOST_OBSTACLES:
            raise ArgumentError(f"world: more than {MOST_OBSTACLES} simple solids")

        for kind, rows in self.solids.items():
            if (lengths := _lengths(kind, rows)).size and lengths.max() > FARTHEST:
                raise ArgumentError(
                    f"world: an obstacle reaches {lengths.max():.3g} m, more than {FARTHEST:.0e} m; "
                    "a floor or wall without end is a HalfSpace"
                )

    def rounded(self, dtype: str) -> dict[str, np.ndarray]:
        """Tables of simple solids for checks in a precision. In single precision those that are farther away than
        ``_NEAR``, or as large, are larger by what the rounding of positions and distances may hide.

        Args:
            dtype: of the checks, "float32" or "float64".
        """
        if dtype != "float32":
            return self.solids
        found: dict[str, np.ndarray] = {}
        for kind, rows in self.solids.items():
            reach = _lengths(kind, rows)
            more = np.where(reach > _NEAR, 2.0 * np.finfo(np.float32).eps * reach, 0.0)
            if more.any():
                rows = rows.copy()
                rows[:, _SIZES[kind]] += more[:, None]
            found[kind] = rows
        return found

    @once
    def solids(self) -> dict[str, np.ndarray]:
        """Tables of simple solids by kind, see ``COLUMNS``."""
        found: dict[str, list[np.ndarray]] = {kind: [] for kind in COLUMNS}
        for each in self.obstacles:
            solids = {"boxes": _box(each)} if isinstance(each, Box) else each.solids()
            for kind, rows in solids.items():
                found[kind].append(rows)
        return {
            kind: np.concatenate(rows) if rows else np.zeros((0, COLUMNS[kind]))
            for kind, rows in found.items()
        }

    def __len__(self) -> int:
        return len(self.obstacles)


_NEAR = 100.0  # [m] below which rounding in single precision is in the radii of the robot's spheres
_SIZES = {"spheres": [3], "rods": [6], "boxes": [3, 4, 5], "turned_boxes": [12, 13, 14], "planes": [3]}


def _lengths(kind: str, rows: np.ndarray) -> np.ndarray:
    """The distance [m] of the farthest corner of each solid from the base, about; 0 of half spaces."""
    columns = {"rods": [0, 1, 2, 3, 4, 5, 6], "planes": []}.get(kind, [0, 1, 2, *_SIZES[kind]])
    return np.abs(rows[:, columns]).sum(axis=1)


def _box(box: Box) -> np.ndarray:
    return np.array([_centre_and_half(box.lower, box.upper)])


def _centre_and_half(low: Sequence[float], high: Sequence[float]) -> list[float]:
    lower, upper = np.asarray(low, float), np.asarray(high, float)
    return [*((lower + upper) / 2), *((upper - lower) / 2)]
