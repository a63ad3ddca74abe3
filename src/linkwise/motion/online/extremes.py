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

from dataclasses import dataclass, field
from typing import Any

from linkwise.scalar import Condition, Scalar, maximum, minimum, sqrt, summed, where


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
    # of the jerk, the highest and the lowest acceleration
    reciprocals: tuple[Scalar, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not self.reciprocals:
            divisors = (self.jerk, self.highest_acceleration, self.lowest_acceleration)
            object.__setattr__(self, "reciprocals", tuple(1.0 / x for x in divisors))

    def mirrored(self, mirror: Condition) -> Task:
        """The joint seen in a mirror where the condition holds."""

        def turned(x: Scalar) -> Scalar:
            return where(mirror, -x, x)

        per_jerk, per_highest, per_lowest = self.reciprocals
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
            reciprocals=(
                per_jerk,
                where(mirror, -per_lowest, per_highest),
                where(mirror, -per_highest, per_lowest),
            ),
        )


@dataclass(frozen=True)
class Motion:
    """Seven phases of constant jerk: J, 0, −J, 0, −J, 0, J, and where they end."""

    durations: tuple[Scalar, ...]  # [s]
    distance: Scalar  # [rad or m]
    rounding: Scalar  # [rad or m]: sum of the sizes of the parts


@dataclass(frozen=True)
class Reached:
    """Where a motion ends."""

    distance: Scalar  # [rad or m]
    slope: Scalar  # [rad/s or m/s]: derivative of the distance by the time
    rounding: Scalar  # [rad or m]: sum of the sizes of the parts


@dataclass(frozen=True)
class Furthest:
    """The furthest motion of a task as a function of its time."""

    task: Task
    """After braking: its velocity stays within the limits if the acceleration is brought to zero."""
    K: Scalar
    per_range: Scalar  # 1 / (highest − lowest acceleration)
    cruise_from: Scalar
    """The time [s] from which on the speed is held at its limit."""
    cruise: tuple[Scalar, Scalar, Scalar, Scalar]
    """From then on: peak and valley of the acceleration, and how long they are held [s]."""

    @classmethod
    def of(cls, task: Task) -> Furthest:
        """The furthest motion of a task."""
        jerk, a0, af = task.jerk, task.a0, task.af
        highest, lowest, top = task.highest_acceleration, task.lowest_acceleration, task.highest_velocity
        per_jerk, per_highest, per_lowest = task.reciprocals
        up = jerk * (top - task.v0) + 0.5 * a0 * a0
        down = jerk * (top - task.vf) + 0.5 * af * af
        needed_peak, needed_valley = sqrt(maximum(up, 0.0)), -sqrt(maximum(down, 0.0))
        peak, valley = minimum(needed_peak, highest), maximum(needed_valley, lowest)
        high = where(needed_peak > highest, (up * per_highest - highest) * per_jerk, 0.0)
        low = where(needed_valley < lowest, (lowest - down * per_lowest) * per_jerk, 0.0)
        turns = 2.0 * (peak - valley) - a0 + af
        return cls(
            task,
            jerk * (task.vf - task.v0) + 0.5 * (a0 * a0 - af * af),
            1.0 / (highest - lowest),
            turns * per_jerk + (high + low),
            (peak, valley, high, low),
        )

    def or_mirrored(self, mirror: Condition, mirrored: Furthest) -> Furthest:
        """This one, or where the condition holds the one of the joint seen in a mirror."""

        def either(a: Scalar, b: Scalar) -> Scalar:
            return where(mirror, b, a)

        return Furthest(
            self.task.mirrored(mirror),
            either(self.K, mirrored.K),
            self.per_range,
            either(self.cruise_from, mirrored.cruise_from),
            tuple(map(either, self.cruise, mirrored.cruise)),  # type: ignore[arg-type]
        )

    def reached(self, T: Scalar) -> Reached:
        """Where the motion that takes T [s] ends, and how that changes with T."""
        task, per_jerk = self.task, self.task.reciprocals[0]
        cruises = self.cruise_from < T
        cruise = where(cruises, T - self.cruise_from, 0.0)
        peak, valley, high, low = self._turning(where(cruises, self.cruise_from, T))
        fall = (peak - valley) * per_jerk
        rising, v = _ramp(task.a0, peak, (peak - task.a0) * per_jerk, task.v0)
        on_top, before_fall = _hold(peak, high, v)
        falling, v = _ramp(peak, valley, fall, before_fall)
        below, v = _hold(valley, low, v)
        back, _ = _ramp(valley, task.af, (task.af - valley) * per_jerk, v)
        parts = (rising, on_top, falling, cruise * task.highest_velocity, below, back)
        slope = where(cruises, task.highest_velocity, before_fall + 0.5 * peak * fall)
        return Reached(summed(parts), slope, summed([abs(part) for part in parts]))

    def in_time(self, T: Scalar) -> Motion:
        """The motion that takes T [s]."""
        task, per_jerk = self.task, self.task.reciprocals[0]
        cruises = self.cruise_from < T
        pairs = zip(self.cruise, self._turning(T), strict=True)
        peak, valley, high, low = (where(cruises, a, b) for a, b in pairs)
        cruise = where(cruises, T - self.cruise_from, 0.0)
        middle = where(cruises, 0.0, valley)  # of the falling acceleration, where the speed is held
        rise, fall = (peak - task.a0) * per_jerk, (peak - middle) * per_jerk
        further, back = (middle - valley) * per_jerk, (task.af - valley) * per_jerk
        first, v = _ramp(task.a0, peak, rise, task.v0)
        second, v = _hold(peak, high, v)
        third, v = _ramp(peak, middle, fall, v)
        fourth = cruise * v
        fifth, v = _ramp(middle, valley, further, v)
        sixth, v = _hold(valley, low, v)
        seventh, _ = _ramp(valley, task.af, back, v)
        parts = (first, second, third, fourth, fifth, sixth, seventh)
        durations = (rise, high, fall, cruise, further, low, back)
        return Motion(durations, summed(parts), summed([abs(part) for part in parts]))

    def _turning(self, T: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Peak and valley of the acceleration, and how long they are held, without a limit of velocity."""
        task, per_jerk, K = self.task, self.task.reciprocals[0], self.K
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
        return peak, valley, high, held - high


def _ramp(a: Any, b: Any, time: Any, v: Any) -> tuple[Any, Any]:
    """Distance and last velocity of a phase in which the acceleration goes from a to b."""
    return time * (v + time * ((a + a + b) * (1.0 / 6.0))), v + 0.5 * (a + b) * time


def _hold(a: Any, time: Any, v: Any) -> tuple[Any, Any]:
    """The same for a phase of constant acceleration."""
    return time * (v + 0.5 * a * time), v + a * time
