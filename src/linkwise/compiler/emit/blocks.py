"""A program as an LLVM module: the loop over blocks of W states around its arithmetic.

The module has one function, ``void run(i64 first, i64 count, ptr arguments, ptr scratch)``. ``arguments`` is
an array of 64-bit words: the addresses of the outputs, the addresses of the inputs, then the stride of each
input in scalars from one state to the next (0: one state for the whole batch). Outputs are dense and overlap
no input. The states from ``first`` on, ``count`` of them, are computed.

The arithmetic exists once in the code and reads W dense rows of every input, at addresses known up to one
base. Where the rows of the caller are not like that, they are copied to ``scratch`` first (see
``scratch_scalars``): the last, incomplete block; inputs with gaps between their rows; and, once per call, an
input that is the same for all states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.llvm import Arithmetic, intrinsics
from linkwise.compiler.emit.sweeps import SweptArithmetic, tables
from linkwise.compiler.program import Program
from linkwise.compiler.sweeps import SweptProgram

# Row r of the copy is row min(r, last) of the source.
_COPY_ROWS = """
declare i64 @llvm.smin.i64(i64, i64)

define internal void @copy_rows(ptr %to, ptr %from, i64 %stride, i64 %size, i64 %rows, i64 %last)
    nounwind noinline {{
entry:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %row, label %done
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %row_end ]
  %source_row = call i64 @llvm.smin.i64(i64 %r, i64 %last)
  %from_offset = mul i64 %source_row, %stride
  %to_offset = mul i64 %r, %size
  %source = getelementptr {scalar}, ptr %from, i64 %from_offset
  %target = getelementptr {scalar}, ptr %to, i64 %to_offset
  br label %fours
fours:
  %k = phi i64 [ 0, %row ], [ %k4, %four ]
  %k4 = add i64 %k, 4
  %fits = icmp sle i64 %k4, %size
  br i1 %fits, label %four, label %ones
four:
  %source4 = getelementptr {scalar}, ptr %source, i64 %k
  %target4 = getelementptr {scalar}, ptr %target, i64 %k
  %x4 = load <4 x {scalar}>, ptr %source4, align {bytes}
  store <4 x {scalar}> %x4, ptr %target4, align {bytes}
  br label %fours
ones:
  %j = phi i64 [ %k, %fours ], [ %j1, %one ]
  %more = icmp slt i64 %j, %size
  br i1 %more, label %one, label %row_end
one:
  %source1 = getelementptr {scalar}, ptr %source, i64 %j
  %target1 = getelementptr {scalar}, ptr %target, i64 %j
  %x1 = load {scalar}, ptr %source1
  store {scalar} %x1, ptr %target1
  %j1 = add i64 %j, 1
  br label %ones
row_end:
  %r1 = add i64 %r, 1
  %again = icmp slt i64 %r1, %rows
  br i1 %again, label %row, label %done
done:
  ret void
}}

define internal ptr @dense_rows(ptr %room, ptr %from, i64 %stride, i64 %size, i64 %left) nounwind noinline {{
  %full = icmp sge i64 %left, {width}
  %dense = icmp eq i64 %stride, %size
  %usable = and i1 %full, %dense
  br i1 %usable, label %as_it_is, label %copy
as_it_is:
  ret ptr %from
copy:
  %last = sub i64 %left, 1
  call void @copy_rows(ptr %room, ptr %from, i64 %stride, i64 %size, i64 {width}, i64 %last)
  ret ptr %room
}}
"""


def module(program: Program | SweptProgram, width: int) -> str:
    """The text of the module for blocks of ``width`` states."""
    lanes = Lanes(width, program.dtype)
    parts = [intrinsics(lanes)]
    if width > 1:
        parts.append(_COPY_ROWS.format(scalar=lanes.scalar, bytes=lanes.bytes, width=width))
    aligned = (
        f"alignstack({min(64, width * lanes.bytes)}) " if width > 1 else ""
    )  # for vectors kept on the stack
    parts.append(
        f"define void @run(i64 %first, i64 %count, ptr %arguments, ptr %scratch) nounwind {aligned}{{\nentry:"
    )
    parts.extend(_Frame(program, lanes).lines())
    parts.append("}\n")
    if isinstance(program, SweptProgram):
        parts.insert(0, tables(program))
        parts.append(f"define i64 @room() nounwind {{\n  ret i64 {program.scratch_scalars(width)}\n}}\n")
    return "\n".join(parts)


def scratch_scalars(in_sizes: Sequence[int], out_sizes: Sequence[int], width: int) -> int:
    """How many scalars ``scratch`` must have room for."""
    return width * (sum(in_sizes) + sum(out_sizes)) if width > 1 else 0


class _Frame:
    """The loop over blocks of states."""

    def __init__(self, program: Program | SweptProgram, lanes: Lanes):
        self.program = program
        self.lanes = lanes
        self.writer = Writer()
        self.in_sizes = [size for _, size in program.inputs]
        self.out_sizes = [math.prod(shape) for _, shape in program.outputs]

    def lines(self) -> list[str]:
        writer = self.writer
        count_in, count_out = len(self.in_sizes), len(self.out_sizes)
        outputs = [self._argument("ptr", k) for k in range(count_out)]
        inputs = [self._argument("ptr", count_out + k) for k in range(count_in)]
        strides = [self._argument("i64", count_out + count_in + k) for k in range(count_in)]
        gaps = strides  # from row to row inside a block, while strides lead from block to block
        if self.lanes.width > 1:
            inputs, gaps = self._repeat_single_states(inputs, strides)
        end = writer.value("add i64 %first, %count")
        writer.effect("br label %blocks")

        writer.start_block("blocks")
        writer.value("phi i64 [ %first, %entry ], [ %following, %next ]", "%state")
        left = writer.value(f"sub i64 {end}, %state")
        more = writer.value(f"icmp sgt i64 {left}, 0")
        writer.effect(f"br i1 {more}, label %place, label %done")

        writer.start_block("place")
        inputs = [self._at_state(base, stride) for base, stride in zip(inputs, strides, strict=True)]
        outputs = [
            self._at_state(base, str(size)) for base, size in zip(outputs, self.out_sizes, strict=True)
        ]
        if self.lanes.width == 1:
            self._arithmetic(inputs, outputs)
            writer.effect("br label %next")
        else:
            self._block(left, inputs, gaps, outputs)

        writer.start_block("next")
        writer.value(f"add i64 %state, {self.lanes.width}", "%following")
        writer.effect("br label %blocks")
        writer.start_block("done")
        writer.effect("ret void")
        return writer.lines

    def _arithmetic(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        if isinstance(self.program, SweptProgram):
            used = scratch_scalars(self.in_sizes, self.out_sizes, self.lanes.width)
            room = self.writer.value(f"getelementptr {self.lanes.scalar}, ptr %scratch, i64 {used}")
            SweptArithmetic(self.program, self.lanes, self.writer, inputs, outputs, room).write()
        else:
            Arithmetic(self.program, self.lanes, self.writer, inputs, outputs).write()

    def _repeat_single_states(self, inputs: list[str], strides: list[str]) -> tuple[list[str], list[str]]:
        """Replace an input of stride 0 by W copies of its state in the scratch room; also the resulting
        gaps."""
        writer, width = self.writer, self.lanes.width
        self.rooms = self._rooms()
        bases, gaps = [], []
        for base, stride, room, size in zip(inputs, strides, self.rooms, self.in_sizes, strict=False):
            single = writer.value(f"icmp eq i64 {stride}, 0")
            rows = writer.value(f"select i1 {single}, i64 {width}, i64 0")
            writer.effect(
                f"call void @copy_rows(ptr {room}, ptr {base}, i64 0, i64 {size}, i64 {rows}, i64 0)"
            )
            bases.append(writer.value(f"select i1 {single}, ptr {room}, ptr {base}"))
            gaps.append(writer.value(f"select i1 {single}, i64 {size}, i64 {stride}"))
        return bases, gaps

    def _block(self, left: str, inputs: list[str], gaps: list[str], outputs: list[str]) -> None:
        """A block where it lies if it can be, else by way of the scratch room."""
        writer, width = self.writer, self.lanes.width
        in_rooms, out_rooms = self.rooms[: len(inputs)], self.rooms[len(inputs) :]
        full = writer.value(f"icmp sge i64 {left}, {width}")
        usable = full
        for gap, size in zip(gaps, self.in_sizes, strict=True):
            dense = writer.value(f"icmp eq i64 {gap}, {size}")
            usable = writer.value(f"and i1 {usable}, {dense}")
        writer.effect(f"br i1 {usable}, label %block, label %copy")

        writer.start_block("copy")
        # Lanes beyond the end repeat the last state, so that they leave a loop when it does.
        copied_in = [
            writer.value(f"call ptr @dense_rows(ptr {room}, ptr {base}, i64 {gap}, i64 {size}, i64 {left})")
            for room, base, gap, size in zip(in_rooms, inputs, gaps, self.in_sizes, strict=True)
        ]
        copied_out = [
            writer.value(f"select i1 {full}, ptr {base}, ptr {room}")
            for base, room in zip(outputs, out_rooms, strict=True)
        ]
        writer.effect("br label %block")

        writer.start_block("block")
        chosen = [
            writer.value(f"phi ptr [ {base}, %place ], [ {copied}, %copy ]")
            for base, copied in zip((*inputs, *outputs), (*copied_in, *copied_out), strict=True)
        ]
        self._arithmetic(chosen[: len(inputs)], chosen[len(inputs) :])
        writer.effect(f"br i1 {full}, label %next, label %copy_back")

        writer.start_block("copy_back")
        last = writer.value(f"sub i64 {left}, 1")
        for base, room, size in zip(outputs, out_rooms, self.out_sizes, strict=True):
            arguments = f"ptr {base}, ptr {room}, i64 {size}, i64 {size}, i64 {left}, i64 {last}"
            writer.effect(f"call void @copy_rows({arguments})")
        writer.effect("br label %next")

    def _rooms(self) -> list[str]:
        """Room for W rows of each input, then of each output."""
        rooms, offset = [], 0
        for size in (*self.in_sizes, *self.out_sizes):
            rooms.append(self.writer.value(f"getelementptr {self.lanes.scalar}, ptr %scratch, i64 {offset}"))
            offset += size * self.lanes.width
        return rooms

    def _at_state(self, base: str, stride: str) -> str:
        offset = self.writer.value(f"mul i64 %state, {stride}")
        return self.writer.value(f"getelementptr {self.lanes.scalar}, ptr {base}, i64 {offset}")

    def _argument(self, kind: str, k: int) -> str:
        address = self.writer.value(f"getelementptr i64, ptr %arguments, i64 {k}")
        return self.writer.value(f"load {kind}, ptr {address}")
