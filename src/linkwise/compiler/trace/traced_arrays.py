"""Places in arrays and arrays in memory, while a function is traced whose loops stay loops; see ``rolled``."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler.ir.loops import Whole, entry, name, whole
from linkwise.errors import TraceError
from linkwise.language import Elements, dot, elementwise, plain, product

if TYPE_CHECKING:
    from linkwise.compiler.trace.rolled import Rolled

# -- whole numbers while tracing --------------------------------------------------------------------------------------


@dataclass(eq=False)
class Table:
    """Constant whole numbers."""

    name: str
    values: tuple[int, ...]

    def __getitem__(self, place: Any) -> Any:
        return Index(((Entry(self, place), 1),)) if isinstance(place, Index) else self.values[int(place)]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Entry:
    """The entry of a table at a place that depends on the numbers of turns."""

    table: Table
    place: Index

    def __str__(self) -> str:
        return f"{self.table.name}[{self.place.terms}, {self.place.constant}]"


Term = str | Entry
"""The number of a turn, by the name of its loop, or an entry of a table."""


@dataclass(frozen=True)
class Index:
    """A sum of multiples of numbers of turns, of entries of tables and a constant."""

    terms: tuple[tuple[Term, int], ...]
    constant: int = 0

    def __add__(self, other: Index | int) -> Index | int:
        other = index(other)
        terms: Counter[Term] = Counter(dict(self.terms))
        for key, factor in other.terms:
            terms[key] += factor
        return _simplest(terms, self.constant + other.constant)

    __radd__ = __add__

    def __mul__(self, factor: Any) -> Index | int:
        if not isinstance(factor, int):
            raise TraceError(
                "a place in an array is a sum of multiples of the numbers of turns; products are not"
            )
        return _simplest({key: factor * value for key, value in self.terms}, factor * self.constant)

    __rmul__ = __mul__

    def __neg__(self) -> Index | int:
        return self * -1

    def __sub__(self, other: Index | int) -> Index | int:
        return self + (-index(other))

    def __rsub__(self, other: Index | int) -> Index | int:
        return (-self) + other

    def __bool__(self) -> bool:
        raise TraceError("a loop that is compiled once cannot branch on the number of its turn")

    def __index__(self) -> int:
        raise TraceError(
            "the number of a turn has no value while a loop is traced; use span instead of range"
        )

    def _compared(self, _: Any) -> bool:
        raise TraceError("a loop that is compiled once cannot compare the number of its turn")

    __lt__ = __le__ = __gt__ = __ge__ = _compared  # type: ignore[assignment]

    def depends_on(self, loops: Container[str]) -> bool:
        """Whether it changes from turn to turn of these loops."""
        return any(
            key in loops if isinstance(key, str) else key.place.depends_on(loops) for key, _ in self.terms
        )

    @property
    def tables(self) -> set[Table]:
        entries = [key for key, _ in self.terms if isinstance(key, Entry)]
        return {entry.table for entry in entries}.union(*(entry.place.tables for entry in entries))

    @property
    def whole(self) -> Whole:
        total = whole(self.constant)
        for key, factor in self.terms:
            value = name(key) if isinstance(key, str) else entry(key.table.name, key.place.whole)
            total = value * factor + total
        return total


def _simplest(terms: Mapping[Term, int], constant: int) -> Index | int:
    left = tuple(sorted(((key, factor) for key, factor in terms.items() if factor), key=_spelled))
    return Index(left, constant) if left else constant


def _spelled(term: tuple[Term, int]) -> str:
    return str(term[0])


def index(value: Index | int) -> Index:
    return value if isinstance(value, Index) else Index((), operator.index(value))


# -- arrays while tracing ---------------------------------------------------------------------------------------------


class Stored(Elements):
    """An array in memory, or a part of one: element (i, j) lies at ``start + i·strides[0] + j·strides[1]``."""

    __slots__ = ("array", "shape", "start", "strides", "tracer")

    def __init__(
        self, tracer: Rolled, array: str, shape: tuple[Any, ...], start: Any = 0, strides: Any = None
    ):
        self.tracer, self.array, self.shape, self.start = tracer, array, shape, start
        if strides is None:
            strides = tuple(int(np.prod(shape[k + 1 :], dtype=int)) for k in range(len(shape)))
        self.strides: tuple[int, ...] = strides

    @property
    def T(self) -> Stored:
        return Stored(self.tracer, self.array, self.shape[::-1], self.start, self.strides[::-1])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The elements as an array of symbols, for functions of robots."""
        cells = np.empty(self.shape, object)
        for place in np.ndindex(cells.shape):
            cells[place] = self[place]
        return cells

    def __len__(self) -> int:
        if not isinstance(self.shape[0], int):
            raise TraceError("this part of an array has a length that depends on a loop; use dot or span")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def _part(self, key: Any) -> tuple[Any, list[Any], list[int]]:
        keys: list[Any] = [*key] if isinstance(key, tuple) else [key]
        if len(keys) > len(self.shape):
            raise TraceError(f"an array of {len(self.shape)} axes has no place of {len(keys)} numbers")
        keys += [slice(None)] * (len(self.shape) - len(keys))
        shape: list[Any] = []
        strides: list[int] = []
        start: Any = self.start
        place: Any
        for place, length, stride in zip(keys, self.shape, self.strides, strict=True):
            if type(place) is slice:
                if place.step not in (None, 1):
                    raise TraceError("parts of arrays are taken without a step")
                first, stop = _bound(place.start, length, 0), _bound(place.stop, length, length)
                start, count = start + first * stride, stop - first
                shape.append(max(count, 0) if isinstance(count, int) else count)
                strides.append(stride)
                continue
            if isinstance(place, np.integer):
                place = int(place)  # type: ignore[arg-type]
            if isinstance(place, int):
                if isinstance(length, int):
                    if not -length <= place < length:
                        raise IndexError(f"place {place} of {length}")
                    place %= length
            elif not isinstance(place, Index):
                raise TraceError(f"a place in an array is a whole number, not a {type(place).__name__}")
            start = start + place * stride
        return start, shape, strides

    def __getitem__(self, key: Any) -> Any:
        start, shape, strides = self._part(key)
        if not shape:
            return self.tracer.read(self.array, index(start))
        return Stored(self.tracer, self.array, tuple(shape), start, tuple(strides))

    def __setitem__(self, key: Any, value: Any) -> None:
        start, shape, strides = self._part(key)
        if not shape:
            self.tracer.write(self.array, index(start), plain(value))
            return
        part = Stored(self.tracer, self.array, tuple(shape), start, tuple(strides))
        given = getattr(value, "shape", ())
        if isinstance(value, (list, tuple)):
            value = np.array([*value, None], object)[:-1]
            given = value.shape
        if given and tuple(given) != part.shape:
            raise TraceError(f"expected values of shape {part.shape}, got {tuple(given)}")
        copied(self.tracer, part, value)

    def places(self) -> list[Index]:
        """Of all elements, row by row; their number must be known."""
        places = [self.start]
        for length, stride in zip(self.shape, self.strides, strict=True):
            places = [place + k * stride for place in places for k in range(length)]
        return [index(place) for place in places]

    def copy(self) -> Stored:
        out = self.tracer.array(self.shape, None)
        out[:] = self
        return out

    def _other(self, value: Any) -> Any:
        """An operand: a scalar, or an array in memory."""
        return self.tracer.stored(value) if getattr(value, "shape", ()) else plain(value)

    def __matmul__(self, other: Any) -> Any:
        other = self.tracer.stored(other)
        if len(self.shape) == len(other.shape) == 1:
            return dot(self, other)
        return product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.tracer.stored(other) @ self

    def __add__(self, other: Any) -> Any:
        return elementwise(operator.add, self, self._other(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return elementwise(operator.sub, self, self._other(other))

    def __rsub__(self, other: Any) -> Any:
        return elementwise(operator.sub, self._other(other), self)

    def __mul__(self, other: Any) -> Any:
        return elementwise(operator.mul, self, self._other(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return elementwise(_quotient, self, self._other(other))

    def __neg__(self) -> Any:
        return elementwise(operator.neg, self)


def _quotient(a: Any, b: Any) -> Any:
    return a / b


def _bound(value: Any, length: Any, instead: Any) -> Any:
    if value is None:
        return instead
    return value + length if isinstance(value, int) and value < 0 else value


def copied(tracer: Rolled, part: Stored, value: Any) -> None:
    """Assign all elements of a part; a scalar goes to all of them."""
    single = not getattr(value, "shape", ())
    if not single and isinstance(value, np.ndarray) and len(part.shape) == 1:
        for k in range(len(part)):
            part[k] = value[k]
        return
    if not single:
        value = tracer.stored(value)
    for k in tracer.loop(0, part.shape[0], 1, parallel=len(part.shape) > 1):
        if len(part.shape) == 1:
            part[k] = value if single else value[k]
        else:
            copied(tracer, part[k], value if single else value[k])
