"""Inputs of a batch that are mostly the same for all states, such as gains, as LLVM text.

Rows of states are transposed block by block. An input that is the same for all states needs that once: memory on the
stack has every scalar of it in all lanes, which the statements read like constants. Where the caller gives a row for
each state after all, every block fills that memory anew.
"""

from __future__ import annotations

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


def definitions(lanes: Lanes) -> str:
    """What the functions below call."""
    return _LANE_ROWS.format(scalar=lanes.scalar, width=lanes.width)


def memory(writer: Writer, lanes: Lanes, size: int) -> str:
    """The memory of an input."""
    return writer.value(f"alloca [{size * lanes.width} x {lanes.scalar}], align {_ALIGNED}")


def fill(writer: Writer, to: str, base: str, stride: str, size: int) -> str:
    """Fill it once where the input has one row for all states; whether it has not."""
    several = writer.value(f"icmp ne i64 {stride}, 0")
    number = writer.value(f"select i1 {several}, i64 0, i64 {size}")
    writer.effect(f"call void @lane_rows(ptr {to}, ptr {base}, i64 0, i64 {number}, i64 0)")
    return several


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


def fill_again(writer: Writer, lanes: Lanes, to: str, row: str, size: int, used: set[int]) -> None:
    """Fill it for a whole block whose dense rows begin at ``row``, those columns that are used."""
    address = transpose.row_addresses(writer, lanes, row, size)
    for tile in transpose.tiles(size, lanes):
        if used.isdisjoint(tile.columns):
            continue
        columns = transpose.load_tile(writer, lanes, tile, address)
        for column, value in zip(tile.columns, columns, strict=True):
            place = writer.value(f"getelementptr {lanes.scalar}, ptr {to}, i64 {column * lanes.width}")
            writer.effect(f"store {lanes.real} {value}, ptr {place}, align {lanes.bytes}")


def fill_slowly(writer: Writer, to: str, row: str, stride: str, size: int, left: str) -> None:
    """The same for rows with gaps and for the last block."""
    last = writer.value(f"sub i64 {left}, 1")
    writer.effect(f"call void @lane_rows(ptr {to}, ptr {row}, i64 {stride}, i64 {size}, i64 {last})")
