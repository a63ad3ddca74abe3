"""The earliest time at which a joint can be at its target, from a given time on.

A time is possible if the target lies between the nearest and the furthest distance that the joint can cover in it
(``extremes``). Times that are not possible are intervals: those in which the velocity cannot be reached, in closed
form, and those in which the target is too near or too far. The end of such an interval is a root of the furthest
distance (in a mirror, if the target is too near). Its slope falls up to a time that is known in closed form, and
rises from then on, so Newton's method is safe from the left before that time, and with a bracket after it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from linkwise.motion.online.extremes import Furthest, Task
from linkwise.scalar import Condition, Scalar, maximum, minimum, negated, sqrt, where, while_loop


class Precision(NamedTuple):
    """Relative errors."""

    unit: float  # of a sum
    noise: float  # of a state: what a target may be missed by, so that a plan goes on from its own states


DOUBLE = Precision(4e-16, 2e-13)
SINGLE = Precision(2.4e-7, 4e-6)
MOST_STEPS = 60.0  # of Newton's method
INFINITE = 1e300


class Gap:
    """An interval of times in which the velocity of the target cannot be reached by raising the acceleration first.

    Args:
        task: the joint.
        noise: relative error of a state.
    """

    def __init__(self, task: Task, noise: float):
        a0, af, jerk, top = task.a0, task.af, task.jerk, task.highest_acceleration
        square = jerk * (task.vf - task.v0) + 0.5 * (a0 * a0 + af * af)  # of the peak that is needed
        peak, both = sqrt(maximum(square, 0.0)), a0 + af
        held = (square - top * top) / top
        exists = square > 0.0
        size = jerk * (abs(task.vf) + abs(task.v0)) + (a0 * a0 + af * af)
        inside = sqrt(maximum(square - noise * size, 0.0))
        self.begin = where(exists, (-2.0 * inside - both) / jerk, -1.0)
        self.end = where(exists, where(peak > top, 2.0 * top + held, 2.0 * peak) - both, -jerk) / jerk

    def left(self, T: Scalar) -> Scalar:
        """T, or the end of the gap if T is in it."""
        return where((self.begin < T) & (self.end > T), self.end, T)

    def next(self, T: Scalar) -> Scalar:
        """Where the gap begins if it is ahead of T."""
        return where((self.begin >= T) & (self.begin < self.end), self.begin, INFINITE)


class Earliest:
    """Possible times of a task.

    Args:
        task: the joint, after braking.
        precision: of the arithmetic.
    """

    def __init__(self, task: Task, precision: Precision = DOUBLE):
        self.task, self.precision = task, precision
        self.up, self.down = Furthest(task), Furthest(task.mirrored(True))
        self.gaps = (Gap(task, precision.noise), Gap(self.down.task, precision.noise))
        self.first = self.past_gaps(abs(task.af - task.a0) / task.jerk)
        """The earliest time at which the velocity and acceleration of the target can be reached [s]."""

    def off(self, T: Scalar) -> tuple[Scalar, Scalar]:
        """(how much the furthest distance falls short, how much the nearest one is beyond) more than noise; not
        positive if T is possible."""
        up, down = self.up.in_time(T), self.down.in_time(T)
        rounding = self.precision.noise * (maximum(up.rounding, down.rounding) + self.task.rounding)
        return self.task.distance - up.distance - rounding, -down.distance - self.task.distance - rounding

    def past_gaps(self, T: Scalar) -> Scalar:
        """The first time from T on at which the velocity and acceleration of the target can be reached."""
        for gap in (*self.gaps, self.gaps[0]):
            T = gap.left(T)
        return T

    def after(self, T: Scalar, direction: Scalar) -> Scalar:
        """A time after T: the first that is possible, or the end of a gap of velocities before it.

        Args:
            T: a time outside all gaps [s].
            direction: 1 if the target is too far for T, −1 if it is too near; else T is given back.
        """
        furthest = Furthest(self.task.mirrored(direction < 0.0))
        closed = abs(direction) < 1.5
        end = minimum(self.gaps[0].next(T), self.gaps[1].next(T))
        turn = _slope_turns(furthest)
        from_left = _newton_from_left(furthest, self.precision.unit, closed, T, minimum(turn, end))
        start = maximum(T, turn)
        unknown = closed & (from_left >= INFINITE) & (start < end)
        reached = minimum(from_left, _in_bracket(furthest, self.precision.unit, unknown, start, end))
        past = end
        for gap in (*self.gaps, self.gaps[0]):
            past = where((past >= gap.begin) & (past < gap.end), gap.end, past)
        return where(closed, where(reached < INFINITE, reached, past), T)


def _slope_turns(furthest: Furthest) -> Scalar:
    """The time up to which the slope of the furthest distance falls; it rises from then on."""
    task, K = furthest.task, furthest.K
    limit = where(K > 0.0, task.highest_acceleration, -task.lowest_acceleration)
    size, square = abs(K), limit * limit
    free = sqrt(size * (1.0 / math.sqrt(3.0)))
    border = limit - sqrt(maximum(square - size, 0.0))
    held = (0.5625 * square + size) / (2.0 * limit)
    ratio = 2.0 / (1.0 + math.sqrt(3.0))
    W = where(size >= 0.9375 * square, held, where(border >= ratio * limit, border, free))
    return (2.0 * W - task.a0 + task.af) * furthest.per_jerk


def _newton_from_left(furthest: Furthest, unit: float, active: Condition, T: Scalar, end: Scalar) -> Scalar:
    """The first root before ``end``, where the distance is concave; INFINITE if there is none."""
    task = furthest.task

    def going(count: Scalar, t: Scalar, root: Scalar, on: Scalar) -> Condition:
        return (on > 0.0) & (count < MOST_STEPS)

    def body(count: Scalar, t: Scalar, root: Scalar, on: Scalar) -> tuple[Scalar, ...]:
        motion = furthest.in_time(t)
        short = task.distance - motion.distance
        there = short <= unit * (motion.rounding + task.rounding)
        rises = motion.slope > 0.0
        new = t + short / where(rises, motion.slope, 1.0)
        stays = new <= t
        root = where(there | (rises & stays), t, root)
        on = where(there | stays | (motion.slope <= 0.0) | (new > end), 0.0, 1.0)
        return count + 1.0, new, root, on

    on = where(active & (end > T), 1.0, 0.0)
    return while_loop(going, body, (0.0 * T, T, 0.0 * T + INFINITE, on))[2]


def _in_bracket(furthest: Furthest, unit: float, active: Condition, begin: Scalar, end: Scalar) -> Scalar:
    """The root between ``begin`` and ``end``, where the distance is convex, and straight from the time on at which the
    speed is at its limit; INFINITE if there is none."""
    task = furthest.task
    cruise = maximum(furthest.cruise_from, begin)
    high = minimum(cruise, end)
    at_high = furthest.in_time(high)
    left = task.distance - at_high.distance
    straight = high + left / task.highest_velocity
    beyond = left > 0.0
    rounding = 4.0 * unit * (at_high.rounding + task.rounding)
    exists = active & ((left <= rounding) | ((cruise <= end) & (straight <= end)))
    searched = where(exists & negated(beyond), 1.0, 0.0)

    def first(on: Scalar, guess: Scalar) -> tuple[Scalar, ...]:
        at_begin = furthest.in_time(begin)
        lifted = at_high.distance - at_begin.distance
        ratio = (task.distance - at_begin.distance) / where(lifted > 0.0, lifted, 1.0)
        root = sqrt(sqrt(minimum(maximum(ratio, 0.0), 1.0)))
        return 0.0 * on, begin + (high - begin) * (root * sqrt(root))

    guess = while_loop(lambda on, guess: on > 0.0, first, (searched, high))[1]

    def going(count: Scalar, t: Scalar, low: Scalar, high: Scalar, on: Scalar) -> Condition:
        return (on > 0.0) & (count < MOST_STEPS)

    def body(count: Scalar, t: Scalar, low: Scalar, high: Scalar, on: Scalar) -> tuple[Scalar, ...]:
        motion = furthest.in_time(t)
        excess = motion.distance - task.distance
        enough = excess >= 0.0
        low, high = where(enough, low, t), where(enough, t, high)
        new = t - excess / where(motion.slope > 0.0, motion.slope, 1.0)
        inside = (new > low) & (new < high) & (motion.slope > 0.0)
        close = abs(excess) <= unit * (motion.rounding + task.rounding)
        middle = 0.5 * (low + high)
        new = where(inside, new, middle)
        done = close | (high - low <= unit * high)
        return count + 1.0, where(done, t, new), low, where(close, t, high), where(done, 0.0, 1.0)

    root = while_loop(going, body, (0.0 * begin, guess, begin, high, searched))[3]
    return where(exists, where(beyond & (cruise <= end), straight, root), INFINITE)
