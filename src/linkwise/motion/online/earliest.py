"""The earliest time at which a joint can be at its target, from a given time on.

A time is possible if the target lies between the nearest and the furthest distance that the joint can cover in it
(``extremes``). Times that are not possible are intervals: those in which the velocity cannot be reached, in closed
form, and those in which the target is too near or too far. The end of such an interval is a root of the furthest
distance (in a mirror, if the target is too near). Its slope falls up to a time that is known in closed form, and
rises from then on until the speed is at its limit, where the distance is a straight line. So it is known on which side
of that time the root lies; there the cubic through both ends is a good guess, and each step goes to the root of a
parabola, with a curvature from the step before.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from linkwise.motion.online.extremes import Furthest, Reached, Task
from linkwise.scalar import Condition, Scalar, maximum, minimum, negated, sqrt, where, while_loop
from linkwise.solve.limited import within


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
        per_jerk, per_top, _ = task.reciprocals
        peak, both = sqrt(maximum(square, 0.0)), a0 + af
        exists = square > 0.0
        size = jerk * (abs(task.vf) + abs(task.v0)) + (a0 * a0 + af * af)
        inside = sqrt(maximum(square - noise * size, 0.0))
        self.begin = where(exists, (-2.0 * inside - both) * per_jerk, -1.0)
        turns = where(peak > top, top + square * per_top, 2.0 * peak)
        self.end = where(exists, (turns - both) * per_jerk, -1.0)

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
        self.up, self.down = Furthest.of(task), Furthest.of(task.mirrored(True))
        self.gaps = (Gap(task, precision.noise), Gap(self.down.task, precision.noise))
        self.first = self.past_gaps(abs(task.af - task.a0) * task.reciprocals[0])
        """The earliest time at which the velocity and acceleration of the target can be reached [s]."""

    def off(self, T: Scalar) -> tuple[Scalar, Scalar]:
        """(how much the furthest distance falls short, how much the nearest one is beyond) more than noise; not
        positive if T is possible."""
        up, down = self.up.reached(T), self.down.reached(T)
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
        furthest = self.up.or_mirrored(direction < 0.0, self.down)
        closed = abs(direction) < 1.5
        end = minimum(self.gaps[0].next(T), self.gaps[1].next(T))
        reached = _root(furthest, self.precision.unit, closed, T, end)
        past = end
        for gap in (*self.gaps, self.gaps[0]):
            past = where((past >= gap.begin) & (past < gap.end), gap.end, past)
        return where(closed, where(reached < INFINITE, reached, past), T)


def _root(furthest: Furthest, unit: float, active: Condition, T: Scalar, end: Scalar) -> Scalar:
    """The first time between T and ``end`` at which the distance is reached; INFINITE if there is none."""
    goal, top = furthest.task.distance, furthest.task.highest_velocity
    cruise = furthest.cruise_from
    middle = maximum(T, minimum(_slope_turns(furthest), end))
    last = minimum(maximum(cruise, middle), end)
    at_middle = furthest.reached(middle)
    is_left = (at_middle.distance >= goal) & (middle > T)
    other = where(is_left, T, last)
    at_other = furthest.reached(other)
    low, at_low = where(is_left, other, middle), _either(is_left, at_other, at_middle)
    high, at_high = where(is_left, middle, other), _either(is_left, at_middle, at_other)
    left = goal - at_high.distance
    beyond = left > 4.0 * unit * (at_high.rounding + furthest.task.rounding)
    straight = high + left / top
    cruises = beyond & (cruise <= end)
    inside = _in_bracket(furthest, unit, active & negated(beyond), (low, at_low), (high, at_high))
    found = where(beyond, where(cruises & (straight <= end), straight, INFINITE), inside)
    turns_back = negated(is_left) & (middle > T) & (at_middle.slope < 0.0)
    before = _newton_from_left(furthest, unit, active & turns_back, T, middle)
    return where(active, minimum(before, found), INFINITE)


def _either(condition: Condition, a: Reached, b: Reached) -> Reached:
    return Reached(
        where(condition, a.distance, b.distance),
        where(condition, a.slope, b.slope),
        where(condition, a.rounding, b.rounding),
    )


def _slope_turns(furthest: Furthest) -> Scalar:
    """The time up to which the slope of the furthest distance falls; it rises from then on."""
    task, K = furthest.task, furthest.K
    per_jerk, per_highest, per_lowest = task.reciprocals
    limit = where(K > 0.0, task.highest_acceleration, -task.lowest_acceleration)
    per_limit = where(K > 0.0, per_highest, -per_lowest)
    size, square = abs(K), limit * limit
    free = sqrt(size * (1.0 / math.sqrt(3.0)))
    border = limit - sqrt(maximum(square - size, 0.0))
    held = (0.5 * per_limit) * (0.5625 * square + size)
    ratio = 2.0 / (1.0 + math.sqrt(3.0))
    W = where(size >= 0.9375 * square, held, where(border >= ratio * limit, border, free))
    return (2.0 * W - task.a0 + task.af) * per_jerk


def _newton_from_left(furthest: Furthest, unit: float, active: Condition, T: Scalar, end: Scalar) -> Scalar:
    """The first root before ``end``, where the distance is concave; INFINITE if there is none."""
    task = furthest.task

    def going(count: Scalar, t: Scalar, root: Scalar, on: Scalar) -> Condition:
        return (on > 0.0) & (count < MOST_STEPS)

    def body(count: Scalar, t: Scalar, root: Scalar, on: Scalar) -> tuple[Scalar, ...]:
        motion = furthest.reached(t)
        short = task.distance - motion.distance
        there = short <= unit * (motion.rounding + task.rounding)
        rises = motion.slope > 0.0
        new = t + short / where(rises, motion.slope, 1.0)
        stays = new <= t
        root = where(there | (rises & stays), t, root)
        on = where(there | stays | (motion.slope <= 0.0) | (new > end), 0.0, 1.0)
        return count + 1.0, new, root, on

    on = where(active, 1.0, 0.0)
    return while_loop(going, body, (0.0 * T, T, 0.0 * T + INFINITE, on))[2]


def _in_bracket(
    furthest: Furthest,
    unit: float,
    active: Condition,
    low: tuple[Scalar, Reached],
    high: tuple[Scalar, Reached],
) -> Scalar:
    """The root between two times, between which the slope only rises or only falls."""
    goal = furthest.task.distance
    (begin, at_begin), (end, at_end) = low, high
    x = _share(end - begin, goal - at_begin.distance, at_begin, at_end)

    def going(count: Scalar, t: Scalar, low: Scalar, high: Scalar, *others: Scalar) -> Condition:
        return (others[-1] > 0.0) & (count < MOST_STEPS)

    def body(
        count: Scalar,
        t: Scalar,
        low: Scalar,
        high: Scalar,
        last: Scalar,
        last_distance: Scalar,
        last_slope: Scalar,
        on: Scalar,
    ) -> tuple[Scalar, ...]:
        there = furthest.reached(t)
        excess = there.distance - goal
        enough = excess >= 0.0
        low, high = where(enough, low, t), where(enough, t, high)
        step = last - t
        per_step = 1.0 / where(abs(step) > 0.0, step, INFINITE)
        curvature = 6.0 * (last_distance - there.distance) * per_step - 4.0 * there.slope - 2.0 * last_slope
        square = there.slope * there.slope - 2.0 * excess * (curvature * per_step)
        divisor = there.slope + sqrt(maximum(square, 0.0))
        new = t - (excess + excess) / where(divisor > 0.0, divisor, 1.0)
        inside = (new >= low) & (new <= high) & (divisor > 0.0)
        new = where(inside, new, 0.5 * (low + high))
        close = abs(new - t) <= unit**0.4 * t
        return (count + 1.0, new, low, high, t, there.distance, there.slope, where(close, 0.0, on))

    on = where(active, 1.0, 0.0)
    at_end_first = x < 0.5
    start = (
        begin + x * (end - begin),
        begin,
        end,
        where(at_end_first, end, begin),
        where(at_end_first, at_end.distance, at_begin.distance),
        where(at_end_first, at_end.slope, at_begin.slope),
        on,
    )
    return while_loop(going, body, (0.0 * begin, *start))[1]


def _share(length: Scalar, wanted: Scalar, begin: Reached, end: Reached) -> Scalar:
    """The share of a length of time in which the cubic with the distances and slopes at both ends has the wanted
    distance, about: a step of Newton's method from the root of a parabola."""
    rate = begin.slope * length
    bend = end.distance - begin.distance - rate
    third = (end.slope - begin.slope) * length - 2.0 * bend
    second = bend - third
    divisor = rate + sqrt(maximum(rate * rate + 4.0 * bend * wanted, 0.0))
    x = within((wanted + wanted) / where(divisor > 0.0, divisor, 1.0), 0.0, 1.0)
    value = ((third * x + second) * x + rate) * x - wanted
    slope = (3.0 * third * x + 2.0 * second) * x + rate
    return within(x - value / where(slope > 0.0, slope, INFINITE), 0.0, 1.0)
