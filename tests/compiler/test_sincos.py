"""Accuracy of the project's own sine and cosine against mpmath, in both precisions."""

import math

import mpmath
import numpy as np
import pytest

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import trace
from linkwise.compiler.ir.sincos import CONSTANTS
from linkwise.scalar import cos, sin

BITS = {"float64": 53, "float32": 24}
SCALAR = {"float64": np.float64, "float32": np.float32}


def program(dtype, fused=True):
    return trace(lambda x: [sin(x[0]), cos(x[0])], {"x": 1}, {"out": (2,)}, dtype=dtype, fused=fused)


def hard_arguments(bits: int, exponents: range) -> list[float]:
    """Floats m·2^e that are exceptionally close to a multiple of π/2: multiples of the denominators of the
    convergents of 2^e/(π/2), one continued fraction for each exponent e (Kahan's and Muller's search).
    """
    found = set()
    with mpmath.workprec(4 * bits + 200):
        for e in exponents:
            rest = mpmath.mpf(2) ** e / (mpmath.pi / 2)
            before, denominator = 1, 0
            while True:
                whole = int(mpmath.floor(rest))
                before, denominator = denominator, whole * denominator + before
                if denominator >= 2**bits:
                    break
                if denominator:
                    first = 2 ** (bits - 1) // denominator
                    for multiple in range(max(first, 1), first + 3):
                        for m in (multiple * denominator, multiple * denominator + before):
                            if 2 ** (bits - 1) <= m < 2**bits:
                                found.add(math.ldexp(m, e))
                rest = 1 / (rest - whole)
    return sorted(found)


def error_in_ulp(result, exact: mpmath.mpf, scalar) -> float:
    ulp = float(np.spacing(scalar(abs(float(exact)))))
    return abs(float((mpmath.mpf(float(result)) - exact) / ulp))


def worst_error(dtype: str, arguments, fused: bool = True) -> float:
    scalar, compiled = SCALAR[dtype], program(dtype, fused)
    worst = 0.0
    with mpmath.workprec(200):
        for x in np.asarray(arguments).astype(scalar):
            results = interpret.run(compiled, [x])[0]
            exact = mpmath.mpf(float(x))
            for result, value in zip(results, (mpmath.sin(exact), mpmath.cos(exact)), strict=True):
                worst = max(worst, error_in_ulp(result, value, scalar))
    return worst


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_accurate_on_random_arguments(dtype, fused):
    rng = np.random.default_rng(7)
    arguments = np.concatenate(
        [
            rng.uniform(-1e5, 1e5, 2500),
            rng.uniform(-7, 7, 2500),
            rng.uniform(0.5, 0.55, 500),  # where the error of the remainder weighs most
            10.0 ** rng.uniform(-12, 5, 1000),
            np.arange(-100, 100) * (np.pi / 2),
            np.arange(-100, 100) * (np.pi / 4),
        ]
    )
    assert worst_error(dtype, arguments, fused) < 1.6


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_accurate_next_to_multiples_of_half_pi(dtype):
    bits, limit = BITS[dtype], CONSTANTS[dtype].limit
    exponents = range(-bits, int(math.log2(limit)) - bits)
    arguments = hard_arguments(bits, exponents)
    assert len(arguments) > 300
    closest = min(abs(math.remainder(x, math.pi)) for x in arguments)
    assert closest < 1e-7 if dtype == "float32" else closest < 1e-15  # they are hard indeed
    assert worst_error(dtype, arguments) < 1.6


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_out_of_range_is_nan(dtype, fused):
    compiled = program(dtype, fused)
    limit = CONSTANTS[dtype].limit if fused else CONSTANTS[dtype].short_limit
    assert limit >= 1e5
    beyond = float(np.nextafter(SCALAR[dtype](limit), SCALAR[dtype](math.inf)))
    for x in (math.inf, -math.inf, math.nan, beyond, -beyond, 1e30):
        assert np.isnan(interpret.run(compiled, [x])[0]).all()
    assert worst_error(dtype, [limit, -limit], fused) < 1.6


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exact_values(dtype):
    compiled = program(dtype)
    assert interpret.run(compiled, [0.0])[0].tolist() == [0.0, 1.0]
    tiny = float(np.finfo(dtype).tiny)
    for x in (tiny, -tiny, tiny / 8):
        assert interpret.run(compiled, [x])[0].tolist() == [x, 1.0]


def test_sine_and_cosine_share_their_work():
    both = list(program("float64").nodes())
    sine = list(trace(lambda x: [sin(x[0])], {"x": 1}, {"out": (1,)}).nodes())
    assert sum(node.op == "fma" for node in both) == sum(node.op == "fma" for node in sine)
    assert len(both) <= len(sine) + 5


def test_constants_are_exact_in_their_precision():
    constants = CONSTANTS["float32"]
    exact, short, last = constants.short_half_pi
    polynomials = (*constants.sine, *constants.cosine)
    for value in (*constants.half_pi, *exact, *short, last, *polynomials, constants.two_over_pi):
        assert float(np.float32(value)) == value


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_pieces_of_half_pi(dtype):
    constants = CONSTANTS[dtype]
    exact, short, last = constants.short_half_pi
    with mpmath.workprec(400):
        short_pieces = (*exact, *short, last)
        for pieces, limit in ((constants.half_pi, constants.limit), (short_pieces, constants.short_limit)):
            left = abs(mpmath.pi / 2 - sum(map(mpmath.mpf, pieces)))
            # what is left, times the largest k, is nothing beside the smallest remainder, about 2^-(bits + 8)
            assert left * limit < mpmath.mpf(2) ** (-2 * BITS[dtype] + 1)
        for piece in (*exact, *short):  # k times a short piece is exact
            k = math.ceil(constants.short_limit / (math.pi / 2)) + 1
            numerator, _ = piece.as_integer_ratio()
            assert numerator.bit_length() + k.bit_length() <= BITS[dtype] + 1
