"""How a variable is distributed: from a number u between 0 and 1 to a value, over abstract scalars.

A distribution is a table row: the names of its parameters, what they must satisfy, and its quantile function. Uniform
numbers have steps of 2^-32 of their range; the others, which have tails, are made from 52 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.scalar import Scalar, sqrt, where
from linkwise.study.sampling.special import exp, log, normal_quantile

Numbers = Sequence[float]


@dataclass(frozen=True)
class Distribution:
    """One kind: ``quantile(u, *parameters)``, and ``fault(*parameters)``, which says what is impossible about them."""

    name: str
    parameters: tuple[str, ...]
    quantile: Callable[..., Scalar]
    fault: Callable[..., str | None]
    bits: int = 52


def _uniform(u: Scalar, low: float, high: float) -> Scalar:
    return low + (high - low) * u


def _log_uniform(u: Scalar, low: float, high: float) -> Scalar:
    numbers: tuple[Any, Any] = (log(low), log(high))
    a, b = float(numbers[0]), float(numbers[1])
    return exp(a + (b - a) * u)


def _normal(u: Scalar, mean: float, deviation: float) -> Scalar:
    return mean + deviation * normal_quantile(u)


def _lognormal(u: Scalar, median: float, deviation: float) -> Scalar:
    return median * exp(deviation * normal_quantile(u))


def _triangular(u: Scalar, low: float, mode: float, high: float) -> Scalar:
    split = (mode - low) / (high - low)
    rising = low + sqrt(u * ((high - low) * (mode - low)))
    falling = high - sqrt((1.0 - u) * ((high - low) * (high - mode)))
    return where(u < split, rising, falling)


def _order_error(low: float, high: float) -> str | None:
    return None if low < high else f"expected low < high, got {low:g} and {high:g}"


def _log_range_error(low: float, high: float) -> str | None:
    return _order_error(low, high) if low > 0 else f"expected positive bounds, got {low:g}"


def _deviation_error(_middle: float, deviation: float) -> str | None:
    return None if deviation >= 0 else f"expected a deviation that is not negative, got {deviation:g}"


def _median_error(median: float, deviation: float) -> str | None:
    return (
        _deviation_error(median, deviation) if median > 0 else f"expected a positive median, got {median:g}"
    )


def _mode_between(low: float, mode: float, high: float) -> str | None:
    if low <= mode <= high and low < high:
        return None
    return f"expected low ≤ mode ≤ high, got {low:g}, {mode:g} and {high:g}"


DISTRIBUTIONS = {
    row.name: row
    for row in (
        Distribution("uniform", ("low", "high"), _uniform, _order_error, bits=32),
        Distribution("log_uniform", ("low", "high"), _log_uniform, _log_range_error),
        Distribution("normal", ("mean", "deviation"), _normal, _deviation_error),
        Distribution("lognormal", ("median", "deviation"), _lognormal, _median_error),
        Distribution("triangular", ("low", "mode", "high"), _triangular, _mode_between),
    )
}


def chosen(u: Scalar, values: Sequence[Numbers]) -> list[Scalar]:
    """One of several values with equal chances; each value is a list of numbers, all of one length."""
    count = len(values)
    picked: list[Scalar] = [float(x) for x in values[-1]]
    for k in range(count - 2, -1, -1):
        picked = [where(u < (k + 1) / count, float(x), y) for x, y in zip(values[k], picked, strict=True)]
    return picked


def fault(name: str, parameters: Sequence[float]) -> str | None:
    """What is impossible about these parameters of a distribution, if anything."""
    if not all(math.isfinite(p) for p in parameters):
        return f"expected finite numbers, got {', '.join(f'{p:g}' for p in parameters)}"
    return DISTRIBUTIONS[name].fault(*parameters)
