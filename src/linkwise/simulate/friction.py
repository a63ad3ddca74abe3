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

Friction that changes its direction over a ``friction_speed`` s never holds a joint at rest. It is F v / √(v² + s²), as
in all dynamics. Where the step is short enough (``resolved``), the integrator evaluates it at every stage, as any other
torque. For longer steps it is too steep: the same principle with F √(v² + s²) for F |v| gives the velocities
at the end of the step, and friction is what it is there. Joints creep under a load as the law says, at any step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import coupling, dense, factorised, joint_terms
from linkwise.algorithms.coordinates import Reactions, Solve, axes_of_coordinates
from linkwise.joint_laws import is_zero
from linkwise.model.mechanism import Mechanism, MovingLink, flat
from linkwise.scalar import Condition, Scalar, maximum, sqrt, summed, where

SWEEPS = 8
CORRECTIONS = 2
GRADUAL_CORRECTIONS = 5
NEWTON_STEPS = 4
IMPULSE_SWEEPS = 30
RESOLVED = 1.0
"""Largest step times rate of decay that an explicit integrator gets; all of them are stable up to 2."""


@dataclass(frozen=True)
class Limits:
    """Impulses of dry friction of one joint in a step, h·F, in motion forward and backward."""

    forward: Scalar
    backward: Scalar
    speed: Scalar | None = None
    """Over which it changes its direction; None: it jumps."""
    breakaway: Scalar = 1.0
    """Times which a joint at rest withstands; once it slides, friction is as in motion."""

    def along(self, v: Scalar) -> Scalar:
        """That for the direction of ``v``."""
        return where(v > 0.0, self.forward, self.backward)

    def slope(self, v: Scalar) -> Scalar:
        """Impulse over velocity, for friction that does not jump."""
        assert self.speed is not None
        return self.along(v) / sqrt(v * v + self.speed * self.speed)


@dataclass(frozen=True)
class Friction:
    """What dry friction does in a step: torques, taken as constant, of friction that jumps; a 1 or 0 for joints that
    slide or stick; torques of friction that changes gradually, and whether the step is short enough to evaluate it
    at every stage instead (None: there is no such friction).
    """

    torques: list[Scalar]
    sliding: list[Scalar]
    gradual: list[Scalar]
    resolved: Condition | None


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
    axes = axes_of_coordinates(links)
    limits = [
        _limits(link, speed, torque, h, breakaway)
        for link, speed, torque in zip(axes, v, carried, strict=True)
    ]
    speeds = _first_guess(M, free, limits)
    direction = [_sign(x) for x in speeds]
    found = _given_directions(links, M, free, limits, direction, speeds)
    gradual = [k for k, limit in enumerate(limits) if limit is not None and limit.speed is not None]
    for _ in range(GRADUAL_CORRECTIONS if gradual else CORRECTIONS):
        direction = [
            _corrected(*each) for each in zip(limits, direction, found.v, found.impulses, strict=True)
        ]
        found = _given_directions(links, M, free, limits, direction, found.v)
    rate = 1.0 / h
    jumping: list[Scalar] = [0.0] * len(limits)
    sliding = list(found.sliding)
    for k, limit in enumerate(limits):
        if limit is None or limit.speed is not None:
            continue
        jumping[k] = rate * where(found.sliding[k] > 0.5, -found.drag[k], found.impulses[k])
        # what is still driven by its own friction is stopped
        sliding[k] = where(direction[k] * found.v[k] < 0.0, 0.0, found.sliding[k])
    changing: list[Scalar] = [0.0] * len(limits)
    rates: list[Scalar] = []
    solve = factorised.solver(links, M) if gradual else None
    for k in gradual:
        assert solve is not None
        changing[k] = rate * found.impulses[k]
        moved = solve([1.0 if i == k else 0.0 for i in range(len(limits))])
        rates.append(_decay(axes[k], carried[k], moved[k]))
    return Friction(jumping, sliding, changing, _resolved(h, rates))


def dry_friction_impulses(
    links: Mechanism,
    solve: Solve,
    held: Reactions | None,
    v: Sequence[Scalar],
    free: Sequence[Scalar],
    h: Scalar,
    breakaway: Scalar,
) -> Friction:
    """Dry friction where followers or constraints move joints along: (v, p) with v = v* + W p over the
    axes with friction, p between its limits, and against v where it is at one. W is the inverse mass matrix under the
    constraints."""
    joint_terms.check_no_load_friction(links)
    speeds = flat(coupling.expanded(links, v))
    rows: list[list[Scalar]] = []
    bounds: list[Limits] = []
    rubbing = []
    for j, (k, _) in enumerate(links.coordinates()):
        limit = _limits(links[k], speeds[j], 0.0, h, breakaway)
        if limit is not None:
            unit = [1.0 if i == j else 0.0 for i in range(len(speeds))]
            rows.append(coupling.reduced(links, unit, (True,)))
            bounds.append(limit)
            rubbing.append(links[k])
    moved = [solve(row) for row in rows]
    if held is not None:
        moved = [held.corrected(column, [0.0] * len(held.jacobian)) for column in moved]
    K = dense.symmetric_product(moved, rows)
    speed = [dense.dot(row, free) for row in rows]
    # an axis that the constraints hold still has no mobility of its own
    stiff = [where(K[i][i] > 0.0, 1.0 / where(K[i][i] > 0.0, K[i][i], 1.0), 0.0) for i in range(len(K))]
    impulses: list[Scalar] = [0.0] * len(rows)
    for _ in range(IMPULSE_SWEEPS):
        for i, limit in enumerate(bounds):
            wanted = impulses[i] - stiff[i] * (speed[i] + dense.dot(K[i], impulses))
            impulses[i] = _bounded(wanted, limit, K[i][i])
    rate = 1.0 / h
    jumping = [p if limit.speed is None else 0.0 for p, limit in zip(impulses, bounds, strict=True)]
    changing = [0.0 if limit.speed is None else p for p, limit in zip(impulses, bounds, strict=True)]
    rates = [_decay(link, 0.0, K[i][i]) for i, link in enumerate(rubbing) if bounds[i].speed is not None]
    columns = dense.transposed(rows)
    return Friction(
        [rate * dense.dot(column, jumping) for column in columns],
        [1.0] * len(free),
        [rate * dense.dot(column, changing) for column in columns],
        _resolved(h, rates),
    )


def held_still(
    links: Mechanism, M: list[list[Scalar]], qdd: Sequence[Scalar], moving: Sequence[Scalar]
) -> list[Scalar]:
    """Accelerations where friction holds the joints with a 0 in ``moving``, from those that all would have."""
    if all(isinstance(m, float) and m > 0.5 for m in moving):
        return list(qdd)
    nothing: list[Scalar] = [0.0] * len(qdd)
    x = _given_who_slides(links, M, qdd, moving, nothing, nothing)
    return [a + b for a, b in zip(qdd, x, strict=True)]


def _decay(link: MovingLink, given: Scalar, mobility: Scalar) -> Scalar:
    """The rate at which friction that changes gradually would slow an axis down near rest; (M⁻¹)_ii is its mobility."""
    speed = joint_terms.direction_speed(link)
    assert speed is not None
    return mobility * (maximum(*joint_terms.dry_friction_limits(link, 0.0, given)) / speed)


def _resolved(h: Scalar, rates: list[Scalar]) -> Condition | None:
    """The sum of these rates bounds that of any motion of the robot: it is the trace of a positive matrix."""
    return h * summed(rates) <= RESOLVED if rates else None


@dataclass(frozen=True)
class _Solution:
    """Velocities for one choice of which joints slide in which direction, and the impulses of friction for it."""

    v: list[Scalar]
    impulses: list[Scalar]
    sliding: list[Scalar]
    drag: list[Scalar]


def _first_guess(M: list[list[Scalar]], free: Sequence[Scalar], limits: Sequence[Any]) -> list[Scalar]:
    """The velocities after some sweeps of coordinate descent."""
    n = len(free)
    inverse = [1.0 / M[i][i] for i in range(n)]
    x: list[Scalar] = [0.0] * n  # v − v*
    for _ in range(SWEEPS):
        for i in range(n):
            others = summed([M[i][j] * x[j] for j in range(n) if j != i and not is_zero(M[i][j])])
            left = M[i][i] * free[i] - others
            if limits[i] is not None and limits[i].speed is not None:
                x[i] = _slowed(left * inverse[i], limits[i], inverse[i]) - free[i]
            else:
                x[i] = _threshold(left, limits[i]) * inverse[i] - free[i]
    return [a + b for a, b in zip(free, x, strict=True)]


def _given_directions(links: Mechanism, M, free, limits, direction, speeds) -> _Solution:
    """``speeds`` are the velocities found last. For friction that changes gradually, the ratio of impulse and velocity
    there is kept; such steps approach the minimum without passing it."""
    n = len(M)
    sliding = [
        1.0 if limit is None or limit.speed is not None else where(d * d <= 0.0, 0.0, 1.0)
        for limit, d in zip(limits, direction, strict=True)
    ]
    drag = [_drag(limit, d) for limit, d in zip(limits, direction, strict=True)]
    slopes = [
        0.0 if limit is None or limit.speed is None else limit.slope(v)
        for limit, v in zip(limits, speeds, strict=True)
    ]
    x = _given_who_slides(links, M, free, sliding, drag, slopes)
    impulses = [summed([M[i][j] * x[j] for j in range(n) if not is_zero(M[i][j])]) for i in range(n)]
    return _Solution([a + b for a, b in zip(free, x, strict=True)], impulses, sliding, drag)


def _sign(x: Scalar) -> Scalar:
    """The direction of motion; NaN counts as moving, so that it is passed on."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, where(x <= 0.0, 0.0, x)))


def _drag(limit, direction: Scalar) -> Scalar:
    """The impulse that a sliding joint loses; zero for one that sticks."""
    if limit is None or limit.speed is not None:
        return 0.0
    return where(direction > 0.0, limit.forward, where(direction < 0.0, -limit.backward, 0.0))


def _corrected(limit, direction: Scalar, new: Scalar, impulse: Scalar) -> Scalar:
    """Joints that would be driven by their own friction stick instead; those that would need more than the limit to
    stick, slide.
    """
    if limit is None or limit.speed is not None:
        return direction
    most = limit.breakaway
    freed = where(impulse < -most * limit.forward, 1.0, where(impulse > most * limit.backward, -1.0, 0.0))
    kept = where(direction * new < 0.0, 0.0, direction)
    return where(direction * direction <= 0.0, freed, kept)


def _given_who_slides(links: Mechanism, M, free, sliding, drag, slopes) -> list[Scalar]:
    """v − v* where the sticking joints have v = 0 and the others their drag: M x = −drag − slope (v* + x) in the rows
    that slide.
    """
    n = len(M)
    held = [where(s > 0.5, 0.0, f) for s, f in zip(sliding, free, strict=True)]  # −x of the joints that stick
    A = [
        [
            where(sliding[i] > 0.5, _plus(M[i][i], slopes[i]), 1.0)
            if i == j
            else _product(M[i][j], sliding[i], sliding[j])
            for j in range(n)
        ]
        for i in range(n)
    ]
    right = []
    for i in range(n):
        moved = summed([M[i][j] * held[j] for j in range(n) if j != i and not is_zero(M[i][j])])
        braked = drag[i] if is_zero(slopes[i]) else slopes[i] * free[i]
        right.append(where(sliding[i] > 0.5, moved - braked, -free[i]))
    return factorised.solve(links, A, right)


def _plus(entry: Scalar, slope: Scalar) -> Scalar:
    return entry if is_zero(slope) else entry + slope


def _product(entry: Scalar, a: Scalar, b: Scalar) -> Scalar:
    return 0.0 if is_zero(entry) else entry * (a * b)


def _limits(link: MovingLink, speed: Scalar, given: Scalar, h: Scalar, breakaway: Scalar) -> Limits | None:
    """h·F of a joint; None where it has no dry friction. ``breakaway`` is for friction that jumps."""
    dry = joint_terms.dry_friction_limits(link, speed, given)
    if all(is_zero(limit) for limit in dry):
        return None
    changes_over = joint_terms.direction_speed(link)
    if changes_over is not None:
        return Limits(h * dry[0], h * dry[1], changes_over)
    at_rest = where(speed * speed > 0.0, 1.0, breakaway)
    return Limits(h * dry[0], h * dry[1], None, at_rest)


def _threshold(x: Scalar, limit: Limits | None) -> Scalar:
    """What is left of an impulse when friction has taken its part; a NaN stays NaN."""
    if limit is None:
        return x
    forward, backward, most = limit.forward, limit.backward, limit.breakaway
    held = where(x <= most * forward, 0.0, x)
    return where(x > most * forward, x - forward, where(x < -most * backward, x + backward, held))


def _slowed(v: Scalar, limit: Limits, mobility: Scalar) -> Scalar:
    """The velocity x that gradual friction leaves of ``v``: x + g x / √(x² + s²) = v with g = h F / M_ii.

    In the direction of v the left side is concave, so Newton's steps from below approach x without passing it.
    """
    s, g = limit.speed, mobility * limit.along(v)
    assert s is not None
    size = abs(v)
    x = maximum(size - g, size / (1.0 + g / s))
    for _ in range(NEWTON_STEPS):
        square = x * x + s * s
        root = sqrt(square)
        x = x - (x + g * x / root - size) / (1.0 + g * (s * s) / (square * root))
    return where(v < 0.0, -x, x)


def _bounded(wanted: Scalar, limit: Limits, mobility: Scalar) -> Scalar:
    """The impulse of friction where ``wanted`` would stop its axis."""
    if limit.speed is None:
        most = limit.breakaway
        forward = where(wanted < -most * limit.forward, -limit.forward, wanted)
        return where(wanted > most * limit.backward, limit.backward, forward)
    v = _slowed(-wanted * mobility, limit, mobility)
    return -limit.slope(v) * v
