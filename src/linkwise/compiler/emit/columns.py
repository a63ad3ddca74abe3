"""A program over columns as LLVM text: every input and output has its own column, with one entry per point.

What ``blocks`` does with rows. Nothing is transposed: the entries of neighbouring points lie side by side. The module
has one function, ``run(0, count, [address of the inputs, address of the outputs])``. Inputs and outputs take their
columns in the order of the program, so many numbers apart. Whole vectors are computed: what lies behind ``count`` must
be numbers, and is overwritten in the outputs.
"""

from __future__ import annotations

from linkwise.compiler.emit.lanes import HEAD, Lanes, Writer, function
from linkwise.compiler.emit.llvm import Renderer, intrinsics
from linkwise.compiler.emit.memory import Lanewise, Memory
from linkwise.compiler.loops import Element, Nest


def module(nest: Nest, strides: tuple[int, int], width: int) -> str:
    """The LLVM text for vectors of ``width`` points; ``strides`` lead from column to column of inputs and outputs."""
    lanes, writer = Lanes(width, nest.dtype), Writer()
    bases = {"input": writer.argument("ptr", 0), "output": writer.argument("ptr", 1)}
    writer.effect("br label %points")
    writer.start_block("points")
    writer.value("phi i64 [ 0, %entry ], [ %following, %points.end ]", "%place")
    first = dict.fromkeys(bases, 0)  # columns taken so far
    memory: dict[str, Memory] = {}
    for array in nest.arrays:
        stride = strides[array.kind == "output"]

        def place(to: Renderer, element: Element, start=first[array.kind], stride=stride) -> str:
            return to.writer.value(f"add i64 %place, {(start + (element.column.number or 0)) * stride}")

        memory[array.name] = Lanewise(array, bases[array.kind], place)
        first[array.kind] += array.columns
    Renderer(nest, lanes, writer, memory).write()
    writer.effect("br label %points.end")
    writer.start_block("points.end")
    writer.value(f"add i64 %place, {width}", "%following")
    more = writer.value("icmp slt i64 %following, %count")
    writer.effect(f"br i1 {more}, label %points, label %done")
    writer.start_block("done")
    writer.effect("ret void")
    return intrinsics(lanes) + function(writer.lines)


_TILES = """
{head}
entry:
  %inputs.place = alloca [1 x ptr], align 16
  %both.place = alloca [2 x ptr], align 16
  %outputs.place = getelementptr ptr, ptr %both.place, i64 1
  %program.at = getelementptr i64, ptr %arguments, i64 1
  %inputs.at = getelementptr i64, ptr %arguments, i64 2
  %outputs.at = getelementptr i64, ptr %arguments, i64 3
  %generator = load ptr, ptr %arguments
  %program = load ptr, ptr %program.at
  %inputs = load ptr, ptr %inputs.at
  %outputs = load ptr, ptr %outputs.at
  store ptr %inputs, ptr %inputs.place
  store ptr %inputs, ptr %both.place
  br label %tile
tile:
  %place = phi i64 [ 0, %entry ], [ %next, %tile ]
  %left = sub i64 %count, %place
  %short = icmp slt i64 %left, {tile}
  %number = select i1 %short, i64 %left, i64 {tile}
  %index = add i64 %first, %place
  call void %generator(i64 %index, i64 %number, ptr %inputs.place, ptr null)
  %here = getelementptr double, ptr %outputs, i64 %place
  store ptr %here, ptr %outputs.place
  call void %program(i64 0, i64 %number, ptr %both.place, ptr null)
  %next = add i64 %place, {tile}
  %more = icmp slt i64 %next, %count
  br i1 %more, label %tile, label %done
done:
  ret void
}}
"""


def tiles(tile: int) -> str:
    """A generator of inputs and a program over columns in turns, ``tile`` points at a time, so that the inputs never
    leave the first caches: ``run(first, count, arguments)``.

    The arguments are addresses: the generator's code, the program's code, the input columns of one tile, the output
    columns of the block.
    """
    return _TILES.format(head=HEAD, tile=tile)
