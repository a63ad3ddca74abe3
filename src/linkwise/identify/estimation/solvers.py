"""Linear least squares, min ‖W x − y‖: the ways of Valera et al. 2003, section 5. Columns are scaled to unit length."""

from __future__ import annotations

import numpy as np

from linkwise.errors import UnknownNameError, suggest
from linkwise.solve import linear
from linkwise.solve.linear import product

SMALLEST = 1e-10  # singular values below this part of the largest are zero


def solve(W: np.ndarray, y: np.ndarray, method: str = "qr") -> np.ndarray:
    """x (p,) by "qr", "svd" or "pinv" (pseudo-inverse); all give the same where W has full rank."""
    if method not in SOLVERS:
        raise UnknownNameError(f"solver: no {method!r}; {suggest(method, SOLVERS)}")
    length = column_lengths(W)
    return SOLVERS[method](W / length, y) / length


def column_lengths(W: np.ndarray) -> np.ndarray:
    """Lengths of the columns, 1 for empty ones."""
    length = np.sqrt((W**2).sum(axis=0))
    return np.where(length > 0, length, 1.0)


def condition(W: np.ndarray) -> float:
    """Condition number with columns of unit length."""
    values = linear.singular_values(W / column_lengths(W))
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")


def _by_qr(W: np.ndarray, y: np.ndarray) -> np.ndarray:
    triangle = linear.triangle(np.column_stack([W, y]))
    p = W.shape[1]
    R, z = triangle[:p, :p], triangle[:p, p]
    if np.abs(np.diag(R)).min() < SMALLEST * np.abs(np.diag(R)).max():
        return _by_svd(W, y)
    return linear.solve_upper(R, z)


def _by_svd(W: np.ndarray, y: np.ndarray) -> np.ndarray:
    return linear.solve_least_squares(W, y, SMALLEST)


def _by_pseudo_inverse(W: np.ndarray, y: np.ndarray) -> np.ndarray:
    return product(linear.pseudo_inverse(W, SMALLEST), y)


SOLVERS = {"qr": _by_qr, "svd": _by_svd, "pinv": _by_pseudo_inverse}
