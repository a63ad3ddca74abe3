"""Logarithm, exponential function and normal quantile over abstract scalars.

Built from the operations that every target performs with the same bits, so that a drawn normal number is the same on
every machine; the functions of a C library are not. The compiler may rearrange what is written here, so nothing relies
on the rounding of single operations.
"""

from __future__ import annotations

from linkwise.scalar import Scalar, rint, sqrt, where

_LN2 = 0.69314718055994530942
_SQRT_HALF = 0.70710678118654752440


def log(x: Scalar) -> Scalar:
    """ln x for 2^-64 ≤ x ≤ 2^64, to a few units in the last place."""
    exponent: Scalar = 0.0
    for power in (32, 16, 8, 4, 2, 1):  # into 1/2 ≤ x < 2 from both sides
        small = x < 2.0**-power
        x, exponent = where(small, x * 2.0**power, x), where(small, exponent - power, exponent)
        large = x >= 2.0**power
        x, exponent = where(large, x * 2.0**-power, x), where(large, exponent + power, exponent)
    above = x > 2.0 * _SQRT_HALF
    x, exponent = where(above, 0.5 * x, x), where(above, exponent + 1.0, exponent)
    below = x < _SQRT_HALF
    x, exponent = where(below, 2.0 * x, x), where(below, exponent - 1.0, exponent)
    # ln x = 2 artanh s with s = (x - 1)/(x + 1), |s| < 0.172
    s = (x - 1.0) / (x + 1.0)
    square = s * s
    series: Scalar = 0.0
    for k in range(12, 0, -1):
        series = (series + 1.0 / (2 * k + 1)) * square
    return exponent * _LN2 + 2.0 * (s + s * series)


def exp(x: Scalar) -> Scalar:
    """eˣ for |x| < 700, to a relative error of about 1e-16·(1 + |x|)."""
    whole = rint(1.44269504088896340736 * x)
    rest = x - whole * _LN2
    series: Scalar = 1.0
    for k in range(14, 0, -1):
        series = 1.0 + rest * series * (1.0 / k)
    for power in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        up, down = whole >= power, whole <= -power
        series = where(up, series * 2.0**power, where(down, series * 2.0**-power, series))
        whole = where(up, whole - power, where(down, whole + power, whole))
    return series


# M. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988: PPND16.
_CENTRE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4),
        *(4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    ),
)
_NEAR = (
    (
        *(
            1.42343711074968357734e0,
            4.63033784615654529590e0,
            5.76949722146069140550e0,
            3.64784832476320460504e0,
        ),
        *(
            1.27045825245236838258e0,
            2.41780725177450611770e-1,
            2.27238449892691845833e-2,
            7.74545014278341407640e-4,
        ),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(
            1.48103976427480074590e-1,
            1.51986665636164571966e-2,
            5.47593808499534494600e-4,
            1.05075007164441684324e-9,
        ),
    ),
)
_FAR = (
    (
        *(
            6.65790464350110377720e0,
            5.46378491116411436990e0,
            1.78482653991729133580e0,
            2.96560571828504891230e-1,
        ),
        *(
            2.65321895265761230930e-2,
            1.24266094738807843860e-3,
            2.71155556874348757815e-5,
            2.01033439929228813265e-7,
        ),
    ),
    (
        *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
        *(
            7.86869131145613259100e-4,
            1.84631831751005468180e-5,
            1.42151175831644588870e-7,
            2.04426310338993978564e-15,
        ),
    ),
)


def normal_quantile(u: Scalar) -> Scalar:
    """The x with Φ(x) = u, for 2^-64 ≤ u < 1, to a relative error of about 1e-16."""
    q = u - 0.5
    centre = q * _ratio(_CENTRE, 0.180625 - q * q)
    tail = where(q < 0.0, u, 1.0 - u)
    r = sqrt(-log(tail))
    side = where(r <= 5.0, _ratio(_NEAR, r - 1.6), _ratio(_FAR, r - 5.0))
    side = where(q < 0.0, -side, side)
    return where(q * q <= 0.180625, centre, side)


def _ratio(fraction: tuple[tuple[float, ...], tuple[float, ...]], x: Scalar) -> Scalar:
    above, below = (_polynomial(coefficients, x) for coefficients in fraction)
    return above / below


def _polynomial(coefficients: tuple[float, ...], x: Scalar) -> Scalar:
    value: Scalar = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value
