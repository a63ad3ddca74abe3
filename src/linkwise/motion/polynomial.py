"""Motions made of polynomials in time, and the simplest of them: a quintic, a ramp, standing still."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.errors import ShapeError
from linkwise.motion.trajectory import Moment, Trajectory, per_joint, positions


class PiecewisePolynomial(Trajectory):
    """q = Σ_k coefficients[s, k]·(t − times[s])ᵏ in segment s.

    ``times``: where segments begin and the last one ends [s], shape (segments + 1,), ascending;
    ``coefficients``: shape (segments, order, n).
    """

    def __init__(self, times, coefficients):
        self.times = np.asarray(times, dtype=float)
        self.coefficients = np.asarray(coefficients, dtype=float)
        segments = len(self.times) - 1
        if self.coefficients.ndim != 3 or len(self.coefficients) != segments:
            raise ShapeError(
                f"coefficients: expected shape ({segments}, order, n), got {self.coefficients.shape}"
            )
        if segments < 1 or not (np.diff(self.times) > 0).all() or not np.isfinite(self.times).all():
            raise ValueError("times: expected at least two finite times, each later than the one before")
        self.begin, self.end = float(self.times[0]), float(self.times[-1])
        self.dof = self.coefficients.shape[2]
        order = self.coefficients.shape[1]
        k = np.arange(order)[:, np.newaxis]
        self._velocity = (k * self.coefficients)[:, 1:] if order > 1 else np.zeros((segments, 1, self.dof))
        self._acceleration = (
            (k * (k - 1) * self.coefficients)[:, 2:] if order > 2 else np.zeros((segments, 1, self.dof))
        )

    def _inside(self, t: np.ndarray) -> Moment:
        segment = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        local = (t - self.times[segment])[..., np.newaxis]
        return Moment(
            *(_horner(c, segment, local) for c in (self.coefficients, self._velocity, self._acceleration))
        )

    def corners(self) -> np.ndarray:
        return self.times

    def stretched(self, factor: float) -> PiecewisePolynomial:
        """The same path in ``factor`` times the time, from the same begin."""
        powers = np.asarray(factor, dtype=float) ** -np.arange(self.coefficients.shape[1])
        times = self.begin + factor * (self.times - self.begin)
        return PiecewisePolynomial(times, self.coefficients * powers[:, np.newaxis])


def _horner(coefficients: np.ndarray, segment: np.ndarray, t: np.ndarray) -> np.ndarray:
    value = coefficients[segment, -1]
    for k in reversed(range(coefficients.shape[1] - 1)):
        value = value * t + coefficients[segment, k]
    return value


def quintic(
    start: Sequence[float] | np.ndarray,
    end: Sequence[float] | np.ndarray,
    duration: float,
    *,
    velocity: tuple = (0.0, 0.0),
    acceleration: tuple = (0.0, 0.0),
    begin: float = 0.0,
) -> PiecewisePolynomial:
    """From ``start`` to ``end`` [rad or m], shape (n,), in ``duration`` [s] by one polynomial of degree five.

    ``velocity`` and ``acceleration`` are what the joints have at the begin and at the end: two numbers or two
    vectors.
    """
    first = positions("start", start)
    n = first.size
    last = positions("end", end, n)
    check_duration(duration)
    speeds = [per_joint("velocity", v, n) for v in velocity]
    accelerations = [per_joint("acceleration", a, n) for a in acceleration]
    coefficients = quintic_coefficients(
        duration, first, speeds[0], accelerations[0], last, speeds[1], accelerations[1]
    )
    return PiecewisePolynomial([begin, begin + duration], coefficients[np.newaxis])


def quintic_coefficients(T, q0, v0, a0, q1, v1, a1) -> np.ndarray:
    """The six coefficients, shape (6, ...), of the quintic with these values after 0 and after T."""
    T = np.asarray(T, dtype=float)
    gap = q1 - (q0 + T * (v0 + T * a0 / 2))  # what the first three coefficients leave over, at the end
    speed = (v1 - (v0 + T * a0)) * T
    bend = (a1 - a0) * T * T
    return np.stack(
        np.broadcast_arrays(
            q0,
            v0,
            a0 / 2,
            (10 * gap - 4 * speed + bend / 2) / T**3,
            (-15 * gap + 7 * speed - bend) / T**4,
            (6 * gap - 3 * speed + bend / 2) / T**5,
        )
    )


def ramp(
    start: Sequence[float], end: Sequence[float], duration: float, *, begin: float = 0.0
) -> PiecewisePolynomial:
    """Constant speed from ``start`` to ``end``: a test signal whose speed jumps at both ends, which no arm
    can follow.
    """
    first = positions("start", start)
    last = positions("end", end, first.size)
    check_duration(duration)
    return PiecewisePolynomial(
        [begin, begin + duration], np.stack([first, (last - first) / duration])[np.newaxis]
    )


def hold(position: Sequence[float], duration: float = 1.0) -> PiecewisePolynomial:
    """Standing still."""
    return PiecewisePolynomial([0.0, duration], positions("position", position)[np.newaxis, np.newaxis])


def check_duration(duration: float) -> None:
    if not (math.isfinite(duration) and duration > 0):
        raise ValueError(f"duration: expected a positive time in seconds, got {duration!r}")
