"""A kernel as a target of XLA's foreign-function interface: the table that the handler reads, and its registration.

A target is one operation in one precision, named by its content, so that an executable from JAX's persistent cache
finds the same code in a new process. The handler is a few instructions that pass the address of the table on to
``xla_handler``, which is compiled once and kept in the cache of compiled code.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
# (the type checker takes the packages torch and jax for the files of that name here)
from __future__ import annotations

import ctypes
import functools
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.compiler import native
from linkwise.compiler.runtime import cache, host, machine, native_threads, threads
from linkwise.compiler.runtime.dispatch import global_table
from linkwise.compiler.runtime.layout import Globals
from linkwise.core import forks
from linkwise.frameworks.operation import Operation
from linkwise.frameworks.xla_handler import Handler

_PRECISIONS = {"float64": 12, "float32": 11}  # XLA_FFI_DataType
_SHORT = {"float64": "f64", "float32": "f32"}
_lock = forks.lock()


class Target:
    """One operation in one precision."""

    def __init__(self, of: Operation, dtype: str):
        self.operation, self.dtype = of, dtype
        self.name = f"linkwise_{of.name}_{_SHORT[dtype]}"
        self._kept: list[Any] = []  # what the table points to
        self._registered: set[str] = set()
        self._launches = (ctypes.c_int64 * 1)()
        self._table = Handler.table(
            version=_version(),
            inputs=len(of.sizes),
            outputs=len(of.shapes),
            dtype=_PRECISIONS[dtype],
            sizes=self._words(of.sizes),
            rows=self._words(of.rows),
            axes=self._words([len(shape) for shape in of.shapes]),
            messages=self._messages(),
            width=host.lanes(dtype),
            worth=native.WORTH_A_THREAD,
            allocate=global_table()[Globals.allocate // 8],
            free=global_table()[Globals.free // 8],
        )

    def prepare_cpu(self, count: int | None) -> None:
        """Compile what a batch of this size needs (None: any) and tell XLA about the target."""
        with _lock:
            if count != 1:
                self._load("many", host.lanes(self.dtype))
                found = native_threads.prepare(threads.wanted(None))
                self._table[Handler.pool // 8], self._table[Handler.share // 8] = found
            if count in (None, 1):
                self._load("one", 1)
            self._register("cpu", "handle_cpu")

    def prepare_cuda(self) -> None:
        """Load the kernel on every GPU of this process and tell XLA about the target."""
        import jax

        from linkwise.gpu.launch import prepare

        with _lock:
            if "CUDA" in self._registered:
                return
            numbers = sorted(device.local_hardware_id for device in jax.local_devices(backend="cuda"))
            prepared = {number: prepare(self.operation.kernel, self.dtype, number) for number in numbers}
            self._kept.append(prepared)
            launches = [0] * (max(numbers) + 1)
            for number, each in prepared.items():
                launches[number] = each.address
            self._table[Handler.launches // 8] = self._words(launches)
            self._table[Handler.devices // 8] = len(launches)
            self._register("CUDA", "handle_cuda")

    def _load(self, form: str, width: int) -> None:
        place = Handler[form] // 8
        if self._table[place]:
            return
        of = self.operation
        made = of.kernel.native(self.dtype, width)
        scalars = made.width * of.kernel.row_size + made.room
        alone = width == 1 and made.room == 0  # straight-line code for one state needs no scratch
        self._table[Handler[f"scratch_{form}"] // 8] = 0 if alone else scalars * np.dtype(self.dtype).itemsize
        if form == "many":
            self._table[Handler.work // 8] = made.code.size * made.repeats
        self._kept.append(made)
        self._table[place] = made.address

    def _register(self, platform: str, routine: str) -> None:
        if platform in self._registered:
            return
        import jax

        text = _STUB.format(routine=_routines()[routine], table=ctypes.addressof(self._table))
        code = machine.load(machine.compile_text(text))
        self._kept.append(code)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        jax.ffi.register_ffi_target(self.name, make(code.functions["handle"], None, None), platform=platform)
        self._registered.add(platform)

    def _words(self, values: Any) -> int:
        words = (ctypes.c_int64 * max(len(values), 1))(*values)
        self._kept.append(words)
        return ctypes.addressof(words)

    def _messages(self) -> int:
        of, kernel = self.operation, self.operation.kernel
        texts = [
            f"linkwise {kernel.name}: {label}: expected {self.dtype} of shape (..., {size}) with the leading axes of "
            "the result, or one row"
            for label, size in kernel.inputs
        ]
        texts += [
            f"linkwise {kernel.name}: result {label}: expected {self.dtype} of shape {('...', *shape)}"
            for label, shape in kernel.outputs
        ]
        texts += [
            f"linkwise {kernel.name}: expected {len(of.sizes)} inputs and {len(of.shapes)} results",
            f"linkwise {kernel.name}: too little memory",
            f"linkwise {kernel.name}: the kernel is not loaded on this GPU",
            f"linkwise {kernel.name}: the driver refuses the launch",
        ]
        strings = [ctypes.create_string_buffer(text.encode()) for text in texts]
        self._kept.append(strings)
        return self._words([ctypes.addressof(string) for string in strings])


_STUB = """
define i64 @handle(i64 %frame) nounwind {{
  %routine = inttoptr i64 {routine} to ptr
  %error = tail call i64 %routine(i64 %frame, i64 {table})
  ret i64 %error
}}
"""


@functools.cache
def _code() -> machine.Code:
    from linkwise.compiler.emit import routines
    from linkwise.compiler.entry import launches
    from linkwise.frameworks import xla_handler

    sources = [(inspect.getsource(module), vars(module)) for module in (xla_handler, launches)]
    text = routines.module(sources, ("handle_cpu", "handle_cuda"))
    name = cache.key(b"xla\0" + text.encode())
    stored = cache.load(name)
    if stored is None:
        stored = machine.compile_text(text, optimize=True)
        cache.store(name, stored)
    return machine.load(stored)


def _routines() -> dict[str, int]:
    return _code().functions


@functools.cache
def _version() -> int:
    """The version of XLA's interface that this JAX has: major in the lower 32 bits, minor in the upper."""
    import jax

    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    numbers = {"MAJOR": 0, "MINOR": 1}
    if header.is_file():
        text = header.read_text(encoding="utf-8")
        for name in numbers:
            found = re.search(rf"#define XLA_FFI_API_{name} (\d+)", text)
            numbers[name] = int(found[1]) if found else numbers[name]
    return numbers["MAJOR"] | numbers["MINOR"] << 32


def target_of(of: Operation, dtype: str) -> Target:
    """The target of an operation, made when it is first asked for."""
    found = of.made.get((Target, dtype))
    if found is None:
        with _lock:
            found = of.made.setdefault((Target, dtype), Target(of, dtype))
    return found
