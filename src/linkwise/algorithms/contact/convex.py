"""Two convex solids: the direction along which they are farthest apart, and up to four points of what meets there.

For every unit vector n the solids are n·p − h₁(−n) − h₂(n) apart along n, with their supports h. The largest of these
numbers is the signed distance, and each of them is a lower bound of it. The search starts from the best one of the
line between the middles and the normals of faces. Then the direction of the nearest points of the solids, made a
little smaller, is tried; along the better one the first solid is moved out of the second, and the nearest points are
searched again. This direction is never a worse one, and the search goes on from there. Nearest points are found by the
method of E. Gilbert, D. Johnson and S. Keerthi ("A fast procedure for computing the distance between complex objects
in three-dimensional space", 1988), with at most ``ROUNDS`` steps in all. Where solids are deep in each other there may
be a shorter way out than the one that is found. The gap is too deep then, never too large.

Points of contact are corners of the overlap of two hexagons: points of each solid that are farthest in six directions
``TILT`` from n. Round caps are hexagons, therefore. Nothing branches on a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from linkwise.algorithms.contact.boxes import Meeting, add, scaled, spread
from linkwise.algorithms.contact.distance import Point, dot, minus
from linkwise.model.hull import convex_hull
from linkwise.model.shapes import Shape
from linkwise.scalar import (
    Condition,
    Scalar,
    all_of,
    like,
    maximum,
    minimum,
    negated,
    sqrt,
    where,
    while_loop,
)
from linkwise.spatial import Matrix, Vector

APART = 1e-3
"""Part of the sizes by which solids are moved apart where nearest points are searched."""
ROUNDS = 48
TILT = 0.02
"""Tangent of the angle up to which a face counts as one that meets another."""
MOST_FACES = 12
"""Faces of a hull whose normals are tried; of one with more the axes of its frame are."""
CORE = 0.95
"""How much of two solids without radii is left where their nearest points are searched first."""
COARSE = 0.999
"""Part of a squared distance to which a step must make it smaller there."""
_TINY = 1e-24
_SAME = 1e-14  # part of a squared length by which a triangle must be wider than a line
_SMALLER = 1e-12  # part by which a step must make the squared distance smaller
_STAYS = 1e-6  # part of ``APART`` by which a direction must be better than the last one
_RIM = 1e-7  # part of the sizes by which a point may be beyond an edge

Triple = tuple[Point, Point, Point]


class Pair(NamedTuple):
    """Two solids, the first one at a pose in the axes of the second."""

    first: Shape
    second: Shape
    rotation: Matrix
    position: Point

    def out(self, point: Point) -> Point:
        """A point of the first solid in the axes of the second."""
        x, y, z = self.rotation @ Vector(*point)
        return x + self.position[0], y + self.position[1], z + self.position[2]

    def own(self, way: Point) -> Point:
        """A direction in the axes of the first solid."""
        x, y, z = self.rotation.transposed_times(Vector(*way))
        return x, y, z

    @property
    def radii(self) -> float:
        return radius(self.first) + radius(self.second)

    @property
    def size(self) -> float:
        return extent(self.first) + extent(self.second)

    @property
    def between(self) -> Point:
        """From the middle of the second solid to that of the first."""
        return minus(self.out(middle_of(self.first)), middle_of(self.second))

    def apart(self, way: Point) -> Scalar:
        """How far the solids are apart along a unit vector."""
        back = scaled(-1.0, self.own(way))
        return dot(way, self.position) - reach(self.first, back) - reach(self.second, way) - self.radii


# -- supports ---------------------------------------------------------------------------------------------------------


def radius(shape: Shape) -> float:
    """What is around the core of a sphere or capsule."""
    return float(shape.sizes[0]) if shape.kind in ("sphere", "capsule") else 0.0


def extent(shape: Shape) -> float:
    """More than the distance of any point from the middle."""
    if shape.kind == "hull":
        return max(math.hypot(*point) for point in shape.points)
    return float(sum(shape.sizes))


def middle_of(shape: Shape) -> Point:
    """The mean of a hull's corners; the origin for all others."""
    if shape.kind != "hull":
        return 0.0, 0.0, 0.0
    x, y, z = np.array(shape.points).mean(axis=0).tolist()
    return x, y, z


def support(shape: Shape, way: Point) -> Point:
    """The point of a solid that is farthest along a direction, in its own axes; of its core where it is round."""
    x, y, z = way
    if shape.kind == "sphere":
        return 0.0, 0.0, 0.0
    if shape.kind == "capsule":
        return 0.0, 0.0, _signed(z, 0.5 * shape.sizes[1])
    if shape.kind == "box":
        a, b, c = (0.5 * size for size in shape.sizes)
        return _signed(x, a), _signed(y, b), _signed(z, c)
    if shape.kind == "cylinder":
        rim, half = shape.sizes[0], 0.5 * shape.sizes[1]
        scale = rim / sqrt(x * x + y * y + _TINY * (z * z) + 1e-300)
        return scale * x, scale * y, _signed(z, half)
    if shape.kind == "ellipsoid":
        a, b, c = shape.sizes
        scale = 1.0 / sqrt(a * a * (x * x) + b * b * (y * y) + c * c * (z * z) + 1e-300)
        return (a * a * scale) * x, (b * b * scale) * y, (c * c * scale) * z
    corners: Any = shape.points
    best, point = dot(way, corners[0]), corners[0]
    for corner in corners[1:]:
        value = dot(way, corner)
        better = value > best
        best, point = where(better, value, best), _either(better, corner, point)
    return point


def reach(shape: Shape, way: Point) -> Scalar:
    """How far a solid (of a sphere or capsule the core) reaches along a direction, times its length."""
    x, y, z = way
    if shape.kind == "sphere":
        return 0.0
    if shape.kind == "capsule":
        return (0.5 * shape.sizes[1]) * abs(z)
    if shape.kind == "box":
        a, b, c = (0.5 * size for size in shape.sizes)
        return a * abs(x) + b * abs(y) + c * abs(z)
    if shape.kind == "cylinder":
        return shape.sizes[0] * sqrt(x * x + y * y + 1e-300) + (0.5 * shape.sizes[1]) * abs(z)
    if shape.kind == "ellipsoid":
        a, b, c = (size * size for size in shape.sizes)
        return sqrt(a * (x * x) + b * (y * y) + c * (z * z) + 1e-300)
    corners: Any = shape.points
    best = dot(way, corners[0])
    for corner in corners[1:]:
        best = maximum(best, dot(way, corner))
    return best


@lru_cache(maxsize=256)
def _faces(points: Sequence[Any]) -> tuple[Point, ...]:
    """Outward unit normals of the faces of a hull; none where it is flat or has too many."""
    array = np.array(points)
    try:
        triangles = array[convex_hull(array)]
    except ValueError:
        return ()
    normals: list[np.ndarray] = []
    for a, b, c in triangles:
        normal = np.cross(b - a, c - a)
        normal = normal / max(math.sqrt(float((normal * normal).sum())), 1e-300)
        if not any(float((normal * other).sum()) > 1.0 - 1e-9 for other in normals):
            normals.append(normal)
    return tuple(tuple(each.tolist()) for each in normals) if len(normals) <= MOST_FACES else ()


def face_normals(shape: Shape, towards: Point) -> list[Point]:
    """Outward normals of faces of a solid that may be nearest to what is in a direction, in its own axes."""
    x, y, z = towards
    if shape.kind == "cylinder":
        return [(0.0, 0.0, _signed(z, 1.0))]
    if shape.kind == "box":
        return [(_signed(x, 1.0), 0.0, 0.0), (0.0, _signed(y, 1.0), 0.0), (0.0, 0.0, _signed(z, 1.0))]
    if shape.kind == "hull":
        known = list(_faces(tuple(shape.points)))
        return known or face_normals(Shape("hull", "box", (1.0, 1.0, 1.0)), towards)
    return []


# -- the direction ----------------------------------------------------------------------------------------------------


class Simplex(NamedTuple):
    """Three points of each solid, in its own axes, between which the nearest points are, and by how much the first
    solid was moved; the best direction before the last search. Constants for derivatives."""

    first: Triple
    second: Triple
    shift: Point
    best: Point


def _nearest_corners(pair: Pair, way: Point, apart: Scalar) -> Simplex:
    """The nearest points of the solids, made smaller about their middles by ``CORE``; then those of the solids as they
    are, the first one moved out of the second by what it is inside, along the direction of the nearest points, or the
    one that was given where this is better. The last is repeated until the direction stays.

    Args:
        pair: the solids.
        way: the direction that is known.
        apart: how far their cores are apart along it.
    """
    least, between = APART * pair.size, pair.between

    def farthest(v: Point) -> tuple[Point, Point, Point]:
        a = support(pair.first, pair.own(scaled(-1.0, v)))
        b = support(pair.second, v)
        return a, b, minus(pair.out(a), b)

    def active(count: Scalar, going: Scalar, *_: Scalar) -> Condition:
        return all_of(count < float(ROUNDS), going > 0.5)

    def body(count: Scalar, _: Scalar, part: Scalar, last: Scalar, *state: Scalar) -> Any:
        best: Any = state[:3]
        v: Any = state[30:33]
        shift: Any = state[33:]
        known = [state[9 * k + 3 : 9 * k + 12] for k in range(3)]
        a, b, w = farthest(v)
        smaller = add(add(scaled(part, w), scaled(1.0 - part, between)), shift)
        new = (*a, *b, *smaller)
        others, nearest, square = _nearest_simplex(new, known)
        length = dot(v, v)
        is_small = part < 1.0
        wanted = where(is_small, COARSE, 1.0 - _SMALLER) * length
        nearer = all_of(square < wanted, length > (_STAYS * least) * (_STAYS * least))
        # how far the solids are apart along the direction, and the next start
        n = scaled(1.0 / sqrt(length + 1e-300), v)
        own = dot(n, w)
        better = own > last + _STAYS * least
        way, most = _either(better, n, best), where(better, own, last)
        moved = scaled(maximum(least - most, 0.0), way)
        start = (*a, *b, *add(w, moved))
        ends = all_of(negated(nearer), negated(better | is_small))
        later = (*best, *new, *others[0], *others[1], *nearest, *shift)
        restart = (*way, *start, *start, *start, *start[6:], *moved)
        return (
            count + 1.0,
            where(ends, 0.0, 1.0),
            where(nearer, part, 1.0),
            where(nearer, last, most),
            *(where(nearer, x, where(ends, z, y)) for x, y, z in zip(later, restart, state, strict=True)),
        )

    zero = 0.0 * pair.position[0]
    part = 1.0 if pair.radii else CORE
    shift = (0.0, 0.0, 0.0) if part < 1.0 else scaled(maximum(least - apart, 0.0), way)
    a, b, w = farthest(way)
    start = (*a, *b, *add(add(scaled(part, w), scaled(1.0 - part, between)), shift))
    first = tuple(zero + x for x in (*way, *start, *start, *start, *start[6:], *shift))
    loop = while_loop(active, body, (zero, zero + 1.0, zero + part, zero + apart, *first))
    best, held = [like(x, 0.0) for x in loop[4:7]], [like(x, 0.0) for x in loop[7:]]
    own: Any = tuple(tuple(held[9 * k : 9 * k + 3]) for k in range(3))
    other: Any = tuple(tuple(held[9 * k + 3 : 9 * k + 6]) for k in range(3))
    return Simplex(own, other, (held[30], held[31], held[32]), (best[0], best[1], best[2]))


def _nearest_simplex(new: Sequence[Any], known: Sequence[Sequence[Any]]) -> tuple[list[Any], Point, Scalar]:
    """(the two points that are kept beside the new one, the point nearest to the origin, its squared length)."""
    w: Any = tuple(new[6:])
    ways = [minus(tuple(each[6:]), w) for each in known]
    squares = [dot(way, way) for way in ways]
    along = [-dot(w, way) for way in ways]
    others: list[Any] = [known[0], known[0]]
    nearest, _ = _on_segment(w, ways[0], squares[0], along[0])
    best = dot(nearest, nearest)
    for k in (1, 2):
        point, _ = _on_segment(w, ways[k], squares[k], along[k])
        square = dot(point, point)
        better = square < best
        best, nearest = where(better, square, best), _either(better, point, nearest)
        others = [_either(better, tuple(known[k]), tuple(each)) for each in others]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        inside, point, _ = _in_triangle(w, ways[i], ways[j], squares[i], squares[j], along[i], along[j])
        square = dot(point, point)
        better = all_of(inside, square < best)
        best, nearest = where(better, square, best), _either(better, point, nearest)
        pair = known[i], known[j]
        others = [_either(better, tuple(a), tuple(b)) for a, b in zip(pair, others, strict=True)]
    return others, nearest, best


def _on_segment(w: Point, way: Point, square: Scalar, along: Scalar) -> tuple[Point, Scalar]:
    """(the point of a segment nearest to the origin, its part of the way)."""
    long = square > _TINY
    part = where(long, along / where(long, square, 1.0), 0.0)
    part = minimum(maximum(part, 0.0), 1.0)
    return add(w, scaled(part, way)), part


def _in_triangle(
    w: Point, one: Point, two: Point, first: Scalar, second: Scalar, along: Scalar, across: Scalar
) -> tuple[Condition, Point, tuple[Scalar, Scalar]]:
    """(whether the foot of the origin lies in a triangle, the foot, its parts of the two edges at ``w``)."""
    mixed = dot(one, two)
    wide = first * second - mixed * mixed
    is_wide = wide > _SAME * (first * second)
    inverse = 1.0 / where(is_wide, wide, 1.0)
    a, b = (
        inverse * (along * second - across * mixed),
        inverse * (across * first - along * mixed),
    )
    inside = all_of(all_of(is_wide, a > 0.0), all_of(b > 0.0, a + b < 1.0))
    return inside, add(w, add(scaled(a, one), scaled(b, two))), (a, b)


def _direction_of(pair: Pair, simplex: Simplex) -> tuple[Point, Point]:
    """(unit vector from the second solid to the first, the middle between their nearest points)."""
    own, other, shift, _ = simplex
    ends = [add(minus(pair.out(a), b), shift) for a, b in zip(own, other, strict=True)]
    w, one, two = ends[0], minus(ends[1], ends[0]), minus(ends[2], ends[0])
    squares, along = (dot(one, one), dot(two, two)), (-dot(w, one), -dot(w, two))
    nearest, first = _on_segment(w, one, squares[0], along[0])
    parts: Any = (first, 0.0)
    point, second = _on_segment(w, two, squares[1], along[1])
    better = dot(point, point) < dot(nearest, nearest)
    nearest, parts = _either(better, point, nearest), _either(better, (0.0, second), parts)
    inside, point, both = _in_triangle(w, one, two, *squares, *along)
    nearest, parts = _either(inside, point, nearest), _either(inside, both, parts)
    at = [1.0 - parts[0] - parts[1], parts[0], parts[1]]
    on_second: Any = tuple(
        at[0] * a + at[1] * b + at[2] * c for a, b, c in zip(other[0], other[1], other[2], strict=True)
    )
    square = dot(nearest, nearest)
    known = square > _TINY
    scale = 1.0 / sqrt(where(known, square, 1.0))
    way = _either(known, scaled(scale, nearest), (0.0, 0.0, 1.0))
    return way, add(on_second, scaled(0.5, nearest))


def direction(pair: Pair) -> tuple[Point, Scalar, Point]:
    """(unit vector from the second solid to the first, how far they are apart along it, a point between them)."""
    between = pair.between
    square = dot(between, between)
    known = square > _TINY
    scale = 1.0 / sqrt(where(known, square, 1.0))
    way = _either(known, scaled(scale, between), (0.0, 0.0, 1.0))
    best = pair.apart(way)
    tried = face_normals(pair.second, between)
    for normal in face_normals(pair.first, scaled(-1.0, pair.own(between))):
        x, y, z = pair.rotation @ Vector(*normal)
        tried.append((-x, -y, -z))
    for each in tried:
        apart = pair.apart(each)
        better = apart > best
        best, way = where(better, apart, best), _either(better, each, way)
    simplex = _nearest_corners(pair, way, best + pair.radii)
    nearest, middle = _direction_of(pair, simplex)
    for each, nearly in ((simplex.best, -_RIM), (nearest, _RIM)):
        apart = pair.apart(each)
        better = apart > best - nearly * pair.size
        best, way = where(better, apart, best), _either(better, each, way)
    if "ellipsoid" in (pair.first.kind, pair.second.kind):
        way, best = _steeper(pair, way, best)
        way, best = _steeper(pair, way, best)
    return way, best, middle


def _steeper(pair: Pair, way: Point, apart: Scalar) -> tuple[Point, Scalar]:
    """A step of Newton's method on the sphere of directions, where it makes the solids farther apart."""
    t, u, n = axes(way)
    one, two = (scaled(-1.0, pair.own(each)) for each in (t, u))
    back = scaled(-1.0, pair.own(n))
    ends = minus(pair.out(support(pair.first, back)), support(pair.second, n))
    slope = dot(t, ends), dot(u, ends)
    curved = [
        a + b
        for a, b in zip(_curvature(pair.first, back, one, two), _curvature(pair.second, n, t, u), strict=True)
    ]
    round_part = pair.radii + apart
    a, b, c = curved[0] + round_part, curved[1], curved[2] + round_part
    wide = a * c - b * b
    known = all_of(wide > _TINY, a > 0.0)
    inverse = 1.0 / where(known, wide, 1.0)
    x, y = inverse * (c * slope[0] - b * slope[1]), inverse * (a * slope[1] - b * slope[0])
    moved = add(n, add(scaled(x, t), scaled(y, u)))
    moved = scaled(1.0 / sqrt(1.0 + x * x + y * y), moved)
    new = pair.apart(moved)
    better = all_of(known, new > apart)
    return _either(better, moved, way), where(better, new, apart)


def _curvature(shape: Shape, n: Point, t: Point, u: Point) -> tuple[Scalar, Scalar, Scalar]:
    """Second derivatives of the support of an ellipsoid along two directions across n; 0 for other solids."""
    if shape.kind != "ellipsoid":
        return 0.0, 0.0, 0.0
    squares: Any = tuple(size * size for size in shape.sizes)

    def product(a: Point, b: Point) -> Scalar:
        return squares[0] * a[0] * b[0] + squares[1] * a[1] * b[1] + squares[2] * a[2] * b[2]

    scale = 1.0 / sqrt(product(n, n) + 1e-300)
    across, along = scale * product(n, t), scale * product(n, u)
    return (
        scale * (product(t, t) - across * across),
        scale * (product(t, u) - across * along),
        scale * (product(u, u) - along * along),
    )


def axes(normal: Point) -> tuple[Point, Point, Point]:
    """(t, u, n): unit vectors across and along a normal; those of the world for a normal along z.

    T. Duff et al., "Building an orthonormal basis, revisited", 2017.
    """
    x, y, z = normal
    side = where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (side + z)
    b = x * y * a
    return (1.0 + side * x * x * a, side * b, -(side * x)), (b, side + y * y * a, -y), normal


# -- points -----------------------------------------------------------------------------------------------------------

_TURNS = [(math.cos(a), math.sin(a)) for a in (0.2 + k * math.pi / 3.0 for k in range(6))]


def meetings(pair: Pair) -> list[Meeting]:
    """Up to four candidates in the axes of the second solid; open ones where fewer are needed."""
    way, apart, middle = direction(pair)
    for shape, sign in ((pair.first, -1.0), (pair.second, 1.0)):
        if shape.kind in ("sphere", "ellipsoid"):
            if sign < 0.0:
                end = pair.out(support(shape, scaled(-1.0, pair.own(way))))
            else:
                end = support(shape, way)
            return [Meeting(apart, way, add(end, scaled(sign * (radius(shape) + 0.5 * apart), way)))]
    t, u, n = axes(way)
    level = reach(pair.second, way)  # of the second solid along n
    upper = _hexagon(pair, True, (t, u, n), level)
    lower = _hexagon(pair, False, (t, u, n), level)
    far = 4.0 * pair.size
    points, known = _overlap(upper, lower, _RIM * far)
    chosen = spread([(x, y, z - pair.radii) for x, y, z in points], known, far)
    any_known: Any = known[0]
    for each in known[1:]:
        any_known = any_known | each
    # round surfaces: the points are beside the lowest one
    lift = minimum(maximum(chosen[0][2] - apart, 0.0), TILT * TILT * pair.size)
    found: list[Meeting] = []
    for k, (x, y, gap) in enumerate(chosen):
        gap = gap - lift
        if k == 0:
            gap = where(any_known, gap, apart)
            x, y = (where(any_known, a, dot(axis, middle)) for a, axis in ((x, t), (y, u)))
        height = level + radius(pair.second) + 0.5 * gap
        found.append(Meeting(gap, way, add(scaled(height, n), add(scaled(x, t), scaled(y, u)))))
    return found


def _hexagon(pair: Pair, is_first: bool, base: Triple, level: Scalar) -> list[Point]:
    """Six points of a solid near its farthest one towards the other: places across the normal, and heights over the
    farthest point of the second solid. Counter-clockwise."""
    t, u, n = base
    found: list[Point] = []
    for c, s in _TURNS:
        side = add(scaled(TILT * c, t), scaled(TILT * s, u))
        if is_first:
            point = pair.out(support(pair.first, pair.own(minus(side, n))))
        else:
            point = support(pair.second, add(side, n))
        found.append((dot(t, point), dot(u, point), dot(n, point) - level))
    return found


def _overlap(upper: list[Point], lower: list[Point], rim: float) -> tuple[list[Point], list[Condition]]:
    """Places where corners of the overlap of two hexagons may be, with the height of the upper one over the lower one,
    and which of them are."""
    up, low = _slopes(upper), _slopes(lower)
    points: list[Point] = []
    known: list[Condition] = []
    walls = _walls(lower, rim)
    for k, start in enumerate(upper):
        way = minus(upper[(k + 1) % 6], start)
        first, last = _cut(start, way, walls)
        inside = first <= last
        for part, ok in ((first, inside), (last, all_of(inside, last < 1.0))):
            x, y, z = add(start, scaled(part, way))
            points.append((x, y, z - _height(lower[0], low, x, y)))
            known.append(ok)
    walls = _walls(upper, rim)
    for x, y, z in lower:
        points.append((x, y, _height(upper[0], up, x, y) - z))
        ok: Any = True
        for a, b, c in walls:
            ok = all_of(ok, a * x + b * y + c >= 0.0)
        known.append(ok)
    return points, known


def _walls(corners: list[Point], rim: float) -> list[Point]:
    """Lines a x + b y + c ≥ 0 around a hexagon: along its edges, and across the six directions."""
    found: list[Point] = []
    for k, (x, y, _) in enumerate(corners):
        i, j, _ = corners[(k + 1) % 6]
        a, b = y - j, i - x
        found.append((a, b, rim * (abs(a) + abs(b)) - (a * x + b * y)))
        c, s = _TURNS[k]
        found.append((-c, -s, c * x + s * y + rim))
    return found


def _cut(start: Point, way: Point, walls: list[Point]) -> tuple[Scalar, Scalar]:
    """From where to where start + part·way is inside of all walls; the second is smaller than the first if nowhere."""
    low: Scalar = 0.0
    high: Scalar = 1.0
    for a, b, c in walls:
        value, slope = a * start[0] + b * start[1] + c, a * way[0] + b * way[1]
        moves = abs(slope) > 1e-15
        part = -value / where(moves, slope, 1.0)
        low = maximum(low, where(moves, where(slope > 0.0, part, 0.0), where(value < 0.0, 2.0, 0.0)))
        high = minimum(high, where(moves, where(slope > 0.0, 1.0, part), 1.0))
    return low, high


def _slopes(corners: list[Point]) -> tuple[Scalar, Scalar]:
    """Slopes of the plane through a hexagon, from the two diagonals that are across each other most; 0 for a line."""
    ways = [minus(corners[k + 3], corners[k]) for k in range(3)]
    best: Scalar = 0.0
    found: Any = (0.0, 0.0)
    for one, two in ((ways[0], ways[1]), (ways[1], ways[2]), (ways[2], ways[0])):
        area = one[0] * two[1] - one[1] * two[0]
        size = dot(one, one) * dot(two, two)
        wide = all_of(abs(area) > best, area * area > 1e-6 * size)
        inverse = 1.0 / where(wide, area, 1.0)
        own = inverse * (one[2] * two[1] - two[2] * one[1]), inverse * (two[2] * one[0] - one[2] * two[0])
        best, found = where(wide, abs(area), best), _either(wide, own, found)
    return found


def _height(corner: Point, slopes: tuple[Scalar, Scalar], x: Scalar, y: Scalar) -> Scalar:
    return corner[2] + slopes[0] * (x - corner[0]) + slopes[1] * (y - corner[1])


def _either(condition: Condition, one: Any, other: Any) -> Any:
    """Number by number."""
    return tuple(where(condition, a, b) for a, b in zip(one, other, strict=True))


def _signed(x: Scalar, size: float) -> Scalar:
    return where(x < 0.0, -size, size)
