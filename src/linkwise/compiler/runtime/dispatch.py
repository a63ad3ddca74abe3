"""From a call in Python to machine code: which objects the interpreter calls directly, and what they point to.

Kernels and methods of robots are objects whose class (made by ``connected_class``) has room for two words: the
address that CPython calls (its vectorcall protocol) and the address of a table. Both are zero at first, and calls go
to ``__call__`` in Python. Once machine code exists the words are set, and the interpreter calls ``entry.call_kernel``
or ``entry.call_method``, which gives everything it does not recognise to ``__call__``. Nothing else changes: the
object, its class, its signature and its documentation are the same before and after.

All of this relies on the memory layout of CPython's and NumPy's objects. Where that is not known (``SUPPORTED``),
classes stay as they are and every call goes through Python.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from linkwise.compiler.runtime import host, layout
from linkwise.compiler.runtime.layout import DeviceCall, Globals, Plan, Shape, Target
from linkwise.core import forks

if TYPE_CHECKING:
    from linkwise.compiler.native import Native
    from linkwise.compiler.runtime.background import Result
    from linkwise.compiler.runtime.machine import Code

SUPPORTED = layout.SUPPORTED
FORMS = (("float64", 1), ("float64", 0), ("float32", 1), ("float32", 0))  # as in ``Plan``; 0: as many as fit

_SIGNED_SIZE, _READ_ONLY, _MEMBERS_SLOT = 19, 1, 72  # T_PYSSIZET, READONLY, Py_tp_members
_BASETYPE, _HAVE_VECTORCALL, METHOD_DESCRIPTOR = 1 << 10, 1 << 11, 1 << 17
# places in NumPy's table of C functions
_NUMPY_TYPE, _NUMPY_SCALAR, _NUMPY_NEW, _NUMPY_SET_BASE = 2, 60, 94, 282

AnyClass = TypeVar("AnyClass", bound=type)


class _Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


class _Member(ctypes.Structure):
    """PyMemberDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_definitions: list[Any] = []  # CPython keeps pointers to parts of them


def connected_class(flags: int = 0) -> Callable[[AnyClass], AnyClass]:
    """A decorator: the class with room for the two words, ``_vectorcall`` and ``_table``, in its objects."""

    def decorate(cls: AnyClass) -> AnyClass:
        if not SUPPORTED or cls.__basicsize__ != layout.VECTORCALL:
            return cls
        members = (_Member * 4)(
            _Member(b"__vectorcalloffset__", _SIGNED_SIZE, layout.VECTORCALL, _READ_ONLY, None),
            _Member(b"_vectorcall", _SIGNED_SIZE, layout.VECTORCALL, 0, None),
            _Member(b"_table", _SIGNED_SIZE, layout.TARGET, 0, None),
        )
        slots = (_Slot * 2)(_Slot(_MEMBERS_SLOT, ctypes.addressof(members)))
        name = f"{cls.__module__}.{cls.__qualname__}".encode()
        all_flags = _BASETYPE | _HAVE_VECTORCALL | flags
        spec = _Spec(name, layout.TARGET + 8, 0, all_flags, ctypes.addressof(slots))
        _definitions.append((members, slots, spec))
        make = ctypes.pythonapi.PyType_FromSpecWithBases
        make.argtypes, make.restype = (ctypes.c_void_p, ctypes.py_object), ctypes.py_object
        made = make(ctypes.addressof(spec), (cls,))
        made.__doc__ = cls.__doc__
        return made

    return decorate


class KernelPlan:
    """The plan of one kernel, which grows with the machine code that is made of it."""

    def __init__(self, kernel: Any):
        self._rows = kernel.row_size
        self.inputs = len(kernel.inputs)
        self._codes: list[Code] = []  # must live as long as the plan
        self._devices: list[Any] = []  # this, too
        inputs, outputs = [size for _, size in kernel.inputs], [shape for _, shape in kernel.outputs]
        self._sizes = (ctypes.c_int64 * max(len(inputs), 1))(*inputs)
        self._shapes = (ctypes.c_int64 * (len(Shape) * max(len(outputs), 1)))()
        for k, shape in enumerate(outputs):
            words = (len(shape), math.prod(shape), *shape)
            self._shapes[k * len(Shape) : k * len(Shape) + len(words)] = words
        self._words = Plan.table(
            globals=ctypes.addressof(global_table()),
            inputs=len(inputs),
            outputs=len(outputs),
            few=len(inputs) if max(len(inputs), len(outputs)) <= layout.MOST_ARRAYS else 0,
            single=int(kernel.dtype == "float32"),
            sizes=ctypes.addressof(self._sizes),
            shapes=ctypes.addressof(self._shapes),
        )
        self.address = ctypes.addressof(self._words)

    def learn(self, known_form: Callable[[str, int], Native | None]) -> None:
        """Add the machine code that has been compiled since; ``known_form`` is the kernel's ``known_native``.

        The plan does not refer to the kernel, which refers to the plan: both are freed without looking for garbage.
        """
        for k, (dtype, width) in enumerate(FORMS):
            run = Plan.run // 8 + k
            if self._words[run]:
                continue
            native = known_form(dtype, width or host.lanes(dtype))
            if native is None:
                continue
            self._codes.append(native.code)
            alone = (
                native.width == 1 and native.room == 0
            )  # straight-line code for one state needs no scratch
            scalars = 0 if alone else native.width * self._rows + native.room
            self._words[Plan.scratch // 8 + k] = scalars * np.dtype(dtype).itemsize
            self._words[Plan.limit // 8 + k] = native.states_for_one_thread
            self._words[run] = address = native.code.functions["run"]  # last: from now on it is used
            if alone and native.states_for_one_thread >> layout.SHORT_WORK:
                self._words[Plan.quick // 8 + k // 2] = address

    def add_device(self, call: ctypes.Array[ctypes.c_int64], kept: Any) -> None:
        """Let machine code launch the kernel on a GPU; ``call`` is a ``DeviceCall``, ``kept`` what it points to."""
        first = Plan.devices // 8
        call[DeviceCall.next // 8] = self._words[first]
        self._devices.append((call, kept))
        self._words[first] = ctypes.addressof(call)


def can_connect(kernel: Any) -> bool:
    """Whether the interpreter can call machine code for this kernel."""
    prepared = hasattr(cast(type[object], type(kernel)), "_vectorcall")
    if not SUPPORTED or not prepared or not entry_points():
        return False
    return all(len(shape) <= layout.MOST_OUTPUT_AXES for _, shape in kernel.outputs)


class Connection:
    """What a kernel's table keeps alive."""

    def __init__(self, kernel: Any, main: KernelPlan, prelude: KernelPlan | None, fallback: Any):
        self._kept = (main, prelude, fallback)
        self._words = Target.table(
            globals=ctypes.addressof(global_table()),
            fallback=id(fallback),
            arguments=len(kernel.inputs),
            states=main.inputs - (prelude is not None),
            prelude=0 if prelude is None else prelude.address,
            main=main.address,
        )
        kernel._table = ctypes.addressof(self._words)
        kernel._vectorcall = entry_points()["call_kernel"]


@functools.cache
def global_table() -> ctypes.Array[ctypes.c_int64]:
    """Objects and functions that machine code needs; they live as long as the process."""
    python, numpy = ctypes.pythonapi, _numpy_functions()
    names = [intern_for_ever(name) for name in ("out", "threads")]

    def address(function: Any) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    return Globals.table(
        array_type=numpy[_NUMPY_TYPE],
        double_dtype=id(np.dtype(np.float64)),
        float_dtype=id(np.dtype(np.float32)),
        int_dtype=id(np.dtype(np.int64)),
        float_type=id(float),
        double_type=id(np.float64),
        int_type=id(int),
        list_type=id(list),
        tuple_type=id(tuple),
        str_type=id(str),
        none=id(None),
        out_name=id(names[0]),
        threads_name=id(names[1]),
        vectorcall=address(python.PyObject_Vectorcall),
        new_array=numpy[_NUMPY_NEW],
        new_scalar=numpy[_NUMPY_SCALAR],
        new_tuple=address(python.PyTuple_New),
        set_item=address(python.PyTuple_SetItem),
        hold=address(python.Py_IncRef),
        release=address(python.Py_DecRef),
        unlock=address(python.PyEval_SaveThread),
        lock=address(python.PyEval_RestoreThread),
        allocate=address(python.PyMem_RawMalloc),
        free=address(python.PyMem_RawFree),
        int_value=address(python.PyLong_AsLongLong),
        int_to_double=address(python.PyLong_AsDouble),
        error_occurred=address(python.PyErr_Occurred),
        clear_error=address(python.PyErr_Clear),
        compare_text=address(python.PyUnicode_Compare),
        is_subtype=address(python.PyType_IsSubtype),
        true=id(True),
        get_attribute=address(python.PyObject_GetAttr),
        new_int=address(python.PyLong_FromLongLong),
        byte_dtype=id(np.dtype(np.uint8)),
        set_base=numpy[_NUMPY_SET_BASE],
        blocks=ctypes.addressof(_blocks),
    )


_blocks = (ctypes.c_int64 * layout.BLOCKS)()
_NEW_RESULT = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_int64] * 5)


def new_result(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array for a result, whose numbers are not set yet; see ``entry.memory``.

    Args:
        shape: of the array.
        dtype: float64 or float32.
    """
    size, code = dtype.itemsize * math.prod(shape), _entry.code
    if code is None or not layout.LARGE <= size <= layout.LARGEST:
        return np.empty(shape, dtype)
    lengths = (ctypes.c_int64 * len(shape))(*shape)
    table = ctypes.addressof(global_table())
    return _NEW_RESULT(code.functions["new_result"])(
        table, id(dtype), len(shape), ctypes.addressof(lengths), size
    )


_names: list[str] = []


def intern_for_ever(name: str) -> str:
    """The interned string that keywords of calls are; kept alive, so that its address is not reused."""
    import sys

    _names.append(sys.intern(name))
    return _names[-1]


def _numpy_functions() -> Any:
    """NumPy's table of C functions."""
    package = "numpy.core" if np.__version__.startswith("1.") else "numpy._core"
    umath = importlib.import_module(f"{package}._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes = (ctypes.py_object, ctypes.c_char_p)
    get.restype = ctypes.c_void_p
    return ctypes.cast(get(umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))


_lock = forks.lock()


class _Entry:
    """The machine code of ``entry``: from the cache, or compiled once, in the background where that is allowed."""

    def __init__(self):
        self.code: Code | None = None
        self.is_pending = False  # being compiled, or about to be
        self._asked = 0
        self.coming: Result | None = None

    def ask(self, wait: bool) -> None:
        """Use the code if it is there; compile it now if no other process does."""
        from linkwise.compiler.runtime import background, cache, machine

        self._asked += 1
        stored = cache.load(_entry_name()) if self._asked == 1 else None
        if stored is None and self.coming is not None:
            stored = self.coming.get()
        if stored is None and (wait or not background.is_on() or (self.coming and self.coming.is_missing)):
            stored = stored_entry()
        if stored is not None:
            self.code, self.is_pending = machine.load(stored), False
            return
        self.is_pending = True
        if self.coming is None and self._asked > _ASKED_BY_ONE_CALL:
            self.coming = background.start(background.Task(stored_entry, ()))


_ASKED_BY_ONE_CALL = 2  # a program that calls once needs no entry points
_entry = _Entry()


def entry_points(*, wait: bool = False) -> dict[str, int]:
    """The addresses of the functions of ``entry``.

    None of them while they are compiled in the background (unless ``wait``), and where its source is not there, as in a
    package of compiled files only: calls go through Python then.
    """
    if _entry.code is None:
        with forks.unforked, _lock:
            if _entry.code is None:
                try:
                    _entry.ask(wait)
                except OSError:
                    return {}
    return {} if _entry.code is None else _entry.code.functions


def expect_entry(result: Result) -> None:
    """Let another process compile the entry points."""
    if _entry.code is None:
        _entry.coming = result


def is_pending() -> bool:
    """Whether the entry points are still being compiled."""
    return _entry.is_pending


def stored_entry() -> bytes:
    """The machine code of ``entry`` as the cache has it: found there, or compiled and stored there."""
    from linkwise.compiler.runtime import cache, machine

    stored = cache.load(_entry_name())
    if stored is None:
        stored = machine.compile_text(entry_text(), optimize=True)
        cache.store(_entry_name(), stored)
    return stored


def _entry_name() -> str:
    from linkwise.compiler.runtime import cache

    return cache.key(f"entry {layout.VECTORCALL}".encode())


def entry_text() -> str:
    """The LLVM text of ``entry``."""
    import inspect

    from linkwise.compiler.emit import routines
    from linkwise.compiler.entry import calls, computation, devices, inputs, launches, memory, results

    modules = (calls, computation, devices, inputs, launches, memory, results)
    sources = [(inspect.getsource(module), vars(module)) for module in modules]
    return routines.module(sources, ("call_kernel", "call_method", "launch", "new_result"))
