"""Random numbers of environments: a function of seed, environment, episode, step and a channel, and of nothing else.

Words of twelve bits by ``simulate.noise.mixed``, exact in float32 and float64, so a seed gives the same numbers in both
precisions, on every machine and in any order. Three levels, each the key of the next:

    environment = mixed((number of the environment, seed), seed)      once, when environments are reset by a seed
    episode     = mixed((number of the episode, environment), environment)      when an episode begins
    draw        = mixed((step, channel, episode), episode)
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.scalar import Scalar, rint, where
from linkwise.simulate.noise import mixed

WORD = 2.0**12
STREAM = 4
"""Words that name an environment, and an episode of it."""
MOST = 2**24
"""Environments, and episodes of one: their numbers are two words."""


def environment_streams(seed: int, numbers: Any) -> np.ndarray:
    """The words of environments under a seed, shape (count, 4).

    Args:
        seed: a whole number.
        numbers: of the environments, from 0 on, shape (count,).
    """
    digest = hashlib.sha256(f"linkwise environments {seed}".encode()).digest()
    halves = [int.from_bytes(digest[2 * k : 2 * k + 2], "little") % 4096 - 2048.0 for k in range(4)]
    low, high = _words(np.asarray(numbers, dtype=float))
    words: Any = mixed([low, halves[2] + 0.0 * low, high, halves[3] + 0.0 * low], halves[:2])
    return np.stack([np.asarray(word, dtype=float) for word in words], axis=-1)


def episode_stream(environment: Sequence[Scalar], episode: Scalar) -> list[Scalar]:
    """The words of an episode of an environment."""
    low, high = _words(episode)
    return mixed([low, environment[2], high, environment[3]], environment[:2])


class Draw:
    """Random numbers at one step of one episode; every call takes new ones, in the order of the calls.

    Args:
        episode: the words of the episode.
        step: number of the policy step, 0 for what is drawn when the episode begins.
        first: the channel of the first number; functions that draw at the same step need channels of their own.
    """

    def __init__(self, episode: Sequence[Scalar], step: Scalar, first: int):
        self._episode, self._words_of_step = episode, _words(step)
        self._channel, self._left = first, list[Scalar]()

    def word(self) -> Scalar:
        """A whole number from −2048 to 2048; both ends are half as likely as the others."""
        if not self._left:
            low, high = self._words_of_step
            counter = [low, self._episode[2] + float(self._channel), high, self._episode[3]]
            self._left = mixed(counter, self._episode[:2])
            self._channel += 1
        return self._left.pop()

    def noise(self, size: Scalar = 1.0) -> Scalar:
        """A number between ± size in 4096 steps: for sensors."""
        return (size * (1.0 / 2048.0)) * self.word()

    def uniform(self, low: Scalar, high: Scalar) -> Scalar:
        """A number between low and high in 2²⁴ steps."""
        fine = self.word() + (1.0 / WORD) * self.word()
        return low + (high - low) * (0.5 + (1.0 / (WORD + 1.0)) * fine)

    def normal(self, deviation: Scalar = 1.0) -> Scalar:
        """A number of mean 0 with this standard deviation: the sum of four uniform ones, never beyond 3.47 of it."""
        total = (self.word() + self.word()) + (self.word() + self.word())
        return deviation * (float(np.sqrt(3.0)) / WORD * total)

    def chance(self, probability: Scalar) -> Scalar:
        """1 with this probability, else 0."""
        return where(self.uniform(0.0, 1.0) < probability, 1.0, 0.0)


def _words(number: Any) -> tuple[Any, Any]:
    high = rint((1.0 / WORD) * number)
    return number - high * WORD, high
