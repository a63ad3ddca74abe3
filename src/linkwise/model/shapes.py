"""Shapes that may touch: solids fixed to frames, and how many candidates of contact two of them give.

A pair of shapes gives a fixed number of candidates, whether they touch or not. ``CANDIDATES`` lists the pairs that are
modelled; all others are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.quantity import finite
from linkwise.model.transform import Transform

Place = tuple[float, float, float]
_UNTURNED = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

SIZES = {
    "sphere": ("radius",),
    "capsule": ("radius", "length"),
    "cylinder": ("radius", "length"),
    "box": ("x", "y", "z"),
    "ellipsoid": ("x", "y", "z"),
    "hull": (),
    "plane": (),
    "height_field": ("x", "y"),
}
"""Kinds of shapes and their sizes [m]; lengths of capsules are those of their axes."""
WORLD_ONLY = ("plane", "height_field")
"""Kinds that cannot move."""
MOST_VERTICES = 64
"""Of a convex hull."""
CORNERS = 8
"""Directions of the corners of a cube."""
MANY_WAYS = 100
"""Directions in which hulls are compared."""
MOST_HEIGHTS = 4096
"""Numbers of a height field: each costs two multiplications for every candidate on it."""
FACE = 4
"""Candidates that are chosen among many points of one contact: the deepest and three around it."""

CANDIDATES = {
    ("sphere", "plane"): 1,
    ("capsule", "plane"): 2,
    ("box", "plane"): FACE,
    ("cylinder", "plane"): FACE,
    ("ellipsoid", "plane"): 1,
    ("hull", "plane"): FACE,
    ("sphere", "height_field"): 1,
    ("capsule", "height_field"): 2,
    ("box", "height_field"): FACE,
    ("sphere", "sphere"): 1,
    ("sphere", "capsule"): 1,
    ("sphere", "box"): 1,
    ("capsule", "capsule"): 2,
    ("capsule", "box"): 2,
    ("box", "box"): FACE,
    ("cylinder", "height_field"): FACE,
    ("ellipsoid", "height_field"): 1,
    ("hull", "height_field"): FACE,
    ("sphere", "cylinder"): 1,
    ("sphere", "ellipsoid"): 1,
    ("sphere", "hull"): 1,
    ("capsule", "cylinder"): 2,
    ("capsule", "ellipsoid"): 1,
    ("capsule", "hull"): 2,
    ("box", "cylinder"): FACE,
    ("box", "ellipsoid"): 1,
    ("box", "hull"): FACE,
    ("cylinder", "cylinder"): FACE,
    ("cylinder", "ellipsoid"): 1,
    ("cylinder", "hull"): FACE,
    ("ellipsoid", "ellipsoid"): 1,
    ("ellipsoid", "hull"): 1,
    ("hull", "hull"): FACE,
}
"""How many candidates a pair of kinds gives; the order of a pair does not matter."""


@dataclass(frozen=True)
class Shape:
    """A solid that is fixed to a frame and may touch others.

    Make one with ``Shape.sphere``, ``capsule``, ``cylinder``, ``box``, ``ellipsoid``, ``hull``, ``plane`` or
    ``height_field``.

    Args:
        frame: to which it is fixed: a link or a named frame.
        kind: one of ``SIZES``.
        sizes: radius, radius and length, or three edges or semi-axes [m].
        offset: of its middle in the frame [m].
        rotation: of its axes in the frame, three rows.
        points: corners of a hull in its axes [m], shape (k, 3).
        heights: of a height field on a regular grid [m], shape (x, y): along x first.
        friction: coefficient of Coulomb friction; a pair takes the larger one. None: that of the ground.
    """

    frame: str
    kind: str
    sizes: Sequence[float] = ()
    offset: Sequence[float] = field(default=(0.0, 0.0, 0.0), kw_only=True)
    rotation: Sequence[Sequence[float]] = field(default=_UNTURNED, kw_only=True)
    points: Sequence[Sequence[float]] = field(default=(), kw_only=True)
    heights: Sequence[Sequence[float]] = field(default=(), kw_only=True)
    friction: float | None = field(default=None, kw_only=True)

    def __post_init__(self):
        put = object.__setattr__
        if self.kind not in SIZES:
            raise ModelError(
                f"shape of {self.frame}: kind: expected one of {', '.join(SIZES)}, got {self.kind!r}"
            )
        put(self, "offset", places(f"{self.label}: offset", [self.offset])[0])
        put(self, "rotation", _rotation(f"{self.label}: rotation", self.rotation))
        names = SIZES[self.kind]
        sizes = tuple(finite(f"{self.label}: sizes", size) for size in self.sizes)
        if len(sizes) != len(names):
            raise ModelError(f"{self.label}: sizes: expected {len(names)} numbers [m], got {sizes}")
        least = 0.0 if self.kind in ("sphere", "capsule") else 5e-324  # a sphere of radius 0 is a point
        if any(size < least for size in sizes):
            raise ModelError(f"{self.label}: {', '.join(names)}: expected lengths above 0 [m], got {sizes}")
        put(self, "sizes", sizes)
        if self.friction is not None:
            put(self, "friction", coefficient(f"{self.label}: friction", self.friction))
        if self.kind == "hull":
            put(self, "points", places(f"{self.label}: points", self.points))
            if len(self.points) > MOST_VERTICES:
                raise ModelError(
                    f"{self.label}: a hull has at most {MOST_VERTICES} corners, got {len(self.points)}; "
                    "lw.Shape.hull(frame, points, most=…) chooses among them"
                )
        if self.kind == "height_field":
            put(self, "heights", _heights(self.label, self.heights))

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"{self.kind.replace('_', ' ')} of {self.frame}"

    @property
    def pose(self) -> Transform:
        """In its frame."""
        return Transform(np.array(self.rotation), np.array(self.offset))

    @classmethod
    def sphere(cls, frame: str, radius: float, **options: Any) -> Shape:
        """A sphere.

        Args:
            frame: to which it is fixed.
            radius: [m].
            options: ``offset``, ``rotation`` or ``rpy``, ``friction``.
        """
        return cls(frame, "sphere", (radius,), **_options(options))

    @classmethod
    def capsule(cls, frame: str, radius: float, length: float, **options: Any) -> Shape:
        """A capsule along its z axis.

        Args:
            frame: to which it is fixed.
            radius: [m].
            length: of its axis, between the centres of the ends [m].
            options: as for ``sphere``.
        """
        return cls(frame, "capsule", (radius, length), **_options(options))

    @classmethod
    def cylinder(cls, frame: str, radius: float, length: float, **options: Any) -> Shape:
        """A cylinder along its z axis.

        Args:
            frame: to which it is fixed.
            radius: [m].
            length: [m].
            options: as for ``sphere``.
        """
        return cls(frame, "cylinder", (radius, length), **_options(options))

    @classmethod
    def box(cls, frame: str, size: Sequence[float], **options: Any) -> Shape:
        """A box.

        Args:
            frame: to which it is fixed.
            size: its three edges [m].
            options: as for ``sphere``.
        """
        return cls(frame, "box", tuple(size), **_options(options))

    @classmethod
    def ellipsoid(cls, frame: str, size: Sequence[float], **options: Any) -> Shape:
        """An ellipsoid.

        Args:
            frame: to which it is fixed.
            size: its three semi-axes [m].
            options: as for ``sphere``.
        """
        return cls(frame, "ellipsoid", tuple(size), **_options(options))

    @classmethod
    def hull(cls, frame: str, points: Any, *, most: int = MOST_VERTICES, **options: Any) -> Shape:
        """The convex hull of points.

        Args:
            frame: to which it is fixed.
            points: [m], shape (k, 3).
            most: how many of them are kept: those that are farthest in directions spread evenly over a sphere.
            options: as for ``sphere``.
        """
        return cls(frame, "hull", (), points=extreme_points(points, most), **_options(options))

    @classmethod
    def plane(cls, frame: str, **options: Any) -> Shape:
        """The half space below the plane z = 0 of its axes; its frame must not move.

        Args:
            frame: to which it is fixed.
            options: as for ``sphere``.
        """
        return cls(frame, "plane", (), **_options(options))

    @classmethod
    def height_field(cls, frame: str, heights: Any, size: Sequence[float], **options: Any) -> Shape:
        """Ground of given heights on a regular grid, bilinear between them; its frame must not move.

        Args:
            frame: to which it is fixed.
            heights: [m], shape (x, y): the first index goes along x. Beyond the grid the height is that of its rim.
            size: its extent along x and y [m]; the middle of the grid is the origin.
            options: as for ``sphere``.
        """
        return cls(frame, "height_field", tuple(size), heights=heights, **_options(options))


def candidates_of(first: Shape, second: Shape) -> int:
    """How many candidates a pair gives; ModelError where it is not modelled."""
    for kinds in ((first.kind, second.kind), (second.kind, first.kind)):
        if kinds in CANDIDATES:
            most = CANDIDATES[kinds]
            hull = first if first.kind == "hull" else second
            return min(most, len(hull.points)) if hull.kind == "hull" else most
    with_first = sorted({b if a == first.kind else a for a, b in CANDIDATES if first.kind in (a, b)})
    raise ModelError(
        f"{first.label} against {second.label}: this pair is not modelled; a {_words(first.kind)} touches "
        f"{', '.join(_words(kind) for kind in with_first)}"
    )


def extreme_points(points: Any, most: int) -> tuple[Place, ...]:
    """At most this many of the points, among those that are farthest in directions spread evenly over a sphere.

    Those of the directions (±1, ±1, ±1) come first: a box keeps its corners, and what stands on a flat face points of
    it. Every further one is that of the direction in which the hull of the others lacks most.
    """
    array = np.array(places("hull: points", points))
    if most < 4:
        raise ModelError(f"hull: most: expected at least 4 corners, got {most!r}")
    ways = _ways(4 * most)
    farthest = [int(np.argmax(_reach(array, way))) for way in ways]
    chosen = list(dict.fromkeys(farthest[:CORNERS]))[:most]
    ends = np.array(
        [_reach(array[farthest], way) for way in ways]
    )  # of every direction, for all of their points
    whole = ends.max(axis=1)
    while len(chosen) < most:
        own = [farthest.index(each) for each in chosen]
        missing = whole - ends[:, own].max(axis=1)
        worst = int(np.argmax(missing))
        if missing[worst] <= 0.0:
            break
        chosen.append(farthest[worst])
    return tuple((float(x), float(y), float(z)) for x, y, z in array[sorted(chosen)])


def lost_reach(points: Any, kept: Any) -> float:
    """How much farther the points reach than those that are kept [m], the largest of many directions."""
    every, some = np.asarray(points, dtype=float), np.asarray(kept, dtype=float)
    ways = _ways(MANY_WAYS)[CORNERS:]
    return max(float(_reach(every, way).max() - _reach(some, way).max()) for way in ways)


def _ways(count: int) -> np.ndarray:
    """The directions (±1, ±1, ±1), which are not of unit length, and ``count`` ones spread evenly over a sphere."""
    turn = math.pi * (3.0 - math.sqrt(5.0))
    ways = [(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
    for k in range(count):
        z = 1.0 - (2.0 * k + 1.0) / count
        flat = math.sqrt(1.0 - z * z)
        ways.append((flat * math.cos(turn * k), flat * math.sin(turn * k), z))
    return np.array(ways)


def _reach(points: np.ndarray, way: np.ndarray) -> np.ndarray:
    return points[:, 0] * way[0] + points[:, 1] * way[1] + points[:, 2] * way[2]


def coefficient(what: str, value: object) -> float:
    """A coefficient of friction: finite, not negative."""
    if isinstance(value, (float, int)) and value == math.inf:
        raise ModelError(f"{what}: expected a finite number, got inf; 1e3 is a contact that never slides")
    number = finite(what, value)
    if number < 0.0:
        raise ModelError(f"{what}: expected a number of at least 0, got {number!r}")
    return number


def places(what: str, value: Any) -> tuple[Place, ...]:
    """Positions as tuples, checked."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: expected positions [m] of shape (3,), got {value!r:.80}") from None
    if array.ndim != 2 or array.shape[1] != 3 or not len(array):
        raise ModelError(f"{what}: expected positions [m] of shape (3,), got shape {array.shape[1:]}")
    return tuple((finite(what, x), finite(what, y), finite(what, z)) for x, y, z in array.tolist())


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """Roll, pitch and yaw [rad] in place of a rotation."""
    if "rpy" not in options:
        return options
    others = {name: value for name, value in options.items() if name != "rpy"}
    return {**others, "rotation": Transform.from_rpy((0.0, 0.0, 0.0), options["rpy"]).rotation}


def _rotation(what: str, value: Any) -> tuple[Place, Place, Place]:
    rows = places(what, value)
    array = np.array(rows)
    if (
        array.shape != (3, 3)
        or np.abs((array[:, :, None] * array[:, None, :]).sum(axis=0) - np.eye(3)).max() > 1e-6
    ):
        raise ModelError(f"{what}: expected a rotation matrix, got {value!r:.80}")
    return rows[0], rows[1], rows[2]


def _heights(label: str, value: Any) -> tuple[tuple[float, ...], ...]:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim != 2 or min(array.shape) < 2:
        raise ModelError(
            f"{label}: heights: expected heights [m] of shape (x, y), at least 2 each way, got {value!r:.80}"
        )
    if array.size > MOST_HEIGHTS:
        raise ModelError(
            f"{label}: heights: expected at most {MOST_HEIGHTS} numbers, got {array.size}: each candidate needs "
            f"{2 * array.size} multiplications to find its height; use a coarser grid"
        )
    rows: Any = array.tolist()
    return tuple(tuple(finite(f"{label}: heights", x) for x in row) for row in rows)


def _words(kind: str) -> str:
    return kind.replace("_", " ")
