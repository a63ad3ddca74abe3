"""The machine's own limit: how many operations per second independent fused multiply-adds reach on one core."""

from __future__ import annotations

import time

import numpy as np

from linkwise.compiler.emit import peak
from linkwise.compiler.emit.lanes import Lanes
from linkwise.compiler.native import RUN
from linkwise.compiler.runtime import host, machine

_CHAINS = 12  # independent sums: more than latency times throughput of any processor
_TURNS = 100_000  # of the loop, per measurement: milliseconds


class Peak:
    """A loop of nothing but fused multiply-adds, in the widest vectors of this machine."""

    def __init__(self, dtype: str):
        lanes = Lanes(host.lanes(dtype), dtype)
        self._code = machine.load(
            machine.compile_text(peak.module(lanes, _CHAINS))
        )  # must outlive the function
        self._run = RUN(self._code.functions["run"])
        self._scratch = np.full(_CHAINS * lanes.width, 0.5, dtype)
        self._operations = 2 * _CHAINS * lanes.width * _TURNS

    def measure(self, repeats: int = 10) -> float:
        """Operations per second; a fused multiply-add is two."""
        best = 0.0
        for _ in range(repeats):
            start = time.process_time()
            self._run(0, _TURNS, 0, self._scratch.ctypes.data)
            best = max(best, self._operations / (time.process_time() - start))
        return best
