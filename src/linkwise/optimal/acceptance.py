"""Which step of an iteration is taken, over any scalar: by the solver in Python and by kernels alike.

Of a fixed set of step sizes the longest one that brings a part of what it promises is taken, else the one with the
smallest merit, if it is smaller than that of the trajectory that is there; else that one stays and the regularisation
grows. The merit is the cost plus a weight times the sum of the gaps between the shooting intervals (``weight``, for
plans of predictive control ``exact_weight``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.scalar import Scalar, where

GROWTH = 5.0  # of the regularisation after a rejected step
DECAY = 0.2  # after a long one
SHORT, LONG = 0.05, 0.2  # steps up to which it grows, and beyond which it shrinks
SMALLEST, LARGEST = 1e-4, 1e8  # of the regularisation, in units of the diagonal, while it is not zero
HUGE = 1e30  # no merit is larger
PART = 0.1  # of the promised decrease that is enough
EXACT = 2.0  # weight of gaps of plans, in units of the largest multiplier
RISE = 2.0  # of the cost, where gaps are closed, that is allowed: in units of what the quadratic model says


def weight(gap: Scalar, expected: Scalar, closing: Scalar, closed: float) -> Scalar:
    """Weight of the gaps in the merit: a full step, which closes them, may raise the cost by twice as much as the
    quadratic model says (as C. Mastalli et al., "Crocoddyl", 2020, allow), and by a half of what it promises besides.

    A weight above all multipliers would be exact, but takes any cost for closed gaps; here gaps that were closed stay
    closed, so that a weight that changes between iterations cannot lead in a circle.

    Args:
        gap: sum of |gaps| before the step.
        expected: first-order change of the cost by the torques.
        closing: change of the cost by closing the gaps, to second order.
        closed: gaps that are much smaller are those of rounding, and allow nothing.
    """
    rise = closing + 0.5 * expected
    allowed = RISE * where(rise > 0.0, rise, 0.0 * rise) + 0.5 * abs(expected)
    return allowed / (gap + closed)


def exact_weight(largest: Scalar) -> Scalar:
    """Weight of the gaps in the merit of a plan, which begins with a gap: at the measured state. What the plan would
    cost without this gap cannot be had, so that a step which closes it is worth any cost; a plan that is refused leaves
    the robot without an answer to what was measured.

    Args:
        largest: multiplier of the equations of motion.
    """
    return EXACT * largest


def merit(cost: Scalar, gap: Scalar, weight: Scalar) -> Scalar:
    """What must become smaller."""
    return cost + weight * gap


def chosen(before: Scalar, merits: Sequence[Scalar], promised: Sequence[Scalar]) -> list[Scalar]:
    """1 for the step size that is taken, 0 for the others; all 0 if none is better.

    The first one whose merit falls by at least ``PART`` of what was promised is taken: the longest, where they are
    given in that order. If there is none, the one with the smallest merit, if that is smaller than before. A merit that
    is not a number is never taken; any number is better than a trajectory without one.

    Args:
        before: merit of the trajectory that is there.
        merits: that of every step size.
        promised: by how much the quadratic model lets each of them fall.
    """
    start = _number(before)
    best, found = start, 0.0 * start
    first: list[Scalar] = []
    least: list[Scalar] = []
    for value, gain in zip(merits, promised, strict=True):
        takes: Any = enough(before, value, gain)
        takes = where(found < 0.5, takes, 0.0 * takes)
        first.append(takes)
        found = where(takes > 0.5, takes, found)
        better = value < best
        best = where(better, value, best)
        least = [where(better, 0.0 * value, pick) for pick in least]
        least.append(where(better, 1.0, 0.0))
    return [where(found > 0.5, a, b) for a, b in zip(first, least, strict=True)]


def enough(before: Scalar, merit: Scalar, promised: Scalar) -> Scalar:
    """1 where a step brings a part of what it promises, else 0.

    Args:
        before: merit of the trajectory that is there.
        merit: that of the step.
        promised: by how much the quadratic model lets it fall.
    """
    return where(merit < _number(before) - PART * promised, 1.0, 0.0)


def _number(merit: Scalar) -> Scalar:
    return where(abs(merit) < HUGE, merit, HUGE)


def regularised(mu: Scalar, taken: Scalar) -> Scalar:
    """The regularisation of the next iteration: less after a long step, more after none or a short one.

    It vanishes below the smallest value.

    Args:
        mu: that of this iteration.
        taken: step size that was taken; 0: none.
    """
    less = DECAY * mu
    less = where(less < 0.5 * SMALLEST, 0.0 * less, less)
    more = GROWTH * mu
    more = where(more < SMALLEST, SMALLEST, where(more < LARGEST, more, LARGEST))
    return where(taken > LONG, less, where(taken > SHORT, mu, more))
