"""Reading a table by the ending of its file: .npz, .parquet, anything else as text."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from linkwise.tables import binary, text
from linkwise.tables.table import NumberTable, TableError


def read(source: str | os.PathLike[str], *, tolerant: bool = False) -> NumberTable:
    """The table in a file; ``-`` is standard input, as text.

    Text may have commas, semicolons, tabs, bars or blanks between columns, decimal commas (not between commas), a
    header or none, units in the header (``q1 [deg]``) or in a row under it, quoted cells, comments (# or %), a byte
    order mark, and the encodings UTF-8, UTF-16 and Latin-1. Cells may be lists (``[0.1, 0.2]``).

    Args:
        source: the file.
        tolerant: whether cells of a text that are not numbers, and all cells of rows with more or fewer cells than
            others, become NaN with a reason in ``NumberTable.faults``, instead of being an error.

    Raises:
        TableError: it cannot be read, or is more than may be read (see ``bounds``). Numbers that are not finite are
            no error here, but in ``NumberTable.picked``.
    """
    if isinstance(source, str) and source == "-":
        if not hasattr(sys.stdin, "buffer"):
            return text.read(sys.stdin, "standard input", tolerant=tolerant)
        with open(sys.stdin.fileno(), "rb", closefd=False) as stream:
            return text.read(stream, "standard input", tolerant=tolerant)
    path = Path(os.fsdecode(source))
    try:
        if path.is_dir():
            raise TableError(f"{path}: a folder; expected a file")
        if path.suffix.lower() == ".npz":
            return binary.read_npz(path)
        if path.suffix.lower() in (".parquet", ".pq"):
            return binary.read_parquet(path)
        with path.open("rb") as stream:
            return text.read(stream, str(path), tolerant=tolerant)
    except FileNotFoundError:
        raise TableError(f"{path}: no such file") from None
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{str(path)!r}: cannot be read: {error}") from None  # a NUL character in the name
