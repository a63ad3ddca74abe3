"""Machine code for the columns of a study: LLVM text in, a function that can be called out.

Every function has the signature ``run(first, count, arguments, scratch)`` of the compiler's kernels, releases the
interpreter lock, and is found again in the cache of compiled code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.compiler import cache, host, machine
from linkwise.compiler.arrays import address
from linkwise.compiler.emit import columns as emit
from linkwise.compiler.emit.reductions import LANES
from linkwise.compiler.native import RUN
from linkwise.compiler.program import Program
from linkwise.compiler.shapes import nest

TILE = 256
"""Points whose random numbers and program are taken in turns."""


@dataclass(frozen=True)
class Native:
    """A loaded function; it lives as long as this object."""

    code: machine.Code
    run: Callable[[int, int, int, int], None]

    @property
    def address(self) -> int:
        return self.code.functions["run"]

    def __call__(self, first: int, count: int, arguments: np.ndarray) -> None:
        """``arguments`` are addresses, int64."""
        self.run(first, count, address(arguments), 0)


def compiled(text: str) -> Native:
    """The function ``run`` of a module, from the cache where it is known."""
    name = cache.key(b"study\0" + hashlib.sha256(text.encode()).digest())
    stored = cache.load(name)
    if stored is None:
        stored = machine.compile_text(text)
        cache.store(name, stored)
    code = machine.load(stored)
    return Native(code, RUN(code.functions["run"]))


def over_columns(program: Program, strides: tuple[int, int]) -> Native:
    """A program with a column for every input and output; see ``compiler.emit.columns``."""
    return compiled(emit.module(nest(program), strides, host.lanes("float64")))


def tiles() -> Native:
    """Random numbers and program taken in turns; the same function for all studies."""
    return compiled(emit.tiles(TILE))


def columns(count: int, block: int) -> np.ndarray:
    """Room for ``count`` columns of ``block`` numbers; the odd distance keeps them out of each other's cache lines."""
    return np.zeros((max(count, 1), block + stride_padding(block)))


def stride_padding(block: int) -> int:
    """Entries between the end of a column and the next one."""
    return LANES + 8 - block % 8
