"""A pretended framework whose device is the CPU, for tests of the dispatch without a GPU."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from on_cpu import COMPILER, OnCpu

import linkwise as lw
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.gpu import DeviceError, driver, frameworks, nvrtc


class Pretended:
    """An array that says it lives on a GPU."""

    def __init__(self, array, number=0):
        self.array, self.number = np.asarray(array), number

    shape = property(lambda self: self.array.shape)
    __getitem__ = lambda self, part: Pretended(self.array[part], self.number)  # noqa: E731
    __cuda_array_interface__ = property(lambda self: self.array.__array_interface__)


class PretendedArrays:
    name = "Pretended"

    def owns(self, value):
        return isinstance(value, Pretended)

    def device(self, value):
        return value.number

    def view(self, value, stream):
        a = value.array
        strides = tuple(step // a.itemsize for step in a.strides)
        return frameworks.View(value, a.ctypes.data, a.shape, strides, a.dtype.name)

    def stream(self, device):
        return 77

    def converted(self, value, dtype):
        return Pretended(value.array.astype(dtype))

    def dense(self, value, shape):
        return Pretended(np.array(np.broadcast_to(value.array, shape), order="C"))

    def empty(self, shape, dtype, device):
        return Pretended(np.full(shape, np.nan, dtype))

    def placed(self, array, device):
        return Pretended(array, device)

    def finished(self, made):
        return made

    def assign(self, target, source):
        target.array[...] = source.array


@pytest.fixture
def pretended(monkeypatch, tmp_path):
    """A robot whose kernels think that there is a GPU."""
    if COMPILER is None:
        pytest.skip("g++ is not installed")
    try:
        compiler = nvrtc.compiler()
    except DeviceError as error:
        pytest.skip(str(error))
    loaded = {}

    class Function:
        """In place of a function loaded on a GPU: what g++ made of the same text."""

        def __init__(self, on, cubin, name, threads, shared, resident, states, scratch):
            assert cubin[1:4] == b"ELF"
            self.name, self.threads, self.shared = name, threads, shared
            self.states, self.scratch = states or threads, scratch
            self.most_blocks, self.grows = (resident * 2 if resident else 1000), not resident

        resources: ClassVar = {"registers": 64, "local": 0}

        def launch(self, blocks, stream, *words):
            assert stream == 77
            words = np.array(words, np.int64)
            loaded[self.name, self.threads, self.shared]._entry(words.ctypes.data, blocks, self.threads, 0)

    compiled = []
    original = nvrtc.Compiler.compile

    def compile_(self, text, name, options):
        compiled.append(options)
        head = text.split("__launch_bounds__")[1].split("{")[0]
        pointers = head.count("__restrict__")
        sizes = head.count("const long long")
        threads = int(text.split("__launch_bounds__(")[1].split(",")[0].split(")")[0])
        scalars = 0 if "memory" in head else int(text.split("/ 32 * ")[1].split(";")[0].split(")")[0])
        shared = scalars * (threads // 32) * (8 if "typedef double" in text else 4)
        module = cuda.Module(text, name, threads, shared)
        loaded[name, threads, shared] = OnCpu(module, tmp_path / str(len(compiled)), pointers, sizes)
        return original(self, text, name, options)

    monkeypatch.setattr(frameworks, "FRAMEWORKS", (PretendedArrays(),))
    monkeypatch.setattr(nvrtc, "compiler", lambda newest=None: compiler)
    monkeypatch.setattr(nvrtc.Compiler, "compile", compile_)
    monkeypatch.setattr(driver, "version", lambda: (13, 0))
    monkeypatch.setattr(
        driver,
        "device",
        lambda number: SimpleNamespace(number=number, architecture="sm_90", shared=227 << 10),
    )
    monkeypatch.setattr(driver, "Function", Function)
    monkeypatch.setattr(driver, "is_capturing", lambda on, stream: False)
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "cache"))
    return lw.load("two_link"), compiled
