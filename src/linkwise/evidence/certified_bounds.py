"""Bounds that hold for every state of a box: ranges, rounding errors, and what could not be excluded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.compiler.emit import c
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.compiler.ir.unrolled import UnrollError, unrolled
from linkwise.compiler.shapes import nest
from linkwise.embedded.entries import entries
from linkwise.embedded.entry import Entry, Options
from linkwise.evidence import intervals, pivots, rounding, search
from linkwise.evidence.box import Box, box_of
from linkwise.evidence.forms import LIMITS, EvidenceError, Forms, Problem, analyse
from linkwise.evidence.intervals import Interval
from linkwise.evidence.search import Reached
from linkwise.evidence.suprema import Supremum, supremum
from linkwise.robot.robot import Robot

_RANDOM = 20000
"""Random states of a search."""
_STARTS = 16
"""The best of them, from which it goes on."""
_LEVELLED = 2000
"""Random states whose value is moved between its limits."""


@dataclass(frozen=True)
class OutputBounds:
    """Bounds of one number that a function returns.

    Args:
        name: of the output.
        index: of the number in it, row by row.
        low: lower bound of the exact value over the box.
        high: upper bound.
        error: bound of |computed − exact|.
        lowest: smallest value that a search has reached.
        highest: largest value.
        worst: largest error that a search has reached.
    """

    name: str
    index: int
    low: float
    high: float
    error: float
    lowest: Reached
    highest: Reached
    worst: Reached

    @property
    def tightness(self) -> float:
        """Largest bound over the largest value that was found; 1 is best."""
        found = max(abs(self.lowest.value), abs(self.highest.value))
        bound = max(abs(self.low), abs(self.high))
        return bound / found if found else (1.0 if bound == 0.0 else float("inf"))

    @property
    def error_tightness(self) -> float:
        """Error bound over the worst error that was found."""
        return self.error / self.worst.value if self.worst.value else float("inf")


@dataclass(frozen=True)
class Certificate:
    """Bounds of one function of one robot over a box of states.

    Args:
        robot: its name.
        function: what was analysed.
        dtype: of the program.
        fused: whether it uses fused multiply-adds.
        box: of its inputs.
        outputs: bounds of every number that it returns.
        problems: where a NaN, an infinity or a division by 0 could not be excluded; empty: there is none.
        nodes: (number of the operation, lower bound, upper bound) of every computed value, rounding included.
        divisors: numbers of the operations whose bounds are those of pivots of the mass matrix.
        seconds: that it took.
    """

    robot: str
    function: str
    dtype: str
    fused: bool
    box: Box
    outputs: tuple[OutputBounds, ...]
    problems: tuple[Problem, ...]
    nodes: tuple[tuple[int, float, float], ...] = field(repr=False)
    divisors: tuple[int, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether all values are finite numbers for every state of the box."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """What the bounds say, in a sentence."""
        if not self.holds:
            return f"{len(self.problems)} values of {len(self.nodes)} may not be finite, v{self.problems[0].node} first"
        return f"all {len(self.nodes)} values are finite numbers for every state of the box"

    def json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "robot": self.robot,
            "function": self.function,
            "dtype": self.dtype,
            "fused": self.fused,
            "box": self.box.json(),
            "assumed": list(self.box.assumed),
            "problems": [{"node": p.node, "what": p.what} for p in self.problems],
            "outputs": [_row(o) for o in self.outputs],
            "nodes": [list(n) for n in self.nodes],
            "divisors": list(self.divisors),
        }


def _row(o: OutputBounds) -> dict[str, Any]:
    reached = {
        key: {"value": r.value, "state": r.state}
        for key, r in (("lowest", o.lowest), ("highest", o.highest), ("worst", o.worst))
    }
    return {"name": o.name, "index": o.index, "low": o.low, "high": o.high, "error": o.error, **reached}


def certify(
    robot: Robot,
    function: str | Entry,
    *,
    options: Options | None = None,
    fma: bool = True,
    velocity: Any = None,
    acceleration: Any = None,
    payload: Sequence[float] | None = None,
    given: Mapping[str, tuple[Any, Any]] | None = None,
    numbers: Mapping[str, int] | None = None,
    tolerance: float = 0.1,
    seconds: float = 60.0,
    seed: int = 0,
) -> Certificate:
    """Sound bounds of every value of a function over a box of states, beside the largest that a search finds.

    Args:
        robot: the robot.
        function: a function of the robot or a controller, as ``linkwise generate`` has them, or one of a C package.
        options: choices of the generated code of a function that is given by its name.
        fma: whether it uses fused multiply-adds.
        velocity: largest joint velocities [rad/s or m/s]; None: the limits of the robot.
        acceleration: largest joint accelerations [rad/s² or m/s²]; None: 10.
        payload: largest mass [kg] and distance of its points from its frame [m], of functions that take a payload.
        given: (lower, upper) of inputs by name, in place of all others.
        numbers: whole numbers that a call gives, such as the number of time steps of a loop.
        tolerance: what bounds may add to the largest value, as a part of it.
        seconds: for the bounds of one output; they are wider if the time ends.
        seed: of the search.

    Returns:
        Bounds of outputs and of every operation.

    Raises:
        EvidenceError: the number of turns of a loop depends on data or was not given.
        BoxError: an input has no bounds.
    """
    if isinstance(function, str):
        made = entries(robot, (function,), Options() if options is None else options)
        entry = next(each for each in made if each.name == function)
    else:
        entry = function
    begin = time.monotonic()
    program, box = program_and_box(
        robot,
        entry,
        fma=fma,
        numbers=numbers,
        velocity=velocity,
        acceleration=acceleration,
        payload=payload,
        given=given,
    )
    known = pivots.divisors(robot, program, box)
    forms = analyse(program, box, keep=True, known=known)
    errors = rounding.errors(forms)
    ranges = _Ranges(forms, tolerance, seconds)
    compared = _Search(entry, forms, seed, fma)
    rows = []
    for k, ((name, _), nodes) in enumerate(zip(program.outputs, program.values, strict=True)):
        for index, node in enumerate(nodes):
            low, high = ranges.interval(node)
            reached = compared.reached(k, index, (low, high), ranges.states(node))
            rows.append(OutputBounds(name, index, low, high, errors.of(node), *reached))
            _refuse_contradiction(rows[-1])
    table = tuple(
        (node.index, *intervals.widened(interval, errors.of(node)))
        for node, interval in forms.intervals.items()
    )
    return Certificate(
        robot.name,
        entry.name,
        program.dtype,
        program.fused,
        box,
        tuple(rows),
        (*forms.problems, *_unbounded(table, program.dtype, forms.problems)),
        table,
        tuple(node.index for node in known),
        time.monotonic() - begin,
    )


def _refuse_contradiction(row: OutputBounds) -> None:
    """A bound that a state contradicts is a fault here: no certificate is made from it."""
    least, most = row.low - row.error, row.high + row.error
    if row.worst.value > row.error or row.lowest.value < least or row.highest.value > most:
        raise EvidenceError(
            f"a fault of Linkwise, please report it: {row.name}[{row.index}] is between {row.lowest.value:.6g} and "
            f"{row.highest.value:.6g} with an error of {row.worst.value:.3g}, beside bounds of {least:.6g}, {most:.6g} "
            f"and {row.error:.3g}; no certificate was made"
        )


def program_and_box(
    robot: Robot,
    entry: Entry,
    *,
    fma: bool = True,
    numbers: Mapping[str, int] | None = None,
    **bounds: Any,
) -> tuple[Program, Box]:
    """The operations of one call of a function, and the box of its inputs.

    Args:
        robot: the robot.
        entry: the function.
        fma: whether it uses fused multiply-adds.
        numbers: whole numbers that a call gives, such as the number of time steps of a loop.
        bounds: of the inputs, as ``box_of`` takes them: velocity, acceleration, payload, given.
    """
    program = straight_line(entry.program if fma else c.unfused(entry.program), numbers)
    box = box_of(robot, program.inputs, values=entry.settings, **bounds)
    return program, rounded_box(box, program.dtype)


def straight_line(program: c.AnyProgram, numbers: Mapping[str, int] | None = None) -> Program:
    """The operations of one call; loops are written out.

    Args:
        program: of a function.
        numbers: whole numbers that a call gives, such as the number of time steps.

    Raises:
        EvidenceError: the number of turns of a loop depends on data or was not given.
    """
    if isinstance(program, Program) and not any(isinstance(item, LoopRegion) for item in program.body):
        return program
    try:
        return unrolled(nest(program), numbers)
    except UnrollError as error:
        raise EvidenceError(f"no bounds: {error}") from error


def _unbounded(
    table: Sequence[tuple[int, float, float]], dtype: str, known: Sequence[Problem]
) -> list[Problem]:
    """Values that are finite in exact arithmetic, but may not be when they are rounded."""
    named, most = {p.node for p in known}, LIMITS[dtype]
    return [
        Problem(node, "rounding may make it infinite or no number")
        for node, low, high in table
        if node not in named and not (low >= -most and high <= most)
    ]


def rounded_box(box: Box, dtype: str) -> Box:
    """The box with bounds that are floats of the program, nowhere smaller."""
    if dtype == "float64":
        return box
    found = {}
    for name, (low, high) in box.bounds.items():
        short, long = low.astype(np.float32), high.astype(np.float32)
        short = np.where(short > low, np.nextafter(short, np.float32(-np.inf)), short)
        long = np.where(long < high, np.nextafter(long, np.float32(np.inf)), long)
        equal = low == high
        found[name] = (
            np.where(equal, low.astype(np.float32), short).astype(float),
            np.where(equal, low.astype(np.float32), long).astype(float),
        )
    return Box(found, box.assumed)


class _Ranges:
    """Close bounds of values, each computed once."""

    def __init__(self, forms: Forms, tolerance: float, seconds: float):
        self.forms, self.tolerance, self.seconds = forms, tolerance, seconds
        self.lower, self.upper = forms.angle_bounds()
        self._known: dict[Node, tuple[Interval, Supremum | None]] = {}

    def interval(self, node: Node) -> Interval:
        return self._of(node)[0]

    def _of(self, node: Node) -> tuple[Interval, Supremum | None]:
        if node not in self._known:
            self._known[node] = self._computed(node)
        return self._known[node]

    def _computed(self, node: Node) -> tuple[Interval, Supremum | None]:
        forms = self.forms
        if node.op in ("const", "input"):
            return forms.interval(node), None
        if node.op == "select" and (test := forms.conditions[node.args[0]]) is not None:
            return self._of(node.args[1] if test else node.args[2])
        loose = forms.interval(node)
        if node in forms.series and node not in forms.variables and node.op != "input":
            found = supremum(
                forms.series[node],
                self.lower,
                self.upper,
                variables=len(forms.variables),
                tolerance=self.tolerance,
                seconds=self.seconds,
            )
            return intervals.meet(loose, (found.low, found.high)), found
        kind = forms.smaller_or_larger(node)
        if kind is not None:
            (a, b), (p, q) = (self.interval(x) for x in node.args[1:])
            choose = min if kind == "min" else max
            return (choose(a, p), choose(b, q)), None
        return loose, None

    def states(self, node: Node) -> list[dict[str, np.ndarray]]:
        """States where the value, or one that it is chosen from, is close to its bounds."""
        found = self._of(node)[1]
        if found is not None:
            return [self._state(*found.least), self._state(*found.most)]
        if node.op == "select" and node not in self.forms.patterns.turns:
            return [s for a in node.args[1:] if a.op not in ("const", "input") for s in self.states(a)]
        return []

    def _state(self, angles: np.ndarray, variables: np.ndarray) -> dict[str, np.ndarray]:
        box = self.forms.box
        state = {name: box.middle(name) for name in box.bounds}
        for node, epsilon in zip(self.forms.variables, variables, strict=True):
            if node.op == "input":
                name, k = node.value
                low, high = (side[k] for side in box.bounds[name])
                state[name][k] = np.clip((low + high) / 2 + epsilon * (high - low) / 2, low, high)
        for (name, k), number in self.forms.angles.items():
            low, high = (side[k] for side in box.bounds[name])
            angle = angles[number]
            angle -= 2 * np.pi * np.ceil((angle - high) / (2 * np.pi)) if angle > high else 0.0
            state[name][k] = np.clip(angle, low, high)
        return state


class _Search:
    """Searches for large values and large errors of one function."""

    def __init__(self, entry: Entry, forms: Forms, seed: int, fma: bool):
        self.entry, self.forms, self.fma = entry, forms, fma
        self.rng = np.random.default_rng(seed)
        drawn = forms.box.draw(self.rng, _RANDOM)
        self.kind = np.dtype(forms.program.dtype)
        self.drawn = {name: x.astype(self.kind) for name, x in drawn.items()}

    def computed(self, states: search.States) -> list[np.ndarray]:
        """What the code returns."""
        if not self.fma:
            return search.without_fusing(self.forms.program, states)
        count = len(next(iter(states.values())))
        kernel: Any = self.entry.kernel
        results: Any = kernel(*(states[name] for name, _ in self.forms.program.inputs))
        return [
            np.asarray(x).reshape(count, -1) for x in (results if isinstance(results, tuple) else (results,))
        ]

    def _exact(self, states: search.States, node: Node) -> np.ndarray:
        return search.exact(self.forms.program, states, self.forms.patterns, [node])[0][:, 0]

    def reached(
        self, output: int, index: int, interval: Interval, starts: Sequence[dict[str, np.ndarray]]
    ) -> tuple[Reached, Reached, Reached]:
        """Smallest and largest value, and the largest error.

        Args:
            output: number of the output.
            index: of the number in it.
            interval: that holds it.
            starts: states to begin with, besides random ones.
        """
        node = self.forms.program.values[output][index]

        def value(states: search.States) -> np.ndarray:
            return self.computed(states)[output][:, index].astype(float)

        def error(states: search.States) -> np.ndarray:
            computed = self.computed(states)[output][:, index].astype(np.longdouble)
            return np.abs(computed - self._exact(states, node)).astype(float)

        inner = _before_limits(self.forms, node)
        level = (
            None
            if inner is node or not np.isfinite(interval).all()
            else lambda s: self._exact(s, inner).astype(float)
        )
        given = [{name: x[None].astype(self.kind) for name, x in s.items()} for s in starts]
        low, high = (self._climbed(lambda s, g=sign: g * value(s), self.drawn, given) for sign in (-1.0, 1.0))
        drawn = self.drawn if level is None else self._levelled(level, interval)

        def possible(states: search.States) -> np.ndarray:
            return search.possible_error(self.forms.program, states, self.forms.patterns, node)

        many = self._best(possible, search.joined([drawn, *given]))
        large, _ = search.ascend(possible, self.forms.box, many, self.rng, level)
        worst = self._climbed(error, self.drawn, [large, *given], level)
        return Reached(-low.value, low.state), high, worst

    def _levelled(self, level: Callable[[search.States], np.ndarray], interval: Interval) -> search.States:
        """Random states with a value between its limits."""
        free = search.Coordinates(self.forms.box)
        matrix = free.matrix(self.drawn)[:_LEVELLED]
        columns = search.weighted(np.cumsum(free.reach(level, matrix), axis=1), self.rng)
        wanted = self.rng.uniform(*interval, len(matrix))
        return free.states(free.levelled(level, matrix, wanted, columns))

    def _climbed(
        self,
        objective: Callable[[search.States], np.ndarray],
        drawn: search.States,
        given: Sequence[search.States],
        level: Callable[[search.States], np.ndarray] | None = None,
    ) -> Reached:
        """What a search finds from the best of random states, and from given ones."""
        begin = search.joined([self._best(objective, drawn), *given])
        return search.climb(objective, self.forms.box, begin, self.rng, level)

    def _best(self, objective: Callable[[search.States], np.ndarray], states: search.States) -> search.States:
        order = np.argsort(-objective(states), kind="stable")[:_STARTS]
        return {name: x[order] for name, x in states.items()}


def _before_limits(forms: Forms, node: Node) -> Node:
    """The value that an output is before it is cut off at fixed limits; else the output."""
    while node.op == "select" and node not in forms.patterns.turns:
        test, *sides = node.args
        if (chosen := forms.conditions[test]) is not None:
            node = sides[0] if chosen else sides[1]
            continue
        others = [a for a in sides if forms.interval(a)[0] < forms.interval(a)[1]]
        if forms.smaller_or_larger(node) is None or len(others) != 1:
            break
        node = others[0]
    return node
