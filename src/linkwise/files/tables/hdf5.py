"""Arrays in HDF5 files, which MATLAB files of version 7.3 are, too.

Links to other files, data outside the file and filters of plugins are not followed; sizes are known from the shapes.
The library compares checksums of parts (fletcher32), but takes zeros for parts that its index lacks, and knows nothing
of a checksum whose description is damaged. So what a file says about its parts is compared with their sizes.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import first_line, needed
from linkwise.files.tables import bounds
from linkwise.files.tables.arrays import from_arrays
from linkwise.files.tables.table import NumberTable, TableError
from linkwise.files.tables.units import is_unit, spelled

_FILTERS = frozenset([1, 2, 3, 4, 5, 6, 32000])  # deflate, shuffle, fletcher32, szip, nbit, scaleoffset, lzf
_SHUFFLE, _FLETCHER32 = 2, 3
_MOST_PARTS = 1000  # of an array that are compared: finding a part takes longer the more there are
_MOST_OBJECTS = 10_000
_LONGEST_NAME = 1000  # bytes


def read_hdf5(path: Path) -> NumberTable:
    """The arrays of a file by their paths; fields of records are ``array.field``."""
    package = needed("h5py", "logs")
    arrays: dict[str, np.ndarray] = {}
    unusable: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    stated: dict[str, str] = {}
    try:
        with package.File(str(path), "r") as file:
            found = _datasets(package, file)
            readable = {}
            for name, data in found.items():
                reason = _unreadable(data)
                if name.endswith("_items") and _has_names(data):
                    names[name] = [item.decode("utf-8", "replace") for item in data[()].reshape(-1).tolist()]
                elif reason:
                    unusable[name] = reason
                else:
                    readable[name] = data
            bounds.check(
                f"{path}: unpacked",
                sum(_numbers(data) for data in readable.values()),
                packed=path.stat().st_size,
            )
            for name, data in readable.items():
                try:
                    if reason := _damaged(package, data):
                        unusable[name] = reason
                        continue
                    value = data[()]
                    stated[name] = _unit(data)
                except Exception as error:
                    unusable[name] = f"cannot be read ({first_line(error)})"
                    continue
                if value.dtype.names:
                    arrays |= {f"{name}.{key}": value[key] for key in value.dtype.names}
                else:
                    arrays[name] = value
    except TableError:
        raise
    except Exception as error:  # h5py raises OSError, RuntimeError, KeyError and others
        raise TableError(f"{path}: not an HDF5 file, or damaged ({first_line(error)})") from None
    return from_arrays(path, _frame_columns(arrays, names), unusable, stated)


def _unit(data: Any) -> str:
    """The unit that an attribute of an array states; "" where it states none that is known."""
    for key in ("unit", "units"):
        stated = data.attrs.get(key)
        stated = stated.decode("utf-8", "replace") if isinstance(stated, bytes) else stated
        if isinstance(stated, str) and len(stated) < _LONGEST_NAME and is_unit(stated):
            return spelled(stated)
    return ""


def _frame_columns(arrays: dict[str, np.ndarray], names: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """Columns of data frames that pandas wrote as blocks of values beside blocks of names."""
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        columns = names.get(name.removesuffix("_values") + "_items", [])
        if name.endswith("_values") and array.ndim == 2 and len(columns) == array.shape[1]:
            folder = name.rpartition("/")[0]
            found |= {
                f"{folder}/{column}" if folder else column: array[:, k] for k, column in enumerate(columns)
            }
        else:
            found[name] = array
    return found


def _datasets(package: Any, file: Any) -> dict[str, Any]:
    """Arrays in the file itself, by their paths. Links are not followed: they may lead to other files."""
    found: dict[str, Any] = {}
    seen = 0
    groups: list[tuple[str, Any]] = [("", file)]
    while groups and seen < _MOST_OBJECTS:
        prefix, group = groups.pop(0)
        for key in group:
            seen += 1
            if seen >= _MOST_OBJECTS:
                break
            if not isinstance(group.get(key, getlink=True), package.HardLink):
                continue
            item = group[key]
            if isinstance(item, package.Dataset):
                found[f"{prefix}{key}"] = item
            elif isinstance(item, package.Group) and not key.startswith("#") and prefix.count("/") < 16:
                groups.append((f"{prefix}{key}/", item))
    return found


def _has_names(data: Any) -> bool:
    """Whether an array of texts, in the file itself, is small enough for names of columns."""
    if data.dtype.kind != "S" or data.shape is None or data.external or data.is_virtual:
        return False
    return _cells(data) < _MOST_OBJECTS and data.dtype.itemsize <= _LONGEST_NAME


def _unreadable(data: Any) -> str:
    """Why an array cannot be a column; "" where it can."""
    if data.external or data.is_virtual:
        return "its numbers are in other files, which are not read"
    if any(kind.base.kind not in "fiub" or kind.hasobject for kind in _kinds(data.dtype)):
        return f"expected real numbers, got {data.dtype if not data.dtype.names else 'records of others'}"
    if data.shape is None:
        return "empty"
    plan = data.id.get_create_plist()
    used = {plan.get_filter(k)[0] for k in range(plan.get_nfilters())}
    if not used <= _FILTERS:
        return f"packed by a filter that is not read (number {min(used - _FILTERS)})"
    return ""


def _damaged(package: Any, data: Any) -> str:
    """Why the parts of an array are not those that were written; "" where they seem to be."""
    if not data.dtype.names and not data.id.get_type().equal(package.h5t.py_create(data.dtype)):
        return f"its numbers are not stored as {data.dtype} usually is: damaged, or made for another machine"
    if data.chunks is None or not all(data.shape):
        return ""
    wanted = math.prod(-(-size // part) for size, part in zip(data.shape, data.chunks, strict=True))
    if data.id.get_num_chunks() != wanted:
        return f"it has {data.id.get_num_chunks()} of {wanted} parts: damaged, or never written to the end"
    plan = data.id.get_create_plist()
    filters = {plan.get_filter(k)[0] for k in range(plan.get_nfilters())}
    plain = filters <= {_SHUFFLE, _FLETCHER32}
    size = math.prod(data.chunks) * data.dtype.itemsize + (4 if _FLETCHER32 in filters else 0)
    starts = itertools.product(
        *(range(0, most, step) for most, step in zip(data.shape, data.chunks, strict=True))
    )
    for start in itertools.islice(starts, _MOST_PARTS):
        part = data.id.get_chunk_info_by_coord(start)
        if part.byte_offset is None:
            return f"its part from {start} on is not found: damaged"
        if (plain and part.size != size) or (_FLETCHER32 in filters and part.filter_mask):
            return "the size of a part is not that of its numbers: damaged"
    return ""


def _numbers(data: Any) -> int:
    return _cells(data) * sum(math.prod(kind.shape) for kind in _kinds(data.dtype))


def _kinds(dtype: np.dtype) -> list[np.dtype]:
    """The types of the fields of records, or that of all numbers."""
    return [dtype[key] for key in dtype.names] if dtype.names else [dtype]


def _cells(data: Any) -> int:
    """Cells of an array, or of one of its chunks, which are unpacked as a whole and may be larger than the array."""
    return max(math.prod(data.shape), math.prod(data.chunks or (0,)))
