"""Philox4x32-10, random words as a function of a key and a counter: the definition, on arrays.

J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. ``columns.draws`` runs it on words of
a graph: the same arithmetic as machine code and as CUDA.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF

Key = tuple[int, int]


def weyl(key: Sequence[Any], turn: int) -> tuple[Any, Any]:
    """The key of a round."""
    return (key[0] + WEYL[0] * turn) & MASK, (key[1] + WEYL[1] * turn) & MASK


def philox(counter: Sequence[Any], key: Sequence[Any], rounds: int = ROUNDS) -> list[Any]:
    """Four words of 32 bits for a counter of four such words: arrays of uint64, or words of a graph."""
    a, b, c, d = counter
    for turn in range(rounds):
        k0, k1 = weyl(key, turn)
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (second >> 32) ^ b ^ k0, second & MASK, (first >> 32) ^ d ^ k1, first & MASK
    return [a, b, c, d]
