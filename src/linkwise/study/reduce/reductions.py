"""Reductions of a block's columns: statistics, quantiles, histograms. One class per kind of reduction.

Each takes the blocks of a chunk in order (``add``), gives named arrays for the chunk (``finish``), and merges those
of two chunks. Sums are combined as trees, over the blocks of a chunk and then over the chunks, so that the result
has the same bits, whichever worker computed which chunk in which order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.compiler.runtime.arrays import address
from linkwise.study.engines.native import counter, reducer
from linkwise.study.reduce import sketch
from linkwise.study.sampling.axes import Axes, Chunk

Partial = Mapping[str, np.ndarray]


class Reduction(ABC):
    """``rows`` of the values, from ``start`` on."""

    name: str

    def __init__(self, start: int, rows: int, stride: int):
        self.start, self.rows, self.stride = start, rows, stride

    @abstractmethod
    def begin(self, chunk: Chunk) -> Any:
        """The state of a chunk before its first block."""

    @abstractmethod
    def add(self, state: Any, first: int, count: int, values: np.ndarray) -> None:
        """Take a block: points from number ``first`` on, in the columns of ``values``."""

    @abstractmethod
    def finish(self, state: Any) -> dict[str, np.ndarray]:
        """What the chunk amounts to."""

    @abstractmethod
    def merge(self, a: Partial, b: Partial) -> dict[str, np.ndarray]:
        """Two neighbouring parts together, ``a`` before ``b``."""

    def bytes(self, points: int) -> int:
        """Memory that a chunk of so many points needs."""
        return 0


def merged_leaves(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., count, mean, squared deviations) of two sets together (T. Chan, G. Golub and R. LeVeque, 1983)."""
    na, nb = a[..., 0], b[..., 0]
    n = na + nb
    some = np.where(n > 0.0, n, 1.0)
    away = b[..., 1] - a[..., 1]
    mean = np.where(na == 0.0, b[..., 1], np.where(nb == 0.0, a[..., 1], a[..., 1] + away * (nb / some)))
    between = np.where((na == 0.0) | (nb == 0.0), 0.0, (away * away) * (na * (nb / some)))
    return np.stack([n, mean, (a[..., 2] + b[..., 2]) + between], axis=-1)


def folded_leaves(leaves: np.ndarray) -> np.ndarray:
    """Leaves (blocks, ...) merged to one as the tree that ``tree.Tree`` is, a level at a time."""
    while len(leaves) > 1:
        even = len(leaves) // 2 * 2
        leaves = np.concatenate([merged_leaves(leaves[0:even:2], leaves[1:even:2]), leaves[even:]])
    return leaves[0]


def merged_extremes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., min, argmin, max, argmax) of two sets together; of equal ones the earlier."""
    lower, higher = b[..., 0] < a[..., 0], b[..., 2] > a[..., 2]
    better = np.stack([lower, lower, higher, higher], axis=-1)
    return np.where(better, b, a)


def no_extremes(columns: int) -> np.ndarray:
    """What the extremes are before the first block, shape (columns, 4)."""
    return np.tile([np.inf, -1.0, -np.inf, -1.0], (columns, 1))


class Moments(Reduction):
    """Count, mean, variance and extremes over all points."""

    name = "moments"

    def __init__(self, start: int, rows: int, stride: int):
        super().__init__(start, rows, stride)
        self._run = reducer(rows, stride)

    def begin(self, chunk: Chunk) -> dict[str, Any]:
        return {"leaves": [], "extremes": no_extremes(self.rows)}

    def add(self, state: dict[str, Any], first: int, count: int, values: np.ndarray) -> None:
        place = address(values) + 8 * self.start * self.stride
        state["leaves"].append(self._leaf(first, count, place, state["extremes"]))

    def _leaf(self, first: int, count: int, place: int, extremes: np.ndarray) -> np.ndarray:
        leaf = np.empty((self.rows, 3))
        self._run(first, count, place, address(leaf), address(extremes))
        return leaf

    def finish(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"leaves": folded_leaves(np.stack(state["leaves"])), "extremes": state["extremes"]}

    def merge(self, a: Partial, b: Partial) -> dict[str, np.ndarray]:
        return {
            "leaves": merged_leaves(a["leaves"], b["leaves"]),
            "extremes": merged_extremes(a["extremes"], b["extremes"]),
        }


class CellMoments(Moments):
    """The same over the samples at each combination of the grids: arrays (cells of the chunk, rows, ...)."""

    name = "cell_moments"

    def __init__(self, start: int, rows: int, stride: int, axes: Axes):
        super().__init__(start, rows, stride)
        self._axes = axes

    def begin(self, chunk: Chunk) -> dict[str, Any]:
        per_cell = self._axes.per_cell
        first, last = chunk.first // per_cell, (chunk.first + chunk.count - 1) // per_cell
        cells = last - first + 1
        return {
            "first": first,
            "leaves": [[] for _ in range(cells)],
            "extremes": np.tile(no_extremes(self.rows), (cells, 1, 1)),
        }

    def add(self, state: dict[str, Any], first: int, count: int, values: np.ndarray) -> None:
        place = address(values) + 8 * self.start * self.stride
        for cell, offset, length in self._axes.segments(first, count):
            own = cell - state["first"]
            extremes = state["extremes"][own]
            state["leaves"][own].append(self._leaf(first + offset, length, place + 8 * offset, extremes))

    def finish(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        leaves = np.stack([folded_leaves(np.stack(leaves)) for leaves in state["leaves"]])
        return {"leaves": leaves, "extremes": state["extremes"]}


class Classes(Reduction):
    """The counts that quantiles over all points are found from."""

    name = "classes"

    def __init__(self, start: int, rows: int, stride: int):
        super().__init__(start, rows, stride)
        self._count = counter(rows, stride, sketch.BITS)

    def begin(self, chunk: Chunk) -> np.ndarray:
        return np.zeros((self.rows, sketch.CLASSES), np.uint32)

    def add(self, state: np.ndarray, first: int, count: int, values: np.ndarray) -> None:
        place = address(values) + 8 * self.start * self.stride
        self._count(count, place, address(state))

    def finish(self, state: np.ndarray) -> dict[str, np.ndarray]:
        keys, counts = sketch.harvested(state)
        return {"keys": keys, "counts": counts}

    def merge(self, a: Partial, b: Partial) -> dict[str, np.ndarray]:
        keys, counts = sketch.merged((a["keys"], a["counts"]), (b["keys"], b["counts"]))
        return {"keys": keys, "counts": counts}

    def bytes(self, points: int) -> int:
        return 4 * self.rows * sketch.CLASSES


class CellQuantiles(Reduction):
    """Exact quantiles over the samples at each combination of the grids; a chunk holds whole cells."""

    name = "cell_quantiles"

    def __init__(self, start: int, rows: int, stride: int, axes: Axes, levels: Sequence[Sequence[float]]):
        super().__init__(start, rows, stride)
        self._axes = axes
        self._levels = levels  # of each row
        self._most = max(len(row) for row in levels)

    def begin(self, chunk: Chunk) -> dict[str, Any]:
        return {"chunk": chunk, "values": np.empty((self.rows, chunk.count))}

    def add(self, state: dict[str, Any], first: int, count: int, values: np.ndarray) -> None:
        start = first - state["chunk"].first
        state["values"][:, start : start + count] = values[self.start : self.start + self.rows, :count]

    def finish(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        chunk, per_cell = state["chunk"], self._axes.per_cell
        values = np.full((chunk.count // per_cell, self.rows, self._most), np.nan)
        ascending = np.sort(state["values"].reshape(self.rows, -1, per_cell), axis=-1)  # NaN last
        valid = np.count_nonzero(ascending == ascending, axis=-1)
        for row, levels in enumerate(self._levels):
            for k, level in enumerate(levels):
                place = np.maximum(np.ceil(level * valid[row]).astype(np.intp) - 1, 0)
                values[:, row, k] = np.take_along_axis(ascending[row], place[:, np.newaxis], axis=-1)[:, 0]
        return {"quantiles": values, "counts": valid.T}

    def merge(self, a: Partial, b: Partial) -> dict[str, np.ndarray]:
        raise AssertionError("a cell lies in one chunk")

    def bytes(self, points: int) -> int:
        return 16 * self.rows * points


class Histograms(Reduction):
    """Counts in bins of equal width: below, the bins, above, and what is not a number."""

    name = "histograms"

    def __init__(self, start: int, rows: int, stride: int, bins: Sequence[tuple[float, float, int]]):
        super().__init__(start, rows, stride)
        self._bins = bins  # of each row
        self._most = max(count for _, _, count in bins) + 3

    def begin(self, chunk: Chunk) -> np.ndarray:
        return np.zeros((self.rows, self._most), np.int64)

    def add(self, state: np.ndarray, first: int, count: int, values: np.ndarray) -> None:
        for row, (low, high, bins) in enumerate(self._bins):
            x = values[self.start + row, :count]
            place = np.floor((x - low) * (bins / (high - low)))
            place = np.where(np.isnan(x), bins + 1, np.clip(place, -1, bins)).astype(np.intp) + 1
            state[row, : bins + 3] += np.bincount(place, minlength=bins + 3)

    def finish(self, state: np.ndarray) -> dict[str, np.ndarray]:
        return {"counts": state}

    def merge(self, a: Partial, b: Partial) -> dict[str, np.ndarray]:
        return {"counts": a["counts"] + b["counts"]}
