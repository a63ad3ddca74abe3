"""A first guess of the speeds along a path, at which friction is counted in the first pass. Over any scalar.

With a part of the torques that are left at rest, from rest on at both ends, and below a part of what bends allow. Two
passes with friction that changes as at these speeds give the time to 1e-4; from rest it took three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.motion.shortest_time import reachability as reach
from linkwise.scalar import Scalar, where

RISE = 0.35
"""Part of the torques that are left at rest."""
CAP = 0.25
"""Part of the squares of speeds that bends allow."""


def left_at_rest(
    a: Sequence[Any], b: Sequence[Any], rooms: Sequence[tuple[Any, Any]], cell: Any, most: Any
) -> list[list[Scalar]]:
    """By how much x may change in a cell, and how large it may be.

    Args:
        a: torques and accelerations of all rows by u.
        b: by x.
        rooms: what is left to the limits of each row at rest, above and below.
        cell: of ``OneCall``.
        most: x that limits of speeds allow.
    """
    along = across = 0.0 * most[0]
    for by_u, by_x, (above, below) in zip(a, b, rooms, strict=True):
        room = where(above < below, above, below)
        inverse = 1.0 / where(room > 0.0, room, 1.0)
        along = reach.larger(along, reach.abs_of(by_u) * inverse)
        across = reach.larger(across, reach.abs_of(by_x) * inverse)
    rise = 2.0 * cell[1] / where(along > 0.0, along, 1.0)
    cap = 1.0 / where(across * most[0] > 1.0, across, 1.0 / most[0])
    return [[where(cell[2] > 0.5, RISE * rise, 0.0 * rise)], [CAP * cap]]


def risen(x: Any, rise: Any, cap: Any) -> list[list[Scalar]]:
    """The guess at the end of a cell, from rest on."""
    following = x[0] + rise[0]
    return [[where(following < cap[0], following, cap[0])]]


def fallen(x: Any, following: Any, rise: Any, cell: Any) -> list[list[Scalar]]:
    """The guess at the beginning of a cell, from which its end is reached; at rest where there is no cell."""
    before = following[0] + rise[0]
    return [[where(cell[2] > 0.5, where(before < x[0], before, x[0]), 0.0 * x[0])]]
