"""Timing: medians of interleaved repeats, so that whatever else the machine does falls on all alike."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

SAMPLE = 2e-3  # [s] that one sample lasts at least; a call is repeated until it does


def medians(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Seconds per call of each, the median of so many rounds in which every call has its turn."""
    numbers = [_repeats(call) for call in calls]
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        order = range(len(calls)) if turn % 2 == 0 else reversed(range(len(calls)))
        for k in order:
            samples[k].append(_seconds(calls[k], numbers[k]) / numbers[k])
    return [float(np.median(each)) for each in samples]


def _repeats(call: Callable[[], Any]) -> int:
    """How often a call must be repeated to fill a sample; also warms it up."""
    call()
    number = 1
    while number < 1_000_000 and (took := _seconds(call, number)) < SAMPLE:
        number = max(2 * number, int(number * 1.2 * SAMPLE / max(took, 1e-7)) if took > SAMPLE / 10 else 10 * number)
    return number


def _seconds(call: Callable[[], Any], number: int) -> float:
    turns = range(number)
    start = time.perf_counter()
    for _ in turns:
        call()
    return time.perf_counter() - start


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Everything in the block, threads of other libraries too, shares one core; no garbage collection meanwhile."""
    pinned = hasattr(os, "sched_setaffinity")
    before = os.sched_getaffinity(0) if pinned else set()
    collecting = gc.isenabled()
    try:
        if pinned:
            os.sched_setaffinity(0, {max(before)})
        gc.collect()
        gc.disable()
        yield
    finally:
        if collecting:
            gc.enable()
        if pinned:
            os.sched_setaffinity(0, before)
