"""Derivatives of the impulses of contacts: implicit, at the solution.

The solution keeps p = P(p − ρ w) with w = G p + c, where P is the projection of ``solver`` (1). With K = ρ P'/(1 − P'),
contact by contact, its change is

    dp = −K dw + dp_μ,      dw = G dp + dG p + dc                                                                (1)

with dp_μ the change by the coefficient of friction, if it is an input. K is 0 for an open contact, 1/ε for one that
sticks (ε = 1e-9 G_kk takes the place of zero), and ρ κ/(1 − κ) across the direction of sliding. The iteration itself is
not differentiated, and neither is the matrix of (1): only w is, at constant p.

P' jumps where a contact opens: the derivative says nothing of a foot that is about to touch. With ``smoothing`` s [m/s]
the jump becomes θ = (1 + y/√(y² + s²))/2 of the velocity y = p_n/ρ − w_n, the derivative of the smooth maximum
(y + √(y² + s²))/2 in the place of max(y, 0). Values stay those of the law; derivatives are those of a contact that acts
over a range of velocities s, which is a range s h of gaps. Sticking and sliding are not smoothed.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import dense
from linkwise.algorithms.constrained.constraints import softening
from linkwise.algorithms.contact.point import Point, inverse_above
from linkwise.joint_laws import is_zero
from linkwise.scalar import Scalar, like, sqrt, where

Rows = list[list[Scalar]]
NEAR = 1e-9
"""ε relative to G_kk. Errors of derivatives are ε, and 1e-16/ε by round-off, times the condition of the contacts."""
SOLVED = 1e-6
"""Residual, relative to velocities without impulses, up to which impulses count as a solution."""
Law = tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]
"""K of a contact: three entries of the tangents, what the normal impulse does to them, and that of the normal; a joint
row has its one entry first."""


def linearised(
    at: Point,
    frictions: Sequence[Scalar],
    stiff: Sequence[Scalar],
    least: Scalar,
    smoothing: Scalar = 0.0,
    compliance: Sequence[Scalar] = (),
) -> tuple[list[Law], list[Scalar]]:
    """(K of every contact and joint row, changes −K dw + dp_μ at constant p, of value zero).

    Args:
        at: the solution, with impulses that are constants for derivatives.
        frictions: μ of every contact.
        stiff: G_kk of every row.
        least: what counts as nothing of G_kk.
        smoothing: s [m/s].
        compliance: R of every contact that is not part of G.
    """
    near = max(NEAR, softening())
    laws: list[Law] = []
    changes: list[Scalar] = []
    dw = [_change(w) for w in at.w]
    for k, friction in enumerate(frictions):
        x, y, z = 3 * k, 3 * k + 1, 3 * k + 2
        kappa, pressed, (u, v) = at.held[k], at.pressed[k], at.directions[k]
        if not is_zero(smoothing):
            speed = stiff[z] * at.p[z] - at.w[z]
            share = 0.5 * (1.0 + speed / sqrt(speed * speed + smoothing * smoothing))
            # a contact that is open still has the direction in which it would stick
            kappa = where(pressed > 0.0, kappa, 1.0) * share
            pressed = share
        press = _gain(pressed, stiff[z], near, least, compliance[k] if compliance else 0.0)
        hold = _gain(kappa, stiff[x], near, least)
        xx, xy, yy = hold * (1.0 - u * u), -(hold * u) * v, hold * (1.0 - v * v)
        law = (xx, xy, yy, friction * u, friction * v, press)
        xx, xy, yy, along, across, press = (like(entry, 0.0) for entry in law)
        normal = -press * dw[z]
        more = _change(friction) * at.p[z]
        changes += [
            along * normal - (xx * dw[x] + xy * dw[y]) + like(u, 0.0) * more,
            across * normal - (xy * dw[x] + yy * dw[y]) + like(v, 0.0) * more,
            normal,
        ]
        laws.append((xx, xy, yy, along, across, press))
    for k, (kappa, value, yielding) in enumerate(at.joints, start=3 * len(frictions)):
        gain = like(kappa / (near * stiff[k] + least * near + yielding), 0.0)
        laws.append((gain, 0.0, 0.0, 0.0, 0.0, 0.0))
        moved = gain * (_change(value) - dw[k] - _change(yielding) * at.p[k])
        changes.append(where(kappa > 0.0, moved, _change(value)))
    return laws, changes


def turning(
    at: Point, place: int, x: int, coefficient: float, normal: Scalar, stiff: Scalar, least: Scalar
) -> tuple[tuple[Scalar, Scalar, Scalar, Scalar, Scalar], list[Scalar]]:
    """(K without the normal, changes) of friction against turning.

    Args:
        at: the solution.
        place: of its choices.
        x: its first row.
        coefficient: of friction [m].
        normal: change of the normal impulse of its contact.
        stiff: G_kk.
        least: what counts as nothing of it.
    """
    kappa, (u, v) = at.held[place], at.directions[place]
    hold = _gain(kappa, stiff, max(NEAR, softening()), least)
    law = (hold * (1.0 - u * u), -(hold * u) * v, hold * (1.0 - v * v), coefficient * u, coefficient * v)
    xx, xy, yy, along, across = (like(entry, 0.0) for entry in law)
    a, b = _change(at.w[x]), _change(at.w[x + 1])
    return (xx, xy, yy, along, across), [
        along * normal - (xx * a + xy * b),
        across * normal - (xy * a + yy * b),
    ]


def _gain(share: Scalar, stiff: Scalar, near: float, least: Scalar, soft: Scalar = 0.0) -> Scalar:
    """ρ θ/(1 − θ) with ε + R in its denominator; 0 for what nothing moves."""
    return share * inverse_above((1.0 - share) * stiff + share * (near * stiff + soft), near * least)


def _change(x: Scalar) -> Scalar:
    """Zero, with the derivative of x."""
    return 0.0 if is_zero(x) else x - like(x, 0.0)


def unit_plus_product(laws: Sequence[Law], G: Rows) -> Rows:
    """1 + K G."""
    matrix: Rows = []
    row = 0
    size = len(G)
    for law in laws:
        xx, xy, yy, along, across, press = law
        if len(matrix) + 3 <= size and not is_zero(press):
            first, second, third = G[row : row + 3]
            normal = [press * g for g in third]
            pairs = list(zip(first, second, normal, strict=True))
            matrix += [
                [xx * a + xy * b + along * n for a, b, n in pairs],
                [xy * a + yy * b + across * n for a, b, n in pairs],
                normal,
            ]
            row += 3
        else:
            matrix.append([xx * g for g in G[row]])
            row += 1
    return dense.raised(matrix, 1.0)


def constants(matrix: Rows) -> Rows:
    """The matrix, which derivatives take for constants."""
    return [[x if is_zero(x) else like(x, 0.0) for x in row] for row in matrix]


def of_solutions(change: Sequence[Scalar], merit: Scalar, c: Sequence[Scalar]) -> list[Scalar]:
    """The changes where impulses are a solution; others have no derivatives.

    Args:
        change: zeros that have the derivatives of the impulses.
        merit: sum of the squared residuals.
        c: velocities without impulses.
    """
    solved = merit <= (SOLVED * SOLVED) * dense.dot(c, c)
    return [where(solved, dx, 0.0) for dx in change]
