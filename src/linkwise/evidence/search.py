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


def exact(program: Program, states: States) -> list[np.ndarray]:
    """The outputs in long double: sines and cosines as functions, constants not rounded.

    Args:
        program: straight-line.
        states: its inputs.
    """
    return _run(program, states, np.longdouble, patterns.find(program))


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
    *,
    rounds: int = 12,
    width: int = 512,
) -> Reached:
    """The state with the largest value of an objective that a random search with shrinking steps finds.

    Args:
        objective: values of states.
        box: where the states are.
        starts: states to begin with.
        rng: the source of random steps.
        rounds: how often the steps shrink.
        width: states of a round.
    """
    best = _top(objective, starts, 4)
    size = 0.3
    for _ in range(rounds):
        moved = {}
        repeats = max(1, width // len(next(iter(best.values()))))
        for name, values in best.items():
            low, high = box.bounds[name]
            many = np.repeat(values, repeats, axis=0)
            some = rng.random(many.shape) < 0.5
            step = size * (high - low) * rng.standard_normal(many.shape) * some
            moved[name] = np.clip(many + step, low, high).astype(values.dtype)
        best = _top(objective, {k: np.concatenate([best[k], moved[k]]) for k in best}, 4)
        size *= 0.6
    value = float(objective(best)[0])
    return Reached(value, {name: [float(x) for x in values[0]] for name, values in best.items()})


def _top(objective: Callable[[States], np.ndarray], states: States, count: int) -> dict[str, np.ndarray]:
    values = np.nan_to_num(np.asarray(objective(states), dtype=float), nan=-np.inf)
    order = np.argsort(-values, kind="stable")[:count]
    return {name: x[order] for name, x in states.items()}


def joined(parts: Sequence[States]) -> dict[str, np.ndarray]:
    """Several groups of states as one."""
    return {name: np.concatenate([np.atleast_2d(p[name]) for p in parts]) for name in parts[0]}
