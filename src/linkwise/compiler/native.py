"""A program as machine code, in the two forms that calls need: for one state at once, and for batches.

Both are compiled when first asked for, or come from the cache without the program being built at all.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise import forks
from linkwise.compiler import cache, machine
from linkwise.compiler.arrays import address
from linkwise.once import once

if TYPE_CHECKING:  # code from the cache runs without the rest of the compiler
    import numpy as np

    from linkwise.compiler.program import Program
    from linkwise.compiler.rollout import RolloutProgram
    from linkwise.compiler.sweeps import SweptProgram

    AnyProgram = Program | SweptProgram | RolloutProgram

RUN = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
"""(first, count, arguments, scratch); see ``emit.blocks``. A call releases the interpreter lock."""


# Bytes of straight-line machine code for each thread, about a tenth of a millisecond: waking a thread that sleeps was
# seen to take up to half of that.
_WORTH_A_THREAD = 8 << 20
_REPEATS = 32  # how often a loop is taken to run: that is not known before


@dataclass(frozen=True)
class Native:
    """Machine code for blocks of ``width`` states; ``repeats`` is about how often a block runs through it."""

    code: machine.Code
    width: int
    repeats: int

    @once
    def run(self) -> Callable[[int, int, int, int], None]:
        return RUN(self.code.functions["run"])

    def __call__(self, first: int, count: int, arguments: np.ndarray) -> None:
        """Compute without scratch; ``arguments`` are words of 64 bits."""
        self.run(first, count, address(arguments), 0)

    @once
    def room(self) -> int:
        """Scalars of scratch that the code needs beside the rows of a block: programs with sweeps keep values
        there."""
        address = self.code.functions.get("room")
        return 0 if address is None else ctypes.CFUNCTYPE(ctypes.c_int64)(address)()

    @property
    def address(self) -> int:
        """Of the function that ``run`` calls."""
        return self.code.functions["run"]

    @property
    def states_for_one_thread(self) -> int:
        """The largest batch that is not worth a second thread, judged by how much code it runs through."""
        return self.width * (2 * _WORTH_A_THREAD // (self.code.size * self.repeats) + 1)

    def useful_threads(self, count: int, repeats: int | None = None) -> int:
        """How many threads a batch is worth: starting one must cost less than it saves."""
        blocks = -(-count // self.width)
        return max(1, min(blocks, blocks * self.code.size * (repeats or self.repeats) // _WORTH_A_THREAD))


@contextlib.contextmanager
def _without_collecting() -> Generator[None, None, None]:
    """Tracing makes many small objects that all stay: looking for garbage among them takes as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class NativeProgram:
    """The machine code of one program in one precision."""

    def __init__(self, build: Callable[[], AnyProgram], key: bytes | None):
        self._build = build
        self.key = key
        self._lock = forks.lock()
        self._forms: dict[int, Native] = {}

    @once
    def program(self) -> AnyProgram:
        with forks.unforked, self._lock, _without_collecting():
            return self._build()

    def form(self, width: int) -> Native:
        """The code for blocks of this many states."""
        native = self._forms.get(width)
        if native is None:
            with forks.unforked, self._lock:
                native = self._forms.get(width)
                if native is None:
                    native = self._forms[width] = self._load(width)
        return native

    def known_form(self, width: int) -> Native | None:
        """The code for this width if it has been asked for before."""
        return self._forms.get(width)

    def text(self, width: int) -> str:
        """The LLVM text for blocks of this many states."""
        from linkwise.compiler.emit import blocks
        from linkwise.compiler.shapes import nest

        return blocks.module(nest(self.program), width)

    def _load(self, width: int) -> Native:
        """From the cache, by the key or at least by the text; else compiled and stored there."""
        content = self.key or hashlib.sha256(self.text(width).encode()).digest()
        name = cache.key(b"%d\0" % width + content)
        stored = cache.load(name)
        if stored is None:
            stored = b"%d\n" % _repeats(self.program) + machine.compile_text(self.text(width))
            cache.store(name, stored)
        repeats, code = stored.split(b"\n", 1)
        return Native(machine.load(code), width, int(repeats))


def _repeats(program: AnyProgram) -> int:
    """About how often a block of states runs through the code."""
    from linkwise.compiler.program import LoopRegion, Program

    if not isinstance(program, Program):
        return _REPEATS
    return _REPEATS if any(isinstance(item, LoopRegion) for item in program.body) else 1
