"""Turns of a loop side by side in the lanes of vectors, where one state is computed: the stages of a horizon, the
columns of a matrix.

Every lane takes a turn of its own and does the same operations as a loop would: the bits are the same. The last vector
ends with the last turn, so that it may repeat turns of the one before. Turns that must not run twice (``repeatable``)
are left to a plain loop where they do not fill a vector. Long turns of a number that is known only while the code runs
are written once: lanes beyond the last turn take that one, too, at the same time and with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from linkwise.compiler.emit import alike, transpose
from linkwise.compiler.emit.lanes import Lanes
from linkwise.compiler.emit.memory import Lanewise, Memory, Output, Pointers, spread
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.loops import INDEX, Element, For, Register, Step, Whole, slope, statements, whole
from linkwise.compiler.runtime import host

if TYPE_CHECKING:
    from linkwise.compiler.emit.llvm import Renderer

ROW = 8  # numbers of a row
LONG = 1000  # operations of turns that are written once


def side_by_side(outer: Renderer, loop: For) -> bool:
    """Write a loop whose lanes take a turn each; False where it has too few turns or turns of unknown number."""
    first, stop = loop.first.number, loop.stop.number
    if loop.step.number != 1 or _copies_rows(loop):
        return False
    if first is None or stop is None:
        return _of_any_number(outer, loop)
    width = next((width for width in widths(outer.lanes.bits) if width <= stop - first), 1)
    if width == 1:
        return False
    end = stop
    if not loop.repeatable:
        stop -= (stop - first) % width
    _vectors(outer, loop, width, str(first), str(stop))
    if stop < end:
        outer.loop(replace(loop, first=whole(stop), side_by_side=False))
    return True


def _of_any_number(outer: Renderer, loop: For) -> bool:
    """Turns whose number is known while the code runs: as vectors where they fill one, the others one by one."""
    writer, name = outer.writer, f"some{outer.loops}"
    outer.loops += 1
    outer.wholes = {}
    first, stop = outer.whole(loop.first), outer.whole(loop.stop)
    known = list(outer.now)
    if sum(len(step.body) for step in statements(loop.body) if isinstance(step, Step)) >= LONG:
        some = writer.value(f"icmp slt i64 {first}, {stop}")
        writer.effect(f"br i1 {some}, label %{name}.some, label %{name}.none")
        writer.start_block(f"{name}.some")
        held = outer.enter()
        _vectors(outer, loop, widths(outer.lanes.bits)[0], first, stop, clamped=True)
        outer.leave(held, known)
        writer.effect(f"br label %{name}.none")
        writer.start_block(f"{name}.none")
        return True
    for width in widths(outer.lanes.bits):
        count = writer.value(f"sub i64 {stop}, {first}")
        enough = writer.value(f"icmp sge i64 {count}, {width}")
        whole_vectors = writer.value(f"and i64 {count}, {-width}")
        end = stop if loop.repeatable else writer.value(f"add i64 {first}, {whole_vectors}")
        before = writer.block
        writer.effect(f"br i1 {enough}, label %{name}.{width}, label %{name}.below{width}")
        writer.start_block(f"{name}.{width}")
        held = outer.enter()
        _vectors(outer, loop, width, first, end)
        outer.leave(held, known)
        after = writer.block
        writer.effect(f"br label %{name}.below{width}")
        writer.start_block(f"{name}.below{width}")
        first = writer.value(f"phi i64 [ {first}, %{before} ], [ {end}, %{after} ]")
    held = outer.enter()
    outer.now[name] = first
    outer.loop(replace(loop, first=Whole("name", (name,)), side_by_side=False))
    outer.leave(held, known)
    return True


def _vectors(outer: Renderer, loop: For, width: int, first: str, stop: str, *, clamped: bool = False) -> None:
    """The turns from ``first`` to ``stop``, so many at a time: as many as fill a vector at least or, ``clamped``, any
    number, where lanes that are left take the last turn."""
    writer, number = outer.writer, outer.loops
    outer.loops += 1
    name = f"turns{number}"
    last = 1 if clamped else width
    last_at = str(int(stop) - last) if stop.isdigit() else writer.value(f"sub i64 {stop}, {last}")
    before = writer.block
    writer.effect(f"br label %{name}")
    writer.start_block(name)
    place = len(writer.lines)
    at = writer.value(f"call i64 @llvm.smin.i64(i64 %{name}.turn, i64 {last_at})")
    apart: list[str] = []
    if clamped:
        left = writer.value(f"sub i64 {last_at}, {at}")
        apart = [writer.value(f"call i64 @llvm.smin.i64(i64 {lane}, i64 {left})") for lane in range(width)]
    inner = type(outer)(outer.nest, Lanes(width, outer.nest.dtype), writer, {})
    inner.memory = {key: _Turns(memory, loop.name, apart) for key, memory in outer.memory.items()}
    inner.loops, inner.divisions = outer.loops, outer.divisions
    inner.now = {key: now for key, now in outer.now.items() if isinstance(key, str)}
    inner.now |= {
        key: spread(inner, inner.lanes.scalar, now)
        for key, now in outer.now.items()
        if isinstance(key, Register) and key != INDEX
    }
    inner.now[loop.name] = at
    inner.write(loop.body)
    outer.loops, outer.divisions = inner.loops, inner.divisions
    outer.wholes = {}
    following = writer.value(f"add i64 %{name}.turn, {width}")
    more = writer.value(f"icmp slt i64 {following}, {stop}")
    last = writer.block
    writer.effect(f"br i1 {more}, label %{name}, label %{name}.end")
    writer.lines.insert(place, f"  %{name}.turn = phi i64 [ {first}, %{before} ], [ {following}, %{last} ]")
    writer.start_block(f"{name}.end")


def _copies_rows(loop: For) -> bool:
    """Whether turns copy rows and compute nothing: numbers need not become lanes and rows again."""
    (step,) = loop.body if len(loop.body) == 1 else (None,)
    if isinstance(step, For):
        return _copies_rows(step)
    return isinstance(step, Step) and not step.body and len(step.writes) >= ROW


def widths(bits: int) -> list[int]:
    """How many turns may run side by side: a register of this processor or half of one."""
    return [size // bits for size in (512, 256) if size <= max(host.vector_bits(), alike.VECTOR_BITS)]


class _Turns(Pointers):
    """An array of one state; a place that depends on the turn is another one for each lane.

    Args:
        memory: the array.
        loop: whose turns are lanes.
        apart: by how many turns lanes are behind the first; none: each by one more than the one before.
    """

    def __init__(self, memory: Memory, loop: str, apart: Sequence[str] = ()):
        super().__init__(memory.array, ())
        self._apart = apart
        self.base: str = memory.base  # type: ignore[attr-defined]  # one state: every layout is rows from there on
        self._loop = loop

    def _place(self, place: Element) -> Whole:
        return place.column if place.row is None else place.row * self.array.pitch + place.column

    def _stride(self, place: Element) -> int:
        found = slope(self._place(place), self._loop)
        assert found is not None, place
        return found

    def _first(self, to: Renderer, place: Element) -> str:
        """The address in the first lane; that of a row is computed once where its columns are known numbers."""
        scalar, row, column = to.lanes.scalar, place.row, place.column.number
        if row is None or column is None:
            return to.writer.value(
                f"getelementptr {scalar}, ptr {self.base}, i64 {to.whole(self._place(place))}"
            )
        key = Whole("row", (self.array.name, row))
        if key not in to.wholes:
            start = to.whole(row * self.array.pitch)
            to.wholes[key] = to.writer.value(f"getelementptr {scalar}, ptr {self.base}, i64 {start}")
        if column == 0:
            return to.wholes[key]
        return to.writer.value(f"getelementptr {scalar}, ptr {to.wholes[key]}, i64 {column}")

    def each(self, to: Renderer, place: Element) -> list[str]:
        first, stride, lanes = self._first(to, place), self._stride(place), range(to.lanes.width)
        return [
            to.writer.value(
                f"getelementptr {to.lanes.scalar}, ptr {first}, i64 {self._away(to, lane, stride)}"
            )
            for lane in lanes
        ]

    def _away(self, to: Renderer, lane: int, stride: int) -> str:
        """How far behind that of the first lane a place lies."""
        if not self._apart or not stride:
            return str(lane * stride)
        key = Whole("apart", (lane, stride))
        if key not in to.wholes:
            to.wholes[key] = to.writer.value(f"mul i64 {self._apart[lane]}, {stride}")
        return to.wholes[key]

    def _is_vector(self, place: Element) -> bool:
        """Whether what the lanes have lies side by side."""
        return self._stride(place) == 1 and not self._apart

    def address(self, to: Renderer, place: Element) -> transpose.Address:
        rows = self.each(to, Element(place.array, Whole("number", (0,)), place.row))
        scalar = to.lanes.scalar
        return lambda lane, column: (
            to.writer.value(f"getelementptr {scalar}, ptr {rows[lane]}, i64 {column}")
            if column
            else rows[lane]
        )

    def _by_rows(self, place: Element) -> bool:
        """Whether lanes have rows of their own, which are read and written several columns at a time."""
        return place.row is not None and place.column.number is not None and slope(place.row, self._loop) == 1

    def load(self, to: Renderer, place: Element) -> dict[Element, str]:
        stride, lanes = self._stride(place), to.lanes
        if stride == 0:
            scalar = to.writer.value(f"load {lanes.scalar}, ptr {self._first(to, place)}")
            return {place: spread(to, lanes.scalar, scalar)}
        if self._is_vector(place):
            first = self._first(to, place)
            return {place: to.writer.value(f"load {lanes.real}, ptr {first}, align {lanes.bytes}")}
        if self._by_rows(place):
            return super().load(to, place)
        scalars = [to.writer.value(f"load {lanes.scalar}, ptr {at}") for at in self.each(to, place)]
        return {place: _vector(to, scalars)}

    def quick(self, to: Renderer, place: Element) -> bool:
        return self._stride(place) == 0 or self._is_vector(place)

    def store(self, to: Renderer, place: Element, value: str) -> None:
        stride, lanes = self._stride(place), to.lanes
        if stride == 0:
            raise AssertionError(f"turns that run side by side write the same place: {place}")
        if self._is_vector(place):
            to.writer.effect(f"store {lanes.real} {value}, ptr {self._first(to, place)}, align {lanes.bytes}")
        else:
            super().store(to, place, value)

    def outputs(self, to: Renderer, writes: Sequence[tuple[Element, Node]]) -> list[Output]:
        if all(self._by_rows(place) for place, _ in writes) and self.array.columns > 1:
            return super().outputs(to, writes)
        return Memory.outputs(self, to, writes)


def _vector(to: Renderer, scalars: Sequence[str]) -> str:
    from linkwise.compiler.emit.lanes import gathered

    return gathered(to.writer, to.lanes, scalars)


# -- copies of neighbours, several with one load and one store --------------------------------------------------------

LEAST_COPIED = 8
"""Scalars of a step that is written this way."""
COPY_WIDTHS = (8, 4, 2, 1)
"""Scalars that are copied at a time; processors with shorter registers take several."""


def copied(to: Renderer, step: Step) -> bool:
    """Write a step that computes nothing; False where it is another one, or where its places are not known to lie side
    by side."""
    if to.lanes.width > 1 or step.body or step.adds or len(step.writes) < LEAST_COPIED:
        return False
    moves: list[tuple[Element | float, Element]] = []
    carried: list[tuple[Register, Element | float]] = []
    for place, node in step.writes:
        source = _source(step, node)
        if isinstance(place, Register) and source is not None:
            carried.append((place, source))
        elif isinstance(place, Element) and source is not None:
            moves.append((source, place))
        else:
            return False
    places = [place for move in moves for place in move if isinstance(place, Element)]
    if not all(isinstance(to.memory[place.array], (Pointers, Lanewise)) for place in places):
        return False
    read = {source.array for source, _ in moves if isinstance(source, Element)}
    if read & {place.array for _, place in moves}:
        return False
    values = [
        to.loaded(source) if isinstance(source, Element) else to.constant(source) for _, source in carried
    ]
    for run in _runs(moves):
        _copy(to, run)
    to.now.update(zip((register for register, _ in carried), values, strict=True))
    return True


def _source(step: Step, node: Node) -> Element | float | None:
    """What a node is: a scalar in memory or a number."""
    if node.op == "const":
        assert isinstance(node.value, (int, float))
        return float(node.value)
    place = step.reads.get(node.value) if node.op == "input" else None
    return place if isinstance(place, Element) else None


def _runs(moves: Sequence[tuple[Element | float, Element]]) -> list[list[tuple[Element | float, Element]]]:
    """Moves whose places, and whose sources, are neighbours."""
    runs: list[list[tuple[Element | float, Element]]] = []
    for move in moves:
        if runs and all(_follows(b, a) for a, b in zip(runs[-1][-1], move, strict=True)):
            runs[-1].append(move)
        else:
            runs.append([move])
    return runs


def _follows(b: Element | float, a: Element | float) -> bool:
    if not isinstance(a, Element) or not isinstance(b, Element):
        return repr(a) == repr(b)
    if a.array != b.array or a.row != b.row:
        return False
    (rest, first), (other, second) = _parts(a.column), _parts(b.column)
    return second - first == 1 and rest == other


def _parts(column: Whole) -> tuple[list[Whole], int]:
    """Terms of a sum that are not known, and what the others come to."""
    if column.number is not None:
        return [], column.number
    if column.op != "add":
        return [column], 0
    (own, first), (more, second) = (_parts(term) for term in column.args)
    return [*own, *more], first + second


def _copy(to: Renderer, run: Sequence[tuple[Element | float, Element]]) -> None:
    writer, lanes, at = to.writer, to.lanes, 0
    while at < len(run):
        width = next(width for width in COPY_WIDTHS if width <= len(run) - at)
        source, place = run[at]
        kind = lanes.scalar if width == 1 else f"<{width} x {lanes.scalar}>"
        if not isinstance(source, Element):
            value = to.constant(source)
            if width > 1:
                value = f"<{', '.join([f'{lanes.scalar} {value}'] * width)}>"
        else:
            value = writer.value(f"load {kind}, ptr {_place_of(to, source)}, align {lanes.bytes}")
        writer.effect(f"store {kind} {value}, ptr {_place_of(to, place)}, align {lanes.bytes}")
        at += width


def _place_of(to: Renderer, place: Element) -> str:
    memory: Memory = to.memory[place.array]
    if isinstance(memory, Lanewise):
        return memory.at(to, place)
    assert isinstance(memory, Pointers)
    return memory.each(to, place)[0]
