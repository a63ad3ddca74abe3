"""The parts of all chunks brought together, in whatever order they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.study.plan import Plan
from linkwise.study.reduce.reductions import Partial, Reduction
from linkwise.study.reduce.tree import Tree
from linkwise.study.store.digests import Entries

BY_CELL = ("cell_moments", "cell_quantiles")


@dataclass
class Collection:
    """What is known so far: which chunks are done, and their reductions as trees."""

    plan: Plan
    done: set[int] = field(default_factory=set)
    aside: dict[int, str] = field(default_factory=dict)
    """Chunks that were given up, with their errors."""

    def __post_init__(self):
        axes = self.plan.axes
        self._per_row = axes.chunk_grid[-1] if axes.samples is not None else 1
        self.failures = [0] * len(self.plan.description.failures)
        self.unknown = [0] * len(self.plan.description.failures)
        """Points of each set with an unknown result."""
        self.errors: dict[int, int] = {}
        """Chunks with points that could not be computed, and how many."""
        self.files: dict[int, Entries] = {}
        """Of each chunk that is done."""
        self._whole: dict[str, Tree] = {}
        self._cells: dict[str, dict[int, Tree]] = {}
        for key, reduction in self.plan.reductions.items():
            if reduction.name in BY_CELL:
                self._cells[key] = {}
            else:
                self._whole[key] = Tree(axes.chunks, reduction.merge)

    def add(self, arrays: Partial, facts: dict[str, Any]) -> None:
        """A chunk that is done."""
        number = facts["chunk"]
        if number in self.done:  # its files were written again
            self.files[number] = facts["files"]
            return
        self.done.add(number)
        self.aside.pop(number, None)
        self.files[number] = facts["files"]
        if facts["errors"]:
            self.errors[number] = facts["errors"]
        self.failures = [a + b for a, b in zip(self.failures, facts["failures"], strict=True)]
        self.unknown = [a + b for a, b in zip(self.unknown, facts["unknown"], strict=True)]
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            key, _, part = name.rpartition("/")
            parts.setdefault(key, {})[part] = array
        for key, reduction in self.plan.reductions.items():
            self._add_part(key, reduction, number, parts[key])

    def _add_part(self, key: str, reduction: Reduction, number: int, part: Partial | None) -> None:
        if key in self._whole:
            self._whole[key].add(number, part)
            return
        row, column = divmod(number, self._per_row)
        trees = self._cells[key]
        if row not in trees:
            trees[row] = Tree(self._per_row, reduction.merge)
        trees[row].add(column, part)

    def give_up(self) -> None:
        """Close the trees over chunks that were set aside."""
        for number in range(self.plan.axes.chunks):
            if number not in self.done:
                lost = self.plan.axes.chunk(number).count
                self.unknown = [count + lost for count in self.unknown]
                for key, reduction in self.plan.reductions.items():
                    self._add_part(key, reduction, number, None)

    @property
    def complete(self) -> bool:
        """Whether every point of every chunk was computed."""
        return len(self.done) == self.plan.axes.chunks and not self.errors

    def whole(self, key: str) -> Partial | None:
        """A reduction over all points; None where every chunk was set aside."""
        return self._whole[key].result()

    def by_cell(self, key: str, part: str) -> np.ndarray:
        """A reduction at each combination of the grids, (cells, ...); NaN where there is none."""
        axes = self.plan.axes
        table: np.ndarray | None = None
        place = 0
        rows = axes.chunks // self._per_row
        for row in range(rows):
            chunk = axes.chunk(row * self._per_row)
            cells = chunk.count // axes.per_cell if self._per_row == 1 else 1
            tree = self._cells[key].get(row)
            partial = tree.result() if tree is not None and tree.complete else None
            if partial is not None:
                if table is None:
                    table = np.full((axes.cells, *partial[part].shape[1:]), np.nan)
                table[place : place + cells] = partial[part]
            place += cells
        if table is None:
            raise LookupError(key)
        return table
