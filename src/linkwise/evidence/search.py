"""Largest values and worst rounding errors that a search finds: what the bounds stand beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

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


_WIDTH, _ROUNDS, _MANY = 64, 4, 2000
"""Of ``climb``: steps, rounds, and from how many coordinates of all states there are fewer."""
_PROBE = 1e-3
"""Step along a coordinate that measures a slope, as a part of its interval."""


def exact(
    program: Program,
    states: States,
    turns: patterns.Patterns | None = None,
    wanted: Sequence[Node] | None = None,
) -> list[np.ndarray]:
    """The outputs in long double, of a float32 program in float64: sines are functions, constants not rounded.

    Args:
        program: straight-line.
        states: its inputs.
        turns: its sines and cosines, where they are known; None: they are looked for.
        wanted: values that are returned, as one array; None: the outputs.
    """
    real = np.longdouble if program.dtype == "float64" else np.float64
    found = patterns.find(program) if turns is None else turns
    return _run(program, states, real, found, program.values if wanted is None else [wanted])


_ORDERS: WeakKeyDictionary[patterns.Patterns, dict[tuple[Node, ...], list[Node]]] = WeakKeyDictionary()
"""Of programs, by their sines and cosines: a search asks for the same values thousands of times."""


def _order(program: Program, turns: patterns.Patterns, wanted: tuple[Node, ...]) -> list[Node]:
    """Operations that some values need; arguments before what uses them."""
    known = _ORDERS.setdefault(turns, {})
    if wanted not in known:
        asked = _ancestors(wanted, turns)
        known[wanted] = [node for node in program.nodes() if node in asked]
    return known[wanted]


def _ancestors(wanted: Sequence[Node], turns: patterns.Patterns) -> set[Node]:
    """Values on which others depend; what is inside of sines and cosines is left out.

    Args:
        wanted: the others.
        turns: sines and cosines of the program.
    """
    found: set[Node] = set()
    waiting = list(wanted)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend([turns.turns[node].angle] if node in turns.turns else node.args)
    return found


def without_fusing(program: Program, states: States) -> list[np.ndarray]:
    """The outputs that the code of a program without fused multiply-adds returns, bit by bit.

    Args:
        program: straight-line.
        states: its inputs.
    """
    alone = patterns.Patterns({}, set(), {})
    return _run(program, states, np.dtype(program.dtype).type, alone, program.values)


def _run(
    program: Program, states: States, real: Any, turns: patterns.Patterns, wanted: Sequence[Sequence[Node]]
) -> list[np.ndarray]:
    """Some values for all states, in one kind of numbers."""
    values = _Values(program, states, real, turns, [node for nodes in wanted for node in nodes])
    return [np.stack([values(node) for node in nodes], axis=-1) for nodes in wanted]


class _Values:
    """Every operation that some values need, for all states, in one kind of numbers."""

    def __init__(
        self, program: Program, states: States, real: Any, turns: patterns.Patterns, wanted: Sequence[Node]
    ):
        self.real, self.turns = real, turns
        self.given = {name: np.asarray(values, dtype=real) for name, values in states.items()}
        self.count = len(next(iter(self.given.values())))
        self.order = _order(program, turns, tuple(wanted))
        self.known: dict[Node, np.ndarray] = {}
        with np.errstate(all="ignore"):
            for node in self.order:
                self.known[node] = self._computed(node, program.dtype)

    def __call__(self, node: Node) -> np.ndarray:
        if node.op == "const":
            return np.full(self.count, self.real(node.value))
        if node.op == "input":
            return self.given[node.value[0]][:, node.value[1]]
        return self.known[node]

    def _computed(self, node: Node, dtype: str) -> np.ndarray:
        if node in self.turns.turns:
            turn = self.turns.turns[node]
            return (np.sin if turn.kind == "sin" else np.cos)(self(turn.angle))
        if node.op == "fma":
            a, b, c = map(self, node.args)
            return a * b + c
        if node.op == "select":
            return np.where(*map(self, node.args))
        if patterns.is_sign_bit(node, dtype):
            return np.signbit(self(node.args[0]))
        if node.op == "bit":
            words = self(node.args[0]).view(np.uint64 if dtype == "float64" else np.uint32)
            return (words >> node.value) & 1 == 1
        return _BINARY[node.op](*map(self, node.args))


def possible_error(program: Program, states: States, turns: patterns.Patterns, output: Node) -> np.ndarray:
    """How large the error of one output could be at each state, if all roundings added up.

    Σ |∂output/∂operation| times half a unit in the last place, and rounded constants. Smooth where the error itself
    jumps from bit to bit, so that a search finds where errors are large.

    Args:
        program: straight-line.
        states: its inputs.
        turns: its sines and cosines.
        output: the value.
    """
    values = _Values(program, states, np.float64, turns, [output])
    kind = np.dtype(program.dtype).type
    slopes: dict[Node, np.ndarray] = {output: np.ones(values.count)}
    total = np.zeros(values.count)
    with np.errstate(all="ignore"):
        for node in reversed(values.order):
            slope = slopes.pop(node, None)
            if slope is None:
                continue
            if node in turns.turns:
                total += np.abs(slope) * np.finfo(kind).eps / 2
            elif node.op in ("add", "sub", "mul", "fma", "div", "sqrt"):
                total += np.abs(slope) * np.spacing(np.abs(values(node)).astype(kind)).astype(float) / 2
            for argument, factor in _slopes(values, node):
                if argument.op == "const":
                    total += np.abs(slope * factor) * abs(float(kind(argument.value)) - argument.value)
                elif argument.op != "input":
                    slopes[argument] = slopes.get(argument, 0.0) + slope * factor
    return np.nan_to_num(total, nan=0.0, posinf=0.0)


def _slopes(values: _Values, node: Node) -> list[tuple[Node, np.ndarray | float]]:
    """Arguments of an operation with the derivative by each."""
    if node in values.turns.turns:
        turn = values.turns.turns[node]
        angle = values(turn.angle)
        return [(turn.angle, np.cos(angle) if turn.kind == "sin" else -np.sin(angle))]
    match node.op:
        case "add":
            return [(a, 1.0) for a in node.args]
        case "sub":
            return [(node.args[0], 1.0), (node.args[1], -1.0)]
        case "neg":
            return [(node.args[0], -1.0)]
        case "mul" | "fma":
            a, b, *others = node.args
            return [(a, values(b)), (b, values(a)), *((c, 1.0) for c in others)]
        case "div":
            a, b = node.args
            return [(a, 1.0 / values(b)), (b, -values(node) / values(b))]
        case "sqrt":
            return [(node.args[0], 0.5 / values(node))]
        case "abs":
            return [(node.args[0], np.sign(values(node.args[0])))]
        case "select":
            test, *sides = node.args
            taken = values(test)
            return [(sides[0], np.where(taken, 1.0, 0.0)), (sides[1], np.where(taken, 0.0, 1.0))]
        case _:
            return []


@dataclass(frozen=True)
class Reached:
    """What a search has reached.

    Args:
        value: the number.
        state: inputs by name.
    """

    value: float
    state: dict[str, list[float]]


class Coordinates:
    """The inputs of a box that are not fixed, as columns of a matrix.

    Args:
        box: where the states are.
    """

    def __init__(self, box: Box):
        self.box = box
        self.places = [(n, k) for n, (low, high) in box.bounds.items() for k in np.flatnonzero(low < high)]
        self.low, self.high = (np.array([box.bounds[n][side][k] for n, k in self.places]) for side in (0, 1))

    def matrix(self, states: States) -> np.ndarray:
        """(states, coordinates)."""
        rows = len(next(iter(states.values())))
        return (
            np.stack([states[n][:, k] for n, k in self.places], axis=1)
            if self.places
            else np.empty((rows, 0))
        )

    def states(self, matrix: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs by name."""
        found = {
            n: np.tile(low.astype(matrix.dtype), (len(matrix), 1)) for n, (low, _) in self.box.bounds.items()
        }
        for column, (name, k) in enumerate(self.places):
            found[name][:, k] = matrix[:, column]
        return found

    def levelled(
        self,
        level: Callable[[States], np.ndarray],
        matrix: np.ndarray,
        wanted: np.ndarray,
        columns: np.ndarray,
    ) -> np.ndarray:
        """States moved along one coordinate each so that a function of them has the wanted values, as far as one step
        of Newton's method and the box allow.

        Args:
            level: the function.
            matrix: the states.
            wanted: its values.
            columns: the coordinate that is moved, for every state.
        """
        rows, moved = np.arange(len(matrix)), matrix.astype(float)
        here = level(self.states(matrix))
        slopes = self.slopes(level, matrix, columns, here)
        with np.errstate(all="ignore"):
            moved[rows, columns] += np.nan_to_num((wanted - here) / slopes)
        return np.clip(moved, self.low, self.high).astype(matrix.dtype)

    def slopes(
        self, level: Callable[[States], np.ndarray], matrix: np.ndarray, columns: np.ndarray, here: np.ndarray
    ) -> np.ndarray:
        """Derivative of a function by one coordinate of each state.

        Args:
            level: the function.
            matrix: the states.
            columns: the coordinate, for every state.
            here: values of the function at the states.
        """
        rows, probe = np.arange(len(matrix)), matrix.copy()
        inwards = np.where(matrix[rows, columns] > (self.low + self.high)[columns] / 2, -1.0, 1.0)
        probe[rows, columns] += inwards * _PROBE * (self.high - self.low)[columns]
        return (level(self.states(probe)) - here) / (probe[rows, columns] - matrix[rows, columns])

    def reach(self, level: Callable[[States], np.ndarray], matrix: np.ndarray) -> np.ndarray:
        """How far each coordinate can move a function, about: (states, coordinates).

        Args:
            level: the function.
            matrix: the states.
        """
        count, size = len(matrix), len(self.places)
        many, columns = np.repeat(matrix, size, axis=0), np.tile(np.arange(size), count)
        slopes = self.slopes(level, many, columns, np.repeat(level(self.states(matrix)), size))
        return np.nan_to_num(np.abs(slopes).reshape(count, size) * (self.high - self.low)) + 1e-300


def climb(
    objective: Callable[[States], np.ndarray],
    box: Box,
    starts: States,
    rng: np.random.Generator,
    level: Callable[[States], np.ndarray] | None = None,
) -> Reached:
    """The best state that ``ascend`` finds.

    Args:
        objective: values of states.
        box: where the states are.
        starts: states to begin with.
        rng: the source of random steps.
        level: a function that must keep its value.
    """
    states, values = ascend(objective, box, starts, rng, level)
    top = int(np.argmax(values))
    return Reached(float(values[top]), {name: [float(x) for x in x_[top]] for name, x_ in states.items()})


def ascend(
    objective: Callable[[States], np.ndarray],
    box: Box,
    starts: States,
    rng: np.random.Generator,
    level: Callable[[States], np.ndarray] | None = None,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """States with large values of an objective, and the values: a search along one coordinate after another.

    Steps have all sizes down to the last bit: the error of an output is a sum of errors of operations, and a number
    that moves a little changes only those that depend on it.

    Args:
        objective: values of states.
        box: where the states are.
        starts: states to begin with.
        rng: the source of random steps.
        level: a function that must keep its value, such as a torque before it is limited: beyond its limit there is no
            error. A second coordinate is moved for that, in half of the steps.
    """
    free = Coordinates(box)
    best = free.matrix(starts)
    values = _finite(objective(free.states(best)))
    count, rows = len(values), np.arange(len(values))
    # steps of each state along each coordinate, and rounds over all coordinates
    width, rounds = _WIDTH, _ROUNDS
    if len(free.places) * count > _MANY:
        width, rounds = _WIDTH // 4, 1
    for _ in range(rounds):
        reach = None if level is None else np.cumsum(free.reach(level, best), axis=1)
        for place in rng.permutation(len(free.places)):
            low, high = free.low[place], free.high[place]
            many = np.repeat(best, width, axis=0)
            size = (high - low) * 10.0 ** rng.uniform(-8, 0, count * width)
            moved = many[:, place] + size * rng.standard_normal(count * width)
            moved[::width] = moved[1::width] = low
            moved[2::width] = moved[3::width] = high
            many[:, place] = np.clip(moved, low, high)
            if level is not None and reach is not None:
                half = np.arange(0, count * width, 2)
                wanted = level(free.states(best))[half // width]
                second = weighted(reach[half // width], rng)
                many[half] = free.levelled(level, many[half], wanted, second)
            tried = _finite(objective(free.states(many))).reshape(count, width)
            chosen = np.argmax(tried, axis=1)
            better = tried[rows, chosen] > values
            best[better] = many[(rows * width + chosen)[better]]
            values = np.where(better, tried[rows, chosen], values)
    return free.states(best), values


def weighted(sums: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random column of each row, from sums of the weights up to each column."""
    return np.minimum((sums < rng.random((len(sums), 1)) * sums[:, -1:]).sum(axis=1), sums.shape[1] - 1)


def _finite(values: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.asarray(values, dtype=float), nan=-np.inf)


def joined(parts: Sequence[States]) -> dict[str, np.ndarray]:
    """Several groups of states as one."""
    return {name: np.concatenate([np.atleast_2d(p[name]) for p in parts]) for name in parts[0]}
