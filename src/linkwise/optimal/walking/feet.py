"""Feet of a walking robot: frames at the centres of spheres or points, their radius, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model.coordinates import position_coordinates
from linkwise.model.link import Frame
from linkwise.model.transform import Transform
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class Feet:
    """The robot with a frame at the centre of every foot.

    Args:
        robot: with frames of its feet.
        names: of these frames: front left, front right, rear left, rear right for four feet.
        radius: of the feet [m].
        stand: positions (nq,) in which it stands on the ground z = 0.
        places: centres of the feet in that position [m], (feet, 3).
    """

    robot: Robot
    names: tuple[str, ...]
    radius: float
    stand: np.ndarray
    places: np.ndarray

    @property
    def hips(self) -> np.ndarray:
        """Places of the feet beside the origin of the trunk while it walks (x, y) [m], (feet, 2): those of standing,
        moved so that their middle is below the centre of mass."""
        center = np.asarray(self.robot.center_of_mass(self.stand))[:2]
        return self.places[:, :2] - self.stand[:2] + center - self.places[:, :2].mean(axis=0)


def feet_of(robot: Robot, feet: Sequence[str] | None, stand: Any, radius: float | None) -> Feet:
    """The feet of a robot, which stands in a position with its lowest foot on the ground.

    Args:
        robot: with a floating base.
        feet: frames; None: the spheres that touch the ground, see ``Robot.with_contacts``.
        stand: positions of the robot (nq,) or of its joints alone (nq − 7,); None: ``robot.neutral``.
        radius: of the feet [m]; None: that of the contacts, else 0.
    """
    if not isinstance(robot, Robot):
        raise ProblemError(f"robot: expected a Robot, got {type(robot).__name__}")
    if robot.coordinate_joints[0].type != "floating":
        raise ProblemError(f"{robot.name} has no floating base; load it with base='floating'")
    touching = [contact for contact in robot.contacts or () if contact.other is None]
    if feet is None:
        if not touching:
            raise ProblemError(
                f"feet: give the names of their frames; {robot.name} has no contacts to take them from"
            )
        frames = [
            Frame(
                f"{contact.name or contact.frame} centre", contact.frame, Transform.from_rpy(contact.offset)
            )
            for contact in touching
        ]
        robot = robot.with_frames(frames)
        feet = [frame.name for frame in frames]
    if radius is None:
        radii = {contact.radius for contact in touching}
        radius = radii.pop() if len(radii) == 1 else 0.0
    radius = arguments.number("radius", radius, least=0.0)
    q = np.array(robot.neutral if stand is None else stand, dtype=float)
    if q.shape == (robot.nq - 7,):
        q = np.concatenate([robot.neutral[:7], q])
    q = arguments.numbers("stand", q, (robot.nq,)).copy()
    q[:7] = (0.0, 0.0, q[2], 0.0, 0.0, 0.0, 1.0)
    _check_range(robot, q)
    places = np.array([np.asarray(robot.pose(q, frame=name))[:3, 3] for name in feet])
    q[2] += radius - places[:, 2].min()
    order = _order(places)
    names = tuple(feet[k] for k in order)
    return Feet(
        robot, names, radius, q, np.array([np.asarray(robot.pose(q, frame=name))[:3, 3] for name in names])
    )


def _check_range(robot: Robot, q: np.ndarray) -> None:
    """Refuse positions outside of the joints' limits."""
    for coordinate, value, low, high in zip(
        position_coordinates(robot), q, robot.limits.lower, robot.limits.upper, strict=True
    ):
        if not low <= value <= high:
            raise ProblemError(
                f"stand: {coordinate.name} at {value:g} is outside of its limits {low:g} and {high:g}; give joint "
                "positions in which the robot stands"
            )


def _order(places: np.ndarray) -> list[int]:
    """Front before rear, left before right; two feet: left, right."""
    count = len(places)
    by_front = sorted(range(count), key=lambda k: -places[k, 0])
    half = count if count < 4 else count // 2
    return [
        k for part in (by_front[:half], by_front[half:]) for k in sorted(part, key=lambda k: -places[k, 1])
    ]
