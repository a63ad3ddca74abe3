"""Signed distances between spheres, capsules, planes and boxes, over any scalar.

Nothing here branches on a value, so the functions run on floats, on arrays (one lane per state or pair) and on symbols:
inside ``@linkwise.kernel`` they become machine code, C and derivatives like every other algorithm. A point is three
scalars [m]. A capsule is a segment and a radius; a sphere is a capsule whose segment has length zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from linkwise.scalar import maximum, minimum, sign, sqrt, where

Point = tuple[Any, Any, Any]
HALVINGS = 18  # of a segment while its nearest point to a box is searched
_TINY = 1e-18  # [m²] keeps the derivative of a square root finite where two axes cross
_ON_A_FACE = 1e-16  # [m²] squared distance to a box below which the normal is that of a face
_PARALLEL = 1e-12  # sin² of the angle below which two segments count as parallel


class Segment(NamedTuple):
    """From ``start`` to ``start`` + ``along``; ``square`` is its squared length, a constant, 0 for a point."""

    start: Point
    along: Point
    square: Any

    @classmethod
    def between(cls, start: Point, end: Point, square: Any) -> Segment:
        """The segment between two points.

        Args:
            start: one end [m].
            end: the other one.
            square: its squared length [m²], which must not depend on the state.
        """
        return cls(start, minus(end, start), square)

    def at(self, part: Any) -> Point:
        """The point at this part of the length, from 0 to 1."""
        (x, y, z), (u, v, w) = self.start, self.along
        return x + part * u, y + part * v, z + part * w


def nearest_parts(first: Segment, second: Segment) -> tuple[Any, Any]:
    """Where two segments are nearest to each other: parts (s, t) of their lengths, from 0 to 1.

    The minimum of a convex quadratic function over a square: s of the lines, then t for this s, then s for this t, each
    limited to [0, 1] (Ericson, Real-Time Collision Detection, 5.1.9). For parallel segments every s is a start.
    """
    offset = minus(first.start, second.start)
    b, c, f = dot(first.along, second.along), dot(first.along, offset), dot(second.along, offset)
    a, e = first.square, second.square
    slant = a * e - b * b
    s = _unit((b * f - c * e) / (maximum(slant, 0.0) + _PARALLEL * (a * e) + 1e-300))
    t = _unit((b * s + f) * _inverse(e))
    return _unit((b * t - c) * _inverse(a)), t


def nearest_part(point: Point, segment: Segment) -> Any:
    """Where a segment is nearest to a point, as a part of its length.

    Args:
        point: the point [m].
        segment: the segment.
    """
    return _unit(dot(minus(point, segment.start), segment.along) * _inverse(segment.square))


def segment_distance(first: Segment, second: Segment) -> Any:
    """Distance of two segments [m]. Less the two radii it is the signed distance of two capsules.

    Args:
        first: one segment.
        second: the other one.
    """
    s, t = nearest_parts(first, second)
    return length(minus(first.at(s), second.at(t)))


def sphere_distance(first: Point, second: Point) -> Any:
    """Distance of two points [m]. Less the two radii it is the signed distance of two spheres.

    Args:
        first: one point [m].
        second: the other one.
    """
    return length(minus(first, second))


def plane_distance(point: Point, normal: Point, height: Any) -> Any:
    """Height of a point [m] above the plane normal·x = height.

    Args:
        point: the point [m].
        normal: a unit vector.
        height: of the plane above the origin [m].
    """
    return dot(normal, point) - height


def box_distance(point: Point, half: Point) -> Any:
    """Signed distance [m] of a point to the box |x| ≤ half about the origin: negative inside.

    Args:
        point: the point in axes of the box [m].
        half: half of the edges [m].
    """
    beyond = _beyond(point, half)
    out = tuple(maximum(x, 0.0) for x in beyond)
    return length(out) + minimum(maximum(maximum(beyond[0], beyond[1]), beyond[2]), 0.0)


def box_direction(point: Point, half: Point) -> Point:
    """The direction in which the distance to the box grows fastest; its length has no meaning."""
    x, y, z = _beyond(point, half)
    inside = maximum(maximum(x, y), z) <= 0.0
    face_x = (x >= y) & (x >= z)
    face_y = (y >= z) & ~face_x
    faces = (where(face_x, 1.0, 0.0), where(face_y, 1.0, 0.0), where(face_x | face_y, 0.0, 1.0))
    parts = zip(point, (x, y, z), faces, strict=True)
    found = [sign(p) * where(inside, face, maximum(far, 0.0)) for p, far, face in parts]
    return found[0], found[1], found[2]


def box_normal(point: Point, half: Point) -> tuple[Any, Point]:
    """Signed distance of a point to the box [m], and the unit vector along which it grows, that of a face for points in
    the box or on it.

    Args:
        point: the point in axes of the box [m].
        half: half of the edges [m].
    """
    x, y, z = _beyond(point, half)
    out: Any = tuple(maximum(far, 0.0) for far in (x, y, z))
    square = dot(out, out)
    away = square > _ON_A_FACE
    face_x = (x >= y) & (x >= z)
    face_y = (y >= z) & ~face_x
    faces = (where(face_x, 1.0, 0.0), where(face_y, 1.0, 0.0), where(face_x | face_y, 0.0, 1.0))
    scale = 1.0 / sqrt(where(away, square, 1.0))
    parts = zip(point, out, faces, strict=True)
    found = [where(p < 0.0, -1.0, 1.0) * where(away, far * scale, face) for p, far, face in parts]
    inside = minimum(maximum(maximum(x, y), z), 0.0)
    return where(away, sqrt(where(away, square, 1.0)), inside), (found[0], found[1], found[2])


def nearest_part_to_box(segment: Segment, half: Point, slope: float = 0.0) -> Any:
    """Where a segment is nearest to the box, as a part of its length: to 2^-(HALVINGS + 1), by bisection, because the
    distance is a convex function along the segment.

    Args:
        segment: the segment in axes of the box.
        half: half of the edges [m].
        slope: where the distance falls or rises by this part of the way, instead of where it is smallest: a negative
            and a positive one give the ends of the part of the segment that lies along a face.
    """
    low, high = 0.0, 1.0
    size = sqrt(segment.square) if slope else 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        way = box_direction(segment.at(middle), half)
        falls = dot(way, segment.along) < (slope * size * length(way) if slope else 0.0)
        low, high = where(falls, middle, low), where(falls, high, middle)
    return 0.5 * (low + high)


def segment_box_distance(segment: Segment, half: Point) -> Any:
    """Distance of a segment to the box |x| ≤ half [m], negative where it is inside: too small by at most the length of
    the segment times 2^-HALVINGS, never too large.

    Args:
        segment: the segment in axes of the box.
        half: half of the edges [m].
    """
    part = nearest_part_to_box(segment, half)
    return box_distance(segment.at(part), half) - box_error(segment)


def box_error(segment: Segment) -> Any:
    """How far bisection may be from the nearest point [m]."""
    return sqrt(segment.square) * 0.5 ** (HALVINGS + 1)


def dot(u: Point, v: Point) -> Any:
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def length(u: Any) -> Any:
    """|u|, at least 1e-9."""
    return sqrt(maximum(dot(u, u), _TINY))


def minus(u: Point, v: Point) -> Point:
    return u[0] - v[0], u[1] - v[1], u[2] - v[2]


def _unit(x: Any) -> Any:
    """x limited to [0, 1]."""
    return minimum(maximum(x, 0.0), 1.0)


def _inverse(square: Any) -> Any:
    """1/square of a constant, 0 for a point."""
    square = np.asarray(square, dtype=float)
    found = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0.0)
    return float(found) if found.ndim == 0 else found


def _beyond(point: Point, half: Point) -> Point:
    return abs(point[0]) - half[0], abs(point[1]) - half[1], abs(point[2]) - half[2]
