"""Programs in parts: run by the interpreter in any order that the meetings allow, they return the program's bits."""

import random
from dataclasses import replace

import numpy as np
import pytest
from sample_programs import everything, interpreted, loop, same_bits, samples, sweep

import linkwise as lw
from linkwise.compiler.ir.interpret import run_nest
from linkwise.compiler.ir.loops import Element
from linkwise.compiler.ir.parts import EXCHANGE, Parts, divisible, parts

PROGRAMS = {"everything": everything, "sweep": lambda dtype: sweep(6, dtype)}


def an_order(made: Parts, seed: int) -> list:
    """Steps of the warps, mixed at random: one begins a stage when all have written what others need of the last."""
    generator = random.Random(seed)
    warps, stages = len(made.steps[0]), len(made.steps)
    done = [0] * warps  # halves of stages
    order = []
    while min(done) < 2 * stages:
        free = [
            w
            for w in range(warps)
            if done[w] < 2 * stages and (done[w] % 2 or all(d > done[w] - 2 for d in done))
        ]
        warp = generator.choice(free)
        order.append(made.steps[done[warp] // 2][warp][done[warp] % 2])
        done[warp] += 1
    return order


def results(program, made: Parts, order, state, overlaid=()):
    """The outputs for one state; what is written to an output destroys the element of ``exchange`` in its place."""
    memory = {name: np.asarray(value) for (name, _), value in zip(program.inputs, state, strict=True)}
    outputs = [array for array in made.nest.arrays if array.kind == "output"]
    memory |= {array.name: np.full(array.columns, np.inf, program.dtype) for array in outputs}
    start, place = {}, 0
    for array, over in zip(outputs, overlaid, strict=False):
        if over:
            start[array.name] = place
            place += array.columns
    arrays = tuple(
        replace(array, kind="both") if array.name == EXCHANGE else array for array in made.nest.arrays
    )
    memory[EXCHANGE] = np.full(made.exchanged, np.nan, program.dtype)
    spoiled = []
    for step in order:
        lost = [
            (Element(EXCHANGE, at.column + start[at.array]), node)
            for at, node in step.writes
            if at.array in start
        ]
        spoiled.append(replace(step, writes=[*lost, *step.writes]))
    run_nest(replace(made.nest, arrays=arrays, body=spoiled), memory)
    return [memory[array.name] for array in outputs]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("warps", "held"), [(2, 0), (2, 100), (3, 4)])
def test_bits(name, dtype, warps, held):
    program = PROGRAMS[name](dtype)
    inputs = samples(program, 3)
    wanted = interpreted(program, inputs)
    overlaid = [True] * len(program.outputs)
    made = parts(program, warps, held, overlaid)
    for k in range(3):
        got = results(program, made, an_order(made, k), [given[k] for given in inputs], overlaid)
        assert all(same_bits(g, w[k].ravel()) for g, w in zip(got, wanted, strict=True))


def test_derivatives_of_an_arm():
    """A program with more values alive than registers; in the order of the nest itself, too."""
    program = lw.load("two_link").kernel("forward_dynamics").jacobian("q").program("float64")
    inputs = samples(program, 2)
    wanted = interpreted(program, inputs)
    made = parts(program, 2, 10)
    order = [step for row in made.steps for pair in row for step in pair]
    for k in range(2):
        for steps in (order, an_order(made, k)):
            got = results(program, made, steps, [given[k] for given in inputs])
            assert all(same_bits(g, w[k].ravel()) for g, w in zip(got, wanted, strict=True))


def test_fewer_values_held_means_more_exchanged():
    program = sweep(6, "float64")
    assert parts(program, 2, 0).loads > parts(program, 2, 1000).loads


def test_every_value_is_computed_once():
    program = sweep(6, "float64")
    made = parts(program, 3, 1000)
    counted = [node.op for row in made.steps for pair in row for step in pair for node in step.body]
    plain = [node.op for node in program.nodes()]
    assert counted.count("fma") == plain.count("fma")
    assert counted.count("div") == plain.count("div")


def test_loops_are_not_divided():
    assert divisible(sweep(6, "float64"))
    assert not divisible(loop("float64"))
