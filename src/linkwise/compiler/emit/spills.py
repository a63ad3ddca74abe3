"""Values whose next use is far are put on the stack before LLVM sees them.

LLVM's choice of registers takes most of its time where many values are alive at once. In a long body the order of
operations is known here, and with it every next use: of the values that do not fit in the registers, the one that is
used last goes to the stack (Belady's rule) and is read again just before it is needed. What can be loaded again from
where it came is not stored. Changes of sign are written where they are used, as part of the operations there.

The operations and their order stay the same, and so do the bits. ``lanes.without_slots`` takes all of it out of a text
again: code that is compiled quickly chooses its registers without looking at more than a few operations.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from linkwise.compiler.emit.arithmetic import holder
from linkwise.compiler.emit.memory import Output
from linkwise.compiler.ir.graph import CONDITIONS, WORDS, Node
from linkwise.compiler.ir.loops import Element, Nest, Step, statements
from linkwise.compiler.ir.schedule import Body, LoopRegion, scheduled
from linkwise.compiler.runtime import host

if TYPE_CHECKING:
    from linkwise.compiler.emit.llvm import Renderer

LONG = 400  # items of a body from which values go to the stack
SHARE = 13 / 16  # of the registers; the others are for constants, and for operations that LLVM exchanges
_NO_REALS = CONDITIONS | WORDS

Key = Node | tuple[str, int]
"""A value: the node that computes it, or the name and place of a scalar input."""


class Spills:
    """Which values of one body are in registers, while it is written."""

    def __init__(self, to: Renderer, order: Body, outputs: Iterable[Output], last: Iterable[Node]):
        """``outputs`` are stored when they are known; ``last`` nodes are used after the end of the order."""
        self.to = to
        self.outer: Spills | None = None
        self.most = int(SHARE * host.vector_registers())
        reads = to.reads
        self.places = {place: value for value, place in reads.items() if isinstance(place, Element)}
        self.uses: dict[Key, list[int]] = {}  # places in the order, the next one last
        self.names: dict[Key, str] = {}
        self.here: dict[Key, int] = {}  # values in registers, with their next use
        self.slots: dict[Key, str] = {}  # values on the stack
        self.pinned: dict[Key, str] = {}  # those on the stack that bodies around this one put there
        self._farthest: list[tuple[int, int, Key]] = []
        self._touched: dict[Key, None] = {}  # in order, so that one program always gives one text
        self._place = 0  # of the item that is written
        self._signs: dict[Node, tuple[str, str]] = {}
        self._count = 0
        self._find_uses(order, outputs, last)

    def _find_uses(self, order: Body, outputs: Iterable[Output], last: Iterable[Node]) -> None:
        uses, key = self.uses, self._key
        known: dict[Node, int] = {}  # where nodes are computed
        for place, item in enumerate(order):
            if isinstance(item, LoopRegion):
                known.update(dict.fromkeys(item.loop.phi, place))
            else:
                known[item] = place
                if item.op == "neg":
                    continue
            for node in _operands(item):
                value = key(node)
                if value is not None:
                    listed = uses.setdefault(value, [])
                    if not listed or listed[-1] != place:
                        listed.append(place)
        for output in outputs:
            ready = max((known.get(holder(node), -1) for node in output.nodes), default=-1)
            for node in output.nodes:
                if (value := key(node)) is not None:
                    insort(uses.setdefault(value, []), ready)
        for node in last:
            if (value := key(node)) is not None:
                uses.setdefault(value, []).append(len(order))
        for listed in uses.values():
            listed.reverse()

    def _key(self, node: Node) -> Key | None:
        while node.op == "neg":
            node = node.args[0]
        if node.op == "input":
            return node.value
        if node.op == "const" or node.op in _NO_REALS:
            return None
        return holder(node)

    def operand(self, key: Key) -> str | None:
        """The name of a value, read from the stack where it is there; None where it was never in a register here."""
        if key not in self.here:
            slot = self.slots.get(key) or self.pinned.get(key)
            if slot is None:
                return None
            self.names[key] = self._read(key, slot)
            self.here[key] = -1
        self._touched[key] = None
        return self.names[key]

    def _read(self, key: Key, slot: str) -> str:
        return self.to.writer.read_slot(self.to.lanes.real, slot, self._first_name(key))

    def _first_name(self, key: Key) -> str:
        inner: Spills | None = self
        while inner is not None:
            if key in inner.names:
                return inner.names[key]
            inner = inner.outer
        raise AssertionError(key)

    def negated(self, node: Node) -> str:
        """The value of a change of sign, which is written for every register that its operand is in."""
        operand = self.to.operand(node.args[0])
        known = self._signs.get(node)
        if known is None or known[0] != operand:
            known = self._signs[node] = operand, self.to.written("neg", None, [operand])
        return known[1]

    def loaded(self, place: Element, name: str) -> None:
        """An input has been loaded."""
        value = self.places.get(place)
        if value is not None and not self.to.nest.array(place.array).words:
            self.arrived(value, name)

    def arrived(self, key: Key, name: str) -> None:
        """A value is in a register."""
        uses = self.uses.get(key)
        if uses and key not in self.here:
            self.names[key] = name
            self._next(key, uses[-1])

    def _next(self, key: Key, use: int) -> None:
        self.here[key] = use
        self._count += 1
        heappush(self._farthest, (-use, self._count, key))

    def advance(self, place: int, item: Node | LoopRegion) -> None:
        """An item has been written: forget what is no longer needed, and make room."""
        if isinstance(item, LoopRegion):
            self._signs.clear()  # what was written in a loop does not exist after it
            for phi in item.loop.phi:
                self._result(phi, place)
            keys = map(self._key, _operands(item))
            self._touched |= {
                key: None for key in keys if key is not None and (key in self.here or key in self.slots)
            }
        elif item.op != "neg" and item.op not in _NO_REALS:
            self._result(item, place)
        for key in self._touched:
            uses = self.uses.get(key, [])
            while uses and uses[-1] <= place:
                uses.pop()
            if uses:
                if key in self.here:
                    self._next(key, uses[-1])
                continue
            self.here.pop(key, None)
            if key in self.slots:
                self.to.writer.free(self.to.lanes.real, self.slots.pop(key))
        self._touched.clear()
        self._place = place + 1
        while len(self.here) > self.most:
            use, _, key = heappop(self._farthest)
            if self.here.get(key) == -use:
                self._leave(key)

    def _result(self, node: Node, place: int) -> None:
        uses = self.uses.get(node, [])
        while uses and uses[-1] <= place:
            uses.pop()
        if uses and not self.to.is_condition.get(node, False) and node in self.to.names:
            self.arrived(node, self.to.names[node])

    def _leave(self, key: Key) -> None:
        """Put a value on the stack, unless it is there or can be loaded again."""
        del self.here[key]
        if key in self.slots or key in self.pinned or (not isinstance(key, Node) and self.to.forgotten(key)):
            return
        to = self.to
        self.slots[key] = slot = to.writer.slot(to.lanes.real, to.lanes.width * to.lanes.bytes)
        to.writer.effect(f"store {to.lanes.real} {self.names[key]}, ptr {slot}")

    def enter(self, region: LoopRegion, order: Body) -> Spills | None:
        """A loop begins. What is needed in a long one or after it goes to the stack, and registers are chosen anew.

        None for a short one, whose operands are in registers when it begins.
        """
        if len(order) < LONG:
            for node in _operands(region):
                if node.op == "input":
                    self.to.input(node)
                elif (key := self._key(node)) is not None:
                    self.operand(key)
            return None
        inner = Spills(self.to, order, (), region.loop.following)
        for key in [*self.here]:
            uses = self.uses.get(key)
            if key in inner.uses or (uses and uses[0] > self._place):
                self._leave(key)
        inner.outer, inner.pinned = self, {**self.pinned, **self.slots}
        for phi in region.loop.phi:
            if not self.to.is_condition[phi]:
                inner.arrived(phi, self.to.names[phi])
        return inner

    def close(self) -> None:
        """The end of the body: its places on the stack are free."""
        for slot in self.slots.values():
            self.to.writer.free(self.to.lanes.real, slot)


def signs_elsewhere(nest: Nest) -> frozenset[Node]:
    """Changes of sign that other steps use than those that compute them: they are written where they are computed."""
    steps = [statement for statement in statements(nest.body) if isinstance(statement, Step)]
    if len(steps) == 1:
        return frozenset()
    found: set[Node] = set()
    for step in steps:
        own = {node for node in scheduled(step.body) if node.op == "neg"}
        used = [node for item in step.body for node in _operands(item) if node.op == "neg"]
        used += [node for _, node in step.writes if node.op == "neg"]
        found.update(node for node in used if node not in own)
    return frozenset(found)


def _operands(item: Node | LoopRegion) -> Iterator[Node]:
    if isinstance(item, Node):
        yield from item.args
        return
    loop = item.loop
    yield from (*loop.initial, loop.active, *loop.following)
    for inner in item.body:
        yield from _operands(inner)
