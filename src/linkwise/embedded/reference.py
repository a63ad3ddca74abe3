"""Reference states: inputs and the bits that every processor must give for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwise.compiler import rollout as rollouts
from linkwise.compiler.emit import c
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program
from linkwise.compiler.rollout import RolloutKernel, RolloutProgram
from linkwise.compiler.shapes import nest
from linkwise.embedded.arguments import spoiled, typical
from linkwise.embedded.entries import Entry
from linkwise.robot.robot import Robot

STEPS = 4
"""Steps of a loop in the check."""


@dataclass(frozen=True)
class States:
    """Inputs and outputs of one function by the names of its arguments, (states, scalars) each."""

    given: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    steps: int | None = None

    @property
    def count(self) -> int:
        return len(next(iter((*self.given.values(), *self.expected.values()))))


def states(robot: Robot, entry: Entry, count: int, fma: bool = True, special: bool = False) -> States:
    """Inputs and the results that the generated code must have.

    Args:
        robot: the robot.
        entry: the function.
        count: how many states.
        fma: whether the code uses fused multiply-adds; without, the interpreter of the graph computes the results.
        special: whether there are NaN, infinities and other special numbers among the inputs.
    """
    kernel = entry.kernel
    if isinstance(kernel, RolloutKernel):
        return _of_rollout(robot, entry, kernel, max(1, count // STEPS), fma, special)
    chosen = (
        typical(robot, entry, dict(kernel.inputs), count) if entry.states is None else entry.states(count)
    )
    given = {name: chosen[name] for name, _ in kernel.inputs}
    count = len(next(iter(given.values()))) if given else count
    given = _rounded(spoiled(given) if special else given, entry.dtype)
    names = [name for name, _ in kernel.outputs]
    if fma:
        found = kernel(*given.values()) if given else tuple(np.stack([x] * count) for x in _tuple(kernel()))
        results = _tuple(found)
    else:
        program = c.unfused(entry.program)
        rows = [_interpreted(program, {k: v[s] for k, v in given.items()}) for s in range(count)]
        results = tuple(np.array(column) for column in zip(*rows, strict=True))
    expected = {
        name: np.asarray(values, entry.dtype).reshape(count, -1)
        for name, values in zip(names, results, strict=True)
    }
    return States(given, expected)


def _rounded(given: dict[str, np.ndarray], dtype: str) -> dict[str, np.ndarray]:
    with np.errstate(over="ignore", under="ignore"):
        return {name: values.astype(dtype) for name, values in given.items()}


def _tuple(found) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def _interpreted(program: c.AnyProgram, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    if isinstance(program, Program):
        return interpret.run(program, *(values.tolist() for values in given.values()))
    return list(interpret.nest_outputs(nest(program), given).values())


def _of_rollout(
    robot: Robot, entry: Entry, kernel: RolloutKernel, count: int, fma: bool, special: bool
) -> States:
    interface = kernel.interface
    sizes = {**interface.carried, **interface.parameters}
    sizes |= {name: feed.length(STEPS) for name, feed in interface.feeds.items()}
    given = typical(robot, entry, sizes, count)
    given = _rounded(spoiled(given) if special else given, entry.dtype)
    if fma:  # one call for each state: a feed that all robots of a call share has one table
        found = [
            kernel({k: v[s] for k, v in given.items()}, steps=STEPS, dtype=entry.dtype) for s in range(count)
        ]
    else:
        program = c.unfused(entry.program)
        assert isinstance(program, RolloutProgram)
        found = [
            rollouts.interpret(program, {k: v[s].tolist() for k, v in given.items()}, STEPS)
            for s in range(count)
        ]
    final = {name: np.array([each[0][name] for each in found]) for name in interface.carried}
    written = {name: np.array([each[1][name] for each in found]) for name in interface.written}
    expected = {name: np.asarray(values, entry.dtype) for name, values in {**final, **written}.items()}
    flat = {name: values.reshape(count, math.prod(values.shape[1:])) for name, values in expected.items()}
    return States(given, flat, STEPS)
