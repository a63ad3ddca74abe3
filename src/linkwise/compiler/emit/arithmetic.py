"""Operations of a graph as LLVM text; how inputs are found is settled by ``llvm``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.compiler.emit import packing
from linkwise.compiler.emit.lanes import Lanes, Writer, literal
from linkwise.compiler.ir.graph import CONDITIONS, Loop, Node
from linkwise.compiler.ir.schedule import Body, LoopRegion, overlapped
from linkwise.compiler.ir.walks import carried

REGION = 16  # operations that LLVM may reorder: the schedule of the program needs fewer reloads from memory
_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "fma"})

# {R}: vector of reals, {C}: of conditions, {I}: of words, {S}: suffix of intrinsics, {TRUE}: always holds.
SPELLING = {
    "add": "fadd {R} {0}, {1}",
    "sub": "fsub {R} {0}, {1}",
    "mul": "fmul {R} {0}, {1}",
    "div": "fdiv {R} {0}, {1}",
    "neg": "fneg {R} {0}",
    "fma": "call {R} @llvm.fma.{S}({R} {0}, {R} {1}, {R} {2})",
    "sqrt": "call {R} @llvm.sqrt.{S}({R} {0})",
    "abs": "call {R} @llvm.fabs.{S}({R} {0})",
    "lt": "fcmp olt {R} {0}, {1}",
    "le": "fcmp ole {R} {0}, {1}",
    "eq": "fcmp oeq {R} {0}, {1}",
    "and": "and {C} {0}, {1}",
    "or": "or {C} {0}, {1}",
    "not": "xor {C} {0}, {TRUE}",
    "select": "select {C} {0}, {R} {1}, {R} {2}",
    "word_and": "and {I} {0}, {1}",
    "word_or": "or {I} {0}, {1}",
    "word_xor": "xor {I} {0}, {1}",
    "word_shl": "shl {I} {0}, {1}",
    "word_shr": "lshr {I} {0}, {1}",
    "word_add": "add {I} {0}, {1}",
    "word_mul": "mul {I} {0}, {1}",
    "word_of": "zext {C} {0} to {I}",
    "bits_of": "bitcast {R} {0} to {I}",
    "real_from_bits": "bitcast {I} {0} to {R}",
    "real_of": "sitofp {I} {0} to {R}",
}


class Arithmetic:
    """Writes the operations of a graph; how its inputs are found is settled by a subclass."""

    def __init__(self, lanes: Lanes, writer: Writer):
        self.lanes = lanes
        self.writer = writer
        self.condition = lanes.vector("i1")
        words = {"R": lanes.real, "S": lanes.suffix, "C": self.condition, "TRUE": lanes.splat("i1", "true")}
        words["I"] = lanes.vector("i64")
        self.spelling = {op: text.format("{0}", "{1}", "{2}", **words) for op, text in SPELLING.items()}
        self.names: dict[Node, str] = {}  # what the nodes written so far are called
        self.is_condition: dict[Node, bool] = {}  # for values that loops carry
        self.loops = 0  # written so far: their labels are numbered
        self.packed: set[Loop] = set()  # those that end while few lanes are active, see ``packing``
        self._operations = 0

    def input(self, node: Node) -> str:
        """The value of an input."""
        raise NotImplementedError

    def announce(self, node: Node) -> None:
        """A value is known."""

    def begin_loop(self, region: LoopRegion, order: Body) -> None:
        """A loop is written next; its initial values and carried ones have names."""

    def end_loop(self) -> None:
        """The loop that began last is written."""

    def advance(self, place: int, item: Node | LoopRegion) -> None:
        """An item of a body has been written."""

    def divide_long_block(self, items: int) -> None:
        """Begin another basic block where this one has become long, in a body of so many items."""

    def operand(self, node: Node) -> str:
        """How a node is spelled as an operand."""
        if node.op == "const":
            return self.constant(node.value)
        if node.op == "word":
            return self.lanes.splat("i64", str(_signed(node.value, 64)))
        if node.op == "input":
            return self.input(node)
        return self.names[holder(node)]

    def constant(self, value: float) -> str:
        return self.lanes.splat(self.lanes.scalar, literal(value, self.lanes.dtype))

    def item(self, item: Node | LoopRegion) -> None:
        if isinstance(item, LoopRegion):
            self._while(item)
        else:
            self._operation(item)

    def _operation(self, node: Node) -> None:
        arithmetic = node.op in _ARITHMETIC
        self.names[node] = self.written(node.op, node.value, [self.argument(node.op, a) for a in node.args])
        self._operations += arithmetic
        if arithmetic and self._operations % REGION == 0:
            self.writer.schedule_as_written()
        self.announce(node)

    def written(self, op: str, value: Any, operands: Sequence[str]) -> str:
        """The result of an operation."""
        if op == "bit":
            return self._bit(operands[0], value)
        return self.writer.value(self.spelling[op].format(*operands))

    def argument(self, op: str, node: Node) -> str:
        """An operand of this operation; constants of arithmetic can be in memory."""
        if node.op == "const" and op in _ARITHMETIC and self.lanes.stores_constants:
            return self.writer.stored_constant(self.lanes.real, self.constant(node.value))
        return self.operand(node)

    def _bit(self, operand: str, k: int) -> str:
        lanes, writer = self.lanes, self.writer
        integer = f"i{lanes.bits}"
        integers = lanes.vector(integer)
        bits = writer.value(f"bitcast {lanes.real} {operand} to {integers}")
        picked = writer.value(
            f"and {integers} {bits}, {lanes.splat(integer, str(_signed(1 << k, lanes.bits)))}"
        )
        return writer.value(f"icmp ne {integers} {picked}, {lanes.splat(integer, '0')}")

    def _while(self, region: LoopRegion) -> None:
        """``state = following`` as long as a lane is active; the last state is what the results are."""
        writer, loop = self.writer, region.loop
        before, number = writer.block, self.loops
        self.loops += 1
        head, body, end = (f"loop{number}{part}" for part in ("", ".body", ".end"))
        initial = [self.operand(node) for node in loop.initial]
        types = [self._type(node) for node in loop.initial]
        writer.effect(f"br label %{head}")
        writer.start_block(head)
        start = len(writer.lines)  # the phis come here when the next state has names
        for k, phi in enumerate(loop.phi):
            self.names[phi] = f"%phi{number}.{k}"
            self.is_condition[phi] = types[k] == self.condition

        first, rest = self._divided(region)
        self.begin_loop(region, [*first, *rest])
        for place, item in enumerate(first):
            self.item(item)
            self.advance(place, item)
        active, mask = self.operand(loop.active), ""
        if loop in self.packed:
            goes_on, mask = packing.goes_on(writer, self.lanes, f"{self.condition} {active}")
        else:
            goes_on = self._any_lane(active)
        writer.effect(f"br i1 {goes_on}, label %{body}, label %{end}")
        writer.start_block(body)
        for place, item in enumerate(rest, len(first)):
            self.item(item)
            self.advance(place, item)
            self.divide_long_block(len(region.body))
        following = [self.operand(node) for node in loop.following]
        writer.lines[start:start] = [
            f"  %phi{number}.{k} = phi {types[k]} [ {first}, %{before} ], [ {next_}, %{writer.block} ]"
            for k, (first, next_) in enumerate(zip(initial, following, strict=True))
        ]
        writer.effect(f"br label %{head}")
        writer.start_block(end)
        self.end_loop()
        if mask:
            packing.leave(writer, mask)
        for phi in loop.phi:
            self.announce(phi)

    def _divided(self, region: LoopRegion) -> tuple[Body, Body]:
        """What tells whether a loop goes on, and the rest of its body in the order in which it is written."""
        active, known, first = region.loop.active, set[Node](), 0
        while active.op != "const" and holder(active) not in self.names and holder(active) not in known:
            item = region.body[first]
            known.update(item.loop.phi if isinstance(item, LoopRegion) else (item,))
            first += 1
        return region.body[:first], self._in_order(region.body[first:])

    def _in_order(self, body: Body) -> Body:
        """Of batches, chains that wait are side by side; the first call of one state would take longer by that."""
        return overlapped(body) if self.lanes.width > 1 else body

    def _any_lane(self, condition: str) -> str:
        width = self.lanes.width
        if width == 1:
            return condition
        bits = self.writer.value(f"bitcast {self.condition} {condition} to i{width}")
        return self.writer.value(f"icmp ne i{width} {bits}, 0")

    def _type(self, node: Node) -> str:
        holds = node.op in CONDITIONS or self.is_condition.get(holder(node), False)
        return self.condition if holds else self.lanes.real


def holder(node: Node) -> Node:
    """The node that holds the value: after a loop, what it carried."""
    if node.op == "result":
        return carried(node)
    return node


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
