"""Runs a script that needs CuPy and a GPU without either: ``python pretended_cupy.py SCRIPT ARGUMENTS``.

A module ``cupy`` made of NumPy stands in for CuPy, and the CPU's kernels for those of the GPU. What is measured means
nothing; that the script runs to its end, with the functions and results that the package has today, does.
"""

from __future__ import annotations

import contextlib
import ctypes
import runpy
import sys
import time
import types
from pathlib import Path
from typing import ClassVar

import numpy as np


class Array(np.ndarray):
    """A NumPy array with the few attributes of CuPy's that scripts use."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


def on_device(array) -> Array:
    return np.asarray(array).view(Array)


class Generator:
    def __init__(self, seed=None):
        self.generator = np.random.default_rng(seed)

    def random(self, size, dtype=np.float64):
        return on_device(self.generator.random(size, dtype=dtype))


class Event:
    def __init__(self):
        self.time = 0.0

    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        pass


class Stream(contextlib.nullcontext):
    ptr = 0

    def __init__(self, non_blocking=False):
        super().__init__()

    def synchronize(self):
        pass

    def begin_capture(self):
        pass

    def end_capture(self):
        return types.SimpleNamespace(launch=lambda: None)


def cupy_of_numpy() -> types.ModuleType:
    module = types.ModuleType("cupy")
    module.__dict__.update(
        ndarray=Array,
        uint32=np.uint32,
        uint64=np.uint64,
        isnan=np.isnan,
        asarray=on_device,
        asnumpy=lambda a: np.array(a),
        empty=lambda shape, dtype=float: on_device(np.zeros(shape, dtype)),
        zeros=lambda shape, dtype=float: on_device(np.zeros(shape, dtype)),
        empty_like=lambda a: on_device(np.zeros_like(a)),
        get_default_memory_pool=lambda: types.SimpleNamespace(free_all_blocks=lambda: None),
        random=types.SimpleNamespace(
            default_rng=Generator, random=lambda size, dtype: Generator(0).random(size, dtype)
        ),
        cuda=types.SimpleNamespace(
            Event=Event,
            Stream=Stream,
            get_current_stream=Stream,
            get_elapsed_time=lambda start, end: 1e3 * (end.time - start.time) + 1e-6,
            runtime=types.SimpleNamespace(
                getDevice=lambda: 0,
                getDeviceProperties=lambda number: {"name": b"a pretended GPU"},
                memcpyAsync=lambda *words: None,
            ),
        ),
    )
    return module


class Function:
    """In place of a function on the device: it can be launched, and does nothing."""

    states = threads = 32
    scratch, most_blocks, grows = 0, 1000, True

    def __init__(self, *_about):
        pass

    resources: ClassVar = {"registers": 0, "local": 0}

    def launch(self, blocks, stream, *words):
        pass


NOTHING = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(lambda *_words: 0)


def pretend() -> None:
    """Put the CPU in place of the GPU in everything that scripts import from ``linkwise.gpu``."""
    sys.modules["cupy"] = cupy_of_numpy()
    from linkwise import gpu
    from linkwise.gpu import device, driver, launch, nvrtc

    prepared = types.SimpleNamespace(address=0, words=lambda pointers, count: (*pointers, 0, count))
    launch.prepare = lambda *_about: prepared
    launch.launch_address = lambda: ctypes.cast(NOTHING, ctypes.c_void_p).value
    kernel = types.SimpleNamespace(function=Function())
    compiler = types.SimpleNamespace(version=(13, 0), compile=lambda text, name, options: b"")
    gpu.call = lambda kernel, given, out=None, fast=False: kernel(*map(np.asarray, given), out=out)
    device.device_kernel = device.rollout_kernel = lambda *_about: kernel
    driver.version = lambda: (13, 0)
    driver.device = lambda number: types.SimpleNamespace(architecture="sm_90", shared=227 << 10)
    driver.Function = Function
    nvrtc.compiler = lambda newest=None: compiler


if __name__ == "__main__":
    script = Path(sys.argv[1])
    sys.argv = sys.argv[1:]
    sys.path[0] = str(script.parent)
    pretend()
    runpy.run_path(str(script), run_name="__main__")
