"""Tables in NPZ and Parquet files. Their directories say how large they are before anything is unpacked."""

from __future__ import annotations

import itertools
import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import first_line, needed
from linkwise.files.tables import bounds
from linkwise.files.tables.arrays import from_arrays
from linkwise.files.tables.parquet_footer import Chunk, read_footer
from linkwise.files.tables.table import NumberTable, TableError

_KINDS = "fiubM"  # of real numbers and dates
_BROKEN = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)

# -- NPZ --------------------------------------------------------------------------------------------------------------


def read_npz(path: Path) -> NumberTable:
    """The arrays of an NPZ file; those that are no signals are ``unusable``."""
    return from_arrays(path, *_arrays(path))


def _arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of real numbers, and why others cannot be read. Nothing is unpickled: that could run code."""
    found: dict[str, np.ndarray] = {}
    unusable: dict[str, str] = {}
    with path.open("rb") as file:  # before zipfile: a missing file is not a broken one
        try:
            archive = zipfile.ZipFile(file)
        except _BROKEN as error:
            raise TableError(f"{path}: not an NPZ file ({error})") from None
        with archive:
            members = []
            for member in archive.infolist():
                if member.filename.endswith(".npy") and member.orig_filename == member.filename:
                    members.append(member)
                else:
                    unusable[member.orig_filename] = "its name is not that of an array"
            readable: list[zipfile.ZipInfo] = []
            for member in members:
                name = member.filename.removesuffix(".npy")
                try:
                    reason = _unreadable(archive, member)
                except _BROKEN as error:
                    reason = f"cannot be read ({error})"
                if reason:
                    unusable[name] = reason
                else:
                    readable.append(member)
            # as they are unpacked and as double-precision numbers
            total = sum(_count(archive, member) for member in readable)
            bounds.check(f"{path}: unpacked", total, packed=path.stat().st_size)
            for member in readable:
                name = member.filename.removesuffix(".npy")
                try:
                    with archive.open(member) as data:
                        array = np.lib.format.read_array(data, allow_pickle=False)
                        data.read(1)  # at the end the checksum is compared
                        found |= _by_field(name, array)
                except _BROKEN as error:
                    unusable[name] = f"cannot be read ({error})"
    return found, unusable


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape and type of an array, and the bytes of its header."""
    with archive.open(member) as data:
        version = np.lib.format.read_magic(data)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(data)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(data)
        else:
            raise ValueError(f"version {version[0]}.{version[1]} of the format")
        return shape, dtype, data.tell()


def _unreadable(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> str:
    """Why an array cannot be a column; "" where it can."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "packed by a method that NumPy does not write"
    shape, dtype, start = _header(archive, member)
    if dtype.hasobject:
        return "pickled objects, which are not read"
    if any(kind.base.kind not in _KINDS for kind in _fields(dtype).values()):
        return f"expected real numbers, got {dtype if not dtype.names else 'records of others'}"
    if math.prod(shape) * dtype.itemsize != member.file_size - start:
        return "cannot be read (its size is not that of its shape)"
    return ""


def _count(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    shape, dtype, _ = _header(archive, member)
    return math.prod(shape) * sum(math.prod(kind.shape) for kind in _fields(dtype).values())


def _fields(dtype: np.dtype) -> dict[str, np.dtype]:
    """The types of what is read under names of their own: fields of records, or all of it under ""."""
    return {key: dtype[key] for key in dtype.names} if dtype.names else {"": dtype}


def _by_field(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """The array under its name, of records each field; stamps as nanoseconds since 1970."""
    if not array.dtype.names:
        return {name: nanoseconds(array)}
    return {f"{name}.{key}": nanoseconds(array[key]) for key in array.dtype.names}


def nanoseconds(array: np.ndarray) -> np.ndarray:
    """Dates as nanoseconds since 1970, NaN where there is none; other arrays as they are.

    Args:
        array: of any numbers, or of dates.
    """
    if array.dtype.kind != "M":
        return array
    stamps = array.astype("datetime64[ns]")
    return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64).astype(float))


# -- Parquet ----------------------------------------------------------------------------------------------------------


def read_parquet(path: Path) -> NumberTable:
    """The columns of numbers, and of lists of as many numbers each; others are left out unread."""
    parquet = needed("pyarrow.parquet", "cluster")
    names: list[str] = []
    columns: list[np.ndarray] = []
    groups: dict[str, tuple[int, ...]] = {}
    with path.open("rb") as stream:
        try:
            chunks = read_footer(stream)
            file = parquet.ParquetFile(stream, page_checksum_verification=True)
            wanted = [field.name for field in file.schema_arrow if _is_read(field.type)]
            read = [chunk for chunk in chunks if chunk.path[0] in set(wanted)]
        except Exception as error:  # pyarrow has errors of its own
            raise TableError(f"{path}: not a Parquet file ({first_line(error)})") from None
        packed = path.stat().st_size
        bounds.check(f"{path}: unpacked", sum(max(each.rows, each.values) for each in read), packed=packed)
        bounds.check(f"{path}: unpacked", sum(each.size for each in read), 1, packed)
        try:
            table = file.read(columns=wanted)
        except Exception as error:
            raise TableError(f"{path}: cannot be read ({first_line(error)})") from None
    _check_ranges(path, chunks, table)
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            numbers = _numbers(column)
        except (TypeError, ValueError):
            continue  # lists of different lengths
        if numbers.shape[1] > 1:
            groups[name] = tuple(range(len(names), len(names) + numbers.shape[1]))
        names += [name] if numbers.shape[1] == 1 else [f"{name}{k}" for k in range(1, numbers.shape[1] + 1)]
        columns.append(numbers)
    if not columns or not len(columns[0]):
        raise TableError(f"{path}: no rows of numbers in it")
    return NumberTable(str(path), np.concatenate(columns, axis=1), tuple(names), groups=groups or None)


def _is_read(kind: Any) -> bool:
    """Whether a column has dates, numbers or lists of these."""
    types = needed("pyarrow.types", "cluster")
    if types.is_timestamp(kind):
        return True
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    return (
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    )


def _check_ranges(path: Path, chunks: Sequence[Chunk], table: Any) -> None:
    """That columns have the least and the largest value that the file says: most files have no checksums."""
    compute, types = needed("pyarrow.compute", "cluster"), needed("pyarrow.types", "cluster")
    for name in table.column_names:
        kind, column = table.schema.field(name).type, table[name]
        if not (types.is_floating(kind) or types.is_integer(kind)) or types.is_float16(kind):
            continue
        try:
            ranges = [
                chunk.range(types.is_unsigned_integer(kind)) for chunk in chunks if chunk.path == (name,)
            ]
        except ValueError as error:
            raise TableError(f"{path}: damaged: {error}") from None
        stated = [each for each in ranges if each is not None]
        if len(stated) < len(ranges) or not all(map(math.isfinite, itertools.chain(*stated))):
            continue
        if types.is_floating(kind):
            column = column.filter(compute.is_finite(column))
        found = compute.min_max(column).as_py()
        if not stated or found["min"] is None:
            continue
        if (found["min"], found["max"]) != (min(low for low, _ in stated), max(high for _, high in stated)):
            raise TableError(
                f"{path}: damaged: column {name!r} has values outside of the range that is stored with it"
            )


def _numbers(column: Any) -> np.ndarray:
    """A column of numbers, or of lists of as many numbers each, as (rows, k); a missing number is NaN."""
    flat = nanoseconds(column.to_numpy())
    if flat.dtype.kind in "fiu":
        return flat.astype(float).reshape(-1, 1)
    return np.stack([np.atleast_1d(np.asarray(value, dtype=float)) for value in flat])
