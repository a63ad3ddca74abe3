"""Locks that survive a fork.

A forked child has only the thread that forked. A lock that another thread held is never released there, a module that
another thread was importing stays half imported, and LLVM stays in the middle of a compilation. So a fork waits until
no other thread is inside a section that ``unforked`` guards, and new sections wait until the fork is over. The fork
waits at most ``PATIENCE`` for a section; even then the locks made by ``lock`` are free in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

PATIENCE = 60.0
"""Seconds that a fork waits for what other threads compile."""

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A reentrant lock that no vanished thread holds in a forked child."""
    made = threading.RLock()
    _locks.add(made)
    return made


class _Sections:
    """Counts the threads that are inside a guarded section; sections nest."""

    def __init__(self):
        self._changed = threading.Condition()
        self._inside = 0
        self._forking = 0
        self._own = threading.local()

    def __enter__(self) -> None:
        depth = getattr(self._own, "depth", 0)
        if depth == 0:
            with self._changed:
                while self._forking:
                    self._changed.wait()
                self._inside += 1
        self._own.depth = depth + 1

    def __exit__(self, *_: object) -> None:
        self._own.depth -= 1
        if self._own.depth == 0:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        own = self._own_sections()
        with self._changed:
            self._forking += 1
            self._changed.wait_for(lambda: self._inside <= own, PATIENCE)
        self._changed.acquire()  # no other thread may hold it while the memory is copied

    def after_in_parent(self) -> None:
        self._forking -= 1
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        self._changed = threading.Condition()
        self._forking = 0
        self._inside = self._own_sections()
        for each in list(_locks):
            if not each._is_owned():  # the forking thread goes on with its own
                each._at_fork_reinit()

    def _own_sections(self) -> int:
        return 1 if getattr(self._own, "depth", 0) else 0


unforked = _Sections()
"""``with unforked:`` around work that a fork of another thread must not cut in half."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=unforked.before_fork,
        after_in_parent=unforked.after_in_parent,
        after_in_child=unforked.after_in_child,
    )
