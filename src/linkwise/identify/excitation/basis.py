"""Families of motions that are linear in their coefficients: q(t) = B(t) θ, one column of θ per joint.

Both begin and end at rest and without acceleration, so that a robot can start and stop with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from linkwise.motion import FourierSeries, PiecewisePolynomial, Trajectory, quintic_spline
from linkwise.solve import linear
from linkwise.solve.linear import product


class Basis(ABC):
    """A family of motions of ``duration`` [s] with ``size`` coefficients per joint; the first one is a constant."""

    duration: float
    size: int

    @abstractmethod
    def matrices(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B, Ḃ and B̈ at the times t (points,), each (points, size)."""

    @abstractmethod
    def trajectory(self, theta: np.ndarray) -> Trajectory:
        """The motion with coefficients θ (size, n)."""

    @abstractmethod
    def acceleration_bound(self, theta: np.ndarray) -> np.ndarray:
        """An upper bound (n,) of the accelerations of the motion with coefficients θ, at all times."""

    def times(self, points: int) -> np.ndarray:
        """Evenly spaced times [s] of one motion, the end left out."""
        return np.arange(points) * self.duration / points


class FourierBasis(Basis):
    """A finite Fourier series with a base frequency of 1/duration (Swevers et al. 1997), periodic."""

    def __init__(self, duration: float, harmonics: int):
        if harmonics < 2:
            raise ValueError(f"harmonics: expected at least 2, got {harmonics}")
        self.duration, self.harmonics = float(duration), int(harmonics)
        k = np.arange(1, harmonics + 1)
        w = 2 * np.pi * k / duration
        # sine coefficients with Σ w a = 0 (at rest at t = 0), cosine ones with Σ w² b = 0 (no acceleration there)
        self._sine, self._cosine = _across(w), _across(w**2)
        self._w = w
        self.size = 1 + 2 * (harmonics - 1)

    def matrices(self, t):
        s, c = linear.sine_and_cosine(np.multiply.outer(t, self._w))
        one, zero = np.ones((len(t), 1)), np.zeros((len(t), 1))
        w = self._w
        return (
            np.hstack([one, product(s, self._sine), product(c, self._cosine)]),
            np.hstack([zero, product(w * c, self._sine), -product(w * s, self._cosine)]),
            np.hstack([zero, -product(w**2 * s, self._sine), -product(w**2 * c, self._cosine)]),
        )

    def trajectory(self, theta: np.ndarray) -> FourierSeries:
        half = self.harmonics - 1
        return FourierSeries(
            theta[0],
            product(self._sine, theta[1 : 1 + half]),
            product(self._cosine, theta[1 + half :]),
            self.duration,
        )

    def acceleration_bound(self, theta: np.ndarray) -> np.ndarray:
        series = self.trajectory(theta)
        return product(self._w**2, np.sqrt(series.sine**2 + series.cosine**2))


class SplineBasis(Basis):
    """Quintic splines through evenly spaced via points."""

    def __init__(self, duration: float, points: int):
        if points < 4:
            raise ValueError(f"points: expected at least 4 via points, got {points}")
        self.duration, self.size = float(duration), int(points)
        self._times = np.linspace(0.0, duration, points)
        # the first coefficient moves all via points, the others one each (but the first) against it
        self._via = np.hstack([np.ones((points, 1)), np.eye(points)[:, 1:]])

    def matrices(self, t):
        moment = quintic_spline(self._times, self._via).at(t)
        return moment.q, moment.qd, moment.qdd

    def trajectory(self, theta: np.ndarray) -> PiecewisePolynomial:
        return quintic_spline(self._times, product(self._via, theta))

    def acceleration_bound(self, theta: np.ndarray) -> np.ndarray:
        spline = self.trajectory(theta)
        k = np.arange(spline.coefficients.shape[1])
        steps = np.broadcast_to(np.diff(spline.times)[:, None], (len(spline.times) - 1, len(k)))
        longest = np.cumprod(np.where(k > 2, steps, 1.0), axis=1)  # powers k − 2, (segments, order)
        return np.einsum("k,sk,skn->sn", k * (k - 1.0), longest, np.abs(spline.coefficients)).max(axis=0)


def _across(normal: np.ndarray) -> np.ndarray:
    """An orthonormal basis of all vectors across ``normal``, shape (k, k − 1)."""
    return linear.svd(normal[None])[1][1:].T
