"""Coulomb friction and stiction, sound at zero speed, by a rule with a fixed number of operations.

sgn q̇ has no meaning at rest: there friction is whatever keeps the joint at rest, up to its limit. Over a
step h the rule asks for the velocities v at its end that minimise

    ½ (v − v*)ᵀ M (v − v*) + h Σ F_i |v_i|,

where v* are the velocities without Coulomb friction: the principle of least constraint with friction as a
dissipation (J. J. Moreau's implicit step). It is strictly convex, so there is one answer; friction never adds
energy; and a joint whose friction can hold it gets v_i = 0 exactly, not a small number. Coordinate descent
with soft thresholds finds which joints stand still in a few sweeps; given those, the rest is a linear system,
solved exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms import factorised
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, where

SWEEPS = 8


@dataclass(frozen=True)
class Friction:
    """What Coulomb friction does in a step: its torques, taken as constant, and a 1 or 0 for joints that
    slide or stick.
    """

    torques: list[Scalar]
    sliding: list[Scalar]


def has_coulomb_friction(links: Mechanism) -> bool:
    """Whether any joint has some; a symbol may have."""
    return any(not _is_zero(limit) for link in links for limit in link.coulomb_friction)


def coulomb_friction(
    links: Mechanism,
    M: list[list[Scalar]],
    v: Sequence[Scalar],
    free: Sequence[Scalar],
    h: Scalar,
    breakaway: Scalar,
) -> Friction:
    """The rule: ``v`` are the velocities before the step and ``free`` = v* those after it without Coulomb
    friction.

    ``breakaway`` is static friction over Coulomb friction, for joints that are at rest before the step.
    """
    n = len(links)
    limits = [
        _limits(link.coulomb_friction, speed, h, breakaway) for link, speed in zip(links, v, strict=True)
    ]
    x: list[Scalar] = [0.0] * n  # v − v*, found joint by joint
    rows = [[(j, M[i][j]) for j in range(n) if not _is_zero(M[i][j])] for i in range(n)]
    inverse = [1.0 / M[i][i] for i in range(n)]
    for _ in range(SWEEPS):
        for i in range(n):
            pushed = M[i][i] * free[i] - _sum([entry * x[j] for j, entry in rows[i] if j != i])
            x[i] = _threshold(pushed, limits[i]) * inverse[i] - free[i]
    new = [a + b for a, b in zip(free, x, strict=True)]
    # NaN counts as sliding, so that it is passed on
    sliding = [
        1.0 if limit is None else where(a * a <= 0.0, 0.0, 1.0) for limit, a in zip(limits, new, strict=True)
    ]
    drag = [
        0.0 if limit is None else where(a > 0.0, limit[0], where(a < 0.0, -limit[1], 0.0))
        for limit, a in zip(limits, new, strict=True)
    ]
    x = _given_who_slides(links, M, free, sliding, drag)
    per_time = 1.0 / h
    torques = [
        where(slides > 0.5, -(per_time * drag[i]), per_time * _sum([entry * x[j] for j, entry in rows[i]]))
        if limits[i] is not None
        else 0.0
        for i, slides in enumerate(sliding)
    ]
    return Friction(torques, sliding)


def _given_who_slides(links: Mechanism, M, free, sliding, drag) -> list[Scalar]:
    """v − v* where the sticking joints have v = 0 and the others feel their drag: M x = −drag in the rows
    that slide.
    """
    n = len(links)
    held = [where(s > 0.5, 0.0, f) for s, f in zip(sliding, free, strict=True)]  # −x of the joints that stick
    A = [
        [
            where(sliding[i] > 0.5, M[i][i], 1.0) if i == j else _product(M[i][j], sliding[i], sliding[j])
            for j in range(n)
        ]
        for i in range(n)
    ]
    right = []
    for i in range(n):
        moved = _sum([M[i][j] * held[j] for j in range(n) if j != i and not _is_zero(M[i][j])])
        right.append(where(sliding[i] > 0.5, moved - drag[i], -free[i]))
    return factorised.solve(links, A, right)


def _product(entry: Scalar, a: Scalar, b: Scalar) -> Scalar:
    return 0.0 if _is_zero(entry) else entry * (a * b)


def _limits(coulomb: tuple[Scalar, Scalar], speed: Scalar, h: Scalar, breakaway: Scalar):
    """h·F for motion forward and backward; None for a joint without Coulomb friction."""
    if all(_is_zero(limit) for limit in coulomb):
        return None
    at_rest = where(speed * speed > 0.0, 1.0, breakaway)
    return tuple((h * limit) * at_rest for limit in coulomb)


def _threshold(x: Scalar, limit) -> Scalar:
    """What is left of an impulse when friction has taken its part; a NaN stays NaN."""
    if limit is None:
        return x
    forward, backward = limit
    return where(x > forward, x - forward, where(x < -backward, x + backward, where(x <= forward, 0.0, x)))


def _sum(terms: list[Scalar]) -> Scalar:
    return sum(terms[1:], start=terms[0]) if terms else 0.0


def _is_zero(x: Scalar) -> bool:
    return isinstance(x, (float, int)) and x == 0.0
