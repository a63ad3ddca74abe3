"""Two pretended libraries whose arrays machine code reads, and a pretended driver that computes with the CPU's kernels.

The arrays of one library are read by the attributes that CuPy's have, those of the other by DLPack's functions in C, as
PyTorch's are. Tests of the dispatch need neither a GPU nor a compiler then.
"""

import collections
import ctypes
import functools
import importlib
import sys
import types

import numpy as np
from pretended import Pretended, PretendedArrays

from linkwise.compiler.runtime import layout
from linkwise.gpu import connect, device, frameworks

STREAM = types.SimpleNamespace(ptr=77)


class ByAttributes(Pretended):
    """Arrays as CuPy's: made by shape and dtype."""

    def __init__(self, array, dtype=None, number=0):
        super().__init__(np.full(array, np.nan, dtype) if dtype is not None else array, number)

    dtype = property(lambda self: self.array.dtype)
    _c_contiguous = property(lambda self: self.array.flags.c_contiguous)
    data = property(lambda self: types.SimpleNamespace(ptr=self.array.ctypes.data, device_id=self.number))


class ByExchange(Pretended):
    """Arrays as PyTorch's."""

    requires_grad = False
    stands_for_another = False

    def empty_like(self):
        return self.new_empty(self.shape)

    def new_empty(self, shape):
        return ByExchange(np.full(shape, np.nan, self.array.dtype))


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("place", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
    )


@functools.cache
def exchange():
    """The capsule with DLPack's functions; it lives as long as the process."""
    lengths = collections.deque(maxlen=64)  # longer than a call reads them

    def view(value, tensor):
        array = value.array
        words = (ctypes.c_int64 * (2 * array.ndim))(
            *array.shape, *(s // array.itemsize for s in array.strides)
        )
        lengths.append(words)
        start = ctypes.addressof(words)
        data = None if value.stands_for_another else array.ctypes.data - 16
        tensor[0] = Tensor(
            data, 2, value.number, array.ndim, 2, 8 * array.itemsize, 1,
            start, start + 8 * array.ndim, 16,
        )  # fmt: skip
        return 0

    def stream(kind, number, place):
        place[0] = STREAM.ptr
        return 0 if kind == 2 else -1

    kept = (
        ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))(view),
        ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))(stream),
    )
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in kept]
    table = layout.Exchange.table(version=3 << 32 | 1, view=addresses[0], stream=addresses[1])
    make = ctypes.pythonapi.PyCapsule_New
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
    exchange.kept = (kept, table, lengths)
    return make(ctypes.addressof(table), b"dlpack_exchange_api", None)


class Reader:
    """The short way in Python."""

    def __init__(self, kind):
        self.kind = kind

    def read(self, value):
        if not value.array.flags.c_contiguous:
            return None
        return (value.array.dtype.name, value.shape, value.number), value.array.ctypes.data

    def dtype_name(self, precision):
        return precision

    def new(self, shape, dtype, device):
        return self.kind(np.full(shape, np.nan, dtype))

    def address(self, value):
        return value.array.ctypes.data

    def stream(self, device):
        return STREAM.ptr


class Driver:
    """The driver's functions that machine code calls, in Python."""

    CONTEXT, OTHER = 5, 6

    def __init__(self):
        self.current, self.failure = self.CONTEXT, 0
        self.launched = []  # parameters of every launch by machine code
        self.by_python = []  # and by Python
        self.entered = []  # contexts
        self.functions = []
        word, number = ctypes.c_int64, ctypes.c_int
        self._kept = (
            ctypes.CFUNCTYPE(number, word, *[ctypes.c_uint] * 7, word, word, word)(self._start),
            ctypes.CFUNCTYPE(number, word)(self._current),
            ctypes.CFUNCTYPE(number, word)(self._enter),
            ctypes.CFUNCTYPE(number, word)(lambda place: 0),
        )
        self.addresses = [ctypes.cast(each, ctypes.c_void_p).value for each in self._kept]

    def _start(self, function, blocks, _y, _z, threads, _v, _w, _shared, stream, _parameters, extra):
        head = (ctypes.c_int64 * 5).from_address(extra)
        assert (head[0], head[2], head[4]) == (1, 2, 0)
        size = ctypes.c_int64.from_address(head[3]).value // 8
        words = list((ctypes.c_int64 * size).from_address(head[1]))
        self.launched.append((blocks, stream, words))
        if not self.failure:
            self.functions[function].compute(blocks, words)
        return self.failure

    def _current(self, place):
        ctypes.c_int64.from_address(place).value = self.current
        return 0

    def _enter(self, context):
        self.entered.append(context)
        return 0


class Function:
    """In place of a function loaded on a GPU: it computes with the CPU's kernel."""

    threads, states, shared, grows = 32, 32, 0, True
    most_blocks = 1 << 20

    def __init__(self, driver, kernel, dtype, scratch):
        self.driver, self.kernel, self.dtype, self.scratch = driver, kernel, np.dtype(dtype), scratch
        self.name = kernel.name
        driver.functions.append(self)
        self.number = len(driver.functions) - 1

    def table(self, words):
        names = ("start", "current", "enter", "leave")
        return layout.Launch.table(
            **dict(zip(names, self.driver.addresses, strict=True)), context=Driver.CONTEXT, function=self.number,
            threads=self.threads, states=self.states, grows=int(self.grows), most_blocks=self.most_blocks,
            bytes=8 * words, scratch=self.scratch,
        )  # fmt: skip

    def launch(self, blocks, stream, *words):
        self.driver.by_python.append((blocks, stream, list(words)))
        self.compute(blocks, words)

    def compute(self, blocks, words):
        kernel = self.kernel
        outputs, inputs = len(kernel.outputs), len(kernel.inputs)
        count = words[outputs + 2 * inputs]
        if self.scratch:
            ctypes.memset(words[-1], 0xFF, blocks * self.scratch)
        else:
            assert len(words) == outputs + 2 * inputs + 1
        given = []
        for k, (_, size) in enumerate(kernel.inputs):
            stride = words[outputs + inputs + k]
            rows = self.memory(words[outputs + k], max(stride * (count - 1), 0) + size)
            steps = (stride * self.dtype.itemsize, self.dtype.itemsize)
            given.append(np.lib.stride_tricks.as_strided(rows, (count, size), steps))
        made = kernel(*given, threads=1)
        for address, result in zip(words, made if isinstance(made, tuple) else (made,), strict=False):
            self.memory(address, result.size)[:] = result.ravel()

    def memory(self, address, size):
        return np.frombuffer((ctypes.c_char * (size * self.dtype.itemsize)).from_address(address), self.dtype)


MODES = types.SimpleNamespace(_current_level=-1)  # what PyTorch tells of forward mode


def install(monkeypatch):
    """Both kinds of arrays are known to the dispatch, and kernels are computed by the driver that is returned."""
    ByExchange.__dlpack_c_exchange_api__ = exchange()
    monkeypatch.setitem(sys.modules, connect._MODES, MODES)
    made = {
        ByAttributes: connect.by_attributes(ByAttributes, lambda: STREAM, {}),
        ByExchange: connect.by_exchange(ByExchange, ByExchange.empty_like),
    }
    driver = Driver()
    driver.scratch = 0  # bytes for each block of kernels that are loaded from now on

    def device_kernel(kernel, dtype, number, fast=False, stream=None):
        place = (dtype, number, fast)
        if place not in kernel.on_device:
            kernel.on_device[place] = device.DeviceKernel(Function(driver, kernel, dtype, driver.scratch))
        return kernel.on_device[place]

    for name in ("call", "graph", "launch", "quick"):
        monkeypatch.setattr(importlib.import_module(f"linkwise.gpu.{name}"), "device_kernel", device_kernel)
    monkeypatch.setattr(connect, "_libraries", made)
    monkeypatch.setattr(frameworks, "_READERS", {kind: Reader(kind) for kind in made})
    monkeypatch.setattr(frameworks, "FRAMEWORKS", (PretendedArrays(),))
    return driver
