"""Reading a table by the kind of its file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from linkwise.errors import LinkwiseError, first_line
from linkwise.files.tables import text
from linkwise.files.tables.kinds import kind_of
from linkwise.files.tables.table import NumberTable, TableError


def read(
    source: str | os.PathLike[str],
    *,
    tolerant: bool = False,
    joints: Sequence[str] = (),
    topic: str | None = None,
) -> NumberTable:
    """The table in a file; ``-`` is standard input, as text.

    Text may have commas, semicolons, tabs, bars or blanks between columns, decimal commas (not between commas), a
    header or none, units in the header (``q1 [deg]``) or in a row under it, quoted cells, comments (# or %), a byte
    order mark, and the encodings UTF-8, UTF-16 and Latin-1. Cells may be lists (``[0.1, 0.2]``).

    Other files: NPZ, Parquet, MATLAB, HDF5, Excel, and rosbags (files, or the folder of a rosbag 2).

    Args:
        source: the file.
        tolerant: whether cells of a text that are not numbers, and all cells of rows with more or fewer cells than
            others, become NaN with a reason in ``NumberTable.faults``, instead of being an error.
        joints: names of the joints whose states a rosbag is read for; by default those of its first message.
        topic: of a rosbag with several.

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
        return _read(path, tolerant, joints, topic)
    except LinkwiseError:
        raise
    except FileNotFoundError:
        raise TableError(f"{path}: no such file") from None
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (MemoryError, RecursionError):
        raise TableError(f"{path}: cannot be read: damaged, or more than fits into memory") from None
    except (
        Exception
    ) as error:  # a NUL character in the name; what readers of other packages raise on damaged files
        raise TableError(f"{str(path)!r}: cannot be read: {first_line(error)}") from None


def _read(path: Path, tolerant: bool, joints: Sequence[str], topic: str | None) -> NumberTable:
    """By the kind of the file. Readers are imported here: most programs need none of them."""
    kind = kind_of(path)
    if kind == "folder":
        raise TableError(f"{path}: a folder; expected a file, or the folder of a rosbag 2")
    if kind == "bag":
        from linkwise.files.tables.bags import read_bag

        return read_bag(path, joints, topic)
    if kind == "xlsx":
        from linkwise.files.tables.excel import read_xlsx

        return read_xlsx(path, tolerant=tolerant)
    if kind in ("npz", "parquet"):
        from linkwise.files.tables import binary

        return binary.read_npz(path) if kind == "npz" else binary.read_parquet(path)
    if kind == "mat":
        from linkwise.files.tables.matlab import read_mat

        return read_mat(path)
    if kind == "hdf5":
        from linkwise.files.tables.hdf5 import read_hdf5

        return read_hdf5(path)
    with path.open("rb") as stream:
        return text.read(stream, str(path), tolerant=tolerant)
