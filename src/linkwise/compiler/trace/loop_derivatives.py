"""Derivatives of functions with loops, as functions with loops.

The trace of a function (``rolled``) is a tree of loops around steps, each of which reads places in memory and writes
others. Both directions repeat this tree in the language itself, so that the result is traced like any other function:
short loops are unrolled, every target renders it, and it has derivatives of its own.

- **Forward**: every place that depends on the inputs has a tangent beside it; a step computes values and tangents.
- **Reverse**: the tree is run once, then backwards, with an adjoint for every such place. Before a step overwrites a
  value that the way back needs, it stores the old one; the way back restores it, so that each step finds in memory what
  it had found on its first way. A value is needed if the derivatives of some step depend on it and it is read before
  (or in a turn before) it is overwritten: sums of products store nothing, a state of ``loop`` one copy a turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.compiler.ir.derivative import differentiable_arguments, remade, reverse, tangents
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.loops import Register
from linkwise.compiler.ir.walks import reachable
from linkwise.compiler.trace.rolled import Key, OpenStep, StraightPart, TracedLoop, bounds_of, tracing
from linkwise.compiler.trace.rolled_statements import Resolved, memory_of, nodes_between
from linkwise.compiler.trace.traced_arrays import Index, Stored
from linkwise.core.once import once
from linkwise.errors import TraceError
from linkwise.language import current_tracer, empty, span, variable, whole_numbers, zeros

Memory = Register | str
"""A register, or the name of an array."""


# -- the tree ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Arithmetic:
    """A step in a graph of its own: ``values[j]`` for ``writes[j]``, of ``given[k]`` from ``reads[k]``."""

    reads: list[Key]
    writes: list[Key]
    given: list[Node]
    values: list[Node]
    loops: tuple[TracedLoop, ...]
    number: int
    read_slopes: list[int] = field(default_factory=list[int])
    """Numbers of the reads that have tangents and adjoints."""
    written_slopes: list[int] = field(default_factory=list[int])

    @once
    def dependencies(self) -> list[set[int]]:
        """For each value the numbers of the reads that it depends on by its derivative."""
        masks = {node.index: 1 << k for k, node in enumerate(self.given)}
        for node in reachable(self.values):
            if node.index not in masks:
                masks[node.index] = 0
                for a in differentiable_arguments(node):
                    masks[node.index] |= masks[a.index]
        numbers = range(len(self.given))
        return [{k for k in numbers if masks[value.index] >> k & 1} for value in self.values]

    @once
    def tangents(self) -> list[Node]:
        """Of the values with slopes, by inputs ("t", k)."""
        graph = self._graph
        seeds = {self.given[k]: graph.input("t", k) for k in self.read_slopes}
        values = [self.values[j] for j in self.written_slopes]
        return tangents(values, seeds) if values else []

    @once
    def adjoints(self) -> list[Node]:
        """What is added to the adjoints of the reads with slopes, by inputs ("b", j)."""
        graph = self._graph
        total = graph.zero
        for j in self.written_slopes:
            total = graph.add(total, graph.mul(graph.input("b", j), self.values[j]))
        (row,) = reverse([total], [self.given[k] for k in self.read_slopes])
        return row

    @once
    def needed(self) -> list[int]:
        """Numbers of the reads whose values the adjoints depend on."""
        seen = {node.index for node in reachable(self.adjoints)}
        return [k for k, node in enumerate(self.given) if node.index in seen]

    @property
    def _graph(self) -> Graph:
        return self.values[0].graph


@dataclass(eq=False)
class Body:
    """What is done in a turn of a loop, or in the whole function."""

    loops: tuple[TracedLoop, ...]
    registers: list[Register] = field(default_factory=list[Register])
    items: list[Arithmetic | tuple[TracedLoop, Body]] = field(
        default_factory=list["Arithmetic | tuple[TracedLoop, Body]"]
    )


class Tree:
    """The loops and steps of a trace, and which memory has slopes: it depends on inputs and outputs depend on it.

    Args:
        resolved: the trace.
        by: inputs that the derivatives are taken by.
    """

    def __init__(self, resolved: Resolved, by: Sequence[str]):
        self.trace = resolved.trace
        self._inputs = resolved.inputs_of_step
        self.steps: list[Arithmetic] = []
        self._depth: dict[Memory, int] = {}  # loops around the declaration of a register
        self.body = self._body(self.trace.root, ())
        self.outputs = [array for array in self.trace.arrays.values() if array.kind == "output"]
        self.slopes = self._dependent(by) & self._useful()
        for step in self.steps:
            step.read_slopes = [k for k, key in enumerate(step.reads) if memory_of(key) in self.slopes]
            step.written_slopes = [j for j, key in enumerate(step.writes) if memory_of(key) in self.slopes]

    @property
    def has_loops(self) -> bool:
        return any(step.loops for step in self.steps)

    def size(self, array: str) -> int:
        rows = self.trace.arrays[array].rows
        assert isinstance(rows, int)
        return rows * self.trace.arrays[array].columns

    def _body(self, block: Any, loops: tuple[TracedLoop, ...]) -> Body:
        body = Body(loops)
        for item in block.items:
            if isinstance(item, Register):
                self._declared(body, item)
            elif isinstance(item, TracedLoop):
                body.items.append((item, self._body(item.body, (*loops, item))))
            elif isinstance(item, StraightPart):
                body.items.append(self._part(item, loops))
            elif item.writes or item.kept:
                for register in item.kept.values():
                    self._declared(body, register)
                body.items.append(self._step(item, loops))
        return body

    def _declared(self, body: Body, register: Register) -> None:
        body.registers.append(register)
        self._depth[register] = len(body.loops)

    def _step(self, step: OpenStep, loops: tuple[TracedLoop, ...]) -> Arithmetic:
        graph, needs = Graph(), self._inputs[step.number]
        given = graph.inputs("x", len(needs))
        image = {node.index: new for node, new in zip(needs, given, strict=True)}
        values = images([*step.writes.values(), *step.kept], image, graph)
        return self._added([*needs.values()], [*step.writes, *step.kept.values()], given, values, loops)

    def _part(self, part: StraightPart, loops: tuple[TracedLoop, ...]) -> Arithmetic:
        reads, writes = ([key for group in side for key in group] for side in (part.reads, part.writes))
        graph = Graph()
        given = graph.inputs("x", len(reads))
        supply = iter(given)
        with tracing(None):
            groups = part.function(*([next(supply) for _ in group] for group in part.reads))
        return self._added(reads, writes, given, [graph.lift(x) for group in groups for x in group], loops)

    def _added(self, reads: Any, writes: Any, given: Any, values: Any, loops: Any) -> Arithmetic:
        if any(node.op == "like" for node in reachable(values)):
            raise TraceError("a value with the derivative of another one has no derivative inside a loop")
        self.steps.append(Arithmetic(reads, writes, given, values, loops, len(self.steps)))
        return self.steps[-1]

    # -- which memory has slopes

    def _dependent(self, by: Sequence[str]) -> set[Memory]:
        """Memory that depends on these inputs."""
        known: set[Memory] = set(by)
        before = -1
        while before != len(known):
            before = len(known)
            for step in self.steps:
                for key, reads in zip(step.writes, step.dependencies, strict=True):
                    if any(memory_of(step.reads[k]) in known for k in reads):
                        known.add(memory_of(key))
        return known

    def _useful(self) -> set[Memory]:
        """Memory that outputs depend on."""
        known: set[Memory] = {array.name for array in self.outputs}
        before = -1
        while before != len(known):
            before = len(known)
            for step in reversed(self.steps):
                for key, reads in zip(step.writes, step.dependencies, strict=True):
                    if memory_of(key) in known:
                        known |= {memory_of(step.reads[k]) for k in reads}
        return known

    # -- what the way back needs

    @once
    def needed(self) -> dict[Memory, list[Arithmetic]]:
        """For each memory the steps that read a value of it which their derivatives depend on."""
        steps: dict[Memory, list[Arithmetic]] = {}
        for step in self.steps:
            for memory in {memory_of(step.reads[k]) for k in step.needed} if step.written_slopes else ():
                steps.setdefault(memory, []).append(step)
        return steps

    def is_stored(self, step: Arithmetic, key: Key) -> bool:
        """Whether the value that a step overwrites may be needed on the way back: it is read before, or both are in a
        loop of which an earlier turn may read it. A register is another one in each turn of the loop that declares it.
        """
        depth = self._depth.get(memory_of(key), 0)
        return any(
            other.number <= step.number
            or step.loops[depth : depth + 1] == other.loops[depth : depth + 1] != ()
            for other in self.needed.get(memory_of(key), ())
        )


def images(outputs: Sequence[Node], image: dict[int, Node], graph: Graph) -> list[Node]:
    """The outputs in another graph; ``image`` has the nodes that are known there, and gets all others."""
    for node in nodes_between(outputs, image):
        if node.op == "const":
            image[node.index] = graph.const(node.value)
        else:
            image[node.index] = remade(graph, node, tuple(image[a.index] for a in node.args))
    return [image[node.index] for node in outputs]


# -- the tree, repeated in the language -------------------------------------------------------------------------------


class Repetition:
    """The loops and steps once more, while another function is traced.

    Args:
        tree: what is repeated.
        values: the inputs by name, each as one row of numbers.
    """

    def __init__(self, tree: Tree, values: Mapping[str, Any]):
        self.tree = tree
        self.values: dict[Memory, Any] = {**values}
        for array in tree.trace.arrays.values():
            if array.kind != "input":
                self.values[array.name] = empty(tree.size(array.name))
        self.slopes: dict[Memory, Any] = {}
        self.turns: dict[str, Any] = {}  # the number of the turn of each loop

    # -- forward

    def forward(self, directions: Mapping[str, Any]) -> dict[str, Any]:
        """The tangent of each output, for those of inputs."""
        self._make_slopes(directions)
        self._forward(self.tree.body)
        return {array.title: self.slopes.get(array.name) for array in self.tree.outputs}

    def _forward(self, body: Body) -> None:
        for register in body.registers:
            self.values[register] = variable(0.0)
            if register in self.tree.slopes:
                self.slopes[register] = variable(0.0)
        for item in body.items:
            if not isinstance(item, Arithmetic):
                for _ in self._loop(item[0], parallel=item[0].parallel):
                    self._forward(item[1])
                continue
            image = self._given(item, range(len(item.reads)))
            for k in item.read_slopes:
                image[_input(item, "t", k)] = self._read(self.slopes, item.reads[k])
            results = images([*item.values, *item.tangents], image, self._graph)
            count = len(item.values)
            for key, node in zip(item.writes, results[:count], strict=True):
                self._write(self.values, key, node)
            for j, node in zip(item.written_slopes, results[count:], strict=True):
                self._write(self.slopes, item.writes[j], node)

    # -- reverse

    def reverse(self, weights: Mapping[str, Any]) -> None:
        """The adjoints of inputs in ``slopes``, for those of outputs."""
        by_name = {array.name: weights[array.title] for array in self.tree.outputs}
        self._stores: dict[Any, Any] = {}
        for step in self.tree.steps:
            for j, key in enumerate(step.writes):
                if self.tree.is_stored(step, key):
                    self._stores[step, j] = empty(_turns(step.loops))
        self._make_ends(self.tree.body)
        self._first_way(self.tree.body)
        self._make_slopes({})
        for name, weight in by_name.items():
            if name in self.slopes:
                self.slopes[name][:] = weight
        self._way_back(self.tree.body)

    def _make_ends(self, body: Body) -> None:
        """Memory for what registers hold at the end of each turn that declares them, where the way back needs it."""
        for register in body.registers:
            if register in self.tree.needed:
                self._stores[register] = empty(_turns(body.loops))
        for item in body.items:
            if not isinstance(item, Arithmetic):
                self._make_ends(item[1])

    def _first_way(self, body: Body) -> None:
        for register in body.registers:
            self.values[register] = variable(0.0)
        for item in body.items:
            if not isinstance(item, Arithmetic):
                for _ in self._loop(item[0]):
                    self._first_way(item[1])
                continue
            values = images(item.values, self._given(item, range(len(item.reads))), self._graph)
            for j, key in enumerate(item.writes):
                if (item, j) in self._stores:
                    self._stores[item, j][self._turn(item.loops)] = self._read(self.values, key)
            for key, node in zip(item.writes, values, strict=True):
                self._write(self.values, key, node)
        for register in body.registers:
            if register in self._stores:
                self._stores[register][self._turn(body.loops)] = self.values[register].value

    def _way_back(self, body: Body) -> None:
        for register in body.registers:
            if register in self._stores:
                self.values[register] = variable(self._stores[register][self._turn(body.loops)])
            if register in self.tree.slopes:
                self.slopes[register] = variable(0.0)
        for item in reversed(body.items):
            if not isinstance(item, Arithmetic):
                for _ in self._loop(item[0], back=True):
                    self._way_back(item[1])
                continue
            for j, key in enumerate(item.writes):
                if (item, j) in self._stores:
                    self._write(self.values, key, self._stores[item, j][self._turn(item.loops)])
            if not item.written_slopes:
                continue
            image = self._given(item, item.needed)
            for j in item.written_slopes:
                image[_input(item, "b", j)] = self._read(self.slopes, item.writes[j])
            added = images(item.adjoints, image, self._graph)
            for j in item.written_slopes:
                self._write(self.slopes, item.writes[j], 0.0)
            for k, node in zip(item.read_slopes, added, strict=True):
                if node is not self._graph.zero:
                    self._write(self.slopes, item.reads[k], self._read(self.slopes, item.reads[k]) + node)

    # -- places and loops

    @property
    def _graph(self) -> Graph:
        tracer: Any = current_tracer.get()
        return tracer.graph

    def _make_slopes(self, given: Mapping[str, Any]) -> None:
        """Slopes of arrays: those that are given, zeros for others."""
        for memory in self.tree.trace.arrays:
            if memory in self.tree.slopes:
                self.slopes[memory] = given[memory] if memory in given else zeros(self.tree.size(memory))

    def _given(self, step: Arithmetic, numbers: Iterable[int]) -> dict[int, Node]:
        return {step.given[k].index: self._read(self.values, step.reads[k]) for k in numbers}

    def _read(self, of: Mapping[Memory, Any], key: Key) -> Node:
        held = of[memory_of(key)]
        return self._graph.lift(held.value if isinstance(key, Register) else held[self._place(key[1])])

    def _write(self, to: Mapping[Memory, Any], key: Key, value: Any) -> None:
        if isinstance(key, Register):
            to[key].value = value
        else:
            to[key[0]][self._place(key[1])] = value

    def _place(self, place: Index) -> Any:
        total: Any = place.constant
        for key, factor in place.terms:
            if isinstance(key, str):
                total = total + factor * self.turns[key]
            else:
                total = total + factor * whole_numbers(key.table.values)[self._place(key.place)]
        return total

    def _loop(self, loop: TracedLoop, *, back: bool = False, parallel: bool = False) -> Iterator[None]:
        first, stop, step = self._place(loop.first), self._place(loop.stop), loop.step
        if back:
            first, stop, step = stop - step, first - step, -step
        tracer: Any = current_tracer.get()
        site = ((f"{loop.name}{' back' if back else ''}", 0), *loop.site)
        for k in tracer.loop(first, stop, step, parallel, site):
            self.turns[loop.name] = k
            yield

    def _turn(self, loops: tuple[TracedLoop, ...]) -> Any:
        """The place of this turn of loops in their memory."""
        place: Any = 0
        for loop, (low, count) in zip(loops, _extents(loops), strict=True):
            place = place * count + (self.turns[loop.name] - low)
        return place


def _input(step: Arithmetic, name: str, k: int) -> int:
    return step.given[0].graph.input(name, k).index if step.given else -1


def _extents(loops: tuple[TracedLoop, ...]) -> list[tuple[int, int]]:
    """The lowest number of a turn of each loop, and how many there can be."""
    ranges: dict[str, tuple[int, int]] = {}
    for loop in loops:
        ends = (*bounds_of(loop.first, ranges), *bounds_of(loop.stop, ranges))
        ranges[loop.name] = min(ends), max(ends)
    return [(low, high - low + 1) for low, high in ranges.values()]


def _turns(loops: tuple[TracedLoop, ...]) -> int:
    """How many turns there are of loops in each other, at most."""
    return math.prod(turns for _, turns in _extents(loops))


# -- functions in the language ----------------------------------------------------------------------------------------


def tangents_of_outputs(
    tree: Tree, values: Mapping[str, Any], directions: Mapping[str, Any]
) -> dict[str, Any]:
    """How each output changes, as a row of numbers.

    Args:
        tree: of the function.
        values: its inputs.
        directions: how inputs change, for those that do.
    """
    made = Repetition(tree, values).forward(directions)
    return {
        array.title: zeros(tree.size(array.name)) if made[array.title] is None else made[array.title]
        for array in tree.outputs
    }


def adjoints_of_inputs(tree: Tree, values: Mapping[str, Any], weights: Mapping[str, Any]) -> dict[str, Any]:
    """The gradient of Σ weight · output by each input, as a row of numbers.

    Args:
        tree: of the function.
        values: its inputs.
        weights: of all outputs.
    """
    made = Repetition(tree, values)
    made.reverse(weights)
    return {name: made.slopes[name] if name in made.slopes else zeros(tree.size(name)) for name in values}


def jacobians(
    tree: Tree, values: Mapping[str, Any], by: str, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """The derivative of each output by one input: a turn for each number of the input, or for each of an output.

    Args:
        tree: of the function.
        values: its inputs.
        by: the input.
        shapes: of the derivatives, by the names of outputs.
    """
    size, rows = tree.size(by), sum(tree.size(array.name) for array in tree.outputs)
    outputs = {title: empty(*shape) for title, shape in shapes.items()}
    if size <= REVERSE_COST * rows:
        for column in span(size):
            direction = zeros(size)
            direction[column] = 1.0
            rates = tangents_of_outputs(tree, values, {by: direction})
            for title, part in outputs.items():
                _set_column(part, column, rates[title], 0)
        return outputs
    for title, part in outputs.items():
        _set_rows(part, title, 0, tree, values, by)
    return outputs


REVERSE_COST = 2
"""About how many passes forward cost as much as one back."""


def _set_rows(part: Any, title: str, place: Any, tree: Tree, values: Mapping[str, Any], by: str) -> None:
    """The gradients of numbers of an output, from the one at a place on."""
    if len(part.shape) > 1:
        inside = math.prod(part.shape[1:-1])
        for i in span(part.shape[0]):
            _set_rows(part[i], title, place + i * inside, tree, values, by)
        return
    weights = {array.title: zeros(tree.size(array.name)) for array in tree.outputs}
    weights[title][place] = 1.0
    part[:] = adjoints_of_inputs(tree, values, weights)[by]


def _set_column(part: Any, column: Any, values: Any, start: Any) -> None:
    """Element (…, column) of an array from the numbers of a row."""
    if len(part.shape) == 1:
        part[column] = values[start]
        return
    inside = math.prod(part.shape[1:-1])
    for i in span(part.shape[0]):
        _set_column(part[i], column, values, start + i * inside)


def as_shape(values: Any, shape: tuple[int, ...]) -> Any:
    """A row of numbers as an array of this shape; one that has it already as it is."""
    if tuple(values.shape) == shape:
        return values
    if isinstance(values, Stored):
        return Stored(values.tracer, values.array, shape, values.start)
    return values.reshape(shape)
