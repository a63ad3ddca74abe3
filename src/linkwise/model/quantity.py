"""Which numbers a robot may have: one range for every length, mass, moment, angle and ratio.

Squares and products of what is read must stay finite in double precision: gear ratios are squared, moments are masses
times squared distances, and an algorithm multiplies several of them. 10³⁰ of any SI unit is beyond any robot, and
its cube is far from overflow.
"""

from __future__ import annotations

import math

from linkwise.errors import ModelError

LARGEST = 1e30  # magnitude of any number of a robot, in SI units


def in_range(value: float) -> bool:
    """Whether a number is finite and at most ``LARGEST``."""
    return abs(value) <= LARGEST  # false for NaN


def expected(value: float) -> str:
    """What to say about a number that is not in range."""
    if math.isnan(value):
        return "expected a finite number, got nan"
    return f"expected a number of magnitude up to {LARGEST:g}, got {value!r}"


def limit(value: float) -> float:
    """A limit (of position, speed or effort): beyond the range it is none."""
    return value if in_range(value) or math.isnan(value) else math.copysign(math.inf, value)


def finite(what: str, value: object) -> float:
    """A number of a robot, or an error that names the argument."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what}: expected a number, got {value!r}") from None
    if not in_range(number):
        raise ModelError(f"{what}: {expected(number)}")
    return number
