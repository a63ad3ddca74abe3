"""A batch over threads that never need the interpreter: machine code distributes the chunks.

The helpers are threads of Python that call ``serve`` (see ``emit.pool``) and never come back, so that starting a job
costs no lock of the interpreter and a chunk costs one atomic addition. They end with the process. There is one pool and
one job at a time: a call that finds it busy computes alone, which is also right for a call from inside another batch.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import sys
import threading
from typing import Any

import numpy as np

from linkwise.compiler.emit import pool as text
from linkwise.compiler.runtime import arrays, cache, machine
from linkwise.core import forks, system

CHUNKS_PER_THREAD = 16  # of some microseconds or more; a delayed thread delays the others by one of them
_LINE = 128  # bytes; two cache lines, which some processors fetch together
_SERVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SHARE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def run(code: int, arguments: int, scratch: int, count: int, width: int, threads: int) -> bool:
    """Compute ``count`` states in blocks of ``width`` by the function at address ``code``, with this thread and others.

    Args:
        code: address of a ``RUN`` function (see ``native``).
        arguments: address of its arguments.
        scratch: bytes of scratch that each thread needs.
        count: number of states.
        width: states of one block.
        threads: how many threads take part, this one included; at least 2.

    Returns:
        Whether it was done: not if the pool is at work for another call, or where there is none.
    """
    pool = _pool()
    return pool is not None and pool.run(code, arguments, scratch, count, width, threads)


def prepare(threads: int) -> tuple[int, int]:
    """For machine code that starts jobs itself: the addresses of the pool and of ``share_job``, with helpers waiting.

    (0, 0) where there is no pool.
    """
    pool = _pool()
    if pool is None:
        return 0, 0
    pool.prepare(threads - 1)
    return pool.start, pool.share_address


class _Pool:
    def __init__(self, code: machine.Code, library: ctypes.CDLL):
        self._busy = threading.Lock()  # callers in Python; machine code and they meet in ``share_job``
        self._helpers: list[threading.Thread] = []
        self._mask = _affinity()
        self._memory = np.zeros(text.SIZE + _LINE, np.uint8)
        start = arrays.address(self._memory)
        self.start = start + -start % _LINE
        self._scratch = np.empty(0, np.uint8)
        self._job = (ctypes.c_int64 * len(text.JOB))()
        self._serve = _SERVE(code.functions["serve"])
        self.share_address = code.functions["share_job"]
        self._share = _SHARE(self.share_address)
        # The helpers use both to the end of the process, also while the interpreter takes its modules apart.
        for kept in (code, self._memory):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        for place, function in _FUNCTIONS.items():
            self._set(place, system.c_function(function))
        library.pthread_mutex_init(ctypes.c_void_p(self.start + text.PLACES["mutex"]), None)
        library.pthread_cond_init(ctypes.c_void_p(self.start + text.PLACES["changed"]), None)

    def run(self, code: int, arguments: int, scratch: int, count: int, width: int, threads: int) -> bool:
        if not self._busy.acquire(blocking=False):
            return False
        try:
            self._make_helpers(threads - 1)
            step = scratch + -scratch % _LINE
            if step * threads + _LINE > self._scratch.nbytes:
                self._scratch = np.empty(step * threads + _LINE, np.uint8)
            start = arrays.address(self._scratch)
            chunk = width * -(-count // (width * threads * CHUNKS_PER_THREAD))
            self._job[:] = (code, count, chunk, arguments, start + -start % _LINE, step, threads - 1)
            return bool(self._share(self.start, ctypes.addressof(self._job)))
        finally:
            self._busy.release()

    def prepare(self, helpers: int) -> None:
        """See that so many helpers wait."""
        with self._busy:
            self._make_helpers(helpers)

    def _make_helpers(self, number: int) -> None:
        """So many helpers, on the processors that the calling thread may use now."""
        while len(self._helpers) < number:
            name = f"linkwise-{len(self._helpers) + 1}"
            helper = threading.Thread(target=self._serve, args=(self.start,), name=name, daemon=True)
            helper.start()
            self._helpers.append(helper)
        mask = _affinity()
        if mask != self._mask:
            self._mask = mask
            for helper in self._helpers:
                with contextlib.suppress(OSError):  # then it stays where it was
                    os.sched_setaffinity(helper.native_id or 0, mask)

    def _set(self, place: str, value: int) -> None:
        ctypes.c_int64.from_address(self.start + text.PLACES[place]).value = value


_FUNCTIONS = {
    "lock": "pthread_mutex_lock",
    "unlock": "pthread_mutex_unlock",
    "wait": "pthread_cond_wait",
    "broadcast": "pthread_cond_broadcast",
    "syscall": "syscall",
}


def _affinity() -> Any:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


@functools.cache
def _code() -> machine.Code:
    processor = platform.machine()
    content = text.module(processor, text.FUTEX.get(processor) if sys.platform == "linux" else None)
    name = cache.key(b"threads\0" + content.encode())
    stored = cache.load(name)
    if stored is None:
        stored = machine.compile_text(content)
        cache.store(name, stored)
    return machine.load(stored)


@functools.cache
def _has_posix_threads() -> bool:
    return not system.WINDOWS and all(map(system.c_function, _FUNCTIONS.values()))


_shared: _Pool | None = None
_making = forks.lock()


def _pool() -> _Pool | None:
    """The pool; None where the C library has no POSIX threads."""
    global _shared
    if _shared is None and _has_posix_threads():
        with forks.unforked, _making:
            if _shared is None:
                _shared = _Pool(_code(), ctypes.CDLL(None))
    return _shared


def missing() -> bool:
    """Whether this system has no such pool."""
    return _pool() is None


def _forget_pool() -> None:
    """In a forked child the helpers are gone; a new pool is made when one is needed."""
    global _shared
    _shared = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
