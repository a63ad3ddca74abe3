"""A = L D Lᵀ of a symmetric matrix, and systems of equations with it.

Golub and Van Loan, Matrix Computations, section 4.1.2: without pivoting, for positive definite matrices and for
quasidefinite ones (a positive and a negative definite block), which have the factors in every order.
"""

from __future__ import annotations

from typing import Any

from linkwise.language import dot, empty, span, variable
from linkwise.scalar import maximum, where


def ldl(A: Any) -> tuple[Any, Any]:
    """(L, 1/d): L has ones on its diagonal, which are not stored, and zeros above it, which are not set.

    Args:
        A: symmetric matrix (n, n); its lower half is read.
    """
    n = A.shape[0]
    L, inverse = empty(n, n), empty(n)
    raw = empty(n, n)  # L D
    for i in span(n):
        for j in span(i):
            raw[i, j] = A[i, j] - dot(raw[i, :j], L[j, :j])
            L[i, j] = raw[i, j] * inverse[j]
        inverse[i] = 1.0 / (A[i, i] - dot(raw[i, :i], L[i, :i]))
    return L, inverse


def ldl_of_any(A: Any, smallest: float) -> tuple[Any, Any, Any]:
    """(L, 1/d, 1 if all pivots are positive else 0) of a matrix that may not be positive definite.

    A pivot counts as positive above ``smallest`` in units of its diagonal entry. Others count as infinite: their
    direction is left alone, and nothing is NaN.
    """
    n = A.shape[0]
    L, raw, inverse, sound = empty(n, n), empty(n, n), empty(n), variable(1.0)
    for i in span(n):
        for j in span(i):
            raw[i, j] = A[i, j] - dot(raw[i, :j], L[j, :j])
            L[i, j] = raw[i, j] * inverse[j]
        pivot = A[i, i] - dot(raw[i, :i], L[i, :i])
        good = pivot > smallest * abs(A[i, i])
        inverse[i] = where(good, 1.0 / where(good, pivot, 1.0), 0.0)
        sound.value = where(good, sound.value, 0.0)
    return L, inverse, sound.value


def solve(L: Any, inverse: Any, b: Any) -> Any:
    """x of (L D Lᵀ) x = b, for a vector (n,) or the columns of a matrix (n, m)."""
    return back_substituted(L, scaled(inverse, substituted(L, b)))


def substituted(L: Any, b: Any) -> Any:
    """L⁻¹ b."""
    n, x = L.shape[0], empty(*b.shape)
    for i in span(n):
        if len(b.shape) == 1:
            x[i] = b[i] - dot(L[i, :i], x[:i])
        else:
            for c in span(b.shape[1], parallel=True):
                x[i, c] = b[i, c] - dot(L[i, :i], x[:i, c])
    return x


def back_substituted(L: Any, b: Any) -> Any:
    """L⁻ᵀ b."""
    n, x = L.shape[0], empty(*b.shape)
    for i in span(n - 1, -1, -1):
        if len(b.shape) == 1:
            x[i] = b[i] - dot(L[i + 1 :, i], x[i + 1 :])
        else:
            for c in span(b.shape[1], parallel=True):
                x[i, c] = b[i, c] - dot(L[i + 1 :, i], x[i + 1 :, c])
    return x


def scaled(factors: Any, b: Any) -> Any:
    """Every row times its factor."""
    x = empty(*b.shape)
    for i in span(b.shape[0]):
        if len(b.shape) == 1:
            x[i] = b[i] * factors[i]
        else:
            for c in span(b.shape[1]):
                x[i, c] = b[i, c] * factors[i]
    return x


def largest(x: Any) -> Any:
    """max |xᵢ|."""
    most = variable(0.0)
    for i in span(x.shape[0]):
        most.value = maximum(most.value, abs(x[i]))
    return most.value
