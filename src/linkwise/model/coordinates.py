"""The numbers of q and of q̇, one by one: their names, units and limits; and what each joint takes of them.

A joint with one axis has one number, named after it. A floating joint ``root`` has the positions ``root.x root.y root.z
root.qx root.qy root.qz root.qw`` and the velocities ``root.wx root.wy root.wz root.vx root.vy root.vz``, a ball joint
those of the orientation alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.axes import MOVING_TYPES, QUATERNION
from linkwise.model.joint import Joint, Limits
from linkwise.model.model import Model


@dataclass(frozen=True)
class Coordinate:
    """One number of q or q̇: ``revolute`` where it is an angle, ``quaternion`` where it is part of an orientation."""

    name: str
    joint: Joint
    revolute: bool
    quaternion: bool = False

    @property
    def limits(self) -> Limits:
        """Limits of the joint; the position of a ball or floating joint has none."""
        limits = self.joint.limits
        return Limits(velocity=limits.velocity, effort=limits.effort) if self.joint.free else limits


def position_coordinates(model: Model) -> list[Coordinate]:
    """What the numbers of q are, in their order; nq of them."""
    return [
        coordinate
        for joint in model.coordinate_joints
        for coordinate in (
            [
                Coordinate(f"{joint.name}.{part}", joint, False, part in QUATERNION)
                for part in MOVING_TYPES[joint.type].positions
            ]
            if joint.free
            else [Coordinate(joint.name, joint, joint.turns)]
        )
    ]


def velocity_coordinates(model: Model) -> list[Coordinate]:
    """What the numbers of q̇, q̈ and τ are, in their order; dof of them."""
    return [
        coordinate
        for joint in model.coordinate_joints
        for coordinate in (
            [
                Coordinate(f"{joint.name}.{part}", joint, part[0] == "w")
                for part in MOVING_TYPES[joint.type].velocities
            ]
            if joint.free
            else [Coordinate(joint.name, joint, joint.turns)]
        )
    ]


class CoordinateLimits(NamedTuple):
    """Limits of every coordinate, infinite where none are stated."""

    lower: np.ndarray  # of q, shape (nq,) [rad or m]
    upper: np.ndarray
    velocity: np.ndarray  # of q̇, shape (dof,) [rad/s or m/s]
    effort: np.ndarray  # of τ, shape (dof,) [N·m or N]


def coordinate_limits(model: Model) -> CoordinateLimits:
    """The limits of all joints; positions of ball and floating joints have none."""
    limits = [each.limits for each in position_coordinates(model)]
    return CoordinateLimits(
        np.array([each.lower for each in limits]),
        np.array([each.upper for each in limits]),
        model.velocity_limits,
        model.effort_limits,
    )


def coordinate_names(model: Model) -> tuple[list[str], list[str]]:
    """Names of the numbers of q̇ and of those of q."""
    return [each.name for each in velocity_coordinates(model)], [
        each.name for each in position_coordinates(model)
    ]


def joint_positions(model: Model, q: np.ndarray) -> list[np.ndarray]:
    """The position numbers of every moving joint, those that follow others too, from one q (nq,)."""
    own: dict[str, np.ndarray] = {}
    at = 0
    for joint in model.coordinate_joints:
        own[joint.name] = np.asarray(q[at : at + joint.nq], dtype=float)
        at += joint.nq
    return [
        own[joint.name]
        if relation is None
        else np.asarray(sum(factor * own[name] for name, factor in relation.leaders) + relation.offset)
        for joint, relation in zip(model.moving_joints, model.followed, strict=True)
    ]


def check_torques(model: Model, what: str) -> None:
    """Refuse a robot with constraints or joints that follow others: ``what`` needs the torque at every joint."""
    if model.constraints:
        raise ModelError(
            f"{what}: forces of the constraints of {model.name} are not measured; leave them out"
        )
    own = {joint.name for joint in model.coordinate_joints} | {motor.name for motor in model.motors}
    follower = next((joint for joint in model.moving_joints if joint.name not in own), None)
    if follower is not None:
        raise ModelError(
            f"{what}: {follower.name!r} of {model.name} follows another joint; lock that one, or load the robot with "
            'mimic="independent"'
        )


def check_motors(model: Model, what: str) -> None:
    """Refuse a robot with joints without a motor: ``what`` moves every joint by a torque of its own.

    Under constraints inverse dynamics gives these joints no torque, and refuses motions that need one.
    """
    if model.passive and not model.constraints:
        raise ModelError(
            f"{what}: the joint {model.passive[0]!r} of {model.name} has no motor (passive) that could move it as "
            "wanted; lock it, or use optimal.solve, which moves it by the others"
        )


def check_one_axis(model: Model, what: str) -> None:
    """Refuse a robot with ball or floating joints: ``what`` adds up positions as numbers."""
    free = next((joint for joint in model.coordinate_joints if joint.free), None)
    if free is not None:
        raise ModelError(
            f"{what}: for robots whose joints have one coordinate each; {model.name} has the {free.type} joint "
            f"{free.name!r}"
        )
