"""Accelerations and contact forces of a stage, and their derivatives: one system of equations, by the mass matrix.

    M q̈ − Jᵀ f = S u − b          A (J q̈ + γ) = 0          (1 − A) f = 0

with A the diagonal of what is held. With M = Lᵀ D L, Y = L⁻ᵀ (A J)ᵀ and the matrix G = Yᵀ D⁻¹ Y + (1 − A):

    w = L⁻ᵀ (S u − b)      G f = −A γ − Yᵀ D⁻¹ w      q̈ = L⁻¹ D⁻¹ (w + Y f)

The elimination begins with the last coordinate (R. Featherstone, "Rigid Body Dynamics Algorithms", 2008, sec. 6.5), so
that branches of a tree stay apart: L and Y are zero where one coordinate does not carry the other (``Pattern``).
Written out, these zeros cost nothing.

Derivatives of q̈ and f solve the same system. Its right sides are −r and ρ, the derivatives of M q̈ + b − Jᵀ f − S u and
of J q̈ + γ at fixed q̈ and f. Solutions for unit vectors, by one short program for all of them, give T with
(δq̈, δf) = −Tᵀ (r, ρ); r and ρ are zero where a coordinate neither carries the other one nor is carried by it.

G is positive definite as long as the held rows are independent; ``ldl_of_any`` leaves directions alone that are not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from linkwise.language import array, dot, empty, less, span, sums_of, tiles
from linkwise.solve.factors import (
    back_substituted,
    ldl_from_last,
    ldl_of_any,
    scaled,
    solve,
    solve_upper,
    substituted,
)

SMALLEST = 1e-11  # pivot of G that counts as positive, in units of its diagonal; others are of redundant rows


@dataclass(frozen=True, eq=False)
class Factors:
    """What systems of one stage with other right sides share: n velocity coordinates, c rows of contacts."""

    L: Any
    """(n, n), ones on its diagonal, which are not stored."""
    inverse: Any
    """1/D, (n,)."""
    Y: Any
    """(n, c)."""
    C: Any
    """G = C E Cᵀ, (c, c)."""
    pivots: Any
    """1/E, (c,)."""
    flags: Any
    """1 where a row is held, else 0; (c,)."""

    def solved(self, net: Any, rates: Any) -> tuple[Any, Any]:
        """(accelerations, forces) for net torques (n,) and rates γ (c,)."""
        n, c = self.Y.shape
        free = back_substituted(self.L, net)
        weighted, right = scaled(self.inverse, free), empty(c)
        for i in span(c):
            right[i] = less(-(self.flags[i] * rates[i]), self.Y[:, i], weighted)
        force = solve(self.C, self.pivots, right)
        pushed = empty(n)
        for i in span(n):
            pushed[i] = dot(self.Y[i, :], force, free[i])
        return substituted(self.L, scaled(self.inverse, pushed)), force

    @property
    def parts(self) -> tuple[Any, ...]:
        """All of them, in the order of ``shapes_of``."""
        return (self.L, self.inverse, self.Y, self.C, self.pivots, self.flags)


class Touching:
    """The system of one stage.

    Args:
        M: mass matrix (n, n).
        net: S u − b, (n,).
        J: rows of all frames (c, n).
        rates: γ, (c,).
        flags: 1 where a row is held, else 0; (c,).
    """

    def __init__(self, M: Any, net: Any, J: Any, rates: Any, flags: Any):
        n, c = J.shape[1], J.shape[0]
        held = empty(n, c)
        for i in span(n):
            for j in span(c):
                held[i, j] = flags[j] * J[j, i]
        L, inverse = ldl_from_last(M)
        Y = empty(n, c)
        for j in span(c, parallel=True):
            for i in span(n):
                Y[i, j] = held[i, j]
            solve_upper(L, Y[:, j])
        weighted = scaled(inverse, Y)
        G = empty(c, c)
        for rows in tiles(c):
            for j in span(c, parallel=True):
                for i, total in zip(rows, sums_of(rows, [], (weighted.T, Y[:, j], 1)), strict=True):
                    G[i, j] = total
        for i in span(c):
            G[i, i] = G[i, i] + (1.0 - flags[i])
        C, pivots, _ = ldl_of_any(G, SMALLEST)
        self.factors = Factors(L, inverse, Y, C, pivots, flags)
        self.qdd, self.force = self.factors.solved(net, rates)


@dataclass(frozen=True)
class Columns:
    """Neighbouring columns of right sides that are not zero in the same rows, ``count`` times, each time shifted."""

    first: int
    columns: int
    spans: tuple[tuple[int, int], ...]
    """(first, number) of rows."""
    count: int = 1
    shift: int = 0
    """Of columns."""
    shifts: tuple[int, ...] = ()
    """Of rows."""

    def rows(self, turn: Any) -> list[slice]:
        """The rows, that time."""
        shifts = self.shifts or (0,) * len(self.spans)
        starts = [first + turn * shift for (first, _), shift in zip(self.spans, shifts, strict=True)]
        return [slice(start, start + size) for start, (_, size) in zip(starts, self.spans, strict=True)]

    def joined(self, other: Columns) -> Columns | None:
        """With the next ones, where they are the same but for a shift."""
        sizes = [[size for _, size in each.spans] for each in (self, other)]
        if self.columns != other.columns or sizes[0] != sizes[1]:
            return None
        last = [
            first + (self.count - 1) * by for (first, _), by in zip(self.spans, self.shifts, strict=False)
        ]
        last = last or [first for first, _ in self.spans]
        shift = other.first - self.first - (self.count - 1) * self.shift
        shifts = tuple(b - a for a, (b, _) in zip(last, other.spans, strict=True))
        if self.count > 1 and (shift, shifts) != (self.shift, self.shifts):
            return None
        return Columns(self.first, self.columns, self.spans, self.count + 1, shift, shifts)


class Pattern:
    """Which entries of L and Y, and of derivatives of the equations by q and q̇, are not always zero.

    Args:
        moved: the links that each velocity coordinate moves.
        bodies: the link of each row of contacts.
        still: velocity coordinates along which nothing changes: a floating base that is moved along.
    """

    def __init__(self, moved: Sequence[Collection[int]], bodies: Sequence[int], still: Sequence[int] = ()):
        self.n, self.c, self.still = len(moved), len(bodies), tuple(still)
        n = self.n
        below = [[bool(set(moved[i]) & set(moved[j])) for j in range(i)] for i in range(n)]
        touched = [[body in own for body in bodies] for own in moved]
        related = [[below[max(i, j)][min(i, j)] if i != j else True for i in range(n)] for j in range(n)]
        self.used = [[*row, *own] for row, own in zip(related, touched, strict=True)]
        """Rows of each column by q or q̇."""
        self.below = [list(row) for row in below]
        for k in reversed(range(n)):  # what the elimination fills
            found = [j for j in range(k) if self.below[k][j]]
            for i in found:
                for j in found:
                    if j < i:
                        self.below[i][j] = True
        self.pushed = [list(row) for row in touched]
        for k in reversed(range(n)):
            for i in range(k):
                if self.below[k][i]:
                    self.pushed[i] = [a or b for a, b in zip(self.pushed[i], self.pushed[k], strict=True)]

    def groups(self) -> list[Columns]:
        """The columns by q and q̇."""
        found: list[Columns] = []
        rows = {j: _spans(self.used[j % self.n]) for j in range(2 * self.n) if j not in self.still}
        for j, spans in rows.items():
            last = found[-1] if found else None
            if last is not None and last.spans == spans and last.first + last.columns == j:
                found[-1] = Columns(last.first, last.columns + 1, spans)
            else:
                found.append(Columns(j, 1, spans))
        joined: list[Columns] = []
        for group in found:
            more = joined[-1].joined(group) if joined else None
            joined[-1:] = [more] if more is not None else [*joined[-1:], group]
        return joined

    def checked(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Derivatives by q and q̇, row by row, which must be zero where no group has them; those of a base that is moved
        along cancel out, and are left out."""
        for i, row in enumerate(rows):
            for j, value in enumerate(row[: 2 * self.n]):
                known = j in self.still or self.used[j % self.n][i]
                assert known or _is_zero(value), f"entry {i}, {j} is not always zero"
        return [[0.0 if j in self.still else value for j, value in enumerate(row)] for row in rows]

    def numbers(self, factors: Factors) -> list[list[Any]]:
        """Written out factors, row by row, with zeros where they have nothing."""
        L, inverse, Y, C, pivots, flags = factors.parts
        for of, made in ((self.below, L), (self.pushed, Y)):
            for row, numbers in zip(of, made, strict=True):
                missed = [v for known, v in zip(row, numbers, strict=False) if not known and not _is_zero(v)]
                assert not missed, "an entry that is not always zero is left out"
        lower = ([v if j < i else 0.0 for j, v in enumerate(row)] for M in (L, C) for i, row in enumerate(M))
        lower = list(lower)
        flat = [[v for row in rows for v in row] for rows in (lower[: len(L)], Y, lower[len(L) :])]
        return [flat[0], list(inverse), flat[1], flat[2], list(pivots), list(flags)]

    def factors(self, L: Any, inverse: Any, Y: Any, C: Any, pivots: Any, flags: Any) -> Factors:
        """Factors of lists of numbers, of which those are left out that are always zero."""
        n, c = len(inverse), len(flags)
        lower = [[L[i * n + j] if j < i and self.below[i][j] else 0.0 for j in range(n)] for i in range(n)]
        pushed = [[Y[i * c + j] if self.pushed[i][j] else 0.0 for j in range(c)] for i in range(n)]
        cells = [[C[i * c + j] if j < i else 0.0 for j in range(c)] for i in range(c)]
        return Factors(*(array(part) for part in (lower, inverse, pushed, cells, pivots, flags)))


def _spans(used: Sequence[bool]) -> tuple[tuple[int, int], ...]:
    """(first, number) of neighbours that are used."""
    ends = [k for k, (a, b) in enumerate(pairwise([False, *used, False])) if a != b]
    return tuple((first, stop - first) for first, stop in zip(ends[::2], ends[1::2], strict=True))


def shapes_of(n: int, c: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of the parts of ``Factors``."""
    return (n, n), (n,), (n, c), (c, c), (c,), (c,)


def written_out(M: Any, net: Any, J: Any, rates: Any, flags: Any) -> Touching:
    """The system of lists of scalars, where zeros are left out."""
    return Touching(*(array(part) for part in (M, net, J, rates, flags)))


def _is_zero(value: Any) -> bool:
    node = getattr(value, "graph", None)
    return value is node.zero if node is not None else value == 0.0
