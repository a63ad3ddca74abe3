"""Online moves of one joint over scalars: possible durations, the plan for one, and the state at a time of it.

A plan has two tracks: ten phases of constant jerk each, of which the first three brake. Its motion is the
weighted mean of both tracks, so it keeps every limit that both keep. Joints that move together have the same duration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from linkwise.motion.online.braking import Braking, advanced, braking
from linkwise.motion.online.earliest import DOUBLE, Earliest, Precision
from linkwise.motion.online.extremes import Motion, Task
from linkwise.scalar import Condition, Scalar, maximum, minimum, negated, where, while_loop

PHASES = 10
MOST_PASSES = 12.0  # through intervals of impossible durations; there are at most four
_CRUISE = 6  # the phase of constant speed
_JERKS = (1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0)
_LARGEST = 1e30  # of all numbers of a task
_UNREACHED = 1e3  # times the noise: what may be left of a distance

Scalars = list[Scalar]


@dataclass(frozen=True)
class JointPlan:
    """Two tracks of one joint, and the weight of the first."""

    durations: tuple[Scalars, Scalars]
    jerks: tuple[Scalars, Scalars]
    weight: Scalar
    fault: Condition


class _Joint:
    """A joint with its braking, the task that remains, and the times at which it can be done."""

    def __init__(self, task: Task, precision: Precision):
        self.given = task
        self.brake: Braking = braking(task)
        rest = replace(
            task,
            distance=task.distance - self.brake.distance,
            rounding=task.rounding + abs(self.brake.distance),
            v0=self.brake.velocity,
            a0=self.brake.acceleration,
        )
        first, second, third = self.brake.durations
        self.braking_time = first + second + third
        self.times = Earliest(rest, precision)
        self.first = self.times.first + self.braking_time

    def direction(self, T: Scalar) -> Scalar:
        """1 or −1 where the target is too far or too near for the first time from T on that has the velocity of the
        target; 0 where it is not; 2 where that time is later than T."""
        t = T - self.braking_time
        there = self.times.past_gaps(t)
        short, beyond = self.times.off(there)
        return where(short > 0.0, 1.0, where(beyond > 0.0, -1.0, where(there > t, 2.0, 0.0)))

    def following(self, T: Scalar, direction: Scalar) -> Scalar:
        """A later time that may be possible, if T is not."""
        t = self.times.past_gaps(T - self.braking_time)
        later = self.times.after(t, direction) + self.braking_time
        return where(abs(direction) > 0.5, later, T)

    def plan(self, T: Scalar) -> JointPlan:
        """Both tracks for a duration T [s]."""
        t = T - self.braking_time
        task = self.times.task
        up, down = self.times.up.in_time(t), self.times.down.in_time(t)
        furthest, nearest = up.distance, -down.distance
        between = furthest - nearest
        weight = (task.distance - nearest) / where(between > 0.0, between, 1.0)
        size = maximum(up.rounding, down.rounding) + task.rounding
        missed = maximum(task.distance - furthest, nearest - task.distance)
        slack = _UNREACHED * self.times.precision.noise
        early = maximum(self.times.past_gaps(t), self.times.first) > t + slack * abs(t)
        fault = negated(missed <= slack * size) | early | negated(_is_valid(self.given))
        jerk = task.jerk
        return JointPlan(
            (self._durations(up), self._durations(down)),
            (self._jerks(jerk), self._jerks(-jerk)),
            minimum(maximum(where(between > 0.0, weight, 1.0), 0.0), 1.0),
            fault,
        )

    def _durations(self, motion: Motion) -> Scalars:
        return [*self.brake.durations, *(maximum(d, 0.0) for d in motion.durations)]

    def _jerks(self, jerk: Scalar) -> Scalars:
        return [*self.brake.jerks, *(s * jerk for s in _JERKS)]


def _is_valid(task: Task) -> Condition:
    """Whether the limits are limits, and the target can be reached without passing one."""
    vf, af = task.vf, task.af
    turn = 0.5 * af * af * task.reciprocals[0]
    slack = 1e-12 * (abs(vf) + turn)
    highest = where(af < 0.0, vf + turn, vf)
    lowest = where(af > 0.0, vf - turn, vf)
    sizes = (task.v0, task.a0, task.distance, task.highest_velocity, task.lowest_velocity)
    sizes = (*sizes, task.highest_acceleration, task.lowest_acceleration, task.jerk, task.vf, task.af)
    state = abs(sizes[0])
    for size in sizes[1:]:
        state = state + abs(size)
    return (
        (task.jerk > 0.0)
        & (task.highest_acceleration > 0.0)
        & (task.lowest_acceleration < 0.0)
        & (task.highest_velocity > 0.0)
        & (task.lowest_velocity < 0.0)
        & (af <= task.highest_acceleration)
        & (af >= task.lowest_acceleration)
        & (highest <= task.highest_velocity + slack)
        & (lowest >= task.lowest_velocity - slack)
        & (state < _LARGEST)
    )


def earliest(task: Task, shortest: Scalar, precision: Precision = DOUBLE) -> Scalar:
    """The first duration that is possible [s], ``shortest`` or later; NaN if a number of the task is.

    Args:
        task: of the joint.
        shortest: shortest duration [s].
        precision: of the arithmetic.
    """
    joint = _Joint(task, precision)

    def active(count: Scalar, T: Scalar, direction: Scalar) -> Condition:
        return (abs(direction) > 0.5) & (count < MOST_PASSES)

    def body(count: Scalar, T: Scalar, direction: Scalar) -> tuple[Scalar, ...]:
        new = joint.following(T, direction)
        return count + 1.0, new, joint.direction(new)

    T = maximum(shortest, joint.first)
    return while_loop(active, body, (0.0 * T, T, joint.direction(T)))[1]


def tracks(task: Task, duration: Scalar, precision: Precision = DOUBLE) -> JointPlan:
    """Both tracks of a joint for a possible duration.

    Args:
        task: of the joint.
        duration: [s].
        precision: of the arithmetic.
    """
    return _Joint(task, precision).plan(duration)


def sampled(
    time: Scalar, start: tuple[Scalar, Scalar, Scalar], plan: tuple[Any, Any, Scalar]
) -> tuple[Scalar, Scalar, Scalar]:
    """Position, velocity and acceleration of one joint at a time of its plan [s]; its last acceleration goes on after.

    Args:
        time: from the start of the plan [s].
        start: position, velocity and acceleration at the start.
        plan: durations of both tracks, their jerks, and the weight of the first track.
    """
    durations, jerks, weight = plan
    tracks: list[tuple[Scalar, Scalar, Scalar]] = []
    for k in range(2):
        p, v, a, left = 0.0 * start[0], start[1], start[2], time
        for phase, (duration, jerk) in enumerate(zip(durations[k], jerks[k], strict=True)):
            part = maximum(minimum(left, duration), 0.0)
            if phase == _CRUISE:  # long, so that rounding of the acceleration before it counts
                a = where(part > 0.0, 0.0, a)
            p, v, a = advanced(p, v, a, jerk, part)
            left = left - part
        tracks.append(advanced(p, v, a, 0.0 * v, maximum(left, 0.0)))
    first, second = tracks
    mixed = [b + weight * (a - b) for a, b in zip(first, second, strict=True)]
    return start[0] + mixed[0], mixed[1], mixed[2]
