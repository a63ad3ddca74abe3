"""How much memory a table may take: checked before it is taken.

A few kilobytes of a compressed file can stand for gigabytes of numbers. ``LINKWISE_TABLE_LIMIT`` is the most that one
table may have, in MiB of double-precision numbers (default: 1024). It holds for tables that are read and for those
that are computed and written. Reading or writing one takes up to about four times as much for a moment.
"""

from __future__ import annotations

import math
import os

from linkwise.tables.table import TableError

VARIABLE = "LINKWISE_TABLE_LIMIT"
DEFAULT = 1024  # MiB


def limit() -> int:
    """The bytes that a table may take."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return DEFAULT << 20
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0 < size < math.inf:
        raise TableError(f"{VARIABLE}: expected a positive number of MiB, got {text!r}")
    return int(size * 2**20)


def check(what: str, numbers: float, size: int = 8) -> None:
    """Raise TableError where so many numbers of so many bytes are more than the limit allows."""
    needed, allowed = numbers * size, limit()
    if not needed <= allowed:
        raise TableError(
            f"{what}: {_shown(needed)} of numbers, more than the {_shown(allowed)} that are allowed "
            f"(the environment variable {VARIABLE} sets another limit in MiB)"
        )


def _shown(size: float) -> str:
    if size < 2**20:
        return f"{size:.0f} bytes"
    return f"{size / 2**20:.4g} MiB" if size < 2**30 else f"{size / 2**30:.4g} GiB"
