"""Random numbers and a program over columns in turns, as LLVM text."""

from __future__ import annotations

from linkwise.compiler.emit.lanes import HEAD

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
