"""Machine code of the study's own: LLVM text in, a function that can be called out.

Every function has the signature ``run(first, count, arguments, scratch)`` of the compiler's kernels, releases the
interpreter lock, and is found again in the cache of compiled code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.compiler import cache, machine
from linkwise.compiler.arrays import address
from linkwise.compiler.native import RUN

LANES = 16
"""Every column has room for so many more entries than it holds, so that vectors may reach over its end."""

HEAD = "define void @run(i64 %first, i64 %count, ptr %arguments, ptr %scratch) nounwind alignstack(64) {"


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


def function(lines: list[str]) -> str:
    """The text of ``run`` around its lines."""
    return "\n".join([HEAD, "entry:", *lines, "}", ""])


def columns(count: int, block: int) -> np.ndarray:
    """Room for ``count`` columns of ``block`` numbers; the odd distance keeps them out of each other's cache lines."""
    return np.zeros((max(count, 1), block + stride_padding(block)))


def stride_padding(block: int) -> int:
    """Entries between the end of a column and the next one."""
    return LANES + 8 - block % 8
