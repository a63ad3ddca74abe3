"""Solving with a formed mass matrix: M = L D Lᵀ along the branches of the tree.

The mass matrix of a tree has no entries between branches, and its factorisation from the tips to the base keeps it so
(Featherstone's LTDL): M = Lᵀ D L with unit lower L, entries only between a joint and its ancestors. Joints that follow
others and held frames add entries between branches (``filled``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms import dense
from linkwise.algorithms.singularity import axis_inertia_floors, checked
from linkwise.joint_laws import is_zero
from linkwise.model.mechanism import Mechanism, flat
from linkwise.scalar import Scalar, stage

Inner = Sequence[Sequence[int]]


def factorise(
    links: Mechanism, M: list[list[Scalar]], inner: Inner | None = None
) -> tuple[list[list[Scalar]], list[Scalar]]:
    """(L, 1/D) with M = Lᵀ D L; a vanishing pivot becomes NaN.

    Args:
        links: the tree.
        M: its mass matrix, or another matrix.
        inner: the places that are not zero in each row of another matrix, see ``filled``.
    """
    H = [list(row) for row in M]
    inverse: list[Scalar] = [0.0] * len(H)
    floors = (
        flat(axis_inertia_floors(links))
        if inner is None
        else [dense.ROUND_OFF * M[k][k] for k in range(len(M))]
    )
    inner = inner_coordinates(links) if inner is None else inner
    with stage("factorisation"):
        for k in reversed(range(len(H))):
            inverse[k] = 1.0 / checked(H[k][k], floors[k])
            above = inner[k]
            scaled = {i: H[k][i] * inverse[k] for i in above}
            for position, i in enumerate(above):
                for j in above[position:]:
                    H[i][j] = H[i][j] - scaled[i] * H[k][j]
            for i in above:
                H[k][i] = scaled[i]
    return H, inverse


def solve(links: Mechanism, M: list[list[Scalar]], right: list[Scalar]) -> list[Scalar]:
    """x with M x = right."""
    return solver(links, M)(right)


def solver(links: Mechanism, M: list[list[Scalar]]) -> Callable[[Sequence[Scalar]], list[Scalar]]:
    """A function that gives x with M x = right; M is factorised once."""
    L, inverse = factorise(links, M)

    def solved(right: Sequence[Scalar]) -> list[Scalar]:
        with stage("solution"):
            return _solve(links, L, inverse, right)

    return solved


def _solve(
    links: Mechanism, L: list[list[Scalar]], inverse: Sequence[Scalar], right: Sequence[Scalar]
) -> list[Scalar]:
    x = inward(links, L, right)
    return outward(links, L, [value * scale for value, scale in zip(x, inverse, strict=True)])


def inward(
    links: Mechanism, L: list[list[Scalar]], right: Sequence[Scalar], inner: Inner | None = None
) -> list[Scalar]:
    """L⁻ᵀ right: the first half of a solution."""
    x, inner = list(right), inner_coordinates(links) if inner is None else inner
    for k in reversed(range(len(x))):
        for i in inner[k]:
            x[i] = x[i] - L[k][i] * x[k]
    return x


def outward(
    links: Mechanism, L: list[list[Scalar]], right: Sequence[Scalar], inner: Inner | None = None
) -> list[Scalar]:
    """L⁻¹ right: the other half."""
    x, inner = list(right), inner_coordinates(links) if inner is None else inner
    for k in range(len(x)):
        for i in inner[k]:
            x[k] = x[k] - L[k][i] * x[i]
    return x


def inner_coordinates(links: Mechanism) -> list[list[int]]:
    """For every velocity coordinate those between it and the base, nearest first."""
    first = links.first_coordinates()
    inner: list[list[int]] = []
    for j, (k, _) in enumerate(links.coordinates()):
        own = list(range(first[k], j))[::-1]
        above = [
            i for a in links.ancestors(k) for i in reversed(range(first[a], first[a] + len(links[a].axes)))
        ]
        inner.append(own + above)
    return inner


def filled(M: list[list[Scalar]]) -> list[list[int]]:
    """For every coordinate of a symmetric matrix those before it, nearest first, that its factors have entries for."""
    rows = [{j for j in range(k) if not is_zero(row[j])} for k, row in enumerate(M)]
    for own in reversed(rows):
        for i in own:
            rows[i] |= {j for j in own if j < i}
    return [sorted(own, reverse=True) for own in rows]


def invert(links: Mechanism, M: list[list[Scalar]]) -> list[list[Scalar]]:
    """M⁻¹, column by column; symmetric, so the lower half is copied."""
    n = len(M)
    L, inverse = factorise(links, M)
    with stage("inversion"):
        W: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for j, unit in enumerate(dense.identity(n)):
            column = _solve(links, L, inverse, unit)
            for i in range(j + 1):
                W[i][j] = W[j][i] = column[i]
    return W
