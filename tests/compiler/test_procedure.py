"""Steps from functions, and turns of loops side by side in lanes: the interpreter's bits for every number of turns."""

import itertools

import numpy as np
import pytest

from linkwise.compiler.ir.interpret import run_nest
from linkwise.compiler.ir.loops import Array, Declare, Element, For, Register, choose, name, slope, whole
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest, cells

I, J = name("i"), name("j")


def made(turns: int, dtype: str) -> ProcedureNest:
    """Products of a matrix with columns, rows of squares, and a sum that runs through them."""
    procedure, total = Procedure(dtype), Register("total")
    square = procedure.step(
        lambda x: [[value * value + 0.1 for value in x], [x[0] - x[2]]],
        [cells("given", 3, I * 3)],
        [cells("squares", 3, 0, I), [Element("rest", I)]],
        apart=True,
    )
    product = procedure.step(
        lambda m, x: [[m[0] * x[0] + m[1] * x[1], m[2] * x[0] - x[1] / m[3]]],
        [cells("matrix", 4), [Element("given", J), Element("given", J + turns)]],
        [[Element("products", J), Element("products", J + turns)]],
        apart=True,
    )
    summed = procedure.step(
        lambda so_far, x, y: [[so_far[0] * 0.5 + x[0] + y[0]]],
        [[total], [Element("squares", whole(2), I)], [Element("rest", I)]],
        [[total]],
    )
    end = procedure.step(
        lambda so_far, x: [[so_far[0]], [2.0 * value for value in x]],
        [[total], cells("products", 2 * turns)],
        [[Element("out", whole(0))], cells("out", 2 * turns, 1)],
        apart=True,
    )
    body = [
        Declare({total: 0.25}),
        For("i", whole(0), whole(turns), [square], parallel=True, repeatable=True),
        For("j", whole(0), whole(turns), [product], parallel=True, repeatable=True),
        For("i", whole(0), whole(turns), [summed]),
        end,
    ]
    arrays = (
        Array("given", "input", 3 * turns),
        Array("matrix", "input", 4),
        Array("out", "output", 1 + 2 * turns),
        Array("squares", "scratch", 3, turns),
        Array("rest", "scratch", turns),
        Array("products", "scratch", 2 * turns),
    )
    return ProcedureNest("sample", dtype, arrays, body, operations=procedure.operations(body))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("turns", [1, 4, 7, 9, 19])
def test_turns_side_by_side_have_the_interpreters_bits(turns, dtype):
    nest = made(turns, dtype)
    inputs = [("given", 3 * turns), ("matrix", 4)]
    kernel = Kernel("sample", inputs, [("out", (1 + 2 * turns,))], dtype, lambda _: nest)
    rng = np.random.default_rng(turns)
    given, matrix = rng.normal(size=(5, 3 * turns)).astype(dtype), rng.normal(size=(5, 4)).astype(dtype)
    many = kernel(given, matrix)
    for k in range(5):
        out = np.full(1 + 2 * turns, np.nan, dtype)
        run_nest(nest, {"given": given[k], "matrix": matrix[k], "out": out})
        assert out.tobytes() == kernel(given[k], matrix[k]).tobytes() == many[k].tobytes()
    assert nest.operations.multiplications == turns * (3 + 3 + 1) + 2 * turns
    assert nest.operations.divisions == turns


def test_slopes_of_whole_numbers():
    assert slope(I * 3 + J - 2, "i") == 3
    assert slope(5 - I, "i") == -1
    assert slope(whole(4), "i") == slope(J * J, "i") == 0
    assert slope(I * I, "i") is None
    assert slope(choose(I < 2, 0, I), "i") is None


def test_whole_numbers_are_what_python_computes():
    """Every operation of constants and names, on both sides: what is folded or left out changes nothing."""
    names = {"k": 3, "m": 5, "zero": 0}
    sides = [(0, 0), (1, 1), (4, 4), (-2, -2), *((name(word), value) for word, value in names.items())]
    for (a, x), (b, y) in itertools.product(sides, repeat=2):
        one, two = whole(a), whole(b)
        cases = [(one + two, x + y), (one - two, x - y), (one * two, x * y), (one < two, int(x < y))]
        cases += [(one.equals(two), int(x == y)), (choose(one, two, 7), y if x else 7)]
        if isinstance(a, int):
            cases += [(a * two, x * y), (a - two, x - y)]
            cases += [(a << two, x << y)] if x >= 0 and y >= 0 and not isinstance(b, int) else []
        for k, (found, expected) in enumerate(cases):
            assert found.value(names, {}) == expected, (k, x, y)
