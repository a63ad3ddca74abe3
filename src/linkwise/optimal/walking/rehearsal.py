"""A walk in the contact simulation before the robot takes it: whether it can follow the gait, or falls.

A plan does not say that. Friction cones are penalties in it, so that there is a plan after a push; the whole-body law
keeps them exactly and then cannot follow a plan that needs more friction than there is, as that of a robot whose feet
stand far beside its centre of mass.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.core.products import length, times
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import SimulationWarning
from linkwise.model.contacts import Contact
from linkwise.optimal import arguments

if TYPE_CHECKING:
    from linkwise.optimal.walking.controller import Walking
    from linkwise.robot.robot import Robot

SAMPLE, EVERY = 0.001, 10  # of the whole-body law [s]; samples from one position that is judged to the next
TILTED = math.radians(60.0)
LOW = 0.5
"""Tilt of the trunk, and part of its standing height, beyond which it has fallen."""


@dataclass(frozen=True)
class Rehearsal(Summarised):
    """How a walk in the contact simulation went.

    Args:
        walked: whether the robot did not fall.
        fell: when it fell [s]; NaN where it did not.
        tilt: largest angle between the trunk's vertical and the world's [rad], until it fell.
        height: least height of the trunk, in units of the height in which it stands, until it fell.
        speed: mean velocity over the ground along the commanded direction after the first quarter [m/s].
        failures: plans that were not used.
        plans: plans in all.
        message: the same in words.
    """

    walked: bool
    fell: float
    tilt: float
    height: float
    speed: float
    failures: int
    plans: int
    message: str

    def _summary(self) -> Summary:
        rows = [
            ["result", self.message],
            ["largest tilt", f"{math.degrees(self.tilt):.1f}°"],
            ["least height", f"{self.height:.2f} of the standing height"],
            ["speed", f"{self.speed:.3g} m/s"],
            ["plans not used", f"{self.failures} of {self.plans}"],
        ]
        return Summary("Rehearsal", ("", ""), rows)


def rehearsed(walking: Walking, seconds: float, friction: float | None) -> Rehearsal:
    """See ``Walking.rehearse``.

    Args:
        walking: the controller, which is reset before and after.
        seconds: duration of the walk [s].
        friction: coefficient of the ground; None: that of the contacts, or the one that is counted on.
    """
    from linkwise.simulate import Plant, simulate

    seconds = arguments.number("seconds", seconds, above=walking.begin)
    robot = _on_ground(walking, friction)
    stand = walking.feet.stand
    walking.reset()
    try:
        with warnings.catch_warnings():  # a robot that falls leaves the range of its joints
            warnings.simplefilter("ignore", SimulationWarning)
            run = simulate(Plant(robot), walking, stand, duration=seconds, step=SAMPLE, every=EVERY, q=stand)
        failures, plans = walking.failures, walking.plans
    finally:
        walking.reset()
    return _judged(walking, np.asarray(run.q), failures, plans)


def _on_ground(walking: Walking, friction: float | None) -> Robot:
    """The robot with contacts at its feet."""
    robot, feet = walking.robot, walking.feet
    if friction is not None:
        friction = arguments.number("friction", friction, above=0.0)
    if robot.contacts and friction is None:
        return robot
    given = walking.friction if friction is None else friction
    points: list[Any] = [None] * len(feet.names) if feet.corners is None else list(feet.corners)
    contacts = [
        Contact(name, radius=feet.radius, friction=given)
        if corners is None
        else Contact(name, points=corners.tolist(), radius=feet.radius, friction=given)
        for name, corners in zip(feet.names, points, strict=True)
    ]
    return robot.with_contacts(contacts)


def _judged(walking: Walking, q: np.ndarray, failures: int, plans: int) -> Rehearsal:
    """What positions every ``EVERY`` samples say."""
    tilt = np.arccos(np.clip(1.0 - 2.0 * (q[:, 3] ** 2 + q[:, 4] ** 2), -1.0, 1.0))
    height = q[:, 2] / walking.feet.stand[2]
    down = np.flatnonzero(~((tilt < TILTED) & (height > LOW)))
    stop = int(down[0]) + 1 if down.size else len(q)
    first, last, period = stop // 4, stop - 1, SAMPLE * EVERY
    way = (q[last, :2] - q[first, :2]) / max((last - first) * period, period)
    size = math.hypot(*walking.velocity[:2])
    speed = float(times(way, walking.velocity[:2])) / size if size else length(way)
    fell = period * int(down[0]) if down.size else math.nan
    message = f"it walked for {period * (len(q) - 1):g} s"
    if down.size:
        message = f"it fell after {fell:.2f} s: this gait cannot be followed on this ground"
    return Rehearsal(
        not down.size,
        fell,
        float(tilt[:stop].max()),
        float(height[:stop].min()),
        speed,
        failures,
        plans,
        message,
    )
