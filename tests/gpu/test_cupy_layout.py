"""Where CuPy has things in memory: found in its arrays, which need no GPU for that, and nowhere else."""

import ctypes
import types

import numpy as np
import pytest

from linkwise.gpu.connect import _cupy_layout
from linkwise.gpu.cupy_layout import layout_of


def test_places_are_those_of_cupys_arrays():
    cupy = pytest.importorskip("cupy")
    places = layout_of(cupy)
    assert places is not None
    memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(0x7F12_3456_7000, 1 << 12, None, 6), 16)
    array = cupy.ndarray((2, 9, 3), "float32", memory)
    word = ctypes.c_int64.from_address
    assert word(id(array) + places["at_dtype"]).value == id(np.dtype("float32"))
    assert word(id(array) + places["at_memory"]).value == id(array.data)
    assert ctypes.c_int32.from_address(id(array) + places["at_dense"]).value == 1
    first = word(id(array) + places["at_shape"]).value
    assert list((ctypes.c_int64 * 3).from_address(first)) == [2, 9, 3]
    assert word(id(array) + places["at_shape"] + 8).value == first + 24
    assert word(id(memory) + places["at_pointer"]).value == memory.ptr
    assert ctypes.c_int32.from_address(id(memory) + places["at_device"]).value == 6
    assert places["memory_type"] == id(type(memory))


class Memory:
    """Objects of a class in Python: their values are not in their memory."""

    def __init__(self, memory, offset):
        self.ptr, self.device_id = memory


class Array:
    def __init__(self, shape, dtype, memory, strides=None, order="C"):
        self.shape, self.ndim, self.dtype, self.data = shape, len(shape), np.dtype(dtype), memory
        self._c_contiguous = strides is None and order == "C"


def test_other_arrays_are_read_by_their_attributes():
    other = types.SimpleNamespace(
        ndarray=Array,
        cuda=types.SimpleNamespace(
            MemoryPointer=Memory, UnownedMemory=lambda pointer, size, owner, device: (pointer, device)
        ),
    )
    assert layout_of(other) is None
    assert _cupy_layout(other) == {}
    assert _cupy_layout(types.SimpleNamespace()) == {}


class Slots(Array):
    """Some things are where they are looked for, others are not."""

    __slots__ = ("data", "dtype")


def test_all_places_must_be_known():
    other = types.SimpleNamespace(
        ndarray=Slots,
        cuda=types.SimpleNamespace(
            MemoryPointer=Memory, UnownedMemory=lambda pointer, size, owner, device: (pointer, device)
        ),
    )
    assert layout_of(other) is None
