"""A rollout as an LLVM module: a loop over blocks of W robots around a loop over steps around the arithmetic
of a step.

The module has one function, ``void run(i64 first, i64 count, ptr arguments, ptr scratch)``. ``arguments`` are
64-bit words: the number of steps, how many of them go by between two written ones, and then two words for
every array, its address and its stride in scalars from one robot to the next: what is carried (read at the
beginning, written at the end), parameters, feeds, what is written. ``scratch`` is not used.

Lanes beyond the last robot repeat it: they read the same numbers and write the same results to the same
places.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.llvm import Arithmetic, intrinsics
from linkwise.compiler.emit.transpose import Address, load_tile, store_tile, tiles
from linkwise.compiler.graph import Node
from linkwise.compiler.rollout import NEXT, Feed, RolloutProgram
from linkwise.compiler.schedule import Body, LoopRegion


def module(program: RolloutProgram, width: int) -> str:
    """The text of the module for blocks of ``width`` robots."""
    lanes = Lanes(width, program.dtype)
    lines = _Frame(program, lanes).lines()
    head = "define void @run(i64 %first, i64 %count, ptr %arguments, ptr %scratch) nounwind {\nentry:"
    declared = "declare i64 @llvm.smin.i64(i64, i64)\n"
    return "\n".join([intrinsics(lanes), declared, head, *lines, "}\n"])


class _Frame:
    def __init__(self, program: RolloutProgram, lanes: Lanes):
        self.program, self.interface, self.lanes = program, program.interface, lanes
        self.writer = Writer()
        outputs = program.step.outputs
        self.values = {name: nodes for (name, _), nodes in zip(outputs, program.step.values, strict=True)}

    def lines(self) -> list[str]:
        writer, interface = self.writer, self.interface
        steps, every = (self._argument("i64", k) for k in range(2))
        names = [*interface.carried, *interface.parameters, *interface.feeds, *interface.written]
        arrays = {
            name: (self._argument("ptr", 2 + 2 * k), self._argument("i64", 3 + 2 * k))
            for k, name in enumerate(names)
        }
        end = writer.value("add i64 %first, %count")
        writer.effect("br label %blocks")

        writer.start_block("blocks")
        writer.value("phi i64 [ %first, %entry ], [ %following, %next ]", "%robot")
        left = writer.value(f"sub i64 {end}, %robot")
        more = writer.value(f"icmp sgt i64 {left}, 0")
        writer.effect(f"br i1 {more}, label %place, label %done")

        writer.start_block("place")
        places = self._places(left, arrays)
        self._steps(steps, every, places)

        writer.start_block("next")
        writer.value(f"add i64 %robot, {self.lanes.width}", "%following")
        writer.effect("br label %blocks")
        writer.start_block("done")
        writer.effect("ret void")
        return writer.lines

    def _steps(self, steps: str, every: str, places: dict[str, list[str]]) -> None:
        """The loop over steps for one block of robots."""
        writer, interface = self.writer, self.interface
        arithmetic = _StepArithmetic(self.lanes, writer)
        initial = {}
        for name, size in interface.carried.items():
            initial.update(self._loaded(name, size, places[name]))
        for name, size in interface.parameters.items():
            arithmetic.columns.update(self._loaded(name, size, places[name]))
        once, repeated = split(self.program.step.body, {*interface.carried, *interface.feeds})
        for item in once:
            arithmetic.item(item)
        writer.effect("br label %step")

        writer.start_block("step")
        writer.value("phi i64 [ 0, %place ], [ %s1, %latch ]", "%s")
        writer.value("phi i64 [ 0, %place ], [ %sample1, %latch ]", "%sample")
        writer.value("phi i64 [ 0, %place ], [ %wait1, %latch ]", "%wait")
        place = len(writer.lines)  # the carried values' phis come here when the next ones have names
        for key in initial:
            arithmetic.columns[key] = f"%carried.{key[0]}.{key[1]}"
        more = writer.value(f"icmp slt i64 %s, {steps}")
        writer.effect(f"br i1 {more}, label %body, label %finish")

        writer.start_block("body")
        for name, feed in interface.feeds.items():
            arithmetic.columns.update(self._window(name, feed, places[name]))
        for item in repeated:
            arithmetic.item(item)
        due = writer.value("icmp eq i64 %wait, 0")
        writer.effect(f"br i1 {due}, label %write, label %latch")
        body_end = writer.block

        writer.start_block("write")
        for name, shape in interface.written.items():
            values = [arithmetic.operand(node) for node in self.values[name]]
            self._store(places[name], math.prod(shape), values, "%sample")
        written = writer.value("add i64 %sample, 1")
        writer.effect("br label %latch")

        writer.start_block("latch")
        writer.value(f"phi i64 [ %sample, %{body_end} ], [ {written}, %write ]", "%sample1")
        writer.value(f"phi i64 [ %wait, %{body_end} ], [ {every}, %write ]", "%wait0")
        writer.value("sub i64 %wait0, 1", "%wait1")
        writer.value("add i64 %s, 1", "%s1")
        writer.effect("br label %step")
        writer.lines[place:place] = [
            f"  %carried.{name}.{k} = phi {self.lanes.real} [ {first}, %place ], [ {following}, %latch ]"
            for (name, k), first in initial.items()
            for following in [arithmetic.operand(self.values[NEXT + name][k])]
        ]

        writer.start_block("finish")
        for name, size in interface.carried.items():
            self._store(places[name], size, [f"%carried.{name}.{k}" for k in range(size)])
        writer.effect("br label %next")

    # -- memory
    # ---------------------------------------------------------------------------------------------------

    def _places(self, left: str, arrays: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
        """For every array and lane, where the lane's robot has its first scalar."""
        writer = self.writer
        last = writer.value(f"sub i64 {left}, 1")
        robots = []
        for lane in range(self.lanes.width):
            offset = writer.value(f"call i64 @llvm.smin.i64(i64 {lane}, i64 {last})")
            robots.append(writer.value(f"add i64 %robot, {offset}"))
        places = {}
        for name, (base, stride) in arrays.items():
            offsets = [writer.value(f"mul i64 {robot}, {stride}") for robot in robots]
            places[name] = [self._at(base, offset) for offset in offsets]
        return places

    def _loaded(self, name: str, size: int, places: list[str]) -> dict[tuple[str, int], str]:
        """The columns of one row per lane."""
        found: dict[tuple[str, int], str] = {}
        address = self._addresses(places)
        for tile in tiles(size, self.lanes):
            values = load_tile(self.writer, self.lanes, tile, address)
            for column, value in zip(tile.columns, values, strict=True):
                found[name, column] = value
        return {(name, k): found[name, k] for k in range(size)}

    def _window(self, name: str, feed: Feed, places: list[str]) -> dict[tuple[str, int], str]:
        """What this step reads of a feed; from one table for all robots each number goes to all lanes."""
        writer, lanes = self.writer, self.lanes
        offset = writer.value(f"mul i64 %s, {feed.advance}")
        if not feed.shared:
            return self._loaded(name, feed.size, [self._at(place, offset) for place in places])
        start = self._at(places[0], offset)
        found = {}
        for k in range(feed.size):
            value = writer.value(f"load {lanes.scalar}, ptr {self._at(start, str(k))}")
            if lanes.width > 1:
                one = writer.value(f"insertelement {lanes.real} poison, {lanes.scalar} {value}, i64 0")
                zeros = f"{lanes.vector('i32')} zeroinitializer"
                value = writer.value(f"shufflevector {lanes.real} {one}, {lanes.real} poison, {zeros}")
            found[name, k] = value
        return found

    def _store(self, places: list[str], size: int, values: list[str], row: str | None = None) -> None:
        """One row per lane; ``row`` is its number where a robot has several."""
        if row is not None:
            offset = self.writer.value(f"mul i64 {row}, {size}")
            places = [self._at(place, offset) for place in places]
        address = self._addresses(places)
        for tile in tiles(size, self.lanes):
            store_tile(self.writer, self.lanes, tile, address, [values[k] for k in tile.columns])

    def _addresses(self, places: list[str]) -> Address:
        return lambda lane, column: self._at(places[lane], str(column)) if column else places[lane]

    def _at(self, base: str, offset: str) -> str:
        return self.writer.value(f"getelementptr {self.lanes.scalar}, ptr {base}, i64 {offset}")

    def _argument(self, kind: str, k: int) -> str:
        address = self.writer.value(f"getelementptr i64, ptr %arguments, i64 {k}")
        return self.writer.value(f"load {kind}, ptr {address}")


class _StepArithmetic(Arithmetic):
    """The arithmetic of a step, whose inputs are in registers when it begins."""

    def __init__(self, lanes: Lanes, writer: Writer):
        self._prepare(lanes, writer)

    def item(self, item: Node | LoopRegion) -> None:
        self._item(item)


def split(body: Body, moving: Iterable[str]) -> tuple[Body, Body]:
    """(what depends on parameters alone, the rest), each in order."""
    moving = set(moving)
    varies: set[int] = set()  # nodes
    loops: set[int] = set()
    once: Body = []
    repeated: Body = []
    for item in body:
        if isinstance(item, LoopRegion):
            loops.add(item.number)  # loops are few: they stay where they are
            repeated.append(item)
            continue
        changes = any(
            (a.op == "input" and a.value[0] in moving)
            or (a.op == "result" and a.value[0] in loops)
            or a.index in varies
            for a in item.args
        )
        if changes:
            varies.add(item.index)
        (repeated if changes else once).append(item)
    return once, repeated
