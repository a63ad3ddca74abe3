"""Single states and small batches through Python alone, for interpreters whose memory layout is not known.

Getting addresses from NumPy takes longer than copying a few numbers. So a kernel keeps frames: memory whose address is
known, with a view for every input and output. A call copies its arrays in, runs the code and copies the results out.
A frame is taken from its list while it is used, so that threads and signal handlers never share one.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler.runtime import host
from linkwise.compiler.runtime.arrays import is_same

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

MOST_SCALARS = 1 << 14  # of a frame; larger batches are worth their addresses
MOST_COUNTS = 32  # different sizes of batches that frames are kept for
_LINE = 64  # bytes that scratch is aligned to
_RUN = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class QuickStates:
    """The frames of one kernel in one precision."""

    def __init__(self, kernel: Kernel, dtype: np.dtype):
        self.dtype = dtype
        self._kernel = kernel
        self._lists: dict[
            int, tuple[list[tuple[int, ...]], list[_Frame]]
        ] = {}  # by the number of states; 0: no batch

    def __call__(self, args: tuple[Any, ...], out: Any = None) -> Any:
        """The result, or None where the arguments are not dense states of this precision, or ``out`` not for them."""
        first, dtype = args[0], self.dtype
        if type(first) is not np.ndarray or not is_same(first.dtype, dtype):
            return None
        batch = first.shape[:-1]
        found = self._lists.get(batch[0] if batch else 0)
        if found is None:
            found = self._new_list(batch)
            if found is None:
                return None
        shapes, frames = found
        for value, shape in zip(args, shapes, strict=True):
            if type(value) is not np.ndarray or value.shape != shape or not is_same(value.dtype, dtype):
                return None
        try:
            frame = frames.pop()
        except IndexError:
            frame = _Frame(self._kernel, dtype, shapes[0][:-1])
        if out is not None and not frame.takes(out):
            frames.append(frame)
            return None
        for view, value in zip(frame.inputs, args, strict=True):
            view[...] = value
        frame.run()
        result = frame.results() if out is None else frame.write(out)
        frames.append(frame)
        return result

    def _new_list(self, batch: tuple[int, ...]) -> tuple[list[tuple[int, ...]], list[_Frame]] | None:
        """Shapes of the inputs and no frame yet; None where there is no machine code or the batch is no small one."""
        count = batch[0] if len(batch) == 1 else 1 if not batch else 0
        one = not batch
        width = 1 if count == 1 else host.lanes(self.dtype.name)
        small = 0 < count * self._kernel.row_size <= MOST_SCALARS and len(self._lists) < MOST_COUNTS
        if not small or self._kernel.known_native(self.dtype.name, width) is None:
            return None
        shapes = [(*batch, size) for _, size in self._kernel.inputs]
        return self._lists.setdefault(0 if one else count, (shapes, []))


class _Frame:
    """Memory for some states, and the code bound to it."""

    def __init__(self, kernel: Kernel, dtype: np.dtype, batch: tuple[int, ...]):
        count = batch[0] if batch else 1
        native = kernel.native(dtype.name, 1 if count == 1 else host.lanes(dtype.name))
        self.dtype = dtype
        shapes = [(*batch, *shape) for _, shape in kernel.outputs]
        shapes += [(*batch, size) for _, size in kernel.inputs]
        scratch = native.width * kernel.row_size + native.room
        numbers = np.zeros(count * kernel.row_size + scratch + 2 * _LINE, dtype)
        start = numbers.__array_interface__["data"][0]
        views: list[np.ndarray] = []
        words: list[int] = []
        at = -start % _LINE // dtype.itemsize
        for shape in shapes:
            size = int(np.prod(shape))
            views.append(numbers[at : at + size].reshape(shape))
            words.append(start + at * dtype.itemsize)
            at += size
        self.outputs, self.inputs = views[: len(kernel.outputs)], views[len(kernel.outputs) :]
        self.output = self.outputs[0] if len(self.outputs) == 1 and self.outputs[0].ndim else None
        words += [size for _, size in kernel.inputs]
        arguments = (ctypes.c_int64 * max(len(words), 1))(*words)
        room = start + at * dtype.itemsize
        self.run = partial(_RUN(native.address), 0, count, ctypes.addressof(arguments), room + -room % _LINE)
        self._kept = (numbers, arguments, native.code)

    def results(self) -> Any:
        if self.output is not None:
            return self.output.copy()
        copies = tuple([view.copy() if view.ndim else view[()] for view in self.outputs])
        return copies[0] if len(copies) == 1 else copies

    def takes(self, out: Any) -> bool:
        """Whether the results can be written to the caller's arrays."""
        given = (out,) if len(self.outputs) == 1 else out
        if type(given) not in (tuple, list) or len(given) != len(self.outputs):
            return False
        for array, view in zip(given, self.outputs, strict=True):
            if type(array) is not np.ndarray or array.shape != view.shape:
                return False
            if not is_same(array.dtype, self.dtype):
                return False
            if not array.flags.writeable:
                return False
        return True

    def write(self, out: Any) -> Any:
        if len(self.outputs) == 1:
            out[...] = self.outputs[0]
            return out
        for array, view in zip(out, self.outputs, strict=True):
            array[...] = view
        return tuple(out)
