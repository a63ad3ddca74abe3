"""One chunk from its number to its place in the store: what a worker does, whoever the worker is."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from linkwise.study.axes import Chunk
from linkwise.study.pack import packed
from linkwise.study.plan import Plan, Workspace
from linkwise.study.store import Store
from linkwise.study.tables import parquet


class Worker:
    """Computes chunks of one plan for one store; any number of threads may call it."""

    def __init__(self, plan: Plan, store: Store):
        self.plan, self.store = plan, store
        self._own = threading.local()

    def chunk(self, number: int) -> bytes:
        """Compute a chunk, write its raw arrays and tables; its record for the journal."""
        plan = self.plan
        chunk = plan.axes.chunk(number)
        space = self._workspace()
        states = {key: reduction.begin(chunk) for key, reduction in plan.reductions.items()}
        raws = {name: room[:, : chunk.count] for name, room in space.raws.items()}
        failed = _Failures(plan)
        for first, count in plan.axes.blocks(chunk, plan.block):
            plan.compute(space, first, count, chunk.first + chunk.count)
            start = first - chunk.first
            for name, array in raws.items():
                array[:, start : start + count] = space.values[plan.slots[name].rows, :count]
            failed.add(first, count, space.values)
            for key, reduction in plan.reductions.items():
                reduction.add(states[key], first, count, space.values)
        arrays = {
            f"{key}/{name}": array
            for key, reduction in plan.reductions.items()
            for name, array in reduction.finish(states[key]).items()
        }
        written = failed.write(self.store, chunk)
        for name, values in raws.items():
            written |= self.store.write_raw(name, values, chunk)
        facts: dict[str, Any] = {"chunk": number, "files": written, "failures": failed.counts}
        return packed(arrays, facts)

    def _workspace(self) -> Workspace:
        if not hasattr(self._own, "space"):
            self._own.space = Workspace(self.plan)
        return self._own.space


class _Failures:
    """The points of a chunk at which something failed, set by set."""

    def __init__(self, plan: Plan):
        self._sets = list(plan.failures())
        self._points: list[list[np.ndarray]] = [[] for _ in self._sets]
        self._values: list[list[np.ndarray]] = [[] for _ in self._sets]

    def add(self, first: int, count: int, values: np.ndarray) -> None:
        for k, (_, flag, _, rows) in enumerate(self._sets):
            found = np.flatnonzero(values[flag, :count] != 0.0)
            if found.size:
                self._points[k].append(first + found)
                self._values[k].append(values[rows][:, found])

    @property
    def counts(self) -> list[int]:
        return [sum(len(part) for part in points) for points in self._points]

    def write(self, store: Store, chunk: Chunk) -> dict[str, int]:
        """A file for each set that has points."""
        written: dict[str, int] = {}
        for (failure, _, names, _), points, values in zip(
            self._sets, self._points, self._values, strict=True
        ):
            if points:
                table = {
                    "point": np.concatenate(points),
                    **dict(zip(names, np.concatenate(values, axis=1), strict=True)),
                }
                path = f"failures/{failure.name}/{chunk.number:010d}.parquet"
                written |= store.write_table(path, parquet(table, {"when": failure.when}))
        return written
