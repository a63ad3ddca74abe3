"""Operation counts as polynomials in the number of joints, exact, written the way papers write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_TERM = re.compile(r"(?P<sign>[+-]?)(?P<factor>\d+(/\d+)?)?(?P<n>n(\^(?P<power>[1-3]))?)?")
_POWERS = ("", "n", "n²", "n³")
_PARTS = {(1, 2): "½", (1, 3): "⅓", (2, 3): "⅔", (1, 6): "⅙", (5, 6): "⅚"}
HIGHEST = 3


@dataclass(frozen=True)
class Polynomial:
    """Σ coefficients[k]·nᵏ; called with n it gives a whole number (or a fraction, where it is none)."""

    coefficients: tuple[Fraction, ...]

    @classmethod
    def parse(cls, text: str) -> Polynomial:
        """From text such as ``1/3 n^3 + 41/2 n^2 - 395`` or ``701``."""
        found = [Fraction(0)] * (HIGHEST + 1)
        compact = text.replace(" ", "")
        place = 0
        while place < len(compact) or not compact:
            term = _TERM.match(compact, place)
            if term is None or term.end() == place or not (term["factor"] or term["n"]):
                raise ValueError(f"{text!r}: not a polynomial in n")
            power = int(term["power"] or 1) if term["n"] else 0
            found[power] += Fraction(term["factor"] or 1) * (-1 if term["sign"] == "-" else 1)
            place = term.end()
        return cls(_trimmed(found))

    @classmethod
    def through(cls, values: Mapping[int, int]) -> Polynomial | None:
        """The polynomial of at most third degree through all these counts (by n); None if there is none.

        One value more than the degree needs must be among them, so that the formula is seen to hold.
        """
        places = sorted(values)
        found = cls((Fraction(0),))
        basis = cls((Fraction(1),))
        for used, n in enumerate(places):
            rest = values[n] - found(n)
            if rest:
                if used > HIGHEST:
                    return None
                found = found + basis * Fraction(rest, basis(n))
            basis = basis * cls((Fraction(-n), Fraction(1)))
        return found if len(found.coefficients) < len(places) else None

    def __call__(self, n: int) -> int | Fraction:
        value = sum((c * n**k for k, c in enumerate(self.coefficients)), start=Fraction(0))
        return value.numerator if value.denominator == 1 else value

    def __add__(self, other: Polynomial) -> Polynomial:
        size = max(len(self.coefficients), len(other.coefficients))
        return Polynomial(_trimmed([self._at(k) + other._at(k) for k in range(size)]))

    def __mul__(self, other: Polynomial | Fraction) -> Polynomial:
        if isinstance(other, Fraction):
            return Polynomial(_trimmed([c * other for c in self.coefficients]))
        product = [Fraction(0)] * (len(self.coefficients) + len(other.coefficients) - 1)
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(other.coefficients):
                product[i + j] += a * b
        return Polynomial(_trimmed(product))

    @property
    def is_number(self) -> bool:
        return len(self.coefficients) == 1

    def _at(self, power: int) -> Fraction:
        return self.coefficients[power] if power < len(self.coefficients) else Fraction(0)

    def __str__(self) -> str:
        text = ""
        for power in reversed(range(len(self.coefficients))):
            c = self.coefficients[power]
            if c == 0:
                continue
            sign = " − " if c < 0 else " + "
            text += (
                (sign if text else sign.strip().replace("+", "")) + _factor(abs(c), power) + _POWERS[power]
            )
        return text or "0"


def _factor(c: Fraction, power: int) -> str:
    if c == 1 and power:
        return ""
    whole, rest = divmod(c.numerator, c.denominator)
    if not rest:
        return str(whole)
    part = _PARTS.get((rest, c.denominator))
    return f"{whole or ''}{part}" if part else f"{c.numerator}/{c.denominator} "


def _trimmed(coefficients: list[Fraction]) -> tuple[Fraction, ...]:
    end = len(coefficients)
    while end > 1 and coefficients[end - 1] == 0:
        end -= 1
    return tuple(coefficients[:end])
