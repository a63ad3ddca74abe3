"""Lets machine code launch a kernel for arrays of CuPy and PyTorch, without any Python between call and launch.

Fills the tables of ``compiler.runtime.layout`` that ``compiler.entry.devices`` reads: once per library how its arrays
are read and made, and for every kernel one entry per library, precision and GPU that it was called with.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler.runtime import layout
from linkwise.compiler.runtime.dispatch import entry_points, intern_for_ever
from linkwise.compiler.runtime.layout import DeviceCall, Library
from linkwise.gpu.cupy_layout import layout_of
from linkwise.gpu.launch import prepare

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

_CAPSULE = b"dlpack_exchange_api"
_MAJOR_VERSION = 1  # of DLPack: its structures are the same in all versions 1.x
_FLOAT = 2  # kDLFloat
_MODES = "torch.autograd.forward_ad"
_BITS = {"float64": 64, "float32": 32}


class ArrayLibrary:
    """The table of one library, and the objects that it points to."""

    def __init__(self, table: ctypes.Array[ctypes.c_int64], kept: tuple, by_exchange: bool):
        self.table, self.kept, self.by_exchange = table, kept, by_exchange

    def dtype(self, name: str) -> tuple[int, object]:
        """(a precision as ``layout.DeviceArray`` has it, what new arrays are made with)."""
        if self.by_exchange:
            return _FLOAT | _BITS[name] << 8 | 1 << 16, None
        made = np.dtype(name)
        return id(made), made


def connect(kernel: Kernel, kind: type, dtype: str, device: int) -> None:
    """From now on machine code launches the kernel for arrays of this type and precision on this GPU."""
    place = ("connected", kind, dtype, device)
    if place in kernel.on_device:
        return
    entry_points(wait=True)  # compiled once for all kernels; the kernel itself took NVRTC longer
    library, plan = library_of(kind), kernel.connect()
    kernel.on_device[place] = library is not None and plan is not None
    if library is None or plan is None:
        return
    prepared = prepare(kernel, dtype, device)
    code, made_with = library.dtype(dtype)
    call = DeviceCall.table(
        library=ctypes.addressof(library.table),
        launch=prepared.address,
        dtype=code,
        item=_BITS[dtype] // 8,
        device=device,
        make_dtype=id(made_with),
    )
    plan.add_device(call, (library, prepared, made_with))


_libraries: dict[type, ArrayLibrary | None] = {}


def library_of(kind: type) -> ArrayLibrary | None:
    """The table for arrays of exactly this type; None: calls with them go through Python."""
    if kind not in _libraries:
        module = kind.__module__.partition(".")[0]
        made = None
        if layout.SUPPORTED and module == "cupy" and kind.__name__ == "ndarray":
            cupy = sys.modules["cupy"]
            made = by_attributes(kind, cupy.cuda.get_current_stream, _cupy_layout(cupy))
        elif layout.SUPPORTED and module == "torch" and kind.__name__ == "Tensor":
            made = by_exchange(kind, sys.modules["torch"].empty_like)
        _libraries[kind] = made
    return _libraries[kind]


def _cupy_layout(cupy: Any) -> dict[str, int]:
    """Where arrays have what in memory; nothing where that cannot be found out."""
    try:
        return layout_of(cupy) or {}
    except Exception:  # whatever another CuPy raises: its arrays have attributes
        return {}


def by_attributes(kind: Any, stream: Any, places: dict[str, int]) -> ArrayLibrary:
    """CuPy. ``kind(shape, dtype)`` makes a new array, ``stream()`` gives the current stream; ``places``: see
    ``cupy_layout``."""
    names = {
        "dense": "_c_contiguous",
        "shape": "shape",
        "dtype": "dtype",
        "memory": "data",
        "pointer": "ptr",
        "device": "device_id",
        "stream_pointer": "ptr",
    }
    table = Library.table(
        array_type=id(kind),
        make=id(kind),
        stream=id(stream),
        **{word: id(intern_for_ever(name)) for word, name in names.items()},
        **places,
    )
    return ArrayLibrary(table, (kind, stream), by_exchange=False)


def by_exchange(kind: Any, like: Any) -> ArrayLibrary | None:
    """PyTorch, from the version on that has DLPack's functions in C. ``like(array)`` makes one of the same shape.

    Not by DLPack's own allocator: PyTorch does not know its arrays as memory that ``record_stream`` keeps.
    """
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    try:
        exchange = get(capsule, _CAPSULE)
    except ValueError:
        return None
    functions = (ctypes.c_int64 * len(layout.Exchange)).from_address(exchange or 0)
    major = ctypes.c_uint32.from_address(exchange or 0).value
    if major != _MAJOR_VERSION or not functions[layout.Exchange.view // 8]:
        return None
    make, modes = kind.new_empty, sys.modules.get(_MODES)
    table = Library.table(
        array_type=id(kind),
        exchange=exchange or 0,
        followed=id(intern_for_ever("requires_grad")),
        modes=0 if modes is None else id(modes),
        forward_mode=id(intern_for_ever("_current_level")),
        make=id(make),
        like=id(like),
    )
    return ArrayLibrary(table, (kind, capsule, make, like), by_exchange=True)
