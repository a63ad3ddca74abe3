"""Who computes the chunks: an engine takes their numbers and gives back what became of each, in any order."""

from __future__ import annotations

import errno
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwise.study.chunks import Worker
from linkwise.study.errors import StoppedError
from linkwise.study.plan import Plan
from linkwise.study.store import Store

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


@dataclass(frozen=True)
class Outcome:
    """A chunk that is done (``record`` for the journal), or one that kept failing (``error``)."""

    chunk: int
    record: bytes | None = None
    error: str = ""


class Engine(ABC):
    """Computes chunks of a plan for a store."""

    def meet(self, store: Store) -> None:  # noqa: B027  # most have nobody to ask
        """Make sure that everybody can write to the store."""

    def close(self) -> None:  # noqa: B027
        """Leave nothing behind."""

    @abstractmethod
    def run(self, plan: Plan, store: Store, chunks: Sequence[int]) -> Iterator[Outcome]:
        """What became of each chunk. A ``StoppedError`` means that going on makes no sense."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """Chunks that are computed at the same time."""


def attempt(worker: Worker, chunk: int, retries: int) -> Outcome:
    """A chunk, tried a few times. A full or broken disk is no matter of the chunk, and stops the run."""
    error: BaseException | None = None
    for _ in range(retries + 1):
        try:
            return Outcome(chunk, worker.chunk(chunk))
        except OSError as problem:
            if problem.errno in NO_SPACE:
                raise StoppedError(f"{worker.store.path}: {problem.strerror}") from None
            error = problem
        except Exception as problem:
            error = problem
    assert error is not None
    return Outcome(chunk, None, f"{type(error).__name__}: {error}")


class LocalEngine(Engine):
    """Threads of this process: compiled code runs without the interpreter lock."""

    def __init__(self, threads: int):
        self._threads = threads

    @property
    def threads(self) -> int:
        return self._threads

    def run(self, plan: Plan, store: Store, chunks: Sequence[int]) -> Iterator[Outcome]:
        worker = Worker(plan, store)
        todo = iter(chunks)
        taking = threading.Lock()
        results: queue.Queue[Outcome | BaseException] = queue.Queue(2 * self._threads)
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                with taking:
                    chunk = next(todo, None)
                if chunk is None:
                    return
                try:
                    results.put(attempt(worker, chunk, plan.description.retries))
                except BaseException as problem:
                    results.put(problem)
                    return

        # not daemons: a chunk that is being written when the run ends is written to its end
        team = [threading.Thread(target=work, name=f"linkwise-study-{k}") for k in range(self._threads)]
        for thread in team:
            thread.start()
        try:
            for _ in range(len(chunks)):
                outcome = results.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                yield outcome
        finally:
            stop.set()
            for thread in team:
                while thread.is_alive():
                    _drain(results)
                    thread.join(0.05)


def _drain(results: queue.Queue) -> None:
    try:
        while True:
            results.get_nowait()
    except queue.Empty:
        pass
