"""Loops and small matrices inside traced functions: a method is written once, its size decides how it is compiled.

==================  ==================================================================================================
``span``            ``for i in span(n)``: a loop of known length
``needed``          ``for _ in needed(x)``: work that states which have finished leave out
``zeros, empty``    arrays whose elements can be assigned: ``A[i, j] = x``; rows, columns and blocks are slices
``loop``            a loop as a function: ``x = loop(n, lambda k, x: …, x)``
``array``           an array of given scalars
``triangle``        places in a triangle that is stored row by row
``whole_numbers``   a table of whole numbers: ``parents[i]`` is a place in an array or the bound of a loop
``variable``        a scalar that a loop changes: ``total += x``
``dot, less``       a number plus or less a sum of products in a fixed order, of rows, columns or parts of them
``dots, tiles``     several such sums side by side, and the numbers of their rows
``sums``            a vector plus or less products of a matrix and a vector, several sums side by side
``straight``        arithmetic without loops, such as a robot's equation of motion, as one part of a loop's body
==================  ==================================================================================================

On numbers these are NumPy's arrays and ``range``. While a function is traced and small, loops are unrolled: zeros fold
and the operations are those of code written out by hand. A function that would become too long is traced with loops:
``compiler.rolled`` records their bodies once, and unrolls those that are short. Both compute the same sums in the same
order. What differs from plain Python: a value that a loop computes and that is used in the next turn or after the loop
must be an element of an array or a ``variable``; ``compiler.rolled`` refuses others by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.scalar import Scalar


class Tracer(Protocol):
    """What records loops and arrays while a function is traced."""

    @property
    def leaves_out(self) -> bool: ...

    def loop(self, first: Any, stop: Any, step: int, parallel: bool = False) -> Iterable[Any]: ...
    def needed(self, still: Any) -> Iterable[Any]: ...
    def array(self, shape: tuple[int, ...], fill: float | None) -> Any: ...
    def variable(self, value: Scalar) -> Any: ...
    def stored(self, value: Any) -> Any: ...
    def triangle(self, row: Any) -> Any: ...
    def whole_numbers(self, values: tuple[int, ...]) -> Any: ...
    def straight(self, function: Any, reads: Any, writes: Any) -> None: ...


TILE = 8
"""Sums that are formed side by side: no addition waits for the one before, and every number is read once for them."""
SIDE_BY_SIDE = 24
"""Rows above which sums of a matrix are formed so, entries that are not needed among them: smaller ones gain nothing
on a processor, and a GPU took a fifth longer for the step of a quadruped's plan."""
current_tracer: ContextVar[Tracer | None] = ContextVar("tracer", default=None)


def span(first: Any, stop: Any = None, step: int = 1, *, parallel: bool = False) -> Iterable[Any]:
    """The whole numbers of ``range(first, stop, step)``, for a loop whose body may be compiled once.

    Args:
        first: the first number; the end where there is one argument, as for ``range``.
        stop: the end, which is not reached. Both may depend on the number of a loop around this one.
        step: 1 or −1.
        parallel: no turn reads what another one writes; for a single state several turns are computed side by side.
    """
    parallel = flag("parallel", parallel)
    if stop is None:
        first, stop = 0, first
    tracer = current_tracer.get()
    return range(first, stop, step) if tracer is None else tracer.loop(first, stop, step, parallel)


def needed(still: Any) -> Iterable[Any]:
    """One turn if the variable is negative, else none: ``for _ in needed(still)`` is work that may be left out.

    States that are computed side by side take the turn together if one of them needs it, and where the time must not
    depend on the data every state takes it. So for a state whose variable is not negative the turn must change nothing:
    no variable, no array and no bit of them, ``still`` excepted.

    Args:
        still: a ``variable``.
    """
    tracer = current_tracer.get()
    if tracer is not None:
        return tracer.needed(still)
    known = isinstance(still.value, (float, int))
    return range(1 if not known or still.value < 0.0 else 0)


def leaves_out() -> bool:
    """Whether ``needed`` leaves work out: not where the time must not depend on the data."""
    tracer = current_tracer.get()
    return tracer is None or tracer.leaves_out


def zeros(*shape: int) -> Any:
    """A vector or matrix of zeros whose elements can be assigned."""
    tracer = current_tracer.get()
    return _full(shape, 0.0) if tracer is None else tracer.array(shape, 0.0)


def empty(*shape: int) -> Any:
    """A vector or matrix whose elements are all assigned before they are read."""
    tracer = current_tracer.get()
    return _full(shape, float("nan")) if tracer is None else tracer.array(shape, None)


def array(values: Any) -> Any:
    """A vector or matrix of these scalars, whose elements can be assigned."""
    tracer = current_tracer.get()
    if isinstance(values, Elements):
        return _copy(values)
    cells = _cells(values)
    return cells if tracer is None else tracer.stored(cells)


def triangle(row: Any) -> Any:
    """row·(row − 1)/2: where a row begins in a triangle that is stored row by row, without its diagonal."""
    if isinstance(row, int):
        return row * (row - 1) // 2
    tracer = current_tracer.get()
    assert tracer is not None, row
    return tracer.triangle(row)


def whole_numbers(values: Iterable[int]) -> Any:
    """A table of constant whole numbers, such as the parents of links; its entries are places and bounds of loops.

    Args:
        values: the numbers; an entry for the number of a turn is a whole number like that.
    """
    numbers = tuple(operator.index(value) for value in values)
    tracer = current_tracer.get()
    return numbers if tracer is None else tracer.whole_numbers(numbers)


def variable(value: Scalar = 0.0) -> Any:
    """A scalar that a loop changes, by ``total += x``, ``-=``, ``*=`` or ``total.value = x``."""
    tracer = current_tracer.get()
    return Variable(value) if tracer is None else tracer.variable(value)


def loop(count: Any, body: Callable[..., Any], *state: Any) -> Any:
    """Repeat ``state = body(k, *state)`` for k = 0 … count − 1, and give the last state.

    Args:
        count: how many turns.
        body: a function of the number of the turn and of the state; gives the next state, a tuple of several values.
        *state: scalars, vectors and matrices at first.
    """
    held = [_copy(x) if _is_array(x) else variable(x) for x in state]
    for k in span(count):
        following = body(k, *(x if _is_array(x) else x.value for x in held))
        following = following if isinstance(following, tuple) else (following,)
        if len(following) != len(held):
            raise ValueError(f"loop: the body gives {len(following)} values, expected {len(held)}")
        fresh = [_copy(x) if _is_array(x) else plain(x) for x in following]  # before anything changes
        for old, new in zip(held, fresh, strict=True):
            if _is_array(old):
                old[:] = new
            else:
                old.value = new
    result = tuple(x if _is_array(x) else x.value for x in held)
    return result[0] if len(result) == 1 else result


def dot(a: Any, b: Any, start: Scalar = 0.0) -> Any:
    """start + Σ aₖ bₖ, summed from the first to the last.

    Args:
        a: a vector: a row, a column or a part of one.
        b: a vector of the same length.
        start: what is added to.
    """
    total = variable(start)
    for k in span(_length(a, b)):
        total += a[k] * b[k]
    return total.value


def less(start: Scalar, a: Any, b: Any) -> Any:
    """start − Σ aₖ bₖ, from the first to the last.

    Args:
        start: what is subtracted from.
        a: a vector.
        b: a vector of the same length.
    """
    total = variable(start)
    for k in span(_length(a, b)):
        total -= a[k] * b[k]
    return total.value


def dots(vectors: Sequence[Any], b: Any, starts: Sequence[Scalar]) -> list[Any]:
    """start + Σ aₖ bₖ for several vectors a in one loop: every bₖ is read once, and no sum waits for another one.

    Args:
        vectors: rows or columns of a matrix.
        b: a vector of the same length.
        starts: what is added to, for each of the vectors.
    """
    totals = [variable(start) for start in starts]
    for k in span(_length(vectors[0], b)):
        own = b[k]
        for total, a in zip(totals, vectors, strict=True):
            total += a[k] * own
    return [total.value for total in totals]


def tiles(count: int) -> Iterable[list[Any]]:
    """The numbers from 0 to count − 1, ``TILE`` at a time, for ``dots``: a loop over whole tiles, then the rest."""
    whole = count // TILE
    for tile in span(whole):
        yield [TILE * tile + k for k in range(TILE)]
    if count % TILE:
        yield list(range(TILE * whole, count))


def rows_together(count: int) -> Iterable[list[Any]]:
    """The numbers from 0 to count − 1 of rows whose sums are computed side by side."""
    yield from tiles(count) if count > SIDE_BY_SIDE else ([i] for i in span(count))


def rows_together_backward(count: int) -> Iterable[list[Any]]:
    """The same from the last number to the first: whole tiles, then the rest; numbers of a tile grow."""
    if count <= SIDE_BY_SIDE:
        yield from ([i] for i in span(count - 1, -1, -1))
        return
    whole, rest = divmod(count, TILE)
    for tile in span(whole - 1, -1, -1):
        yield [rest + TILE * tile + k for k in range(TILE)]
    if rest:
        yield list(range(rest))


def sums(starts: Sequence[Any], *products: tuple[Any, Any, int]) -> Iterable[tuple[Any, Any]]:
    """(i, startᵢ + Σ Aᵢₖ bₖ) for all rows i of a matrix.

    Args:
        starts: vectors that are added to.
        *products: (matrix A, vector b, whether the products are added or subtracted: 1 or −1).
    """
    for rows in rows_together(products[0][0].shape[0]):
        yield from zip(rows, sums_of(rows, starts, *products), strict=True)


def sums_of(rows: Sequence[Any], starts: Sequence[Any], *products: tuple[Any, Any, int]) -> list[Any]:
    """Those of some rows, side by side; arguments as for ``sums``."""
    totals = [variable(0.0 if not starts else starts[0][i]) for i in rows]
    for more in starts[1:]:
        for total, i in zip(totals, rows, strict=True):
            total += more[i]
    for A, b, sign in products:
        add_products(totals, [A[i, :] for i in rows], b, sign)
    return [total.value for total in totals]


def add_products(totals: Sequence[Any], vectors: Sequence[Any], b: Any, sign: int) -> None:
    """Add Σ aₖ bₖ to a variable for each of the vectors a, or subtract it, every bₖ read once.

    Args:
        totals: the variables.
        vectors: as many vectors a.
        b: a vector of the same length.
        sign: 1 or −1.
    """
    for k in span(_length(vectors[0], b)):
        own = b[k]
        for total, a in zip(totals, vectors, strict=True):
            if sign > 0:
                total += a[k] * own
            else:
                total -= a[k] * own


def straight(function: Callable[..., Any], reads: Sequence[Any], writes: Sequence[Any]) -> None:
    """Assign what a function without loops gives; in a program with loops it is traced by itself, once.

    Args:
        function: takes a list of scalars for each array that is read and gives one for each that is written.
        reads: vectors, matrices (row by row) and variables.
        writes: as many lists of results are assigned to these.
    """
    tracer = current_tracer.get()
    run_straight(function, reads, writes) if tracer is None else tracer.straight(function, reads, writes)


def run_straight(function: Callable[..., Any], reads: Sequence[Any], writes: Sequence[Any]) -> None:
    """``straight`` with values instead of places."""
    given = [[x.value] if isinstance(x, Variable) else list(x.flat) for x in reads]
    for place, values in zip(writes, function(*given), strict=True):
        if isinstance(place, Variable):
            (place.value,) = values
        else:
            place.flat[:] = values


def product(A: Any, B: Any) -> Any:
    """The matrix A B, or the vector A b."""
    if len(A.shape) == 1:
        return product(B.T, A)
    if len(B.shape) == 1:
        c = empty(A.shape[0])
        for i in span(A.shape[0]):
            c[i] = dot(A[i, :], B)
        return c
    C = empty(A.shape[0], B.shape[1])
    for i in span(A.shape[0]):
        for j in span(B.shape[1], parallel=True):
            C[i, j] = dot(A[i, :], B[:, j])
    return C


def elementwise(function: Any, *given: Any) -> Any:
    """A function of the elements of arrays of one shape and of scalars, as an array of that shape."""
    shape = next(x.shape for x in given if hasattr(x, "shape") and x.shape)
    out = empty(*shape)

    def at(x: Any, place: Any) -> Any:
        return x[place] if hasattr(x, "shape") and x.shape else x

    for i in span(shape[0]):
        if len(shape) == 1:
            out[i] = function(*(at(x, i) for x in given))
        else:
            for j in span(shape[1]):
                out[i, j] = function(*(at(x, (i, j)) for x in given))
    return out


class Elements:
    """Base of arrays that are not NumPy's: scalars leave arithmetic with them to the array."""

    __array_ufunc__ = None  # so do NumPy's arrays
    __slots__ = ()
    shape: tuple[Any, ...]


class Variable:
    """A scalar that changes; in arithmetic it is its value."""

    __slots__ = ("_held",)

    def __init__(self, value: Scalar):
        self._held = value

    @property
    def value(self) -> Any:
        return self._held

    @value.setter
    def value(self, new: Scalar) -> None:
        self._held = new

    def __iadd__(self, other: Any) -> Any:
        self.value = self.value + plain(other)
        return self

    def __isub__(self, other: Any) -> Any:
        self.value = self.value - plain(other)
        return self

    def __imul__(self, other: Any) -> Any:
        self.value = self.value * plain(other)
        return self

    def __add__(self, other: Any) -> Any:
        return self.value + plain(other)

    def __sub__(self, other: Any) -> Any:
        return self.value - plain(other)

    def __mul__(self, other: Any) -> Any:
        return self.value * plain(other)

    def __truediv__(self, other: Any) -> Any:
        return self.value / plain(other)

    def __radd__(self, other: Any) -> Any:
        return other + self.value

    def __rsub__(self, other: Any) -> Any:
        return other - self.value

    def __rmul__(self, other: Any) -> Any:
        return other * self.value

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.value

    def __neg__(self) -> Any:
        return -self.value

    def __abs__(self) -> Any:
        return abs(self.value)

    def __lt__(self, other: Any) -> Any:
        return self.value < plain(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= plain(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > plain(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= plain(other)


def plain(value: Any) -> Any:
    """The value of a variable; anything else as it is."""
    return value.value if isinstance(value, Variable) else value


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, Elements)) and bool(value.shape)


def _copy(array: Any) -> Any:
    """A new array with the same elements."""
    out = empty(*array.shape)
    out[:] = array
    return out


def _cells(values: Any) -> np.ndarray:
    """An array of scalars of any kind; nested lists are rows."""
    if isinstance(values, np.ndarray):
        return np.array(values, object)
    rows = [list(row) if isinstance(row, (list, tuple)) else row for row in values]
    shape = (len(rows), len(rows[0])) if rows and isinstance(rows[0], list) else (len(rows),)
    cells = np.empty(shape, object)
    for k, row in enumerate(rows):
        cells[k] = row
    return cells


def _full(shape: tuple[int, ...], value: float) -> np.ndarray:
    array = np.empty(shape, object)
    array[...] = value
    return array


def _length(a: Any, b: Any) -> Any:
    """Of two vectors of the same length."""
    count, other = a.shape[0], b.shape[0]
    if isinstance(count, int) and isinstance(other, int) and count != other:
        raise ValueError(f"dot: expected vectors of the same length, got {count} and {other}")
    return count
