"""A program over columns: every input and output has its own column, with one entry per point.

What the compiler's kernels do with rows. Random numbers are made and reductions are taken column by column, so that
between them nothing needs to be rearranged.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.compiler import host
from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.llvm import Arithmetic, _OutputTile, intrinsics
from linkwise.compiler.graph import Node
from linkwise.compiler.program import Program
from linkwise.study.native import Native, compiled, function


def over_columns(program: Program, strides: tuple[int, int]) -> Native:
    """``run(0, count, [address of the inputs, address of the outputs])``.

    Inputs and outputs take their columns in the order of the program, so many numbers apart. Whole vectors are
    computed: what lies behind ``count`` must be numbers, and is overwritten in the outputs.
    """
    return compiled(module(program, strides, host.lanes("float64")))


def module(program: Program, strides: tuple[int, int], width: int) -> str:
    """The LLVM text for vectors of ``width`` points."""
    lanes, writer = Lanes(width, "float64"), Writer()
    inputs = writer.value("load ptr, ptr %arguments")
    second = writer.value("getelementptr i64, ptr %arguments, i64 1")
    outputs = writer.value(f"load ptr, ptr {second}")
    writer.effect("br label %points")
    writer.start_block("points")
    writer.value("phi i64 [ 0, %entry ], [ %following, %points.end ]", "%place")

    def at(base: str, offset: int) -> str:
        place = writer.value(f"add i64 %place, {offset}")
        return writer.value(f"getelementptr double, ptr {base}, i64 {place}")

    _ByColumn(
        program, lanes, writer, lambda k: at(inputs, k * strides[0]), lambda k: at(outputs, k * strides[1])
    ).write()
    writer.effect("br label %points.end")
    writer.start_block("points.end")
    writer.value(f"add i64 %place, {width}", "%following")
    more = writer.value("icmp slt i64 %following, %count")
    writer.effect(f"br i1 {more}, label %points, label %done")
    writer.start_block("done")
    writer.effect("ret void")
    return intrinsics(lanes) + function(writer.lines)


class _ByColumn(Arithmetic):
    """The arithmetic of a program with loads and stores of whole columns."""

    def __init__(
        self,
        program: Program,
        lanes: Lanes,
        writer: Writer,
        input_at: Callable[[int], str],
        output_at: Callable[[int], str],
    ):
        self.program = program
        self._prepare(lanes, writer)
        self._input_at = input_at
        self._column: dict[tuple[str, int], int] = {}
        for name, size in program.inputs:
            self._column.update({(name, k): len(self._column) + k for k in range(size)})
        values = [node for nodes in program.values for node in nodes]
        for column, node in enumerate(values):
            self._expect(_OutputTile(None, lambda *_, k=column: output_at(k), [node], dense=True))  # type: ignore[arg-type]

    def _load(self, node: Node) -> None:
        if node.value not in self.columns:
            address = self._input_at(self._column[node.value])
            self.columns[node.value] = self.writer.value(f"load {self.lanes.real}, ptr {address}, align 8")
