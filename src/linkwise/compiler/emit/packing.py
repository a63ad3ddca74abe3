"""States that need more turns of a loop than their neighbours are computed again, together.

A block of W states waits for the last of them. Where a loop is ``uneven``, a block leaves it when at most W/8 of its
states are still active, and the numbers of these go to a list. As soon as the list has W states, their rows are copied
side by side and computed again from the begin, now until the last one has ended. Lanes know nothing of each other, so
that the results are those of a block that waits.
"""

from __future__ import annotations

from linkwise.compiler.emit.lanes import Lanes
from linkwise.compiler.ir.graph import Loop
from linkwise.compiler.ir.loops import Nest, Step
from linkwise.compiler.ir.schedule import LoopRegion


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


def definitions(lanes: Lanes) -> str:
    """Functions that ``run`` calls. The list has room for 2 W numbers; behind them is how many it has."""
    return _TEXT.format(scalar=lanes.scalar, width=lanes.width, room=2 * lanes.width)


_TEXT = """
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.ctpop.i64(i64)

; Append the states of the lanes in the mask that are before the end.
define internal void @add_waiting(ptr %list, i64 %mask, i64 %state, i64 %end) nounwind noinline {{
entry:
  %counter = getelementptr i64, ptr %list, i64 {room}
  br label %lane
lane:
  %left = phi i64 [ %mask, %entry ], [ %rest, %next ]
  %some = icmp ne i64 %left, 0
  br i1 %some, label %take, label %done
take:
  %k = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %less = sub i64 %left, 1
  %rest = and i64 %left, %less
  %which = add i64 %state, %k
  %inside = icmp slt i64 %which, %end
  br i1 %inside, label %add, label %next
add:
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
