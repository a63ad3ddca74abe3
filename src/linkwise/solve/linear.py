"""Linear algebra of matrices of any size with the same bits on every processor.

NumPy hands ``@`` and ``np.linalg`` to a BLAS library, which picks other instructions, and so another rounding, for
every processor. A search that goes on for hundreds of steps makes large differences of that: another exciting motion,
another choice of parameters. What is here is compiled by Linkwise (``compiler.emit.linear``): sums have one order,
nothing is fused. Elementwise operations of NumPy (+ − × ÷, square roots, ``sum``) are the same everywhere as well, but
its sines, cosines and logarithms are not: ``sine_and_cosine`` and ``logarithm`` take their place.

Matrices are NumPy arrays of float64.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from linkwise.compiler.emit import linear as text
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import Program, lower
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime import cache, machine
from linkwise.core import forks
from linkwise.core.products import length
from linkwise.scalar import cos, sin

_WORD, _PLACE = ctypes.c_int64, ctypes.c_void_p
ORTHOGONAL = 2.0**-52  # cosine, for each of their entries, of an angle at which vectors count as orthogonal
RANK = 1e-15  # singular values below this part of the largest are zero, unless a function is told otherwise
_making = forks.lock()


# -- products ---------------------------------------------------------------------------------------------------------


def product(A: Any, B: Any) -> np.ndarray:
    """A B, for A (..., k) and B (k,) or (k, n): the product that ``@`` would give.

    Args:
        A: shape (..., k).
        B: shape (k,) or (k, n).
    """
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    if B.ndim not in (1, 2) or not A.ndim or A.shape[-1] != B.shape[0]:
        raise ValueError(f"product: expected shapes (..., k) and (k, n) or (k,), got {A.shape} and {B.shape}")
    if not A.size or not B.size:
        return np.zeros(A.shape[:-1] + B.shape[1:])
    left = _vectors(A.reshape(-1, A.shape[-1]))
    right = _vectors(B[None] if B.ndim == 1 else B.T)
    found = np.empty((len(left), len(right)))
    _code().product(_at(left), _at(right), _at(found), len(left), len(right), left.shape[1])
    return found.reshape(A.shape[:-1] + B.shape[1:])


def dot(a: Any, b: Any) -> float:
    """The sum of products of two vectors.

    Args:
        a: shape (k,).
        b: shape (k,).
    """
    return float(np.add.reduce(np.multiply(a, b, dtype=float)))


# -- factors ----------------------------------------------------------------------------------------------------------


def triangle(A: Any) -> np.ndarray:
    """R of A = Q R with orthonormal columns of Q: upper triangular, shape (min(m, n), n), by Householder's reflections.

    Args:
        A: shape (m, n).
    """
    return _triangle(np.asarray(A, dtype=float))[0]


def _triangle(A: np.ndarray, among: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(R, order) of A[:, order] = Q R; the first ``among`` columns are taken longest first."""
    rows, columns = A.shape
    steps = min(rows, columns)
    A, scale = _scaled(A)
    vectors, order = _vectors(A.T, copy=True), np.arange(columns)
    scratch = np.empty(vectors.shape[1])
    _code().triangle(_at(vectors), _at(scratch), _at(order), columns, vectors.shape[1], steps, among)
    return scale * np.triu(vectors[:, :steps].T), order


def svd(A: Any) -> tuple[np.ndarray, np.ndarray]:
    """Singular values, largest first, shape (n,), and Vᵀ, shape (n, n); the last values are zero where m < n.

    Args:
        A: shape (m, n).
    """
    return _decomposed(_square(triangle(A)), np.empty((0, 0)))[1:]


def _decomposed(R: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Uᵀ z, s, Vᵀ) of a square matrix R = U diag(s) Vᵀ and z (n, k): Jacobi's rotations of the rows of a triangle
    whose columns were taken longest first, which needs few of them (Drmač and Veselić 2008). No z: no Uᵀ z.
    """
    size = len(R)
    if z.size:
        whole, order = _triangle(np.column_stack([R, z]), size)
        R, z = whole[:, :size], whole[:, size:]
    else:
        R, order = _triangle(R, size)
    R, scale = _scaled(R)
    half = size + -size % text.LANES
    pairs = np.zeros((size, half + (z.shape[1] + -z.shape[1] % text.LANES if z.size else 0)))
    pairs[:, :size] = R  # the same rotations make Uᵀ z of z
    if z.size:
        pairs[:, half : half + z.shape[1]] = z
    _rotate(pairs, half)
    s = np.sqrt(np.add.reduce(pairs[:, :size] ** 2, axis=1))
    places = np.argsort(-s, kind="stable")
    s, pairs = s[places], pairs[places]
    V = np.empty((size, size))
    V[:, order[:size]] = pairs[:, :size] / np.where(s > 0, s, 1.0)[:, None]
    _complete(V, int((s > 0).sum()))
    return pairs[:, half : half + z.shape[1]], scale * s, V


def _square(R: np.ndarray) -> np.ndarray:
    """A triangle with rows of zeros where it has fewer rows than columns."""
    rows, columns = R.shape
    return R if rows == columns else np.vstack([R, np.zeros((columns - rows, columns))])


def singular_values(A: Any) -> np.ndarray:
    """Singular values, largest first, shape (min(m, n),).

    Args:
        A: shape (m, n).
    """
    R = triangle(A)
    R, scale = _scaled(_triangle(R, R.shape[1])[0])
    vectors = _vectors(R, copy=True)
    _rotate(vectors, vectors.shape[1])
    return scale * -np.sort(-np.sqrt(np.add.reduce(vectors**2, axis=1)))


def symmetric_eigen(A: Any) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a symmetric matrix, smallest first, and its eigenvectors as columns.

    Args:
        A: shape (n, n).
    """
    A, scale = _scaled(np.asarray(A, dtype=float))
    size = len(A)
    shift = float(np.abs(A).sum(axis=1).max(initial=0.0))  # no eigenvalue is larger (Gershgorin)
    vectors = _vectors(0.5 * (A + A.T) + shift * np.eye(size), copy=True)
    _rotate(vectors, vectors.shape[1])
    values = np.sqrt(np.add.reduce(vectors**2, axis=1))
    order = np.argsort(values, kind="stable")
    values, V = values[order], vectors[order, :size]
    V = V / np.where(values > 0, values, 1.0)[:, None]
    zero = int((values == 0).sum())
    if zero:
        V = np.roll(V, -zero, axis=0)
        _complete(V, size - zero)
        V = np.roll(V, zero, axis=0)
    return scale * (values - shift), V.T


def cholesky(A: Any) -> np.ndarray:
    """L, lower triangular, of A = L Lᵀ.

    Args:
        A: shape (n, n), symmetric.

    Raises:
        np.linalg.LinAlgError: A is not positive definite.
    """
    L = np.tril(np.asarray(A, dtype=float))
    for k in range(len(L)):
        if not L[k, k] > 0:
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        L[k:, k] /= np.sqrt(L[k, k])
        L[k + 1 :, k + 1 :] -= np.tril(np.outer(L[k + 1 :, k], L[k + 1 :, k]))
    return L


# -- equations --------------------------------------------------------------------------------------------------------


def solve_upper(R: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x of R x = z, with an upper triangle R.

    Args:
        R: shape (n, n).
        z: shape (n,) or (n, k).
    """
    x = np.array(z, dtype=float)
    for k in range(len(R) - 1, -1, -1):
        x[k] /= R[k, k]
        x[:k] -= R[:k, k] * x[k] if x.ndim == 1 else R[:k, k, None] * x[k]
    return x


def solve(A: Any, b: Any) -> np.ndarray:
    """x of A x = b.

    Args:
        A: shape (n, n).
        b: shape (n,) or (n, k).

    Raises:
        np.linalg.LinAlgError: A is singular.
    """
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    size = len(A)
    R = triangle(np.column_stack([A, b]))
    if not np.diag(R).all():
        raise np.linalg.LinAlgError("Singular matrix")
    return solve_upper(R[:, :size], R[:, size] if b.ndim == 1 else R[:, size:])


def inverse(A: Any) -> np.ndarray:
    """The inverse of a matrix.

    Args:
        A: shape (n, n).

    Raises:
        np.linalg.LinAlgError: A is singular.
    """
    return solve(A, np.eye(len(A)))


def solve_least_squares(A: Any, b: Any, smallest: float = RANK) -> np.ndarray:
    """x of least ‖A x − b‖, the shortest one where there are several.

    Args:
        A: shape (m, n).
        b: shape (m,) or (m, k).
        smallest: singular values below this part of the largest count as zero.
    """
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    size = A.shape[1]
    right = b[:, None] if b.ndim == 1 else b
    whole = triangle(np.column_stack([A, right]))
    if len(whole) < size:
        whole = np.vstack([whole, np.zeros((size - len(whole), whole.shape[1]))])
    R, z = whole[:size, :size], whole[:size, size:]
    projected, s, Vt = _decomposed(R, z)
    used = s > smallest * s[0]
    if used.all():
        x = solve_upper(R, z)
    else:
        x = product(Vt[used].T, projected[used] / s[used, None])
    return x[:, 0] if b.ndim == 1 else x


def pseudo_inverse(A: Any, smallest: float = RANK) -> np.ndarray:
    """The pseudo-inverse, shape (n, m).

    Args:
        A: shape (m, n).
        smallest: singular values below this part of the largest count as zero.
    """
    return solve_least_squares(A, np.eye(len(A)), smallest)


def orthonormal(A: Any) -> np.ndarray:
    """Orthonormal columns that span those of A, shape (m, rank).

    Args:
        A: shape (m, n) with m ≥ n.
    """
    A = np.asarray(A, dtype=float)
    s, Vt = svd(A)
    used = s > 1e-13 * s[0]
    return product(A, Vt[used].T) / s[used]


# -- functions --------------------------------------------------------------------------------------------------------


def logarithm(x: Any) -> np.ndarray:
    """The natural logarithm of positive numbers, within two units of the last place.

    Args:
        x: any shape.
    """
    mantissa, exponent = np.frexp(np.asarray(x, dtype=float))
    low = mantissa < 0.7071067811865476
    mantissa, exponent = np.where(low, 2.0 * mantissa, mantissa), exponent - low
    z = (mantissa - 1.0) / (mantissa + 1.0)  # log m = 2 (z + z³/3 + z⁵/5 + …), |z| < 0.172
    square, series = z * z, np.zeros_like(z)
    for k in range(25, 1, -2):
        series = square * (1.0 / k + series)
    return exponent * 0.6931471805599453 + 2.0 * (z + z * series)


def sine_and_cosine(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sine and the cosine by the polynomials of all kernels.

    Args:
        x: angles [rad], any shape.
    """
    x = np.asarray(x, dtype=float)
    found = _trigonometric()(x.reshape(-1, 1))
    return found[:, 0].reshape(x.shape), found[:, 1].reshape(x.shape)


# -- machine code -----------------------------------------------------------------------------------------------------


class _Code:
    """The compiled functions."""

    def __init__(self, code: machine.Code):
        self._code = code  # kept as long as its functions
        places = code.functions
        self.product = ctypes.CFUNCTYPE(None, *[_PLACE] * 3, *[_WORD] * 3)(places["linear_product"])
        self.triangle = ctypes.CFUNCTYPE(None, *[_PLACE] * 3, *[_WORD] * 4)(places["linear_triangle"])
        self.rotate = ctypes.CFUNCTYPE(_WORD, _PLACE, *[_WORD] * 3, ctypes.c_double, _WORD)(
            places["linear_rotate"]
        )


@functools.cache
def _code() -> _Code:
    with _making:
        name = cache.key(text.MODULE.encode())
        stored = cache.load(name)
        if stored is None:
            stored = machine.compile_text(text.MODULE, optimize=True)
            cache.store(name, stored)
        return _Code(machine.load(stored))


@functools.cache
def _trigonometric() -> Kernel:
    def build(dtype: Any) -> Program:
        graph = Graph()
        x = graph.inputs("x", 1)[0]
        both = [graph.lift(sin(x)), graph.lift(cos(x))]
        return lower({"both": ((2,), both)}, {"x": 1}, name="sine_and_cosine", dtype=dtype)

    return Kernel("sine_and_cosine", [("x", 1)], [("both", (2,))], "float64", build)


def _vectors(A: np.ndarray, *, copy: bool = False) -> np.ndarray:
    """The rows of a matrix, one after the other, each filled up with zeros to whole blocks of lanes."""
    rows, columns = A.shape
    if not copy and columns % text.LANES == 0:
        return np.ascontiguousarray(A)
    found = np.zeros((rows, columns + -columns % text.LANES))
    found[:, :columns] = A
    return found


def _scaled(A: np.ndarray) -> tuple[np.ndarray, float]:
    """A divided by a power of two, so that squares of its entries neither vanish nor overflow; and that power."""
    largest = float(np.abs(A).max(initial=0.0))
    if 1e-50 < largest < 1e50 or not np.isfinite(largest) or largest == 0:
        return A, 1.0
    scale = float(np.ldexp(1.0, int(np.frexp(largest)[1])))
    return A / scale, scale


def _rotate(vectors: np.ndarray, used: int) -> None:
    """Make the first ``used`` entries of rows orthogonal to those of all others, in place."""
    tolerance = used * ORTHOGONAL
    sweeps = _code().rotate(_at(vectors), len(vectors), used, vectors.shape[1], tolerance, text.SWEEPS)
    if sweeps < 0 and np.isfinite(vectors).all():
        raise np.linalg.LinAlgError("SVD did not converge")


def _complete(V: np.ndarray, known: int) -> None:
    """Fill the rows from ``known`` on with unit vectors orthogonal to those before, in place."""
    for k in range(known, len(V)):
        rest = np.eye(len(V)) - product(V[:k].T, V[:k]) if k else np.eye(len(V))
        best = rest[int(np.argmax(np.add.reduce(rest**2, axis=1)))]
        best = best - product(V[:k].T, product(V[:k], best)) if k else best
        V[k] = best / length(best)


def _at(array: np.ndarray) -> int:
    return array.ctypes.data
