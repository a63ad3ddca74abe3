"""Symmetric block-tridiagonal systems: what horizons, chains and splines lead to.

    D₁ x₁ + E₁ᵀ x₂             = b₁
    E₁ x₁ + D₂ x₂ + E₂ᵀ x₃     = b₂
              …
              E_{N−1} x_{N−1} + D_N x_N = b_N

Elimination from the first block to the last, S_k = D_k − E_{k−1} S_{k−1}⁻¹ E_{k−1}ᵀ, and substitution back (Golub and
Van Loan, section 4.5.1). The blocks are (N, m, m) and (N − 1, m, m); all S must have factors L D Lᵀ, as those of a
positive definite matrix do.
"""

from __future__ import annotations

from typing import Any

from linkwise.language import empty, product, span
from linkwise.solve.factors import back_substituted, ldl, scaled, substituted


def solve_tridiagonal(D: Any, E: Any, b: Any) -> Any:
    """x (N, m) of the system with the diagonal blocks D (N, m, m), those below it E (N − 1, m, m) and b (N, m)."""
    N, m = b.shape
    L, inverse = empty(N, m, m), empty(N, m)
    Z = empty(N, m, m)  # L⁻¹ Eᵀ of each block
    y, x = empty(N, m), empty(N, m)

    def eliminated(k: Any, S: Any, c: Any) -> None:
        L[k, :, :], inverse[k, :] = ldl(S)
        y[k, :] = substituted(L[k], c)

    eliminated(0, D[0], b[0])
    for k in span(1, N):
        Z[k - 1, :, :] = substituted(L[k - 1], E[k - 1].T)
        W = scaled(inverse[k - 1], Z[k - 1])
        eliminated(k, D[k] - product(Z[k - 1].T, W), b[k] - product(W.T, y[k - 1]))
    x[N - 1, :] = back_substituted(L[N - 1], scaled(inverse[N - 1], y[N - 1]))
    for k in span(N - 2, -1, -1):
        x[k, :] = back_substituted(L[k], scaled(inverse[k], y[k] - product(Z[k], x[k + 1])))
    return x
