"""Where two shapes touch: a fixed number of candidates for every pair, with gap, normal and point, without branches.

The normal points from the second shape to the first, so that the gap grows when the first one moves along it; the point
is half way between the two surfaces. A candidate that a pair does not need in some state (the other corners where two
edges cross) has a gap that is larger by the sizes of the shapes: it is open.

Spheres, capsules and planes are exact. A capsule along a face of a box gets the two ends of the part that lies along it
(``distance.nearest_part_to_box``), else its nearest point twice. Boxes among each other: ``boxes``. Cylinders,
ellipsoids and hulls with other solids: ``convex``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from linkwise.algorithms.contact import boxes, convex
from linkwise.algorithms.contact import distance as apart
from linkwise.algorithms.contact.boxes import Meeting, add, lowest_corner, scaled
from linkwise.algorithms.contact.convex import axes
from linkwise.algorithms.contact.distance import Point, Segment, dot, minus
from linkwise.algorithms.kinematics import Pose
from linkwise.model.shapes import CANDIDATES, WORLD_ONLY, Shape, candidates_of
from linkwise.scalar import Scalar, maximum, minimum, sqrt, summed, where
from linkwise.spatial import Vector

ALONG = 1e-3
"""Sine of the angle up to which a capsule lies along a face or another capsule."""
CROSSING = 0.01
"""Part of a capsule's radius: a shorter part of it beside an edge of a box is one point."""
_TINY = 1e-24
_IN_A_CELL = 1e-9  # part of a cell: grid lines belong to the cell before them, the first one to that after it


@dataclass(frozen=True, eq=False)
class Placed:
    """A shape at a pose in the world."""

    shape: Shape
    pose: Pose

    @property
    def middle(self) -> Point:
        x, y, z = self.pose.position
        return x, y, z

    @property
    def sizes(self) -> Sequence[float]:
        return tuple(self.shape.sizes)

    def out(self, point: Point) -> Point:
        """From its own axes to the world."""
        x, y, z = self.pose.rotation @ Vector(*point) + self.pose.position
        return x, y, z

    def turned(self, way: Point) -> Point:
        """A direction from its own axes to the world's."""
        x, y, z = self.pose.rotation @ Vector(*way)
        return x, y, z

    def own(self, way: Point) -> Point:
        """A direction from the world's axes to its own."""
        x, y, z = self.pose.rotation.transposed_times(Vector(*way))
        return x, y, z

    def inside(self, point: Point) -> Point:
        """From the world to its own axes."""
        return self.own(minus(point, self.middle))

    def segment(self) -> Segment:
        """The axis of a capsule; of a sphere its centre."""
        length = float(self.sizes[1]) if self.shape.kind == "capsule" else 0.0
        if length == 0.0:
            return Segment(self.middle, (0.0, 0.0, 0.0), 0.0)
        along = self.turned((0.0, 0.0, length))
        return Segment(minus(self.middle, scaled(0.5, along)), along, length * length)

    @property
    def half(self) -> Point:
        x, y, z = self.sizes
        return 0.5 * x, 0.5 * y, 0.5 * z

    @property
    def box(self) -> boxes.Box:
        R = self.pose.rotation
        columns = [R.column(k) for k in range(3)]
        return boxes.Box(self.middle, tuple((v.x, v.y, v.z) for v in columns), self.half)


class Surface(NamedTuple):
    """The world below a point: a unit normal, and the height of the point above it."""

    normal: Point
    gap: Scalar


def meetings(first: Placed, second: Placed) -> list[Meeting]:
    """The candidates of a pair, as many as ``shapes.candidates_of`` says."""
    kinds = first.shape.kind, second.shape.kind
    if kinds in _METHODS:
        found = _METHODS[kinds](first, second)
    else:
        found = [
            Meeting(gap, scaled(-1.0, normal), point)
            for gap, normal, point in _METHODS[kinds[1], kinds[0]](second, first)
        ]
    return found[: candidates_of(first.shape, second.shape)]


# -- against planes and height fields ---------------------------------------------------------------------------------


def _below(points: Sequence[tuple[Point, float]], surface: Callable[[Point], Surface]) -> list[Meeting]:
    """Spheres (centre, radius) above a surface."""
    found: list[Meeting] = []
    for centre, radius in points:
        normal, height = surface(centre)
        gap = height - radius
        found.append(Meeting(gap, normal, minus(centre, scaled(radius + 0.5 * gap, normal))))
    return found


def _plane(plane: Placed) -> tuple[Point, Callable[[Point], Surface]]:
    normal = plane.turned((0.0, 0.0, 1.0))
    height = dot(normal, plane.middle)
    return normal, lambda point: Surface(normal, apart.plane_distance(point, normal, height))


def _ends(capsule: Placed) -> list[tuple[Point, float]]:
    line, radius = capsule.segment(), capsule.sizes[0]
    return [(line.start, radius), (line.at(1.0), radius)][: 1 if capsule.shape.kind == "sphere" else 2]


def _round_on_plane(first: Placed, plane: Placed) -> list[Meeting]:
    return _below(_ends(first), _plane(plane)[1])


def _corners(box: Placed, normal: Point) -> list[tuple[Point, float]]:
    up = box.own(normal)
    signs = [(a, b) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    return [(box.out(lowest_corner(up, box.half, sign)), 0.0) for sign in signs]


def _box_on_plane(first: Placed, plane: Placed) -> list[Meeting]:
    normal, surface = _plane(plane)
    return _below(_corners(first, normal), surface)


def _hull_on_plane(first: Placed, plane: Placed) -> list[Meeting]:
    """The deepest corner and three around it."""
    normal, surface = _plane(plane)
    t, u, _ = axes(normal)
    chosen = _chosen_corners(first, normal, lambda point: surface(point).gap)
    height = dot(normal, plane.middle)
    return [
        Meeting(
            gap,
            normal,
            tuple(x * a + y * b + (height + 0.5 * gap) * c for a, b, c in zip(t, u, normal, strict=True)),
        )
        for x, y, gap in chosen
    ]


def _chosen_corners(first: Placed, normal: Point, height: Callable[[Point], Scalar]) -> list[Point]:
    """Four corners of a hull, as places along two axes across the normal and heights."""
    points = [first.out((x, y, z)) for x, y, z in first.shape.points]
    t, u, _ = axes(normal)
    flat = [(dot(t, p), dot(u, p), height(p)) for p in points]
    size = 2.0 * max(math.dist(p, q) for p in first.shape.points for q in first.shape.points)
    return boxes.spread(flat, [True] * len(flat), size)


def _cylinder_on_plane(first: Placed, plane: Placed) -> list[Meeting]:
    normal, surface = _plane(plane)
    return _below(_points_of_rims(first, normal), surface)


def _points_of_rims(first: Placed, normal: Point) -> list[tuple[Point, float]]:
    """The lowest points of both rims, and two more on the lower one, a third of a turn away."""
    radius, length = first.sizes
    x, y, z = first.own(normal)
    down = where(z > 0.0, -0.5 * length, 0.5 * length)
    square = x * x + y * y
    leans = square > _TINY
    scale = radius / sqrt(where(leans, square, 1.0))
    a, b = where(leans, -x * scale, radius), where(leans, -y * scale, 0.0)
    c, s = -0.5, 0.5 * math.sqrt(3.0)
    points = [
        (a, b, down),
        (a, b, -down),
        (c * a - s * b, s * a + c * b, down),
        (c * a + s * b, c * b - s * a, down),
    ]
    return [(first.out(point), 0.0) for point in points]


def _ellipsoid_on_plane(first: Placed, plane: Placed) -> list[Meeting]:
    normal, surface = _plane(plane)
    return _below([(_lowest_of_ellipsoid(first, normal), 0.0)], surface)


def _lowest_of_ellipsoid(first: Placed, normal: Point) -> Point:
    way = first.own(normal)
    stretched = tuple(s * w for s, w in zip(first.sizes, way, strict=True))
    scale = -1.0 / apart.length(stretched)
    lowest: Any = tuple(scale * s * w for s, w in zip(first.sizes, stretched, strict=True))
    return first.out(lowest)


def _field(field: Placed) -> Callable[[Point], Surface]:
    """Height and normal of a bilinear field, as sums of hat functions over its grid."""
    heights, (width, depth) = field.shape.heights, field.sizes
    columns, rows = len(heights), len(heights[0])
    dx, dy = width / (columns - 1), depth / (rows - 1)

    def hats(x: Scalar, count: int) -> tuple[list[Scalar], list[Scalar]]:
        """(weights, their derivatives) of the grid lines at x, counted in cells from the first one."""
        at = minimum(maximum(x, _IN_A_CELL), count - 1.0)
        offs = [at - float(k) for k in range(count)]
        weights = [maximum(1.0 - abs(off), 0.0) for off in offs]
        beyond = (x < 0.0) | (x > count - 1.0)
        slopes: list[Scalar] = []
        for off in offs:
            after = where((off > 0.0) & (off <= 1.0), -1.0, 0.0)
            slopes.append(where(beyond, 0.0, where((off > -1.0) & (off <= 0.0), 1.0, after)))
        return weights, slopes

    def surface(point: Point) -> Surface:
        x, y, z = field.inside(point)
        along, along_slope = hats(x * (1.0 / dx) + 0.5 * (columns - 1), columns)
        across, across_slope = hats(y * (1.0 / dy) + 0.5 * (rows - 1), rows)
        by_column = [summed(h * w for h, w in zip(column, across, strict=True)) for column in heights]
        by_row = [summed(heights[i][j] * along[i] for i in range(columns)) for j in range(rows)]
        height = summed(h * w for h, w in zip(by_column, along, strict=True))
        slope_x = (1.0 / dx) * summed(h * w for h, w in zip(by_column, along_slope, strict=True))
        slope_y = (1.0 / dy) * summed(h * w for h, w in zip(by_row, across_slope, strict=True))
        scale = 1.0 / sqrt(slope_x * slope_x + slope_y * slope_y + 1.0)
        normal = field.turned((-slope_x * scale, -slope_y * scale, scale))
        return Surface(normal, (z - height) * scale)

    return surface


def _round_on_field(first: Placed, field: Placed) -> list[Meeting]:
    return _below(_ends(first), _field(field))


def _box_on_field(first: Placed, field: Placed) -> list[Meeting]:
    return _below(_corners(first, field.turned((0.0, 0.0, 1.0))), _field(field))


def _on_field(first: Placed, field: Placed) -> tuple[Point, Callable[[Point], Surface]]:
    """(the normal of a field below a solid's middle, the field): lowest points are those along it."""
    surface = _field(field)
    return surface(first.middle).normal, surface


def _cylinder_on_field(first: Placed, field: Placed) -> list[Meeting]:
    normal, surface = _on_field(first, field)
    return _below(_points_of_rims(first, normal), surface)


def _ellipsoid_on_field(first: Placed, field: Placed) -> list[Meeting]:
    normal, surface = _on_field(first, field)
    return _below([(_lowest_of_ellipsoid(first, normal), 0.0)], surface)


def _hull_on_field(first: Placed, field: Placed) -> list[Meeting]:
    normal, surface = _on_field(first, field)
    middle = first.middle
    lowest = _chosen_corners(first, normal, lambda point: dot(normal, minus(point, middle)))
    t, u, _ = axes(normal)
    height = dot(normal, middle)
    points = [(add(add(scaled(x, t), scaled(y, u)), scaled(height + z, normal)), 0.0) for x, y, z in lowest]
    return _below(points, surface)


# -- solids among each other ------------------------------------------------------------------------------------------


def _between(first: Point, radius: float, second: Point, other: float) -> Meeting:
    """Two spheres."""
    way = minus(first, second)
    square = dot(way, way)
    known = square > _TINY
    size = sqrt(where(known, square, 1.0))
    scale = 1.0 / size
    x, y, z = (where(known, scale * w, e) for w, e in zip(way, (0.0, 0.0, 1.0), strict=True))
    gap = where(known, size, 0.0) - (radius + other)
    normal = (x, y, z)
    return Meeting(gap, normal, add(second, scaled(other + 0.5 * gap, normal)))


def _round_round(first: Placed, second: Placed) -> list[Meeting]:
    one, two = first.segment(), second.segment()
    radii = first.sizes[0], second.sizes[0]
    if one.square == 0.0 or two.square == 0.0:
        s, t = apart.nearest_part(two.start, one), apart.nearest_part(one.start, two)
        return [_between(one.at(s), radii[0], two.at(t), radii[1])]
    s, t = apart.nearest_parts(one, two)
    # parallel: the ends of the part where both are beside each other
    ends = [apart.nearest_part(point, one) for point in (two.start, two.at(1.0))]
    b = dot(one.along, two.along)
    parallel = one.square * two.square - b * b <= (ALONG * ALONG) * (one.square * two.square)
    found: list[Meeting] = []
    for end, part in zip(ends, (s, s), strict=True):
        own = where(parallel, end, part)
        other = where(parallel, apart.nearest_part(one.at(own), two), t)
        found.append(_between(one.at(own), radii[0], two.at(other), radii[1]))
    # one point of contact is one candidate
    size = radii[0] + radii[1] + math.sqrt(one.square)
    gap = where(parallel, found[1].gap, found[0].gap + size)
    return [found[0], Meeting(gap, found[1].normal, found[1].point)]


def _round_box(first: Placed, second: Placed) -> list[Meeting]:
    radius, half = first.sizes[0], second.half
    line = first.segment()
    inner = Segment(second.inside(line.start), second.own(line.along), line.square)
    across: Any = True
    if line.square == 0.0:
        parts: list[Any] = [0.0]
    else:
        parts = [apart.nearest_part_to_box(inner, half, slope) for slope in (-ALONG, ALONG)]
        # bisection ends next to the ends of the segment
        near = 0.75 * 0.5**apart.HALVINGS
        parts = [where(p < near, 0.0, where(p > 1.0 - near, 1.0, p)) for p in parts]
        # across an edge it is smallest in the middle of a short part: one point of contact is one candidate
        across = parts[1] - parts[0] < CROSSING * radius / math.sqrt(line.square) + 4.0 * near
        parts[0] = where(across, 0.5 * (parts[0] + parts[1]), parts[0])
    found: list[Meeting] = []
    for part in parts:
        centre = inner.at(part)
        distance, normal = apart.box_normal(centre, half)
        gap = distance - radius
        point = minus(centre, scaled(radius + 0.5 * gap, normal))
        found.append(Meeting(gap, second.turned(normal), second.out(point)))
    if len(found) == 2:
        size = radius + math.sqrt(line.square) + sum(second.sizes)
        found[1] = Meeting(where(across, found[0].gap + size, found[1].gap), *found[1][1:])
    return found


def _box_box(first: Placed, second: Placed) -> list[Meeting]:
    return boxes.meetings(first.box, second.box)


def _convex(first: Placed, second: Placed) -> list[Meeting]:
    """Any two solids, in the axes of the second one."""
    R = second.pose.rotation.transposed().times(first.pose.rotation)
    pair = convex.Pair(first.shape, second.shape, R, second.inside(first.middle))
    return [
        Meeting(gap, second.turned(normal), second.out(point)) for gap, normal, point in convex.meetings(pair)
    ]


_METHODS: dict[tuple[str, str], Callable[[Placed, Placed], list[Meeting]]] = {
    ("sphere", "plane"): _round_on_plane,
    ("capsule", "plane"): _round_on_plane,
    ("box", "plane"): _box_on_plane,
    ("hull", "plane"): _hull_on_plane,
    ("cylinder", "plane"): _cylinder_on_plane,
    ("ellipsoid", "plane"): _ellipsoid_on_plane,
    ("sphere", "height_field"): _round_on_field,
    ("capsule", "height_field"): _round_on_field,
    ("box", "height_field"): _box_on_field,
    ("cylinder", "height_field"): _cylinder_on_field,
    ("ellipsoid", "height_field"): _ellipsoid_on_field,
    ("hull", "height_field"): _hull_on_field,
    ("sphere", "sphere"): _round_round,
    ("sphere", "capsule"): _round_round,
    ("capsule", "capsule"): _round_round,
    ("sphere", "box"): _round_box,
    ("capsule", "box"): _round_box,
    ("box", "box"): _box_box,
    **dict.fromkeys(
        (
            pair
            for pair in CANDIDATES
            if {"cylinder", "ellipsoid", "hull"} & {*pair} and not {*WORLD_ONLY} & {*pair}
        ),
        _convex,
    ),
}
