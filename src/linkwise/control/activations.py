"""Functions of networks over abstract scalars: the same bits on every target, to the precision of float32."""

from __future__ import annotations

from collections.abc import Callable

from linkwise.scalar import Scalar, rint, where

_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.428606765330187e-06
LARGEST = 20.0
"""Arguments of ``exp`` are taken within ± this."""


def exp(x: Scalar) -> Scalar:
    """eˣ for |x| ≤ 20, to a relative error of about 2e-7; beyond, that of ± 20. A NaN stays one."""
    x = where(x > LARGEST, LARGEST, where(x < -LARGEST, -LARGEST, x))
    whole = rint(1.4426950408889634 * x)
    rest = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    series: Scalar = 1.0 / 5040.0
    for factor in (1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0):
        series = series * rest + factor
    for power in (16, 8, 4, 2, 1):
        up, down = whole >= float(power), whole <= -float(power)
        series = where(up, series * 2.0**power, where(down, series * 2.0**-power, series))
        whole = where(up, whole - power, where(down, whole + power, whole))
    return series


def relu(x: Scalar) -> Scalar:
    """x where it is positive, else 0."""
    return where(x < 0.0, 0.0, x)


def elu(x: Scalar) -> Scalar:
    """x where it is positive, else eˣ − 1."""
    return where(x < 0.0, exp(x) - 1.0, x)


def tanh(x: Scalar) -> Scalar:
    """The hyperbolic tangent; ± 1 to the last bit of float32 beyond ± 9."""
    x = where(x > 9.0, 9.0, where(x < -9.0, -9.0, x))
    power = exp(2.0 * x)
    return (power - 1.0) / (power + 1.0)


def swish(x: Scalar) -> Scalar:
    """x/(1 + e⁻ˣ)."""
    return x / (1.0 + exp(-x))


ACTIVATIONS: dict[str, Callable[[Scalar], Scalar]] = {"relu": relu, "elu": elu, "tanh": tanh, "swish": swish}
