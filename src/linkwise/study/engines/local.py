"""Engines compute chunks: an engine takes their numbers and returns the outcome of each, in any order."""

from __future__ import annotations

import functools
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from linkwise.study.engines.attempts import NO_SPACE
from linkwise.study.engines.chunks import Worker
from linkwise.study.errors import StoppedError
from linkwise.study.plan import Plan
from linkwise.study.store.folder import Store


@dataclass(frozen=True)
class ChunkOutcome:
    """A chunk that is done (``record`` for the journal), or one that kept failing (``error``)."""

    chunk: int
    record: bytes | None = None
    error: str = ""


class Engine(ABC):
    """Computes chunks of a plan for a store."""

    def meet(self, store: Store) -> None:  # noqa: B027  # most engines have no workers to check
        """Check that all workers can write to the store."""

    def close(self) -> None:  # noqa: B027
        """Release all resources."""

    @abstractmethod
    def run(self, plan: Plan, store: Store, chunks: Sequence[int]) -> Generator[ChunkOutcome]:
        """What became of each chunk; to be closed. A ``StoppedError`` ends the run."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """Chunks that are computed at the same time."""


def outcomes(worker: Worker, chunks: Iterable[int]) -> Iterator[ChunkOutcome]:
    """What becomes of chunks, in their order; a chunk is computed while the files of the one before are written."""
    ready: Callable[[], ChunkOutcome] | None = None
    for chunk in chunks:
        following = _begin(worker, chunk)
        if ready is not None:
            yield ready()
        ready = following
    if ready is not None:
        yield ready()


def _begin(worker: Worker, chunk: int) -> Callable[[], ChunkOutcome]:
    """A chunk that has been computed: call to wait for its files. What failed is tried again, from the beginning."""
    try:
        waiting = worker.begin(chunk)
    except Exception as problem:
        return functools.partial(_again, worker, chunk, problem)

    def wait() -> ChunkOutcome:
        try:
            return ChunkOutcome(chunk, waiting())
        except Exception as problem:
            return _again(worker, chunk, problem)

    return wait


def _again(worker: Worker, chunk: int, problem: Exception) -> ChunkOutcome:
    """Tries again a few times. Disk errors are not specific to a chunk, so they abort the run."""
    for _ in range(worker.plan.description.retries):
        _stop_for(problem, worker)
        try:
            return ChunkOutcome(chunk, worker.chunk(chunk))
        except Exception as another:
            problem = another
    _stop_for(problem, worker)
    return ChunkOutcome(chunk, None, f"{type(problem).__name__}: {problem}")


def _stop_for(problem: Exception, worker: Worker) -> None:
    if isinstance(problem, StoppedError):
        raise problem
    if isinstance(problem, OSError) and problem.errno in NO_SPACE:
        raise StoppedError(f"{worker.store.path}: {problem.strerror}") from None


class LocalEngine(Engine):
    """Threads of this process: compiled code runs without the interpreter lock."""

    def __init__(self, threads: int):
        self._threads = threads

    @property
    def threads(self) -> int:
        return self._threads

    def run(self, plan: Plan, store: Store, chunks: Sequence[int]) -> Generator[ChunkOutcome]:
        worker = Worker(plan, store)
        todo = iter(chunks)
        taking = threading.Lock()
        results: queue.Queue[ChunkOutcome | BaseException] = queue.Queue(2 * self._threads)
        stop = threading.Event()

        def share() -> Iterator[int]:
            """The chunks that one thread takes."""
            while not stop.is_set():
                with taking:
                    chunk = next(todo, None)
                if chunk is None:
                    return
                yield chunk

        def hand_over(result: ChunkOutcome | BaseException) -> None:
            while not stop.is_set():  # then no thread takes results any more
                with suppress(queue.Full):
                    results.put(result, timeout=0.1)
                    return

        def work() -> None:
            try:
                for outcome in outcomes(worker, share()):
                    hand_over(outcome)
            except BaseException as problem:
                hand_over(problem)

        # not daemons: a chunk that is being written when the run ends is written to its end
        team = [threading.Thread(target=work, name=f"linkwise-study-{k}") for k in range(self._threads)]
        try:
            for thread in team:
                thread.start()
            for _ in range(len(chunks)):
                outcome = results.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                yield outcome
        finally:
            stop.set()
            worker.stopping.set()
            for thread in team:
                if thread.ident is not None:
                    thread.join()
            worker.close()
