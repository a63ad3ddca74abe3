"""Random numbers that are a function of a seed and a place: robot, step, channel.

A counter-based generator in the manner of Philox (J. Salmon et al., "Parallel random numbers: as easy as 1,
2, 3", 2011), with additions in place of exclusive-or, so that it needs nothing but exact floating-point
arithmetic and runs with the same bits wherever the arithmetic does: no state, any order, any number of robots
side by side. Words have 24 bits in float64 and 12 in float32; a product of two of them is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.scalar import Scalar, rint

ROUNDS = 20  # twice Philox's: additions mix less than exclusive-or. The tests look for what is left.


@dataclass(frozen=True)
class _Words:
    """What the precision decides: bits of a word, a multiplier for every two words of a counter, and the steps of
    the key.
    """

    bits: int
    multipliers: tuple[int, ...]
    steps: tuple[int, int]

    @property
    def size(self) -> float:
        return 2.0**self.bits


# Odd multipliers from the upper bits of Philox's own; steps from the golden ratio and √3 − 1, as there.
WORDS = {
    "float64": _Words(24, (0xD2511F,), (0x9E3779, 0xBB67AF)),
    "float32": _Words(12, (0xD25, 0xCD9), (0x9E3, 0xBB7)),
}


def normal(stream: Sequence[Scalar], step: Scalar, channel: Scalar, dtype: str = "float64") -> Scalar:
    """A random number of mean 0 and variance 1: the sum of four uniform ones, so never beyond 3.47.

    ``stream`` are two whole numbers that name the robot and the seed (see ``streams``); ``step`` and
    ``channel`` are whole numbers, too.
    """
    words = _scrambled(stream, step, channel, WORDS[dtype])
    if len(words) == 2:  # a word of 24 bits is two of twelve
        words = [part for word in words for part in _split(word, 2.0**12)]
    total = (words[0] + words[1]) + (words[2] + words[3])
    return float(np.sqrt(3.0)) / 2.0**12 * total  # a word's variance is 2²⁴/12, that of four a third of it


def streams(seed: int, count: int, dtype: str = "float64") -> np.ndarray:
    """The names of ``count`` robots under a seed, shape (count, 2): whole numbers that fit a word."""
    size = int(WORDS[dtype].size)
    generator = np.random.Generator(np.random.Philox(seed))
    return (generator.integers(size, size=(count, 2)) - size // 2).astype(dtype)


def _scrambled(stream: Sequence[Scalar], step: Scalar, channel: Scalar, kind: _Words) -> list[Scalar]:
    """The words of one block: (step, channel), mixed with the key."""
    low, high = _split(step, kind.size)
    counter = [low, high + channel] if len(kind.multipliers) == 1 else [low, channel, high, 0.0]
    return mixed(counter, stream, kind)


def mixed(counter: Sequence[Scalar], key: Sequence[Scalar], kind: _Words = WORDS["float32"]) -> list[Scalar]:
    """The words of a counter under a key of two words; another counter gives other words.

    Args:
        counter: two words of 24 bits or four of twelve; of another size they are taken modulo that of a word.
        key: two words.
        kind: the size of words. Those of twelve bits give the same numbers in float32 and float64.
    """
    counter = list(counter)
    for round_ in range(ROUNDS):
        keys = [
            _centred(word + float(round_ * step_ % int(kind.size)), kind.size)
            for word, step_ in zip(key, kind.steps, strict=True)
        ]
        if len(kind.multipliers) == 1:
            (m,) = kind.multipliers
            lower, upper = _product(m, counter[0], kind.size)
            counter = [_centred(upper + counter[1] + keys[round_ % 2], kind.size), lower]
        else:
            lower0, upper0 = _product(kind.multipliers[0], counter[0], kind.size)
            lower1, upper1 = _product(kind.multipliers[1], counter[2], kind.size)
            counter = [
                _centred(upper1 + counter[1] + keys[0], kind.size),
                lower1,
                _centred(upper0 + counter[3] + keys[1], kind.size),
                lower0,
            ]
    return counter


def _product(multiplier: int, word: Scalar, size: float) -> tuple[Scalar, Scalar]:
    """(lower, upper) word of a product."""
    return _split(float(multiplier) * word, size)


def _split(x: Scalar, size: float) -> tuple[Scalar, Scalar]:
    """x = lower + upper·size, with the lower part between −size/2 and size/2."""
    upper = rint((1.0 / size) * x)
    return x - upper * size, upper


def _centred(x: Scalar, size: float) -> Scalar:
    return _split(x, size)[0]
