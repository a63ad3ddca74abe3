"""Timing: medians of interleaved repeats, so that other load on the machine affects all of them equally.

What is measured is processor time of this process, all its threads, so that other processes do not count; on a core of
its own that is the time on the clock.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

SAMPLE = 8e-3  # [s] that one sample lasts at least; a call is repeated until it does


def medians(calls: Sequence[Callable[[], Any]], rounds: int, sample: float = SAMPLE) -> list[float]:
    """Seconds per call of each, the median of so many rounds in which every call has its turn of ``sample`` seconds."""
    numbers = [_repeats(call, sample) for call in calls]
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        order = range(len(calls)) if turn % 2 == 0 else reversed(range(len(calls)))
        for k in order:
            samples[k].append(_seconds(calls[k], numbers[k]) / numbers[k])
    return [float(np.median(each)) for each in samples]


def _repeats(call: Callable[[], Any], sample: float) -> int:
    """How often a call must be repeated to fill a sample; also warms it up."""
    call()
    number = 1
    while number < 1_000_000 and (took := _seconds(call, number)) < sample:
        number = max(
            2 * number, int(number * 1.2 * sample / max(took, 1e-7)) if took > sample / 10 else 10 * number
        )
    return number


def _seconds(call: Callable[[], Any], number: int) -> float:
    turns = range(number)
    start = time.process_time()
    for _ in turns:
        call()
    return time.process_time() - start


def is_busy() -> bool:
    """Whether other processes load this machine, so that figures are rough."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.75 * (os.cpu_count() or 1)


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Everything in the block runs on one core with one thread of ours; no garbage collection meanwhile."""
    pinned = hasattr(os, "sched_setaffinity")
    threads = os.environ.get("LINKWISE_THREADS")
    before = os.sched_getaffinity(0) if pinned else set()
    collecting = gc.isenabled()
    try:
        if pinned:
            os.sched_setaffinity(0, {max(before)})
        os.environ["LINKWISE_THREADS"] = "1"
        gc.collect()
        gc.disable()
        yield
    finally:
        if collecting:
            gc.enable()
        if threads is None:
            del os.environ["LINKWISE_THREADS"]
        else:
            os.environ["LINKWISE_THREADS"] = threads
        if pinned:
            os.sched_setaffinity(0, before)
