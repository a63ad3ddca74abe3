"""The numbers that sliders set, and the positions of the robot for them.

A joint with one coordinate has one; a ball joint has three turns (roll, pitch, yaw about fixed axes, in this order), a
floating joint three lengths and three turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwise.model.joint import Joint
from linkwise.robot.robot import Robot

TURN, SLIDE = math.pi, 1.0  # ranges of joints without limits [rad], [m]
_TURNS = ("roll", "pitch", "yaw")


@dataclass(frozen=True)
class Dial:
    """One slider: an angle [rad] or a length [m] within a range."""

    name: str
    joint: Joint
    revolute: bool
    lower: float
    upper: float

    @property
    def unit(self) -> float:
        """Degrees or millimetres per radian or metre."""
        return 180.0 / math.pi if self.revolute else 1000.0

    @property
    def shown(self) -> tuple[float, float]:
        """The range as it is shown [° or mm], to a tenth as in the file: 360, where 6.2832 rad are 360.001°."""
        low, high = (round(bound * self.unit, 1) + 0.0 for bound in (self.lower, self.upper))
        return low, max(high, low + 0.1)

    def inside(self, value: float) -> float:
        """An angle or a length within the range itself, which ``shown`` may exceed by its rounding."""
        return min(max(value, self.lower), self.upper)

    @property
    def symbol(self) -> str:
        """Of the unit that sliders show."""
        return "°" if self.revolute else "mm"


def dials_of(robot: Robot) -> list[Dial]:
    """The sliders of a robot, joint by joint."""
    dials = []
    for joint in robot.coordinate_joints:
        if not joint.free:
            lower = _bound(joint.limits.lower, -1.0, joint.turns)
            upper = max(_bound(joint.limits.upper, 1.0, joint.turns), lower + 1e-6)
            dials.append(Dial(joint.name, joint, joint.turns, lower, upper))
            continue
        if joint.type == "floating":
            dials += [Dial(f"{joint.name} {axis}", joint, False, -SLIDE, SLIDE) for axis in "xyz"]
        dials += [
            Dial(f"{joint.name} {turn}", joint, True, -reach, reach)
            for turn, reach in zip(_TURNS, (TURN, TURN / 2, TURN), strict=True)
        ]
    return dials


def _bound(limit: float, sign: float, revolute: bool) -> float:
    if math.isfinite(limit) and (not revolute or abs(limit) <= 4 * math.pi):
        return limit
    return sign * (TURN if revolute else SLIDE)


def positions(robot: Robot, values: np.ndarray) -> np.ndarray:
    """q (..., nq) of sliders at these values (..., sliders)."""
    parts, at = [], 0
    for joint in robot.coordinate_joints:
        if joint.free:
            lengths = joint.nq - 4
            parts.append(values[..., at : at + lengths])
            parts.append(_quaternions(values[..., at + lengths : at + lengths + 3]))
            at += lengths + 3
        else:
            parts.append(values[..., at : at + 1])
            at += 1
    return np.concatenate(parts or [values[..., :0]], axis=-1)


def values_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Where the sliders stand at a position q (nq,)."""
    parts, at = [], 0
    for joint in robot.coordinate_joints:
        own = q[at : at + joint.nq]
        parts += [own[:-4], _turns(own[-4:])] if joint.free else [own]
        at += joint.nq
    return np.concatenate(parts or [q])


def _quaternions(turns: np.ndarray) -> np.ndarray:
    """(x, y, z, w) of roll, pitch and yaw, (..., 3) to (..., 4)."""
    (cr, cp, cy), (sr, sp, sy) = (np.moveaxis(f(0.5 * turns), -1, 0) for f in (np.cos, np.sin))
    return np.stack(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ],
        axis=-1,
    )


def _turns(quaternion: np.ndarray) -> np.ndarray:
    """Roll, pitch and yaw of (x, y, z, w)."""
    x, y, z, w = quaternion / np.linalg.norm(quaternion)
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = math.asin(min(1.0, max(-1.0, 2 * (w * y - z * x))))
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return np.array([roll, pitch, yaw])
