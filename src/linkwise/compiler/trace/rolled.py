"""Tracing loops: what ``linkwise.language`` does while a function becomes a program.

A function is first traced with all loops unrolled. If that becomes too long (``MOST_NODES``) it is traced again: bodies
of loops once, arrays as memory. Loops that are short when they are written out (``UNROLLED`` operations) are unrolled,
the inner ones first; a third trace does that. The result is a ``Nest`` (``rolled_statements``), which every target
renders; ``traced_function`` has the three traces.

A traced body is a list of steps. A step ends where a loop begins or ends, and before a place is read that it may have
written.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from linkwise import language
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.loops import Array, Register
from linkwise.compiler.trace.traced_arrays import Index, Stored, Table, index
from linkwise.errors import TraceError
from linkwise.language import Variable, current_tracer, plain

MOST_NODES = 15_000
"""Nodes of a function from which its loops are not all unrolled: compiling them takes more than a second."""
UNROLLED = 600
"""Operations of all turns of a loop up to which it is unrolled inside a longer program."""
SPLIT = 128
"""Operations of a step from which the next turn of an unrolled loop is another one: its values stay in registers."""

Site = tuple[tuple[str, int], ...]
"""Where a loop stands: file and line of every call from the traced function to it."""


class TooLongError(TraceError):
    """Unrolled, the function has too many operations."""


@contextmanager
def tracing(tracer: Any) -> Generator[None, None, None]:
    token = current_tracer.set(tracer)
    try:
        yield
    finally:
        current_tracer.reset(token)


class Unrolled:
    """Loops are written out; arrays hold symbols."""

    leaves_out = False

    def __init__(self, graph: Graph, most: int | None = MOST_NODES):
        self.graph, self.most = graph, most

    def loop(
        self, first: int, stop: int, step: int, parallel: bool = False, site: Site | None = None
    ) -> Iterator[int]:
        for k in range(first, stop, step):
            if self.most is not None and self.graph.count > self.most:
                raise TooLongError(f"more than {self.most} operations")
            yield k

    def needed(self, still: Variable) -> Iterator[int]:
        yield 0

    def array(self, shape: tuple[int, ...], fill: float | None) -> np.ndarray:
        array = np.empty(shape, object)
        array[...] = 0.0 if fill is None else fill
        return array

    def variable(self, value: Any) -> Variable:
        return Variable(plain(value))

    def stored(self, value: Any) -> Any:
        return value

    def straight(self, function: Any, reads: Any, writes: Any) -> None:
        language.run_straight(function, reads, writes)

    def triangle(self, row: Any) -> Any:
        raise TraceError(f"triangle: expected the number of a row, got {row!r}")

    def whole_numbers(self, values: tuple[int, ...]) -> tuple[int, ...]:
        return values


class _Held(Variable):
    """A variable in a register."""

    __slots__ = ("register", "tracer")

    def __init__(self, tracer: Rolled, register: Register):
        self.tracer, self.register = tracer, register

    @property
    def value(self) -> Any:
        return self.tracer.read_place(self.register)

    @value.setter
    def value(self, new: Any) -> None:
        self.tracer.write_place(self.register, plain(new))


# -- the trace --------------------------------------------------------------------------------------------------------

Key = Register | tuple[str, Index]
"""A register, or an array and a place in it."""


@dataclass(eq=False)
class OpenStep:
    """Places that are read, and what is written; nodes made while it was open belong to it."""

    block: Block
    number: int
    reads: dict[Key, Node] = field(default_factory=dict[Key, Node])
    writes: dict[Key, Node] = field(default_factory=dict[Key, Node])
    kept: dict[Node, Register] = field(default_factory=dict[Node, Register])
    written: dict[str, set[Any]] = field(default_factory=dict[str, set[Any]])
    """For each array that is written, the terms of the places without their constants."""

    def write(self, key: Key, node: Node) -> None:
        self.writes[key] = node
        if not isinstance(key, Register):
            self.written.setdefault(key[0], set()).add(key[1].terms)

    def may_write(self, key: Key) -> bool:
        """Whether a place that was written can be this one, unless it is exactly this one: places with the same terms
        differ by their constants, others may be the same in some turn."""
        if isinstance(key, Register):
            return False
        return any(terms != key[1].terms for terms in self.written.get(key[0], ()))


@dataclass(eq=False)
class TracedLoop:
    """A loop and its body."""

    name: str
    first: Index
    stop: Index
    step: int
    body: Block
    site: Site
    parallel: bool = False
    still: Register | None = None
    """Of ``language.needed``: one turn if it is negative, else none."""


@dataclass(eq=False)
class StraightPart:
    """Straight-line arithmetic with a graph of its own, traced when statements are made."""

    function: Callable[..., Sequence[Sequence[Any]]]
    reads: list[list[Key]]
    writes: list[list[Key]]


@dataclass(eq=False)
class Block:
    """The steps, loops, straight-line parts and declarations of a body."""

    around: tuple[Block, ...]
    items: list[OpenStep | TracedLoop | StraightPart | Register] = field(
        default_factory=list["OpenStep | TracedLoop | StraightPart | Register"]
    )


class Rolled:
    """Records the bodies of loops once."""

    def __init__(
        self,
        graph: Graph,
        unrolled: frozenset[Site] = frozenset(),
        longest: int | None = None,
        constant_time: bool = False,
    ):
        self.graph, self.unrolled, self.constant_time = graph, unrolled, constant_time
        self.longest = UNROLLED if longest is None else longest
        self.arrays: dict[str, Array] = {}
        self.block = self.root = Block(())
        self.steps: list[OpenStep] = []
        self.parts: list[StraightPart] = []
        self.tested: set[Register] = set()  # by ``needed``
        self.starts: list[int] = []  # the number of nodes when each step began
        self._loops = self._registers = 0
        self._tables: dict[tuple[int, ...], Table] = {}
        self._triangle = Table("triangle", ())
        self._ranges: dict[str, tuple[int, int]] = {}  # of the numbers of turns
        self._root_frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        self._left: str = ""
        self._depth = 0  # of unrolled loops
        self._side_by_side = False  # whether the body around is that of a parallel loop
        self._step: OpenStep = self._open()

    # -- what the language calls

    @property
    def leaves_out(self) -> bool:
        return not self.constant_time

    def loop(
        self, first: Any, stop: Any, step: int, parallel: bool = False, site: Site | None = None
    ) -> Iterator[Any]:
        if step not in (1, -1):
            raise TraceError(f"span: expected a step of 1 or −1, got {step}")
        site = self._site() if site is None else site
        known = isinstance(first, int) and isinstance(stop, int)
        if known and (site in self.unrolled or len(range(first, stop, step)) <= 1):
            self._depth += 1
            for k in range(first, stop, step):
                if self._depth == 1 and not self._side_by_side and self.graph.count - self.starts[-1] > SPLIT:
                    self._step = self._open()
                yield k
            self._depth -= 1
            return
        yield from self._recorded(index(first), index(stop), step, site, parallel)

    def needed(self, still: _Held) -> Iterator[Any]:
        if (
            self.constant_time
        ):  # steps begin where those of the other program do: the same sums, the same bits
            before, self._depth = self._depth, 0
            self._step = self._open()
            yield 0
            self._depth = before
            self._step = self._open()
            return
        if self._side_by_side:
            raise TraceError("needed: turns of a parallel loop are taken side by side")
        self.tested.add(still.register)
        yield from self._recorded(index(0), index(1), 1, self._site(), False, still.register)

    def _recorded(
        self, first: Index, stop: Index, step: int, site: Site, parallel: bool, still: Register | None = None
    ) -> Iterator[Any]:
        """The body of a loop, traced once."""
        body = Block((*self.block.around, self.block))
        outside, self.block = self.block, body
        before = self._depth, self._side_by_side
        self._depth, self._side_by_side = 0, parallel
        self._step = self._open()
        number = f"i{self._loops}"
        self._loops += 1
        ends = (*bounds_of(first, self._ranges), *bounds_of(stop, self._ranges))
        self._ranges[number] = min(ends), max(ends)
        try:
            yield Index(((number, 1),))
        except GeneratorExit:
            self._left = "a loop that is compiled once cannot be left by break, return or an error"
            raise
        if self.block is not body:
            raise TraceError("loops must be nested")
        self.block = outside
        self._depth, self._side_by_side = before
        outside.items.append(TracedLoop(number, first, stop, step, body, site, parallel, still))
        self._step = self._open()

    def array(self, shape: tuple[int, ...], fill: float | None) -> Stored:
        label = f"table{len(self.arrays)}"
        rows = shape[0] if len(shape) > 1 else 1
        self.arrays[label] = Array(label, "scratch", int(np.prod(shape[len(shape) > 1 :], dtype=int)), rows)
        stored = Stored(self, label, tuple(shape))
        if fill is not None and 0 not in shape:
            stored[:] = fill
        return stored

    def variable(self, value: Any) -> _Held:
        register = self.register()
        self.block.items.insert(self.block.items.index(self._step), register)
        held = _Held(self, register)
        held.value = value
        return held

    def straight(self, function: Callable[..., Any], reads: Sequence[Any], writes: Sequence[Any]) -> None:
        part = StraightPart(function, [_keys(each) for each in reads], [_keys(each) for each in writes])
        self.parts.append(part)
        self.block.items.append(part)
        self._step = self._open()

    def given(self, label: str, shape: tuple[int, ...]) -> Stored:
        """An input."""
        self.arrays[label] = Array(label, "input", int(np.prod(shape, dtype=int)))
        return Stored(self, label, shape)

    def stored(self, value: Any) -> Stored:
        """An array of symbols and numbers in memory."""
        if isinstance(value, Stored):
            return value
        cells = np.asarray(value, object)
        out = self.array(cells.shape, None)
        for place in np.ndindex(cells.shape):
            out[place] = cells[place]
        return out

    def triangle(self, row: Any) -> Any:
        """The begin of a row, from a table: it is no multiple of the row's number."""
        _, last = bounds_of(index(row), self._ranges)
        count = max(last + 1, len(self._triangle))
        self._triangle.values = tuple(j * (j - 1) // 2 for j in range(count))
        return self._triangle[row]

    def whole_numbers(self, values: tuple[int, ...]) -> Table:
        return self._tables.setdefault(values, Table(f"whole{len(self._tables)}", values))

    # -- places

    def read(self, array: str, place: Index) -> Node:
        return self.read_place((array, place))

    def write(self, array: str, place: Index, value: Any) -> None:
        self.write_place((array, place), value)

    def read_place(self, key: Key) -> Node:
        step = self._step
        if key in step.writes:
            return step.writes[key]
        if step.may_write(key):
            step = self._step = self._open()
        if key not in step.reads:
            step.reads[key] = self.graph.input(f"step{step.number}", len(step.reads))
        return step.reads[key]

    def write_place(self, key: Key, value: Any) -> None:
        node = self.graph.lift(plain(value))
        if key not in self._step.writes and self._step.may_write(key):
            self._step = self._open()
        self._step.write(key, node)

    # -- inside

    def _open(self) -> OpenStep:
        step = OpenStep(self.block, len(self.steps))
        self.steps.append(step)
        self.starts.append(self.graph.count)
        self.block.items.append(step)
        return step

    def register(self) -> Register:
        self._registers += 1
        return Register(f"held{self._registers}")

    def _site(self) -> Site:
        places: list[tuple[str, int]] = []
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame is not self._root_frame:
            if frame.f_code.co_filename != __file__:
                places.append((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return tuple(places)

    def owner(self, node: Node) -> OpenStep:
        """The step that was open when a node was made."""
        return self.steps[bisect_right(self.starts, node.index) - 1]

    def end(self) -> None:
        """The function has returned. Its caller's frame refers to this trace, which must not refer to the frame: both
        would stay until garbage is looked for."""
        self._root_frame = None

    def checked(self) -> Rolled:
        """The trace itself, if its loops can be compiled."""
        if self._left:
            raise TraceError(self._left)
        return self

    def short_loops(self) -> frozenset[Site]:
        """Loops that have few operations when they are written out, with all loops inside them."""
        short: set[Site] = set()
        long: set[Site] = set()

        def visit(block: Block, names: dict[str, tuple[int, int]]) -> tuple[float, set[Site]]:
            """Operations of a body, and the loops in it."""
            total, inside = 0.0, set[Site]()
            for item in block.items:
                if isinstance(item, OpenStep):
                    total += len(item.writes) + self._size(item)
                elif isinstance(item, StraightPart):
                    total += self.longest + 1
                elif isinstance(item, TracedLoop):
                    first, stop = bounds_of(item.first, names), bounds_of(item.stop, names)
                    ends = (*first, *stop)
                    turns = max(1.0, abs(sum(stop) - sum(first)) / 2)  # of a triangle, on average
                    size, sites = visit(item.body, {**names, item.name: (min(ends), max(ends))})
                    constant = item.still is None and not (item.first.terms or item.stop.terms)
                    sites = sites | {item.site}
                    # turns that may run side by side do so, unless they are few operations
                    most = min(UNROLLED, self.longest) if item.parallel else self.longest
                    if size * turns <= most and constant:
                        short.update(sites)
                    elif constant or size * turns > most:
                        long.add(item.site)
                    total, inside = total + size * turns, inside | sites
            return total, inside

        visit(self.root, {})
        return frozenset(short - long)

    def _size(self, step: OpenStep) -> int:
        """About how many operations a step has."""
        later = self.starts[step.number + 1 :]
        return (later[0] if later else self.graph.count) - self.starts[step.number]


def _keys(given: Any) -> list[Key]:
    """The places of a variable, or of all elements of an array."""
    if isinstance(given, _Held):
        return [given.register]
    return [(given.array, place) for place in given.places()]


def bounds_of(bound: Index, names: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Least and largest value while the loops around are within these ranges."""
    low = high = bound.constant
    for key, factor in bound.terms:
        if isinstance(key, str):
            ends = [factor * end for end in names[key]]
        else:
            first, last = bounds_of(key.place, names)
            ends = [factor * entry for entry in key.table.values[max(first, 0) : last + 1]] or [0]
        low, high = low + min(ends), high + max(ends)
    return low, high
