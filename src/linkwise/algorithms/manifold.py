"""Positions that are no vector space: orientations as quaternions.

The position of a ball joint is a quaternion (x, y, z, w), that of a floating joint a point p and a quaternion; their
velocities are (ω, v) in the link's own axes:

    q̇ = ½ q ⊗ (ω, 0)        ṗ = R(q) v

Any quaternion but zero means its rotation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from linkwise.model.axes import joint_value, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink, quaternion_rotation
from linkwise.scalar import Scalar, atan2, cos, sin, sqrt, where
from linkwise.spatial import Vector, zero_vector


def position_rates(link: MovingLink, q: Any, qd: Any) -> Any:
    """q̇ of the joint's position numbers for its velocities."""
    if not link.free:
        return qd
    numbers, rates = parts_of(q), parts_of(qd)
    turning = _quaternion_rate(numbers[-4:], rates[:3])
    if not link.floating:
        return joint_value(turning)
    return joint_value([*(quaternion_rotation(numbers[-4:]) @ Vector(*rates[3:])), *turning])


def _quaternion_rate(quaternion: Sequence[Scalar], w: Sequence[Scalar]) -> list[Scalar]:
    """½ q ⊗ (ω, 0)."""
    x, y, z, s = quaternion
    a, b, c = (0.5 * rate for rate in w)
    return [
        s * a + y * c - z * b,
        s * b + z * a - x * c,
        s * c + x * b - y * a,
        -(x * a + y * b + z * c),
    ]


def by_velocities(links: Mechanism, q: Sequence[Any], by_positions: list[list[Scalar]]) -> list[list[Scalar]]:
    """Derivatives by position numbers, as rows of a matrix, turned into derivatives along the velocity coordinates.

    Both are those of links that lead, where others follow them.
    """
    if not any(link.free for link in links):
        return by_positions
    columns: list[
        list[tuple[int, Scalar]]
    ] = []  # for every velocity: the numbers that it changes, and how fast
    at = 0
    for link, own in zip(links, q, strict=True):
        if link.follows is not None:
            continue
        for k in range(len(link.axes)):
            unit = [1.0 if i == k else 0.0 for i in range(len(link.axes))]
            rates = parts_of(position_rates(link, own, joint_value(unit)))
            columns.append([(at + i, rate) for i, rate in enumerate(rates)])
        at += len(parts_of(own))
    return [[_dot([(row[i], rate) for i, rate in column]) for column in columns] for row in by_positions]


def _dot(pairs: list[tuple[Scalar, Scalar]]) -> Scalar:
    (a, b), *rest = pairs
    return sum((x * y for x, y in rest), start=a * b)


# -- steps and differences --------------------------------------------------------------------------------------------

SMALL = 0.25  # θ² [rad²] under which quotients of sines and angles come from their series


def integrated(link: MovingLink, q: Any, step: Any) -> Any:
    """The position after a step (ω, v) [rad, m] at constant velocity: q ⊗ exp(ω), and the point on its screw."""
    if not link.free:
        return q + step
    numbers, rates = parts_of(q), parts_of(step)
    w = Vector(*rates[:3])
    square = w.dot(w)
    small = square < SMALL
    angle = sqrt(where(small, 1.0, square))
    # sin(θ/2)/θ and cos(θ/2)
    half = where(small, _series(square, _HALF_SINE), sin(0.5 * angle) / angle)
    cosine = where(small, _series(square, _HALF_COSINE), cos(0.5 * angle))
    turned = _times(numbers[-4:], [half * w.x, half * w.y, half * w.z, cosine])
    if not link.floating:
        return joint_value(turned)
    v = Vector(*rates[3:])
    first = where(small, _series(square, _COSINE), (1.0 - cos(angle)) / (angle * angle))
    second = where(small, _series(square, _SINE), (angle - sin(angle)) / (angle * angle * angle))
    across = w.cross(v)
    moved = v + first * across + second * w.cross(across)
    place = Vector(*numbers[:3]) + quaternion_rotation(numbers[-4:]) @ moved
    return joint_value([*place, *turned])


def step_rate(link: MovingLink, step: Any, rates: Any) -> Any:
    """The rate of a step, while the joint moves with ``rates`` at the position where the step has led.

    ξ̇ = V + ½ [ξ, V] + 1/12 [ξ, [ξ, V]] + O(ξ⁴): enough for methods of order 4 (H. Munthe-Kaas, "Runge–Kutta methods on
    Lie groups", 1998).
    """
    if not link.free:
        return rates
    turn, velocity = _motion(link, step), _motion(link, rates)
    first = _bracket(turn, velocity)
    second = _bracket(turn, first)
    found = [v + 0.5 * a + (1.0 / 12.0) * b for v, a, b in zip(velocity, first, second, strict=True)]
    return joint_value([x for part in found[: 2 if link.floating else 1] for x in part])


def _motion(link: MovingLink, value: Any) -> tuple[Vector, Vector]:
    numbers = parts_of(value)
    return Vector(*numbers[:3]), Vector(*numbers[3:]) if link.floating else Vector(0.0, 0.0, 0.0)


def _bracket(a: tuple[Vector, Vector], b: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """(ω_a × ω_b, ω_a × v_b + v_a × ω_b)."""
    return a[0].cross(b[0]), a[0].cross(b[1]) + a[1].cross(b[0])


def difference(link: MovingLink, start: Any, end: Any) -> Any:
    """The step that leads from one position to another, on the shorter way round: the inverse of ``integrated``."""
    if not link.free:
        return end - start
    w, _, c = _turn_between(parts_of(start)[-4:], parts_of(end)[-4:])
    if not link.floating:
        return joint_value([*w])
    gap = _gap(parts_of(start), parts_of(end))
    across = w.cross(gap)
    return joint_value([*w, *(gap - 0.5 * across + c * w.cross(across))])


def _turn_between(first: Sequence[Scalar], second: Sequence[Scalar]) -> tuple[Vector, Scalar, Scalar]:
    """The rotation vector φ from one quaternion to another, |φ|² and c = (1 − ½ θ cot ½ θ)/θ²."""
    x, y, z, s = first
    *vector, scalar = _times([-x, -y, -z, s], second)
    flip = scalar < 0.0  # −q is the same orientation
    u = Vector(*(where(flip, -a, a) for a in vector))
    scalar = where(flip, -scalar, scalar)
    sine_square = u.dot(u)
    small = sine_square < 1e-6 * (scalar * scalar)
    sine = sqrt(where(small, 1.0, sine_square))
    tangent_square = sine_square / where(small, scalar * scalar, 1.0)
    near = (2.0 / where(small, scalar, 1.0)) * _series(tangent_square, (1.0, -1.0 / 3.0, 1.0 / 5.0))
    w = where(small, near, (2.0 * atan2(sine, scalar)) / sine) * u
    square = w.dot(w)
    little = square < SMALL
    far = (1.0 - atan2(sine, scalar) * (scalar / sine)) / where(little, 1.0, square)
    return w, square, where(little, _series(square, _COTANGENT), far)


def _gap(first: Sequence[Scalar], second: Sequence[Scalar]) -> Vector:
    """From one point to another, in the axes of the first position."""
    return quaternion_rotation(first[-4:]).transposed() @ (Vector(*second[:3]) - Vector(*first[:3]))


def difference_slopes(link: MovingLink, start: Any, end: Any) -> list[list[Scalar]]:
    """The derivative of a free joint's ``difference`` along its velocities at the end.

    Of the rotation vector φ it is A = 1 + ½ φ̂ + c φ̂², and so is that of the part beside it by linear velocities. The
    rest follows from the formula of that part, u − ½ φ × u + c φ × (φ × u), u the distance in the axes of the start.
    """
    first, second = parts_of(start), parts_of(end)
    w, square, c = _turn_between(first[-4:], second[-4:])
    units = [Vector(*(1.0 if i == k else 0.0 for i in range(3))) for k in range(3)]
    turned = [e + 0.5 * w.cross(e) + c * w.cross(w.cross(e)) for e in units]
    rows = [[*row] for row in zip(*turned, strict=True)]
    if not link.floating:
        return rows
    gap = _gap(first, second)
    little = square < SMALL
    # dc/dθ² by the derivative of ½ θ cot ½ θ = 1 − c θ²
    steep = (0.125 - 1.5 * c + 0.5 * (c * c) * square) / where(little, 1.0, square)
    rate = 2.0 * where(little, _series(square, _COTANGENT_SLOPE), steep)
    across = w.cross(gap)
    bent = w.cross(across)
    changes = [0.5 * gap.cross(e) + c * (e.cross(across) + w.cross(e.cross(gap))) for e in units]
    changes = [change + (rate * x) * bent for change, x in zip(changes, w, strict=True)]
    moved = [sum((a * v for a, v in zip(column, changes, strict=True)), zero_vector()) for column in turned]
    lower = [[*row] for row in zip(*moved, strict=True)]
    return [[*row, 0.0, 0.0, 0.0] for row in rows] + [[*a, *b] for a, b in zip(lower, rows, strict=True)]


def rotation_vector_slopes(link: MovingLink, q: Any) -> list[list[Scalar]]:
    """The derivative of a ball joint's rotation vector φ along its velocities: 1 + ½ φ̂ + c φ̂², 3×3."""
    neutral = [0.0] * (len(parts_of(q)) - 1) + [1.0]
    w = Vector(*parts_of(difference(link, joint_value(neutral), q))[:3])
    square = w.dot(w)
    small = square < SMALL
    half = 0.5 * sqrt(where(small, 1.0, square))
    c = where(
        small, _series(square, _COTANGENT), (1.0 - half * cos(half) / sin(half)) / where(small, 1.0, square)
    )
    columns: list[list[Scalar]] = []
    for k in range(3):
        e = Vector(*(1.0 if i == k else 0.0 for i in range(3)))
        across = w.cross(e)
        columns.append([*(e + 0.5 * across + c * w.cross(across))])
    return [list(row) for row in zip(*columns, strict=True)]


def normalized(link: MovingLink, q: Any) -> Any:
    """The same position with a quaternion of length one."""
    if not link.free:
        return q
    numbers = parts_of(q)
    x, y, z, w = numbers[-4:]
    scale = 1.0 / sqrt(x * x + y * y + z * z + w * w)
    return joint_value([*numbers[:-4], *(scale * a for a in numbers[-4:])])


def _times(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    """The product of two quaternions (x, y, z, w)."""
    x, y, z, w = a
    p, q, r, s = b
    return [
        w * p + x * s + y * r - z * q,
        w * q - x * r + y * s + z * p,
        w * r + x * q - y * p + z * s,
        w * s - x * p - y * q - z * r,
    ]


def _series(square: Scalar, coefficients: Sequence[float]) -> Scalar:
    """Σ coefficients[k]·squareᵏ by Horner's rule."""
    value: Scalar = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = coefficient + square * value
    return value


def _factorials(first: int, scale: float = 1.0) -> tuple[float, ...]:
    """(−scale)ᵏ/(first + 2k)!, enough of them for θ² < SMALL."""
    return tuple((-scale) ** k / math.factorial(first + 2 * k) for k in range(8))


_HALF_SINE = tuple(0.5 * c for c in _factorials(1, 0.25))  # sin(θ/2)/θ
_HALF_COSINE = _factorials(0, 0.25)  # cos(θ/2)
_COSINE = _factorials(2)  # (1 − cos θ)/θ²
_SINE = _factorials(3)  # (θ − sin θ)/θ³
_COTANGENT = (  # (1 − θ/2·cot(θ/2))/θ²: |B₂ₖ₊₂|/(2k + 2)! with Bernoulli's numbers
    *(1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160),
    *(691 / 1307674368000, 1 / 74724249600, 3617 / 10670622842880000),
)
_COTANGENT_SLOPE = tuple(k * value for k, value in enumerate(_COTANGENT))[1:]  # its derivative by θ²
