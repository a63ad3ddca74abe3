"""A program as machine code, in the two forms that calls need: for one state at once, and for batches.

Both are compiled when first asked for, or come from the cache without the program being built at all.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.compiler import cache, dispatch, host, machine

if TYPE_CHECKING:  # code from the cache runs without the rest of the compiler
    from linkwise.compiler.program import Program

RUN = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
"""(first, count, arguments, scratch); see ``emit.blocks``. A call releases the interpreter lock."""

_WORTH_THREADS = 8 << 20  # bytes of straight-line machine code: about a tenth of a millisecond


@dataclass(frozen=True)
class Native:
    """Machine code for blocks of ``width`` states."""

    code: machine.Code
    width: int

    @functools.cached_property
    def run(self) -> Callable[[int, int, int, int], None]:
        return RUN(self.code.functions["run"])

    @functools.cached_property
    def room(self) -> int:
        """Scalars of scratch memory that the code needs beyond rows of its inputs and outputs (sweeps do)."""
        address = self.code.functions.get("room")
        return 0 if address is None else ctypes.CFUNCTYPE(ctypes.c_int64)(address)()

    @property
    def states_for_one_thread(self) -> int:
        """The largest batch that is not worth a second thread, judged by how much code it runs through."""
        return self.width * (_WORTH_THREADS // self.code.size + 1)


class NativeProgram:
    """The machine code of one program in one precision."""

    def __init__(self, build: Callable[[], Program], key: bytes | None):
        self._build = build
        self._key = key
        self._lock = threading.RLock()
        self._forms: dict[int, Native] = {}

    @functools.cached_property
    def program(self) -> Program:
        with self._lock:
            return self._build()

    def form(self, width: int) -> Native:
        """The code for blocks of this many states; width 1 also has the entry ``call`` for ``dispatch``."""
        native = self._forms.get(width)
        if native is None:
            with self._lock:
                native = self._forms.get(width)
                if native is None:
                    native = self._forms[width] = Native(self._load(width), width)
        return native

    def known_form(self, width: int) -> Native | None:
        """The code for this width if it has been asked for before."""
        return self._forms.get(width)

    def _load(self, width: int) -> machine.Code:
        name = None
        if self._key is not None:
            name = cache.key(b"%d\0" % width + self._key)
            stored = cache.load(name)
            if stored is not None:
                return machine.load(stored)
        text = self.text(width)
        if name is None:  # nothing is known about the program but its text
            name = cache.key(hashlib.sha256(text.encode()).digest())
            stored = cache.load(name)
            if stored is not None:
                return machine.load(stored)
        compiled = machine.compile_text(text)
        cache.store(name, compiled)
        return machine.load(compiled)

    def text(self, width: int) -> str:
        """The LLVM text for blocks of this many states."""
        from linkwise.compiler.emit import blocks
        from linkwise.compiler.emit.wrapper import Interface, wrapper
        from linkwise.compiler.program import Program

        program = self.program
        text = blocks.module(program, width)
        if width == 1 and dispatch.SUPPORTED and isinstance(program, Program):
            sizes = [size for _, size in program.inputs]
            interface = Interface(sizes, [shape for _, shape in program.outputs], program.dtype)
            text += wrapper(interface, host.lanes(program.dtype))
        return text
