"""Functions over scalars as steps of loops: a helper for programs that are written as statements (``loops``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.loops import (
    Array,
    Element,
    For,
    IfNegative,
    Let,
    Nest,
    Place,
    Statement,
    Step,
    Whole,
    statements,
    whole,
)
from linkwise.compiler.ir.operations import Operations
from linkwise.compiler.ir.program import Dtype, lower
from linkwise.scalar import Scalar


@dataclass(frozen=True, eq=False)
class ProcedureNest(Nest):
    """Loops, and the operations of all their turns."""

    operations: Operations = field(default_factory=Operations)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Of outputs that are more than one row of numbers."""

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes, as programs without loops have them."""
        return tuple((array.title, _scalars(array)) for array in self.arrays if array.kind == "input")

    @property
    def outputs(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes."""
        written = [array for array in self.arrays if array.kind == "output"]
        return tuple((array.title, self.shapes.get(array.title, (_scalars(array),))) for array in written)

    def scratch_scalars(self, width: int) -> int:
        """Memory that one call needs beside its inputs and outputs."""
        return width * sum(_scalars(array) for array in self.arrays if array.kind == "scratch")


class Procedure:
    """Makes steps and counts their operations; nodes of different steps are different."""

    def __init__(self, dtype: Dtype, *, fused: bool = True):
        self.dtype: Dtype = dtype
        self.fused = fused
        self._costs: dict[int, Operations] = {}
        self._steps: list[Step] = []  # kept, so that their numbers stay theirs

    def step(
        self,
        function: Callable[..., Sequence[Sequence[Scalar]]],
        reads: Sequence[Sequence[Place]],
        writes: Sequence[Sequence[Place]],
        *,
        apart: bool = False,
    ) -> Step:
        """Arithmetic: ``function`` of a list for each group of places read gives a list for each group written."""
        graph, names = Graph(), [f"s{len(self._steps)}_{k}" for k in range(len(reads))]
        given = [graph.inputs(name, len(places)) for name, places in zip(names, reads, strict=True)]
        nodes = [graph.lift(value) for group in function(*given) for value in group]
        places = {
            (name, k): place
            for name, group in zip(names, reads, strict=True)
            for k, place in enumerate(group)
        }
        step = self.lowered(nodes, places, [place for group in writes for place in group], apart=apart)
        graph.finish()
        return step

    def lowered(
        self,
        nodes: Sequence[Node],
        reads: Mapping[tuple[str, int], Place],
        writes: Sequence[Place],
        *,
        apart: bool = False,
    ) -> Step:
        """The step that computes these nodes of a graph of its own, from its inputs (name, number)."""
        sizes: Counter[str] = Counter(name for name, _ in reads)
        made = lower(
            {"out": ((len(nodes),), nodes)},
            sizes,
            name=next(iter(sizes), "s"),
            dtype=self.dtype,
            fused=self.fused,
        )
        step = Step(reads, made.body, list(zip(writes, made.values[0], strict=True)), apart=apart)
        self._steps.append(step)
        self._costs[id(step)] = made.operations
        return step

    def operations(
        self, body: Sequence[Statement], tables: Mapping[str, Sequence[int]] | None = None
    ) -> Operations:
        """The operations of statements, those of every turn of a loop; ``tables`` of whole numbers that bounds read."""
        counts: dict[str, Any] = dict(self._counted(body, tables or {}, {}))
        return Operations(**counts)

    def _counted(
        self, body: Sequence[Statement], tables: Mapping[str, Sequence[int]], names: Mapping[str, int]
    ) -> Counter[str]:
        total: Counter[str] = Counter()
        values = dict(names)
        for statement in body:
            if isinstance(statement, Step):
                cost = self._costs[id(statement)]
                further = {"trigonometric": cost.trigonometric, "square_roots": cost.square_roots}
                total += Counter(cost.counts() | further)
            elif isinstance(statement, Let):
                values[statement.name] = statement.value.value(values, tables)
            elif isinstance(statement, IfNegative):
                total += self._counted(statement.then, tables, values)
            elif isinstance(statement, For):
                turns = range(
                    *(x.value(values, tables) for x in (statement.first, statement.stop, statement.step))
                )
                alike = not _depends(statement.body, statement.name)
                for turn in turns[:1] if alike else turns:
                    once = self._counted(statement.body, tables, {**values, statement.name: turn})
                    times = len(turns) if alike else 1
                    total += Counter({key: times * count for key, count in once.items()})
        return total


def _scalars(array: Array) -> int:
    assert isinstance(array.rows, int)
    return array.rows * array.columns


def _depends(body: Sequence[Statement], loop: str) -> bool:
    """Whether numbers of turns inside of a loop depend on its own turn."""
    names = {loop}
    for statement in statements(body):
        if isinstance(statement, Let) and _mentions(statement.value, names):
            names.add(statement.name)
        elif isinstance(statement, For) and any(
            _mentions(bound, names) for bound in (statement.first, statement.stop)
        ):
            return True
    return False


def _mentions(value: Whole, names: set[str]) -> bool:
    if value.op == "name":
        return value.args[0] in names
    return any(isinstance(a, Whole) and _mentions(a, names) for a in value.args)


def cells(array: str, count: int, start: Whole | int = 0, row: Whole | None = None) -> list[Place]:
    """Neighbouring elements of a row."""
    return [Element(array, whole(start) + k, row) for k in range(count)]
