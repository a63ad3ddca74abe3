"""The same function of several inputs in the lanes of a vector."""

from __future__ import annotations

import numpy as np
import pytest
from sample_programs import same_bits

import linkwise as lw
from linkwise.compiler.emit import alike, blocks
from linkwise.compiler.ir.program import trace
from linkwise.compiler.shapes import nest

SINES = {
    "all": lambda q: [lw.sin(x) + lw.cos(x) * x for x in q],
    "outputs": lambda q: [lw.sin(x) for x in q],
    "some cosines": lambda q: [lw.sin(x) + (lw.cos(x) if k % 3 else 1.0) * q[0] for k, x in enumerate(q)],
    "with gaps": lambda q: [lw.sin(x) * q[0] if k % 2 else x for k, x in enumerate(q)],
    "of sums": lambda q: [lw.sin(x + q[0]) + lw.sin(x) for x in q],
    "one": lambda q: [lw.sin(q[0]) + x for x in q],
    "conditions": lambda q: [lw.where(lw.sin(x) < 0.5, q[0] * lw.cos(x), x) for x in q],
}
VALUES = [0.3, -2.0, 1e5, np.nan, np.inf, -0.0, 3.0, 1e-300, 12.5, -7.75, 1e12, 0.9]


@pytest.mark.parametrize("size", [3, 7])
@pytest.mark.parametrize("name", SINES)
def test_one_state_has_the_bits_of_a_batch(name, size):
    made = lw.kernel(q=size)(SINES[name])
    rng = np.random.default_rng(size)
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            states = rng.choice(VALUES, size=(33, size)).astype(dtype)
        batch = made(states)
        for state, wanted in zip(states, batch, strict=True):
            assert same_bits(made(state), wanted)


def text(function, size: int, dtype: str = "float64") -> str:
    program = trace(lambda q: function(q), {"q": size}, {"out": (size,)}, dtype=dtype)
    return blocks.module(nest(program), 1)


@pytest.mark.parametrize(
    ("size", "widths"), [(1, set()), (2, {2}), (4, {4}), (6, {2, 4}), (7, {4}), (12, {4})]
)
def test_vectors_are_as_wide_as_there_are_inputs(size, widths):
    """Seven inputs are two vectors of four: reading an input twice costs nothing."""
    found = text(SINES["all"], size)
    assert {w for w in (2, 4, 8) if f"call <{w} x double> @llvm.fma" in found} == widths
    assert "call <8 x float> @llvm.fma" in text(SINES["all"], 8, "float32")
    if size > 1:
        assert "select i1" not in found  # a selection between scalars is a branch


def test_long_programs_and_short_formulas_stay_as_they_are(monkeypatch):
    assert "call <4 x double> @llvm.fma" not in text(lambda q: [x * x + q[0] for x in q], 7)
    monkeypatch.setattr(alike, "MOST_OPERATIONS", 10)
    assert "call <4 x double> @llvm.fma" not in text(SINES["all"], 7)


def test_methods_of_a_robot():
    """All joints of a Panda but the first have sines."""
    program = lw.load("panda").kernel("gravity_torques").program()
    one = blocks.module(nest(program), 1)
    assert one.count("= call <4 x double> @llvm.fma") > 10
    assert one.count("= call double @llvm.fma") < 60
