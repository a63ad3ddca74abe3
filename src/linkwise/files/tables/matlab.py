"""Arrays in MATLAB files: version 5 (and 4) by SciPy; version 7.3 is HDF5."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import first_line, needed
from linkwise.files.tables import bounds
from linkwise.files.tables.arrays import from_arrays
from linkwise.files.tables.packed import zlib_size
from linkwise.files.tables.table import NumberTable, TableError

_COMPRESSED, _MATRIX, _OPAQUE = 15, 14, 17
_DEEPEST = 4  # structs in structs
_DEEPEST_MATRIX = 50


def read_mat(path: Path) -> NumberTable:
    """The arrays of a file of version 4 or 5; fields of structs are ``struct.field``."""
    load = needed("scipy.io", "identify").loadmat
    _check_size(path)
    try:
        _check_shapes(path)
        found = load(str(path), squeeze_me=False, struct_as_record=True)
    except TableError:
        raise
    except Exception as error:  # SciPy raises whatever its parser meets
        raise TableError(f"{path}: not a MATLAB file, or damaged ({first_line(error)})") from None
    arrays: dict[str, np.ndarray] = {}
    unusable: dict[str, str] = {}
    for name, value in found.items():
        if not name.startswith("__"):
            _collect(name, value, arrays, unusable, 0)
    return from_arrays(path, arrays, unusable)


def _collect(name: str, value: Any, arrays: dict, unusable: dict, depth: int) -> None:
    if not isinstance(value, np.ndarray):
        unusable[name] = f"expected real numbers, got {type(value).__name__}"
    elif value.dtype.names and value.size == 1 and depth < _DEEPEST:
        for key in value.dtype.names:
            _collect(f"{name}.{key}", value.reshape(-1)[0][key], arrays, unusable, depth + 1)
    elif value.dtype.kind in "fiub" and not value.dtype.names:
        arrays[name] = value
    else:
        unusable[name] = f"expected real numbers, got {value.dtype if not value.dtype.names else 'structs'}"


def _check_shapes(path: Path) -> None:
    """What the shapes of the variables say, before SciPy takes memory for them: also for cells and structs."""
    shapes = needed("scipy.io", "identify").whosmat(str(path))
    total = sum(math.prod(shape) for _, shape, _ in shapes)
    bounds.check(f"{path}: unpacked", total, packed=path.stat().st_size)


def _check_size(path: Path) -> None:
    """What a file of version 5 unpacks to, before it is unpacked."""
    packed = path.stat().st_size
    allowed, total, cells = bounds.limit(packed), 0, 0
    with path.open("rb") as stream:
        head = stream.read(128)
        if not head.startswith(b"MATLAB") or len(head) < 128:
            total = path.stat().st_size
        else:
            order = ">" if head[126:128] == b"MI" else "<"
            while len(tag := stream.read(8)) == 8 and total <= allowed:
                kind, size = struct.unpack(f"{order}II", tag)
                start = stream.tell()
                try:
                    total += zlib_size(stream, size, allowed) if kind == _COMPRESSED else size
                    if total <= allowed:
                        stream.seek(start)
                        content = stream.read(min(size, packed))
                        whole = (
                            zlib.decompressobj().decompress(content) if kind == _COMPRESSED else tag + content
                        )
                        cells += _declared_cells(whole, order)
                except (zlib.error, struct.error, ValueError) as error:
                    raise TableError(f"{path}: damaged ({first_line(error)})") from None
                stream.seek(start + size)
    bounds.check(f"{path}: unpacked", total, 1, packed)
    bounds.check(f"{path}: unpacked", cells, packed=packed)


def _declared_cells(data: bytes, order: str) -> int:
    """What the shapes of an array and of everything in it say: cells of cells and fields of structs, too.

    Args:
        data: elements of a file of version 5, each with its tag.
        order: of bytes, "<" or ">".
    """
    total = 0
    parts = [(0, len(data), 0)]  # where elements begin and end, and how deep they are
    while parts:
        place, end, depth = parts.pop()
        if depth > _DEEPEST_MATRIX:
            raise ValueError(f"arrays in arrays, more than {_DEEPEST_MATRIX} deep")
        while place + 8 <= end:
            kind, size = struct.unpack_from(f"{order}II", data, place)
            if kind >> 16:  # up to four bytes, in the tag itself
                place += 8
                continue
            start, place = place + 8, place + 8 + size + -size % 8
            if kind == _MATRIX and size:
                flags, inside = _element(data, order, start)
                if flags and struct.unpack(f"{order}I", flags[:4])[0] & 0xFF != _OPAQUE:  # which has no shape
                    shape, inside = _element(data, order, inside)
                    total += _product(
                        struct.unpack(f"{order}{len(shape) // 4}i", shape[: len(shape) // 4 * 4])
                    )
                parts.append((inside, min(start + size, end), depth + 1))
    return total


def _product(shape: Iterable[int]) -> int:
    """Cells of a shape; negative numbers in it must not balance others."""
    return math.prod(map(abs, shape))


def _element(data: bytes, order: str, place: int) -> tuple[bytes, int]:
    """The content of an element, and where the next one begins."""
    kind, size = struct.unpack_from(f"{order}II", data, place)
    if kind >> 16:
        return data[place + 4 : place + 4 + (kind >> 16)], place + 8
    return data[place + 8 : place + 8 + size], place + 8 + size + -size % 8
