"""Dry (Coulomb) friction and stiction, valid at zero speed, by a rule with a fixed number of operations.

sgn q̇ has no meaning at rest: there friction is the torque that keeps the joint at rest, up to its limit. Over a step
h the rule takes the velocities v at its end that minimise

    ½ (v − v*)ᵀ M (v − v*) + h Σ F_i |v_i|,

where v* are the velocities without Coulomb friction: the principle of least constraint with friction as a
dissipation (J. J. Moreau's implicit step). It is strictly convex, so there is one answer; friction never adds
energy; and a joint whose friction can hold it gets v_i = 0 exactly, not a small number.

Coordinate descent with soft thresholds finds in a few sweeps which joints stand still and which way the
others slide; given that, the rest is a linear system, solved exactly. Two more passes correct joints that would be
driven by their own friction or held by more than its limit (a primal-dual active set). In arms with rotor inertias
the pattern is then right; in light direct drives, whose mass matrices are ill conditioned, it is in all but a few of
a thousand arbitrary states, and a joint that is still driven by its own friction is stopped instead.

In robots with followers or constraints the impulses themselves are found, by sweeps of projected Gauss-Seidel over the
axes with friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import coupling, dense, factorised, joint_terms
from linkwise.algorithms.coordinates import Reactions, Solve, axes_of_coordinates
from linkwise.joint_laws import is_zero
from linkwise.model.mechanism import Mechanism, flat
from linkwise.scalar import Scalar, where

SWEEPS = 8
CORRECTIONS = 2
IMPULSE_SWEEPS = 30


@dataclass(frozen=True)
class Friction:
    """What Coulomb friction does in a step: its torques, taken as constant, and a 1 or 0 for joints that
    slide or stick.
    """

    torques: list[Scalar]
    sliding: list[Scalar]


def dry_friction(
    links: Mechanism,
    M: list[list[Scalar]],
    v: Sequence[Scalar],
    free: Sequence[Scalar],
    h: Scalar,
    breakaway: Scalar,
    given: Sequence[Scalar] | None = None,
) -> Friction:
    """The rule: ``v`` are the velocities before the step and ``free`` = v* those after it without dry
    friction.

    ``breakaway`` is static friction over Coulomb friction, for joints that are at rest before the step. ``given`` are
    the torques less smooth friction, which load friction depends on.
    """
    carried: Sequence[Scalar] = [0.0] * len(v) if given is None else given
    limits = [
        _limits(joint_terms.dry_friction_limits(link, speed, torque), speed, h, breakaway)
        for link, speed, torque in zip(axes_of_coordinates(links), v, carried, strict=True)
    ]
    direction = _first_guess(M, free, limits)
    found = _given_directions(links, M, free, limits, direction)
    for _ in range(CORRECTIONS):
        direction = [
            _corrected(*each) for each in zip(limits, direction, found.v, found.impulses, strict=True)
        ]
        found = _given_directions(links, M, free, limits, direction)
    rate = 1.0 / h
    torques, sliding = [], []
    for k, limit in enumerate(limits):
        slides = found.sliding[k]
        torques.append(
            0.0 if limit is None else rate * where(slides > 0.5, -found.drag[k], found.impulses[k])
        )
        # what is still driven by its own friction is stopped
        sliding.append(slides if limit is None else where(direction[k] * found.v[k] < 0.0, 0.0, slides))
    return Friction(torques, sliding)


def dry_friction_impulses(
    links: Mechanism,
    solve: Solve,
    held: Reactions | None,
    v: Sequence[Scalar],
    free: Sequence[Scalar],
    h: Scalar,
    breakaway: Scalar,
) -> list[Scalar]:
    """The torques of dry friction where followers or constraints move joints along: (v, p) with v = v* + W p over the
    axes with friction, p between its limits, and against v where it is at one. W is the inverse mass matrix under the
    constraints."""
    joint_terms.check_no_load_friction(links)
    speeds = flat(coupling.expanded(links, v))
    rows, bounds = [], []
    for j, (k, _) in enumerate(links.coordinates()):
        limit = _limits(joint_terms.dry_friction_limits(links[k], speeds[j]), speeds[j], h, breakaway)
        if limit is not None:
            unit = [1.0 if i == j else 0.0 for i in range(len(speeds))]
            rows.append(coupling.reduced(links, unit, (True,)))
            bounds.append(limit)
    moved = [solve(row) for row in rows]
    if held is not None:
        moved = [held.corrected(column, [0.0] * len(held.jacobian)) for column in moved]
    K = dense.symmetric_product(moved, rows)
    speed = [dense.dot(row, free) for row in rows]
    # an axis that the constraints hold still has no mobility of its own
    stiff = [where(K[i][i] > 0.0, 1.0 / where(K[i][i] > 0.0, K[i][i], 1.0), 0.0) for i in range(len(K))]
    impulses: list[Scalar] = [0.0] * len(rows)
    for _ in range(IMPULSE_SWEEPS):
        for i, (forward, backward) in enumerate(bounds):
            wanted = impulses[i] - stiff[i] * (speed[i] + dense.dot(K[i], impulses))
            impulses[i] = where(wanted > backward, backward, where(wanted < -forward, -forward, wanted))
    rate = 1.0 / h
    return [rate * dense.dot(column, impulses) for column in dense.transposed(rows)]


@dataclass(frozen=True)
class _Solution:
    """Velocities for one choice of which joints slide in which direction, and the impulses of friction for it."""

    v: list[Scalar]
    impulses: list[Scalar]
    sliding: list[Scalar]
    drag: list[Scalar]


def _first_guess(M: list[list[Scalar]], free: Sequence[Scalar], limits: Sequence[Any]) -> list[Scalar]:
    """The directions of motion after some sweeps of coordinate descent."""
    n = len(free)
    inverse = [1.0 / M[i][i] for i in range(n)]
    x: list[Scalar] = [0.0] * n  # v − v*
    for _ in range(SWEEPS):
        for i in range(n):
            others = _sum([M[i][j] * x[j] for j in range(n) if j != i and not is_zero(M[i][j])])
            x[i] = _threshold(M[i][i] * free[i] - others, limits[i]) * inverse[i] - free[i]
    return [_sign(a + b) for a, b in zip(free, x, strict=True)]


def _given_directions(links: Mechanism, M, free, limits, direction) -> _Solution:
    n = len(M)
    sliding = [
        1.0 if limit is None else where(d * d <= 0.0, 0.0, 1.0)
        for limit, d in zip(limits, direction, strict=True)
    ]
    drag = [_drag(limit, d) for limit, d in zip(limits, direction, strict=True)]
    x = _given_who_slides(links, M, free, sliding, drag)
    impulses = [_sum([M[i][j] * x[j] for j in range(n) if not is_zero(M[i][j])]) for i in range(n)]
    return _Solution([a + b for a, b in zip(free, x, strict=True)], impulses, sliding, drag)


def _sign(x: Scalar) -> Scalar:
    """The direction of motion; NaN counts as moving, so that it is passed on."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, where(x <= 0.0, 0.0, x)))


def _drag(limit, direction: Scalar) -> Scalar:
    """The impulse that a sliding joint loses; zero for one that sticks."""
    if limit is None:
        return 0.0
    return where(direction > 0.0, limit[0], where(direction < 0.0, -limit[1], 0.0))


def _corrected(limit, direction: Scalar, new: Scalar, impulse: Scalar) -> Scalar:
    """Joints that would be driven by their own friction stick instead; those that would need more than the limit to
    stick, slide.
    """
    if limit is None:
        return direction
    forward, backward = limit
    freed = where(impulse < -forward, 1.0, where(impulse > backward, -1.0, 0.0))
    kept = where(direction * new < 0.0, 0.0, direction)
    return where(direction * direction <= 0.0, freed, kept)


def _given_who_slides(links: Mechanism, M, free, sliding, drag) -> list[Scalar]:
    """v − v* where the sticking joints have v = 0 and the others their drag: M x = −drag in the rows
    that slide.
    """
    n = len(M)
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
        moved = _sum([M[i][j] * held[j] for j in range(n) if j != i and not is_zero(M[i][j])])
        right.append(where(sliding[i] > 0.5, moved - drag[i], -free[i]))
    return factorised.solve(links, A, right)


def _product(entry: Scalar, a: Scalar, b: Scalar) -> Scalar:
    return 0.0 if is_zero(entry) else entry * (a * b)


def _limits(dry: tuple[Scalar, Scalar], speed: Scalar, h: Scalar, breakaway: Scalar):
    """h·F for motion forward and backward; None for a joint without dry friction."""
    if all(is_zero(limit) for limit in dry):
        return None
    at_rest = where(speed * speed > 0.0, 1.0, breakaway)
    return tuple((h * limit) * at_rest for limit in dry)


def _threshold(x: Scalar, limit) -> Scalar:
    """What is left of an impulse when friction has taken its part; a NaN stays NaN."""
    if limit is None:
        return x
    forward, backward = limit
    return where(x > forward, x - forward, where(x < -backward, x + backward, where(x <= forward, 0.0, x)))


def _sum(terms: list[Scalar]) -> Scalar:
    return sum(terms[1:], start=terms[0]) if terms else 0.0
