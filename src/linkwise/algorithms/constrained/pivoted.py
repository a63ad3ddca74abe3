"""Rank-revealing solution with a symmetric matrix that may be singular: L D Lᵀ with diagonal pivoting.

Every step takes the row with the largest remaining diagonal entry, relative to the size of its block. Rows whose pivot
is not above a floor are dependent on those before, up to round-off or to the accuracy of the robot's geometry: they are
left out, and their unknowns are zero. The number of operations is fixed: the choice of a row is a chain of selections,
so that the code has no branches and can be differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms import dense
from linkwise.scalar import Condition, Scalar, all_of, where

Rows = list[list[Scalar]]


@dataclass(frozen=True, eq=False)
class Factors:
    """S = Σ lⱼ dⱼ lⱼᵀ over the steps that were kept."""

    matrix: Rows
    chosen: list[list[Condition]]
    """Whether step j took row i."""
    columns: Rows
    """lⱼ; zero for steps that were left out."""
    inverse: list[Scalar]
    """1/dⱼ; zero for steps that were left out, NaN where S has a NaN."""
    smallest: Scalar
    """The smallest pivot that was kept, relative to the size of its block; 1 where there is none."""
    rank: Scalar
    """The number of pivots that were kept."""

    def solved(self, right: Sequence[Scalar], *, refined: bool = True) -> list[Scalar]:
        """x with S x = right in the rows that were kept, and x = 0 in the others; ``refined``: by one more step."""
        values = self._solved(right)
        if refined:
            rest = [r - dense.dot(row, values) for r, row in zip(right, self.matrix, strict=True)]
            values = [a + b for a, b in zip(values, self._solved(rest), strict=True)]
        # a NaN in a row that is left out must reach the result, too
        total = sum((r for r in right[1:]), start=right[0])
        for k in range(len(right)):
            total = total + self.matrix[k][k]
        return [where(total <= math.inf, x, math.nan) for x in values]

    def _solved(self, right: Sequence[Scalar]) -> list[Scalar]:
        r = list(right)
        taken: list[Scalar] = []
        for chosen, column in zip(self.chosen, self.columns, strict=True):
            value = _entry(r, chosen)
            taken.append(value)
            r = [x - c * value for x, c in zip(r, column, strict=True)]
        x: list[Scalar] = [0.0] * len(r)
        for chosen, column, inverse, value in reversed(
            list(zip(self.chosen, self.columns, self.inverse, taken, strict=True))
        ):
            own = value * inverse - dense.dot(column, x)
            x = [where(c, own, old) for c, old in zip(chosen, x, strict=True)]
        return x

    def smallest_solution(self, x: Sequence[Scalar]) -> list[Scalar]:
        """The smallest y with S y = S x: x without its part along which S vanishes.

        A row k that was left out depends on the others: e_k less what they give in its place is such a direction.
        """
        m = len(x)
        Z: Rows = []  # one direction for each row; zero for rows that were kept
        for k in range(m):
            others = self._solved([row[k] for row in self.matrix])
            Z.append([(1.0 if i == k else 0.0) - o for i, o in enumerate(others)])
        left_out = [
            1.0
            - sum(
                (
                    where(c[k], where(i > 0.0, 1.0, 0.0), 0.0)
                    for c, i in zip(self.chosen, self.inverse, strict=True)
                ),
                start=0.0,
            )
            for k in range(m)
        ]
        directions = [[o * z for z in row] for o, row in zip(left_out, Z, strict=True)]
        square = dense.symmetric_product(directions, directions)
        for k in range(m):
            square[k][k] = square[k][k] + (1.0 - left_out[k])
        L, inverse = dense.factorised(square, 0.0)
        shares = dense.solved(L, inverse, [dense.dot(row, x) for row in directions])
        return [
            v - dense.dot(column, shares) for v, column in zip(x, dense.transposed(directions), strict=True)
        ]


def factorised(S: Rows, floor: Scalar, sizes: Sequence[Scalar] | None = None) -> Factors:
    """Factorise S, symmetric and nowhere negative.

    Args:
        S: the matrix, as rows.
        floor: a row whose pivot is at most this part of its size counts as dependent.
        sizes: what counts as large in each row; by default the mean of the diagonal.
    """
    m = len(S)
    if sizes is None:
        mean = (1.0 / m) * sum((S[k][k] for k in range(1, m)), start=S[0][0])
        sizes = [where(mean > 0.0, mean, 1.0)] * m
    weights = [1.0 / size for size in sizes]
    A = [list(row) for row in S]
    used: list[Scalar] = [0.0] * m
    chosen: list[list[Condition]] = []
    columns: Rows = []
    inverse: list[Scalar] = []
    smallest: Scalar = 1.0
    rank: Scalar = 0.0
    for step in range(m):
        best, index = _largest([where(u > 0.0, -1.0, A[k][k] * weights[k]) for k, u in enumerate(used)])
        own: list[Condition] = [all_of(index > k - 0.5, index < k + 0.5) for k in range(m)]
        row = [_entry([A[i][k] for i in range(m)], own) for k in range(m)]
        pivot = _entry(row, own)
        kept = best > floor
        one_over = where(kept, 1.0 / where(kept, pivot, 1.0), where(best <= floor, 0.0, math.nan))
        column = [x * one_over for x in row]
        smallest, rank = where(kept, best, smallest), rank + where(kept, 1.0, 0.0)
        chosen.append(own)
        columns.append(column)
        inverse.append(one_over)
        if step == m - 1:
            break
        used = [where(o, 1.0, u) for o, u in zip(own, used, strict=True)]
        for i in range(m):
            for k in range(i, m):
                A[i][k] = A[k][i] = A[i][k] - column[i] * row[k]
    return Factors(S, chosen, columns, inverse, smallest, rank)


def _largest(values: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
    """The largest value and its index, the first of equal ones; NaN where the first value is NaN."""
    best: Scalar = values[0]
    index: Scalar = 0.0
    for k, value in enumerate(values[1:], start=1):
        larger = value > best
        best, index = where(larger, value, best), where(larger, float(k), index)
    return best, index


def _entry(values: Sequence[Scalar], chosen: Sequence[Condition]) -> Scalar:
    """The value of the row that was chosen."""
    entry = values[0]
    for value, condition in zip(values[1:], chosen[1:], strict=True):
        entry = where(condition, value, entry)
    return entry
