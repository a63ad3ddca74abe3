"""Spheres against the simple solids of a world, over any scalar.

A solid is a row of a table (``world.COLUMNS``). ``touching`` gives a number that is negative where a sphere and a solid
touch, without square roots; ``distance`` the signed distance. Nothing branches on a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.algorithms.contact.distance import Point, box_distance, dot, plane_distance, sphere_distance
from linkwise.scalar import where


def touching(kind: str, row: Sequence[Any], point: Point, radius: Any) -> Any:
    """Negative where a sphere touches a solid.

    Args:
        kind: of the solid.
        row: its numbers.
        point: centre of the sphere [m].
        radius: of the sphere [m].
    """
    if kind == "planes":
        return plane_distance(point, _three(row, 0), row[3]) - radius
    if kind in ("boxes", "turned_boxes"):
        local, half = in_box(kind, row, point)
        out = [_above_zero(abs(x) - h) for x, h in zip(local, half, strict=True)]
        return dot(_three(out, 0), _three(out, 0)) - radius * radius
    away = to_axis(kind, row, point)
    reach = radius + row[3 if kind == "spheres" else 6]
    return dot(away, away) - reach * reach


def distance(kind: str, row: Sequence[Any], point: Point, radius: Any) -> Any:
    """Signed distance [m] of a sphere and a solid.

    Args:
        kind: of the solid.
        row: its numbers.
        point: centre of the sphere [m].
        radius: of the sphere [m].
    """
    if kind == "planes":
        return plane_distance(point, _three(row, 0), row[3]) - radius
    if kind in ("boxes", "turned_boxes"):
        return box_distance(*in_box(kind, row, point)) - radius
    away = to_axis(kind, row, point)
    return sphere_distance(away, (0.0, 0.0, 0.0)) - radius - row[3 if kind == "spheres" else 6]


def to_axis(kind: str, row: Sequence[Any], point: Point) -> Point:
    """From the nearest point of the centre or centre line to the point."""
    x, y, z = (p - s for p, s in zip(point, _three(row, 0), strict=True))
    if kind == "spheres":
        return x, y, z
    along = _three(row, 3)
    part = dot((x, y, z), along) * row[7]
    part = where(part > 0.0, part, 0.0)
    part = where(part < 1.0, part, 1.0)
    return x - part * along[0], y - part * along[1], z - part * along[2]


def in_box(kind: str, row: Sequence[Any], point: Point) -> tuple[Point, Point]:
    """The point in axes of a box, and half of its edges."""
    x, y, z = (p - c for p, c in zip(point, _three(row, 0), strict=True))
    if kind == "boxes":
        return (x, y, z), _three(row, 3)
    turned = [dot((x, y, z), _three(row, 3 + 3 * k)) for k in range(3)]
    return _three(turned, 0), _three(row, 12)


def _three(values: Sequence[Any], start: int) -> Point:
    return values[start], values[start + 1], values[start + 2]


def _above_zero(x: Any) -> Any:
    return where(x > 0.0, x, 0.0)
