"""States that need more turns of a loop than their neighbours are computed again, together.

A block of W states waits for the last of them. Where a loop is ``uneven``, a block leaves it when at most W/8 of its
states are still active, and the numbers of these go to a list. As soon as the list has W states, their rows are copied
side by side and computed again from the begin. Such a block leaves the loop in the same way, and what is active then
goes to a second list, whose blocks do the same; only the last ones, with which a call ends, wait for their last state.
Lanes know nothing of each other, so that the results are those of a block that waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.ir.graph import Loop
from linkwise.compiler.ir.loops import Nest, Step
from linkwise.compiler.ir.schedule import LoopRegion

_LISTS = ("%waiting", "%slowest")


def uneven_loops(nest: Nest) -> set[Loop]:
    """Those that are not inside of others."""
    return {
        item.loop
        for statement in nest.body
        if isinstance(statement, Step)
        for item in statement.body
        if isinstance(item, LoopRegion) and item.loop.uneven
    }


def few(lanes: Lanes) -> int:
    """How many active states a block leaves to others."""
    return max(1, lanes.width // 8) if lanes.width >= 4 else 0


def begin(writer: Writer, lanes: Lanes) -> None:
    """Two empty lists."""
    writer.first_lines.append("  %unfinished = alloca i64")
    for name in _LISTS:
        writer.first_lines.append(f"  {name} = alloca [{2 * lanes.width + 1} x i64]")
        writer.value(f"getelementptr i64, ptr {name}, i64 {2 * lanes.width}", f"{name}_count")
        writer.effect(f"store i64 0, ptr {name}_count")


def start_block(writer: Writer, lanes: Lanes) -> None:
    """After the addresses of a block of new states, or of one that is computed again."""
    most = few(lanes)
    writer.value(f"phi i64 [ {most}, %place ], [ {most}, %copy ], [ %list_few, %gather ]", "%few")
    writer.value("phi ptr [ null, %place ], [ null, %copy ], [ %list, %gather ]", "%gathered_list")
    writer.value("phi i1 [ false, %place ], [ false, %copy ], [ true, %gather ]", "%gathered")
    writer.effect("store i64 0, ptr %unfinished")


def end_block(writer: Writer, lanes: Lanes, left: str) -> str:
    """After the statements of a block: its unfinished states go to the list. Whether all of its rows are states."""
    writer.effect("br i1 %gathered, label %scatter, label %collect")
    writer.start_block("collect")
    mask = writer.value("load i64, ptr %unfinished")
    writer.effect(f"call void @add_waiting(ptr %waiting, i64 {mask}, i64 %state, i64 %end, ptr null)")
    return writer.value(f"icmp sge i64 {left}, {lanes.width}")


def compute_again(
    writer: Writer,
    lanes: Lanes,
    ins: Sequence[tuple[str, str, str, int]],
    outs: Sequence[tuple[str, str, int]],
) -> None:
    """Compute W states of a list as soon as there are so many.

    Args:
        writer: of the function.
        lanes: of a block.
        ins: of every input its address, room for W rows, the stride from state to state, and the size of a row.
        outs: of every output its address, room for W rows, and the size of a row.
    """
    _choose_list(writer, "check", "next", lanes.width)

    writer.start_block("gather")
    # the last blocks of a call wait for their last state
    ways = [(name, way, few(lanes)) for name, way in zip(_LISTS, _ways("check"), strict=True)]
    ways += [(name, way, 0) for name, way in zip(_LISTS, _ways("last"), strict=True)]
    writer.value(f"phi ptr {', '.join(f'[ {name}, %{way} ]' for name, way, _ in ways)}", "%list")
    writer.value(f"phi i64 {', '.join(f'[ {number}, %{way} ]' for _, way, number in ways)}", "%list_few")
    for base, room, stride, size in ins:
        given = f"ptr {room}, ptr {base}, i64 {stride}, i64 {size}, ptr %list"
        writer.effect(f"call void @gather_rows({given})")
    writer.effect("br label %block")

    writer.start_block("scatter")
    for base, room, size in outs:
        writer.effect(f"call void @scatter_rows(ptr {base}, ptr {room}, i64 {size}, ptr %gathered_list)")
    mask = writer.value("load i64, ptr %unfinished")
    counter = writer.value(f"getelementptr i64, ptr %gathered_list, i64 {2 * lanes.width}")
    end = writer.value(f"load i64, ptr {counter}")
    given = f"ptr %slowest, i64 {mask}, i64 0, i64 {end}, ptr %gathered_list"
    writer.effect(f"call void @add_waiting({given})")
    writer.effect("call void @drop_waiting(ptr %gathered_list)")
    writer.effect("br label %check")


def finish(writer: Writer) -> None:
    """Compute what is left on the lists; the block ``last`` has begun."""
    _choose_list(writer, "last", "rest", 1, begun=True)
    writer.start_block("rest")


def _ways(where: str) -> tuple[str, str]:
    """Blocks that ask the first and the second list."""
    return where, f"{where}_again"


def _choose_list(writer: Writer, where: str, otherwise: str, least: int, begun: bool = False) -> None:
    """Go to ``gather`` where a list has so many states, the first list before the second."""
    first, second = _ways(where)
    for name, block, following in zip(_LISTS, (first, second), (second, otherwise), strict=True):
        if not (begun and block == first):
            writer.start_block(block)
        number = writer.value(f"load i64, ptr {name}_count")
        enough = writer.value(f"icmp sge i64 {number}, {least}")
        writer.effect(f"br i1 {enough}, label %gather, label %{following}")


def goes_on(writer: Writer, lanes: Lanes, active: str) -> tuple[str, str]:
    """(Whether more lanes are active than are computed again, which they are)."""
    bits = writer.value(f"bitcast {active} to i{lanes.width}")
    mask = writer.value(f"zext i{lanes.width} {bits} to i64")
    number = writer.value(f"call i64 @llvm.ctpop.i64(i64 {mask})")
    return writer.value(f"icmp sgt i64 {number}, %few"), mask


def leave(writer: Writer, mask: str) -> None:
    """Note the lanes that a loop leaves unfinished."""
    others = writer.value("load i64, ptr %unfinished")
    writer.effect(f"store i64 {writer.value(f'or i64 {others}, {mask}')}, ptr %unfinished")


def definitions(lanes: Lanes) -> str:
    """Functions that ``run`` calls. A list has room for 2 W numbers; behind them is how many it has."""
    return _TEXT.format(scalar=lanes.scalar, width=lanes.width, room=2 * lanes.width)


_TEXT = """
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.ctpop.i64(i64)

; Append the states of the lanes in the mask that are before the end; another list has the numbers of gathered ones.
define internal void @add_waiting(ptr %list, i64 %mask, i64 %state, i64 %end, ptr %numbers) nounwind noinline {{
entry:
  %counter = getelementptr i64, ptr %list, i64 {room}
  %gathered = icmp ne ptr %numbers, null
  br label %lane
lane:
  %left = phi i64 [ %mask, %entry ], [ %rest, %next ]
  %some = icmp ne i64 %left, 0
  br i1 %some, label %take, label %done
take:
  %k = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %less = sub i64 %left, 1
  %rest = and i64 %left, %less
  %own = add i64 %state, %k
  %inside = icmp slt i64 %own, %end
  br i1 %inside, label %add, label %next
add:
  %from = select i1 %gathered, ptr %numbers, ptr %list
  %source = getelementptr i64, ptr %from, i64 %k
  %known = load i64, ptr %source
  %which = select i1 %gathered, i64 %known, i64 %own
  %number = load i64, ptr %counter
  %place = getelementptr i64, ptr %list, i64 %number
  store i64 %which, ptr %place
  %more = add i64 %number, 1
  store i64 %more, ptr %counter
  br label %next
next:
  br label %lane
done:
  ret void
}}

; Copy the rows of the first W states of the list, the last of them again where there are fewer.
define internal void @gather_rows(ptr %to, ptr %from, i64 %stride, i64 %size, ptr %list) nounwind noinline {{
entry:
  %counter = getelementptr i64, ptr %list, i64 {room}
  %number = load i64, ptr %counter
  %last = sub i64 %number, 1
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %row ]
  %k = call i64 @llvm.smin.i64(i64 %r, i64 %last)
  %place = getelementptr i64, ptr %list, i64 %k
  %which = load i64, ptr %place
  %offset = mul i64 %which, %stride
  %source = getelementptr {scalar}, ptr %from, i64 %offset
  %to_offset = mul i64 %r, %size
  %target = getelementptr {scalar}, ptr %to, i64 %to_offset
  call void @copy_rows(ptr %target, ptr %source, i64 0, i64 %size, i64 1, i64 0)
  %r1 = add i64 %r, 1
  %again = icmp slt i64 %r1, {width}
  br i1 %again, label %row, label %done
done:
  ret void
}}

; Copy rows back to where the first W states of the list are.
define internal void @scatter_rows(ptr %to, ptr %from, i64 %size, ptr %list) nounwind noinline {{
entry:
  %counter = getelementptr i64, ptr %list, i64 {room}
  %all = load i64, ptr %counter
  %number = call i64 @llvm.smin.i64(i64 %all, i64 {width})
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %row ]
  %place = getelementptr i64, ptr %list, i64 %r
  %which = load i64, ptr %place
  %offset = mul i64 %which, %size
  %target = getelementptr {scalar}, ptr %to, i64 %offset
  %from_offset = mul i64 %r, %size
  %source = getelementptr {scalar}, ptr %from, i64 %from_offset
  call void @copy_rows(ptr %target, ptr %source, i64 0, i64 %size, i64 1, i64 0)
  %r1 = add i64 %r, 1
  %again = icmp slt i64 %r1, %number
  br i1 %again, label %row, label %done
done:
  ret void
}}

; Take the first W states off the list.
define internal void @drop_waiting(ptr %list) nounwind noinline {{
entry:
  %counter = getelementptr i64, ptr %list, i64 {room}
  %all = load i64, ptr %counter
  %number = call i64 @llvm.smin.i64(i64 %all, i64 {width})
  %left = sub i64 %all, %number
  store i64 %left, ptr %counter
  %rest = getelementptr i64, ptr %list, i64 %number
  %bytes = mul i64 %left, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %list, ptr %rest, i64 %bytes, i1 false)
  ret void
}}
"""
