"""From a trace with loops to statements: steps are lowered one by one, values that later ones use stay in registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from linkwise.compiler.ir.graph import CONDITIONS, Graph, Node
from linkwise.compiler.ir.loops import (
    Array,
    Declare,
    Element,
    For,
    IfNegative,
    Place,
    Register,
    Statement,
    Step,
    whole,
)
from linkwise.compiler.ir.program import Dtype
from linkwise.compiler.trace.procedure import Procedure
from linkwise.compiler.trace.repeated import may_repeat
from linkwise.compiler.trace.rolled import Block, Key, OpenStep, Rolled, StraightPart, TracedLoop, tracing
from linkwise.compiler.trace.traced_arrays import Index
from linkwise.errors import TraceError

MANY_ZEROS = 32
"""Zeros that a straight-line part always writes to an array from which a loop does that."""


class Resolved:
    """A trace whose steps are known by themselves: where each node comes from that a step needs.

    Values that later steps use are kept in registers (``OpenStep.kept``); nothing is written that is never read.
    """

    def __init__(self, trace: Rolled, label: str):
        self.trace, self.label = trace, label
        self._remove_unread()
        inputs = [self._inputs(step, list(step.writes.values())) for step in trace.steps]
        for step in reversed(
            trace.steps
        ):  # what is kept for later steps may itself need values of earlier ones
            inputs[step.number] |= self._inputs(step, list(step.kept))
        self.inputs_of_step = inputs
        """For each step {node: where its value is}."""

    def _remove_unread(self) -> None:
        """Nothing is written to memory or registers that are never read."""
        trace = self.trace
        while True:
            read = {memory_of(key) for step in trace.steps for key in step.reads if self._is_used(step, key)}
            read |= {array.name for array in trace.arrays.values() if array.kind == "output"}
            read |= {memory_of(key) for key in self._of_parts("reads")} | trace.tested
            unread = [
                (step, key) for step in trace.steps for key in step.writes if memory_of(key) not in read
            ]
            if not unread:
                return
            for step, key in unread:
                del step.writes[key]
            self.__dict__.pop("_used", None)

    def _of_parts(self, *sides: str) -> list[Key]:
        """What straight-line parts read or write."""
        return [
            key
            for part in self.trace.parts
            for side in sides
            for group in getattr(part, side)
            for key in group
        ]

    def _is_used(self, step: OpenStep, key: Key) -> bool:
        if "_used" not in self.__dict__:
            used: set[int] = set()
            stack = [node for step in self.trace.steps for node in step.writes.values()]
            while stack:
                node = stack.pop()
                if node.index not in used:
                    used.add(node.index)
                    stack.extend(node.args)
            self._used = used
        return step.reads[key].index in self._used

    def _inputs(self, step: OpenStep, outputs: Sequence[Node]) -> dict[Node, Key]:
        """What the outputs of a step need from memory and from earlier steps; those keep it in registers."""
        sources: dict[Node, Key] = {}
        seen: set[int] = set()
        places = {node: key for key, node in step.reads.items()}
        stack = list(outputs)
        while stack:
            node = stack.pop()
            if node.index in seen or node.op == "const":
                continue
            seen.add(node.index)
            if node in places:
                sources[node] = places[node]
                continue
            if node.op in ("phi", "result"):
                raise TraceError(
                    f"{self.label}: while_loop cannot be used in a program that is compiled with loops"
                )
            owner = self.trace.owner(node)
            reaches = owner is not step and owner.number < step.number and _is_around(owner.block, step.block)
            if reaches and node.op not in CONDITIONS:  # registers hold numbers: conditions are computed again
                if node not in owner.kept:
                    owner.kept[node] = self.trace.register()
                sources[node] = owner.kept[node]
            elif node.op == "input":
                raise TraceError(
                    f"{self.label}: a value that a loop computes is used after it or in its next turn; keep it in a "
                    "variable or in an element of an array"
                )
            else:
                stack.extend(node.args)
        return sources


class Finished(Resolved):
    """The statements of a trace, and the operations of all turns."""

    def __init__(self, trace: Rolled, label: str, dtype: Dtype, *, fused: bool = True):
        super().__init__(trace, label)
        self.made = Procedure(dtype, fused=fused)
        self.arrays = self._arrays()
        read = [key for given in self.inputs_of_step for key in given.values()]
        read += self._of_parts("reads", "writes")
        self._registers = {key for key in read if isinstance(key, Register)} | trace.tested
        self._writers = self._counted_writers()
        self._cleared: dict[str, None] = {}  # arrays that are filled with zeros once, before everything else
        self._fills = 0
        body = self._statements(trace.root)
        self.body = [*(self._filled(name, Index(()), self._scalars(name)) for name in self._cleared), *body]
        self.tables = self._tables()
        self.operations = self.made.operations(self.body, self.tables)

    def _arrays(self) -> list[Array]:
        """Inputs, outputs and memory. The first axis of an array is its rows: lanes of one state may have one each."""
        trace = self.trace
        used = {memory_of(key) for step in trace.steps for key in step.writes}
        used |= {memory_of(key) for key in self._of_parts("writes")}
        given = [array for array in trace.arrays.values() if array.kind != "scratch"]
        given.sort(key=lambda array: ("input", "output").index(array.kind))
        memory = [array for array in trace.arrays.values() if array.kind == "scratch" and array.name in used]
        self._columns = {array.name: array.columns for array in memory if array.rows != 1}
        return [*given, *memory]

    def _tables(self) -> dict[str, Sequence[int]]:
        """The tables of whole numbers that places and bounds of loops read."""
        keys = [key for step in self.trace.steps for key in (*step.reads, *step.writes)]
        keys += self._of_parts("reads", "writes")
        indices = {key[1] for key in keys if not isinstance(key, Register)} | set(
            self._bounds(self.trace.root)
        )
        tables = {table for index in indices for table in index.tables}
        return {table.name: table.values for table in sorted(tables, key=lambda table: table.name)}

    def _bounds(self, block: Block) -> Iterator[Index]:
        """Of all loops."""
        for item in block.items:
            if isinstance(item, TracedLoop):
                yield from (item.first, item.stop)
                yield from self._bounds(item.body)

    def _place(self, key: Key) -> Register | Element:
        if isinstance(key, Register):
            return key
        array, place = key
        width = self._columns.get(array)
        if width is None:
            return Element(array, place.whole)
        rows, constant = divmod(place.constant, width)
        ahead = Index(
            tuple((name, factor // width) for name, factor in place.terms if factor % width == 0), rows
        )
        inside = Index(tuple((name, factor) for name, factor in place.terms if factor % width), constant)
        return Element(array, inside.whole, ahead.whole)

    def _statements(self, block: Block) -> list[Statement]:
        body: list[Statement] = []
        for item in block.items:
            if isinstance(item, Register):
                if item in self._registers:
                    body.append(Declare({item: 0.0}))
            elif isinstance(item, TracedLoop):
                inside = self._statements(item.body)
                if item.still is not None:
                    body.append(IfNegative(item.still, inside))
                elif inside:
                    bounds = (item.first.whole, item.stop.whole)
                    alone = item.parallel and item.step == 1
                    made = For(
                        item.name, *bounds, inside, whole(item.step), parallel=alone, side_by_side=alone
                    )
                    made.repeatable = alone and may_repeat(item, self._read_by)
                    body.append(made)
            elif isinstance(item, StraightPart):
                body += self._straight(item)
            elif item.writes or item.kept:
                if item.kept:
                    body.append(Declare(dict.fromkeys(item.kept.values(), 0.0)))
                body.append(self._lowered(item))
        return body

    def _read_by(self, step: OpenStep) -> Iterable[Key]:
        return self.inputs_of_step[step.number].values()

    def _straight(self, part: StraightPart) -> list[Statement]:
        reads, writes = (
            [[self._place(key) for key in group] for group in side] for side in (part.reads, part.writes)
        )
        keys = ([key for group in side for key in group] for side in (part.reads, part.writes))
        with tracing(None):
            step = self.made.step(part.function, reads, writes, apart=_is_apart(*keys))
        return [*self._zeros_in_loops(part, step), step]

    # -- zeros that are always written

    def _zeros_in_loops(self, part: StraightPart, step: Step) -> list[Statement]:
        """Zeros of matrices that are mostly zero are no statements of their own: an array that only this part writes
        is filled once before all loops, another one by a loop before the part. The part then writes what is left."""
        read = {memory_of(key) for group in part.reads for key in group}
        fills: list[Statement] = []
        values = iter(step.writes)
        left: list[tuple[Place, Node]] = []
        for group in part.writes:
            written = [next(values) for _ in group]
            zeros = sum(node.is_plus_zero for _, node in written)
            name = memory_of(group[0]) if group else None
            if zeros >= MANY_ZEROS and name not in read and _are_neighbours(group):
                assert isinstance(name, str)
                assert not isinstance(group[0], Register)
                if self._writers[name] == 1 and self.trace.arrays[name].kind == "scratch":
                    self._cleared[name] = None
                else:
                    fills.append(self._filled(name, group[0][1], len(group)))
                written = [(place, node) for place, node in written if not node.is_plus_zero]
            left += written
        step.writes = left
        return fills

    def _counted_writers(self) -> Counter[Any]:
        """For each array how many steps write it; a group of places that a straight-line part writes counts as one."""
        count: Counter[Any] = Counter()
        for step in self.trace.steps:
            count.update({memory_of(key) for key in step.writes})
        for part in self.trace.parts:
            count.update(memory_of(group[0]) for group in part.writes if group)
        return count

    def _filled(self, array: str, start: Index, count: int) -> For:
        """Zeros in neighbouring places."""
        turn = f"zero{self._fills}"
        self._fills += 1
        place = start + Index(((turn, 1),))
        assert isinstance(place, Index)
        zero = self.made.lowered([Graph().zero], {}, [self._place((array, place))], apart=True)
        return For(turn, whole(0), whole(count), [zero], parallel=True, repeatable=True)

    def _scalars(self, name: str) -> int:
        array = self.trace.arrays[name]
        assert isinstance(array.rows, int)
        return array.rows * array.columns

    def _lowered(self, step: OpenStep) -> Step:
        """The arithmetic of a step, from a graph of its own."""
        graph, label = Graph(), f"s{step.number}"
        given = self.inputs_of_step[step.number]
        outputs = [*step.writes.values(), *step.kept]
        image: dict[int, Node] = {}
        for k, node in enumerate(given):
            image[node.index] = graph.input(label, k)
        for node in nodes_between(outputs, image):
            if node.op == "const":
                image[node.index] = graph.const(node.value)
            else:
                args = tuple(image[a.index] for a in node.args)
                image[node.index] = graph.make(node.op, args, node.value)
        nodes = [image[node.index] for node in outputs]
        reads: dict[tuple[str, int], Place] = {
            (label, k): self._place(key) for k, key in enumerate(given.values())
        }
        places = [*map(self._place, step.writes), *step.kept.values()]
        lowered = self.made.lowered(nodes, reads, places, apart=_is_apart(given.values(), step.writes))
        graph.finish()
        return lowered


def _is_apart(reads: Iterable[Key], writes: Iterable[Key]) -> bool:
    """Whether no place in memory that is written can be one that is read: those with the same terms differ by their
    constants."""
    constants: dict[tuple[str, Any], set[int]] = {}
    terms: dict[str, set[Any]] = {}
    for key in reads:
        if not isinstance(key, Register):
            terms.setdefault(key[0], set()).add(key[1].terms)
            constants.setdefault((key[0], key[1].terms), set()).add(key[1].constant)
    for key in writes:
        if isinstance(key, Register) or key[0] not in terms:
            continue
        array, place = key
        if terms[array] != {place.terms} or place.constant in constants[array, place.terms]:
            return False
    return True


def _are_neighbours(group: Sequence[Key]) -> bool:
    """Whether these places lie one after the other in memory."""
    places = [key[1] for key in group if not isinstance(key, Register)]
    return len(places) == len(group) and all(
        place.terms == places[0].terms and place.constant == places[0].constant + k
        for k, place in enumerate(places)
    )


def _is_around(outer: Block, inner: Block) -> bool:
    return outer is inner or outer in inner.around


def memory_of(key: Key) -> Any:
    return key if isinstance(key, Register) else key[0]


def nodes_between(outputs: Sequence[Node], known: Mapping[int, Node]) -> list[Node]:
    """What the outputs need besides known nodes, arguments first."""
    needed: dict[int, Node] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.index not in needed and node.index not in known:
            needed[node.index] = node
            stack.extend(node.args)
    return [needed[k] for k in sorted(needed)]
