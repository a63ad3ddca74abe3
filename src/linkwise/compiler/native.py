"""A program as machine code, in the two forms that calls need: for one state at once, and for batches.

Both are compiled when first needed, or come from the cache without the program being built at all. A large program
is compiled quickly first; when it is used again the better code is made in the background, and used from then on. Both
do the same operations in the same order: the bits are the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.compiler.runtime import cache, host, machine
from linkwise.compiler.runtime.arrays import address
from linkwise.core import forks
from linkwise.core.once import once

if TYPE_CHECKING:  # code from the cache runs without the rest of the compiler
    import numpy as np

    from linkwise.compiler.ir.program import Program
    from linkwise.compiler.ir.sweeps import SweptProgram
    from linkwise.compiler.rollout import RolloutProgram
    from linkwise.compiler.runtime.background import Result

    AnyProgram = Program | SweptProgram | RolloutProgram

RUN = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
"""(first, count, arguments, scratch); see ``emit.blocks``. A call releases the interpreter lock."""


# Bytes of straight-line machine code for each thread, about a tenth of a millisecond: waking a thread that sleeps was
# seen to take up to half of that.
WORTH_A_THREAD = 8 << 20
_REPEATS = 32  # how often a loop is taken to run: that is not known before
_FEW_REPEATS = 2  # the same for a loop that most states leave after few turns
LARGE = 3000  # lines of LLVM text for one state; they take about a fifth of a second
_COST_OF_WIDTH = 2  # how much longer a line takes for a batch


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
        return self.width * (2 * WORTH_A_THREAD // (self.code.size * self.repeats) + 1)

    def useful_threads(self, count: int, repeats: int | None = None) -> int:
        """How many threads a batch is worth: starting one must cost less than it saves."""
        blocks = -(-count // self.width)
        return max(1, min(blocks, blocks * self.code.size * (repeats or self.repeats) // WORTH_A_THREAD))


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


@dataclass(frozen=True)
class _Quick:
    """Code that was compiled quickly, and what the better code is made from."""

    native: Native
    text: str
    prefix: bytes
    name: str


class NativeProgram:
    """The machine code of one program in one precision."""

    def __init__(self, build: Callable[[], AnyProgram], key: bytes | None):
        self._build = build
        self.key = key
        self._lock = forks.lock()
        self._forms: dict[int, Native] = {}
        self._quick: dict[int, _Quick] = {}
        self._coming: dict[int, Result] = {}  # code that another process makes

    @once
    def program(self) -> AnyProgram:
        # without ``self._lock``: ``form`` holds that and reads this property
        with _without_collecting():
            return self._build()

    def form(self, width: int, *, quick: bool = False) -> Native:
        """The code for blocks of this many states; with ``quick`` it may be slow code while the better is made."""
        native = self._forms.get(width)
        if native is not None:
            return native
        if quick and (made := self._quick.get(width)) is not None:
            return self._better(width, made) or made.native
        with forks.unforked, self._lock:
            return self._forms.get(width) or self._received(width) or self._load(width, quick)

    def known_form(self, width: int) -> Native | None:
        """The code for this width if it has been needed before; never quick code."""
        return self._forms.get(width)

    def expect(self, width: int, result: Result) -> None:
        """Another process makes the code for this width."""
        self._coming[width] = result

    def _better(self, width: int, quick: _Quick) -> Native | None:
        """The code that takes the place of quick code, once it is there; until then start its compilation."""
        coming = self._coming.get(width)
        if coming is None:
            return self._start(width, quick)
        if coming.get() is None and not coming.is_missing:
            return None
        with forks.unforked, self._lock:
            return self._forms.get(width) or self._received(width) or self._load(width, quick=False)

    def _start(self, width: int, quick: _Quick) -> Native | None:
        """Let another process make the better code, unless one has stored it in the meantime."""
        from linkwise.compiler.runtime import background

        with forks.unforked, self._lock:
            if width not in self._coming and width not in self._forms:
                stored = cache.load(quick.name)
                if stored is not None:
                    return self._take(width, stored)
                task = background.Task(_stored_code, (quick.name, quick.prefix, quick.text))
                if (started := background.start(task)) is not None:
                    self._coming[width] = started
            return self._forms.get(width)

    def _received(self, width: int) -> Native | None:
        """What another process has made."""
        coming = self._coming.get(width)
        stored = None if coming is None else coming.get()
        return None if stored is None else self._take(width, stored)

    def text(self, width: int) -> str:
        """The LLVM text for blocks of this many states."""
        from linkwise.compiler.emit import blocks
        from linkwise.compiler.shapes import nest

        program = self.program
        with _without_collecting():
            return blocks.module(nest(program), width, spills=not _is_quick_enough())

    def stored(self, width: int) -> bytes:
        """What the cache holds for this width: found there, or compiled and stored there."""
        name, text, stored = self._found(width)
        return stored or self._stored_now(name, text or self.text(width))

    def _load(self, width: int, quick: bool) -> Native:
        """From the cache; else compiled quickly where that is allowed and worth it, else compiled and stored there."""
        name, text, stored = self._found(width)
        if stored is None:
            text = text or self.text(width)
            if quick and _is_large(text, width) and _in_background():
                repeats = _repeats(self.program)
                native = Native(machine.load(_compiled(text, quick=True)), width, repeats)
                self._quick[width] = _Quick(native, text, b"%d\n" % repeats, name)
                return native
            stored = self._stored_now(name, text)
        return self._take(width, stored)

    def _found(self, width: int) -> tuple[str, str | None, bytes | None]:
        """The name of an entry of the cache, the text where the name was made from it, and the entry."""
        text = None if self.key else self.text(width)
        content = self.key if text is None else hashlib.sha256(text.encode()).digest()
        assert content is not None
        level = b"quick\0" if _is_quick_enough() else b""
        name = cache.key(level + b"%d of %d\0" % (width, host.vector_bits()) + content)
        return name, text, cache.load(name)

    def _stored_now(self, name: str, text: str) -> bytes:
        return _stored_code(name, b"%d\n" % _repeats(self.program), text)

    def _take(self, width: int, stored: bytes) -> Native:
        repeats, code = stored.split(b"\n", 1)
        native = self._forms[width] = Native(machine.load(code), width, int(repeats))
        self._coming.pop(width, None)
        self._quick.pop(width, None)
        return native


def _is_large(text: str, width: int) -> bool:
    """Whether compiling takes so long that quick code is worth it."""
    return text.count("\n") * (1 if width == 1 else _COST_OF_WIDTH) > LARGE


def _in_background() -> bool:
    from linkwise.compiler.runtime import background

    return background.is_on()


def _is_quick_enough() -> bool:
    """Whether code that was compiled quickly is kept, and no better code is made; see ``background``."""
    return os.environ.get("LINKWISE_BACKGROUND") == "quick"


def _compiled(text: str, quick: bool) -> bytes:
    from linkwise.compiler.emit.lanes import without_slots

    return machine.compile_text(without_slots(text) if quick else text, quick=quick)


def _stored_code(name: str, prefix: bytes, text: str) -> bytes:
    """Compile an entry of the cache and store it there."""
    stored = prefix + _compiled(text, quick=_is_quick_enough())
    cache.store(name, stored)
    return stored


def _repeats(program: AnyProgram) -> int:
    """About how often a block of states runs through the code."""
    from linkwise.compiler.ir.program import LoopRegion, Program

    if not isinstance(program, Program):
        return _REPEATS
    loops = [item.loop for item in program.body if isinstance(item, LoopRegion)]
    return max((_FEW_REPEATS if loop.uneven else _REPEATS for loop in loops), default=1)
