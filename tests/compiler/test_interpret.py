"""The definition itself: exact fused multiply-adds, one rounding per operation, and plain evaluation of
random programs.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import INPUTS, every_operation, every_program, random_function, same_bits, states

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.interpret import bits, fma
from linkwise.compiler.ir.program import trace
from linkwise.errors import ShapeError
from linkwise.scalar import sqrt, where, while_loop

FLOATS = st.floats(width=64) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 1e308, 2.0**-1022, 1.0 + 2.0**-52]
)
SINGLES = st.floats(width=32) | st.sampled_from(
    [0.0, -0.0, 2.0**-149, -(2.0**-149), 2.0**-126, 1.0 + 2.0**-23]
)


def assert_nearest(result, exact: Fraction, scalar) -> None:
    """``result`` is the float nearest to an exact value, the even one of two that are equally near."""
    limits = np.finfo(scalar)
    if not np.isfinite(result):
        half_step = Fraction(2) ** (limits.maxexp - limits.nmant - 2)
        assert abs(exact) >= Fraction(float(limits.max)) + half_step
        assert (result > 0) == (exact > 0)
        return
    error = abs(Fraction(float(result)) - exact)
    for direction in (-math.inf, math.inf):
        neighbour = np.nextafter(result, scalar(direction))
        if np.isfinite(neighbour):
            distance = abs(Fraction(float(neighbour)) - exact)
            assert error <= distance
            if error == distance:
                assert bits(result) % 2 == 0


@settings(max_examples=300, deadline=None)
@given(FLOATS, FLOATS, FLOATS)
def test_fma_rounds_once_in_double(a, b, c):
    check_fma(np.float64, a, b, c)


@settings(max_examples=300, deadline=None)
@given(SINGLES, SINGLES, SINGLES)
def test_fma_rounds_once_in_single(a, b, c):
    check_fma(np.float32, a, b, c)


def check_fma(scalar, a, b, c):
    with np.errstate(all="ignore"):
        result = fma(scalar(a), scalar(b), scalar(c))
        plain = scalar(a) * scalar(b) + scalar(c)
    assert type(result) is scalar
    if not all(map(math.isfinite, (a, b))):
        assert same_bits([result], [plain])
    elif not math.isfinite(c):
        assert same_bits([result], [c])
    else:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        assert_nearest(result, exact, scalar)


def test_fma_in_single_is_not_a_rounded_double():
    """The product is a half step of the result, the addend breaks the tie below what a double can hold."""
    a, b, c = np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(2**-60)
    through_double = np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    assert fma(a, b, c) == np.float32(1 + 2**-11 + 2**-23)
    assert through_double == np.float32(1 + 2**-11)


@pytest.mark.parametrize(
    ("a", "b", "c", "zero"),
    [(0.0, 1.0, -0.0, 0.0), (-0.0, 1.0, -0.0, -0.0), (1.0, 1.0, -1.0, 0.0), (-1e-200, 1e-200, 0.0, -0.0)],
)
def test_sign_of_a_zero(a, b, c, zero):
    assert same_bits([fma(np.float64(a), np.float64(b), np.float64(c))], [zero])


def test_overflow_and_underflow():
    big, small = np.float64(1e300), np.float64(5e-324)
    assert fma(big, big, np.float64(-math.inf)) == -math.inf  # the product alone would overflow
    assert fma(big, big, -big) == math.inf
    assert fma(small, np.float64(0.5), np.float64(0.0)) == 0.0
    assert fma(small, np.float64(0.75), np.float64(0.0)) == small


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_programs_without_fusing_do_what_python_does(dtype, seed):
    """Without fused operations, sines and rules that reorder, a program is the function itself, operation by
    operation.
    """

    def function(x, y):
        a, b, c = x
        d, e = y
        total = a * b
        for k in range(seed % 4):
            total = (total - c) / (d + k) if (seed >> k) & 1 else sqrt(abs(total * e))
        return [total, where(total < a, total, b), abs(c) * total, -total]

    program = trace(function, INPUTS, {"out": (4,)}, dtype=dtype)
    scalar = np.float64 if dtype == "float64" else np.float32
    for x, y in states(4, seed, special=False):
        with np.errstate(all="ignore"):
            x, y = x.astype(scalar), y.astype(scalar)
            wanted = [np.asarray(value, dtype=scalar)[()] for value in function(list(x), list(y))]
        unfused = trace(function, INPUTS, {"out": (4,)}, dtype=dtype, fused=False)
        assert not any(node.op == "fma" for node in unfused.nodes())
        assert same_bits(interpret.run(unfused, x, y)[0], wanted)
        assert interpret.run(program, x, y)[0].dtype == scalar


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_programs_compute_the_function(seed):
    """With everything the compiler does, up to rounding."""
    function = random_function(seed, 30, smooth=True)
    program = trace(function, INPUTS, {"out": (6,)})
    for x, y in states(3, seed, special=False):
        x, y = np.tanh(x), np.tanh(y)  # keeps products small, so that a plain tolerance makes sense
        wanted = np.array([float(value) for value in function(list(map(float, x)), list(map(float, y)))])
        scale = 1.0 + np.max(np.abs(wanted))
        if scale < 1e6:
            np.testing.assert_allclose(interpret.run(program, x, y)[0], wanted, rtol=1e-9, atol=1e-9 * scale)


def test_every_operation_against_floats():
    program = every_program("float64")
    for x, y in states(12, 3, special=False):
        y = np.abs(y)
        wanted = np.array([float(value) for value in every_operation(x, y)])
        np.testing.assert_allclose(interpret.run(program, x, y)[0], wanted, rtol=1e-11, atol=1e-11)


def test_loops_run_until_the_condition_fails():
    def halve(x):
        return while_loop(lambda n, steps: n > 1.0, lambda n, steps: (0.5 * n, steps + 1.0), (x[0], 0.0))

    program = trace(lambda x: list(halve(x)), {"x": 1}, {"out": (2,)})
    assert interpret.run(program, [1024.0])[0].tolist() == [1.0, 10.0]
    assert interpret.run(program, [0.5])[0].tolist() == [0.5, 0.0]
    assert np.isnan(interpret.run(program, [math.nan])[0][0])


def test_carried_values_change_at_once():
    def fibonacci(x):
        a, b, _ = while_loop(lambda a, b, n: n > 0.0, lambda a, b, n: (b, a + b, n - 1.0), (0.0, 1.0, x[0]))
        return [a, b]

    program = trace(fibonacci, {"x": 1}, {"out": (2,)})
    assert interpret.run(program, [10.0])[0].tolist() == [55.0, 89.0]


def test_wrong_inputs_are_named():
    program = trace(lambda x: [x[0] + x[1]], {"x": 2}, {"out": (1,)}, name="pair")
    with pytest.raises(ShapeError, match="pair takes 1 inputs, got 2"):
        interpret.run(program, [1.0, 2.0], [3.0])
    with pytest.raises(ShapeError, match="x: expected 2 numbers, got 3"):
        interpret.run(program, [1.0, 2.0, 3.0])
