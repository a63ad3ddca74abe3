"""Tables of numbers from CSV, NPZ and Parquet files, with the line of every row for messages."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from linkwise.errors import needed
from linkwise.identify.errors import LogError

SEPARATORS = (";", "\t", "|", ",")  # a comma last: beside any other it is a decimal comma


@dataclass(frozen=True)
class Table:
    """Numbers under column names.

    ``values`` (rows, columns). ``names`` is None without a header. ``lines`` (rows,) are line numbers in a text file;
    ``groups`` are the arrays of an NPZ file: name and columns; ``unusable`` says of others why they are no signals.
    """

    path: str
    values: np.ndarray
    names: tuple[str, ...] | None
    lines: np.ndarray | None = None
    groups: Mapping[str, tuple[int, ...]] | None = None
    unusable: Mapping[str, str] = field(default_factory=dict)

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"{self.path}, {f'line {self.lines[row]}' if self.lines is not None else f'row {row + 1}'}"

    def column(self, k: int) -> str:
        """What a column is called, for messages."""
        return f"column {k + 1}" if self.names is None else f"column {k + 1} ({self.names[k]})"


def read_table(path: str | os.PathLike[str]) -> Table:
    """A table by the ending of its file: .npz, .parquet, anything else as text."""
    source = Path(path)
    if source.is_dir():
        raise LogError(f"{source}: a folder; expected a file")
    if not source.is_file():
        raise LogError(f"{source}: no such file")
    if source.suffix == ".npz":
        return _read_npz(source)
    if source.suffix in (".parquet", ".pq"):
        return _read_parquet(source)
    return _read_text(source)


# -- text -------------------------------------------------------------------------------------------------------------


def _read_text(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError(f"{path}: not a text file ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}") from None
    numbered = [
        (k, line)
        for k, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not numbered:
        raise LogError(f"{path}: the file is empty")
    separator = next((s for s in SEPARATORS if s in numbered[0][1]), None)
    first = _cells(numbered[0][1], separator)
    point = (lambda cell: cell.replace(",", ".")) if separator != "," else str
    names = None if all(_is_number(point(cell)) or not cell for cell in first) else tuple(first)
    if names is not None:
        numbered.pop(0)
        if not numbered:
            raise LogError(f"{path}: a header and no rows under it")
    width = len(first)
    lines = np.array([k for k, _ in numbered])
    if separator != "," and "," in numbered[0][1] and "." not in numbered[0][1]:
        numbered = [(k, line.replace(",", ".")) for k, line in numbered]  # decimal commas
    rows = [line.strip().rstrip(separator or "").replace('"', "") for _, line in numbered]
    try:
        values = np.loadtxt(rows, delimiter=separator, ndmin=2, comments=None)
    except ValueError:
        raise _diagnosis(path, numbered, separator, width) from None
    if values.shape[1] != width:
        raise _diagnosis(path, numbered, separator, width)
    return Table(str(path), values, names, lines)


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    return [cell.strip().strip('"') for cell in line.strip().rstrip(separator).split(separator)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python would read


def _diagnosis(
    path: Path, numbered: Sequence[tuple[int, str]], separator: str | None, width: int
) -> LogError:
    """The first thing that is wrong with a text file that is not a table."""
    for k, line in numbered:
        cells = _cells(line, separator)
        if len(cells) != width:
            end = " (the file ends in the middle of a row)" if k == numbered[-1][0] else ""
            return LogError(f"{path}, line {k}: expected {width} columns, got {len(cells)}{end}")
        for column, cell in enumerate(cells, 1):
            if not _is_number(cell):
                what = repr(cell) if cell else "an empty cell"
                return LogError(f"{path}, line {k}: column {column}: expected a number, got {what}")
    return LogError(f"{path}: not a table of numbers")


# -- binary -----------------------------------------------------------------------------------------------------------


def _read_npz(path: Path) -> Table:
    arrays, unusable = _arrays(path)
    groups: dict[str, tuple[int, ...]] = {}
    parts: list[np.ndarray] = []
    names: list[str] = []
    rows = max((len(a) for a in arrays.values() if a.ndim in (1, 2)), default=0)
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu":
            unusable[name] = f"expected real numbers, got {array.dtype}"
        elif array.ndim not in (1, 2) or len(array) != rows or not array.size:
            unusable[name] = f"expected {rows} rows in one or two dimensions, got the shape {array.shape}"
        else:
            flat = array.reshape(rows, -1).astype(float)
            groups[name] = tuple(range(len(names), len(names) + flat.shape[1]))
            names += [name] if array.ndim == 1 else [f"{name}{k}" for k in range(1, flat.shape[1] + 1)]
            parts.append(flat)
    if not parts:
        raise LogError(f"{path}: no arrays of numbers in it")
    return Table(str(path), np.concatenate(parts, axis=1), tuple(names), None, groups, unusable)


def _arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of an NPZ file, and why others cannot be read. Nothing is unpickled: that could run code."""
    arrays: dict[str, np.ndarray] = {}
    unusable: dict[str, str] = {}
    broken = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)
    if not zipfile.is_zipfile(path):
        raise LogError(f"{path}: not an NPZ file")
    try:
        archive = np.load(path, allow_pickle=False)
    except broken as error:
        raise LogError(f"{path}: not an NPZ file ({error})") from None
    with archive:
        for name in archive.files:
            try:
                found = archive[name]
            except broken as error:
                pickled = "allow_pickle" in str(error)
                unusable[name] = (
                    "pickled objects, which are not read" if pickled else f"cannot be read ({error})"
                )
            else:
                if isinstance(found, np.ndarray):  # else it is some other file in the archive
                    arrays[name] = found
    return arrays, unusable


def _read_parquet(path: Path) -> Table:
    parquet = needed("pyarrow.parquet", "identify")
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow has errors of its own
        raise LogError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    names: list[str] = []
    columns: list[np.ndarray] = []
    groups: dict[str, tuple[int, ...]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            numbers = _numbers(column)
        except (TypeError, ValueError):
            continue  # text and the like is no signal
        if numbers.shape[1] > 1:
            groups[name] = tuple(range(len(names), len(names) + numbers.shape[1]))
        names += [name] if numbers.shape[1] == 1 else [f"{name}{k}" for k in range(1, numbers.shape[1] + 1)]
        columns.append(numbers)
    if not columns or not len(columns[0]):
        raise LogError(f"{path}: no rows of numbers in it")
    return Table(str(path), np.concatenate(columns, axis=1), tuple(names), None, groups or None)


def _numbers(column) -> np.ndarray:
    """A column of numbers, or of lists of as many numbers each, as (rows, k); a missing number is NaN."""
    flat = column.to_numpy()
    if flat.dtype.kind in "fiu":
        return flat.astype(float).reshape(-1, 1)
    return np.stack([np.atleast_1d(np.asarray(value, dtype=float)) for value in flat])
