"""The points of a study: every combination of the grids, and at each of them every sample.

Points are numbered in C order, the samples last. A chunk is a box of points that is also a run of consecutive numbers:
whole inner axes, a part of one axis, single entries of the outer ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from linkwise.core.once import once

SAMPLE = "sample"


@dataclass(frozen=True)
class Chunk:
    """One box: its number, its place in the grid of chunks, its first point and how many it has."""

    number: int
    place: tuple[int, ...]
    first: int
    count: int


@dataclass(frozen=True)
class Axes:
    """Names and lengths of the grids; ``samples`` draws at each combination (None: nothing is drawn)."""

    grid: tuple[tuple[str, int], ...]
    samples: int | None
    limit: int
    """Points of a chunk at most."""

    def facts(self) -> dict[str, Any]:
        """In types that JSON has; ``of`` reads it."""
        return {"grid": [list(pair) for pair in self.grid], "samples": self.samples, "chunk": self.limit}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Axes:
        return cls(tuple((name, n) for name, n in facts["grid"]), facts["samples"], facts["chunk"])

    @property
    def names(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.grid), *((SAMPLE,) if self.samples is not None else ()))

    @property
    def shape(self) -> tuple[int, ...]:
        return (*(n for _, n in self.grid), *((self.samples,) if self.samples is not None else ()))

    @property
    def per_cell(self) -> int:
        """Samples at each combination of the grids."""
        return 1 if self.samples is None else self.samples

    @property
    def cells(self) -> int:
        """Combinations of the grids."""
        return math.prod(n for _, n in self.grid)

    @property
    def points(self) -> int:
        return math.prod(self.shape)

    @once
    def chunk_shape(self) -> tuple[int, ...]:
        shape, left = [1] * len(self.shape), self.limit
        for axis in reversed(range(len(shape))):
            shape[axis] = min(self.shape[axis], left)
            if shape[axis] < self.shape[axis]:
                break
            left = max(1, left // shape[axis])
        return tuple(shape)

    @once
    def chunk_grid(self) -> tuple[int, ...]:
        """How many chunks there are along each axis."""
        return tuple(-(-n // step) for n, step in zip(self.shape, self.chunk_shape, strict=True))

    @property
    def chunks(self) -> int:
        return math.prod(self.chunk_grid)

    def chunk(self, number: int) -> Chunk:
        place, rest = [], number
        for n in reversed(self.chunk_grid):
            place.append(rest % n)
            rest //= n
        place.reverse()
        starts = [p * step for p, step in zip(place, self.chunk_shape, strict=True)]
        lengths = [min(step, n - a) for step, n, a in zip(self.chunk_shape, self.shape, starts, strict=True)]
        first = 0
        for n, start in zip(self.shape, starts, strict=True):
            first = first * n + start
        return Chunk(number, tuple(place), first, math.prod(lengths))

    def blocks(self, chunk: Chunk, size: int) -> Iterator[tuple[int, int]]:
        """(first point, count) of the blocks of a chunk; where a cell has more than ``size`` samples, a block lies in
        one cell and begins at a multiple of ``size`` samples."""
        place, end = chunk.first, chunk.first + chunk.count
        while place < end:
            stop = min(end, place + size)
            if self.per_cell > size:
                start = place - place % self.per_cell
                stop = min(stop, start + self.per_cell)
            yield place, stop - place
            place = stop

    def segments(self, first: int, count: int) -> Iterator[tuple[int, int, int]]:
        """(cell, offset, length) of the parts of a block that lie in one cell each."""
        place, end = first, first + count
        while place < end:
            cell = place // self.per_cell
            stop = min(end, (cell + 1) * self.per_cell)
            yield cell, place - first, stop - place
            place = stop
