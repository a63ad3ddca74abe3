"""Threads that take the next state where the loop of their own has ended: run on the CPU, they return the
interpreter's bits."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "compiler"))
from on_cpu import COMPILER, OnCpu
from sample_programs import interpreted, same_bits

import linkwise as lw
from linkwise.compiler.emit.cuda import queued
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.compiler.ir.program import trace
from linkwise.compiler.ir.reordered import ordered
from linkwise.scalar import sin, sqrt, where, while_loop

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def uneven(dtype: str = "float64"):
    """Turns from 0 to 300, of which most states need few; values and inputs that are needed before, in and after the
    loop, carried values that change places, outputs that do not depend on the loop."""

    def function(x, y):
        before, factor = sin(x[0]) + y[0], 1.0 + y[1] * y[1]
        late = sqrt(1.0 + x[1] * x[1])

        def turn(left, a, b):
            return left - 1.0, -b, a * factor / (factor + y[0] * y[0])

        left, a, b = while_loop(lambda left, a, b: left > 0.0, turn, (x[2], before, x[1]), uneven=True)
        chosen = where(a > late, a, b - late)
        return [left, -a, b, chosen, before, -late, x[0], 2.0, chosen * y[1]]

    return trace(function, {"x": 3, "y": 2}, {"out": (9,)}, name="uneven", dtype=dtype)


def given(count: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    x, y = rng.normal(size=(count, 3)), rng.normal(size=(count, 2))
    x[:, 2] = np.where(rng.random(count) < 0.1, rng.integers(0, 300, count), rng.integers(-1, 4, count))
    return [x.astype(dtype), y.astype(dtype)]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits(tmp_path, monkeypatch, dtype):
    """One state, less than a warp, more than a warp takes at once; one warp and several; threads in either order."""
    monkeypatch.setitem(queued.STATES, dtype, 256)
    program = uneven(dtype)
    for warps, blocks, counts in ((1, 1, (1, 33, 600)), (2, 2, (70, 1200))):
        layout = cuda.WarpLayout(warps, 1, (False,), queued=True)
        made = cuda.module(program, layout)
        assert "__ballot_sync" in made.text
        kernel = OnCpu(made, tmp_path / str(warps), 3, 3)
        for count in counts:
            inputs = given(count, dtype)
            out = np.full((count, 9), np.inf, dtype)
            kernel([out], inputs, [3, 2, count], count, reverse=count % 2 == 0, blocks=blocks)
            assert same_bits(out, interpreted(program, inputs)[0])


@needs_compiler
def test_rows_that_all_states_share(tmp_path):
    program = uneven()
    x, y = given(40, "float64")
    kernel = OnCpu(cuda.module(program, cuda.WarpLayout(1, 1, (False,), queued=True)), tmp_path, 3, 3)
    out = np.full((40, 9), np.inf)
    kernel([out], [x, y[:1]], [3, 0, 40], 40)
    assert same_bits(out, interpreted(program, [x, np.repeat(y[:1], 40, axis=0)])[0])


def test_contact_steps_of_large_robots_are_queued():
    """Those of small ones are not: a thread for each state needs no memory, in either precision."""
    assert queued.queued(ordered(uneven())) is None
    small, medium, large = (_standing(legs) for legs in (1, 2, 6))
    assert not cuda.module(small.kernel("contact_step", step=0.002).program("float32")).scratch
    assert not cuda.module(medium.kernel("contact_step", step=0.002).program("float64")).scratch
    made = cuda.module(large.kernel("contact_step", step=0.002).program("float32"))
    assert made.scratch
    assert made.resident == 1


def _standing(legs: int) -> lw.Robot:
    """A body with legs of six joints, each with a flat foot."""
    links, joints = [lw.Link("body", lw.Inertia.from_com(20.0, (0, 0, 0), (0.5, 0.5, 0.5)))], []
    axes, feet = [(1, 0, 0), (0, 1, 0), (0, 0, 1)], []
    for leg in range(legs):
        parent = "body"
        for k in range(6):
            name = f"{leg}_{k}"
            links.append(lw.Link(name, lw.Inertia.from_com(1.0, (0.01, 0.02, -0.05), (0.01, 0.02, 0.015))))
            place = lw.Transform.from_rpy((0.3 * leg, 0.1, 0) if k == 0 else (0, 0, -0.1))
            joints.append(lw.Joint(f"joint_{name}", "revolute", parent, name, place, axes[k % 3]))
            parent = name
        corners = [(x, y, -0.1) for x in (-0.05, 0.1) for y in (-0.03, 0.03)]
        feet.append(lw.Contact(parent, points=corners, friction=0.8))
    return lw.Robot(f"legs{legs}", links, joints).with_base("floating").with_contacts(feet)
