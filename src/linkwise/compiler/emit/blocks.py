"""A program as an LLVM module: the loop over blocks of W states around its statements.

The module has one function, ``void run(i64 first, i64 count, ptr arguments, ptr scratch)``: it computes the states from
``first`` on, ``count`` of them. ``arguments`` is an array of 64-bit words. There are three layouts of a batch:

* ``dense`` for functions of a state: the addresses of the outputs, the addresses of the inputs, then the stride of each
  input in scalars from one state to the next (0: one state for the whole batch). Outputs are dense and overlap no
  input. The code reads W dense rows of every input, at addresses known up to one base. Where the rows of the caller are
  not like that, they are copied to ``scratch`` first (see ``scratch_scalars``): the last, incomplete block; inputs with
  gaps between their rows; and, once per call, an input that is the same for all states (see ``steady``).
* ``spread`` for loops over time, whose arrays may be long: the whole numbers of the call, then for every array its
  address and its stride in scalars from one state to the next. Every lane has its own address. Lanes beyond the last
  state repeat it: they read the same numbers and write the same results to the same places. Where lanes work on one
  state together, a block is one state.
* ``columns`` for studies: every scalar of an input or output has a column of its own, with an entry for each state. The
  addresses of the first columns of the inputs and of the outputs ; the next column begins one stride further. Whole
  vectors are computed: what lies behind the last state is read, and overwritten in the outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from linkwise.compiler.emit import alike, packing, turns
from linkwise.compiler.emit.lanes import Lanes, Writer, intrinsics, table
from linkwise.compiler.emit.llvm import Renderer
from linkwise.compiler.emit.memory import Lanewise, Memory, Pointers, Rows, Same, Words, spread
from linkwise.compiler.emit.steady import RowsOf, Steady
from linkwise.compiler.ir.graph import Loop
from linkwise.compiler.ir.loops import INDEX, Array, Element, Nest

# Row r of the copy is row min(r, last) of the source.
_MINIMUM = "declare i64 @llvm.smin.i64(i64, i64)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
_COPY_ROWS = """
define internal void @copy_rows(ptr %to, ptr %from, i64 %stride, i64 %size, i64 %rows, i64 %last)
    nounwind noinline {{
entry:
  %bytes = mul i64 %size, {bytes}
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %row, label %done
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %row ]
  %source_row = call i64 @llvm.smin.i64(i64 %r, i64 %last)
  %from_offset = mul i64 %source_row, %stride
  %to_offset = mul i64 %r, %size
  %source = getelementptr {scalar}, ptr %from, i64 %from_offset
  %target = getelementptr {scalar}, ptr %to, i64 %to_offset
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
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


def module(nest: Nest, width: int, strides: tuple[int, int] | None = None, *, spills: bool = True) -> str:
    """The text of the module for blocks of ``width`` states; ``strides`` lead from column to column of inputs and
    outputs where these have columns. Without ``spills`` LLVM alone chooses what is in registers."""
    lanes = Lanes(width if nest.lanes == 1 else nest.lanes, nest.dtype)
    widths = {1, *alike.widths(lanes.bits), *turns.widths(lanes.bits)} if lanes.width == 1 else {lanes.width}
    parts = [
        _tables(nest),
        *(intrinsics(Lanes(each, nest.dtype)) for each in sorted(widths)),
        _MINIMUM,
    ]
    if strides is not None:
        frame: _Frame = _Columns(nest, lanes, strides)
    elif nest.numbers or any(a.rows != 1 for a in nest.arrays if a.kind in ("input", "output", "both")):
        frame = _Spread(nest, lanes)
    else:
        frame = _Dense(nest, lanes)
        if width > 1:
            parts.append(_COPY_ROWS.format(scalar=lanes.scalar, bytes=lanes.bytes, width=width))
            parts.append(frame.steady.definitions)
        if frame.packed:
            parts.append(packing.definitions(lanes))
    frame.writer.spills = spills
    aligned = lanes.width > 1 and not (
        isinstance(frame, _Spread) and nest.lanes == 1
    )  # for vectors on the stack
    attributes = f"alignstack({min(64, lanes.width * lanes.bytes)}) " if aligned else ""
    parts.append(
        f"define void @run(i64 %first, i64 %count, ptr %arguments, ptr %scratch) nounwind {attributes}{{\nentry:"
    )
    parts.extend(frame.lines())
    parts.append("}\n" + frame.writer.definitions())
    room = sum(map(_scalars, nest.arrays))
    if room:
        parts.append(f"define i64 @room() nounwind {{\n  ret i64 {room * lanes.width}\n}}\n")
    return "\n".join(parts)


def scratch_scalars(in_sizes: Sequence[int], out_sizes: Sequence[int], width: int) -> int:
    """How many scalars ``scratch`` must have room for."""
    return width * (sum(in_sizes) + sum(out_sizes)) if width > 1 else 0


def _scalars(array: Array) -> int:
    """Scratch of one state for an array."""
    return array.columns * int(array.rows) if array.kind == "scratch" else 0


def _tables(nest: Nest) -> str:
    """Constants and tables of whole numbers, as globals of the module."""
    text = ""
    with np.errstate(over="ignore"):
        for name, values in nest.constants.items():
            numbers = np.ravel(values) if np.size(values) else np.zeros(1)
            text += table(name, numbers.astype(nest.dtype))
    for name, values in nest.tables.items():
        text += table(name, np.array(values, np.int64))
    return text


class _Frame(ABC):
    """The loop over blocks of states."""

    def __init__(self, nest: Nest, lanes: Lanes):
        self.nest, self.lanes = nest, lanes
        self.states = lanes.width if nest.lanes == 1 else 1  # of a block
        self.writer = Writer()
        self.packed: set[Loop] = set()

    def lines(self) -> list[str]:
        writer = self.writer
        self.prepare()
        writer.value("add i64 %first, %count", "%end")
        writer.effect("br label %blocks")
        writer.start_block("blocks")
        writer.value("phi i64 [ %first, %entry ], [ %following, %next ]", "%state")
        left = writer.value("sub i64 %end, %state")
        more = writer.value(f"icmp sgt i64 {left}, 0")
        writer.effect(f"br i1 {more}, label %place, label %last")

        writer.start_block("place")
        self.block(left)

        writer.start_block("next")
        writer.value(f"add i64 %state, {self.states}", "%following")
        writer.effect("br label %blocks")
        writer.start_block("last")
        if self.packed:
            packing.finish(writer)
        writer.effect("br label %done")
        writer.start_block("done")
        writer.effect("ret void")
        return writer.first_lines + writer.lines

    @abstractmethod
    def prepare(self) -> None:
        """What is done once, before the first block."""

    @abstractmethod
    def block(self, left: str) -> None:
        """One block; ``left`` states are still to be computed. Ends with a jump to ``next``."""

    def renderer(self, used: int = 0) -> Renderer:
        """What writes the statements; ``used`` scalars of the scratch room are taken."""
        memory: dict[str, Memory] = {}
        for array in self.nest.arrays:
            if array.kind == "constant":
                memory[array.name] = Same(array, f"@{array.name}")
            elif array.kind == "scratch":
                memory[array.name] = Lanewise(array, self.at("%scratch", str(used)))
                used += _scalars(array) * self.lanes.width
        return Renderer(self.nest, self.lanes, self.writer, memory)

    def at(self, base: str, offset: str, kind: str | None = None) -> str:
        return self.writer.value(f"getelementptr {kind or self.lanes.scalar}, ptr {base}, i64 {offset}")


class _Spread(_Frame):
    """Every lane has its own addresses."""

    def prepare(self) -> None:
        numbers = self.nest.numbers
        self.numbers = {name: self.writer.argument("i64", k) for k, name in enumerate(numbers)}
        self.arrays = [array for array in self.nest.arrays if array.kind in ("input", "output", "both")]
        self.places = [
            (
                self.writer.argument("ptr", len(numbers) + 2 * k),
                self.writer.argument("i64", len(numbers) + 2 * k + 1),
            )
            for k in range(len(self.arrays))
        ]

    def block(self, left: str) -> None:
        writer = self.writer
        last = writer.value(f"sub i64 {left}, 1")
        states: list[str] = []
        for lane in range(self.states):
            offset = writer.value(f"call i64 @llvm.smin.i64(i64 {lane}, i64 {last})")
            states.append(writer.value(f"add i64 %state, {offset}"))
        renderer = self.renderer()
        memory: dict[str, Memory] = dict(renderer.memory)
        for array, (base, stride) in zip(self.arrays, self.places, strict=True):
            if array.shared:
                memory[array.name] = Same(array, base)
                continue
            offsets = [writer.value(f"mul i64 {state}, {stride}") for state in states]
            kind = "i32" if array.words else None
            pointers = [self.at(base, offset, kind) for offset in offsets]
            memory[array.name] = self.layout(array, pointers)
        renderer.memory = memory
        if self.nest.lanes > 1:
            renderer.now[INDEX] = f"<{', '.join(f'i64 {lane}' for lane in range(self.lanes.width))}>"
        renderer.now.update(self.numbers)
        renderer.write()
        writer.effect("br label %next")

    def layout(self, array: Array, pointers: list[str]) -> Memory:
        if array.words:
            return Words(array, pointers[0])
        if array.lanewise:
            return Lanewise(array, pointers[0])
        return Same(array, pointers[0]) if self.nest.lanes > 1 else Pointers(array, pointers)


class _Columns(_Frame):
    """The entries of neighbouring states lie side by side: nothing is transposed."""

    def __init__(self, nest: Nest, lanes: Lanes, strides: tuple[int, int]):
        super().__init__(nest, lanes)
        self.strides: dict[str, int] = dict(zip(("input", "output"), strides, strict=True))

    def prepare(self) -> None:
        kinds = sorted({array.kind for array in self.nest.arrays})
        self.bases = {kind: self.writer.argument("ptr", k) for k, kind in enumerate(kinds)}

    def block(self, left: str) -> None:
        place = self.writer.value("sub i64 %state, %first")
        taken = dict.fromkeys(self.bases, 0)  # columns so far
        memory: dict[str, Memory] = {}
        for array in self.nest.arrays:
            stride, start = self.strides[array.kind], taken[array.kind]

            def place_of(to: Renderer, element: Element, start: int = start, stride: int = stride) -> str:
                return to.writer.value(f"add i64 {place}, {(start + (element.column.number or 0)) * stride}")

            memory[array.name] = Lanewise(array, self.bases[array.kind], place_of)
            taken[array.kind] += array.columns
        renderer = Renderer(self.nest, self.lanes, self.writer, memory)
        index, lanes = (
            spread(renderer, "i64", "%state"),
            ", ".join(f"i64 {k}" for k in range(self.lanes.width)),
        )
        if self.lanes.width > 1:
            index = self.writer.value(f"add {self.lanes.vector('i64')} {index}, <{lanes}>")
        renderer.now[INDEX] = index
        renderer.write()
        self.writer.effect("br label %next")


class _Dense(_Frame):
    """W rows one after the other, where they lie or copied; some are computed again (``packing``)."""

    def __init__(self, nest: Nest, lanes: Lanes):
        super().__init__(nest, lanes)
        self.packed = packing.uneven_loops(nest) if packing.few(lanes) else set()
        self.steady = Steady(nest, lanes, bool(self.packed))

    def prepare(self) -> None:
        writer = self.writer
        if self.packed:
            packing.begin(writer, self.lanes)
        outs, ins = ([a for a in self.nest.arrays if a.kind == kind] for kind in ("output", "input"))
        bases = [writer.argument("ptr", k) for k in range(len(outs) + len(ins))]
        strides = [writer.argument("i64", len(bases) + k) for k in range(len(ins))]
        self.outs = [RowsOf(a, base, str(a.columns)) for a, base in zip(outs, bases, strict=False)]
        self.ins = [RowsOf(*each) for each in zip(ins, bases[len(outs) :], strides, strict=True)]
        self.scratch = scratch_scalars([a.columns for a in ins], [a.columns for a in outs], self.lanes.width)
        if self.lanes.width > 1:
            self._repeat_single_states()

    def block(self, left: str) -> None:
        here = [
            self.at(rows.base, self.writer.value(f"mul i64 %state, {rows.stride}"))
            for rows in (*self.ins, *self.outs)
        ]
        if self.lanes.width == 1:
            # LLVM would try to move every address of the block with the loop over states, which gains nothing
            self._statements([self.writer.value(f"freeze ptr {base}") for base in here])
            self.writer.effect("br label %next")
        else:
            self._wide_block(left, here)

    def _statements(self, bases: Sequence[str]) -> None:
        renderer = self.renderer(self.scratch)
        renderer.packed = self.packed
        memory: dict[str, Memory] = {}
        for rows, base in zip((*self.ins, *self.outs), bases, strict=True):
            lanes = Lanewise(rows.array, rows.lanes) if rows.lanes else None
            memory[rows.array.name] = lanes or Rows(renderer, rows.array, base)
        renderer.memory = {**renderer.memory, **memory}
        renderer.write()

    def _repeat_single_states(self) -> None:
        """Replace an input of stride 0 by W copies of its state in the scratch room."""
        writer, width, offset = self.writer, self.lanes.width, 0
        for rows in (*self.ins, *self.outs):
            rows.room = self.at("%scratch", str(offset))
            offset += rows.array.columns * width
        for rows in self.ins:
            if self.steady.spread(writer, rows):
                continue
            size = rows.array.columns
            single = writer.value(f"icmp eq i64 {rows.stride}, 0")
            number = writer.value(f"select i1 {single}, i64 {width}, i64 0")
            source = f"ptr {rows.room}, ptr {rows.base}"
            writer.effect(f"call void @copy_rows({source}, i64 0, i64 {size}, i64 {number}, i64 0)")
            rows.base = writer.value(f"select i1 {single}, {source}")
            rows.gap = writer.value(f"select i1 {single}, i64 {size}, i64 {rows.stride}")

    def _wide_block(self, left: str, here: list[str]) -> None:
        """A block where it lies if it can be, else by way of the scratch room."""
        writer, split = self.writer, len(self.ins)
        full = usable = writer.value(f"icmp sge i64 {left}, {self.lanes.width}")
        for rows in self.ins:
            dense = writer.value(f"icmp eq i64 {rows.gap}, {rows.array.columns}")
            usable = writer.value(f"and i1 {usable}, {dense}")
        writer.effect(f"br i1 {usable}, label %block, label %copy")

        writer.start_block("copy")
        copied: list[str] = []
        for rows, base in zip(self.ins, here[:split], strict=True):
            # Lanes beyond the end repeat the last state, so that they leave a loop when it does.
            given = f"ptr {rows.room}, ptr {base}, i64 {rows.gap}, i64 {rows.array.columns}, i64 {left}"
            copied.append(base if rows.lanes else writer.value(f"call ptr @dense_rows({given})"))
        for rows, base in zip(self.outs, here[split:], strict=True):
            copied.append(writer.value(f"select i1 {full}, ptr {base}, ptr {rows.room}"))
        writer.effect("br label %block")

        writer.start_block("block")
        sources: list[str] = []
        for a, b, rows in zip(here, copied, (*self.ins, *self.outs), strict=True):
            again = f", [ {rows.room}, %gather ]" if self.packed else ""
            sources.append(writer.value(f"phi ptr [ {a}, %place ], [ {b}, %copy ]{again}"))
        if self.packed:
            packing.start_block(writer, self.lanes)
        self.steady.vary(writer, self.ins, here, left)
        self._statements(sources)
        if self.packed:
            full = packing.end_block(writer, self.lanes, left)
        following = "%check" if self.packed else "%next"
        writer.effect(f"br i1 {full}, label {following}, label %copy_back")

        writer.start_block("copy_back")
        last = writer.value(f"sub i64 {left}, 1")
        for rows in self.outs:
            size = rows.array.columns
            base = self.at(rows.base, writer.value(f"mul i64 %state, {rows.stride}"))
            arguments = f"ptr {base}, ptr {rows.room}, i64 {size}, i64 {size}, i64 {left}, i64 {last}"
            writer.effect(f"call void @copy_rows({arguments})")
        writer.effect(f"br label {following}")
        if self.packed:
            ins = [(rows.base, rows.room, rows.stride, rows.array.columns) for rows in self.ins]
            outs = [(rows.base, rows.room, rows.array.columns) for rows in self.outs]
            packing.compute_again(writer, self.lanes, ins, outs)
