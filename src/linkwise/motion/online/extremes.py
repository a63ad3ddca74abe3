"""The furthest a joint gets in a given time under limits of velocity, acceleration and jerk, in closed form.

A joint goes from (v0, a0) to (vf, af) in a time T. Its limits are convex and it is linear, so the distances that it can
cover in T are an interval, and every distance between its ends is reached by a mixture of the motions at the two ends.
The motion at the upper end raises the acceleration from a0 to a peak, lowers it to a valley, and raises it to af; it
holds the peak and the valley at the limits of acceleration, and the speed at the limit of velocity. The lower end is
that of the joint seen in a mirror.

With the fall of the acceleration W = peak − valley and K = J(vf − v0) + (a0² − af²)/2, and without holds,

    J T = 2 W − a0 + af          (peak + valley) W = K

so peak and valley follow from T without an iteration; one hold makes the equation for the other quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkwise.scalar import Condition, Scalar, maximum, minimum, sqrt, where


@dataclass(frozen=True)
class Task:
    """What one joint has to do: both ends of its motion, and its limits."""

    distance: Scalar  # [rad or m]
    rounding: Scalar  # [rad or m]: error of the distance
    v0: Scalar
    a0: Scalar
    vf: Scalar
    af: Scalar
    highest_velocity: Scalar
    lowest_velocity: Scalar
    highest_acceleration: Scalar
    lowest_acceleration: Scalar
    jerk: Scalar

    def mirrored(self, mirror: Condition) -> Task:
        """The joint seen in a mirror where the condition holds."""

        def turned(x: Scalar) -> Scalar:
            return where(mirror, -x, x)

        return Task(
            turned(self.distance),
            self.rounding,
            turned(self.v0),
            turned(self.a0),
            turned(self.vf),
            turned(self.af),
            where(mirror, -self.lowest_velocity, self.highest_velocity),
            where(mirror, -self.highest_velocity, self.lowest_velocity),
            where(mirror, -self.lowest_acceleration, self.highest_acceleration),
            where(mirror, -self.highest_acceleration, self.lowest_acceleration),
            self.jerk,
        )


@dataclass(frozen=True)
class Motion:
    """Seven phases of constant jerk: J, 0, −J, 0, −J, 0, J; where they end, and how that changes with the time."""

    durations: tuple[Scalar, ...]  # [s]
    distance: Scalar  # [rad or m]
    slope: Scalar  # [rad/s or m/s]: derivative of the distance by the time
    rounding: Scalar  # [rad or m]: sum of the sizes of the parts


class Furthest:
    """The furthest motion of a task as a function of its time.

    Args:
        task: the joint, after braking: its velocity stays within the limits if the acceleration is brought to zero.
    """

    def __init__(self, task: Task):
        self.task = task
        jerk, a0, af = task.jerk, task.a0, task.af
        self.per_jerk = 1.0 / jerk
        half = 0.5 * (a0 * a0 - af * af)
        self.K = jerk * (task.vf - task.v0) + half
        highest, lowest, top = task.highest_acceleration, task.lowest_acceleration, task.highest_velocity
        self.per_range = 1.0 / (highest - lowest)
        # with the speed at its limit: peak and valley do not depend on the time
        up = jerk * (top - task.v0) + 0.5 * a0 * a0
        down = jerk * (top - task.vf) + 0.5 * af * af
        peak, valley = sqrt(maximum(up, 0.0)), -sqrt(maximum(down, 0.0))
        self.cruise_peak, self.cruise_valley = minimum(peak, highest), maximum(valley, lowest)
        self.cruise_high = where(peak > highest, (up - highest * highest) / (jerk * highest), 0.0)
        self.cruise_low = where(valley < lowest, (lowest * lowest - down) / (jerk * lowest), 0.0)
        turns = 2.0 * (self.cruise_peak - self.cruise_valley) - a0 + af
        self.cruise_from = turns * self.per_jerk + (self.cruise_high + self.cruise_low)
        """The time [s] from which on the speed is held at its limit."""

    def in_time(self, T: Scalar) -> Motion:
        """The motion that takes T [s]."""
        task, per_jerk, K = self.task, self.per_jerk, self.K
        highest, lowest = task.highest_acceleration, task.lowest_acceleration
        W = 0.5 * (task.jerk * T + (task.a0 - task.af))
        mean = K / where(W > 0.0, W, 1.0)
        peak, valley = 0.5 * (mean + W), 0.5 * (mean - W)
        above, below = peak > highest, valley < lowest
        beside_high = highest - sqrt(maximum(2.0 * highest * W - K, 0.0))
        beside_low = lowest + sqrt(maximum(K - 2.0 * lowest * W, 0.0))
        only_low = below & (beside_low <= highest)
        clipped = above | below
        peak = where(only_low, beside_low, where(clipped, highest, peak))
        valley = where(only_low, lowest, where(clipped, maximum(beside_high, lowest), valley))
        held = where(clipped, 2.0 * maximum(W - (peak - valley), 0.0) * per_jerk, 0.0)
        gained = (K - (peak - valley) * (peak + valley)) * per_jerk
        share = minimum(maximum((gained - lowest * held) * self.per_range, 0.0), held)
        high = where(valley > lowest, held, where(peak < highest, 0.0, share))
        low = held - high
        cruises = self.cruise_from < T
        peak, valley = where(cruises, self.cruise_peak, peak), where(cruises, self.cruise_valley, valley)
        high, low = where(cruises, self.cruise_high, high), where(cruises, self.cruise_low, low)
        cruise = where(cruises, T - self.cruise_from, 0.0)
        return self._integrated(peak, valley, high, low, cruise, cruises)

    def _integrated(
        self, peak: Scalar, valley: Scalar, high: Scalar, low: Scalar, cruise: Scalar, cruises: Condition
    ) -> Motion:
        """The motion with this peak and valley of the acceleration, held so long."""
        task, per_jerk = self.task, self.per_jerk
        middle = where(cruises, 0.0, valley)  # of the falling acceleration, where the speed is held
        parts: list[Scalar] = []
        v = task.v0

        def ramp(a: Any, b: Any, time: Any, v: Any) -> Any:
            parts.append(time * (v + time * ((a + a + b) * (1.0 / 6.0))))
            return v + 0.5 * (a + b) * time

        def hold(a: Any, time: Any, v: Any) -> Any:
            parts.append(time * (v + 0.5 * a * time))
            return v + a * time

        rise, fall = (peak - task.a0) * per_jerk, (peak - middle) * per_jerk
        further, back = (middle - valley) * per_jerk, (task.af - valley) * per_jerk
        v = ramp(task.a0, peak, rise, v)
        v = before_fall = hold(peak, high, v)
        v = ramp(peak, middle, fall, v)
        parts.append(cruise * v)
        v = ramp(middle, valley, further, v)
        v = hold(valley, low, v)
        ramp(valley, task.af, back, v)
        slope = before_fall + 0.5 * per_jerk * peak * (peak - valley)
        slope = where(cruises, task.highest_velocity, slope)
        distance, size = parts[0], abs(parts[0])
        for part in parts[1:]:
            distance, size = distance + part, size + abs(part)
        return Motion((rise, high, fall, cruise, further, low, back), distance, slope, size)
