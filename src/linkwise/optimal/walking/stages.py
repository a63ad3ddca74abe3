"""What a walking robot aims at in every stage of its horizon: the trunk's path, footholds, which feet stand. Over any
scalar.

The numbers of a stage follow from a few orders (``orders_of``): the time of the gait, where the trunk's path and the
trunk are, the commanded velocity. So the flags of contacts and all targets are run-time parameters of one program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.optimal.contact_schedule import ACTIVE
from linkwise.optimal.walking.gait import Gait
from linkwise.scalar import Scalar, cos, maximum, minimum, sin, where


def orders_of(feet: int) -> dict[str, int]:
    """Names and sizes of what a plan is made for.

    ``time``: of the first stage in the period of the gait [s]. ``walks``: from when until when the robot walks, seen
    from that stage on [s]; it stands before and after. ``path``, ``trunk``: where the path and the trunk are at that
    time (x, y [m], heading [rad]). ``velocity``: commanded (forward, left [m/s], turning [rad/s]). ``drift``: what the
    footholds are moved by because of the velocity that was not commanded (x, y) [m]. ``feet``: where the feet stand, or
    stood before they began to swing (x, y, z) [m].

    Args:
        feet: their number.
    """
    return {"time": 1, "walks": 2, "path": 3, "trunk": 3, "velocity": 3, "drift": 2, "feet": 3 * feet}


TRUNK, END = "trunk", "end"
"""Names of costs; those of feet have the names of their frames."""
SINK = 0.1
"""Depth below the ground at which a swing ends, in units of its height."""
EARLY = 1e-6  # [s] by which a stage at the end of a swing still counts as one


@dataclass(frozen=True)
class Stages:
    """The robot's part in the targets.

    Args:
        gait: of the robot.
        feet: names of their frames.
        hips: places of the feet beside the trunk while it stands (x, y) [m], (feet, 2).
        stand: positions (nq,) in which it stands on the ground.
        step: of a stage [s].
        height: of the feet above the ground in a swing [m].
        level: of the centres of feet on the ground [m].
        weight: of places of swinging feet [1/m²].
        dof: number of velocity coordinates.
        turning: weight of the orientation of swinging feet [1/rad²]; None: feet like balls.
    """

    gait: Gait
    feet: tuple[str, ...]
    hips: np.ndarray
    stand: np.ndarray
    step: float
    height: float
    level: float
    weight: float
    dof: int
    turning: float | None = None

    def by_name(self, orders: Any) -> dict[str, list[Any]]:
        """Orders, given one after the other, by name.

        Args:
            orders: see ``orders_of``.
        """
        names, first = {}, 0
        for name, count in orders_of(len(self.feet)).items():
            names[name] = [orders[k] for k in range(first, first + count)]
            first += count
        return names

    def parameters(self, stage: Scalar, orders: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
        """Run-time parameters of a stage by name.

        Args:
            stage: its number.
            orders: see ``orders_of``.
        """
        later: Any = self.step * stage
        (time,), (begin, end) = orders["time"], orders["walks"]
        target, velocity = self._trunk(later, orders)
        values = {f"{TRUNK}.target": target, f"{END}.target": target}
        values |= {f"{TRUNK}.velocity": velocity, f"{END}.velocity": velocity}
        flags: list[Scalar] = []
        for number, name in enumerate(self.feet):
            middle = later + 0.5 * self.step
            held: Any = self.gait.held(time + middle, number)
            flags.append(where((middle > begin) & (middle < end), held, 1.0 + 0.0 * held))
            since: Any = self.gait.since_lift_off(time + later - EARLY, number) + EARLY
            before = later - EARLY
            swings: Any = (since < self.gait.swing + 2.0 * EARLY) & (before > begin) & (before < end)
            values[f"{name}.position"] = self._place(number, time, later, since, orders)
            values[f"{name}.position_weight"] = [where(swings, self.weight + 0.0 * since, 0.0 * since)] * 3
            if self.turning is not None:
                values[f"{name}.orientation"] = self.level_turn(later - since + self.gait.swing, orders)
                turning = where(swings, self.turning + 0.0 * since, 0.0 * since)
                values[f"{name}.orientation_weight"] = [turning] * 3
        values[ACTIVE] = flags
        return values

    def _trunk(self, later: Any, orders: Mapping[str, Sequence[Scalar]]) -> tuple[list[Scalar], list[Scalar]]:
        x, y, heading = moved(orders["path"], orders["velocity"], self._walked(later, orders))
        zero = 0.0 * heading
        half = 0.5 * heading
        rest = [float(v) + zero for v in self.stand[7:]]
        begin, end = orders["walks"]
        walks: Any = (later + 0.5 * self.step > begin) & (later < end)
        forward, left, turning = (where(walks, v + zero, zero) for v in orders["velocity"])
        target = [x, y, float(self.stand[2]) + zero, zero, zero, sin(half), cos(half), *rest]
        return target, [zero, zero, turning, forward, left, zero, *[zero] * (self.dof - 6)]

    def _walked(self, later: Any, orders: Mapping[str, Sequence[Scalar]]) -> Any:
        """For how long the robot has walked at a later time, seen from the first stage [s]."""
        begin, end = orders["walks"]
        zero = 0.0 * later
        since, until = maximum(begin, zero), minimum(end, later)
        return maximum(until - since, zero)

    def _place(
        self, number: int, time: Any, later: Any, since: Any, orders: Mapping[str, Sequence[Scalar]]
    ) -> list[Scalar]:
        """Where a swinging foot shall be."""
        down = later - since + self.gait.swing
        goal = self.foothold(number, down, orders)
        # a foot that swings now and once more within the horizon leaves from where it comes down in between
        swings_now: Any = self.gait.since_lift_off(time - EARLY, number)
        again = (swings_now < self.gait.swing) & (since < later - EARLY)
        last = self.foothold(number, down - self.gait.period, orders)
        given: Any = orders["feet"][3 * number : 3 * number + 3]
        start = [where(again, a, b) for a, b in zip(last, given, strict=True)]
        return self.swung(start, goal, since * (1.0 / self.gait.swing))[0]

    def foothold(self, number: int, down: Any, orders: Mapping[str, Sequence[Scalar]]) -> list[Scalar]:
        """Where a foot comes down: so that it stands under its hip in the middle of its time on the ground.

        Args:
            number: of the foot.
            down: time until then [s].
            orders: see ``orders_of``.
        """
        walked = self._walked(down + 0.5 * self.gait.standing, orders)
        x, y, heading = moved(orders["trunk"], orders["velocity"], walked)
        c, s = cos(heading), sin(heading)
        a, b = map(float, self.hips[number])
        dx, dy = orders["drift"]
        return [x + c * a - s * b + dx, y + s * a + c * b + dy, self.level + 0.0 * x]

    def level_turn(self, down: Any, orders: Mapping[str, Sequence[Scalar]]) -> list[Scalar]:
        """Orientation of a sole that comes down: level, with the heading of the trunk, as (x, y, z, w).

        Args:
            down: time until then [s].
            orders: see ``orders_of``.
        """
        walked = self._walked(down + 0.5 * self.gait.standing, orders)
        heading = moved(orders["trunk"], orders["velocity"], walked)[2]
        zero, half = 0.0 * heading, 0.5 * heading
        return [zero, zero, sin(half), cos(half)]

    def swung(
        self, start: Sequence[Any], goal: Sequence[Any], part: Any
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """Place, velocity and acceleration of a foot in a swing [m, m/s, m/s²]: the smoothest polynomial of degree five
        along the ground, and a bump above it that ends ``SINK`` of its height lower, so that the foot meets the ground.

        Args:
            start: where it left the ground.
            goal: where it comes down.
            part: of the swing that has passed, 0 to 1.
        """
        rate = 1.0 / self.gait.swing
        left = 1.0 - part
        along = part * part * part * (10.0 + part * (6.0 * part - 15.0))
        speed = 30.0 * rate * (part * part * left * left)
        pull = 60.0 * rate * rate * (part * left * (1.0 - 2.0 * part))
        s, c = sin(2.0 * math.pi * part), cos(2.0 * math.pi * part)
        turn, sink = 2.0 * math.pi * rate, SINK * self.height
        up = 0.5 * self.height * (1.0 - c) - sink * (part * part * part)
        rise = 0.5 * self.height * turn * s - 3.0 * sink * rate * (part * part)
        lift = 0.5 * self.height * turn * turn * c - 6.0 * sink * rate * rate * part
        way = [b - a for a, b in zip(start, goal, strict=True)]
        place = [a + along * d for a, d in zip(start, way, strict=True)]
        velocity, acceleration = [speed * d for d in way], [pull * d for d in way]
        place[2], velocity[2], acceleration[2] = place[2] + up, velocity[2] + rise, acceleration[2] + lift
        return place, velocity, acceleration


def moved(pose: Sequence[Any], velocity: Sequence[Any], time: Any) -> tuple[Any, Any, Any]:
    """(x, y, heading) after a time with a velocity that turns with the trunk.

    Args:
        pose: x, y [m], heading [rad].
        velocity: forward, left [m/s], turning [rad/s].
        time: [s].
    """
    (x, y, heading), (forward, left, turning) = pose, velocity
    half = 0.5 * turning * time
    square = half * half
    # sin(half)/half, whose series is exact to 1e-9 below 0.1
    small: Any = square < 0.01
    series = 1.0 - square * (1.0 / 6.0) * (1.0 - square * 0.05 * (1.0 - square * (1.0 / 42.0)))
    chord: Any = time * where(small, series, sin(half) / where(small, 1.0, half))
    c, s = cos(heading + half), sin(heading + half)
    return x + chord * (c * forward - s * left), y + chord * (s * forward + c * left), heading + 2.0 * half
