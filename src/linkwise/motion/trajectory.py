"""What every trajectory is: joint positions, velocities and accelerations at any time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.core.upper import upper
from linkwise.files.tables import bounds
from linkwise.motion import arguments

if TYPE_CHECKING:
    from linkwise.model import Model
    from linkwise.report import Plot


class Moment(NamedTuple):
    """q [rad or m], q̇ and q̈ at given times, each of shape (..., n)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


@dataclass(frozen=True, repr=False)
class Samples(Summarised):
    """A motion at points in time: t [s], shape (points,); q, qd, qdd, shape (points, n)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    def _summary(self) -> Summary:
        last = f", {self.t[0]:g} … {self.t[-1]:g} s" if len(self.t) else ""
        return _motion_summary(f"Samples: {len(self.t)} points of {self.q.shape[-1]} joints{last}", self)

    def plot(self, robot: Model | None = None) -> Plot:
        """Positions, velocities and accelerations over time; see ``Trajectory.plot``."""
        return upper("report").motion_plot(self.t, self.q, self.qd, self.qdd, robot)


def _motion_summary(title: str, motion: Samples) -> Summary:
    """A row for each joint."""
    columns = ("joint", ">start", ">end", ">lowest", ">highest", ">largest speed", ">largest acceleration")
    rows = [
        [k + 1, q[0], q[-1], q.min(), q.max(), np.abs(qd).max(), np.abs(qdd).max()]
        for k, (q, qd, qdd) in enumerate(zip(motion.q.T, motion.qd.T, motion.qdd.T, strict=True))
        if len(q)
    ]
    return Summary(title, columns, rows, ["[rad or m, s]"])


class Trajectory(Summarised, ABC):
    """A motion of n joints from ``begin`` to ``end`` [s].

    Before and after that the robot stands still where the motion begins and ends; a periodic motion has no
    end.
    """

    dof: int
    begin: float
    end: float

    def _summary(self) -> Summary:
        ends = f"{self.duration:g} s" if math.isfinite(self.duration) else "without end"
        return _motion_summary(f"{type(self).__name__}: {self.dof} joints, {ends}", self._shown(201))

    def _shown(self, points: int) -> Samples:
        """Samples for tables and plots: of a motion without end those of its period."""
        if math.isfinite(self.duration):
            return self.sampled(points=points)
        t = np.linspace(0.0, getattr(self, "period", 10.0), points)
        return Samples(t, *self.at(t))

    def plot(self, robot: Model | None = None, *, points: int = 401) -> Plot:
        """Positions, velocities and accelerations over time, which notebooks show and ``.save("motion.svg")`` writes.

        Args:
            robot: names the joints and adds their limits; angles are then in degrees.
            points: number of samples.
        """
        return self._shown(points).plot(robot)

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

    @property
    def along(self) -> Any:
        """What this motion goes along where it is another timing of it: a motion or a path; otherwise itself."""
        return self

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
