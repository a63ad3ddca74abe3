"""Formulas: what they compute, and what they refuse."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.study.errors import StudyError
from linkwise.study.expression import parse
from linkwise.study.steps import formula

A, B = np.array([1.0, -2.0, 3.0]), np.array([2.0, 2.0, 4.0])


def value(text):
    expression = parse(text, "compute.x")
    return lw.kernel(a=3, b=3)(lambda a, b: expression.value({"a": a, "b.c": b, "pi": np.pi}))(A, B)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max(abs(a) / b.c)", 1.0),
        ("max(abs(a)/b.c) > 0.9", 1.0),
        ("a[1] + b.c[0] ** 2", 2.0),
        ("norm(a) ** 2", 14.0),
        ("dot(a, b.c) - sum(a * b.c)", 0.0),
        ("1 if a[0] < 0 else 2", 2.0),
        ("any(a < 0) and not all(b.c > 3)", 1.0),
        ("a[-1] == 3 or a[0] != 1", 1.0),
        ("a[0] != 2", 1.0),
        ("a[0] != 1", 0.0),
        ("b.c[0] != b.c[1]", 0.0),
        ("all(a != b.c)", 1.0),
        ("0 < a[0] <= 1", 1.0),
        ("mean(a)", 2.0 / 3.0),
        ("b.c[2] ** 0.5", 2.0),
        ("exp(log(b.c[0]))", 2.0),
        ("where(a[0] > 0, pi, 0)", np.pi),
        ("sin(a[0])**2 + cos(a[0])**2", 1.0),
        ("cos(pi)", -1.0),
        ("sqrt(b.c[2]) + sign(a[1])", 1.0),
        ("atan2(a[0], a[0]) * 4 - pi", 0.0),
    ],
)
def test_values(text, expected):
    assert value(text) == pytest.approx(expected, abs=1e-14)


def test_vectors():
    assert value("-a").tolist() == [-1.0, 2.0, -3.0]
    assert value("max(a, b.c)").tolist() == [2.0, 2.0, 4.0]
    assert value("a[0:2]").tolist() == [1.0, -2.0]
    assert value("a > 0").tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "a.__class__()",
        "lambda: 1",
        "[x for x in a]",
        "'text'",
        "a +",
        "a % 2",
        "a ** a",
        "foo(a)",
        "abs(a, a)",
        "a[9]",
        "a[0][0]",
        "(a := 1)",
        "abs(x=a)",
        "{}",
        "a[a]",
        "2 ** 1000",
    ],
)
def test_refusals(text):
    with pytest.raises(StudyError, match=r"^compute\.x: "):
        value(text)


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["a[0]"] * 30_000),
        " + ".join(["a[0]"] * 1000),
        "(" * 30_000 + "a[0]" + ")" * 30_000,
        "-" * 30_000 + "a[0]",
        "**".join(["a[0]"] * 30_000),
        "a[0] + " + "9" * 5000,
        "a[0]\0",
    ],
)
def test_formulas_that_are_too_long_are_refused_in_one_short_line(text):
    with pytest.raises(StudyError, match=r"^compute\.x: ") as raised:
        parse(text, "compute.x")
    assert len(str(raised.value)) < 350
    assert "\n" not in str(raised.value)


def test_a_formula_of_hundreds_of_terms_is_computed():
    assert value(" + ".join(["a[0]"] * 390)) == 390.0
    with pytest.raises(StudyError, match="nested deeper than 400 levels"):
        parse(" + ".join(["a[0]"] * 410), "compute.x")


def test_a_formula_of_computed_arrays():
    step = formula.read("f", "x[1] * y", "compute.f", lw.load("two_link"))
    x, y = np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(step.computed({"x": x, "y": y}, 0)["f"].ravel(), x[:, 1] * y)
