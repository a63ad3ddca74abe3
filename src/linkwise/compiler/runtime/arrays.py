"""What a kernel accepts: arrays checked, converted and broadcast, reduced to addresses and strides."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from linkwise.compiler.runtime import layout, named
from linkwise.errors import DtypeError, ShapeError

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)

Array: TypeAlias = Any
"""Numbers of a call: a list, or an array of NumPy, CuPy, PyTorch or JAX."""


class Rows(NamedTuple):
    """One input as the compiled code reads it. ``owner`` keeps the memory alive."""

    owner: np.ndarray
    address: int
    stride: int  # in scalars, from one state to the next; 0: the same state throughout


def _is_array(value: Any) -> TypeGuard[np.ndarray]:
    return isinstance(value, np.ndarray)


def is_foreign(value: Any) -> bool:
    """Whether a value is another library's array, on this or another device."""
    if isinstance(value, np.ndarray):
        return False
    return hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")


def is_masked(value: Any) -> bool:
    """Whether a value is a masked array; looks for its attribute, because importing ``np.ma`` is slow and not safe
    during a fork."""
    return type(value) is not np.ndarray and _is_array(value) and hasattr(value, "mask")


def is_same(dtype: np.dtype, other: np.dtype) -> bool:
    """Whether two types of numbers are the same: mostly one object, except in arrays from pickles."""
    return dtype is other or dtype == other


def as_reals(name: str, value: Any) -> np.ndarray:
    """An array of float64 or float32. Integers, booleans and floats of other sizes become float64; complex numbers,
    text, objects, masked arrays, whose masks would be lost, and what has names are refused."""
    named.refuse(name, value)
    if is_masked(value):
        raise DtypeError(
            f"{name}: masked arrays are not supported; fill() the masked entries or select the others"
        )
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise ShapeError(f"{name}: {error}") from None
    if is_same(array.dtype, FLOAT64) or is_same(array.dtype, FLOAT32):
        return array
    if array.dtype.kind not in "biuf":
        raise DtypeError(f"{name}: expected real numbers, got an array of {array.dtype}")
    single = array.dtype.kind == "f" and array.itemsize == 4  # of the other byte order
    return array.astype(FLOAT32 if single else FLOAT64)


def batch_shape(arrays: Sequence[np.ndarray], inputs: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    """The leading axes of all inputs, broadcast together; every last axis is checked."""
    leading: set[tuple[int, ...]] = set()
    for array, (name, size) in zip(arrays, inputs, strict=True):
        shape = array.shape
        if not shape or shape[-1] != size:
            raise ShapeError(f"{name}: expected shape (..., {size}), got {shape}")
        leading.add(shape[:-1])
    leading.discard(())
    if len(leading) < 2:
        return leading.pop() if leading else ()
    try:
        return np.broadcast_shapes(*leading)
    except ValueError:
        listed = ", ".join(f"{name} {array.shape}" for array, (name, _) in zip(arrays, inputs, strict=True))
        raise ShapeError(f"the leading axes of the inputs do not broadcast together: {listed}") from None


def rows(array: np.ndarray, batch: tuple[int, ...]) -> Rows:
    """An input as rows of equal distance; copied only where its memory is laid out in another way."""
    size = array.shape[-1]
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        if array.shape[:-1] == batch:
            return Rows(array, address(array), size)
        if array.size == size:  # one state for the whole batch
            return Rows(array, address(array), 0)
    array = np.broadcast_to(array, (*batch, size))
    stride = _row_stride(array)
    if stride is None:
        array = np.array(array, order="C")
        stride = size
    return Rows(array, address(array), stride)


def _row_stride(array: np.ndarray) -> int | None:
    """The distance of the rows in scalars if it is the same everywhere and the rows themselves are dense."""
    item = array.itemsize
    if not array.flags.aligned or (array.shape[-1] > 1 and array.strides[-1] != item):
        return None
    distance = None
    expected = None
    for length, step in zip(reversed(array.shape[:-1]), reversed(array.strides[:-1]), strict=True):
        if length == 1:
            continue
        if distance is None:
            distance = step
        elif step != expected:
            return None
        expected = step * length
    if distance is None or distance % item:
        return None
    return distance // item


def address(array: np.ndarray) -> int:
    """Where the elements of an array begin."""
    if layout.SUPPORTED:  # several times faster, and the layout is known
        return ctypes.c_uint64.from_address(id(array) + layout.DATA).value
    return array.__array_interface__["data"][0]


def are_dense(arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> bool:
    """Whether all are NumPy arrays of these shapes and this type, without gaps."""
    for array, shape in zip(arrays, shapes, strict=True):
        if type(array) is not np.ndarray or array.shape != shape or not is_same(array.dtype, dtype):
            return False
        flags = array.flags
        if not flags.c_contiguous or not flags.aligned:
            return False
    return True


def are_apart(written: Sequence[np.ndarray], read: Sequence[np.ndarray]) -> bool:
    """Whether dense arrays that are written share no memory with each other, nor with those that are read."""
    spans = [(start := address(array), start + array.nbytes) for array in (*read, *written)]
    return not any(
        first < other_end and other < end
        for k, (first, end) in enumerate(spans[len(read) :], len(read))
        for other, other_end in spans[:k]
    )


def check_out(name: str, out: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array to write to, as the caller gave it."""
    if not _is_array(out) or is_masked(out):
        raise DtypeError(f"{name}: expected a NumPy array, got {type(out).__name__}")
    if out.shape != shape:
        raise ShapeError(f"{name}: expected shape {shape}, got {out.shape}")
    if out.dtype != dtype:
        raise DtypeError(f"{name}: expected an array of {dtype}, got {out.dtype}")
    if not out.flags.writeable:
        raise ValueError(f"{name}: the array is read-only")
    return out


def writes_directly(out: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    """Whether compiled code may write to ``out`` while it reads and writes the others."""
    return (
        out.flags.c_contiguous
        and out.flags.aligned
        and out.dtype.isnative
        and not any(np.may_share_memory(out, other) for other in others)
    )


def is_numeric(result: Any) -> bool:
    """Whether a result is NumPy's and holds numbers: not symbols, and not on a GPU, where reading it would wait for
    the GPU."""
    return isinstance(result, np.generic) or (_is_array(result) and result.dtype != object)
