"""Quantiles of any number of values in fixed memory: how many fall into each of fixed, fine classes.

A class is the upper 19 bits of a double: sign, exponent, seven bits of the mantissa; its middle is within 0.4 % of
every value in it. Counts add up the same in any order. Where the values themselves are kept, reading the values of
one class again gives the exact quantile.
"""

from __future__ import annotations

import numpy as np

BITS = 19
CLASSES = 1 << BITS
ERROR = 2.0**-8
"""The largest relative error of a quantile."""


def harvested(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(keys, counts) of the classes that are not empty; the tables (columns, CLASSES) are cleared.

    A key is the column and the class, classes in the order of their values.
    """
    keys, counts = [], []
    for column, table in enumerate(tables):
        places = np.flatnonzero(table)
        order = _rank(places)
        sorting = np.argsort(order, kind="stable")
        keys.append((column << BITS) + order[sorting])
        counts.append(table[places][sorting].astype(np.int64))
        table[places] = 0
    return np.concatenate(keys), np.concatenate(counts)


def merged(
    a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Both together."""
    keys, place = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, place, np.concatenate([a[1], b[1]]))
    return keys, counts


def located(keys: np.ndarray, counts: np.ndarray, column: int, level: float) -> tuple[int, int, int] | None:
    """(class, place in it, values in it) of a quantile: the smallest value that this part of all do not exceed.

    None for a column without values.
    """
    first, last = _part(keys, column)
    own = counts[first:last]
    total = int(own.sum())
    if total == 0:
        return None
    place = max(0, int(np.ceil(level * total)) - 1)
    sums = np.cumsum(own)
    k = int(np.searchsorted(sums, place, side="right"))
    return int(keys[first + k]) & (CLASSES - 1), place - int(sums[k] - own[k]), int(own[k])


def total(keys: np.ndarray, counts: np.ndarray, column: int) -> int:
    """Values of a column that were counted."""
    first, last = _part(keys, column)
    return int(counts[first:last].sum())


def _part(keys: np.ndarray, column: int) -> tuple[int, int]:
    """Where the classes of a column are among all keys."""
    first, last = np.searchsorted(keys, [column << BITS, (column + 1) << BITS])
    return int(first), int(last)


def bounds(rank: int) -> tuple[float, float]:
    """The class of this rank: from the first number to the second, which belongs to the next class."""
    edges = np.array([_edge(rank), _edge(rank + 1)], dtype=np.uint64).view(np.float64)
    return float(edges[0]), float(edges[1])


def middle(rank: int) -> float:
    low, high = bounds(rank)
    if not np.isfinite(low + high):
        return low if np.isfinite(low) or not np.isfinite(high) else high
    return low + 0.5 * (high - low)


def ordered(values: np.ndarray) -> np.ndarray:
    """Whole numbers (uint64) in the order of the numbers; their upper bits are the ranks of the classes."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))


def number(key: int) -> float:
    """The number that has this place in the order."""
    bits = key ^ (1 << 63) if key >> 63 else ~key & ((1 << 64) - 1)
    return float(np.array(bits, np.uint64).view(np.float64))


def _rank(classes: np.ndarray) -> np.ndarray:
    """The place of a class in the order of values: negative numbers have their upper bit set and count downwards."""
    negative = classes >= CLASSES // 2
    return np.where(negative, CLASSES - 1 - classes, classes + CLASSES // 2)


def _edge(rank: int) -> int:
    """The bits of the smallest number of a class; of the next number after the largest for negative ones."""
    if rank >= CLASSES // 2:
        return (rank - CLASSES // 2) << (64 - BITS)
    return ((CLASSES - 1 - rank) << (64 - BITS)) | ((1 << (64 - BITS)) - 1)
