"""Iterates of contact problems: impulses, velocities, and what the laws choose there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.scalar import Condition, Scalar, sqrt, summed, where

Rows = list[list[Scalar]]
LARGEST = 3e38
"""No number that is not infinite in single precision is larger."""
TINY = 1e-30
"""[(N·s)²] keeps the direction of a vanishing impulse finite."""


@dataclass(frozen=True)
class JointRow:
    """Bounds of a joint's velocity after the step (stops) and of the impulse of its dry friction; None: there is none.

    ``compliance``: friction that changes its direction gradually is −w/compliance inside its limits.
    """

    lower: Scalar | None = None
    upper: Scalar | None = None
    forward: Scalar | None = None
    backward: Scalar | None = None
    compliance: Scalar = 0.0


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate p: w, the choices (κ, d) of every contact and (κ, value, R) of every joint row, residuals and Σ r²."""

    p: list[Scalar]
    w: list[Scalar]
    pressed: list[Scalar]
    """1 for closed contacts, 0 for open ones."""
    held: list[Scalar]
    """κ."""
    directions: Rows
    joints: Rows
    residuals: list[Scalar]
    merit: Scalar

    def unless(self, condition: Condition, other: Point) -> Point:
        """The other one where the condition holds."""
        return Point(
            selected(condition, other.p, self.p),
            selected(condition, other.w, self.w),
            selected(condition, other.pressed, self.pressed),
            selected(condition, other.held, self.held),
            [selected(condition, b, a) for a, b in zip(self.directions, other.directions, strict=True)],
            [selected(condition, b, a) for a, b in zip(self.joints, other.joints, strict=True)],
            selected(condition, other.residuals, self.residuals),
            where(condition, other.merit, self.merit),
        )


def on_disk(
    p: Sequence[Scalar], w: Sequence[Scalar], stiff: Scalar, soft: Scalar, limit: Scalar, closed: Scalar
) -> tuple[Scalar, list[Scalar], list[Scalar]]:
    """(κ, d, residuals) of two impulses of friction, which are on a disk of this radius.

    p − κ z with z = p − ρ w, divided by ρ, is (1 − κ) p/ρ + κ w: no division.

    Args:
        p: the two impulses.
        w: their velocities after the step.
        stiff: G_kk.
        soft: ρ = 1/G_kk.
        limit: the radius, μ times the normal impulse.
        closed: 1 where the contact is closed, else 0.
    """
    across = [a - soft * b for a, b in zip(p, w, strict=True)]
    square = across[0] * across[0] + across[1] * across[1]
    slides = square > limit * limit
    inverse = 1.0 / sqrt(square + TINY)
    kappa = where(slides, limit * inverse, closed)
    going = where(slides, closed * inverse, 0.0)
    open_part = (1.0 - kappa) * stiff
    residuals = [open_part * a + kappa * b for a, b in zip(p, w, strict=True)]
    return kappa, [going * across[0], going * across[1]], residuals


def inverse_above(x: Scalar, floor: Scalar) -> Scalar:
    """1/x; 0 where x is not above the floor: what nothing moves has no scale, and its impulse stays zero."""
    moves = x > floor
    return where(moves, 1.0 / where(moves, x, 1.0), 0.0)


def ends_of(joints: Sequence[JointRow]) -> list[Scalar]:
    """The bounds of velocities that joints have."""
    return [end for joint in joints for end in (joint.lower, joint.upper) if end is not None]


def where_known(numbers: Sequence[Scalar], values: Sequence[Scalar]) -> list[Scalar]:
    """The values, all of them NaN where one of the numbers of the problem is.

    Comparisons with NaN do not hold, so choices of the solver would hide it.
    """
    total = summed(numbers)
    is_known = total <= LARGEST
    return [where(is_known, x, total) for x in values]


def selected(condition: Condition, first: Sequence[Scalar], second: Sequence[Scalar]) -> list[Scalar]:
    """The first ones where the condition holds, else the second."""
    return [where(condition, a, b) for a, b in zip(first, second, strict=True)]
