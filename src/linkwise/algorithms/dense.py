"""Small full matrices of scalars, as lists of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from linkwise.joint_laws import is_zero
from linkwise.scalar import Scalar, where

Rows = list[list[Scalar]]
ROUND_OFF = 1e-13  # a pivot under this part of its diagonal entry is round-off


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), start=a[0] * b[0])


def dot_of_nonzero(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """The product without what is zero in a by structure."""
    products = [x * y for x, y in zip(a, b, strict=True) if not is_zero(x)]
    return sum(products[1:], start=products[0]) if products else 0.0


def cross(a: Any, b: Any) -> list[Any]:
    """a × b; of lists of rows the product of every row."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def added(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]


def identity(n: int) -> Rows:
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def raised(S: Rows, more: Scalar) -> Rows:
    """S with more on its diagonal."""
    return [[x + more if i == j else x for j, x in enumerate(row)] for i, row in enumerate(S)]


def transposed(A: Rows) -> Rows:
    return [list(column) for column in zip(*A, strict=True)]


def product(A: Rows, B: Rows) -> Rows:
    columns = transposed(B)
    return [[dot(row, column) for column in columns] for row in A]


def minus_product(A: Rows, B: Rows) -> Rows:
    """−A B."""
    return [[-entry for entry in row] for row in product(A, B)]


def symmetric_product(A: Rows, B: Rows) -> Rows:
    """A Bᵀ where that is symmetric; the lower half is copied."""
    n = len(A)
    S: Rows = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            S[i][j] = S[j][i] = dot(A[i], B[j])
    return S


def factorised(S: Rows, floor: float = ROUND_OFF) -> tuple[Rows, list[Scalar]]:
    """(L, 1/D) with S = L D Lᵀ and a unit lower triangle L; a pivot that is round-off (``floor``) becomes NaN."""
    n = len(S)
    L: Rows = [[0.0] * n for _ in range(n)]
    inverse: list[Scalar] = []
    scaled: Rows = [[0.0] * n for _ in range(n)]  # L D
    for j in range(n):
        pivot = S[j][j]
        for k in range(j):
            pivot = pivot - scaled[j][k] * L[j][k]
        if floor > 0.0:
            pivot = where(pivot > floor * S[j][j], pivot, math.nan)
        inverse.append(1.0 / pivot)
        for i in range(j + 1, n):
            entry = S[i][j]
            for k in range(j):
                entry = entry - scaled[i][k] * L[j][k]
            scaled[i][j] = entry
            L[i][j] = entry * inverse[j]
    return L, inverse


def solved(L: Rows, inverse: Sequence[Scalar], right: Sequence[Scalar]) -> list[Scalar]:
    """x with L D Lᵀ x = right."""
    x = [value * scale for value, scale in zip(lower_solved(L, right), inverse, strict=True)]
    return upper_solved(L, x)


def lower_solved(L: Rows, right: Sequence[Scalar]) -> list[Scalar]:
    """x with L x = right for a unit lower triangle."""
    x = list(right)
    for i in range(len(x)):
        for k in range(i):
            x[i] = x[i] - L[i][k] * x[k]
    return x


def upper_solved(L: Rows, right: Sequence[Scalar]) -> list[Scalar]:
    """x with Lᵀ x = right."""
    x = list(right)
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - L[k][i] * x[k]
    return x


def inverse_of(L: Rows, inverse: Sequence[Scalar]) -> Rows:
    """(L D Lᵀ)⁻¹ = L⁻ᵀ D⁻¹ L⁻¹ from the factors; the lower half is copied."""
    n = len(L)
    X = identity(n)  # L⁻¹
    for i in range(n):
        for j in range(i):
            entry = L[i][j]
            for k in range(j + 1, i):
                entry = entry + L[i][k] * X[k][j]
            X[i][j] = -entry
    scaled = [[inverse[k] * x for x in X[k]] for k in range(n)]
    W: Rows = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            entry = scaled[j][i] * X[j][j]
            for k in range(j + 1, n):
                entry = entry + scaled[k][i] * X[k][j]
            W[i][j] = W[j][i] = entry
    return W


def inverted(S: Rows) -> Rows:
    """S⁻¹ of a symmetric positive matrix; the lower half is copied."""
    n = len(S)
    L, inverse = factorised(S)
    W: Rows = [[0.0] * n for _ in range(n)]
    for j, unit in enumerate(identity(n)):
        column = solved(L, inverse, unit)
        for i in range(j + 1):
            W[i][j] = W[j][i] = column[i]
    return W
