"""Hypotheses with a number that is searched: zeros that are no quarter turn, factors of single torques and of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from linkwise.identify.estimation.weights import solved
from linkwise.identify.judging.hypotheses import TIMES, Hypothesis, Recording, is_possible, other_clock
from linkwise.identify.judging.screening import Screen
from linkwise.solve import linear

TURNS = (0.0, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0)  # [rad] from which zeros are searched
LEAST_TURN, MOST_TURN = 0.1, 2.0  # [rad] zeros that are reported; quarter turns are hypotheses of their own
STEP = 0.25  # between the logarithms of factors
FACTORS = (1.0, *(10.0 ** (sign * STEP * k) for k in range(1, 14) for sign in (1, -1)))
NOISE = 0.95  # relative residual of a joint that no factor of any joint explains
UNEXPLAINED = 0.3  # relative residual of a joint from which all factors are tried
FINER = 5  # halvings of the step
LEAST_FACTOR = 1.5  # that is reported, or its inverse
CLOCKS = (
    1.0,
    1.25,
    0.8,
    1.6,
    0.625,
    2.5,
    0.4,
    4.0,
    0.25,
    6.3,
    0.16,
)  # factors of times from which one is searched
LEAST_CLOCK = 1.06  # that is reported, or its inverse
USUAL = 1.1  # factor between a time that was searched and one of ``TIMES``, up to which they are the same


def searched(screen: Screen, recording: Recording, Y: np.ndarray) -> Iterator[Hypothesis]:
    """One hypothesis for every joint whose zero or factor explains more, and for another clock.

    Args:
        screen: for fits.
        recording: the samples.
        Y: their columns of the links.
    """
    yield from _zeros(screen, recording)
    yield from _factors(screen, recording, Y[..., screen.base])
    yield from _clocks(screen, recording)


def _zeros(screen: Screen, recording: Recording) -> Iterator[Hypothesis]:
    robot = screen.robot
    for j, joint in enumerate(robot.coordinate_joints):
        if not joint.revolute:
            continue

        def residual(shift: float, j: int = j) -> float:
            turned = replace(recording, q=_positions_from(recording, j, shift))
            columns = screen.columns(turned)[..., screen.base]
            return _mean_logarithm(screen, turned, columns)

        shift = _least(residual, TURNS, lambda shift, step: (shift + step, shift - step), 0.25, False)
        if LEAST_TURN < abs(shift) < MOST_TURN:
            yield Hypothesis(
                f"positions of {joint.name} look counted from another zero than in {robot.name}",
                f"adding {math.degrees(shift):.1f}° to them",
                replace(recording, q=_positions_from(recording, j, shift)),
            )


def _least(
    residual: Callable[[float], float],
    candidates: Sequence[float],
    near: Callable[[float, float], tuple[float, ...]],
    step: float,
    everywhere: bool,
) -> float:
    """The number with the smallest residual: of the candidates, then of those near the best in smaller and smaller
    steps. The first candidate is what was given, the next two are beside it: where neither is better, no others are
    tried, unless ``everywhere`` is asked for."""
    errors = {value: residual(value) for value in candidates[:3]}
    if not everywhere and min(errors, key=errors.__getitem__) == candidates[0]:
        return candidates[0]
    errors |= {value: residual(value) for value in candidates[3:]}
    best = min(errors, key=errors.__getitem__)
    for _ in range(FINER):
        step /= 2.0
        errors |= {value: residual(value) for value in near(best, step)}
        best = min(errors, key=errors.__getitem__)
    return best


def _positions_from(recording: Recording, j: int, shift: float) -> np.ndarray:
    q = recording.q.copy()
    q[:, j] += shift
    return q


def _factors(screen: Screen, recording: Recording, Y: np.ndarray) -> Iterator[Hypothesis]:
    """Joints share the parameters of their links: a torque in another unit contradicts those of the other joints."""
    squares = screen.squares(recording, Y)

    def residuals(j: int, factor: float) -> np.ndarray:
        changed = squares.copy()
        changed[j, :-1] /= factor
        changed[j, :, :-1] /= factor
        return solved(changed)[0]

    def residual(j: int, factor: float) -> float:
        return float(linear.logarithm(residuals(j, factor)).mean())

    now = solved(squares)[0]
    for j, name in enumerate(screen.robot.joint_names):
        factor = _least(
            partial(residual, j),
            FACTORS,
            lambda f, step: (f * 10.0**step, f / 10.0**step),
            STEP,
            bool(now[j] > UNEXPLAINED),
        )
        if 1 / LEAST_FACTOR < factor < LEAST_FACTOR:
            continue
        if residuals(j, factor).max() < NOISE:
            scale = np.ones(recording.dof)
            scale[j] = factor
            yield Hypothesis(
                f"torques of {name} look {_times(factor)} beside those of the other joints: its unit, drive gain or "
                "gear ratio is another",
                f"multiplying them with {factor:.2g}",
                replace(recording, tau=recording.tau * scale),
                False,
                int(recording.channels[j]),
            )


def _clocks(screen: Screen, recording: Recording) -> Iterator[Hypothesis]:
    """Times multiplied with any factor that people do not usually mistake: the rate of another recording."""

    def residual(factor: float) -> float:
        if not is_possible(screen.robot, recording, factor):
            return math.inf
        other = recording.slower(factor)
        return _mean_logarithm(screen, other, screen.columns(other)[..., screen.base])

    factor = _least(residual, CLOCKS, lambda f, step: (f * 10.0**step, f / 10.0**step), 0.2, True)
    known = any(1 / USUAL < factor / usual < USUAL for usual in TIMES)
    if not (known or 1 / LEAST_CLOCK < factor < LEAST_CLOCK):
        yield other_clock(recording, factor)


def _mean_logarithm(screen: Screen, recording: Recording, columns: np.ndarray) -> float:
    """Of the relative residuals of all joints, by least squares."""
    return float(linear.logarithm(solved(screen.squares(recording, columns))[0]).mean())


def _times(factor: float) -> str:
    return f"{factor:.2g} times too small" if factor > 1 else f"{1 / factor:.2g} times too large"
