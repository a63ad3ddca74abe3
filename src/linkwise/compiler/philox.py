"""Philox4x32-10, random words as a function of a key and a counter: the definition, on arrays.

J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. ``emit.draws`` has the same arithmetic as machine
code and as CUDA.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF

Key = tuple[int, int]


def philox(counter: Sequence[Any], key: Key, rounds: int = ROUNDS) -> list[Any]:
    """Four words of 32 bits, as arrays of uint64, for a counter of four such words."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(rounds):
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (second >> 32) ^ b ^ k0, second & MASK, (first >> 32) ^ d ^ k1, first & MASK
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return [a, b, c, d]
