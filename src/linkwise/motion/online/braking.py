"""Braking: what a joint does first that starts beyond a limit, or that cannot help passing one.

The acceleration falls (in a mirror: rises) with full jerk until it is within its limits, and further, down to its lower
limit, until the velocity is within its own. Where that would carry it past the opposite limit of velocity, it turns
with full jerk as late as it can. From then on the joint keeps its limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.motion.online.extremes import Task
from linkwise.scalar import Condition, Scalar, maximum, minimum, negated, sqrt, where

SLACK = 1e-12  # relative: a state this little beyond a limit does not brake


@dataclass(frozen=True)
class Braking:
    """Three phases of constant jerk, the second one without, and the state after them."""

    durations: tuple[Scalar, Scalar, Scalar]  # [s]
    jerks: tuple[Scalar, Scalar, Scalar]

    distance: Scalar  # [rad or m]
    velocity: Scalar
    acceleration: Scalar


def braking(task: Task) -> Braking:
    """The phases before a joint keeps its limits; of length zero where it keeps them from the start."""
    hard, high = _beyond(task)
    hard_below, low = _beyond(task.mirrored(True))
    mirror = negated(hard) & (hard_below | (negated(high) & low))
    brakes = hard | hard_below | high | low
    seen = task.mirrored(mirror)
    first, second = _upper(seen)
    first, second = where(brakes, maximum(first, 0.0), 0.0), where(brakes, maximum(second, 0.0), 0.0)
    jerk = where(brakes, where(mirror, task.jerk, -task.jerk), 0.0)
    distance, v, a = advanced(0.0 * task.v0, task.v0, task.a0, jerk, first)
    distance, v, a = advanced(distance, v, a, 0.0, second)
    at_limit = maximum(minimum(a, task.highest_acceleration), task.lowest_acceleration)
    a = where(brakes, at_limit, a)
    above, below = (
        brakes & (v > task.highest_velocity) & (a < 0.0),
        brakes & (v < task.lowest_velocity) & (a > 0.0),
    )
    excess = where(above, v - task.highest_velocity, task.lowest_velocity - v)
    size = abs(a)
    turn = (size - sqrt(maximum(size * size - 2.0 * task.jerk * excess, 0.0))) * task.reciprocals[0]
    third = where(above | below, turn, 0.0)
    back = where(above, task.jerk, where(below, -task.jerk, 0.0))
    distance, v, a = advanced(distance, v, a, back, third)
    return Braking((first, second, third), (jerk, 0.0 * jerk, back), distance, v, a)


def advanced(p: Scalar, v: Scalar, a: Scalar, jerk: Scalar, time: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Position, velocity and acceleration after a phase of constant jerk."""
    return (
        p + time * (v + time * (0.5 * a + time * (jerk * (1.0 / 6.0)))),
        v + time * (a + time * (0.5 * jerk)),
        a + time * jerk,
    )


def _beyond(task: Task) -> tuple[Condition, Condition]:
    """Whether the acceleration is too high, and whether the velocity is or will be."""
    v, a, top = task.v0, task.a0, task.highest_velocity
    turn = 0.5 * a * a * task.reciprocals[0]
    slack = SLACK * (abs(v) + turn + abs(top))
    is_above = (v > top + slack) & (v - turn > task.lowest_velocity)
    will_be = (a > 0.0) & (v + turn > top + slack)
    highest = task.highest_acceleration
    return a > highest + SLACK * abs(highest), is_above | will_be


def _upper(task: Task) -> tuple[Scalar, Scalar]:
    """Durations of both phases of a joint that is beyond its upper limits, with jerk −J."""
    v, a, jerk = task.v0, task.a0, task.jerk
    per_jerk, per_highest, per_lowest = task.reciprocals
    highest, lowest, top, bottom = (
        task.highest_acceleration,
        task.lowest_acceleration,
        task.highest_velocity,
        task.lowest_velocity,
    )
    # the velocity: lower the acceleration until v is at its limit, at most until it would pass the other one
    to_top = (a + sqrt(maximum(a * a + 2.0 * jerk * (v - top), 0.0))) * per_jerk
    to_bottom = (a + sqrt(maximum(0.5 * a * a + jerk * (v - bottom), 0.0))) * per_jerk
    # divided: a rounding of this time is one of the acceleration that is held next
    to_lowest = (a - lowest) / jerk
    ramp = minimum(minimum(to_top, to_bottom), to_lowest)
    _, there, _ = advanced(0.0, v, a, -jerk, to_lowest)
    hold = minimum((top - there) * per_lowest, (bottom - there) * per_lowest + 0.5 * lowest * per_jerk)
    hold = where(to_lowest <= ramp, hold, 0.0)
    # the acceleration: lower it to its limit, and hold it there while the velocity is too low
    to_highest = (a - highest) / jerk
    _, then, _ = advanced(0.0, v, a, -jerk, to_highest)
    wait = minimum((bottom - then) * per_highest, (top - then) * per_highest - 0.5 * highest * per_jerk)
    only = (a > highest) & (v + 0.5 * a * a * per_jerk <= top)
    return where(only, to_highest, ramp), where(only, wait, hold)
