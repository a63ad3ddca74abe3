"""Six-by-six matrices of task space over scalars: stiffness and damping that users give, and critical damping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import dense
from linkwise.arguments.numbers import Numbers
from linkwise.joint_laws import is_zero
from linkwise.scalar import Scalar, sqrt, where

Rows = list[list[Scalar]]
SIZE = 6
FLOOR = 1e-6
"""Added to the squares of the natural frequencies, as a part of their sum."""
ITERATIONS = 6
"""Of the inverse square root: with condition numbers up to 6/FLOOR they reach round-off."""


def matrix_given(name: str, value: Any) -> np.ndarray:
    """What a user gives as a matrix of task space: (6,) for a diagonal, (36,) for a full one.

    Args:
        name: of the argument, for messages.
        value: one number, six, or a symmetric matrix (6, 6) without negative eigenvalues; rotations first.
    """
    check = Numbers()
    given = check.array(name, value)
    if given.shape == (SIZE, SIZE):
        if np.abs(given - given.T).max() > 1e-9 * np.abs(given).max(initial=1e-300):
            raise check.error(f"{name}: expected a symmetric matrix")
        symmetric = 0.5 * (given + given.T)
        least = float(np.linalg.eigvalsh(symmetric)[0])
        if least < -1e-9 * np.abs(symmetric).max():
            raise check.error(f"{name}: expected a matrix without negative eigenvalues, got {least:.3g}")
        if np.array_equal(symmetric, np.diag(np.diag(symmetric))):
            return np.diag(symmetric).copy()
        return symmetric.ravel()
    if given.shape not in ((), (SIZE,)):
        raise check.error(f"{name}: expected one number, 6 or a 6×6 matrix, got shape {given.shape}")
    return check.each(name, given, SIZE, least=0.0)


def rows_of(values: Sequence[Scalar]) -> Rows:
    """The matrix of six or 36 scalars."""
    if len(values) == SIZE:
        return diagonal(values)
    return [list(values[SIZE * i : SIZE * (i + 1)]) for i in range(SIZE)]


def diagonal(values: Sequence[Scalar]) -> Rows:
    """A diagonal matrix."""
    return [[value if i == j else 0.0 for j in range(len(values))] for i, value in enumerate(values)]


def times(A: Rows, x: Sequence[Scalar]) -> list[Scalar]:
    """A x, without the products with zeros of a diagonal matrix."""
    found: list[Scalar] = []
    for row in A:
        terms = [a * b for a, b in zip(row, x, strict=True) if not (isinstance(a, float) and a == 0.0)]
        found.append(sum(terms[1:], start=terms[0]) if terms else 0.0)
    return found


def triangle(K: Rows) -> Rows:
    """L with L Lᵀ = K for a matrix without negative eigenvalues; a column is zero where a pivot is."""
    n = len(K)
    L: Rows = [[0.0] * n for _ in range(n)]
    for j in range(n):
        pivot = K[j][j]
        for k in range(j):
            pivot = pivot - L[j][k] * L[j][k]
        positive: Any = pivot > 1e-12 * K[j][j]
        root = sqrt(where(positive, pivot, 1.0))
        L[j][j] = where(positive, root, 0.0)
        for i in range(j + 1, n):
            if isinstance(K[i][j], float) and K[i][j] == 0.0 and all(is_zero(L[i][k]) for k in range(j)):
                continue
            entry = K[i][j]
            for k in range(j):
                entry = entry - L[i][k] * L[j][k]
            L[i][j] = where(positive, entry / root, 0.0)
    return L


def inverse_square_root(A: Rows) -> Rows:
    """A^(−1/2) of a symmetric matrix with positive eigenvalues, with a fixed number of operations.

    The product form of the iteration of Denman and Beavers, scaled by norms (N. Higham, "Functions of Matrices", 2008,
    (6.29)): M ← ½ (1 + ½ (μ² M + μ⁻² M⁻¹)), Y ← ½ μ Y (1 + μ⁻² M⁻¹); M tends to 1, Y to A^(−1/2).
    """
    n = len(A)
    places = [(i, j) for i in range(n) for j in range(i + 1)]
    M, Y = A, None
    for turn in range(ITERATIONS):
        W = dense.inverse_of(*dense.factorised(M, 0.0))
        square = sqrt(sqrt(_square_norm(W) / _square_norm(M)))  # μ² = √(‖M⁻¹‖/‖M‖)
        scale, half = 1.0 / square, 0.5 * sqrt(square)
        scaled = [[scale * w for w in row] for row in W]
        step = [
            [half * (w + 1.0 if i == j else w) for j, w in enumerate(row)] for i, row in enumerate(scaled)
        ]
        Y = step if Y is None else _symmetric(n, places, [dense.dot(Y[i], step[j]) for i, j in places])
        if turn < ITERATIONS - 1:
            mean = [0.25 * (square * M[i][j] + scaled[i][j]) + (0.5 if i == j else 0.0) for i, j in places]
            M = _symmetric(n, places, mean)
    assert Y is not None
    return Y


def _symmetric(n: int, places: Sequence[tuple[int, int]], values: Sequence[Scalar]) -> Rows:
    S: Rows = [[0.0] * n for _ in range(n)]
    for (i, j), value in zip(places, values, strict=True):
        S[i][j] = S[j][i] = value
    return S


def _square_norm(S: Rows) -> Scalar:
    return sum((dense.dot(row, row) for row in S[1:]), start=dense.dot(S[0], S[0]))


def critical_damping(K: Rows, mobility: Rows, ratio: Scalar) -> Rows:
    """D with which every mode of Λ ẍ + D ẋ + K x = 0 has the damping ratio ζ, from K and G = Λ⁻¹ = J M⁻¹ Jᵀ.

    The double diagonalisation of A. Albu-Schäffer et al., 2003, D = 2ζ Q⁻ᵀ diag(√κ) Q⁻¹ with Λ = Q⁻ᵀQ⁻¹ and
    K = Q⁻ᵀ diag(κ) Q⁻¹, is twice ζ times the geometric mean of K and Λ. With K = L Lᵀ it is

        D = 2ζ L C^(−1/2) Lᵀ,        C = Lᵀ G L,

    which needs no task inertia: C exists in singular positions too. Its eigenvalues are the squares of the natural
    frequencies. C^(−1/2) is taken of C + ε² with ε² = FLOOR · tr C, so a mode with the natural frequency ω has the
    ratio ζ / √(1 + ε²/ω²): 1 % too little at a hundred-and-fortieth of the fastest, bounded where ω = 0.
    """
    L = triangle(K)
    columns = dense.transposed(L)
    half = [times(mobility, column) for column in columns]  # G L, by columns
    C: Rows = [[0.0] * SIZE for _ in range(SIZE)]
    for i in range(SIZE):
        for j in range(i + 1):
            C[i][j] = C[j][i] = dense.dot_of_nonzero(columns[j], half[i])
    trace = sum((C[i][i] for i in range(1, SIZE)), start=C[0][0])
    floor = FLOOR * trace + 1e-12
    for i in range(SIZE):
        C[i][i] = C[i][i] + floor
    Y = inverse_square_root(C)
    twice = 2.0 * ratio
    left = [[dense.dot_of_nonzero(row, Y[j]) for j in range(SIZE)] for row in L]
    D: Rows = [[0.0] * SIZE for _ in range(SIZE)]
    for i in range(SIZE):
        for j in range(i + 1):
            D[i][j] = D[j][i] = twice * dense.dot_of_nonzero(L[j], left[i])
    return D


def heavy_inverse(mobility: Rows, least: Sequence[float]) -> Rows:
    """(G + E)⁻¹ with the diagonal matrix E of ``least``: the task inertia Λ, limited to 1/E.

    A direction with the inertia m is counted as m / (1 + m E), so the error is m E; it exists where G is singular.
    """
    S = [
        [g + e if i == j else g for j, g in enumerate(row)]
        for i, (row, e) in enumerate(zip(mobility, least, strict=True))
    ]
    return dense.inverse_of(*dense.factorised(S, 0.0))


def not_heavier(mobility: Rows, masses: Sequence[Scalar], share: Scalar) -> Rows:
    """A task inertia that counts no direction as heavier than 1/(2 ε) times a diagonal one, and light ones as they are:
    √m g (g² + ε²)⁻¹ √m with g = √m G √m, whose eigenvalues 1/g are ratios of inertias. A ratio ρ is counted as
    ρ / (1 + ε²ρ²).

    Args:
        mobility: G, the inverse of the task inertia.
        masses: m, six scalars above zero.
        share: ε.
    """
    root = [sqrt(m) for m in masses]
    g = [[a * x * b for x, b in zip(row, root, strict=True)] for row, a in zip(mobility, root, strict=True)]
    square = [
        [dense.dot(a, b) + share * share if i == j else dense.dot(a, b) for j, b in enumerate(g)]
        for i, a in enumerate(g)
    ]
    counted = dense.product(g, dense.inverse_of(*dense.factorised(square, 0.0)))
    return [[a * x * b for x, b in zip(row, root, strict=True)] for row, a in zip(counted, root, strict=True)]
