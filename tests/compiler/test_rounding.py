"""Rounding to whole numbers, on every kind of scalar and in both precisions."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import trace, unfused
from linkwise.compiler.kernel import Kernel
from linkwise.scalar import rint

VALUES = [
    0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    0.49999,
    0.50001,
    1e6 + 0.5,
    -3.7,
    2.0**22 + 1,
    2.0**30,
    1e300,
    np.inf,
    -np.inf,
    np.nan,
]


def function(x):
    whole = rint(x[0])
    return [whole, x[0] - whole, rint(3.0 * x[0]) + whole]  # sums that must not be taken apart


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nearest_even_as_numpy_does(dtype):
    build = lambda precision: trace(function, {"x": 1}, {"y": (3,)}, dtype=precision)  # noqa: E731
    kernel = Kernel("rounding", [("x", 1)], [("y", (3,))], dtype, build)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.array(VALUES, dtype)[:, np.newaxis]
        expected = np.concatenate(
            [np.rint(x), x - np.rint(x), np.rint(np.asarray(3.0, dtype) * x) + np.rint(x)], axis=1
        )
        np.testing.assert_array_equal(kernel(x), expected)
        for row, wanted in zip(x, expected, strict=True):
            np.testing.assert_array_equal(interpret.run(kernel.program(dtype), row)[0], wanted)
            np.testing.assert_array_equal(interpret.run(unfused(kernel.program(dtype)), row)[0], wanted)


@pytest.mark.parametrize("value", VALUES)
def test_plain_numbers_and_arrays(value):
    np.testing.assert_array_equal(rint(value), np.rint(value))
    np.testing.assert_array_equal(rint(np.array([value, value])), np.rint([value, value]))


def test_constants_fold():
    program = trace(lambda x: [rint(2.5) + x[0] * 0.0], {"x": 1}, {"y": (1,)})
    assert program.values[0][0].op == "const"
    assert program.values[0][0].value == 2.0
