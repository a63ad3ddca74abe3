"""The quickest moves under constant limits: trapezoidal speed, and limited jerk.

All joints start and stop together and move in proportion, so a path coordinate from 0 to 1 has the profile;
the joint that is slowest under its own limits decides.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.motion.polynomial import PiecewisePolynomial, check_duration
from linkwise.motion.trajectory import per_joint, positions

Phases = list[tuple[float, float]]  # (duration, the constant highest derivative)


def trapezoidal(start, end, *, velocity, acceleration, duration: float | None = None) -> PiecewisePolynomial:
    """Constant acceleration, constant speed, constant deceleration; a triangle where the way is short.

    ``velocity`` [rad/s or m/s] and ``acceleration`` are limits, one for all joints or one each. ``duration``
    [s], if given, stretches the move to exactly that, never shortens it.
    """
    first, way, (v, a) = _scaled(start, end, velocity=velocity, acceleration=acceleration)
    if not way.any():
        return _standing(first, duration)
    v = min(v, math.sqrt(a))  # the peak of the triangle over a way of 1
    rise, cruise = v / a, (1 - v * v / a) / v
    phases = [(rise, a), (cruise, 0.0), (rise, -a)]
    return _along(first, way, phases, derivative=2, duration=duration)


def jerk_limited(
    start, end, *, velocity, acceleration, jerk, duration: float | None = None
) -> PiecewisePolynomial:
    """Seven phases of constant jerk; fewer where a limit is not reached. Arguments as for ``trapezoidal``."""
    first, way, (v, a, j) = _scaled(start, end, velocity=velocity, acceleration=acceleration, jerk=jerk)
    if not way.any():
        return _standing(first, duration)
    a = min(a, math.sqrt(v * j))  # the speed is reached before the acceleration
    if v * (v / a + a / j) > 1:  # the way is too short for the speed
        v = a * (math.sqrt((a / j) ** 2 + 4 / a) - a / j) / 2
        if v / a < a / j:  # and too short for the acceleration
            a = (j * j / 2) ** (1 / 3)
            v = a * a / j
    bend, steady = a / j, max(v / a - a / j, 0.0)
    cruise = max(1 / v - (v / a + a / j), 0.0)
    rise: Phases = [(bend, j), (steady, 0.0), (bend, -j)]
    fall: Phases = [(time, -value) for time, value in rise]
    return _along(first, way, [*rise, (cruise, 0.0), *fall], derivative=3, duration=duration)


def _scaled(start, end, **limits) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """(start, way, each limit for a path coordinate from 0 to 1)."""
    first = positions("start", start)
    way = positions("end", end, first.size) - first
    scaled = []
    for name, values in limits.items():
        array = per_joint(name, values, first.size)
        if not (array > 0).all():
            raise ValueError(f"{name}: expected positive limits, got {array}")
        moving = way != 0
        scaled.append(float(np.min(array[moving] / np.abs(way[moving]))) if moving.any() else math.inf)
    return first, way, scaled


def _standing(first: np.ndarray, duration: float | None) -> PiecewisePolynomial:
    return PiecewisePolynomial([0.0, 1.0 if duration is None else duration], first[np.newaxis, np.newaxis])


def _along(
    first: np.ndarray, way: np.ndarray, phases: Phases, *, derivative: int, duration: float | None
) -> PiecewisePolynomial:
    """The phases of a path coordinate, integrated, as polynomials of the joints."""
    phases = [phase for phase in phases if phase[0] > 1e-12 * sum(time for time, _ in phases)]
    times, pieces = [0.0], []
    state = np.zeros(derivative)  # the coordinate and its derivatives at the begin of a phase
    factorial = np.array([math.factorial(k) for k in range(derivative + 1)], dtype=float)
    for time, value in phases:
        piece = np.append(state, value) / factorial
        pieces.append(piece)
        times.append(times[-1] + time)
        state = np.array([np.polyval(np.polyder(piece[::-1], k), time) for k in range(derivative)])
    coefficients = np.array(pieces)[:, :, np.newaxis] * way
    coefficients[:, 0] += first
    move = PiecewisePolynomial(times, coefficients)
    if duration is None:
        return move
    check_duration(duration)
    if duration < move.duration * (1 - 1e-12):
        raise ValueError(f"duration: the limits need at least {move.duration:.6g} s, got {duration:g} s")
    return move.stretched(duration / move.duration)
