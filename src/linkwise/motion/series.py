"""Truncated Taylor series of time as a scalar: a value with its first and second derivative.

Algorithms are written over any scalar with arithmetic; run on these, they give exact derivatives of their results along
a motion. The parts may be floats, arrays or symbols.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.scalar import cos, sin


class Series:
    """x + ẋ t + ½ ẍ t²."""

    __slots__ = ("bend", "rate", "value")
    __array_ufunc__ = None  # arrays leave arithmetic with a series to it

    def __init__(self, value: Any, rate: Any, bend: Any):
        self.value, self.rate, self.bend = value, rate, bend

    @staticmethod
    def parts(x: Any) -> tuple[Any, Any, Any]:
        """Value, first and second derivative of a series or of a constant."""
        return (x.value, x.rate, x.bend) if isinstance(x, Series) else (x, 0.0, 0.0)

    def __add__(self, other: Any) -> Any:
        if not _is_scalar(other):
            return NotImplemented
        a, b, c = self.parts(other)
        return Series(self.value + a, self.rate + b, self.bend + c)

    __radd__ = __add__

    def __neg__(self) -> Series:
        return Series(-self.value, -self.rate, -self.bend)

    def __sub__(self, other: Any) -> Any:
        return self + (-other) if _is_scalar(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if not _is_scalar(other):
            return NotImplemented
        a, b, c = self.parts(other)
        return Series(
            self.value * a,
            self.rate * a + self.value * b,
            self.bend * a + 2.0 * (self.rate * b) + self.value * c,
        )

    __rmul__ = __mul__

    def sin(self) -> Series:
        s, c = sin(self.value), cos(self.value)
        return Series(s, c * self.rate, c * self.bend - s * (self.rate * self.rate))

    def cos(self) -> Series:
        s, c = sin(self.value), cos(self.value)
        return Series(c, -s * self.rate, -s * self.bend - c * (self.rate * self.rate))


def _is_scalar(x: Any) -> bool:
    return isinstance(x, (Series, float, int, np.ndarray, np.generic))
