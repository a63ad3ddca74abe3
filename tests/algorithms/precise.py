"""A scalar of 60 digits for the algorithms: what they would give without round-off."""

from __future__ import annotations

from typing import Any

import mpmath

CONTEXT = mpmath.mp.clone()
CONTEXT.dps = 60


class Precise:
    """A number with the operations of ``linkwise.scalar``."""

    def __init__(self, value: Any):
        self.value = value.value if isinstance(value, Precise) else CONTEXT.mpf(value)

    def _with(self, other: Any, operation) -> Any:
        if not isinstance(other, (Precise, float, int)):  # a vector, which multiplies its components
            return NotImplemented
        return Precise(operation(self.value, Precise(other).value))

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self._with(other, lambda a, b: a / b)

    def __rtruediv__(self, other):
        return self._with(other, lambda a, b: b / a)

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self):
        return Precise(abs(self.value))

    def __neg__(self):
        return Precise(-self.value)

    def __gt__(self, other):
        return bool(self.value > Precise(other).value)

    def __ge__(self, other):
        return bool(self.value >= Precise(other).value)

    def __lt__(self, other):
        return bool(self.value < Precise(other).value)

    def __le__(self, other):
        return bool(self.value <= Precise(other).value)

    def __float__(self):
        return float(self.value)

    def sin(self):
        return Precise(CONTEXT.sin(self.value))

    def cos(self):
        return Precise(CONTEXT.cos(self.value))

    def sqrt(self):
        return Precise(CONTEXT.sqrt(self.value))
