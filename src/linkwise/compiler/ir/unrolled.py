"""A program with loops as straight-line code: every operation that a call executes, in its order, once.

For analyses of all operations (``evidence``). Nothing is folded: operations on constants stay operations, as the loop
executes them. Loops whose number of turns depends on data cannot be written out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.compiler.ir import loops, operations
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.interpret import Lane
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.errors import LinkwiseError

MOST = 200_000
"""Operations of a program, at most."""


class UnrollError(LinkwiseError, ValueError):
    """A program cannot be written out; the message says why."""


def unrolled(nest: loops.Nest, numbers: Mapping[str, int] | None = None) -> Program:
    """The operations of one call.

    Args:
        nest: with loops.
        numbers: whole numbers that a call gives, such as the number of time steps.

    Raises:
        UnrollError: a number of turns depends on data or was not given, or there are too many operations.
    """
    given = dict(numbers or {})
    missing = [name for name in nest.numbers if name not in given]
    if missing:
        raise UnrollError(f"{nest.name}: {', '.join(missing)} must be given: it is the length of a loop")
    if nest.lanes != 1:
        raise UnrollError(f"{nest.name}: several lanes work on one state")
    graph = Graph()
    memory: dict[str, np.ndarray] = {}
    inputs: list[tuple[str, int]] = []
    for array in nest.arrays:
        size = int(given.get(str(array.rows), array.rows)) * array.columns
        if array.kind == "constant":
            values = np.ravel(np.asarray(nest.constants[array.name], dtype=float))
            held = [graph.const(float(x)) for x in values]
        elif array.kind in ("input", "both"):
            inputs.append((array.title, size))
            held = graph.inputs(array.title, size)
        else:
            held = [graph.const(float("nan"))] * size
        memory[array.name] = np.empty(len(held), dtype=object)
        memory[array.name][:] = held
    lane = _Written(nest, graph, memory, given)
    lane.run(nest.body)
    written = [array for array in nest.arrays if array.kind in ("output", "both") and array.columns]
    shapes = [(a.title, (int(given.get(str(a.rows), a.rows)), a.columns)) for a in written]
    values = tuple(tuple(memory[a.name]) for a in written)
    flat = [node for nodes in values for node in nodes]
    return Program(
        nest.name,
        tuple(inputs),
        tuple((title, shape if shape[0] > 1 else shape[1:]) for title, shape in shapes),
        values,
        list(lane.order),
        nest.dtype,  # type: ignore[arg-type]
        operations.count(flat),
        values,
        nest.fused,
    )


class _Written(Lane):
    """Executes statements on nodes in place of numbers."""

    def __init__(self, nest: loops.Nest, graph: Graph, memory: dict[str, np.ndarray], names: dict[str, int]):
        super().__init__(nest, graph.const, memory, names, 0)
        self.graph = graph
        self.order: dict[Node, None] = {}

    def run(self, body: Sequence[loops.Statement]) -> None:
        for statement in body:
            match statement:
                case loops.Step():
                    self.write(statement, self.step(statement))
                case loops.For():
                    bounds = (statement.first, statement.stop, statement.step)
                    for k in range(*map(self.whole, bounds)):
                        self.names[statement.name] = k
                        self.run(statement.body)
                case loops.If():
                    self.run(statement.then if self.whole(statement.test) else statement.otherwise)
                case loops.IfNegative():
                    # where the register is not negative, ``then`` leaves everything as it is
                    self.run(statement.then)
                case loops.Declare():
                    self.declare(statement)
                case loops.Let() | loops.Change():
                    self.names[statement.name] = self.whole(statement.value)
                case loops.Join() | loops.Barrier():
                    pass  # one lane

    def loop(self, region: LoopRegion) -> None:
        raise UnrollError(f"{self.nest.name}: the number of turns of a loop depends on data")

    def evaluate(self, node: Node) -> Any:
        args = tuple(self.value(a) for a in node.args)
        if not all(isinstance(a, Node) for a in args):
            raise UnrollError(f"{self.nest.name}: {node.op} on whole numbers")
        return self._made(node.op, args, node.value)

    def write(self, step: loops.Step, values: Sequence[Any]) -> None:
        if step.adds:
            values = [
                self._made("add", (self.held(place), value), None)
                for (place, _), value in zip(step.writes, values, strict=True)
            ]
        for (place, _), value in zip(step.writes, values, strict=True):
            if isinstance(place, loops.Register):
                self.registers[place] = value
            elif isinstance(place, loops.Whole):
                raise UnrollError(f"{self.nest.name}: a whole number depends on data")
            else:
                self.inputs[place.array][self.at(place)] = value

    def _made(self, op: str, args: tuple[Node, ...], value: Any) -> Node:
        node = self.graph.make(op, args, value)
        self.order.setdefault(node)
        if len(self.order) > MOST:
            raise UnrollError(f"{self.nest.name}: more than {MOST} operations")
        return node
