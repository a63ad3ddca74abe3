"""From a trace with loops to statements: steps are lowered one by one, values that later ones use stay in registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from linkwise.compiler.graph import CONDITIONS, Graph, Node
from linkwise.compiler.loops import Array, Declare, Element, For, Register, Statement, Step, Whole, whole
from linkwise.compiler.operations import Operations
from linkwise.compiler.program import Dtype, lower
from linkwise.compiler.rolled import Block, Key, OpenStep, Rolled, TracedLoop
from linkwise.compiler.traced_arrays import TRIANGLE, index
from linkwise.errors import TraceError

MEMORY = "tables"


class Finished:
    """The statements of a trace, and the operations of all turns."""

    def __init__(self, trace: Rolled, label: str, dtype: Dtype, *, fused: bool = True):
        self.trace, self.label, self.fused = trace, label, fused
        self.dtype: Dtype = dtype
        self.costs: dict[int, Operations] = {}
        self._remove_unread()
        inputs = [self._inputs(step, list(step.writes.values())) for step in trace.steps]
        for step in reversed(
            trace.steps
        ):  # what is kept for later steps may itself need values of earlier ones
            inputs[step.number] |= self._inputs(step, list(step.kept))
        self._of_step = inputs
        self.arrays = self._arrays()
        self._registers = {
            place for given in inputs for place in given.values() if isinstance(place, Register)
        }
        self.body = self._statements(trace.root)
        self.tables = self._tables()
        self.operations = Operations(**self._counted(self.body, {}))  # type: ignore[arg-type]

    def _remove_unread(self) -> None:
        """Nothing is written to memory or registers that are never read."""
        trace = self.trace
        while True:
            read = {_memory(key) for step in trace.steps for key in step.reads if self._is_used(step, key)}
            read |= {array.name for array in trace.arrays.values() if array.kind == "output"}
            unread = [(step, key) for step in trace.steps for key in step.writes if _memory(key) not in read]
            if not unread:
                return
            for step, key in unread:
                del step.writes[key]
            self.__dict__.pop("_used", None)

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
        found: dict[Node, Key] = {}
        seen: set[int] = set()
        places = {node: key for key, node in step.reads.items()}
        stack = list(outputs)
        while stack:
            node = stack.pop()
            if node.index in seen or node.op == "const":
                continue
            seen.add(node.index)
            if node in places:
                found[node] = places[node]
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
                found[node] = owner.kept[node]
            elif node.op == "input":
                raise TraceError(
                    f"{self.label}: a value that a loop computes is used after it or in its next turn; keep it in a "
                    "variable or in an element of an array"
                )
            else:
                stack.extend(node.args)
        return found

    def _arrays(self) -> list[Array]:
        """Inputs, outputs and one piece of memory, in which the arrays of the function lie one after the other."""
        trace, used = self.trace, {_memory(key) for step in self.trace.steps for key in step.writes}
        self._starts: dict[str, int] = {}
        total = 0
        for array in trace.arrays.values():
            if array.kind == "scratch" and array.name in used:
                self._starts[array.name] = total
                total += array.columns
        given = [array for array in trace.arrays.values() if array.kind != "scratch"]
        given.sort(key=lambda array: ("input", "output").index(array.kind))
        return [*given, *([Array(MEMORY, "scratch", total)] if total else [])]

    def _tables(self) -> dict[str, list[int]]:
        """The table of triangles, as long as the largest loop that reads it."""
        keys = [key for step in self.trace.steps for key in (*step.reads, *step.writes)]
        loops = {
            name.split()[1]
            for key in keys
            if not isinstance(key, Register)
            for name, _ in key[1].terms
            if name.startswith(TRIANGLE)
        }
        most = max((self.trace.largest(loop) for loop in loops), default=-1)
        return {TRIANGLE: [j * (j - 1) // 2 for j in range(most + 1)]} if loops else {}

    def _place(self, key: Key) -> Register | Element:
        if isinstance(key, Register):
            return key
        array, place = key
        if array in self._starts:
            return Element(MEMORY, index(place + self._starts[array]).whole)
        return Element(array, place.whole)

    def _statements(self, block: Block) -> list[Statement]:
        body: list[Statement] = []
        for item in block.items:
            if isinstance(item, Register):
                if item in self._registers:
                    body.append(Declare({item: 0.0}))
            elif isinstance(item, TracedLoop):
                inside = self._statements(item.body)
                if inside:
                    bounds = (item.first.whole, item.stop.whole)
                    alone = item.parallel and item.step == 1
                    body.append(
                        For(item.name, *bounds, inside, whole(item.step), parallel=alone, repeatable=alone)
                    )
            elif item.writes or item.kept:
                if item.kept:
                    body.append(Declare(dict.fromkeys(item.kept.values(), 0.0)))
                body.append(self._lowered(item))
        return body

    def _lowered(self, step: OpenStep) -> Step:
        """The arithmetic of a step, from a graph of its own."""
        graph, label = Graph(), f"s{step.number}"
        given = self._of_step[step.number]
        outputs = [*step.writes.values(), *step.kept]
        image: dict[int, Node] = {}
        for k, node in enumerate(given):
            image[node.index] = graph.input(label, k)
        for node in _ordered(outputs, image):
            if node.op == "const":
                image[node.index] = graph.const(node.value)
            else:
                args = tuple(image[a.index] for a in node.args)
                image[node.index] = graph.make(node.op, args, node.value)
        nodes = [image[node.index] for node in outputs]
        made = lower(
            {"out": ((len(nodes),), nodes)},
            {label: len(given)},
            name=label,
            dtype=self.dtype,
            fused=self.fused,
        )
        reads = {(label, k): self._place(key) for k, key in enumerate(given.values())}
        places = [*map(self._place, step.writes), *step.kept.values()]
        read = {_memory(key) for key in given.values()}
        apart = not any(_memory(key) in read for key in step.writes)
        lowered = Step(reads, made.body, list(zip(places, made.values[0], strict=True)), apart=apart)
        self.costs[id(lowered)] = made.operations
        return lowered

    def _counted(self, body: Sequence[Statement], names: dict[str, int]) -> Counter[str]:
        total: Counter[str] = Counter()
        for statement in body:
            if isinstance(statement, Step):
                cost = self.costs[id(statement)]
                total += Counter(
                    cost.counts() | {"trigonometric": cost.trigonometric, "square_roots": cost.square_roots}
                )
            elif isinstance(statement, For):
                turns = range(
                    *(x.value(names, self.tables) for x in (statement.first, statement.stop, statement.step))
                )
                if turns and not _depends(statement.body, statement.name):
                    once = self._counted(statement.body, {**names, statement.name: turns[0]})
                    total += Counter({key: len(turns) * count for key, count in once.items()})
                else:
                    for turn in turns:
                        total += self._counted(statement.body, {**names, statement.name: turn})
        return total


def _depends(body: Sequence[Statement], loop: str) -> bool:
    """Whether the number of turns of loops inside depends on this one."""
    for statement in body:
        if isinstance(statement, For):
            if _mentions(statement.first, loop) or _mentions(statement.stop, loop):
                return True
            if _depends(statement.body, loop):
                return True
    return False


def _mentions(value: Whole, loop: str) -> bool:
    if value.op == "name":
        return value.args[0] == loop
    return any(isinstance(a, Whole) and _mentions(a, loop) for a in value.args)


def _is_around(outer: Block, inner: Block) -> bool:
    return outer is inner or outer in inner.around


def _memory(key: Key) -> Any:
    return key if isinstance(key, Register) else key[0]


def _ordered(outputs: Sequence[Node], known: Mapping[int, Node]) -> list[Node]:
    """What the outputs need besides known nodes, arguments first."""
    found: dict[int, Node] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.index not in found and node.index not in known:
            found[node.index] = node
            stack.extend(node.args)
    return [found[k] for k in sorted(found)]
