"""Compiling in another process while this one goes on.

LLVM cannot be interrupted, a thread inside it would delay the end of the program and every fork, and tracing holds the
interpreter lock. So the work goes to a child process: it reads tasks from its standard input, keeps what it makes in
the cache and writes it to a temporary file. This process looks at that file when it needs the code; there is no thread.
Where the cache can be used the child outlives this process, so that the next one finds the code; elsewhere it is ended
with it.

``LINKWISE_BACKGROUND=0`` switches all of it off: everything is compiled when it is needed, at once. With
``LINKWISE_BACKGROUND=quick`` that is done quickly, and no better code is made: for tests and scripts that compile more
than they compute.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.runtime import cache
from linkwise.core import children, forks

_LENGTH = 8  # bytes of the number before each result
_PROGRAM = "from linkwise.compiler.runtime import background; background.serve()"


@dataclass(frozen=True)
class Task:
    """``function(*args)`` makes an entry of the cache, stores it there and gives its bytes."""

    function: Callable[..., bytes]
    args: tuple[Any, ...]


def is_on() -> bool:
    """Whether something may be compiled in the background."""
    wanted = os.environ.get("LINKWISE_BACKGROUND", "1") not in ("0", "quick")
    return wanted and children.can_start()


class Job:
    """A child process with a list of tasks. Its output is polled; only ``wait`` waits for it."""

    def __init__(self, tasks: list[Task]):
        import pickle
        import subprocess
        import tempfile

        self.count = len(tasks)
        self._owner = os.getpid()
        self._lock = forks.lock()
        self._kept = cache.prepare()
        self._results: list[bytes] = []
        self._size = 0  # bytes of the output that were looked at
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the job)
        with tempfile.TemporaryFile() as given:
            pickle.dump(tasks, given)
            given.seek(0)
            self._process = subprocess.Popen(
                children.command(_PROGRAM),
                stdin=given,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
                env=children.environment({"LINKWISE_BACKGROUND": "0"}),
            )
        _running.append(self)

    @property
    def is_over(self) -> bool:
        """Whether no more results will come. True in a forked child of this process, which cannot wait for it."""
        return self._owner != os.getpid() or self._process.poll() is not None

    def results(self) -> list[bytes]:
        """Results of the tasks so far, in their order."""
        with self._lock:
            if not self._output.closed:
                output, was_over = self._output.fileno(), self.is_over
                size = os.fstat(output).st_size
                if size != self._size and (was_over or hasattr(os, "pread")):
                    self._results, self._size = _whole_results(_beginning(output, size)), size
                if was_over or len(self._results) == self.count:
                    self._output.close()
        return self._results

    def wait(self, timeout: float | None) -> bool:
        """Wait until the process has ended; False where that takes longer."""
        if self._owner != os.getpid():
            return False
        import subprocess

        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def leave(self) -> None:
        """At exit of this process: the child continues if its results go to the cache, else it is ended."""
        if self._owner == os.getpid() and self._process.poll() is None:
            if not self._kept:
                self._process.kill()
                self._process.wait()
            self._process.returncode = 0  # so that ``subprocess`` does not warn about a child that goes on
        with self._lock:
            self._output.close()


class Result:
    """One result of a job."""

    def __init__(self, job: Job, place: int = 0):
        self._job, self._place = job, place

    def get(self) -> bytes | None:
        """The result if it is there."""
        found = self._job.results()
        return found[self._place] if len(found) > self._place else None

    @property
    def is_missing(self) -> bool:
        """Whether it will never come: the child has failed, or this process was forked."""
        return self._job.is_over and self.get() is None


_running: list[Job] = []


def start(task: Task) -> Result | None:
    """Give a task to a new child; None where another one is busy, or no child can be started."""
    for job in [job for job in _running if job.is_over]:
        job.results()  # reads the rest and closes the file, which nobody else may ask for
        _running.remove(job)
    if len(_running) >= max(1, (os.cpu_count() or 1) // 4):
        return None
    job = start_all([task])
    return None if job is None else Result(job)


def start_all(tasks: list[Task]) -> Job | None:
    """A new child with these tasks; None where none can be started."""
    try:
        return Job(tasks)
    except OSError:
        return None


def _packed(result: bytes) -> bytes:
    return len(result).to_bytes(_LENGTH, "little") + hashlib.sha256(result).digest() + result


def _beginning(descriptor: int, size: int) -> bytes:
    """The first bytes of a file. Without ``pread`` (Windows) this moves the place where the other process writes."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, size)


def _whole_results(data: bytes) -> list[bytes]:
    """Results that were written completely: each with its length and its checksum before it."""
    found: list[bytes] = []
    at = 0
    while len(data) >= at + _LENGTH + 32:
        size = int.from_bytes(data[at : at + _LENGTH], "little")
        checksum, result = data[at + _LENGTH : at + _LENGTH + 32], data[at + _LENGTH + 32 :][:size]
        if len(result) < size or hashlib.sha256(result).digest() != checksum:
            break
        found.append(result)
        at += _LENGTH + 32 + size
    return found


def serve() -> None:
    """What the child does."""
    import pickle

    cache.creates = False  # a folder that was removed in the meantime is not made again
    for task in pickle.load(sys.stdin.buffer):
        result = task.function(*task.args)
        sys.stdout.buffer.write(_packed(result))
        sys.stdout.buffer.flush()


@atexit.register
def _leave_all() -> None:
    for job in _running:
        job.leave()
