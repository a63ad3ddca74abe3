"""A motion through points without a stop: near a point the robot turns to the next one."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.motion.online.plans import OnlineMove
from linkwise.motion.trajectory import Moment, Trajectory

SAMPLES = 16  # of every phase, to find where a point is near
HALVINGS = 60


class OnlineSequence(Trajectory):
    """Moves one after the other; each but the last is left before its end.

    Args:
        moves: the moves, each from the state in which the one before it is left.
        times: when they begin, and when the last one ends [s].
    """

    def __init__(self, moves: list[OnlineMove], times: np.ndarray):
        self.moves, self.times = moves, times
        self.dof = moves[0].dof
        self.begin, self.end = float(times[0]), float(times[-1])

    def _inside(self, t: np.ndarray) -> Moment:
        number = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.moves) - 1)
        parts = [np.zeros((*t.shape, self.dof)) for _ in range(3)]
        for k in np.unique(number):
            at = number == k
            for part, values in zip(parts, self.moves[k].plan.at(t[at] - self.times[k]), strict=True):
                part[at] = values
        return Moment(*parts)

    def corners(self) -> np.ndarray:
        inner = [
            begin + move.corners()[move.corners() <= end - begin]
            for move, begin, end in zip(self.moves, self.times[:-1], self.times[1:], strict=True)
        ]
        return np.unique(np.concatenate([*inner, self.times]))


def first_within(move: OnlineMove, place: np.ndarray, radius: np.ndarray) -> float:
    """The first time at which all joints are within a distance of a place [s]."""
    corners = move.corners()
    shares = np.arange(SAMPLES) / SAMPLES
    t = np.append((corners[:-1, np.newaxis] + np.diff(corners)[:, np.newaxis] * shares).ravel(), move.end)

    def near(times: Any) -> Any:
        return (np.abs(move.plan.at(times).q - place) <= radius).all(axis=-1)

    first = int(np.argmax(near(t))) if near(t).any() else len(t) - 1
    if first == 0:
        return float(t[0])
    low, high = float(t[first - 1]), float(t[first])
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if near(middle) else (middle, high)
    return high
