"""Products of small NumPy arrays with the same bits on every processor.

NumPy hands ``@``, ``dot`` and lengths of vectors to a BLAS library, which rounds differently on different processors.
Elementwise operations and sums of NumPy do not, so products are made of them here. ``linear`` has matrices of any size.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def times(A: Any, B: Any) -> Any:
    """A B with the shapes of ``@``: of vectors, matrices, and stacks of matrices.

    Args:
        A: shape (k,), or (..., i, k).
        B: shape (k,), or (..., k, j).
    """
    A, B = np.asarray(A), np.asarray(B)
    if B.ndim == 1:
        return (A * B).sum(axis=-1)
    if A.ndim == 1:
        return (A[:, None] * B).sum(axis=-2)
    return (A[..., :, :, None] * B[..., None, :, :]).sum(axis=-2)


def length(a: Any) -> float:
    """The length of a vector: the root of the sum of its squares.

    Args:
        a: any shape; all entries count.
    """
    flat = np.asarray(a, dtype=float).reshape(-1)
    return float(np.sqrt((flat * flat).sum()))
