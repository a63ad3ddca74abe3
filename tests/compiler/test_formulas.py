"""Formulas as Python source, SymPy and LaTeX: every operation and every kind of constant means what kernels compute."""

import math

import numpy as np
import pytest

import linkwise as lw
from linkwise import scalar

POINTS = np.array([[0.3, -1.7], [2.5, 0.5], [-0.5, 1.5], [1.5, 1.5], [-3.25, -2.5]])


def operations(x):
    a, b = x
    low, high = scalar.where(a < b, a, -math.inf), scalar.where((a > 0.0) & (b <= 1.5), math.inf, b)
    return {
        "smooth": [
            a + b,
            a - b,
            a * b,
            a / b,
            -a,
            scalar.sin(a),
            scalar.cos(b),
            scalar.sqrt(abs(a)),
            scalar.atan2(a, b),
        ],
        "kinked": [
            abs(a),
            scalar.sign(b),
            scalar.rint(a),
            scalar.rint(-b),
            scalar.minimum(a, b),
            scalar.maximum(a, b),
        ],
        "chosen": [
            low,
            high,
            scalar.where((a < 0.0) | (b < 0.0), math.nan, 2.0),
            scalar.where(~(a < b), 1.0, 0.1),
        ],
    }


@pytest.fixture(scope="module")
def kernel():
    return lw.kernel(x=2)(operations)


def test_python_source(kernel):
    names = {}
    exec(kernel.source("python"), names)
    for got, wanted in zip(names[kernel.name](POINTS), kernel(POINTS), strict=True):
        assert np.allclose(got, wanted, rtol=1e-14, atol=1e-15, equal_nan=True)


def test_sympy(kernel):
    sympy = pytest.importorskip("sympy")
    formulas = kernel.sympy()
    symbols = sympy.symbols("x1 x2", real=True)
    meaning = {"round": np.rint}
    for name, wanted in zip(formulas, kernel(POINTS), strict=True):
        for k, entry in enumerate(formulas[name]):
            function = sympy.lambdify(symbols, entry, [meaning, "numpy"])
            with np.errstate(all="ignore"):
                got = np.broadcast_to(np.asarray(function(*POINTS.T), float), len(POINTS))
            assert np.allclose(got, wanted[:, k], rtol=1e-14, atol=1e-15, equal_nan=True), entry


def test_entries_are_numbered_from_one():
    """Rows and columns; with commas where a number has two digits."""
    pytest.importorskip("sympy")
    for robot, labels in ((lw.load("two_link"), ("M_{11}", "M_{12}", "M_{21}", "M_{22}")),):
        text = robot.kernel("mass_matrix").latex()
        assert [line.split(" &=")[0].strip() for line in text.splitlines() if "&=" in line] == list(labels)
    table = lw.kernel(x=1)(lambda x: {"table": [[x[0] + k + 10.0 * j for j in range(12)] for k in range(2)]})
    lines = table.latex(simplify=False).splitlines()
    assert [line.split(" &=")[0].strip() for line in lines if "&=" in line] == [
        rf"\mathrm{{table}}_{{{k},{j}}}" for k in (1, 2) for j in range(1, 13)
    ]


def test_latex_has_a_line_for_every_entry_that_is_not_zero(kernel):
    pytest.importorskip("sympy")
    text = kernel.latex()
    assert text.count("&=") == sum(math.prod(shape) for _, shape in kernel.outputs)
    assert r"\infty" in text
    assert "round" in text
