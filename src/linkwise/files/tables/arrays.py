"""A table from arrays under names, as NPZ, MATLAB and HDF5 files have them: one array per quantity."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from linkwise.files.tables import units
from linkwise.files.tables.naming import TIMES, is_quantity, plain
from linkwise.files.tables.table import NumberTable, TableError

FEW = 20  # numbers that are no times where another array is longer: a recording has more samples


def from_arrays(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    unusable: Mapping[str, str],
    stated: Mapping[str, str] | None = None,
) -> NumberTable:
    """The arrays of one or two dimensions that have as many rows, or columns, as there are samples.

    Args:
        path: the file.
        arrays: arrays of real numbers by their names; ``/`` and ``.`` separate the names of groups.
        unusable: why other arrays cannot be read.
        stated: units of arrays that the file states beside their names.
    """
    found = _without_common_group({name: _squeezed(array) for name, array in arrays.items()})
    own = dict(zip(found, ((stated or {}).get(name, "") for name in arrays), strict=False))
    said = dict(unusable)
    rows = _samples(found)
    groups: dict[str, tuple[int, ...]] = {}
    parts: list[np.ndarray] = []
    names: list[str] = []
    said_units: list[str] = []
    for name, array in found.items():
        upright = array.T if array.ndim == 2 and array.shape[0] != rows == array.shape[1] else array
        if upright.ndim == 3 and upright.shape[::2] == (
            rows,
            3,
        ):  # vectors of several things, such as forces of feet
            upright = upright.reshape(rows, -1)
        if upright.ndim not in (1, 2) or len(upright) != rows or not upright.size:
            said[name] = f"expected {rows} rows in one or two dimensions, got the shape {array.shape}"
            continue
        flat = upright.reshape(rows, -1).astype(float, copy=False)
        groups[name] = tuple(range(len(names), len(names) + flat.shape[1]))
        names += [name] if upright.ndim == 1 else _numbered(name, flat.shape[1])
        said_units += [own[name]] * flat.shape[1]
        parts.append(flat)
    if not parts:
        raise TableError(f"{path}: no arrays of numbers in it")
    return NumberTable(
        str(path),
        np.concatenate(parts, axis=1),
        tuple(names),
        units=tuple(said_units) if any(said_units) else None,
        groups=groups,
        unusable=said,
    )


def _numbered(name: str, count: int) -> list[str]:
    """Names of the columns of an array: ``q_deg`` has q1 [deg], q2 [deg] …"""
    bare, unit = units.split(name)
    return [f"{bare}{k} [{unit}]" if unit else f"{name}{k}" for k in range(1, count + 1)]


def _squeezed(array: np.ndarray) -> np.ndarray:
    """Without dimensions of length one, but the second of a column: (N, 1) and (1, N) are (N,)."""
    if array.ndim <= 1:
        return array
    shape = tuple(size for size in array.shape if size != 1)
    return array.reshape(shape or (1,))


def _without_common_group(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Names without the group that all arrays of several samples are in, such as a struct of MATLAB."""
    found = arrays
    while found:
        firsts = {name.replace("/", ".").partition(".")[0] for name, array in found.items() if array.size > 1}
        inside = all("." in name.replace("/", ".") for name, array in found.items() if array.size > 1)
        if len(firsts) != 1 or not inside:
            return found
        first = firsts.pop()
        found = {
            (name[len(first) + 1 :] if name.startswith((f"{first}.", f"{first}/")) else name): array
            for name, array in found.items()
        }
    return found


def _samples(arrays: Mapping[str, np.ndarray]) -> int:
    """How many samples there are: as many as times, else as the longest array has in a direction.

    Times increase, and there are as many of them as of something else; ``k_T`` may be constants of motors. Where a
    sensor beside the joints has times of its own, those count that most positions, velocities and torques agree with.
    """
    times = [
        len(array)
        for name, array in arrays.items()
        if array.ndim == 1
        and array.size > 1
        and plain(name).rpartition("_")[2] in TIMES
        and _increases(array)
    ]
    longest = max((max(array.shape) for array in arrays.values() if array.ndim in (1, 2)), default=0)
    likely = [count for count in times if count >= FEW or longest < FEW]
    signals = [array.shape for name, array in arrays.items() if is_quantity(name)]
    return max(likely, key=lambda count: (sum(count in shape for shape in signals), count), default=longest)


def _increases(array: np.ndarray) -> bool:
    known = array[np.isfinite(array)]
    return bool(len(known) and known[-1] > known[0])
