"""Periodic motions as finite Fourier series, as used to excite a robot for identification."""

from __future__ import annotations

import math

import numpy as np

from linkwise.errors import ShapeError
from linkwise.motion.trajectory import Moment, Trajectory, positions


class FourierSeries(Trajectory):
    """q = centre + Σ_k sine[k]·sin((k+1)ωt) + cosine[k]·cos((k+1)ωt), ω = 2π/period.

    ``centre`` [rad or m], shape (n,); ``sine`` and ``cosine``, shape (harmonics, n); ``period`` [s]. It has
    no end.
    """

    def __init__(self, centre, sine, cosine, period: float):
        self.centre = positions("centre", centre)
        self.dof = self.centre.size
        self.sine, self.cosine = np.asarray(sine, dtype=float), np.asarray(cosine, dtype=float)
        if self.sine.ndim != 2 or self.sine.shape[1] != self.dof or self.cosine.shape != self.sine.shape:
            shapes = f"{self.sine.shape} and {self.cosine.shape}"
            raise ShapeError(
                f"sine, cosine: expected two arrays of shape (harmonics, {self.dof}), got {shapes}"
            )
        if not (math.isfinite(period) and period > 0):
            raise ValueError(f"period: expected a positive time in seconds, got {period!r}")
        self.period = float(period)
        self.begin, self.end = -math.inf, math.inf

    def _inside(self, t: np.ndarray) -> Moment:
        w = 2 * math.pi / self.period * np.arange(1, len(self.sine) + 1)
        s, c = np.sin(np.multiply.outer(t, w)), np.cos(np.multiply.outer(t, w))
        return Moment(
            self.centre + s @ self.sine + c @ self.cosine,
            (c * w) @ self.sine - (s * w) @ self.cosine,
            -(s * w * w) @ self.sine - (c * w * w) @ self.cosine,
        )

    def corners(self) -> np.ndarray:
        """One period."""
        return np.array([0.0, self.period])
