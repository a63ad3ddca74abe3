"""Weights of sampled motions, over scalars: exponentials and sums in an order that does not depend on the machine."""

from __future__ import annotations

from linkwise.scalar import Scalar, where

LARGEST = 80.0
"""Exponents beyond this give weight 0: e⁻⁸⁰ is still a normal number in float32."""
_HALVINGS = 9
_TERMS = 10


def exponential(x: Scalar) -> Scalar:
    """e⁻ˣ for 0 ≤ x ≤ 80 and 0 for larger x and NaN, by arithmetic alone: the same bits on every machine.

    e⁻ˣ = (e⁻ʸ)⁵¹² with y = x/512, of which ten terms of the series are enough.
    """
    inside = x <= LARGEST
    y = where(inside, x, LARGEST) * 0.5**_HALVINGS
    value = 1.0
    for k in range(_TERMS, 0, -1):
        value = 1.0 - y * value * (1.0 / k)
    for _ in range(_HALVINGS):
        value = value * value
    return where(inside, value, 0.0)
