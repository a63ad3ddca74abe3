"""Recursive least squares with loops over parameters instead of instructions for each of their pairs.

The arithmetic is that of ``ud_factors.measured`` and ``RecursiveLeastSquares.update``; only its form differs. For all
base parameters of an arm straight-line code has tens of thousands of operations, which take long to compile; here they
are loops around a few lines, and only the columns of the regressor are written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linkwise.compiler.graph import Graph
from linkwise.compiler.loops import (
    Array,
    Declare,
    Element,
    For,
    Nest,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    entry,
    name,
    whole,
)
from linkwise.compiler.operations import Operations
from linkwise.compiler.program import lower
from linkwise.compiler.shapes import ROOM
from linkwise.errors import TraceError
from linkwise.scalar import Scalar, sqrt, where

if TYPE_CHECKING:
    from linkwise.control.recursive_least_squares import RecursiveLeastSquares

SUM, VALUE, BACK, TOTAL, SHARE = (Register(key) for key in ("sum", "value", "back", "total", "share"))
I, J, R = name("i"), name("j"), name("r")


@dataclass(frozen=True, eq=False)
class CountedNest(Nest):
    """Loops, and the operations of all their turns."""

    operations: Operations = field(default_factory=Operations)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        raise TraceError(
            f"{self.name}: so many parameters are handled in loops, which are machine code, C or WebAssembly; other "
            "targets and derivatives take fewer parameters"
        )


class LeastSquaresLoops:
    """The statements for one sample. Memory: the state, the rows of the sample, and three lists."""

    def __init__(self, estimator: RecursiveLeastSquares, dtype: str):
        self.estimator, self.dtype = estimator, dtype
        self.n, self.size = estimator.robot.dof, estimator.chosen.size
        self.pairs = self.size * (self.size - 1) // 2
        self.graph = Graph()
        self.costs: dict[int, Operations] = {}  # of steps
        places, at = {}, 0
        sizes = {"x": self.size, "D": self.size, "U": self.pairs, "rows": self.n * self.size, "given": self.n}
        for key, size in {**sizes, "f": self.size, "gain": self.size, "scale": self.size}.items():
            places[key], at = at, at + size
        self.places, self.room = places, at

    def nest(self) -> Nest:
        """The whole function."""
        estimator, size = self.estimator, self.size
        recursion = estimator.recursion
        given = {**recursion.inputs, "memory": recursion.memory}
        arrays = [Array(key, "input", count) for key, count in given.items()]
        arrays += [Array(key, "output", shape[0]) for key, shape in recursion.outputs.items()]
        constants = {
            "begin": estimator.start,
            "variance": estimator.deviation**2,
            "most": estimator.bound**2,
            "noise": estimator.noise,
        }
        arrays += [Array("next_memory", "output", recursion.memory)]
        arrays += [Array(key, "constant", len(values)) for key, values in constants.items()]
        arrays += [Array(ROOM, "scratch", self.room)]
        body: list[Statement] = [
            Declare(dict.fromkeys((SUM, VALUE, BACK, TOTAL, SHARE), 0.0)),
            self._columns(),
            *self._begun(),
            *(self._forgotten() if estimator.forgetting < 1.0 else []),
            *self._residuals(),
            For("r", whole(0), whole(self.n), self._updated()),
            *self._results(),
        ]
        tables = {"starts": [j * (j - 1) // 2 for j in range(size)]}
        counts: dict[str, Any] = dict(self.counted(body, tables, {}))
        return CountedNest(
            recursion.name,
            self.dtype,
            tuple(arrays),
            body,
            constants=constants,
            tables=tables,
            operations=Operations(**counts),
        )

    # -- places -------------------------------------------------------------------------------------------------------

    def kept(self, key: str, index: Whole | int) -> Element:
        """A scalar of the memory of the computation."""
        return Element(
            ROOM, whole(index) + self.places[key] if isinstance(index, int) else index + self.places[key]
        )

    def pair(self, i: Whole, j: Whole) -> Element:
        """U_ij."""
        return self.kept("U", entry("starts", j) + i)

    def row(self, r: Whole, k: Whole) -> Element:
        return self.kept("rows", r * self.size + k)

    def step(
        self, function: Callable[..., Sequence[Scalar]], reads: Sequence[Place], writes: Sequence[Place]
    ) -> Step:
        """Arithmetic: ``function`` of what is read gives what is written."""
        key = f"s{len(self.costs)}"  # nodes of different steps are different
        nodes = [self.graph.lift(value) for value in function(*self.graph.inputs(key, len(reads)))]
        made = lower({"out": ((len(nodes),), nodes)}, {key: len(reads)}, name=key, dtype=self.dtype)  # type: ignore[arg-type]
        found = Step(
            {(key, k): place for k, place in enumerate(reads)},
            made.body,
            list(zip(writes, made.values[0], strict=True)),
        )
        self.costs[id(found)] = made.operations
        return found

    def counted(self, body: Sequence[Statement], tables: Any, names: dict[str, int]) -> Counter[str]:
        """The operations of statements, those of every turn of a loop."""
        found: Counter[str] = Counter()
        for statement in body:
            if isinstance(statement, Step):
                cost = self.costs[id(statement)]
                further = {"trigonometric": cost.trigonometric, "square_roots": cost.square_roots}
                found += Counter(cost.counts() | further)
            elif isinstance(statement, For):
                first, stop = (each.value(names, tables) for each in (statement.first, statement.stop))
                if any(isinstance(inner, For) for inner in statement.body):
                    for turn in range(first, stop):
                        found += self.counted(statement.body, tables, {**names, statement.name: turn})
                else:
                    turns = max(0, stop - first)
                    once = self.counted(statement.body, tables, names)
                    found += Counter({key: turns * count for key, count in once.items()})
        return found

    def each(self, count: int, *body: Statement, loop: str = "j") -> For:
        return For(loop, whole(0), whole(count), list(body))

    # -- statements ---------------------------------------------------------------------------------------------------

    def _columns(self) -> Step:
        """The rows of the sample, in units of their noise, and the torques that they explain."""
        chosen, noise = self.estimator.chosen, self.estimator.noise
        sizes = self.estimator.recursion.inputs
        reads = [Element(key, whole(k)) for key, size in sizes.items() for k in range(size)]

        def function(*given: Scalar) -> list[Scalar]:
            parts, at = [], 0
            for size in sizes.values():
                parts.append(list(given[at : at + size]))
                at += size
            q, qd, qdd, tau = parts
            scale = [float(1.0 / s) for s in noise]
            rows = chosen.columns(q, qd, qdd)
            known = chosen.known(q, qd, qdd)
            scaled = [s * x for row, s in zip(rows, scale, strict=True) for x in row]
            return scaled + [s * (t - k) for t, k, s in zip(tau, known, scale, strict=True)]

        writes = [self.kept("rows", k) for k in range(self.n * self.size)]
        return self.step(function, reads, [*writes, *(self.kept("given", k) for k in range(self.n))])

    def _begun(self) -> list[Statement]:
        """The state from the memory; zeros mean the beginning."""
        at = lambda k: Element("memory", k)  # noqa: E731
        chosen = self.step(
            lambda started, x, D, begin, variance: [
                where(started <= 0.0, begin, x),
                where(started <= 0.0, variance, D),
            ],
            [at(whole(0)), at(J + 1), at(J + (1 + self.size)), Element("begin", J), Element("variance", J)],
            [self.kept("x", J), self.kept("D", J)],
        )
        copied = self.step(lambda u: [u], [at(J + (1 + 2 * self.size))], [self.kept("U", J)])
        return [self.each(self.size, chosen), self.each(self.pairs, copied)]

    def _variance(self) -> list[Statement]:
        """P_ii in SUM."""
        return [
            self.step(lambda d: [d], [self.kept("D", I)], [SUM]),
            For(
                "j",
                I + 1,
                whole(self.size),
                [
                    self.step(
                        lambda s, u, d: [s + u * u * d], [SUM, self.pair(I, J), self.kept("D", J)], [SUM]
                    )
                ],
            ),
        ]

    def _forgotten(self) -> list[Statement]:
        growth = 1.0 / self.estimator.forgetting

        def scale(variance: Any, most: Any) -> list[Scalar]:
            allowed = where(growth * variance <= most, growth, most / variance)
            found = sqrt(where(allowed > 1.0, allowed, 1.0))
            return [found, 1.0 / found]

        chosen = self.step(scale, [SUM, Element("most", I)], [self.kept("scale", I), self.kept("f", I)])
        pair = self.step(
            lambda s, inverse, u: [(s * inverse) * u],
            [self.kept("scale", I), self.kept("f", J), self.pair(I, J)],
            [self.pair(I, J)],
        )
        own = self.step(
            lambda s, d: [s * s * d], [self.kept("scale", J), self.kept("D", J)], [self.kept("D", J)]
        )
        return [
            self.each(self.size, *self._variance(), chosen, loop="i"),
            self.each(self.size, For("i", whole(0), J, [pair])),
            self.each(self.size, own),
        ]

    def _unexplained(self) -> list[Statement]:
        """What the estimate does not explain of row r, in units of its noise, in SUM."""
        return [
            self.step(lambda y: [y], [self.kept("given", R)], [SUM]),
            self.each(
                self.size,
                self.step(lambda s, a, x: [s - a * x], [SUM, self.row(R, J), self.kept("x", J)], [SUM]),
            ),
        ]

    def _residuals(self) -> list[Statement]:
        written = self.step(
            lambda s, noise: [s * noise], [SUM, Element("noise", R)], [Element("residual", R)]
        )
        return [self.each(self.n, *self._unexplained(), written, loop="r")]

    def _updated(self) -> list[Statement]:
        """Bierman's update with row r."""
        f, gain, D = self.kept("f", J), self.kept("gain", J), self.kept("D", J)
        projected = [
            self.step(lambda a: [a], [self.row(R, J)], [SUM]),
            For(
                "i",
                whole(0),
                J,
                [self.step(lambda s, u, a: [s + u * a], [SUM, self.pair(I, J), self.row(R, I)], [SUM])],
            ),
            self.step(lambda s: [s], [SUM], [f]),
        ]

        def column(total: Any, f: Any, d: Any) -> list[Scalar]:
            v = d * f
            after = total + f * v
            return [after, v, -(f / total), d * (total * (1.0 / after))]

        pair = self.step(
            lambda u, g, back, v: [u + g * back, g + u * v],
            [self.pair(I, J), self.kept("gain", I), BACK, VALUE],
            [self.pair(I, J), self.kept("gain", I)],
        )
        return [
            self.each(self.size, *projected),
            self.step(lambda: [1.0], [], [TOTAL]),
            self.each(
                self.size,
                self.step(column, [TOTAL, f, D], [TOTAL, VALUE, BACK, D]),
                For("i", whole(0), J, [pair]),
                self.step(lambda v: [v], [VALUE], [gain]),
            ),
            *self._unexplained(),
            self.step(lambda s, total: [s / total], [SUM, TOTAL], [SHARE]),
            self.each(
                self.size,
                self.step(
                    lambda x, g, share: [x + g * share], [self.kept("x", J), gain, SHARE], [self.kept("x", J)]
                ),
            ),
        ]

    def _results(self) -> list[Statement]:
        at = lambda k: Element("next_memory", k)  # noqa: E731
        deviation = self.step(lambda s: [sqrt(s)], [SUM], [Element("deviations", I)])
        return [
            self.each(self.size, *self._variance(), deviation, loop="i"),
            self.step(lambda: [1.0], [], [at(whole(0))]),
            self.each(
                self.size,
                self.step(
                    lambda x, d: [x, x, d],
                    [self.kept("x", J), self.kept("D", J)],
                    [Element("parameters", J), at(J + 1), at(J + (1 + self.size))],
                ),
            ),
            self.each(
                self.pairs, self.step(lambda u: [u], [self.kept("U", J)], [at(J + (1 + 2 * self.size))])
            ),
        ]
