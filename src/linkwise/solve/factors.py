"""A = L D Lᵀ of a symmetric matrix, and systems of equations with it.

Golub and Van Loan, Matrix Computations, section 4.1.2: without pivoting, for positive definite matrices and for
quasidefinite ones (a positive and a negative definite block), which have the factors in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from linkwise.language import (
    SIDE_BY_SIDE,
    add_products,
    empty,
    less,
    rows_together,
    rows_together_backward,
    span,
    variable,
)
from linkwise.scalar import maximum, minimum, where


def ldl(A: Any) -> tuple[Any, Any]:
    """(L, 1/d): L has ones on its diagonal, which are not stored, and zeros above it, which are not set.

    Args:
        A: symmetric matrix (n, n); its lower half is read.
    """
    if A.shape[0] > SIDE_BY_SIDE:
        return _by_tiles(A, lambda i, pivot: 1.0 / pivot)
    n = A.shape[0]
    L, inverse = empty(n, n), empty(n)
    raw = empty(n, n)  # L D
    for i in span(n):
        for j in span(i):
            raw[i, j] = less(A[i, j], raw[i, :j], L[j, :j])
            L[i, j] = raw[i, j] * inverse[j]
        inverse[i] = 1.0 / less(A[i, i], raw[i, :i], L[i, :i])
    return L, inverse


def ldl_from_last(A: Any) -> tuple[Any, Any]:
    """(L, 1/d) of A = Lᵀ D L, as ``ldl`` has them, eliminated from the last row to the first.

    A matrix whose entries are zero where no row carries the other, as the mass matrix of a tree, gives an L with the
    same zeros; x = L⁻¹ D⁻¹ L⁻ᵀ b is ``substituted(L, scaled(inverse, back_substituted(L, b)))``.

    Args:
        A: symmetric matrix (n, n); its lower half is read.
    """
    n = A.shape[0]
    L, raw, inverse = empty(n, n), empty(n, n), empty(n)
    if n > SIDE_BY_SIDE:
        for rows in rows_together_backward(n):
            own, left = span(rows[0], rows[-1] + 1, parallel=True), span(rows[0], parallel=True)
            done = slice(rows[-1] + 1, n)
            _eliminate(rows[::-1], done, own, left, A, raw, L, inverse, lambda i, pivot: 1.0 / pivot)
        return L, inverse
    for i in span(n - 1, -1, -1):
        inverse[i] = 1.0 / less(A[i, i], raw[i + 1 :, i], L[i + 1 :, i])
        for j in span(i):
            raw[i, j] = less(A[i, j], raw[i + 1 :, i], L[i + 1 :, j])
            L[i, j] = raw[i, j] * inverse[i]
    return L, inverse


def ldl_of_any(A: Any, smallest: float) -> tuple[Any, Any, Any]:
    """(L, 1/d, soundness) of a matrix that may not be positive definite: 1 if all pivots are positive, 0 if one is
    negative, else 0.75.

    A pivot counts as positive above ``smallest`` in units of its diagonal entry, as negative below the opposite. Those
    that are not positive count as infinite: their direction is left alone, and nothing is NaN.
    """
    n = A.shape[0]
    sound = variable(1.0)

    def inverse_of(i: Any, pivot: Any) -> Any:
        least = smallest * abs(A[i, i])
        good = pivot > least
        sound.value = where(good, sound.value, where(pivot >= -least, minimum(sound.value, 0.75), 0.0))
        return where(good, 1.0 / where(good, pivot, 1.0), 0.0)

    if n > SIDE_BY_SIDE:
        return *_by_tiles(A, inverse_of), sound.value
    L, raw, inverse = empty(n, n), empty(n, n), empty(n)
    for i in span(n):
        for j in span(i):
            raw[i, j] = less(A[i, j], raw[i, :j], L[j, :j])
            L[i, j] = raw[i, j] * inverse[j]
        inverse[i] = inverse_of(i, less(A[i, i], raw[i, :i], L[i, :i]))
    return L, inverse, sound.value


def _by_tiles(A: Any, inverse_of: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """(L, 1/d) as ``ldl`` has them, of which some rows are eliminated together; L is kept by columns."""
    n = A.shape[0]
    U, inverse = empty(n, n), empty(n)
    upper(A.T, empty(n, n), U, inverse, inverse_of)
    return U.T, inverse


def upper(A: Any, raw: Any, U: Any, inverse: Any, inverse_of: Callable[[Any, Any], Any]) -> None:
    """U and 1/D of A = Uᵀ D U, of which some rows are eliminated together.

    Args:
        A: its upper half is read.
        raw: D U, which is written.
        U: without ones on its diagonal, which is written.
        inverse: 1/D, which is written.
        inverse_of: 1/D of a row and its pivot.
    """
    n = A.shape[0]
    for rows in rows_together(n):
        own, left = (span(*ends, parallel=True) for ends in ((rows[0], rows[-1] + 1), (rows[-1] + 1, n)))
        _eliminate(rows, slice(rows[0]), own, left, A, raw, U, inverse, inverse_of)


def _eliminate(
    rows: list[Any], done: slice, own: Iterable[Any], left: Iterable[Any], A: Any, raw: Any, U: Any, inverse: Any,
    inverse_of: Callable[[Any, Any], Any],
) -> None:  # fmt: skip
    """Some rows of U = D⁻¹ ``raw`` with A = Uᵀ D U: first their own columns, then those that are left, side by side.

    Args:
        rows: in the order of their elimination, neighbours of each other.
        done: the rows that were eliminated before.
        own: the same numbers, a ``span``.
        left: those of the rows that are left, a ``span``.
        A: entries of these rows in columns of both are read.
        raw: D U, which is written.
        U: without ones on its diagonal, which is written.
        inverse: 1/D, which is written.
        inverse_of: 1/D of a row and its pivot.
    """
    size = len(rows)
    for j in own:
        totals = [variable(A[i, j]) for i in rows]
        add_products(totals, [U[done, i] for i in rows], raw[done, j], -1)
        for i, total in zip(rows, totals, strict=True):
            raw[i, j] = total.value
    block = {(r, c): raw[rows[r], rows[c]] for c in range(size) for r in range(c + 1)}
    for r, i in enumerate(rows):
        inverse[i] = factor = inverse_of(i, block[r, r])
        for c in range(r + 1, size):
            raw[i, rows[c]] = block[r, c]
            U[i, rows[c]] = scale = block[r, c] * factor
            for later in range(r + 1, c + 1):
                block[later, c] = block[later, c] - block[r, later] * scale
    for j in left:
        totals = [variable(A[i, j]) for i in rows]
        add_products(totals, [U[done, i] for i in rows], raw[done, j], -1)
        for r, (i, total) in enumerate(zip(rows, totals, strict=True)):
            for before in range(r):
                total -= U[rows[before], i] * totals[before].value
            raw[i, j] = total.value
            U[i, j] = total.value * inverse[i]


def solve(L: Any, inverse: Any, b: Any) -> Any:
    """x of (L D Lᵀ) x = b, for a vector (n,) or the columns of a matrix (n, m)."""
    return back_substituted(L, scaled(inverse, substituted(L, b)))


def substituted(L: Any, b: Any) -> Any:
    """L⁻¹ b."""
    x = empty(*b.shape)
    for own, given in columns(x, b):
        solve_lower(L, own, given)
    return x


def back_substituted(L: Any, b: Any) -> Any:
    """L⁻ᵀ b."""
    x = empty(*b.shape)
    for own, given in columns(x, b):
        solve_upper(L, own, given)
    return x


def solve_lower(L: Any, x: Any, b: Any = None) -> None:
    """x = L⁻¹ b, without b in place, rows of large ones side by side over what is known already.

    Args:
        L: ones on the diagonal, which are not stored.
        x: (n,), which is written.
        b: (n,), None: x is read.
    """
    b = x if b is None else b
    for rows in rows_together(L.shape[0]):
        first = rows[0]
        totals = [variable(b[i]) for i in rows]
        add_products(totals, [L[i, :first] for i in rows], x[:first], -1)
        for place, (i, total) in enumerate(zip(rows, totals, strict=True)):
            for before in rows[:place]:
                total -= L[i, before] * x[before]
            x[i] = total.value


def solve_upper(L: Any, x: Any, b: Any = None) -> None:
    """x = L⁻ᵀ b, without b in place, rows of large ones side by side over what is known already.

    Args:
        L: ones on the diagonal, which are not stored.
        x: (n,), which is written.
        b: (n,), None: x is read.
    """
    b = x if b is None else b
    for rows in rows_together_backward(L.shape[0]):
        after = rows[-1] + 1
        totals = [variable(b[i]) for i in rows]
        add_products(totals, [L[after:, i] for i in rows], x[after:], -1)
        for place in range(len(rows) - 1, -1, -1):
            total = totals[place]
            for later in rows[place + 1 :]:
                total -= L[later, rows[place]] * x[later]
            x[rows[place]] = total.value


def scaled(factors: Any, b: Any) -> Any:
    """Every row times its factor."""
    x = empty(*b.shape)
    for own, given in columns(x, b):
        for i in span(b.shape[0]):
            own[i] = given[i] * factors[i]
    return x


def columns(*arrays: Any) -> Iterator[tuple[Any, ...]]:
    """The columns of matrices with as many columns each, which do not depend on each other; vectors have one."""
    if len(arrays[0].shape) == 1:
        yield arrays
        return
    for c in span(arrays[0].shape[1], parallel=True):
        yield tuple(each[:, c] for each in arrays)


def largest(x: Any) -> Any:
    """max |xᵢ|."""
    most = variable(0.0)
    for i in span(x.shape[0]):
        most.value = maximum(most.value, abs(x[i]))
    return most.value
