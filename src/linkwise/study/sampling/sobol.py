"""Sobol's sequence: points that fill a cube evenly, any of them computed alone.

Point i of a dimension is the exclusive-or of the direction numbers at the one-bits of i, shifted by a random word
(which keeps the evenness and makes the points unbiased). Dimension 0 is van der Corput's sequence, the others have
the direction numbers of Joe and Kuo, kept in ``joe_kuo.txt``.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from linkwise.study.sampling.philox import Key, philox

BITS = 52
_LOW = 12  # bits of an index that are looked up in one table


@functools.cache
def _table() -> list[list[int]]:
    """[polynomial, m_1, m_2 …] of dimension 1 on."""
    text = Path(__file__).with_name("joe_kuo.txt").read_text(encoding="utf-8")
    return [[int(word) for word in line.split()] for line in text.splitlines() if not line.startswith("#")]


def dimensions() -> int:
    """How many there are."""
    return 1 + len(_table())


@functools.cache
def directions(dimension: int) -> tuple[int, ...]:
    """The direction numbers of a dimension, as whole numbers of 52 bits."""
    if dimension == 0:
        return tuple(1 << (BITS - 1 - j) for j in range(BITS))
    polynomial, *m = _table()[dimension - 1]
    degree = len(m)
    for j in range(degree, BITS):
        following = m[j - degree] ^ (m[j - degree] << degree)
        for k in range(1, degree):
            if polynomial >> (degree - k) & 1:
                following ^= m[j - k] << k
        m.append(following)
    return tuple(value << (BITS - 1 - j) for j, value in enumerate(m))


@functools.cache
def _low_table(dimension: int) -> np.ndarray:
    """What the lowest bits of an index contribute."""
    table = np.zeros(1, np.uint64)
    for direction in directions(dimension)[:_LOW]:
        table = np.concatenate([table, table ^ direction])
    return table


def sobol(index: np.ndarray, dimension: int, key: Key) -> np.ndarray:
    """u with 0 < u < 1 of the points of these indices, float64 of shape (count,)."""
    a, b, _, _ = philox([dimension, 0, 0, 0], key)
    shift = (a << 32 | b) >> (64 - BITS)
    point = _low_table(dimension)[index & ((1 << _LOW) - 1)] ^ _upper(index >> _LOW, dimension) ^ shift
    return (point.astype(np.float64) + 0.5) * 2.0**-BITS


def _upper(high: np.ndarray, dimension: int) -> np.ndarray | int:
    """What the other bits contribute; neighbours share them."""
    if high.size and (high == high[0]).all():
        return _contribution(int(high[0]), dimension)
    distinct, where = np.unique(high, return_inverse=True)
    return np.array([_contribution(int(part), dimension) for part in distinct], np.uint64)[where]


def _contribution(bits: int, dimension: int) -> int:
    mixed = 0
    for j, direction in enumerate(directions(dimension)[_LOW:]):
        if bits >> j & 1:
            mixed ^= direction
    return mixed
