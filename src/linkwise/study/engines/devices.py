"""The study's program on a GPU: the same bits, a large run of points at a time.

Used by Dask workers that were started with the resource GPU (``dask worker … --resources "GPU=1"``), and by an embedded
run where the environment variable LINKWISE_STUDY_GPU is set. Random numbers are made on the GPU; what comes back are
the columns that reductions and raw arrays are made of.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import numpy as np

from linkwise.compiler.ir.program import Program
from linkwise.compiler.kernel import Kernel
from linkwise.errors import first_line
from linkwise.study.errors import StudyError
from linkwise.study.sampling.draws import fill_ticks
from linkwise.study.sampling.points import Sampler

BATCH = 1 << 18
"""Points that are computed at a time."""
VARIABLE = "LINKWISE_STUDY_GPU"
RESOURCE = "GPU"


def wanted() -> bool:
    """Whether this process is to use a GPU."""
    if os.environ.get(VARIABLE, "") not in ("", "0"):
        return True
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        return distributed.get_worker().state.total_resources.get(RESOURCE, 0) > 0
    except (ValueError, AttributeError):  # not a worker
        return False


def arrays() -> Any:
    """CuPy, with a GPU to use."""
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() > 0:
            return cupy
        reason = "it sees no GPU"
    except Exception as error:
        reason = first_line(error)
    raise StudyError(f"a GPU was requested and CuPy cannot use one ({reason}); pip install 'linkwise[gpu]'")


class DeviceProgram:
    """Computes the values of any run of points; can be called by any thread; calls run one at a time."""

    def __init__(self, program: Program, sampler: Sampler):
        self._cupy = arrays()
        self._sampler = sampler
        self._sizes = [size for _, size in program.inputs]
        self._kernel = Kernel(program.name, program.inputs, program.outputs, "float64", lambda _: program)
        self._lock = threading.Lock()

    def values(self, first: int, count: int) -> np.ndarray:
        """The outputs of the points from ``first`` on, (columns, count)."""
        with self._lock:
            columns = self._inputs(first, count)
            rows, start = [], 0
            for size in self._sizes:
                rows.append(self._cupy.ascontiguousarray(columns[start : start + size].T))
                start += size
            outputs = self._kernel(*rows)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            flat = [array.reshape(count, -1) for array in outputs]
            return self._cupy.asnumpy(self._cupy.concatenate(flat, axis=1).T)

    def _inputs(self, first: int, count: int) -> Any:
        """The input columns, on the GPU."""
        cupy, sampler = self._cupy, self._sampler
        columns = cupy.empty((sampler.rows, count))
        points = np.arange(first, first + count)
        samples = (points % sampler.axes.per_cell).astype(np.uint64)
        there = cupy.asarray(samples)
        for ticks in sampler.ticks:
            fill_ticks(cupy, ticks, there, columns)
        for column in sampler.columns:
            if column.variable.design != "random":
                columns[column.row] = cupy.asarray(sampler.defined(column, samples))
        for row, values, period in sampler.grids:
            entries = points // period % len(values)
            columns[row : row + values.shape[1]] = cupy.asarray(np.ascontiguousarray(values[entries].T))
        return columns


class DeviceBlocks:
    """Blocks cut from large runs: the next block of a thread has mostly been computed already."""

    def __init__(self, program: DeviceProgram):
        self._program = program
        self._first = self._count = 0
        self._values = np.empty((0, 0))

    def copy(self, first: int, count: int, end: int, target: np.ndarray) -> None:
        """The values of a block into columns; ``end`` is where the caller's run of blocks ends."""
        if not self._first <= first <= first + count <= self._first + self._count:
            self._first, self._count = first, min(BATCH, end - first)
            self._values = self._program.values(self._first, self._count)
        start = first - self._first
        target[: len(self._values), :count] = self._values[:, start : start + count]
