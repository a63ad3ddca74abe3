"""Random numbers and a program over columns in turns, as LLVM text."""

from __future__ import annotations

from linkwise.compiler.emit.lanes import Writer, function


def tiles(tile: int) -> str:
    """A generator of inputs and a program over columns in turns, ``tile`` points at a time, so that the inputs never
    leave the first caches: ``run(first, count, arguments)``.

    The arguments are addresses: the generator's code, the program's code, the input columns of one tile, the output
    columns of the block.
    """
    writer = Writer()
    places = writer.value("alloca [2 x ptr], align 16")  # of inputs and outputs: the arguments of the program
    generator, program, inputs, outputs = (writer.argument("ptr", k) for k in range(4))
    writer.effect(f"store ptr {inputs}, ptr {places}")
    second = writer.value(f"getelementptr ptr, ptr {places}, i64 1")
    writer.effect("br label %tile")
    writer.start_block("tile")
    writer.value("phi i64 [ 0, %entry ], [ %following, %tile ]", "%place")
    left = writer.value("sub i64 %count, %place")
    short = writer.value(f"icmp slt i64 {left}, {tile}")
    number = writer.value(f"select i1 {short}, i64 {left}, i64 {tile}")
    index = writer.value("add i64 %first, %place")
    writer.effect(f"call void {generator}(i64 {index}, i64 {number}, ptr {places}, ptr null)")
    here = writer.value(f"getelementptr double, ptr {outputs}, i64 %place")
    writer.effect(f"store ptr {here}, ptr {second}")
    writer.effect(f"call void {program}(i64 0, i64 {number}, ptr {places}, ptr null)")
    writer.value(f"add i64 %place, {tile}", "%following")
    more = writer.value("icmp slt i64 %following, %count")
    writer.effect(f"br i1 {more}, label %tile, label %done")
    writer.start_block("done")
    writer.effect("ret void")
    return function(writer.lines)
