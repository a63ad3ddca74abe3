"""How much memory a table may take: checked before it is taken.

A few kilobytes of a compressed file can stand for gigabytes of numbers. ``LINKWISE_TABLE_LIMIT`` is the most that one
table may have, in MiB of double-precision numbers (default: 1024). It holds for tables that are read and for those
that are computed and written. Reading or writing one takes up to about four times as much for a moment. While the
variable is not set, a packed file may also stand for at most ``RATIO`` times its own size, or ``SMALL`` bytes.
"""

from __future__ import annotations

import math
import os

from linkwise.files.tables.table import TableError

VARIABLE = "LINKWISE_TABLE_LIMIT"
DEFAULT = 1024  # MiB
RATIO = 100  # recordings rarely unpack to more than ten times their size
SMALL = 64 << 20  # bytes that a file of any size may unpack to


def limit(packed: int | None = None) -> int:
    """The bytes that a table may take.

    Args:
        packed: bytes of the file, or of the part of it, that the table is unpacked from.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        most = DEFAULT << 20
        return most if packed is None else min(most, max(SMALL, RATIO * packed))
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0 < size < math.inf:
        raise TableError(f"{VARIABLE}: expected a positive number of MiB, got {text!r}")
    return int(size * 2**20)


def check(what: str, numbers: float, size: int = 8, packed: int | None = None) -> None:
    """Raise TableError where so many numbers are more than the limit allows.

    Args:
        what: the table, for the message.
        numbers: how many there are.
        size: bytes of each.
        packed: bytes of the file that they are unpacked from.
    """
    needed, allowed = numbers * size, limit(packed)
    if not needed <= allowed:
        of = f" for a file of {_shown(packed)}" if packed is not None and allowed < limit() else ""
        raise TableError(
            f"{what}: {_shown(needed)} of numbers, more than the {_shown(allowed)} that are allowed{of} "
            f"(the environment variable {VARIABLE} sets another limit in MiB)"
        )


def _shown(size: float) -> str:
    if size < 2**20:
        return f"{size:.0f} bytes"
    return f"{size / 2**20:.4g} MiB" if size < 2**30 else f"{size / 2**30:.4g} GiB"
