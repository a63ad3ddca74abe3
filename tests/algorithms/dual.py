"""A forward-mode dual number: value and derivative along one direction, exact to round-off.

Algorithms take any scalar with arithmetic; this one has nothing else. It knows no tensors and no arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    value: float
    rate: float = 0.0

    def __add__(self, other):
        other = _dual(other)
        return NotImplemented if other is None else Dual(self.value + other.value, self.rate + other.rate)

    __radd__ = __add__

    def __neg__(self):
        return Dual(-self.value, -self.rate)

    def __sub__(self, other):
        other = _dual(other)
        return NotImplemented if other is None else Dual(self.value - other.value, self.rate - other.rate)

    def __rsub__(self, other):
        return -(self - other)

    def __mul__(self, other):
        other = _dual(other)
        if other is None:
            return NotImplemented
        return Dual(self.value * other.value, self.rate * other.value + self.value * other.rate)

    __rmul__ = __mul__

    def __truediv__(self, other):
        other = _dual(other)
        if other is None:
            return NotImplemented
        quotient = self.value / other.value
        return Dual(quotient, (self.rate - quotient * other.rate) / other.value)

    def __rtruediv__(self, other):
        return Dual(float(other)) / self

    def __lt__(self, other):
        return self.value < _dual(other).value

    def __gt__(self, other):
        return self.value > _dual(other).value

    def __le__(self, other):
        return self.value <= _dual(other).value

    def __ge__(self, other):
        return self.value >= _dual(other).value

    def sin(self):
        return Dual(math.sin(self.value), math.cos(self.value) * self.rate)

    def cos(self):
        return Dual(math.cos(self.value), -math.sin(self.value) * self.rate)

    def sqrt(self):
        root = math.sqrt(self.value)
        return Dual(root, self.rate / (2 * root))


def _dual(x) -> Dual | None:
    if isinstance(x, Dual):
        return x
    return Dual(float(x)) if isinstance(x, (float, int)) else None


def along(values, direction) -> list[Dual]:
    """A vector that moves in a direction."""
    return [Dual(float(v), float(d)) for v, d in zip(values, direction, strict=True)]


def constant(values) -> list[Dual]:
    return [Dual(float(v)) for v in values]


def rates(nested):
    """The derivatives of nested lists of duals (plain numbers are constants)."""
    if isinstance(nested, (list, tuple)):
        return [rates(x) for x in nested]
    return nested.rate if isinstance(nested, Dual) else 0.0


def parts(nested):
    """The values of nested lists of duals."""
    if isinstance(nested, (list, tuple)):
        return [parts(x) for x in nested]
    return nested.value if isinstance(nested, Dual) else nested
