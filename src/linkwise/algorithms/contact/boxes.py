"""Two boxes: the axis along which they are farthest apart, and four points of the faces that meet there.

The fifteen axes of S. Gottschalk, M. Lin and D. Manocha ("OBBTree", 1996): three of each box and nine across pairs of
edges. The largest separation decides. An axis of a face: the nearest face of the other box is clipped to it (four edges
against a rectangle, and the corners of the rectangle that lie in the other face), and four of these twelve points are
kept (``spread``). An axis of two edges: their nearest points, one candidate.

The gap of boxes that overlap is the shortest way out; of others it is that along the chosen axis, which is not larger
than their distance. A face that no part of the other box is in front of has no points: its candidates are open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from linkwise.algorithms import dense
from linkwise.algorithms.contact.distance import Point, Segment, dot, minus
from linkwise.scalar import Condition, Scalar, all_of, maximum, minimum, sqrt, where

FACE_FIRST = 1e-6
"""An edge or a face of the second box decides where it is better by this part of the smallest edge."""
_CROSSED = 1e-8  # sin² of the angle of two edges below which they count as parallel
_RIM = 1e-9  # part of the sizes by which a point may be beyond a face
_EQUAL = 1e-10  # part of the sizes by which heights differ that count as equal
_FLAT = 1e-12  # part of a squared length below which points of a face are one


class Meeting(NamedTuple):
    """A candidate: its gap [m], the unit normal from the second shape to the first, and its point [m]."""

    gap: Scalar
    normal: Point
    point: Point


class Box(NamedTuple):
    """A box in the world: its middle, its three axes, half of its edges [m]."""

    middle: Point
    axes: tuple[Point, ...]
    half: Point


class _Face(NamedTuple):
    """A face: its middle, its outward normal, two axes along it, half of its edges."""

    middle: Point
    normal: Point
    across: Point
    along: Point
    width: Scalar
    depth: Scalar


def add(u: Point, v: Point) -> Point:
    return u[0] + v[0], u[1] + v[1], u[2] + v[2]


def scaled(factor: Any, u: Point) -> Point:
    return factor * u[0], factor * u[1], factor * u[2]


def lowest_corner(up: Point, half: Point, corner: tuple[float, float]) -> Point:
    """A corner of the lowest face of a box, in its own axes, where ``up`` is the direction of heights in these axes.

    The face is across the axis that is nearest to the vertical. The lowest corner and the lowest edge of a box belong
    to this face in every orientation.
    """
    (x, y, z), (a, b) = half, corner
    down = [where(r > 0.0, -1.0, 1.0) for r in up]
    squares = [r * r for r in up]
    by_x = all_of(squares[0] > squares[1], squares[0] > squares[2])
    by_y = squares[1] > squares[2]
    return (
        where(by_x, x * down[0], a * x),
        where(by_x, a * y, where(by_y, y * down[1], b * y)),
        where(by_x, b * z, where(by_y, b * z, z * down[2])),
    )


def meetings(first: Box, second: Box) -> list[Meeting]:
    """Four candidates of two boxes."""
    way = minus(second.middle, first.middle)
    R = [[dot(a, b) for b in second.axes] for a in first.axes]
    size = [[abs(r) for r in row] for row in R]
    small = min(*first.half, *second.half)
    t = [dot(way, a) for a in first.axes]
    s = [dot(way, b) for b in second.axes]
    ours = [abs(t[i]) - (first.half[i] + dense.dot(second.half, size[i])) for i in range(3)]
    theirs = [
        abs(s[j]) - (second.half[j] + dense.dot(first.half, [size[i][j] for i in range(3)])) for j in range(3)
    ]
    own, face = _best_face(first, t, ours)
    other, opposite = _best_face(second, [-x for x in s], theirs)
    is_second = other > own + FACE_FIRST * small
    separation = where(is_second, other, own)
    reference = _Face(*(_choice(is_second, b, a) for a, b in zip(face, opposite, strict=True)))
    incident = Box(*(_choice(is_second, a, b) for a, b in zip(first, second, strict=True)))
    chosen = _clipped(reference, incident, 4.0 * (sum(first.half) + sum(second.half)))
    edge, crossing = _best_edges(first, second, way, R, size)
    crosses = edge > separation + FACE_FIRST * small
    out = scaled(where(is_second, 1.0, -1.0), reference.normal)  # from the second to the first
    found: list[Meeting] = []
    for k, (x, y, gap) in enumerate(chosen):
        level = add(reference.middle, scaled(0.5 * gap, reference.normal))
        point = add(level, add(scaled(x, reference.across), scaled(y, reference.along)))
        if k == 0:
            found.append(
                Meeting(
                    where(crosses, crossing.gap, gap),
                    _choice(crosses, crossing.normal, out),
                    _choice(crosses, crossing.point, point),
                )
            )
            continue
        absent = crossing.gap + 4.0 * (sum(first.half) + sum(second.half))
        found.append(Meeting(where(crosses, absent, gap), _choice(crosses, crossing.normal, out), point))
    return found


def spread(points: Sequence[Point], known: Sequence[Condition], far: Scalar) -> list[Point]:
    """Four of points (x, y, height): the lowest, the farthest from it, and the farthest on both sides of their line, or
    the one that adds most to the triangle where there is none on one side.

    Of equal ones the first counts, so that the impulses of the last step belong to the same points. Points that are not
    ``known`` do not count. Where there are fewer than four, others are ``far`` above the lowest.
    """
    heights = [where(ok, z, far) for (_, _, z), ok in zip(points, known, strict=True)]
    any_known: Any = known[0]
    for ok in known[1:]:
        any_known = any_known | ok
    equal, alike = _EQUAL * far, 10.0 * _EQUAL * far * far
    lowest, _ = _largest([-z for z in heights], points, equal)
    lowest = (lowest[0], lowest[1], where(any_known, lowest[2], far))
    offs = [(x - lowest[0], y - lowest[1]) for x, y, _ in points]
    squares = [where(ok, x * x + y * y, 0.0) for (x, y), ok in zip(offs, known, strict=True)]
    second, square = _largest(squares, points, alike)
    flat = _FLAT * (square + 1e-12)
    line = second[0] - lowest[0], second[1] - lowest[1]
    turns = [where(ok, line[0] * y - line[1] * x, 0.0) for (x, y), ok in zip(offs, known, strict=True)]
    left, area = _largest(turns, points, alike)
    right, opposite = _largest([-turn for turn in turns], points, alike)
    # all on one side: the point that adds most to the triangle
    only_right = area <= flat
    third = _choice(only_right, right, left)
    side = where(only_right, -1.0, 1.0)
    beyond = [
        where(ok, -minimum(side * _turn(second, third, point), side * _turn(third, lowest, point)), 0.0)
        for point, ok in zip(points, known, strict=True)
    ]
    added, more = _largest(beyond, points, alike)
    both = all_of(area > flat, opposite > flat)
    fourth, other = _choice(both, right, added), where(both, opposite, more)
    area = where(only_right, opposite, area)
    none = lowest[2] + far
    return [
        lowest,
        (second[0], second[1], where(square > 1e-18, second[2], none)),
        (third[0], third[1], where(area > flat, third[2], none)),
        (fourth[0], fourth[1], where(other > flat, fourth[2], none)),
    ]


def _turn(start: Point, end: Point, point: Point) -> Scalar:
    """Twice the area of a triangle, positive where it turns to the left."""
    return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])


def _best_face(box: Box, t: Sequence[Scalar], separations: Sequence[Scalar]) -> tuple[Scalar, _Face]:
    """The face of a box with the largest separation from another one, whose middle is at ``t`` in its axes."""
    a, b, c = separations
    by_x = all_of(a >= b, a >= c)
    by_y = b >= c

    def pick(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        return where(by_x, x, where(by_y, y, z))

    # of the axes x, y, z the two others follow in turn: y z, z x, x y
    normals, turns = box.axes, [where(x < 0.0, -1.0, 1.0) for x in t]
    side = pick(*turns)
    normal: Any = tuple(pick(normals[0][k], normals[1][k], normals[2][k]) for k in range(3))
    normal = scaled(side, normal)
    across: Any = tuple(pick(normals[1][k], normals[2][k], normals[0][k]) for k in range(3))
    along: Any = tuple(pick(normals[2][k], normals[0][k], normals[1][k]) for k in range(3))
    x, y, z = box.half
    middle = add(box.middle, scaled(pick(x, y, z), normal))
    return pick(a, b, c), _Face(middle, normal, across, along, pick(y, z, x), pick(z, x, y))


def _clipped(face: _Face, box: Box, far: Scalar) -> list[Point]:
    """Four points (x, y, height) of the nearest face of a box above a face, inside of its rectangle."""
    up: Any = tuple(dot(face.normal, axis) for axis in box.axes)
    corners: list[Point] = []
    for sign in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
        own = lowest_corner(up, box.half, sign)
        off = minus(box.middle, face.middle)
        for part, axis in zip(own, box.axes, strict=True):
            off = add(off, scaled(part, axis))
        corners.append((dot(off, face.across), dot(off, face.along), dot(off, face.normal)))
    points: list[Point] = []
    known: list[Condition] = []
    rim = _RIM * far  # boxes of one size on each other: edges on the rim count, whatever round-off says
    for k, start in enumerate(corners):
        way = minus(corners[(k + 1) % 4], start)
        low, high = _slab(start[0], way[0], face.width + rim)
        others = _slab(start[1], way[1], face.depth + rim)
        low, high = maximum(maximum(low, others[0]), 0.0), minimum(minimum(high, others[1]), 1.0)
        inside = low <= high
        points += [add(start, scaled(low, way)), add(start, scaled(high, way))]
        known += [inside, all_of(inside, high < 1.0)]  # the end of an edge is the start of the next one
    one, two = minus(corners[1], corners[0]), minus(corners[3], corners[0])
    inverse = 1.0 / (one[0] * two[1] - one[1] * two[0])
    for x, y in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
        u, v = x * face.width - corners[0][0], y * face.depth - corners[0][1]
        a, b = inverse * (u * two[1] - v * two[0]), inverse * (v * one[0] - u * one[1])
        points.append((x * face.width, y * face.depth, corners[0][2] + a * one[2] + b * two[2]))
        known.append(all_of(all_of(a >= -_RIM, a <= 1.0 + _RIM), all_of(b >= -_RIM, b <= 1.0 + _RIM)))
    return spread(points, known, far)


def _slab(start: Scalar, way: Scalar, half: Scalar) -> tuple[Scalar, Scalar]:
    """From where to where start + part·way is between −half and half."""
    moves = abs(way) > 1e-12
    inverse = 1.0 / where(moves, way, 1.0)
    one, two = (-half - start) * inverse, (half - start) * inverse
    inside = abs(start) <= half
    still = where(inside, 0.0, 2.0)
    return where(moves, minimum(one, two), still), where(moves, maximum(one, two), 1.0)


def _best_edges(
    first: Box, second: Box, way: Point, R: Sequence[Sequence[Scalar]], size: Sequence[Sequence[Scalar]]
) -> tuple[Scalar, Meeting]:
    """The pair of edges with the largest separation: their nearest points."""
    t = [dot(way, a) for a in first.axes]
    best: Scalar = -1e30
    i_best: Scalar = 0.0
    j_best: Scalar = 0.0
    for i in range(3):
        for j in range(3):
            i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
            square = 1.0 - R[i][j] * R[i][j]
            crossed = square > _CROSSED
            reach = abs(t[i2] * R[i1][j] - t[i1] * R[i2][j])
            radii = first.half[i1] * size[i2][j] + first.half[i2] * size[i1][j]
            radii = radii + second.half[j1] * size[i][j2] + second.half[j2] * size[i][j1]
            separation = where(crossed, (reach - radii) / sqrt(where(crossed, square, 1.0)), -1e30)
            better = separation > best
            best = where(better, separation, best)
            i_best, j_best = where(better, float(i), i_best), where(better, float(j), j_best)
    one, two = _axis(first, i_best), _axis(second, j_best)
    normal: Any = (
        one[1] * two[2] - one[2] * two[1],
        one[2] * two[0] - one[0] * two[2],
        one[0] * two[1] - one[1] * two[0],
    )
    square = dot(normal, normal)
    crossed = square > _CROSSED
    scale = where(dot(normal, way) > 0.0, -1.0, 1.0) / sqrt(where(crossed, square, 1.0))
    normal = scaled(scale, normal)
    edges = _edge(first, i_best, one, normal, -1.0), _edge(second, j_best, two, normal, 1.0)
    parts = _nearest_on_lines(*edges)
    points = [edge.at(part) for edge, part in zip(edges, parts, strict=True)]
    middle = scaled(0.5, add(points[0], points[1]))
    return best, Meeting(best, normal, middle)


def _axis(box: Box, number: Scalar) -> Point:
    x, y, z = box.axes
    found: Any = tuple(
        where(number < 0.5, a, where(number < 1.5, b, c)) for a, b, c in zip(x, y, z, strict=True)
    )
    return found


def _edge(box: Box, number: Scalar, along: Point, normal: Point, side: float) -> Segment:
    """The edge along an axis that is farthest to one side of a normal."""
    middle = box.middle
    own = (number < 0.5, all_of(number > 0.5, number < 1.5), number > 1.5)
    half: Any = where(own[0], box.half[0], where(own[1], box.half[1], box.half[2]))
    for is_own, axis, size in zip(own, box.axes, box.half, strict=True):
        out = where(dot(normal, axis) < 0.0, -side * size, side * size)
        middle = add(middle, scaled(where(is_own, 0.0, out), axis))
    start = minus(middle, scaled(half, along))
    return Segment(start, scaled(2.0 * half, along), 4.0 * half * half)


def _nearest_on_lines(first: Segment, second: Segment) -> tuple[Scalar, Scalar]:
    """Parts of two edges that cross where they are nearest to each other."""
    off = minus(first.start, second.start)
    b, c, f = dot(first.along, second.along), dot(first.along, off), dot(second.along, off)
    slant = first.square * second.square - b * b
    inverse = 1.0 / where(slant > 0.0, slant, 1.0)
    s, t = inverse * (b * f - c * second.square), inverse * (first.square * f - b * c)
    return minimum(maximum(s, 0.0), 1.0), minimum(maximum(t, 0.0), 1.0)


def _largest(values: Sequence[Scalar], points: Sequence[Point], equal: Scalar) -> tuple[Point, Scalar]:
    """The point of the largest value, the first one of those that differ by less than ``equal``."""
    best, (x, y, z) = values[0], points[0]
    for value, (a, b, c) in zip(values[1:], points[1:], strict=True):
        better = value > best + equal
        best = where(better, value, best)
        x, y, z = where(better, a, x), where(better, b, y), where(better, c, z)
    return (x, y, z), best


def _choice(condition: Condition, one: Any, other: Any) -> Any:
    """Number by number."""
    if isinstance(one, tuple):
        both = zip(cast("tuple[Any, ...]", one), other, strict=True)
        return tuple(_choice(condition, a, b) for a, b in both)
    return where(condition, one, other)
