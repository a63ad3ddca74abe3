"""Accelerations and contact forces of a stage, and their derivatives: one system of equations, by the mass matrix.

    M q̈ − Jᵀ f = S u − b          A (J q̈ + γ) = 0          (1 − A) f = 0

with A the diagonal of what is held. With M = Lᵀ D L, Y = L⁻ᵀ (A J)ᵀ and the matrix G = Yᵀ D⁻¹ Y + (1 − A):

    G f = −A (J M⁻¹(S u − b) + γ)      q̈ = M⁻¹(S u − b + (A J)ᵀ f)

The elimination begins with the last coordinate (R. Featherstone, "Rigid Body Dynamics Algorithms", 2008, sec. 6.5), so
that branches of a tree stay apart: L, L⁻ᵀ and Y are zero where one coordinate does not carry the other. Written out,
these zeros cost nothing. Derivatives have the right sides r of inverse dynamics and ρ of held rows at fixed q̈ and f:

    δq̈ = −P (r, ρ)      δf = −Q (r, ρ)      P = (M⁻¹ − E, K)    Q = (−Kᵀ, A G⁻¹ A)
    K = M⁻¹ (A J)ᵀ G⁻¹ A        E = M⁻¹ (A J)ᵀ G⁻¹ (A J) M⁻¹

G is positive definite as long as the held rows are independent; ``ldl_of_any`` leaves directions alone that are not.
"""

from __future__ import annotations

from typing import Any

from linkwise.language import SIDE_BY_SIDE, array, dot, empty, less, span, sums
from linkwise.solve.factors import (
    back_substituted,
    ldl_from_last,
    ldl_of_any,
    scaled,
    solve,
    solve_lower,
    solve_upper,
    substituted,
)

SMALLEST = 1e-11  # pivot of G that counts as positive, in units of its diagonal; others are of redundant rows


class Touching:
    """The system of one stage: n velocity coordinates, c rows of contacts.

    Args:
        M: mass matrix (n, n).
        net: S u − b, (n,).
        J: rows of all frames (c, n).
        rates: γ, (c,).
        flags: 1 where a row is held, else 0; (c,).
    """

    def __init__(self, M: Any, net: Any, J: Any, rates: Any, flags: Any):
        n, c = J.shape[1], J.shape[0]
        self.n, self.c, self.flags = n, c, flags
        held = empty(n, c)
        for i in span(n):
            for j in span(c):
                held[i, j] = flags[j] * J[j, i]
        self.L, self.inverse = ldl_from_last(M)
        free = back_substituted(self.L, net)
        Y = self.Y = empty(n, c)
        for j in span(c, parallel=True):
            for i in span(n):
                Y[i, j] = held[i, j]
            solve_upper(self.L, Y[:, j])
        weighted = self.weighted = scaled(self.inverse, Y)
        G, right = empty(c, c), empty(c)
        for i in span(c):
            for j in span(i + 1):
                G[i, j] = dot(weighted[:, i], Y[:, j])
            G[i, i] = G[i, i] + (1.0 - flags[i])
            right[i] = less(-(flags[i] * rates[i]), weighted[:, i], free)
        self.C, self.pivots, _ = ldl_of_any(G, SMALLEST)
        self.force = solve(self.C, self.pivots, right)
        pushed = empty(n)
        for i in span(n):
            pushed[i] = dot(Y[i, :], self.force, free[i])
        self.qdd = substituted(self.L, scaled(self.inverse, pushed))

    def inverses(self, forces: bool = False) -> tuple[Any, Any]:
        """(P (n, n + c), Q (c, n + c)) of the derivatives; Q is None unless it is wanted.

        Args:
            forces: whether derivatives of the forces are wanted.
        """
        n, c, flags = self.n, self.c, self.flags
        P, Q = empty(n, n + c), empty(c, n + c) if forces else None
        one, N = _identity(n), empty(n, n)  # N = L⁻ᵀ
        half, turned, gains = empty(c, n), empty(c, n), empty(c, n)
        for j in span(n, parallel=True):
            for i in span(n):
                N[i, j] = one[i, j]
            solve_upper(self.L, N[:, j])
            for i, total in sums([], (self.weighted.T, N[:, j], 1)):
                half[i, j] = total  # (A J) M⁻¹ at first
            solve_lower(self.C, half[:, j])
            for i in span(c):
                turned[i, j] = half[i, j] * self.pivots[i]
                gains[i, j] = turned[i, j]
            solve_upper(self.C, gains[:, j])
        scaled_N = scaled(self.inverse, N)
        if n > SIDE_BY_SIDE:
            for j in span(n, parallel=True):
                for i, total in sums([], (scaled_N.T, N[:, j], 1), (turned.T, half[:, j], -1)):
                    P[i, j] = total
        for i in span(n):
            if n <= SIDE_BY_SIDE:
                for j in span(i + 1):
                    P[i, j] = less(dot(scaled_N[:, i], N[:, j]), turned[:, i], half[:, j])
                    P[j, i] = P[i, j]
            for j in span(c):
                P[i, n + j] = flags[j] * gains[j, i]
        if Q is not None:
            inner = solve(self.C, self.pivots, _identity(c))
            for i in span(c):
                for j in span(n, parallel=True):
                    Q[i, j] = -(flags[i] * gains[i, j])
                for j in span(c):
                    Q[i, n + j] = (flags[i] * flags[j]) * inner[i, j]
        return P, Q


def written_out(M: Any, net: Any, J: Any, rates: Any, flags: Any) -> Touching:
    """The system of lists of scalars, where zeros are left out."""
    return Touching(*(array(part) for part in (M, net, J, rates, flags)))


def _identity(n: int) -> Any:
    one = empty(n, n)
    for i in span(n):
        for j in span(n):
            one[i, j] = 0.0
        one[i, i] = 1.0
    return one
