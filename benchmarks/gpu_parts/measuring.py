"""Times and bandwidth on a GPU, kernels as the robot's methods call them, and random states for them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cupy
import numpy as np

import linkwise as lw
from linkwise.compiler.kernel import Kernel
from linkwise.functions.contact_functions import CONTACT_FUNCTIONS
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.robot import kernels

DTYPES = ("float32", "float64")
QUICK = {"states": 64, "steps": 5, "repeats": 2}  # sizes under --quick


class Size:
    """How much is measured: all of it, or just enough to see that everything runs."""

    quick = False

    @classmethod
    def of(cls, what: str, number: int) -> int:
        return min(number, QUICK[what]) if cls.quick else number


def device_seconds(work: Callable[[], Any], repeats: int = 15, warm: int = 3) -> tuple[float, float]:
    """(median, spread between quartiles) of the time of one piece of work on the GPU."""
    repeats = Size.of("repeats", repeats)
    for _ in range(warm):
        work()
    marks = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(repeats)]
    for start, end in marks:
        start.record()
        work()
        end.record()
    marks[-1][1].synchronize()
    times = sorted(cupy.cuda.get_elapsed_time(*pair) * 1e-3 for pair in marks)
    return statistics.median(times), times[-len(times) // 4] - times[len(times) // 4]


def host_seconds(work: Callable[[], Any], repeats: int = 200) -> float:
    """Median wall time of one call."""
    repeats = Size.of("repeats", repeats)
    for _ in range(Size.of("repeats", 10)):
        work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def copy_bandwidth() -> float:
    """Bytes read and written per second by a device-to-device copy of 4 GiB."""
    source = cupy.random.random((Size.of("states", 1 << 29),), dtype=np.float64)
    target = cupy.empty_like(source)
    seconds, _ = device_seconds(
        lambda: cupy.cuda.runtime.memcpyAsync(
            target.data.ptr, source.data.ptr, source.nbytes, 3, cupy.cuda.get_current_stream().ptr
        )
    )
    return 2 * source.nbytes / seconds


def kernel_of(robot: lw.Robot, name: str, algorithm: str | None = None) -> Kernel | None:
    """As the robot's method takes it; None where that runs without a kernel."""
    function = FUNCTIONS[name]
    if ("constrain" in name or name == "impact") and not robot.constraint_rows:
        return None
    if name in CONTACT_FUNCTIONS and not robot.contact_parts:
        return None
    setting = Setting(
        robot, frame=robot.default_frame() if name in ("pose", "jacobian", "velocity") else None
    )
    setting = replace(setting, base_parameters=function.regroups)
    algorithm = function.algorithm(algorithm)
    if not kernels.compiles(function, setting, algorithm):
        return None
    try:
        return kernels.kernel(function, setting, algorithm)
    except TypeError:  # an algorithm that cannot be swept
        return None


def random_states(kernel: Kernel, count: int, dtype: str, seed: int = 0) -> list[cupy.ndarray]:
    generator = cupy.random.default_rng(seed)
    scale = {"q": math.pi, "qd": 2.0, "qdd": 5.0, "tau": 20.0}
    return [
        ((generator.random((count, size), dtype=np.float32) * 2 - 1) * scale.get(name, 1.0)).astype(dtype)
        for name, size in kernel.inputs
    ]


def scalars(kernel: Kernel) -> int:
    """Scalars that one state reads and writes."""
    return sum(size for _, size in kernel.inputs) + sum(math.prod(shape) for _, shape in kernel.outputs)


def as_tuple(result: Any) -> tuple:
    return result if isinstance(result, tuple) else (result,)
