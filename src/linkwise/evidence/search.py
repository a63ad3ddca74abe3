"""Largest values and worst rounding errors that a search finds: what the bounds stand beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.program import Program
from linkwise.evidence import patterns
from linkwise.evidence.box import Box

States = Mapping[str, np.ndarray]
"""Inputs by name, (states, size) each."""

_BINARY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "not": np.logical_not,
}


_WIDTH, _ROUNDS, _MANY = 64, 4, 1000
"""Of ``climb``: steps, rounds, and from how many coordinates of all states there are fewer."""


def exact(program: Program, states: States, turns: patterns.Patterns | None = None) -> list[np.ndarray]:
    """The outputs in long double, of a float32 program in float64: sines are functions, constants not rounded.

    Args:
        program: straight-line.
        states: its inputs.
        turns: its sines and cosines, where they are known; None: they are looked for.
    """
    real = np.longdouble if program.dtype == "float64" else np.float64
    return _run(program, states, real, patterns.find(program) if turns is None else turns)


def without_fusing(program: Program, states: States) -> list[np.ndarray]:
    """The outputs that the code of a program without fused multiply-adds returns, bit by bit.

    Args:
        program: straight-line.
        states: its inputs.
    """
    return _run(program, states, np.dtype(program.dtype).type, patterns.Patterns({}, set(), {}))


def _run(program: Program, states: States, real: Any, turns: patterns.Patterns) -> list[np.ndarray]:
    """Every operation for all states, in one kind of numbers."""
    given = {name: np.asarray(values, dtype=real) for name, values in states.items()}
    count = len(next(iter(given.values())))
    known: dict[Node, np.ndarray] = {}

    def value(node: Node) -> np.ndarray:
        if node.op == "const":
            return np.full(count, real(node.value))
        if node.op == "input":
            return given[node.value[0]][:, node.value[1]]
        return known[node]

    with np.errstate(all="ignore"):
        for node in program.nodes():
            if node in turns.inner:
                continue
            if node in turns.turns:
                turn = turns.turns[node]
                known[node] = (np.sin if turn.kind == "sin" else np.cos)(value(turn.angle))
            elif node.op == "fma":
                a, b, c = map(value, node.args)
                known[node] = a * b + c
            elif node.op == "select":
                known[node] = np.where(*map(value, node.args))
            elif node.op == "bit":
                words = value(node.args[0]).view(np.uint64 if program.dtype == "float64" else np.uint32)
                known[node] = (words >> node.value) & 1 == 1
            else:
                known[node] = _BINARY[node.op](*map(value, node.args))
    return [np.stack([value(node) for node in nodes], axis=-1) for nodes in program.values]


@dataclass(frozen=True)
class Reached:
    """What a search has reached.

    Args:
        value: the number.
        state: inputs by name.
    """

    value: float
    state: dict[str, list[float]]


def climb(
    objective: Callable[[States], np.ndarray],
    box: Box,
    starts: States,
    rng: np.random.Generator,
) -> Reached:
    """The state with the largest value of an objective that a search along one coordinate after another finds.

    Steps have all sizes down to the last bit: the error of an output is a sum of errors of operations, and a number
    that moves a little changes only those that depend on it.

    Args:
        objective: values of states.
        box: where the states are.
        starts: states to begin with.
        rng: the source of random steps.
    """
    best = {name: np.array(values) for name, values in starts.items()}
    values = _finite(objective(best))
    count = len(values)
    # steps of each state along each coordinate, and rounds over all coordinates
    width, rounds = _WIDTH, _ROUNDS
    free = [(n, k) for n, (low, high) in box.bounds.items() for k in np.flatnonzero(low < high)]
    if len(free) * count > _MANY:
        width, rounds = _WIDTH // 4, 1
    for _ in range(rounds):
        for place in rng.permutation(len(free)):
            name, k = free[place]
            low, high = (float(side[k]) for side in box.bounds[name])
            many = {n: np.repeat(x, width, axis=0) for n, x in best.items()}
            size = (high - low) * 10.0 ** rng.uniform(-8, 0, count * width)
            moved = many[name][:, k] + size * rng.standard_normal(count * width)
            moved[::width], moved[1::width] = low, high
            many[name][:, k] = np.clip(moved, low, high)
            tried = _finite(objective(many)).reshape(count, width)
            chosen = np.argmax(tried, axis=1)
            better = tried[np.arange(count), chosen] > values
            rows = np.arange(count) * width + chosen
            best[name][better, k] = many[name][rows[better], k]
            values = np.where(better, tried[np.arange(count), chosen], values)
    top = int(np.argmax(values))
    return Reached(float(values[top]), {name: [float(x) for x in x_[top]] for name, x_ in best.items()})


def _finite(values: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.asarray(values, dtype=float), nan=-np.inf)


def joined(parts: Sequence[States]) -> dict[str, np.ndarray]:
    """Several groups of states as one."""
    return {name: np.concatenate([np.atleast_2d(p[name]) for p in parts]) for name in parts[0]}
