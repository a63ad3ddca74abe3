"""The arithmetic of a program as LLVM text, W states side by side in the lanes of vectors.

No fast-math flag appears anywhere and fused multiply-adds are those of the graph, so that every width gives
the same bits. Inputs are loaded just before their first use and outputs stored as soon as they are known: few
values stay alive.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.transpose import Address, Tile, load_tile, row_addresses, store_tile, tiles
from linkwise.compiler.graph import CONDITIONS, Node
from linkwise.compiler.program import LoopRegion, Program

# {R}: vector of reals, {C}: of conditions, {S}: suffix of intrinsics, {TRUE}: condition that always holds.
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
}


class Arithmetic:
    """Writes the operations of a program for one block of states.

    ``inputs`` and ``outputs`` are the addresses of the block's first rows; the rows are dense.
    """

    def __init__(
        self, program: Program, lanes: Lanes, writer: Writer, inputs: Sequence[str], outputs: Sequence[str]
    ):
        self.program = program
        self._prepare(lanes, writer)
        self.input_tiles: dict[tuple[str, int], tuple[Tile, Address]] = {}
        for (name, size), base in zip(program.inputs, inputs, strict=True):
            address = row_addresses(writer, lanes, base, size)
            for tile in reversed(tiles(size, lanes)):  # a column of two tiles comes with the earlier one
                self.input_tiles.update({(name, column): (tile, address) for column in tile.columns})

        for (_, shape), nodes, base in zip(program.outputs, program.values, outputs, strict=True):
            size = math.prod(shape)
            address = row_addresses(writer, lanes, base, size)
            for tile in tiles(size, lanes):
                self._expect(_OutputTile(tile, address, [nodes[k] for k in tile.columns], dense=size == 1))

    def _prepare(self, lanes: Lanes, writer: Writer) -> None:
        """What is needed to write operations, whatever they read and wherever results go."""
        self.lanes = lanes
        self.writer = writer
        self.condition = lanes.vector("i1")
        words = {"R": lanes.real, "S": lanes.suffix, "C": self.condition, "TRUE": lanes.splat("i1", "true")}
        self.spelling = {op: text.format("{0}", "{1}", "{2}", **words) for op, text in SPELLING.items()}
        self.names: dict[int, str] = {}  # what the nodes written so far are called
        self.is_condition: dict[int, bool] = {}  # for values that loops carry

        self.columns: dict[tuple[str, int], str] = {}  # inputs loaded so far
        self.waiting: dict[int, list[_OutputTile]] = defaultdict(list)  # node -> stores that need it
        self.ready: list[_OutputTile] = []

    def write(self) -> None:
        """Everything: loads, operations, stores."""
        self._store_ready()
        for item in self.program.body:
            for node in _inputs_of(item):
                self._load(node)
            self._item(item)
            self._store_ready()

    # -- operations ------------------------------------------------------------------------------------------

    def operand(self, node: Node) -> str:
        """How a node is spelled as an operand."""
        if node.op == "const":
            return self.lanes.splat(self.lanes.scalar, literal(node.value, self.lanes.dtype))
        if node.op == "input":
            return self.columns[node.value]
        return self.names[_index(node)]

    def _item(self, item: Node | LoopRegion) -> None:
        if isinstance(item, LoopRegion):
            self._loop(item)
        else:
            self._operation(item)

    def _operation(self, node: Node) -> None:
        if node.op == "bit":
            self.names[node.index] = self._bit(self.operand(node.args[0]), node.value)
        else:
            text = self.spelling[node.op].format(*[self.operand(a) for a in node.args])
            self.names[node.index] = self.writer.value(text)
        self._announce(node.index)

    def _bit(self, operand: str, k: int) -> str:
        lanes, writer = self.lanes, self.writer
        integer = f"i{lanes.bits}"
        integers = lanes.vector(integer)
        bits = writer.value(f"bitcast {lanes.real} {operand} to {integers}")
        picked = writer.value(
            f"and {integers} {bits}, {lanes.splat(integer, str(_signed(1 << k, lanes.bits)))}"
        )
        return writer.value(f"icmp ne {integers} {picked}, {lanes.splat(integer, '0')}")

    def _announce(self, index: int) -> None:
        """Tell the outputs that a value is known."""
        for output in self.waiting.pop(index, ()):
            output.missing -= 1
            if not output.missing:
                self.ready.append(output)

    # -- loops -----------------------------------------------------------------------------------------------

    def _loop(self, region: LoopRegion) -> None:
        """``state = following`` as long as a lane is active; the last state is what the results are."""
        writer, loop = self.writer, region.loop
        before = writer.block
        head, body, end = (f"loop{region.number}{part}" for part in ("", ".body", ".end"))
        initial = [self.operand(node) for node in loop.initial]
        types = [self._type(node) for node in loop.initial]
        writer.effect(f"br label %{head}")
        writer.start_block(head)
        place = len(writer.lines)  # the phis come here when the next state has names
        for k, phi in enumerate(loop.phi):
            self.names[phi.index] = f"%phi{region.number}.{k}"
            self.is_condition[phi.index] = types[k] == self.condition

        pending = list(region.body)
        while loop.active.op != "const" and _index(loop.active) not in self.names:
            self._item(pending.pop(0))
        writer.effect(f"br i1 {self._any_lane(self.operand(loop.active))}, label %{body}, label %{end}")
        writer.start_block(body)
        for item in pending:
            self._item(item)
        following = [self.operand(node) for node in loop.following]
        writer.lines[place:place] = [
            f"  %phi{region.number}.{k} = phi {types[k]} [ {first}, %{before} ], [ {next_}, %{writer.block} ]"
            for k, (first, next_) in enumerate(zip(initial, following, strict=True))
        ]
        writer.effect(f"br label %{head}")
        writer.start_block(end)
        for phi in loop.phi:
            self._announce(phi.index)

    def _any_lane(self, condition: str) -> str:
        width = self.lanes.width
        if width == 1:
            return condition
        bits = self.writer.value(f"bitcast {self.condition} {condition} to i{width}")
        return self.writer.value(f"icmp ne i{width} {bits}, 0")

    def _type(self, node: Node) -> str:
        holds = node.op in CONDITIONS or self.is_condition.get(_index(node), False)
        return self.condition if holds else self.lanes.real

    # -- inputs and outputs ----------------------------------------------------------------------------------

    def _load(self, node: Node) -> None:
        if node.value in self.columns:
            return
        tile, address = self.input_tiles[node.value]
        for column, value in zip(
            tile.columns, load_tile(self.writer, self.lanes, tile, address), strict=True
        ):
            self.columns.setdefault((node.value[0], column), value)

    def _expect(self, output: _OutputTile) -> None:
        """Store the tile as soon as the last of its nodes is known."""
        needed = {_index(node) for node in output.nodes if node.op not in ("const", "input")}
        output.missing = len(needed)
        for index in needed:
            self.waiting[index].append(output)
        if not needed:
            self.ready.append(output)

    def _store_ready(self) -> None:
        for output in self.ready:
            for node in output.nodes:
                if node.op == "input":
                    self._load(node)
            values = [self.operand(node) for node in output.nodes]
            if output.dense:
                address = output.address(0, 0)
                self.writer.effect(
                    f"store {self.lanes.real} {values[0]}, ptr {address}, align {self.lanes.bytes}"
                )
            else:
                store_tile(self.writer, self.lanes, output.tile, output.address, values)
        self.ready.clear()


@dataclass(eq=False)
class _OutputTile:
    tile: Tile
    address: Address
    nodes: list[Node]
    dense: bool  # one scalar per state: the lanes are neighbours in memory
    missing: int = 0


def literal(value: float, dtype: str) -> str:
    """A constant as LLVM spells it exactly: the bits of a double, for a float those of the rounded number."""
    if dtype == "float32":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def intrinsics(lanes: Lanes) -> str:
    """Declarations of what the spellings call."""
    real, suffix = lanes.real, lanes.suffix
    return "".join(
        f"declare {real} @llvm.{name}.{suffix}({', '.join([real] * count)})\n"
        for name, count in (("fma", 3), ("sqrt", 1), ("fabs", 1))
    )


def _inputs_of(item: Node | LoopRegion) -> Iterator[Node]:
    """The inputs that must be loaded before an item: all at once for a loop."""
    if not isinstance(item, LoopRegion):
        yield from (a for a in item.args if a.op == "input")
        return
    loop = item.loop
    yield from (node for node in (*loop.initial, loop.active, *loop.following) if node.op == "input")
    for inner in item.body:
        yield from _inputs_of(inner)


def _index(node: Node) -> int:
    """The node that holds the value: after a loop, what it carried."""
    if node.op == "result":
        loop, k = node.value
        return node.graph.loops[loop].phi[k].index
    return node.index


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
