"""How many threads a batch gets, and which pool runs it.

Chunks start at multiples of the vector width, and every state is computed by itself: the number of threads
changes no bit of the result.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.compiler.runtime import arrays, native_threads, python_threads
from linkwise.errors import ArgumentError

if TYPE_CHECKING:
    from linkwise.compiler.native import Native

limit: int | None = None
"""The most threads that a call without ``threads=`` takes; set by ``threadpoolctl``."""


def wanted(threads: int | None, name: str = "threads") -> int:
    """Number of threads for an argument; None: ``LINKWISE_THREADS``, else the cores this process may
    use, at most ``OMP_NUM_THREADS``."""
    if threads is None:
        text = os.environ.get("LINKWISE_THREADS", "")
        if not text:
            return min(bound for bound in (available(), limit, _openmp()) if bound is not None)
        try:
            return wanted(int(text), "LINKWISE_THREADS")
        except ValueError:
            raise ArgumentError(
                f"LINKWISE_THREADS: expected a whole number from 1 on, got {text!r}"
            ) from None
    return Numbers().whole(name, threads, 1)


def _openmp() -> int | None:
    """Threads that ``OMP_NUM_THREADS`` grants, as batch systems set it; None if it says nothing that can be read.

    A list has a number for every level of nested loops; the first one counts.
    """
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isascii() and first.isdigit() and int(first) > 0 else None


def available() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    native: Native,
    count: int,
    arguments: np.ndarray,
    scratch: int,
    threads: int,
    used: Any,
    repeats: int | None = None,
) -> None:
    """Compute a batch of ``count`` states by compiled code.

    Args:
        native: the code.
        count: the number of states.
        arguments: what the code reads its addresses and strides from.
        scratch: bytes of scratch that a thread needs.
        threads: the most threads to use, this one included; fewer where more would not pay.
        used: what has to stay alive while the code runs, also after an interrupt in Python's own threads.
        repeats: how often a block runs through the code; None: as the code says.
    """
    where = arrays.address(arguments)
    threads = min(threads, native.useful_threads(count, repeats))
    if threads > 1 and native_threads.run(native.address, where, scratch, count, native.width, threads):
        return

    def work(first: int, number: int, _used: Any = (arguments, used)) -> None:
        room = np.empty(scratch, np.uint8)
        native.run(first, number, where, arrays.address(room))

    several = threads > 1 and native_threads.missing()
    python_threads.run(work, count, native.width, threads if several else 1)
