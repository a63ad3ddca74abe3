"""Motions made of polynomials in time, and the simplest of them: a quintic, a ramp, standing still."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.errors import ShapeError
from linkwise.motion import arguments
from linkwise.motion.arguments import positions
from linkwise.motion.trajectory import Moment, Trajectory


class PiecewisePolynomial(Trajectory):
    """q = Σ_k coefficients[s, k]·(t − times[s])ᵏ in segment s.

    Args:
        times: where segments begin and the last one ends [s], shape (segments + 1,), ascending.
        coefficients: shape (segments, order, n).
    """

    def __init__(self, times, coefficients):
        self.times = arguments.numbers("times", times)
        self.coefficients = arguments.numbers("coefficients", coefficients)
        if self.times.ndim != 1:
            raise ShapeError(f"times: expected shape (segments + 1,), got {self.times.shape}")
        segments = len(self.times) - 1
        if self.coefficients.ndim != 3 or len(self.coefficients) != segments:
            raise ShapeError(
                f"coefficients: expected shape ({segments}, order, n), got {self.coefficients.shape}"
            )
        if segments < 1 or not np.isfinite(self.times).all() or not (self.times[1:] > self.times[:-1]).all():
            raise ValueError("times: expected at least two finite times, each later than the one before")
        self.begin, self.end = float(self.times[0]), float(self.times[-1])
        self.dof = self.coefficients.shape[2]
        order = self.coefficients.shape[1]
        if order < 1:
            raise ShapeError(f"coefficients: expected at least one, got shape {self.coefficients.shape}")
        k = np.arange(order)[:, np.newaxis]
        none = np.zeros((segments, 1, self.dof))
        with np.errstate(over="ignore"):
            self._velocity = (k * self.coefficients)[:, 1:] if order > 1 else none
            self._acceleration = (k * (k - 1) * self.coefficients)[:, 2:] if order > 2 else none
        if not self._is_finite():
            raise ValueError(
                "the motion is beyond the range of numbers: its path is too long or its duration too short"
            )

    def _is_finite(self) -> bool:
        """Whether position, velocity and acceleration are numbers at both ends of every segment."""
        segment = np.arange(len(self.times) - 1)
        parts = (self.coefficients, self._velocity, self._acceleration)
        with np.errstate(all="ignore"):
            length = np.diff(self.times)[:, np.newaxis]
            return all(np.isfinite(c).all() and np.isfinite(_horner(c, segment, length)).all() for c in parts)

    def _inside(self, t: np.ndarray) -> Moment:
        segment = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        local = (t - self.times[segment])[..., np.newaxis]
        return Moment(
            *(_horner(c, segment, local) for c in (self.coefficients, self._velocity, self._acceleration))
        )

    def corners(self) -> np.ndarray:
        return self.times

    def stretched(self, factor: float) -> PiecewisePolynomial:
        """Time-scaled copy: same path and start, duration multiplied by ``factor``."""
        with np.errstate(all="ignore"):
            powers = np.asarray(factor, dtype=float) ** -np.arange(self.coefficients.shape[1])
            coefficients = self.coefficients * powers[:, np.newaxis]
        times = self.begin + factor * (self.times - self.begin)
        return PiecewisePolynomial(times, coefficients)


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
    """One polynomial of degree five from one position to another.

    Args:
        start: positions [rad or m], shape (n,).
        end: positions, shape (n,).
        duration: [s].
        velocity: at the start and at the end, two numbers or two vectors.
        acceleration: at the start and at the end, likewise.
        begin: time of the start [s].
    """
    first = positions("start", start)
    n = first.size
    last = positions("end", end, n)
    duration, begin = arguments.duration(duration), arguments.number("begin", begin)
    speeds = arguments.pair("velocity", velocity, n)
    accelerations = arguments.pair("acceleration", acceleration, n)
    coefficients = quintic_coefficients(
        duration, first, speeds[0], accelerations[0], last, speeds[1], accelerations[1]
    )
    return PiecewisePolynomial([begin, begin + duration], coefficients[np.newaxis])


def quintic_coefficients(T, q0, v0, a0, q1, v1, a1) -> np.ndarray:
    """The six coefficients, shape (6, ...), of the quintic with these values after 0 and after T."""
    T = np.asarray(T, dtype=float)
    with np.errstate(all="ignore"):  # what leaves the range of numbers is refused by PiecewisePolynomial
        gap = q1 - (q0 + T * (v0 + T * a0 / 2))  # what the first three coefficients leave over, at the end
        speed = (v1 - (v0 + T * a0)) * T
        bend = (a1 - a0) * T * T
        third = (10 * gap - 4 * speed + bend / 2) / T / T / T
        fourth = (-15 * gap + 7 * speed - bend) / T / T / T / T
        fifth = (6 * gap - 3 * speed + bend / 2) / T / T / T / T / T
    return np.stack(np.broadcast_arrays(q0, v0, a0 / 2, third, fourth, fifth))


def ramp(
    start: Sequence[float], end: Sequence[float], duration: float, *, begin: float = 0.0
) -> PiecewisePolynomial:
    """Constant speed from ``start`` to ``end``: a test signal whose speed jumps at both ends, which no arm
    can follow.

    Args:
        start: [rad or m], shape (n,).
        end: [rad or m], shape (n,).
        duration: [s].
        begin: time of the start [s].
    """
    first = positions("start", start)
    last = positions("end", end, first.size)
    duration, begin = arguments.duration(duration), arguments.number("begin", begin)
    with np.errstate(all="ignore"):
        speed = (last - first) / duration
    return PiecewisePolynomial([begin, begin + duration], np.stack([first, speed])[np.newaxis])


def hold(position: Sequence[float], duration: float = 1.0) -> PiecewisePolynomial:
    """Standing still.

    Args:
        position: [rad or m], shape (n,).
        duration: [s].
    """
    times = [0.0, arguments.duration(duration)]
    return PiecewisePolynomial(times, positions("position", position)[np.newaxis, np.newaxis])
