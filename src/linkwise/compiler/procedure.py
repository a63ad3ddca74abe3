"""Functions over scalars as steps of loops: a helper for programs that are written as statements (``loops``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.compiler.graph import Graph
from linkwise.compiler.loops import (
    Array,
    Element,
    For,
    Let,
    Nest,
    Place,
    Statement,
    Step,
    Whole,
    statements,
    whole,
)
from linkwise.compiler.operations import Operations
from linkwise.compiler.program import Dtype, lower
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
        found = function(*given)
        places = [place for group in writes for place in group]
        nodes = [graph.lift(value) for group in found for value in group]
        sizes = {name: len(group) for name, group in zip(names, reads, strict=True)}
        made = lower(
            {"out": ((len(nodes),), nodes)},
            sizes,
            name=names[0] if names else "s",
            dtype=self.dtype,
            fused=self.fused,
        )
        where = {
            (name, k): place
            for name, group in zip(names, reads, strict=True)
            for k, place in enumerate(group)
        }
        step = Step(where, made.body, list(zip(places, made.values[0], strict=True)), apart=apart)
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
        found: Counter[str] = Counter()
        values = dict(names)
        for statement in body:
            if isinstance(statement, Step):
                cost = self._costs[id(statement)]
                further = {"trigonometric": cost.trigonometric, "square_roots": cost.square_roots}
                found += Counter(cost.counts() | further)
            elif isinstance(statement, Let):
                values[statement.name] = statement.value.value(values, tables)
            elif isinstance(statement, For):
                turns = range(
                    *(x.value(values, tables) for x in (statement.first, statement.stop, statement.step))
                )
                alike = all(_is_known(inner) for inner in statements(statement.body))
                for turn in turns[:1] if alike else turns:
                    once = self._counted(statement.body, tables, {**values, statement.name: turn})
                    times = len(turns) if alike else 1
                    found += Counter({key: times * count for key, count in once.items()})
        return found


def _scalars(array: Array) -> int:
    assert isinstance(array.rows, int)
    return array.rows * array.columns


def _is_known(statement: Statement) -> bool:
    """Whether a statement takes the same operations in every turn of the loops around it."""
    if not isinstance(statement, For):
        return True
    return None not in (statement.first.number, statement.stop.number, statement.step.number)


def cells(array: str, count: int, start: Whole | int = 0, row: Whole | None = None) -> list[Place]:
    """Neighbouring elements of a row."""
    return [Element(array, whole(start) + k, row) for k in range(count)]


def strided(
    array: str, count: int, pitch: int, start: Whole | int = 0, row: Whole | None = None
) -> list[Place]:
    """Elements ``pitch`` apart: a column of a matrix that is stored row by row."""
    return [Element(array, whole(start) + k * pitch, row) for k in range(count)]
