"""Periodic motions as finite Fourier series, as used to excite a robot for identification."""

from __future__ import annotations

import math

import numpy as np

from linkwise.errors import ShapeError
from linkwise.motion import arguments
from linkwise.motion.trajectory import Moment, Trajectory
from linkwise.solve import linear


class FourierSeries(Trajectory):
    """q = centre + Σ_k sine[k]·sin((k+1)ωt) + cosine[k]·cos((k+1)ωt), ω = 2π/period.

    It has no end.

    Args:
        centre: mean position [rad or m], shape (n,).
        sine: amplitudes, shape (harmonics, n).
        cosine: amplitudes, shape (harmonics, n).
        period: [s].
    """

    def __init__(self, centre, sine, cosine, period: float):
        self.centre = arguments.positions("centre", centre)
        self.dof = self.centre.size
        self.sine, self.cosine = arguments.finite("sine", sine), arguments.finite("cosine", cosine)
        if self.sine.ndim != 2 or self.sine.shape[1] != self.dof or self.cosine.shape != self.sine.shape:
            shapes = f"{self.sine.shape} and {self.cosine.shape}"
            raise ShapeError(
                f"sine, cosine: expected two arrays of shape (harmonics, {self.dof}), got {shapes}"
            )
        self.period = arguments.duration(period, "period")
        with np.errstate(all="ignore"):
            size = np.abs(self.sine).sum() + np.abs(self.cosine).sum() + np.abs(self.centre).sum()
            fastest = size * np.square(2 * math.pi / self.period * max(len(self.sine), 1))
        if not np.isfinite(fastest):
            raise ValueError("the motion is beyond the range of numbers: too large, or its period too short")
        self.begin, self.end = -math.inf, math.inf

    def _inside(self, t: np.ndarray) -> Moment:
        w = 2 * math.pi / self.period * np.arange(1, len(self.sine) + 1)
        s, c = linear.sine_and_cosine(np.multiply.outer(t, w))
        return Moment(
            self.centre + _weighted(s, self.sine) + _weighted(c, self.cosine),
            _weighted(c * w, self.sine) - _weighted(s * w, self.cosine),
            -_weighted(s * w * w, self.sine) - _weighted(c * w * w, self.cosine),
        )

    def corners(self) -> np.ndarray:
        """One period."""
        return np.array([0.0, self.period])


def _weighted(values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Σ_k values[..., k]·coefficients[k], added in this order: a matrix product depends on how many times there are."""
    total = np.zeros((*values.shape[:-1], coefficients.shape[1]))
    for k, row in enumerate(coefficients):
        total = total + values[..., k, np.newaxis] * row
    return total
