"""What the footer of a Parquet file says: names, sizes and ranges of columns.

PyArrow's objects for it end the process where some numbers of a damaged footer do not fit together (an exception of C++
that nothing catches), so the footer is read here: Thrift's compact protocol, without any memory for what is only
declared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

_MAGIC = b"PAR1"
_LARGEST = 16 << 20  # bytes
_DEEPEST = 30
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_FORMS = {1: "i", 2: "q", 4: "f", 5: "d"}  # physical types INT32, INT64, FLOAT, DOUBLE


@dataclass(frozen=True)
class Chunk:
    """The values of one column in one group of rows.

    Attributes:
        path: name of the column, and of what is inside it.
        rows: of the group.
        values: how many it has; more than rows where a column has lists.
        size: bytes of its pages, unpacked.
        kind: number of the physical type.
        least, largest: as bytes; None where the file does not state them.
    """

    path: tuple[str, ...]
    rows: int
    values: int
    size: int
    kind: int
    least: bytes | None
    largest: bytes | None

    def range(self, unsigned: bool) -> tuple[float, float] | None:
        """The least and the largest value; None where they are not stated or are no numbers."""
        form = _FORMS.get(self.kind, "")
        if not form or self.least is None or self.largest is None:
            return None
        form = f"<{form.upper() if unsigned and form in 'iq' else form}"
        if not len(self.least) == len(self.largest) == struct.calcsize(form):
            raise ValueError(f"the range of column {self.path[0]!r} is damaged")
        return struct.unpack(form, self.least)[0], struct.unpack(form, self.largest)[0]


def read_footer(stream: IO[bytes]) -> list[Chunk]:
    """The parts of all columns.

    Args:
        stream: a Parquet file.

    Raises:
        ValueError: it is none, or its footer is damaged.
    """
    end = stream.seek(0, 2)
    if end < 12:
        raise ValueError("too short")
    stream.seek(end - 8)
    tail = stream.read(8)
    size = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or not 0 < size <= end - 12:
        raise ValueError("no footer at its end")
    if size > _LARGEST:
        raise ValueError(f"a footer of more than {_LARGEST} bytes")
    stream.seek(end - 8 - size)
    try:
        found = _Reader(stream.read(size)).struct(0)
        leaves = list(_leaves(found[2]))
        chunks = [_chunk(group, column) for group in found.get(4, []) for column in group[1]]
    except (KeyError, IndexError, TypeError, AttributeError, struct.error, UnicodeDecodeError):
        raise ValueError("its footer is damaged") from None
    if [chunk.path for chunk in chunks] != leaves * len(found.get(4, [])):
        raise ValueError("its footer is damaged: columns have two names")
    return chunks


def _chunk(group: dict[int, Any], column: dict[int, Any]) -> Chunk:
    about = column[3]
    ranges = about.get(12, {})
    numbers = group[3], about[5], about[6]
    if min(numbers) < 0:
        raise KeyError
    path = tuple(name.decode() for name in about[3])
    return Chunk(path, *numbers, about[1], ranges.get(6), ranges.get(5))


def _leaves(elements: Sequence[dict[int, Any]]) -> Iterator[tuple[str, ...]]:
    """Paths of the columns that have values, from the list of all elements, parents before their children."""
    open_elements: list[tuple[str, int]] = []  # names, and how many children are still to come
    for element in elements:
        name, children = element[4].decode(), element.get(5, 0)
        if open_elements:
            parent, left = open_elements.pop()
            open_elements.append((parent, left - 1))
        open_elements.append((name, children))
        if not children:
            yield tuple(each for each, _ in open_elements[1:])
        while open_elements and open_elements[-1][1] <= 0:
            open_elements.pop()


class _Reader:
    """Thrift's compact protocol; a struct is a dictionary by the numbers of its fields."""

    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def struct(self, depth: int) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise KeyError
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self.byte()
            kind = head & 15
            if kind == _STOP:
                return found
            number = number + (head >> 4) if head >> 4 else self.integer()
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self.value(kind, depth)

    def value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self.byte()
        if kind in (4, 5, 6):
            return self.integer()
        if kind == _DOUBLE:
            return struct.unpack("<d", self.bytes(8))[0]
        if kind == _BINARY:
            return self.bytes(self.varint())
        if kind in (_LIST, _SET):
            head = self.byte()
            count = self.count(head >> 4 if head >> 4 != 15 else self.varint())
            return [self.value(head & 15, depth + 1) for _ in range(count)]
        if kind == _MAP:
            count = self.count(self.varint())
            kinds = self.byte() if count else 0
            for _ in range(count):
                self.value(kinds >> 4, depth + 1)
                self.value(kinds & 15, depth + 1)
            return None
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise KeyError(kind)

    def count(self, count: int) -> int:
        """A number of items, each of which takes a byte or more."""
        if count > len(self.data) - self.place:
            raise IndexError
        return count

    def byte(self) -> int:
        found = self.data[self.place]
        self.place += 1
        return found

    def bytes(self, count: int) -> bytes:
        self.place += self.count(count)
        return self.data[self.place - count : self.place]

    def varint(self) -> int:
        found = shift = 0
        while True:
            part = self.byte()
            found |= (part & 127) << shift
            if part < 128:
                return found
            shift += 7
            if shift > 63:
                raise IndexError

    def integer(self) -> int:
        found = self.varint()
        return (found >> 1) ^ -(found & 1)
