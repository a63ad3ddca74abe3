"""A random order of 0 … n − 1 of which any entry can be computed alone, as a Latin hypercube needs it.

The numbers are written as (row, column) of a table just large enough, and rows and columns are shifted in turns,
each by a hash of the other and of a key: a Feistel network with two bases. A result beyond n is put through again
until it is not ("cycle walking"), which keeps it a permutation; the table exceeds n by less than one row, so that
is rare.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.study.sampling.philox import Key, philox

ROUNDS = 8


def permuted(index: np.ndarray, n: int, key: Key) -> np.ndarray:
    """Where 0 ≤ index < n go, uint64 of shape (count,): each of 0 … n − 1 exactly once over all indices."""
    columns = math.isqrt(n - 1) + 1
    rows = -(-n // columns)
    keys = _round_keys(key)
    place = _shuffle(index.astype(np.uint64), rows, columns, keys)
    outside = np.flatnonzero(place >= n)
    while outside.size:
        place[outside] = _shuffle(place[outside], rows, columns, keys)
        outside = outside[place[outside] >= n]
    return place


def _shuffle(x: np.ndarray, rows: int, columns: int, keys: list[int]) -> np.ndarray:
    row, column = x // columns, x % columns
    for turn in range(0, ROUNDS, 2):
        row = _shift(row, column, rows, keys[turn])
        column = _shift(column, row, columns, keys[turn + 1])
    return row * columns + column


def _shift(x: np.ndarray, other: np.ndarray, size: int, key: int) -> np.ndarray:
    """(x + a number under ``size`` that depends on ``other`` and the key) mod size."""
    mixed = (other ^ key) * 0x9E3779B97F4A7C15  # modulo 2^64
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93
    x = x + (((mixed >> 32) * size) >> 32)
    return np.where(x < size, x, x - size)


def _round_keys(key: Key) -> list[int]:
    """A word of 64 bits for every turn."""
    keys: list[int] = []
    for block in range(ROUNDS // 2):
        a, b, c, d = philox([0, block, 0, 0], key)
        keys += [a << 32 | b, c << 32 | d]
    return keys
