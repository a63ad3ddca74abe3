"""Closed-form inverse kinematics of six axes over scalars, by subproblems of one or two turns.

B. Paden's subproblems as in R. Murray, Z. Li, S. Sastry, 1994, ch. 3, and A. Elias, J. Wen, "IK-Geo: unified robot
inverse kinematics using subproblem decomposition", 2022. An angle is a pair (cosine, sine) throughout. Each solution
has a number that says how far the equations are from having a solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms.dense import added as add
from linkwise.algorithms.dense import cross
from linkwise.motion.kinematics.arm_geometry import THREE_PARALLEL, WRIST_PARALLEL
from linkwise.scalar import Condition, Scalar, maximum, minimum, sqrt, where

Vector = list[Scalar]
Turn = tuple[Scalar, Scalar]  # cosine and sine
SLACK = 1e-9  # relative: by how much an equation may miss a solution
STRAIGHT = 1e-24  # squares of vectors, relative: shorter ones have no direction


@dataclass(frozen=True)
class Branch:
    """One solution: six turns, and by how much its equations miss (not above 0: a solution)."""

    turns: tuple[Turn, ...]
    missed: Scalar


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def minus(a: Sequence[Any], b: Sequence[Any]) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


def turned(axis: Sequence[Any], turn: Turn, v: Sequence[Any], back: bool = False) -> Vector:
    """A vector turned about an axis, or turned back."""
    c, s = turn
    s = -s if back else s
    along, normal = dot(axis, v), cross(axis, v)
    return [c * x + s * n + (1.0 - c) * (along * h) for x, n, h in zip(v, normal, axis, strict=True)]


def applied(R: Sequence[Sequence[Any]], v: Sequence[Any]) -> Vector:
    return [dot(row, v) for row in R]


def onto(axis: Sequence[Any], v: Sequence[Any], w: Sequence[Any]) -> Turn:
    """The turn about an axis that brings v's part across it onto w's; none where they have no such part."""
    return onto_or_free(axis, v, w)[0]


def onto_or_free(axis: Sequence[Any], v: Sequence[Any], w: Sequence[Any]) -> tuple[Turn, Condition]:
    """The turn of ``onto``, and whether any other would do as well, as a part across the axis is missing."""
    across = dot(axis, v)
    c, s = dot(v, w) - across * dot(axis, w), dot(axis, cross(v, w))
    square = c * c + s * s
    sizes = dot(v, v) * dot(w, w)
    points = square > STRAIGHT * sizes
    per = 1.0 / sqrt(where(points, square, 1.0))
    return (where(points, c * per, 1.0), where(points, s * per, 0.0)), square <= STRAIGHT * sizes


def levelled(a: Scalar, b: Scalar, c: Scalar) -> tuple[Turn, Turn, Scalar]:
    """Both turns with a cos x + b sin x = c, and by how much there is none."""
    square = a * a + b * b
    room = square - c * c
    safe = where(square > 0.0, square, 1.0)
    a = where(square > 0.0, a, 1.0)  # any turn will do where nothing depends on it
    root = sqrt(maximum(room, 0.0))
    # beyond the last solution: the nearest angle, a unit vector all the same
    along = where(room > 0.0, c, where(c > 0.0, sqrt(safe), -sqrt(safe)))
    x, y = along / safe, root / safe
    first = (a * x - b * y, b * x + a * y)
    second = (a * x + b * y, b * x - a * y)
    return first, second, -room - SLACK * maximum(square, c * c)


def heights(
    axis: Sequence[Any], v: Sequence[Any], direction: Sequence[Any], height: Any
) -> tuple[Turn, Turn, Scalar]:
    """Both turns about an axis that bring v to a height along a direction: direction · R v = height."""
    along = dot(axis, v)
    level = dot(axis, direction)
    a = dot(direction, v) - along * level
    return levelled(a, dot(direction, cross(axis, v)), height - along * level)


def distances(
    axis: Sequence[Any], v: Sequence[Any], from_: Sequence[Any], square: Any
) -> tuple[Turn, Turn, Scalar]:
    """Both turns about an axis with |from + R v|² = square."""
    return heights(axis, v, from_, 0.5 * (square - dot(from_, from_) - dot(v, v)))


def solutions(
    kind: str, axes: Sequence[Sequence[Any]], points: Sequence[Sequence[Any]], R: list[Vector], p: Vector
) -> list[Branch]:
    """All branches for e₁ … e₆ = (R, p).

    Args:
        kind: of the arm.
        axes: six unit vectors; numbers, or scalars if one joint of seven has an angle.
        points: on the axes; those of axes that meet are where they do.
        R: rotation.
        p: position.
    """
    if kind == THREE_PARALLEL:
        return _three_parallel(axes, points, R, p)
    first = _parallel if kind == WRIST_PARALLEL else _meeting
    wrist = add(applied(R, points[5]), p)
    branches: list[Branch] = []
    for turns, missed in first(axes, points, wrist):
        branches += _with_wrist(axes, R, turns, missed)
    return branches


def _parallel(
    axes: Sequence[Sequence[Any]], points: Sequence[Sequence[Any]], wrist: Vector
) -> list[tuple[tuple[Turn, Turn, Turn], Scalar]]:
    """Turns 1, 2, 3 that bring the wrist to a point; 2 parallel to 3."""
    h1, h2, h3 = axes[:3]
    to_second, to_third, to_wrist = (minus(points[k + 1], points[k]) for k in range(3))
    v = minus(wrist, points[0])
    level = dot(h2, add(add(to_second, to_third), to_wrist))
    back = [-x for x in h1]
    found: list[tuple[tuple[Turn, Turn, Turn], Scalar]] = []
    *waists, missed = heights(back, v, h2, level)
    for waist in waists:
        reached = minus(turned(h1, waist, v, back=True), to_second)
        *elbows, too_far = distances(h3, to_wrist, to_third, dot(reached, reached))
        for elbow in elbows:
            bent = add(to_third, turned(h3, elbow, to_wrist))
            found.append(((waist, onto(h2, bent, reached), elbow), maximum(missed, too_far)))
    return found


def _meeting(
    axes: Sequence[Sequence[Any]], points: Sequence[Sequence[Any]], wrist: Vector
) -> list[tuple[tuple[Turn, Turn, Turn], Scalar]]:
    """Turns 1, 2, 3 that bring the wrist to a point; 1 meets 2."""
    h1, h2, h3 = axes[:3]
    to_third, to_wrist = minus(points[2], points[1]), minus(points[3], points[2])
    v = minus(wrist, points[0])
    found: list[tuple[tuple[Turn, Turn, Turn], Scalar]] = []
    *elbows, too_far = distances(h3, to_wrist, to_third, dot(v, v))
    for elbow in elbows:
        bent = add(to_third, turned(h3, elbow, to_wrist))
        *lifts, missed = heights(h2, bent, h1, dot(h1, v))
        for lift in lifts:
            waist = onto(h1, turned(h2, lift, bent), v)
            found.append(((waist, lift, elbow), maximum(missed, too_far)))
    return found


def _with_wrist(
    axes: Sequence[Sequence[Any]], R: list[Vector], first: tuple[Turn, ...], missed: Scalar
) -> list[Branch]:
    """Turns 4, 5, 6 for the rotation that is left after 1, 2, 3."""
    h4, h5, h6 = axes[3:]
    probe = _across(h6)

    def left(v: Sequence[Any]) -> Vector:
        out = applied(R, v)
        for axis, turn in zip(axes, first, strict=False):
            out = turned(axis, turn, out, back=True)
        return out

    goal, side = left(h6), left(probe)
    *bends, apart = heights(h5, h6, h4, dot(h4, goal))
    branches: list[Branch] = []
    for bend in bends:
        fourth = onto(h4, turned(h5, bend, h6), goal)
        rest = turned(h5, bend, turned(h4, fourth, side, back=True), back=True)
        branches.append(Branch((*first, fourth, bend, onto(h6, probe, rest)), maximum(missed, apart)))
    return branches


def _three_parallel(
    axes: Sequence[Sequence[Any]], points: Sequence[Sequence[Any]], R: list[Vector], p: Vector
) -> list[Branch]:
    """2, 3, 4 parallel and 5 meets 6: turns 1, 5, 6 and the sum of the parallel ones first, then 2, 3, 4."""
    h1, h2, h3, h4, h5, h6 = axes
    senses = [dot(h2, h3), dot(h2, h4)]  # 1 or −1
    steps = [minus(points[k + 1], points[k]) for k in range(4)]
    v = minus(add(applied(R, points[5]), p), points[0])
    level = dot(h2, add(add(steps[0], steps[1]), add(steps[2], steps[3])))
    probe = _across(h6)
    goal, side = applied(R, h6), applied(R, probe)
    branches: list[Branch] = []
    *waists, missed = heights([-x for x in h1], v, h2, level)
    for waist in waists:
        reached, aim, beside = (turned(h1, waist, x, back=True) for x in (v, goal, side))
        *bends, apart = heights(h5, h6, h2, dot(h2, aim))
        for bend in bends:
            upper, fore = _flat(h2, steps[1]), _flat(h2, steps[2])
            total = _total(h2, (turned(h5, bend, h6), aim), minus(reached, steps[0]), steps[3], (upper, fore))
            last = onto(h6, probe, turned(h5, bend, turned(h2, total, beside, back=True), back=True))
            between = minus(minus(reached, steps[0]), turned(h2, total, steps[3]))
            flat = _flat(h2, between)
            *elbows, too_far = distances(h3, fore, upper, dot(flat, flat))
            for elbow in elbows:
                lift = onto(h2, add(upper, turned(h3, elbow, fore)), flat)
                done = _sum(lift, (elbow[0], senses[0] * elbow[1]))
                fourth = _sum(total, (done[0], -done[1]))
                turns = (waist, lift, elbow, (fourth[0], senses[1] * fourth[1]), bend, last)
                branches.append(Branch(turns, maximum(maximum(missed, apart), too_far)))
    return branches


def _total(
    axis: Sequence[Any],
    aim: tuple[Vector, Vector],
    reached: Vector,
    step: Vector,
    links: tuple[Vector, Vector],
) -> Turn:
    """The sum of the parallel turns, which brings one vector of ``aim`` onto the other. Where 6 is parallel to them it
    may be any, and is one for which both links reach: reached − R step is no farther away than they are long together,
    and no nearer than the difference of their lengths.

    Args:
        axis: of the parallel turns.
        aim: a vector before and after the turn.
        reached: from axis 2 to axis 5.
        step: from axis 4 to axis 5, before the turn.
        links: from axis 2 to 3 and from 3 to 4, across the axis.
    """
    plain, free = onto_or_free(axis, *aim)
    wanted, offset = _flat(axis, reached), [-x for x in _flat(axis, step)]
    now = add(wanted, offset)
    squares = [dot(link, link) for link in links]
    middle, width = squares[0] + squares[1], 2.0 * sqrt(squares[0] * squares[1])
    nearest = minimum(maximum(dot(now, now), middle - width), middle + width)
    other, _, _ = distances(axis, offset, wanted, nearest)
    movable = free & (dot(wanted, wanted) * dot(offset, offset) > 0.0)
    return where(movable, other[0], plain[0]), where(movable, other[1], plain[1])


def _sum(a: Turn, b: Turn) -> Turn:
    return a[0] * b[0] - a[1] * b[1], a[1] * b[0] + a[0] * b[1]


def _flat(axis: Sequence[Any], v: Sequence[Any]) -> Vector:
    along = dot(axis, v)
    return [x - along * h for x, h in zip(v, axis, strict=True)]


def _across(axis: Sequence[Any]) -> Vector:
    """A vector across an axis, of a length between 0.8 and 1 (for numbers and scalars)."""
    upright = abs(axis[2]) < 0.6
    one, other = cross(axis, [0.0, 0.0, 1.0]), cross(axis, [1.0, 0.0, 0.0])
    return [where(upright, a, b) for a, b in zip(one, other, strict=True)]
