"""Fastest moves under constant limits: trapezoidal speed, and limited jerk.

All joints start and stop together and move in proportion, so one path coordinate has the profile, which runs over the
longest distance of a joint; the joint that is slowest under its own limits decides.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.motion import arguments
from linkwise.motion.arguments import per_joint, positions
from linkwise.motion.polynomial import PiecewisePolynomial

SHORTEST = 1e-290  # [rad or m]: shorter distances count as zero
Phases = list[tuple[float, float]]  # (duration, the constant highest derivative)


def trapezoidal(start, end, *, velocity, acceleration, duration: float | None = None) -> PiecewisePolynomial:
    """Constant acceleration, constant speed, constant deceleration; without constant speed where the distance is short.

    Args:
        start: positions [rad or m], shape (n,).
        end: positions, shape (n,).
        velocity: limit [rad/s or m/s], one for all joints or one each.
        acceleration: limit [rad/s² or m/s²], likewise.
        duration: [s] to which the move is stretched; it is never shortened.
    """
    first, way, length, (v, a) = _scaled(start, end, velocity=velocity, acceleration=acceleration)
    if length < SHORTEST:
        return _standing(first, duration)
    v = min(v, math.sqrt(a) * math.sqrt(length))  # the peak of the triangle
    rise = v / a
    cruise = max(length / v - rise, 0.0)
    phases = [(rise, a), (cruise, 0.0), (rise, -a)]
    return _along(first, way, length, phases, derivative=2, duration=duration)


def jerk_limited(
    start, end, *, velocity, acceleration, jerk, duration: float | None = None
) -> PiecewisePolynomial:
    """Seven phases of constant jerk; fewer where a limit is not reached.

    Args:
        start: [rad or m], shape (n,).
        end: [rad or m], shape (n,).
        velocity: limit [rad/s or m/s], one number or (n,).
        acceleration: limit [rad/s² or m/s²], one number or (n,).
        jerk: limit [rad/s³ or m/s³], one number or (n,).
        duration: [s] to which the move is stretched; it is never shortened.
    """
    limits = {"velocity": velocity, "acceleration": acceleration, "jerk": jerk}
    first, way, length, (v, a, j) = _scaled(start, end, **limits)
    if length < SHORTEST:
        return _standing(first, duration)
    a = min(a, math.sqrt(v) * math.sqrt(j))  # the speed is reached before the acceleration
    if v / a + a / j > length / v:  # the distance is too short for the speed
        bend = a / j
        v = 2 * length / (bend + math.hypot(bend, 2 * math.sqrt(length / a)))
        if v / a < bend:  # and too short for the acceleration
            a = math.cbrt(j) ** 2 * math.cbrt(length / 2)
            v = a / j * a
    bend, steady = a / j, max(v / a - a / j, 0.0)
    cruise = max(length / v - (v / a + a / j), 0.0)
    rise: Phases = [(bend, j), (steady, 0.0), (bend, -j)]
    fall: Phases = [(time, -value) for time, value in rise]
    return _along(first, way, length, [*rise, (cruise, 0.0), *fall], derivative=3, duration=duration)


def _scaled(start, end, **limits) -> tuple[np.ndarray, np.ndarray, float, list[float]]:
    """(start, displacement, the longest distance of a joint, each limit for a path coordinate over that distance)."""
    first = positions("start", start)
    with np.errstate(over="ignore"):
        way = positions("end", end, first.size) - first
    length = float(np.abs(way).max(initial=0.0))
    if not math.isfinite(length):
        raise ValueError("start, end: the distance between them is beyond the range of numbers")
    scaled = []
    for name, values in limits.items():
        array = per_joint(name, values, first.size)
        if not (array > 0).all():
            raise ValueError(f"{name}: expected positive limits, got {array}")
        with np.errstate(all="ignore"):
            allowed = array * (length / np.abs(way))  # a joint that does not move allows everything
        scaled.append(float(np.min(allowed, where=way != 0, initial=math.inf)))
    return first, way, length, scaled


def _standing(first: np.ndarray, duration: float | None) -> PiecewisePolynomial:
    time = 1.0 if duration is None else arguments.duration(duration)
    return PiecewisePolynomial([0.0, time], first[np.newaxis, np.newaxis])


def _along(
    first: np.ndarray,
    way: np.ndarray,
    length: float,
    phases: Phases,
    *,
    derivative: int,
    duration: float | None,
) -> PiecewisePolynomial:
    """The phases of a path coordinate, integrated, as polynomials of the joints."""
    total = sum(time for time, _ in phases)
    if not math.isfinite(total) or any(value and time <= 1e-12 * total for time, value in phases):
        raise ValueError(
            f"the limits are too far apart for a distance of {length:g}: of {total:g} s, too little is left to speed up"
        )
    phases = [phase for phase in phases if phase[0] > 1e-12 * total]
    times, pieces = [0.0], []
    state = np.zeros(derivative)  # the coordinate and its derivatives at the begin of a phase
    factorial = np.array([math.factorial(k) for k in range(derivative + 1)], dtype=float)
    for time, value in phases:
        piece = np.append(state, value) / factorial
        pieces.append(piece)
        times.append(times[-1] + time)
        state = np.array([np.polyval(np.polyder(piece[::-1], k), time) for k in range(derivative)])
    coefficients = np.array(pieces)[:, :, np.newaxis] * (way / length)
    coefficients[:, 0] += first
    move = PiecewisePolynomial(times, coefficients)
    if duration is None:
        return move
    duration = arguments.duration(duration)
    if duration < move.duration * (1 - 1e-12):
        raise ValueError(f"duration: the limits need at least {move.duration:.6g} s, got {duration:g} s")
    return move.stretched(duration / move.duration)
