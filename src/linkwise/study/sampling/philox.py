"""Random numbers as a function of a key and a place: any of them alone, in any order, on any machine.

Words of Philox (``compiler.philox``). A key belongs to a seed and a variable; the counter holds the index of a sample
and the number of a block of four words:

    counter = (low word of the index, block, high word of the index, 0)

This is the definition, on arrays; ``draws`` has the same arithmetic as machine code.
"""

from __future__ import annotations

import hashlib

import numpy as np

from linkwise.compiler.ir.philox import MASK, Key, philox


def key_of(seed: int, name: str) -> Key:
    """The key of a variable under a seed: 64 bits of a hash."""
    digest = hashlib.sha256(f"linkwise study {seed} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")


def words(index: np.ndarray, key: Key, block: int | np.ndarray) -> list[np.ndarray]:
    """The four words of a block for the samples of these indices, uint64 of shape (count,); both broadcast."""
    none = index & 0
    return philox([index & MASK, none + block, index >> 32, none], key)


def ticks(index: np.ndarray, key: Key, column: int, bits: int) -> np.ndarray:
    """Random whole numbers under 2^bits, and a half: float64 of shape (count,), to be scaled by 2^-bits.

    32 bits take one word (four columns to a block); 52 bits take two.
    """
    if bits == 32:
        whole = words(index, key, column // 4)[column % 4]
    else:
        pair = words(index, key, column // 2)[2 * (column % 2) :]
        whole = (pair[0] << 20) | (pair[1] >> 12)
    return whole.astype(np.float64) + 0.5
