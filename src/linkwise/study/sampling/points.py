"""From the number of a point to the numbers that a study's program takes, a column each.

A point is a combination of the grids and a sample; the same samples are taken at every combination. Random numbers are
``philox`` by way of machine code, the strata of a Latin hypercube are a ``permutation``, Sobol's points come from
``sobol``: all depend on seed, variable and index alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.compiler.columns import Ticks
from linkwise.compiler.ir.philox import Key
from linkwise.compiler.runtime.arrays import address
from linkwise.core import forks
from linkwise.core.once import once
from linkwise.study.engines.native import TILE, Native, generator, stride_padding
from linkwise.study.sampling import philox
from linkwise.study.sampling.axes import Axes
from linkwise.study.sampling.permutation import permuted
from linkwise.study.sampling.sobol import sobol
from linkwise.study.sampling.variables import Variable


@dataclass(frozen=True)
class Column:
    """One drawn number: which column of which variable, and how it is drawn."""

    row: int
    variable: Variable
    number: int
    dimension: int
    """Of Sobol's sequence."""


class Sampler:
    """The input columns of a program, in the order of its inputs."""

    def __init__(self, axes: Axes, variables: Sequence[Variable], seed: int, block: int):
        self.axes, self.seed, self.block = axes, seed, block
        self.ticks: list[Ticks] = []
        self.columns: list[Column] = []
        self.grids: list[
            tuple[int, np.ndarray, int]
        ] = []  # first row, values (entries, size), points between entries
        self.rows = 0
        names = [name for name, _ in axes.grid]
        dimension = 0
        for variable in variables:
            if variable.loaded:
                axis = names.index(variable.name)
                period = axes.per_cell * math.prod(n for _, n in axes.grid[axis + 1 :])
                self.grids.append((self.rows, np.array(variable.values), period))
            elif variable.draws and variable.design == "random":
                self.ticks.append(Ticks(self._key(variable), self.rows, variable.draws, variable.bits))
            for k in range(variable.draws):
                self.columns.append(Column(self.rows + k, variable, k, dimension))
                dimension += variable.design == "sobol"
            self.rows += variable.draws or variable.loaded
        plain = all(column.variable.design == "random" for column in self.columns)
        self.tiled = bool(self.ticks) and plain and axes.per_cell > block
        """Whether random numbers are all that changes inside a block: then a tile of columns is enough."""
        self.width = TILE if self.tiled else block
        self.stride = self.width + stride_padding(self.width)
        self._repeated: np.ndarray | None = None
        self._generators: dict[int, Native] = {}
        self._lock = forks.lock()

    def parts(self, first: int, count: int) -> Iterator[tuple[Native, int, int, int]]:
        """(generator, sample, offset, length) of the parts of a block whose indices share their upper word."""
        sample, offset = first % self.axes.per_cell, 0
        while offset < count:
            high = (sample + offset) >> 32
            length = min(count - offset, ((high + 1) << 32) - sample - offset)
            yield self._generator(high), sample + offset, offset, length
            offset += length

    def fill_grids(self, first: int, columns: np.ndarray) -> None:
        """The grids' columns of a block that lies in one cell."""
        for row, values, period in self.grids:
            columns[row : row + values.shape[1]] = values[first // period % len(values)][:, np.newaxis]

    def fill(self, first: int, count: int, columns: np.ndarray) -> None:
        """All columns of ``count`` points from ``first`` on; a block as ``Axes.blocks`` gives it."""
        if self.columns:
            if self.axes.per_cell <= self.block:
                samples = (np.arange(first, first + count) % self.axes.per_cell).astype(np.intp)
                columns[self._drawn_rows, :count] = self._all_samples()[:, samples]
            else:
                self._draw(first, count, columns)
        for row, values, period in self.grids:
            entries = np.arange(first, first + count) // period % len(values)
            columns[row : row + values.shape[1], :count] = values[entries].T

    def fill_at(self, points: np.ndarray, columns: np.ndarray) -> None:
        """The columns of any points, by the definitions."""
        samples = (points % self.axes.per_cell).astype(np.uint64)
        for column in self.columns:
            columns[column.row, : len(points)] = self.defined(column, samples)
        for row, values, period in self.grids:
            entries = points // period % len(values)
            columns[row : row + values.shape[1], : len(points)] = values[entries].T

    @once
    def _drawn_rows(self) -> np.ndarray:
        return np.array([column.row for column in self.columns])

    def _all_samples(self) -> np.ndarray:
        """Every sample of a cell, where they fit into one block: (drawn columns, samples)."""
        with forks.unforked, self._lock:
            if self._repeated is None:
                room = np.zeros((max(self.rows, 1), self.stride))
                self._draw(0, self.axes.per_cell, room)
                self._repeated = room[self._drawn_rows, : self.axes.per_cell]
            return self._repeated

    def _draw(self, first: int, count: int, columns: np.ndarray) -> None:
        """Consecutive samples of one cell."""
        if self.ticks:
            base = address(columns)
            for generator, sample, offset, length in self.parts(first, count):
                generator(sample, length, np.array([base + 8 * offset]))
        start = first % self.axes.per_cell
        index = np.arange(start, start + count, dtype=np.uint64)
        for column in self.columns:
            if column.variable.design != "random":
                columns[column.row, :count] = self.defined(column, index)

    def _generator(self, high: int) -> Native:
        with forks.unforked, self._lock:
            if high not in self._generators:
                self._generators[high] = generator(self.ticks, self.stride, high)
            return self._generators[high]

    def _key(self, variable: Variable) -> Key:
        return philox.key_of(self.seed, variable.name)

    def defined(self, column: Column, index: np.ndarray) -> np.ndarray:
        """The numbers of a column for samples, uint64 (count,): the definition."""
        variable, key = column.variable, self._key(column.variable)
        match variable.design:
            case "random":
                return philox.ticks(index, key, column.number, variable.bits)
            case "sobol":
                return sobol(index, column.dimension, key)
        n = self.axes.per_cell
        strata = permuted(index, n, philox.key_of(self.seed, f"{variable.name} stratum {column.number}"))
        within = philox.ticks(index, key, column.number, 32) * 2.0**-32
        return np.minimum((strata.astype(np.float64) + within) / n, 1.0 - 2.0**-53)
