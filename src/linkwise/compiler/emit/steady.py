"""Inputs of a batch that are mostly the same for all states, such as gains, as LLVM text.

Rows of states are transposed block by block. An input that is the same for all states needs that once: memory on the
stack has every scalar of it in all lanes, which the statements read like constants. Where the caller gives a row for
each state after all, every block fills that memory anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.compiler.emit import transpose
from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.llvm import inputs_of
from linkwise.compiler.ir.loops import Array, Element, Nest, Step, statements

_ALIGNED = 64  # bytes

# Lane k of the memory gets row min(k, last) of the source.
_LANE_ROWS = """
define internal void @lane_rows(ptr %to, ptr %from, i64 %stride, i64 %size, i64 %last) nounwind noinline {{
entry:
  %some = icmp sgt i64 %size, 0
  br i1 %some, label %column, label %done
column:
  %c = phi i64 [ 0, %entry ], [ %c1, %next ]
  %c1 = add i64 %c, 1
  %start = mul i64 %c, {width}
  br label %lane
lane:
  %k = phi i64 [ 0, %column ], [ %k1, %lane ]
  %row = call i64 @llvm.smin.i64(i64 %k, i64 %last)
  %offset = mul i64 %row, %stride
  %place = add i64 %offset, %c
  %source = getelementptr {scalar}, ptr %from, i64 %place
  %value = load {scalar}, ptr %source
  %lane_place = add i64 %start, %k
  %target = getelementptr {scalar}, ptr %to, i64 %lane_place
  store {scalar} %value, ptr %target
  %k1 = add i64 %k, 1
  %filled = icmp sge i64 %k1, {width}
  br i1 %filled, label %next, label %lane
next:
  %again = icmp slt i64 %c1, %size
  br i1 %again, label %column, label %done
done:
  ret void
}}
"""


@dataclass
class RowsOf:
    """The rows of an argument of the call."""

    array: Array
    base: str
    stride: str  # from block to block
    gap: str = ""  # from row to row inside a block
    room: str = ""  # scratch for the rows of a block
    lanes: str = ""  # memory for every scalar in all lanes, of inputs that are mostly the same for all states


class Steady:
    """Such inputs of one function.

    Args:
        nest: the function.
        lanes: how many states are computed side by side.
        kept: whether such inputs are treated like others.
    """

    def __init__(self, nest: Nest, lanes: Lanes, kept: bool):
        self.nest, self.lanes = nest, lanes
        given = [a for a in nest.arrays if a.kind == "input" and a.steady and a.columns]
        self.arrays = given if lanes.width > 1 and not kept else []
        self.varying = "false"
        """Whether some of them are not the same for all states."""

    def spread(self, writer: Writer, rows: RowsOf) -> bool:
        """Before the first block: spread the row of a steady input over its lanes; whether it is one."""
        if rows.array not in self.arrays:
            return False
        size = rows.array.columns
        rows.lanes = writer.value(
            f"alloca [{size * self.lanes.width} x {self.lanes.scalar}], align {_ALIGNED}"
        )
        several = writer.value(f"icmp ne i64 {rows.stride}, 0")
        number = writer.value(f"select i1 {several}, i64 0, i64 {size}")
        writer.effect(f"call void @lane_rows(ptr {rows.lanes}, ptr {rows.base}, i64 0, i64 {number}, i64 0)")
        self.varying = writer.value(f"or i1 {self.varying}, {several}")
        rows.gap = str(size)  # it is never copied
        return True

    def vary(self, writer: Writer, ins: Sequence[RowsOf], here: Sequence[str], left: str) -> None:
        """In a block, before its statements: fill the lanes anew for inputs with a row for each state.

        Args:
            writer: of the function.
            ins: all inputs.
            here: their rows where the block begins.
            left: number of states from there on.
        """
        if not self.arrays:
            return
        steady = [(rows, row) for rows, row in zip(ins, here, strict=False) if rows.lanes]
        writer.effect(f"br i1 {self.varying}, label %vary0, label %steady")
        for k, (rows, row) in enumerate(steady):
            size, following = rows.array.columns, f"vary{k + 1}" if k + 1 < len(steady) else "steady"
            writer.start_block(f"vary{k}")
            single = writer.value(f"icmp eq i64 {rows.stride}, 0")
            writer.effect(f"br i1 {single}, label %{following}, label %several{k}")
            writer.start_block(f"several{k}")
            full = writer.value(f"icmp sge i64 {left}, {self.lanes.width}")
            dense = writer.value(f"icmp eq i64 {rows.stride}, {size}")
            whole = writer.value(f"and i1 {full}, {dense}")
            writer.effect(f"br i1 {whole}, label %whole{k}, label %each{k}")
            writer.start_block(f"whole{k}")
            self._transposed(writer, rows, row)
            writer.effect(f"br label %{following}")
            writer.start_block(f"each{k}")
            last = writer.value(f"sub i64 {left}, 1")
            given = f"ptr {rows.lanes}, ptr {row}, i64 {rows.stride}, i64 {size}, i64 {last}"
            writer.effect(f"call void @lane_rows({given})")
            writer.effect(f"br label %{following}")
        writer.start_block("steady")

    def _transposed(self, writer: Writer, rows: RowsOf, row: str) -> None:
        """Fill the lanes from W dense rows, those columns that are used."""
        lanes, size, used = self.lanes, rows.array.columns, columns_read(self.nest, rows.array)
        address = transpose.row_addresses(writer, lanes, row, size)
        for tile in transpose.tiles(size, lanes):
            if used.isdisjoint(tile.columns):
                continue
            columns = transpose.load_tile(writer, lanes, tile, address)
            for column, value in zip(tile.columns, columns, strict=True):
                place = writer.value(
                    f"getelementptr {lanes.scalar}, ptr {rows.lanes}, i64 {column * lanes.width}"
                )
                writer.effect(f"store {lanes.real} {value}, ptr {place}, align {lanes.bytes}")

    @property
    def definitions(self) -> str:
        """What the code calls."""
        return _LANE_ROWS.format(scalar=self.lanes.scalar, width=self.lanes.width) if self.arrays else ""


def columns_read(nest: Nest, array: Array) -> set[int]:
    """Columns of an input that the statements read."""
    found: set[int] = set()
    for step in statements(nest.body):
        if isinstance(step, Step):
            nodes = [node for item in step.body for node in inputs_of(item)]
            nodes += [node for _, node in step.writes if node.op == "input"]
            places = [step.reads[node.value] for node in nodes]
            found.update(
                place.column.number
                for place in places
                if isinstance(place, Element)
                and place.array == array.name
                and place.column.number is not None
            )
    return found
