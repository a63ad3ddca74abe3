"""One chunk from its number to its place in the store: what a worker does, whoever the worker is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from linkwise.study.axes import Chunk
from linkwise.study.pack import packed
from linkwise.study.plan import Plan, Workspace
from linkwise.study.shards import Shard
from linkwise.study.store import Store
from linkwise.study.tables import parquet

WRITERS = 64
"""At most; there are as many as there are callers that wait."""


class Worker:
    """Computes chunks of one plan for one store; any number of threads may call it."""

    def __init__(self, plan: Plan, store: Store):
        self.plan, self.store = plan, store
        self._own = threading.local()
        self._writers = ThreadPoolExecutor(WRITERS, "linkwise-study-writer")

    def chunk(self, number: int) -> bytes:
        """Compute a chunk, write its raw arrays and tables; its record for the journal."""
        return self.begin(number)()

    def begin(self, number: int) -> Callable[[], bytes]:
        """Compute a chunk and begin to make its files durable; what comes back waits for that and gives the record.

        While the disk works on one chunk, the caller may compute the next.
        """
        chunk = self.plan.axes.chunk(number)
        shards = self.store.shards(chunk)
        failed = _Failures(self.plan)
        try:
            arrays = self._computed(chunk, shards, failed)
        except BaseException:
            _drop(shards)
            raise

        def written() -> bytes:
            try:
                files = failed.write(self.store, chunk)
                files |= {self.store.shard_path(name, chunk): shard.put() for name, shard in shards.items()}
            except BaseException:
                _drop(shards)
                raise
            facts: dict[str, Any] = {"chunk": number, "files": files, "failures": failed.counts}
            return packed(arrays, facts)

        return self._writers.submit(written).result if shards else written

    def _computed(self, chunk: Chunk, shards: dict[str, Shard], failed: _Failures) -> dict[str, np.ndarray]:
        """The reductions of a chunk, by name; its raw values go to the shards."""
        plan, space = self.plan, self._workspace()
        states = {key: reduction.begin(chunk) for key, reduction in plan.reductions.items()}
        for first, count in plan.axes.blocks(chunk, plan.block):
            plan.compute(space, first, count, chunk.first + chunk.count)
            for name, shard in shards.items():
                shard.add(space.values[plan.slots[name].rows, :count])
            failed.add(first, count, space.values)
            for key, reduction in plan.reductions.items():
                reduction.add(states[key], first, count, space.values)
        for shard in shards.values():
            shard.finish()
        return {
            f"{key}/{name}": array
            for key, reduction in plan.reductions.items()
            for name, array in reduction.finish(states[key]).items()
        }

    def close(self) -> None:
        """Wait for what is being written."""
        self._writers.shutdown()

    def _workspace(self) -> Workspace:
        if not hasattr(self._own, "space"):
            self._own.space = Workspace(self.plan)
        return self._own.space


def _drop(shards: dict[str, Shard]) -> None:
    for shard in shards.values():
        shard.drop()


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
