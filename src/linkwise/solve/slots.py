"""Active inequalities of ``active_set`` in slots: their normals, and the inverse of the matrix of their multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from linkwise.language import dot, dots, empty, leaves_out, needed, span, tiles, variable, zeros
from linkwise.scalar import where

BLOCKS = (4, 8, 16, 32)
"""Slots up to these numbers are computed together; those after them only where so many are used."""


class Slots:
    """Columns of normals N, and B, symmetric, of which the upper half is stored. Numbers of slots that are not used are
    zero in blocks that are used.

    Args:
        unknowns: of the programme.
        count: of slots.
    """

    def __init__(self, unknowns: int, count: int):
        self.unknowns = unknowns
        # zeros are written where a block is used first, unless that would be done in every step
        self.late = leaves_out()
        made = empty if self.late else zeros
        self.normals, self.B = made(unknowns, count), made(count, count)
        ends = [end for end in BLOCKS if end < count] + [count]
        self.blocks = [(first, end, variable(1.0)) for first, end in pairwise((0, *ends))]
        self.count, self.fresh = variable(0.0), variable(1.0)
        if self.late:
            self._write_zeros(*self.blocks[0][:2])

    def _write_zeros(self, first: int, end: int, closed: Any = None) -> None:
        """Of a block, for states that do not use it: those beside one that begins to use it, too."""

        def cleared(value: Any) -> Any:
            return 0.0 if closed is None else where(closed, 0.0, value)

        for j in span(self.unknowns):
            for i in span(first, end, parallel=True):
                self.normals[j, i] = cleared(self.normals[j, i])
        for i in span(end):
            for j in span(first, end, parallel=True):
                self.B[i, j] = cleared(self.B[i, j])

    def open(self) -> None:
        """Use the blocks that the next inequality may enter."""
        for first, end, use in self.blocks:
            enough = self.count.value > first - 0.5
            if self.late and first:
                self.fresh.value = where(enough, -use.value, 1.0)
                for _ in needed(self.fresh):
                    self._write_zeros(first, end, use.value > 0.0)
            use.value = where(enough, -1.0, use.value)

    def used(self) -> Iterator[tuple[int, int]]:
        """(first, end) of the blocks of slots that are used: for others all numbers of slots are zero."""
        for first, end, use in self.blocks:
            if not first:
                yield first, end
                continue
            for _ in needed(use):
                yield first, end

    def of_normals(self, v: Any, out: Any) -> None:
        """out = Nᵀ v for the active normals N."""
        for first, end in self.used():
            for i in span(first, end, parallel=True):
                out[i] = dot(self.normals[:, i], v)

    def less_normals(self, y: Any, v: Any) -> None:
        """y ← y − N v."""
        for first, end in self.used():
            for rows in tiles(self.unknowns):
                sums = dots([self.normals[j, first:end] for j in rows], v[first:end], [0.0] * len(rows))
                for j, total in zip(rows, sums, strict=True):
                    y[j] = y[j] - total

    def of_inverse(self, v: Any, out: Any) -> None:
        """out = B v."""
        for first, end in self.used():
            for i in span(first):
                out[i] = out[i] + dot(self.B[i, first:end], v[first:end])
            for i in span(first, end):
                total = variable(0.0)
                for k in span(i):
                    total += self.B[k, i] * v[k]
                for k in span(i, end):
                    total += self.B[i, k] * v[k]
                out[i] = total.value
