"""Values on the stack in long bodies: few values are alive, the bits stay the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from random_programs import random_function
from sample_programs import interpreted, same_bits, samples
from test_llvm import Compiled

import linkwise as lw
from linkwise import scalar as sc
from linkwise.compiler.emit import blocks, llvm, spills
from linkwise.compiler.emit.lanes import without_slots
from linkwise.compiler.ir.program import Program, trace
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.compiler.runtime import host, machine
from linkwise.compiler.shapes import nest


def long_program(dtype: str = "float64") -> Program:
    """Values and signs used far away, in a short and in a long loop, and after them."""

    def function(x, y):
        many = [x[k % 9] * y[k % 7] - (k + 1.0) for k in range(63)]
        signs = [-value for value in many]
        first = random_function(5, 250, smooth=True)(x[:3], y[:2])
        root, _ = sc.while_loop(
            lambda a, n: n < 3.0, lambda a, n: (0.5 * (a + signs[40] / (a + x[8])), n + 1.0), (x[0], 0.0)
        )

        def body(a, b, c, count):
            sums = [many[k] * a + signs[62 - k] * b - c * x[k % 9] for k in range(60)]
            for turn in range(4):
                sums = [u * 0.125 + many[(k + turn) % 63] * sums[59 - k] for k, u in enumerate(sums)]
            mixed = sum(sums[1::3], sums[0])
            return 0.01 * mixed, -a, b + 0.5 * c + sum(sums[2::3], x[7]) * 1e-6, count + 1.0

        a, b, c, _ = sc.while_loop(
            lambda a, b, c, count: (count < 3.0) & (a < 1e6), body, (x[1], y[3], root, 0.0)
        )
        return [*first, a, b, -c, *signs[::5], *many[::7], root * x[2], y[6]]

    count = 6 + 3 + 13 + 9 + 2
    return trace(function, {"x": 9, "y": 7}, {"z": (count,)}, name="long", dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_same_bits(dtype, monkeypatch):
    monkeypatch.setattr(host, "vector_registers", lambda: 16)
    program = long_program(dtype)
    assert any(isinstance(item, LoopRegion) and len(item.body) > spills.LONG for item in program.body)
    inputs = samples(program, 19)
    wanted = interpreted(program, inputs)
    for width in (1, host.lanes(dtype)):
        text = blocks.module(nest(program), width)
        assert "%slot" in text
        assert all(map(same_bits, Compiled(program, width)(inputs, 19), wanted))


def test_without_slots():
    """The text for quick code has no place on the stack, and the same bits."""
    program = long_program()
    inputs = samples(program, 5)
    text = without_slots(blocks.module(nest(program), 1))
    assert "%slot" not in text
    assert ".again" not in text

    class Quick(Compiled):
        def __init__(self, program, width):
            super().__init__(
                program, width, lambda code: machine.load(machine.compile_text(text, quick=True))
            )

    assert all(map(same_bits, Quick(program, 1)(inputs, 5), interpreted(program, inputs)))


def alive(text: str) -> int:
    """How many reals are alive at most, inside the longest block."""
    block = max(re.split(r"^\w[\w.]*:\n", text, flags=re.MULTILINE), key=len).splitlines()
    last: dict[str, int] = {}
    for place, line in enumerate(block):
        last.update(dict.fromkeys(re.findall(r"%[\w.]+", line), place))
    made = [re.match(r"  (%[\w.]+) = (?!getelementptr|icmp|fcmp)", line) for line in block]
    changes = np.zeros(len(block) + 1, int)
    for place, result in enumerate(made):
        if result:
            changes[place] += 1
            changes[last[result[1]]] -= 1
    return int(np.cumsum(changes).max())


def test_few_values_are_alive(monkeypatch):
    """Without this, LLVM takes most of its time to choose registers."""

    def function(x):
        first = [x[k] * x[k + 1] + float(k) for k in range(299)]
        return [sum((first[(7 * k + j * 13) % 299] * x[j] for j in range(5)), x[k]) for k in range(300)]

    program = trace(function, {"x": 300}, {"y": (300,)}, name="wide")
    assert alive(blocks.module(nest(program), 4)) <= host.vector_registers() + 8
    monkeypatch.setattr(llvm, "LONG", 1 << 30)
    assert alive(blocks.module(nest(program), 4)) > 100


def test_a_function_has_one_text():
    """However often it is traced: the cache of code finds what has no key by its text."""
    robots = (lw.random_robot(3, 6, joints="R", friction=True) for _ in range(5))
    texts = {blocks.module(nest(robot.kernel("forward_dynamics").program()), 1) for robot in robots}
    assert len(texts) == 1
    assert "%slot" in texts.pop()
