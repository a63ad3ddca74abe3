"""Interval arithmetic on pairs of floats with outward rounding.

Every operation is computed with rounding to nearest and moved outwards by one float, which is more than the rounding. A
bound that is not a number becomes an infinity: an interval is never too small.
"""

from __future__ import annotations

import math

Interval = tuple[float, float]

WHOLE: Interval = (-math.inf, math.inf)


def down(x: float) -> float:
    """A float below."""
    return -math.inf if math.isnan(x) else math.nextafter(x, -math.inf)


def above(x: float) -> float:
    """A float above."""
    return math.inf if math.isnan(x) else math.nextafter(x, math.inf)


def add(a: Interval, b: Interval) -> Interval:
    return down(a[0] + b[0]), above(a[1] + b[1])


def subtract(a: Interval, b: Interval) -> Interval:
    return down(a[0] - b[1]), above(a[1] - b[0])


def negate(a: Interval) -> Interval:
    return -a[1], -a[0]


def multiply(a: Interval, b: Interval) -> Interval:
    products = [_product(x, y) for x in a for y in b]
    return down(min(products)), above(max(products))


def square(a: Interval) -> Interval:
    """Of one value with itself: never below 0."""
    high = multiply(a, a)[1]
    if a[0] <= 0.0 <= a[1]:
        return 0.0, high
    return max(0.0, down(min(a[0] * a[0], a[1] * a[1]))), high


def divide(a: Interval, b: Interval) -> Interval:
    """The whole line where the divisor may be 0."""
    if b[0] <= 0.0 <= b[1]:
        return WHOLE
    quotients = [_quotient(x, y) for x in a for y in b]
    return down(min(quotients)), above(max(quotients))


def root(a: Interval) -> Interval:
    """Of the part that is not negative."""
    low = math.sqrt(max(a[0], 0.0))
    high = math.sqrt(max(a[1], 0.0)) if a[1] < math.inf else math.inf
    return max(0.0, down(low)), above(high)


def absolute(a: Interval) -> Interval:
    low = 0.0 if a[0] <= 0.0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def meet(a: Interval, b: Interval) -> Interval:
    """What is in both, for two intervals that hold the same value; if rounding left nothing, the first."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a


def widened(a: Interval, by: float) -> Interval:
    return down(a[0] - by), above(a[1] + by)


def magnitude(a: Interval) -> float:
    return max(abs(a[0]), abs(a[1]))


def cosine(a: Interval) -> Interval:
    """Range of the cosine over an interval of angles [rad]."""
    low, high = a
    if not (math.isfinite(low) and math.isfinite(high)) or max(abs(low), abs(high)) > 2.0**30:
        return -1.0, 1.0
    slack = 4e-16 * (1.0 + max(abs(low), abs(high)))
    values = (math.cos(low), math.cos(high))
    least, most = min(values) - slack, max(values) + slack
    if math.floor((high + slack) / (2 * math.pi)) >= math.ceil((low - slack) / (2 * math.pi)):
        most = 1.0
    if math.floor((high + slack) / (2 * math.pi) - 0.5) >= math.ceil((low - slack) / (2 * math.pi) - 0.5):
        least = -1.0
    return max(least, -1.0), min(most, 1.0)


def sine(a: Interval) -> Interval:
    """Range of the sine over an interval of angles [rad]."""
    return cosine(subtract(a, (math.pi / 2, above(math.pi / 2))))


def _product(x: float, y: float) -> float:
    return 0.0 if x == 0.0 or y == 0.0 else x * y


def _quotient(x: float, y: float) -> float:
    if math.isinf(x) and math.isinf(y):
        return math.nan
    return x / y
