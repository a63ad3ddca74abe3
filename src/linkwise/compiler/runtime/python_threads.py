"""A batch over threads of Python, where there are no POSIX threads for ``native_threads``.

The compiled code runs without the interpreter lock, so they run at once; between chunks they wait for the lock.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

_CHUNKS_PER_THREAD = 4  # so that a delayed thread does not delay the others

Work = Callable[[int, int], None]
"""Computes the states from ``first`` on, ``count`` of them."""


def run(work: Work, count: int, width: int, threads: int) -> None:
    """Compute ``count`` states in blocks of ``width`` with at most so many threads, this one included."""
    blocks = -(-count // width)
    threads = min(threads, blocks)
    if threads <= 1:
        work(0, count)
        return
    chunk = width * -(-blocks // (threads * _CHUNKS_PER_THREAD))
    job = _Job(work, count, chunk)
    _pool().help_with(job, threads - 1)
    job.take_part()
    job.finished.wait()


class _Job:
    """A batch cut into chunks; each free thread takes the next one."""

    def __init__(self, work: Work, count: int, chunk: int):
        self._work: Work = work
        self._count = count
        self._chunk = chunk
        self._next = itertools.count()  # its steps cannot be interrupted
        self._left = -(-count // chunk)
        self._lock = threading.Lock()
        self.finished = threading.Event()

    def take_part(self) -> None:
        while (first := next(self._next) * self._chunk) < self._count:
            self._work(first, min(self._chunk, self._count - first))
            with self._lock:
                self._left -= 1
                if self._left == 0:
                    self._work = _nothing  # a helper that comes late must not keep the arrays alive
                    self.finished.set()


def _nothing(first: int, count: int) -> None:
    pass


class _Pool:
    """Threads that wait for jobs. They end with the process."""

    def __init__(self):
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._size = 0
        self._lock = threading.Lock()

    def help_with(self, job: _Job, helpers: int) -> None:
        with self._lock:
            while self._size < helpers:
                self._size += 1
                threading.Thread(target=self._serve, name=f"linkwise-{self._size}", daemon=True).start()
        for _ in range(helpers):
            self._jobs.put(job)

    def _serve(self) -> None:
        while True:
            self._jobs.get().take_part()


_shared: _Pool | None = None
_making = threading.Lock()


def _pool() -> _Pool:
    global _shared
    with _making:
        if _shared is None:
            _shared = _Pool()
        return _shared


def _forget_pool() -> None:
    """In a forked child the threads are gone; a new pool is made when one is needed."""
    global _shared, _making
    _shared = None
    _making = threading.Lock()  # the old one may have been held while forking


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
