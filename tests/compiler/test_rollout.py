"""Rollouts: a step repeated in machine code gives the bits of the step interpreted again and again."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.rollout import NEXT, Feed, Interface, RolloutKernel, interpret, trace_rollout
from linkwise.scalar import rint, sin, where, while_loop


def step(x, v, gain, push, own=None):
    """A driven oscillator with everything a step may have: parameters, feeds, a loop, a rounding."""
    (force,), damping = push[:1], gain[1] * gain[1]
    force = force + (own[0] if own is not None else 0.0)
    acceleration = [force - gain[0] * sin(a) - damping * b for a, b in zip(x, v, strict=True)]
    _, total = while_loop(lambda k, _: k < 3.0, lambda k, s: (k + 1.0, s + x[0]), (0.0 * x[0], 0.0 * x[0]))
    new = [b + 0.01 * a for a, b in zip(acceleration, v, strict=True)]
    return {
        NEXT + "x": [a + 0.01 * b for a, b in zip(x, new, strict=True)],
        NEXT + "v": new,
        "energy": 0.5 * v[0] * v[0],
        "rounded": [rint(8.0 * x[0]), where(total > 0.0, push[1], -total)],
    }


INTERFACE = Interface({"x": 3, "v": 3}, {"gain": 2}, {"push": Feed(2, 1)}, {"energy": (), "rounded": (2,)})
OWN = Interface(
    INTERFACE.carried,
    INTERFACE.parameters,
    {**INTERFACE.feeds, "own": Feed(1, 2, shared=False)},
    INTERFACE.written,
)


def build(interface, dtype):
    return trace_rollout(step, interface, name="test", dtype=dtype)


@pytest.fixture(scope="module", params=[INTERFACE, OWN], ids=["shared feed", "own feeds"])
def kernel(request):
    return RolloutKernel("test", request.param, lambda dtype: build(request.param, dtype), b"test")


def given(kernel, batch, steps, seed=0):
    rng = np.random.default_rng(seed)
    found = {
        "x": rng.normal(size=(*batch, 3)),
        "v": rng.normal(size=(*batch, 3)),
        "gain": rng.normal(size=(*batch, 2)),
    }
    found["push"] = rng.normal(size=INTERFACE.feeds["push"].length(steps))
    if "own" in kernel.interface.feeds:
        found["own"] = rng.normal(size=(*batch, OWN.feeds["own"].length(steps)))
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [1, 2, 8, 21])
@pytest.mark.parametrize(("steps", "every"), [(1, 1), (7, 1), (10, 3), (9, 3), (5, 8)])
def test_machine_code_equals_the_interpreter(kernel, dtype, count, steps, every):
    inputs = given(kernel, (count,), steps)
    final, written = kernel(inputs, steps=steps, every=every, dtype=dtype, threads=1)
    program = kernel.program(dtype)
    for k in {0, count // 2, count - 1}:
        own = {
            name: value if kernel.interface.feeds.get(name, Feed(0, 0, False)).shared else value[k]
            for name, value in inputs.items()
        }
        own = {name: np.asarray(value, dtype) for name, value in own.items()}
        expected_final, expected = interpret(program, own, steps, every)
        for name, value in expected_final.items():
            np.testing.assert_array_equal(final[name][k], value)
        for name, value in expected.items():
            np.testing.assert_array_equal(written[name][k], value)
            assert len(value) == -(-steps // every)


def test_threads_and_batch_change_no_bit(kernel):
    inputs = given(kernel, (37,), 6)
    one = kernel(inputs, steps=6, threads=1)
    for again in (kernel(inputs, steps=6, threads=3), kernel(inputs, steps=6)):
        for first, second in zip(one, again, strict=True):
            assert all((first[name] == second[name]).all() for name in first)


def test_long_runs_in_chunks_change_no_bit(kernel, monkeypatch):
    inputs = given(kernel, (3,), 23)
    whole = kernel(inputs, steps=23, every=4)
    monkeypatch.setattr("linkwise.compiler.rollout._chunk", lambda native, count, every: 2 * every)
    parts = kernel(inputs, steps=23, every=4)
    for first, second in zip(whole, parts, strict=True):
        assert all((first[name] == second[name]).all() for name in first)


def test_leading_axes_broadcast_and_inputs_are_left_alone(kernel):
    inputs = given(kernel, (2, 3), 4)
    inputs["gain"] = np.array([1.0, 0.5])
    before = {name: value.copy() for name, value in inputs.items()}
    final, written = kernel(inputs, steps=4, every=2)
    assert final["x"].shape == (2, 3, 3)
    assert written["rounded"].shape == (2, 3, 2, 2)
    assert written["energy"].shape == (2, 3, 2)
    assert all((inputs[name] == before[name]).all() for name in before)


def test_a_nan_stays_with_its_robot(kernel):
    inputs = given(kernel, (9,), 5)
    clean, _ = kernel(inputs, steps=5)
    inputs["x"][4, 1] = np.nan
    final, _ = kernel(inputs, steps=5)
    others = np.arange(9) != 4
    assert np.isnan(final["x"][4, 1])
    assert (final["x"][others] == clean["x"][others]).all()


def test_nothing_to_do(kernel):
    inputs = given(kernel, (2,), 0)
    final, written = kernel(inputs, steps=0)
    assert (final["x"] == inputs["x"]).all()
    assert written["rounded"].shape == (2, 0, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((2, 4))}, r"x: expected shape \(..., 3\)"),
        ({"push": np.zeros(3)}, r"push: expected shape \(5,\) for 4 steps"),
        ({"x": np.zeros((5, 3))}, "do not broadcast"),
    ],
)
def test_wrong_shapes_are_named(kernel, change, message):
    with pytest.raises(ValueError, match=message):
        kernel({**given(kernel, (2,), 4), **change}, steps=4)


def test_wrong_counts_are_named(kernel):
    with pytest.raises(ValueError, match="steps and every"):
        kernel(given(kernel, (2,), 4), steps=4, every=0)
