"""What the loops over joints have in common: their memory, tables of joints that carry others, small statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from linkwise.algorithms import coupling
from linkwise.algorithms.coriolis import coordinates_by_link
from linkwise.compiler.ir.loops import (
    Array,
    Declare,
    Element,
    For,
    Let,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    entry,
    name,
    statements,
    whole,
)
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest
from linkwise.functions.table import Function, Setting
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import Spatial, Vector

A, I, J, K = (name(spelled) for spelled in "aijk")

Matrix = Callable[[Whole, Whole], Element]
"""Where the entry of a row and a column of a matrix is."""


class Loops:
    """Statements, the tables that they read, and what they cost."""

    def __init__(self, links: Mechanism, made: Procedure):
        self.made = made
        self.step = self.made.step
        self.links = links
        self.leaders, self.ratios = _leaders(links)
        own = coordinates_by_link(links)
        self.axes = links.dof
        carriers = [
            [*own[k], *(j for a in links.ancestors(k) for j in own[a])] for k, _ in links.coordinates()
        ]
        starts = [0]
        for each in carriers:
            starts.append(starts[-1] + len(each))
        link_of = [k for k, _ in links.coordinates()]
        n = max(self.leaders, default=0) + 1
        self.tables: dict[str, Sequence[int]] = {
            "starts": starts,
            "shared": [start + len(own[k]) for start, k in zip(starts[:-1], link_of, strict=True)],
            "carriers": [a for each in carriers for a in each],
            "links": link_of,
            "leaders": self.leaders,
            "backward": [n - 1 - leader for leader in self.leaders],
        }

    def nest(
        self, function: Function, setting: Setting, scratch: Sequence[Array], body: list[Statement]
    ) -> ProcedureNest:
        """The whole program."""
        arrays = [Array(key, "input", size) for key, size in function.input_sizes(setting).items()]
        shapes = function.shapes(setting.model)
        arrays += [Array(key, "output", math.prod(shape)) for key, shape in shapes.items()]
        return ProcedureNest(
            function.name,
            self.made.dtype,
            (*arrays, *scratch),
            [_declared(body), *body],
            tables=self.tables,
            operations=self.made.operations(body, self.tables),
            fused=self.made.fused,
            shapes=shapes,
        )

    def carriers(self, *body: Statement, of: Whole, own: bool = True, others: bool = True) -> For:
        """A loop with ``a`` over the axes of the link of an axis, and those of the links that carry it."""
        first = entry("starts", of) if own else entry("shared", of)
        stop = entry("starts", of + 1) if others else entry("shared", of)
        return For("c", first, stop, [Let("a", entry("carriers", name("c"))), *body])

    def zeros(self, *arrays: Array) -> list[Statement]:
        """Fill arrays with zeros."""
        found: list[Statement] = []
        for array in arrays:
            one_row = array.rows == 1
            zero = self.step(
                lambda: [[0.0]], [], [[Element(array.name, J) if one_row else Element(array.name, J, I)]]
            )
            across = For("j", whole(0), whole(array.columns), [zero])
            assert isinstance(array.rows, int)
            found.append(across if one_row else For("i", whole(0), whole(array.rows), [across]))
        return found

    def copied(self, source: Sequence[Place], target: Sequence[Place]) -> Step:
        return self.step(lambda x: [list(x)], [source], [target])


def each(count: int, *body: Statement, loop: str = "i") -> For:
    """``for loop in range(count)``."""
    return For(loop, whole(0), whole(count), list(body))


def rows(array: str, count: int, columns: int) -> list[Place]:
    """All elements of an array, row by row."""
    return [Element(array, whole(j), whole(i)) for i in range(count) for j in range(columns)]


def spatial(numbers: Sequence[Any]) -> Spatial:
    return Spatial(Vector(*numbers[:3]), Vector(*numbers[3:6]))


def numbers_of(*values: Spatial) -> list[Any]:
    return [x for value in values for part in value for x in part]


def _declared(body: Sequence[Statement]) -> Declare:
    """All registers that statements use: they keep values from one turn of a loop to the next."""
    steps = [statement for statement in statements(body) if isinstance(statement, Step)]
    places = [place for step in steps for place in (*step.reads.values(), *(at for at, _ in step.writes))]
    return Declare({place: 0.0 for place in places if isinstance(place, Register)})


def _leaders(links: Mechanism) -> tuple[list[int], list[float]]:
    """For every axis the coordinate that moves it, and by how much."""
    leaders, ratios = [0] * links.dof, [1.0] * links.dof
    for coordinate, (own, followers) in enumerate(coupling.leading(links)):
        leaders[own] = coordinate
        for axis, ratio in followers:
            leaders[axis], ratios[axis] = coordinate, ratio
    return leaders, ratios
