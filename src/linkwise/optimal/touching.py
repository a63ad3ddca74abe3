"""Accelerations and contact forces of a stage, and their derivatives: one system of equations, by the mass matrix.

    M q̈ − Jᵀ f = S u − b          A (J q̈ + γ) = 0          (1 − A) f = 0

with A the diagonal of what is held. With M = L D Lᵀ, W = M⁻¹ Jᵀ and the matrix G = A J W A + (1 − A):

    G y = −A (J M⁻¹(S u − b) + γ)      f = A y      q̈ = M⁻¹(S u − b) + W f

and the same for derivatives, where the right sides are those of inverse dynamics and of the held rows at fixed q̈ and f.
G is positive definite as long as the held rows are independent; ``ldl_of_any`` leaves directions alone that are not.
"""

from __future__ import annotations

from typing import Any

from linkwise.language import dot, empty, span
from linkwise.solve.factors import ldl, ldl_of_any, solve

SMALLEST = 1e-11  # pivot of G that counts as positive, in units of its diagonal; others are of redundant rows
SHAPES = {
    "qdd": "n", "force": "c", "L": "nn", "inverse": "n", "J": "cn", "W": "nc", "flags": "c", "C": "cc", "pivots": "c"
}  # fmt: skip


class Stages:
    """Memory for several stages; ``stages[r]`` is one of them."""

    def __init__(self, count: int, n: int, c: int):
        self.n, self.c = n, c
        sizes = {"n": n, "c": c}
        self.parts = {name: empty(count, *(sizes[a] for a in axes)) for name, axes in SHAPES.items()}

    def __getitem__(self, r: Any) -> Touching:
        return Touching(self.n, self.c, {name: part[r] for name, part in self.parts.items()})


class Touching:
    """Accelerations, forces and factors of the system of one stage: n velocity coordinates, c rows of contacts."""

    qdd: Any
    force: Any
    L: Any
    inverse: Any
    J: Any
    W: Any
    flags: Any
    C: Any
    pivots: Any

    def __init__(self, n: int, c: int, parts: dict[str, Any]):
        self.n, self.c = n, c
        for name in SHAPES:
            setattr(self, name, parts[name])

    def solve(self, M: Any, net: Any, J: Any, rates: Any, flags: Any) -> None:
        """Accelerations and forces.

        Args:
            M: mass matrix (n, n).
            net: S u − b, (n,).
            J: rows of all frames (c, n).
            rates: γ, (c,).
            flags: 1 where a row is held, else 0; (c,).
        """
        n, c = self.n, self.c
        self.J[:, :], self.flags[:] = J, flags
        self.L[:, :], self.inverse[:] = ldl(M)
        free = solve(self.L, self.inverse, net)
        self.W[:, :] = solve(self.L, self.inverse, self.J.T)
        G, right = empty(c, c), empty(c)
        for i in span(c):
            for j in span(i + 1):
                G[i, j] = dot(self.J[i, :], self.W[:, j]) * (flags[i] * flags[j])
            G[i, i] = G[i, i] + (1.0 - flags[i])
            right[i] = -(flags[i] * dot(self.J[i, :], free, rates[i]))
        self.C[:, :], self.pivots[:], _ = ldl_of_any(G, SMALLEST)
        y = solve(self.C, self.pivots, right)
        for i in span(c):
            self.force[i] = flags[i] * y[i]
        for i in span(n):
            self.qdd[i] = dot(self.W[i, :], self.force, free[i])

    def slopes(self, right: Any, rates: Any) -> tuple[Any, Any]:
        """Derivatives (n, w) of accelerations and (c, w) of forces.

        Args:
            right: derivatives of S u − b + Jᵀ f at fixed q̈ and f, (n, w).
            rates: derivatives of J q̈ + γ at fixed q̈, (c, w).
        """
        n, c, w = self.n, self.c, right.shape[1]
        free = solve(self.L, self.inverse, right)
        held = empty(c, w)
        for i in span(c):
            for j in span(w, parallel=True):
                held[i, j] = -(self.flags[i] * dot(self.J[i, :], free[:, j], rates[i, j]))
        forces = solve(self.C, self.pivots, held)
        for i in span(c):
            for j in span(w):
                forces[i, j] = self.flags[i] * forces[i, j]
        accelerations = empty(n, w)
        for i in span(n):
            for j in span(w, parallel=True):
                accelerations[i, j] = dot(self.W[i, :], forces[:, j], free[i, j])
        return accelerations, forces
