"""Solving with a formed mass matrix: M = L D Lᵀ along the branches of the tree.

The mass matrix of a tree has no entries between branches, and its factorisation from the tips to the base keeps it so
(Featherstone's LTDL): M = Lᵀ D L with unit lower L, entries only between a joint and its ancestors.
"""

from __future__ import annotations

from linkwise.algorithms.singularity import axis_inertia_floors, checked
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, stage


def factorise(links: Mechanism, M: list[list[Scalar]]) -> tuple[list[list[Scalar]], list[Scalar]]:
    """(L, 1/D) with M = Lᵀ D L; a vanishing pivot becomes NaN."""
    n = len(links)
    H = [list(row) for row in M]
    inverse: list[Scalar] = [0.0] * n
    floors = axis_inertia_floors(links)
    with stage("factorisation"):
        for k in reversed(range(n)):
            inverse[k] = 1.0 / checked(H[k][k], floors[k])
            above = links.ancestors(k)
            scaled = {i: H[k][i] * inverse[k] for i in above}
            for position, i in enumerate(above):
                for j in above[position:]:
                    H[i][j] = H[i][j] - scaled[i] * H[k][j]
            for i in above:
                H[k][i] = scaled[i]
    return H, inverse


def solve(links: Mechanism, M: list[list[Scalar]], right: list[Scalar]) -> list[Scalar]:
    """x with M x = right."""
    L, inverse = factorise(links, M)
    with stage("solution"):
        return _solve(links, L, inverse, right)


def _solve(links: Mechanism, L, inverse, right) -> list[Scalar]:
    x = list(right)
    for k in reversed(range(len(links))):
        for i in links.ancestors(k):
            x[i] = x[i] - L[k][i] * x[k]
    x = [value * scale for value, scale in zip(x, inverse, strict=True)]
    for k in range(len(links)):
        for i in links.ancestors(k):
            x[k] = x[k] - L[k][i] * x[i]
    return x


def invert(links: Mechanism, M: list[list[Scalar]]) -> list[list[Scalar]]:
    """M⁻¹, column by column; symmetric, so the lower half is copied."""
    n = len(links)
    L, inverse = factorise(links, M)
    with stage("inversion"):
        W: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for j in range(n):
            column = _solve(links, L, inverse, [1.0 if i == j else 0.0 for i in range(n)])
            for i in range(j + 1):
                W[i][j] = W[j][i] = column[i]
    return W
