"""Computes one chunk and writes it to the store; used by local threads and cluster workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.study.engines.attempts import Attempts, PointError
from linkwise.study.errors import StoppedError
from linkwise.study.plan import Plan, Workspace
from linkwise.study.sampling.axes import Chunk
from linkwise.study.store.digests import Entry
from linkwise.study.store.folder import ERRORS, FAILURES, Store
from linkwise.study.store.pack import packed
from linkwise.study.store.shards import Shard
from linkwise.study.store.tables import parquet

WRITERS = 64
"""At most; there are as many as there are callers that wait."""


class Worker:
    """Computes chunks of one plan for one store; any number of threads may call it."""

    def __init__(self, plan: Plan, store: Store):
        self.plan, self.store = plan, store
        self.attempts: Callable[[], Attempts] = lambda: Attempts(plan.description.retries)
        """How steps are called, for a thread."""
        self.stopping = threading.Event()
        """Set: chunks that are being computed are given up."""
        self._own = threading.local()
        self._writers = ThreadPoolExecutor(WRITERS, "linkwise-study-writer")

    def chunk(self, number: int) -> bytes:
        """Compute a chunk, write its raw arrays and tables; its record for the journal."""
        return self.begin(number)()

    def begin(self, number: int) -> Callable[[], bytes]:
        """Compute a chunk and begin to make its files durable; the returned function waits for that and gives the
        record. While one chunk is being written, the caller may compute the next.
        """
        chunk = self.plan.axes.chunk(number)
        shards = self.store.shards(chunk)
        failed, wrong = _Failures(self.plan), _Errors(self.plan)
        try:
            arrays = self._reductions_of(chunk, shards, failed, wrong)
        except BaseException:
            _drop(shards)
            raise

        def written() -> bytes:
            try:
                files = {**failed.write(self.store, chunk), **wrong.write(self.store, chunk)}
                files |= {self.store.shard_path(name, chunk): shard.put() for name, shard in shards.items()}
            except BaseException:
                _drop(shards)
                raise
            facts: dict[str, Any] = {"chunk": number, "files": files}
            facts |= {"failures": failed.counts, "unknown": failed.unknown, "errors": wrong.count}
            return packed(arrays, facts)

        return self._writers.submit(written).result if shards else written

    def _reductions_of(
        self, chunk: Chunk, shards: dict[str, Shard], failed: _Failures, wrong: _Errors
    ) -> dict[str, np.ndarray]:
        """The reductions of a chunk, by name; its raw values go to the shards."""
        plan, space = self.plan, self._workspace()
        states = {key: reduction.begin(chunk) for key, reduction in plan.reductions.items()}
        for first, count in plan.axes.blocks(chunk, plan.block):
            if self.stopping.is_set():
                raise StoppedError("stopped")
            plan.compute(space, first, count, chunk.first + chunk.count)
            for name, shard in shards.items():
                shard.add(space.values[plan.slots[name].rows, :count])
            failed.add(first, count, space.values)
            wrong.add(first, space.attempts.errors, space.values)
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
            self._own.space = Workspace(self.plan, self.attempts())
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
        self.unknown = [0] * len(self._sets)
        """Points of each set at which its formula could not be computed."""

    def add(self, first: int, count: int, values: np.ndarray) -> None:
        for k, (_, flag, _, rows) in enumerate(self._sets):
            flags = values[flag, :count]
            self.unknown[k] += int(np.count_nonzero(np.isnan(flags)))
            flagged = np.flatnonzero((flags != 0.0) & (flags == flags))
            if flagged.size:
                self._points[k].append(first + flagged)
                self._values[k].append(values[rows][:, flagged])

    @property
    def counts(self) -> list[int]:
        return [sum(len(part) for part in points) for points in self._points]

    def write(self, store: Store, chunk: Chunk) -> dict[str, Entry]:
        """A file for each set that has points."""
        written: dict[str, Entry] = {}
        for (failure, _, names, _), points, values in zip(
            self._sets, self._points, self._values, strict=True
        ):
            if points:
                table = {
                    "point": np.concatenate(points),
                    **dict(zip(names, np.concatenate(values, axis=1), strict=True)),
                }
                path = f"{FAILURES}/{failure.name}/{chunk.number:010d}.parquet"
                written |= store.write_table(path, parquet(table, {"when": failure.when}))
        return written


class _Errors:
    """The points of a chunk that could not be computed, with what the steps were given there."""

    def __init__(self, plan: Plan):
        self._plan = plan
        self._errors: list[PointError] = []
        variables = {v.name for v in plan.description.variables}
        taken = [name for step in plan.later for name in step.takes if name not in variables]
        self._slots = [plan.slots[name] for name in dict.fromkeys(taken)]
        self._given: list[np.ndarray] = []
        self._known: dict[str, str] = {}

    def add(self, first: int, errors: Sequence[PointError], values: np.ndarray) -> None:
        for error in errors:
            # many points have the same traceback, which is long
            told = self._known.setdefault(error.traceback, error.traceback)
            self._errors.append(replace(error, traceback=told))
            column = values[:, error.point - first]
            self._given.append(np.concatenate([column[slot.rows] for slot in self._slots] or [column[:0]]))

    @property
    def count(self) -> int:
        """Points; several steps may fail at one."""
        return len({error.point for error in self._errors})

    def write(self, store: Store, chunk: Chunk) -> dict[str, Entry]:
        """A file, if there are any."""
        if not self._errors:
            return {}
        order = sorted(range(len(self._errors)), key=lambda k: self._errors[k].point)
        errors = [self._errors[k] for k in order]
        points = np.array([error.point for error in errors])
        table: dict[str, Any] = {"point": points}
        for key in ("step", "error", "traceback"):
            table[key] = [getattr(error, key) for error in errors]
        table |= self._plan.variables_at(points)
        labels = [label for slot in self._slots for label in slot.quantity.labels(self._plan.robot)]
        table |= dict(zip(labels, np.array([self._given[k] for k in order]).T, strict=True))
        path = f"{ERRORS}/{chunk.number:010d}.parquet"
        return dict(store.write_table(path, parquet(table)))
