"""Where the scalars of an array lie for the lanes of a vector, as LLVM text: the layouts of memory on this machine.

=============  =====================================================================================================
``Rows``       a row of each state, W of them one after the other
``Pointers``   a row of each state, anywhere; a lane has its own address
``Same``       one scalar for all lanes
``Lanewise``   W lanes side by side for every scalar
``Words``      words of 32 bits, one at a time
=============  =====================================================================================================

Rows are transposed in registers, tile by tile (``transpose``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.compiler.emit import transpose
from linkwise.compiler.emit.lanes import gathered
from linkwise.compiler.emit.transpose import Address, Tile
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.loops import Array, Element, whole

if TYPE_CHECKING:
    from linkwise.compiler.emit.llvm import Renderer


@dataclass(eq=False)
class Output:
    """Elements that are stored together as soon as all of them are known."""

    nodes: list[Node]
    store: Callable[[list[str]], None]
    missing: int = 0


class Memory(ABC):
    """One array."""

    sum = "fadd {R}"  # how values are added

    def __init__(self, array: Array):
        self.array = array

    @abstractmethod
    def load(self, to: Renderer, place: Element) -> dict[Element, str]:
        """The element, and those that come with it."""

    @abstractmethod
    def store(self, to: Renderer, place: Element, value: str) -> None:
        """One element."""

    def outputs(self, to: Renderer, writes: Sequence[tuple[Element, Node]]) -> list[Output]:
        """How elements of known columns are stored."""
        return [
            Output([node], lambda values, place=place: self.store(to, place, values[0]))
            for place, node in writes
        ]

    def quick(self, to: Renderer, place: Element) -> bool:
        """Whether an element is loaded by one instruction."""
        return True

    def offset(self, to: Renderer, place: Element) -> str:
        """Where an element lies, in scalars of one state."""
        row = place.row
        return to.whole(place.column if row is None else row * self.array.pitch + place.column)


class Pointers(Memory):
    """A row of each state, anywhere: ``pointers`` has an address for each lane."""

    def __init__(self, array: Array, pointers: Sequence[str]):
        super().__init__(array)
        self.pointers = list(pointers)

    def address(self, to: Renderer, place: Element) -> Address:
        """Addresses of the columns of an element's row."""
        pointers = self.pointers
        if place.row is not None:
            offset = to.whole(place.row * self.array.pitch)
            pointers = [_at(to, pointer, offset) for pointer in pointers]
        return lambda lane, column: _at(to, pointers[lane], str(column)) if column else pointers[lane]

    def each(self, to: Renderer, place: Element) -> list[str]:
        """The address of one element in every lane."""
        offset = self.offset(to, place)
        return [_at(to, pointer, offset) for pointer in self.pointers]

    def load(self, to: Renderer, place: Element) -> dict[Element, str]:
        column = place.column.number
        if column is None:
            return {place: _gathered(to, self.each(to, place))}
        tile = next(tile for tile in transpose.tiles(self.array.columns, to.lanes) if column in tile.columns)
        values = transpose.load_tile(to.writer, to.lanes, tile, self.address(to, place))
        return {
            Element(place.array, whole(k), place.row): value
            for k, value in zip(tile.columns, values, strict=True)
        }

    def quick(self, to: Renderer, place: Element) -> bool:
        return to.lanes.width == 1

    def store(self, to: Renderer, place: Element, value: str) -> None:
        lanes = to.lanes
        for lane, address in enumerate(self.each(to, place)):
            scalar = value
            if lanes.width > 1:
                scalar = to.writer.value(f"extractelement {lanes.real} {value}, i64 {lane}")
            to.writer.effect(f"store {lanes.scalar} {scalar}, ptr {address}")

    def outputs(self, to: Renderer, writes: Sequence[tuple[Element, Node]]) -> list[Output]:
        nodes = {place.column.number: node for place, node in writes if place.column.number is not None}
        if len({place.row for place, _ in writes}) != 1 or len(nodes) < len(writes):
            return super().outputs(to, writes)
        address = self.address(to, writes[0][0])
        found: list[Output] = []
        for columns, zeros in transpose.runs({k: node.is_plus_zero for k, node in nodes.items()}):
            if zeros:
                found.append(
                    Output(
                        [], lambda _, run=columns: transpose.store_zeros(to.writer, to.lanes, run, address)
                    )
                )
                continue
            for part in transpose.tiles(len(columns), to.lanes):
                tile = Tile(columns.start + part.start, part.width)
                found.append(Output([nodes[k] for k in tile.columns], self.storing(to, tile, address)))
        return found

    def storing(self, to: Renderer, tile: Tile, address: Address) -> Callable[[list[str]], None]:
        return lambda values: transpose.store_tile(to.writer, to.lanes, tile, address, values)


class Rows(Pointers):
    """A row of each state, W of them one after the other from ``base`` on."""

    def __init__(self, to: Renderer, array: Array, base: str):
        super().__init__(array, ())
        self.base = base
        self._address = transpose.row_addresses(to.writer, to.lanes, base, array.columns)

    def address(self, to: Renderer, place: Element) -> Address:
        assert place.row is None
        return self._address

    def each(self, to: Renderer, place: Element) -> list[str]:
        first = _at(to, self.base, self.offset(to, place))
        return [_at(to, first, str(lane * self.array.columns)) for lane in range(to.lanes.width)]

    def storing(self, to: Renderer, tile: Tile, address: Address) -> Callable[[list[str]], None]:
        if self.array.columns > 1:
            return super().storing(to, tile, address)
        lanes = to.lanes  # one scalar per state: the lanes are neighbours in memory
        return lambda values: to.writer.effect(
            f"store {lanes.real} {values[0]}, ptr {address(0, 0)}, align {lanes.bytes}"
        )


class Same(Memory):
    """One array for all lanes; what is written is the same in all of them."""

    def __init__(self, array: Array, base: str):
        super().__init__(array)
        self.base = base

    def load(self, to: Renderer, place: Element) -> dict[Element, str]:
        address = _at(to, self.base, self.offset(to, place))
        scalar = to.lanes.scalar
        return {place: spread(to, scalar, to.writer.value(f"load {scalar}, ptr {address}"))}

    def store(self, to: Renderer, place: Element, value: str) -> None:
        scalar, address = to.lanes.scalar, _at(to, self.base, self.offset(to, place))
        to.writer.effect(f"store {scalar} {to.first_lane(scalar, value)}, ptr {address}")


class Words(Same):
    """Words of 32 bits, for one lane."""

    sum = "add i64"

    def load(self, to: Renderer, place: Element) -> dict[Element, str]:
        half = to.writer.value(f"load i32, ptr {self._address(to, place)}")
        return {place: to.writer.value(f"zext i32 {half} to i64")}

    def store(self, to: Renderer, place: Element, value: str) -> None:
        half = to.writer.value(f"trunc i64 {value} to i32")
        to.writer.effect(f"store i32 {half}, ptr {self._address(to, place)}")

    def _address(self, to: Renderer, place: Element) -> str:
        return to.writer.value(f"getelementptr i32, ptr {self.base}, i64 {self.offset(to, place)}")


class Lanewise(Memory):
    """The lanes of a scalar side by side; ``place_of`` gives where those of an element begin, in scalars."""

    def __init__(self, array: Array, base: str, place_of: Callable[[Renderer, Element], str] | None = None):
        super().__init__(array)
        self.base = base
        self._place_of = place_of

    def at(self, to: Renderer, place: Element) -> str:
        if self._place_of is not None:
            return _at(to, self.base, self._place_of(to, place))
        row = whole(0) if place.row is None else place.row
        width = to.lanes.width
        return _at(to, self.base, to.whole(row * (self.array.pitch * width) + place.column * width))

    def load(self, to: Renderer, place: Element) -> dict[Element, str]:
        lanes = to.lanes
        value = to.writer.value(f"load {lanes.real}, ptr {self.at(to, place)}, align {lanes.bytes}")
        return {place: value}

    def store(self, to: Renderer, place: Element, value: str) -> None:
        lanes = to.lanes
        to.writer.effect(f"store {lanes.real} {value}, ptr {self.at(to, place)}, align {lanes.bytes}")


def spread(to: Renderer, kind: str, scalar: str) -> str:
    """A scalar of this type in every lane."""
    lanes, writer = to.lanes, to.writer
    if lanes.width == 1:
        return scalar
    vector = lanes.vector(kind)
    one = writer.value(f"insertelement {vector} poison, {kind} {scalar}, i64 0")
    return writer.value(
        f"shufflevector {vector} {one}, {vector} poison, {lanes.vector('i32')} zeroinitializer"
    )


def _gathered(to: Renderer, addresses: Sequence[str]) -> str:
    """The scalars at these addresses, one in each lane."""
    scalars = [to.writer.value(f"load {to.lanes.scalar}, ptr {address}") for address in addresses]
    return gathered(to.writer, to.lanes, scalars)


def _at(to: Renderer, base: str, offset: str) -> str:
    return to.writer.value(f"getelementptr {to.lanes.scalar}, ptr {base}, i64 {offset}")
