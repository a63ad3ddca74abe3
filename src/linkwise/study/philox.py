"""Random numbers as a function of a key and a place: any of them alone, in any order, on any machine.

Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). A key belongs to a seed and a
variable; the counter holds the index of a sample and the number of a block of four words:

    counter = (low word of the index, block, high word of the index, 0)

This is the definition, on arrays; ``draws`` has the same arithmetic as machine code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF

Key = tuple[int, int]


def key_of(seed: int, name: str) -> Key:
    """The key of a variable under a seed: 64 bits of a hash."""
    digest = hashlib.sha256(f"linkwise study {seed} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")


def philox(counter: Sequence[Any], key: Key, rounds: int = ROUNDS) -> list[Any]:
    """Four words of 32 bits, as arrays of uint64, for a counter of four such words."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(rounds):
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (second >> 32) ^ b ^ k0, second & MASK, (first >> 32) ^ d ^ k1, first & MASK
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return [a, b, c, d]


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
