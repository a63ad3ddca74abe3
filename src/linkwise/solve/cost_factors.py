"""The cost of a quadratic programme as factors, P = L Lᵀ, in units of its mean diagonal: half solutions L⁻¹ b of
``active_set``."""

from __future__ import annotations

import math
from typing import Any

from linkwise.language import SIDE_BY_SIDE, empty, needed, span, variable, zeros
from linkwise.scalar import sqrt, where
from linkwise.solve.factors import upper
from linkwise.solve.limited import Rows, unit_scale

SINGULAR = 1e-12
"""Of every entry of P's diagonal, added to it where the cost may not determine x. Not of their mean: entries of hips
and wrists differ by factors of 10⁸."""
SHARING = 1e-10
"""Added to the diagonal, whose mean is 1, of unknowns without a box, which have no cost."""
COSTLESS = 1e-12
"""Diagonal entry of P, whose mean is 1, below which no task depends on a motor."""
NOTHING = 1e-16
"""Added for motors that no task depends on."""
RANK, LENT = 1e-10, 1e-4
"""A pivot below the first part of its diagonal entry is round-off: no task determines what is left of this unknown. It
is far below the weights of real tasks, such as those that share forces out among feet: these still count. The second
part is lent to it once the minimum without limits is known, see ``CostFactors.lend``."""


class CostFactors:
    """P = Uᵀ D U with ones on the diagonal of U, and 1/√D; L = Uᵀ √D.

    Unknowns without a box have no cost: their part of P is ``SHARING`` on the diagonal.

    Args:
        P, p: cost, (N, N) and (N,); both are scaled to a mean diagonal of one.
        rows: numbers of unknowns.
    """

    def __init__(self, P: Any, p: Any, rows: Rows):
        self.rows, N = rows, rows.boxes
        total = variable(0.0)
        for i in span(N):
            total += P[i, i]
        scale = unit_scale(N, total.value)
        for i in span(N):
            for j in span(N, parallel=True):
                P[i, j] = P[i, j] * scale
        for i in span(N):
            p[i] = p[i] * scale
            P[i, i] = P[i, i] + (SINGULAR * P[i, i] + NOTHING)
        self.P, self.U, self.root = P, empty(N, N), empty(rows.unknowns)
        self.inverse = empty(N)
        for i in span(N, rows.unknowns):
            self.root[i] = 1.0 / math.sqrt(SHARING)
        self.lent, self.lacks = zeros(N), variable(1.0)
        self._factorise()
        for i in span(N):
            entry = where(P[i, i] > COSTLESS, P[i, i], 1.0)
            lacks = self.root[i] * self.root[i] * (RANK * entry) > 1.0
            self.lent[i] = where(lacks, LENT * entry, 0.0)
            self.lacks.value = where(lacks, -1.0, self.lacks.value)

    def _factorise(self) -> None:
        N, P, raw, inverse = self.rows.boxes, self.P, empty(self.rows.boxes, self.rows.boxes), self.inverse
        if N > SIDE_BY_SIDE:
            upper(P, raw, self.U, inverse, lambda i, pivot: 1.0 / (pivot + self.lent[i]))
        else:
            for i in span(N):
                for j in span(i, N, parallel=True):
                    total = variable(P[i, j])
                    for k in span(i):
                        total -= self.U[k, i] * raw[k, j]
                    raw[i, j] = total.value
                inverse[i] = 1.0 / (raw[i, i] + self.lent[i])
                for j in span(i + 1, N, parallel=True):
                    self.U[i, j] = raw[i, j] * inverse[i]
        for i in span(N):
            self.root[i] = sqrt(inverse[i])

    def lend(self, x: Any, rest: Any, p: Any) -> None:
        """The factors of a cost that determines all unknowns, with the same minimum x: no pivot is round-off any more,
        which left nothing of ``ActiveSet.B``'s digits. Refinements take back what it changes where limits are active.

        Args:
            x: the minimum without limits.
            rest: L⁻¹ (−p), which becomes that of the other cost.
            p: the linear part of the cost.
        """
        for _ in needed(self.lacks):
            self._factorise()
            b = zeros(self.rows.unknowns)
            for i in span(self.rows.boxes):
                b[i] = where(self.lent[i] > 0.0, self.lent[i] * x[i] - p[i], -p[i])
            half = self.halved(b)
            for i in span(self.rows.boxes):
                rest[i] = half[i]

    def halved(self, b: Any) -> Any:
        """L⁻¹ b; b is overwritten."""
        N = self.rows.boxes
        for i in span(N):
            for j in span(i + 1, N, parallel=True):
                b[j] = b[j] - self.U[i, j] * b[i]
        for i in span(self.rows.unknowns):
            b[i] = b[i] * self.root[i]
        return b

    def solved(self, half: Any) -> Any:
        """L⁻ᵀ of a vector."""
        N, x = self.rows.boxes, empty(self.rows.unknowns)
        for i in span(self.rows.unknowns):
            x[i] = half[i] * self.root[i]
        for i in span(N - 1, -1, -1):
            for j in span(i, parallel=True):
                x[j] = x[j] - self.U[j, i] * x[i]
        return x
