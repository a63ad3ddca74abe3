"""The short way from a Python call to the arithmetic of one state.

A wrapper in machine code, part of the module for single states, is called by the interpreter itself. It looks
at its arguments: as many as there are inputs, no keywords, each an ndarray of the kernel's precision with one
axis of the right length, contiguous and aligned. Then it makes the result and runs the arithmetic; anything
else goes to a fallback in Python with the same arguments. The wrapper relies on the memory layout of
CPython's and NumPy's objects, so it is used only for versions it is known to fit and after a test on real
objects; elsewhere the fallback is all there is.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

# Byte offsets in PyObject and PyArrayObject, the same from NumPy 1.7 to 2.x.
TYPE, DATA, AXES, SHAPE, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
DENSE_AND_ALIGNED = 0x1 | 0x100  # NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED
CTYPES_ADDRESS = 16  # in an object of ctypes: where its C data begin
_METH_KEYWORDS, _METH_FASTCALL = 0x2, 0x80
_NUMPY_TYPE, _NUMPY_SCALAR, _NUMPY_NEW = 2, 60, 93  # places in NumPy's table of C functions
TYPE_NUMBER = {"float64": 12, "float32": 11}


class DispatchTable(ctypes.Structure):
    """What the wrapper needs to know; it is the ``self`` of the callable and keeps everything alive that it
    uses."""

    _fields_ = (
        ("fallback", ctypes.py_object),
        ("array_type", ctypes.c_void_p),
        ("dtype", ctypes.py_object),
        ("vectorcall", ctypes.c_void_p),
        ("new_array", ctypes.c_void_p),
        ("new_scalar", ctypes.c_void_p),
        ("new_tuple", ctypes.c_void_p),
        ("set_item", ctypes.c_void_p),
        ("hold", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("unlock", ctypes.c_void_p),
        ("lock", ctypes.c_void_p),
        ("batch_run", ctypes.c_void_p),  # the code for batches, once it is there,
        ("nan_is_for_others", ctypes.c_int64),
        ("batch_limit", ctypes.c_int64),  # and up to how many states it may take; the others want threads
    )
    kept: tuple
    owner: Any = None

    def __reduce__(self) -> Any:
        """A builtin function is pickled as ``getattr(its self, its name)``; this object travels as its owner."""
        if self.owner is None:
            raise TypeError("this function cannot be pickled; make it again where it is needed")
        return _owner, (self.owner,)


def _owner(owner: Any) -> Any:
    """What a pickled table becomes."""
    return owner


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def fast_callable(
    kernel: Kernel,
    fallback: Callable[..., Any],
    name: str,
    doc: str,
    signature: str | None = None,
    *,
    nan_to_fallback: bool = False,
    owner: Any = None,
) -> Callable[..., Any]:
    """A function that computes single states and plain batches with next to no overhead.

    All other calls go to ``fallback``, with exactly their arguments. It must give what the kernel gives; what
    the first batch and the first float32 call compile there is used directly from then on. ``signature`` is
    what ``help`` shows, such as ``(q, qd, *, out=None)``. With ``nan_to_fallback`` a call whose results have a
    NaN is repeated by the fallback, which may find out why. Pickled, it is ``getattr(owner, name)``.
    """
    if signature is not None:
        doc = f"{name}{signature}\n--\n\n{doc}"
    return _wrap(kernel, kernel.dtype, fallback, name, doc, nan_to_fallback, owner)


def _wrap(
    kernel: Kernel,
    dtype: str,
    fallback: Callable[..., Any],
    name: str,
    doc: str,
    nan_to_fallback: bool,
    owner: Any,
) -> Callable[..., Any]:
    code = kernel.native(dtype, 1).code
    if not SUPPORTED or "call" not in code.functions:
        return fallback
    table = _table(fallback, dtype)

    def learn(*args: Any, **options: Any) -> Any:
        """The fallback; afterwards, what it has compiled becomes known to the wrapper."""
        result = fallback(*args, **options)
        _connect_batches(table, kernel, dtype)
        if dtype == "float64" and args and all(type(a) is np.ndarray and a.dtype == np.float32 for a in args):
            table.fallback = _wrap(kernel, "float32", fallback, name, doc, nan_to_fallback, owner)
        return result

    table.fallback = learn
    table.owner = owner
    table.nan_is_for_others = nan_to_fallback
    method = _Method(name.encode(), code.functions["call"], _METH_FASTCALL | _METH_KEYWORDS, doc.encode())
    table.kept = (code, method)  # a builtin function releases its self last, after its definition
    _connect_batches(table, kernel, dtype)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    make.restype = ctypes.py_object
    return make(ctypes.addressof(method), table, "linkwise")


def _connect_batches(table: DispatchTable, kernel: Kernel, dtype: str) -> None:
    """Let the wrapper use the code for batches if there is any yet."""
    batch = None if table.batch_limit else kernel.known_native(dtype)
    if batch is not None:
        table.kept += (batch.code,)
        table.batch_run = batch.code.functions["run"]
        table.batch_limit = batch.states_for_one_thread


def _table(fallback: Callable[..., Any], dtype: str) -> DispatchTable:
    python = ctypes.pythonapi
    numpy = _numpy_functions()

    def address(function: Any) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    return DispatchTable(
        fallback=fallback,
        array_type=numpy[_NUMPY_TYPE],
        dtype=np.dtype(dtype),
        vectorcall=address(python.PyObject_Vectorcall),
        new_array=numpy[_NUMPY_NEW],
        new_scalar=numpy[_NUMPY_SCALAR],
        new_tuple=address(python.PyTuple_New),
        set_item=address(python.PyTuple_SetItem),
        hold=address(python.Py_IncRef),
        release=address(python.Py_DecRef),
        unlock=address(python.PyEval_SaveThread),
        lock=address(python.PyEval_RestoreThread),
    )


def _numpy_functions() -> Any:
    """NumPy's table of C functions."""
    package = "numpy.core" if np.__version__.startswith("1.") else "numpy._core"
    umath = importlib.import_module(f"{package}._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes = (ctypes.py_object, ctypes.c_char_p)
    get.restype = ctypes.c_void_p
    return ctypes.cast(get(umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))


def _supported() -> bool:
    """Whether this Python and this NumPy lay out their objects as the wrapper expects."""
    version = tuple(int(part) for part in np.__version__.split(".")[:2])
    if (
        sys.implementation.name != "cpython"
        or not (3, 11) <= sys.version_info[:2] <= (3, 14)
        or "t" in sys.abiflags  # no interpreter lock: other objects, other rules
        or not ((1, 26) <= version < (3, 0))
        or ctypes.sizeof(ctypes.c_void_p) != 8
        or hasattr(sys, "gettotalrefcount")  # debugging builds have longer objects
    ):
        return False
    return _layout_is_known()


def _layout_is_known() -> bool:
    """Read real objects by the offsets above and compare."""

    def word(place: int) -> int:
        return ctypes.c_uint64.from_address(place).value

    def short(place: int) -> int:
        return ctypes.c_int.from_address(place).value

    owner = np.arange(12.0)
    table = DispatchTable()
    for array in (owner, owner[3:8], owner[::2], owner.reshape(3, 4)):
        start = id(array)
        dense = array.flags.c_contiguous and array.flags.aligned
        if (
            word(start + TYPE) != id(np.ndarray)
            or word(start + DATA) != array.__array_interface__["data"][0]
            or short(start + AXES) != array.ndim
            or word(word(start + SHAPE)) != array.shape[0]
            or word(start + DTYPE) != id(np.dtype(np.float64))
            or (short(start + FLAGS) & DENSE_AND_ALIGNED == DENSE_AND_ALIGNED) != dense
        ):
            return False
    return (
        word(id(table) + CTYPES_ADDRESS) == ctypes.addressof(table)
        and _numpy_functions()[_NUMPY_TYPE] == id(np.ndarray)
        and all(np.dtype(name).num == number for name, number in TYPE_NUMBER.items())
    )


SUPPORTED = _supported()
