"""Rows of states in memory, columns of lanes in registers: the transposition between the two, as LLVM text.

A batch is row-major: state after state, n scalars each. The arithmetic needs W states side by side in one vector, so
a block of W rows is loaded and transposed in registers. All 128-bit pieces ("quads" below, holding
``q`` scalars) are moved by loads and stores where possible, and each q x q square is transposed inside its
quad by unpack instructions; with four quads in a register, two quads of a row are loaded at once and
separated by one more shuffle. Every load and store covers existing elements only: where n is no multiple of
the tile, the last tile overlaps the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.emit.lanes import Lanes, Writer

ZERO_RUN = 8  # neighbouring columns that are always zero and stored without being transposed
WIDEST = 16  # scalars of one store

Address = Callable[[int, int], str]
"""(state of the block, column) -> pointer to that element."""


@dataclass(frozen=True)
class Tile:
    """Neighbouring columns that are loaded or stored together."""

    start: int
    width: int

    @property
    def columns(self) -> range:
        return range(self.start, self.start + self.width)


def tiles(size: int, lanes: Lanes) -> list[Tile]:
    """Tiles that cover ``size`` columns; the last may repeat columns of the one before, none reaches
    beyond."""
    quad = lanes.quad
    wide = 2 * quad if lanes.width == 4 * quad else quad
    found: list[Tile] = []
    done = 0
    while done < size:
        left = size - done
        width = wide if left > quad and size >= wide else min(quad, size)
        start = min(done, size - width)
        found.append(Tile(start, width))
        done = start + width
    return found


def load_tile(writer: Writer, lanes: Lanes, tile: Tile, row: Address) -> list[str]:
    """The columns of a tile; ``row(state, column)`` is the address of an element."""
    width, quad = lanes.width, lanes.quad
    if width == 1:
        return [writer.value(f"load {lanes.scalar}, ptr {row(0, column)}") for column in tile.columns]

    def piece(state: int, wanted: int) -> str:
        return _load_row(writer, lanes, row, state, tile, wanted)

    groups = width // quad
    if tile.width <= quad:
        squares = [
            [
                _concatenate(writer, lanes.scalar, quad, [piece(g * quad + r, quad) for g in range(groups)])
                for r in range(quad)
            ]
        ]
    else:
        squares: list[list[Any]] = [[], []]
        for r in range(quad):
            low, high = (
                _concatenate(writer, lanes.scalar, 2 * quad, [piece(g * quad + r, 2 * quad) for g in pair])
                for pair in ((0, 1), (2, 3))
            )
            squares[0].append(_quads(writer, lanes, low, high, (0, 2, 4, 6)))
            squares[1].append(_quads(writer, lanes, low, high, (1, 3, 5, 7)))
    columns = [column for square in squares for column in _transpose_quads(writer, lanes, square)]
    return columns[: tile.width]


def store_tile(writer: Writer, lanes: Lanes, tile: Tile, row: Address, columns: Sequence[str]) -> None:
    """The inverse of ``load_tile``."""
    width, quad = lanes.width, lanes.quad
    if width == 1:
        for column, value in zip(tile.columns, columns, strict=True):
            writer.effect(f"store {lanes.scalar} {value}, ptr {row(0, column)}")
        return
    groups = width // quad
    full = [*columns, *["poison"] * (-len(columns) % quad)]
    squares = [_transpose_quads(writer, lanes, full[k : k + quad]) for k in range(0, len(full), quad)]
    for r in range(quad):
        if len(squares) == 1:
            for g in range(groups):
                part = _slice(writer, lanes, squares[0][r], g * quad, min(quad, tile.width))
                _store_row(writer, lanes, row, g * quad + r, tile, part)
            continue
        low = _quads(writer, lanes, squares[0][r], squares[1][r], (0, 4, 1, 5))
        high = _quads(writer, lanes, squares[0][r], squares[1][r], (2, 6, 3, 7))
        for g in range(groups):
            part = _slice(writer, lanes, (low, high)[g // 2], g % 2 * 2 * quad, 2 * quad)
            _store_row(writer, lanes, row, g * quad + r, tile, part)


def runs_of_zeros(zeros: Sequence[bool]) -> list[tuple[range, bool]]:
    """Neighbouring columns: runs of at least ``ZERO_RUN`` zeros, and what lies between them."""
    found: list[tuple[range, bool]] = []
    begin = at = 0
    while at < len(zeros):
        end = at
        while end < len(zeros) and zeros[end]:
            end += 1
        if end - at >= ZERO_RUN:
            if begin < at:
                found.append((range(begin, at), False))
            found.append((range(at, end), True))
            begin = end
        at = max(end, at + 1)
    if begin < len(zeros):
        found.append((range(begin, len(zeros)), False))
    return found


def runs(zeros: Mapping[int, bool]) -> list[tuple[range, bool]]:
    """Columns, given with whether they are always zero, as ranges of neighbours: zeros, and what lies between them."""
    neighbours: list[list[int]] = []
    for column in sorted(zeros):
        if neighbours and neighbours[-1][-1] == column - 1:
            neighbours[-1].append(column)
        else:
            neighbours.append([column])
    return [
        (range(columns[0] + run.start, columns[0] + run.stop), zero)
        for columns in neighbours
        for run, zero in runs_of_zeros([zeros[k] for k in columns])
    ]


def store_zeros(writer: Writer, lanes: Lanes, columns: range, row: Address) -> None:
    """Zeros need no transposition: as many at once as there are, up to ``WIDEST``."""
    for state in range(lanes.width):
        column = columns.start
        while column < columns.stop:
            width = min(WIDEST, columns.stop - column)
            width = 1 << (width.bit_length() - 1)
            kind = lanes.scalar if width == 1 else f"<{width} x {lanes.scalar}>"
            zero = "0.0" if width == 1 else "zeroinitializer"
            writer.effect(f"store {kind} {zero}, ptr {row(state, column)}, align {lanes.bytes}")
            column += width


def _transpose_quads(writer: Writer, lanes: Lanes, rows: Sequence[str]) -> list[str]:
    """Transposes the q x q squares that lie in the same quad of q vectors: q/2 log2 q pairs of unpacks."""
    if lanes.quad == 2:
        a, b = rows
        return [_pick(writer, lanes, a, b, (0, 2)), _pick(writer, lanes, a, b, (1, 3))]
    a, b, c, d = rows
    low, high = (0, 4, 1, 5), (2, 6, 3, 7)
    ab0, ab1 = _pick(writer, lanes, a, b, low), _pick(writer, lanes, a, b, high)
    cd0, cd1 = _pick(writer, lanes, c, d, low), _pick(writer, lanes, c, d, high)
    low, high = (0, 1, 4, 5), (2, 3, 6, 7)
    return [
        _pick(writer, lanes, left, right, half)
        for left, right in ((ab0, cd0), (ab1, cd1))
        for half in (low, high)
    ]


def _pick(writer: Writer, lanes: Lanes, a: str, b: str, pattern: Sequence[int]) -> str:
    """The same choice in every quad: numbers below q are scalars of a's quad, from q on of b's."""
    quad = len(pattern)
    mask = [
        start + k if k < quad else lanes.width + start + k - quad
        for start in range(0, lanes.width, quad)
        for k in pattern
    ]
    return _shuffle(writer, lanes.real, a, b, mask)


def _quads(writer: Writer, lanes: Lanes, a: str, b: str, order: Sequence[int]) -> str:
    """A vector of whole quads: numbers below four are quads of a, from four on of b."""
    return _shuffle(writer, lanes.real, a, b, [k * lanes.quad + e for k in order for e in range(lanes.quad)])


def _slice(writer: Writer, lanes: Lanes, vector: str, start: int, width: int) -> str:
    if width == lanes.width:
        return vector
    return _shuffle(writer, lanes.real, vector, "poison", range(start, start + width))


def _shuffle(writer: Writer, vector: str, a: str, b: str, mask: Sequence[int]) -> str:
    numbers = ", ".join(f"i32 {k}" for k in mask)
    return writer.value(f"shufflevector {vector} {a}, {vector} {b}, <{len(mask)} x i32> <{numbers}>")


def _concatenate(writer: Writer, scalar: str, width: int, parts: Sequence[str]) -> str:
    """Vectors of equal width, one after the other; their number is a power of two."""
    parts = list(parts)
    while len(parts) > 1:
        vector = f"<{width} x {scalar}>"
        width *= 2
        parts = [
            _shuffle(writer, vector, parts[k], parts[k + 1], range(width)) for k in range(0, len(parts), 2)
        ]
    return parts[0]


def _load_row(writer: Writer, lanes: Lanes, row: Address, state: int, tile: Tile, wanted: int) -> str:
    """``wanted`` scalars of one row, those beyond the tile undefined."""
    if tile.width == wanted:
        return writer.value(
            f"load <{wanted} x {lanes.scalar}>, ptr {row(state, tile.start)}, align {lanes.bytes}"
        )
    value = "poison"
    for k, column in enumerate(tile.columns):
        element = writer.value(f"load {lanes.scalar}, ptr {row(state, column)}")
        value = writer.value(
            f"insertelement <{wanted} x {lanes.scalar}> {value}, {lanes.scalar} {element}, i32 {k}"
        )
    return value


def _store_row(writer: Writer, lanes: Lanes, row: Address, state: int, tile: Tile, part: str) -> None:
    vector = f"<{tile.width} x {lanes.scalar}>"
    writer.effect(f"store {vector} {part}, ptr {row(state, tile.start)}, align {lanes.bytes}")


def row_addresses(writer: Writer, lanes: Lanes, base: str, size: int) -> Address:
    """Addresses of the elements of dense rows, each computed once, and again where the block that computed it may not
    have run."""
    known: dict[int, tuple[int, str]] = {0: (0, base)}

    def address(state: int, column: int) -> str:
        offset = state * size + column
        if offset not in known or known[offset][0] not in writer.scopes:
            made = writer.value(f"getelementptr {lanes.scalar}, ptr {base}, i64 {offset}")
            known[offset] = (writer.scopes[-1], made)
        return known[offset][1]

    return address
