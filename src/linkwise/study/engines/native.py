"""Machine code for the columns of a study: what ``compiler.columns`` builds, as functions that can be called.

Every function has the signature ``run(first, count, arguments, scratch)`` of the compiler's kernels, releases the
interpreter lock, and is found again in the cache of compiled code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from linkwise.compiler import columns as shapes
from linkwise.compiler.emit import blocks
from linkwise.compiler.emit import tiles as emit
from linkwise.compiler.ir.loops import Nest
from linkwise.compiler.ir.program import Program
from linkwise.compiler.native import Native
from linkwise.compiler.runtime import cache, host, machine
from linkwise.compiler.shapes import nest

TILE = 256
"""Points whose random numbers and program are taken in turns."""


def compiled(text: str) -> Native:
    """The function ``run`` of a module, from the cache where it is known."""
    name = cache.key(b"study\0" + hashlib.sha256(text.encode()).digest())
    stored = cache.load(name)
    if stored is None:
        stored = machine.compile_text(text)
        cache.store(name, stored)
    return Native(machine.load(stored), 1, 1)


def over_columns(program: Program | Nest, strides: tuple[int, int]) -> Native:
    """A program with a column for every input and output, so many numbers apart; see ``compiler.emit.blocks``."""
    return compiled(blocks.module(nest(program), host.lanes("float64"), strides))


def generator(variables: Sequence[shapes.Ticks], stride: int, high: int = 0) -> Native:
    """Fills columns with random numbers: ``run(first, count, [address])`` for the samples from ``first`` on."""
    return over_columns(shapes.draws(variables, high), (0, stride))


def tiles() -> Native:
    """Random numbers and program taken in turns; the same function for all studies."""
    return compiled(emit.tiles(TILE))


def reducer(columns: int, stride: int) -> Callable[[int, int, int, int, int], None]:
    """Moments of so many columns, ``stride`` numbers apart: ``(first, count, data, leaves, extremes)``, addresses."""
    run = compiled(blocks.module(shapes.moments(), 1))

    def reduce(first: int, count: int, data: int, leaves: int, extremes: int) -> None:
        rows = -(-count // shapes.LANES)
        run(0, columns, np.array([first, count, rows, data, stride, leaves, 3, extremes, 4]))

    return reduce


def counter(columns: int, stride: int, bits: int) -> Callable[[int, int, int], None]:
    """Counts of classes of so many columns: ``(count, data, tables)``, addresses; a table of uint32 for each column."""
    run = compiled(blocks.module(shapes.classes(bits), 1))
    return lambda count, data, tables: run(0, columns, np.array([count, data, stride, tables, 1 << bits]))


def columns(count: int, block: int) -> np.ndarray:
    """Room for ``count`` columns of ``block`` numbers; the odd distance keeps them out of each other's cache lines."""
    return np.zeros((max(count, 1), block + stride_padding(block)))


def stride_padding(block: int) -> int:
    """Entries between the end of a column and the next one."""
    return shapes.LANES + 8 - block % 8
