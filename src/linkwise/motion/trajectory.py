"""What every trajectory is: joint positions, velocities and accelerations at any time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkwise.motion import arguments
from linkwise.tables import bounds


class Moment(NamedTuple):
    """q [rad or m], q̇ and q̈ at given times, each of shape (..., n)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


@dataclass(frozen=True)
class Samples:
    """A motion at points in time: t [s], shape (points,); q, qd, qdd, shape (points, n)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


class Trajectory(ABC):
    """A motion of n joints from ``begin`` to ``end`` [s].

    Before and after that the robot stands still where the motion begins and ends; a periodic motion has no
    end.
    """

    dof: int
    begin: float
    end: float

    @property
    def duration(self) -> float:
        return self.end - self.begin

    def at(self, t) -> Moment:
        """The motion at the times t [s], shape (...): q, qd, qdd, shape (..., n)."""
        t = arguments.numbers("t", t)
        inside = np.clip(t, self.begin, self.end)
        q, qd, qdd = self._inside(inside)
        outside = (t != inside)[..., np.newaxis]
        if outside.any():
            qd, qdd = np.where(outside, 0.0, qd), np.where(outside, 0.0, qdd)
        return Moment(q, qd, qdd)

    @abstractmethod
    def _inside(self, t: np.ndarray) -> Moment:
        """``at`` for times between ``begin`` and ``end``."""

    def corners(self) -> np.ndarray:
        """Times at which a derivative may jump, with both ends, ascending."""
        return np.array([self.begin, self.end])

    def sampled(self, rate: float | None = None, *, points: int | None = None) -> Samples:
        """Samples from the begin to the end: ``rate`` per second (the last one may be earlier), or so many
        points.

        Args:
            rate: samples per second [Hz]; the last one may be earlier than the end.
            points: number of samples, in place of the rate.
        """
        if (rate is None) == (points is None):
            raise TypeError("sampled: give either a rate [1/s] or a number of points")
        if not math.isfinite(self.duration):
            raise ValueError(
                "a motion without end cannot be sampled from begin to end; evaluate it with at(t)"
            )
        if rate is None:
            rows = min(arguments.whole("points", points, 1), 2**62)
        else:
            rate = arguments.number("rate", rate, positive=True, unit="1/s")
            rows = self.duration * rate + 1
        bounds.check(f"{rows:.6g} samples of {self.dof} joints", rows * (1 + 3 * self.dof))
        if rate is None:
            t = np.linspace(self.begin, self.end, int(rows))
        else:
            t = self.begin + np.arange(math.floor(self.duration * rate * (1 + 1e-12)) + 1) / rate
        return Samples(t, *self.at(t))


def check_trajectory(trajectory: object) -> None:
    """Refuse what is no motion."""
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"trajectory: expected a motion, got {type(trajectory).__name__}")
