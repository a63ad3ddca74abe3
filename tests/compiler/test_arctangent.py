"""Accuracy of the project's own atan2 against mpmath, and its values at zeros and infinities."""

import math

import mpmath
import numpy as np
import pytest
from random_programs import same_bits

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.arctangent import CONSTANTS
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import trace


def program(dtype, fused=True):
    return trace(lambda x: [x[0].arctan2(x[1])], {"x": 2}, {"out": (1,)}, dtype=dtype, fused=fused)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_accurate(dtype, fused):
    compiled, scalar = program(dtype, fused), np.dtype(dtype).type
    rng = np.random.default_rng(2)
    angles = np.concatenate([rng.uniform(-np.pi, np.pi, 800), np.arange(-16, 17) * (np.pi / 16)])
    sizes = 10.0 ** rng.uniform(-30, 30, angles.size)
    pairs = np.stack(
        [np.sin(angles) * sizes, np.cos(angles) * sizes * 10.0 ** rng.choice([0, 3], angles.size)], 1
    )
    with mpmath.workprec(150):
        for y, x in pairs.astype(scalar):
            exact = mpmath.atan2(mpmath.mpf(float(y)), mpmath.mpf(float(x)))
            ulp = float(np.spacing(scalar(abs(float(exact)))))
            result = float(interpret.run(compiled, [y, x])[0][0])
            assert abs(float((mpmath.mpf(result) - exact) / ulp)) < 2.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_zeros_infinities_and_extremes(dtype):
    compiled, limits = program(dtype), np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
    special += [float(limits.max), -float(limits.max), float(limits.smallest_subnormal)]
    for y in special:
        for x in special:
            result = interpret.run(compiled, [y, x])[0][0]
            wanted = np.arctan2(np.array(y, dtype), np.array(x, dtype))[()]
            if math.isnan(wanted) or wanted == 0.0:
                assert same_bits([result], [wanted]), (y, x)
            else:
                assert abs(result - wanted) <= 2 * np.spacing(abs(wanted)), (y, x)


def test_constants_fold():
    graph = Graph()
    assert graph.atan2(graph.const(1.0), graph.const(-1.0)).value == math.atan2(1.0, -1.0)


@pytest.mark.parametrize(("dtype", "digits"), [("float64", 31), ("float32", 14)])
def test_eighths_of_a_turn_are_given_in_two_pieces(dtype, digits):
    with mpmath.workdps(40):
        for k, (large, rest) in enumerate(CONSTANTS[dtype].eighths):
            exact = k * mpmath.pi / 4
            assert abs(mpmath.mpf(large) + mpmath.mpf(rest) - exact) <= 10.0**-digits
            assert np.dtype(dtype).type(large) == np.dtype(dtype).type(float(exact)) == large
