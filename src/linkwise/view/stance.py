"""A position in which a robot with feet stands: trunk level, feet below the hips, legs bent."""

from __future__ import annotations

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.geometry.keyframes import keyframe_position
from linkwise.motion import reach_frames
from linkwise.optimal.walking.feet import Feet, feet_of
from linkwise.robot.robot import Robot

BENT = 0.82  # height of the hips above the feet, as a part of the longest legs


def stands(robot: Robot) -> bool:
    """Whether it can stand on something: its base is free, and it has contacts."""
    return bool(robot.dof) and robot.coordinate_joints[0].type == "floating" and bool(robot.contact_names)


def natural(robot: Robot, near: np.ndarray) -> np.ndarray:
    """Positions (nq,) to begin with: on its feet, where it has some."""
    if not stands(robot):
        return near
    try:
        if keyframe_position(robot) is not None:
            return feet_of(robot, None, near, None).stand
        return standing(robot, near).stand
    except LinkwiseError:  # no feet
        return near


def standing(robot: Robot, near: np.ndarray) -> Feet:
    """The feet of a robot with contacts, and how it stands on them; without a solution with the joints as they are.

    Args:
        robot: with a floating base and contacts with the ground.
        near: positions (nq,) from which the search starts.
    """
    feet = feet_of(robot, None, near, None)
    own, q = feet.robot, feet.stand
    hips = np.array([_hip(own, q, name) for name in feet.names])
    height = BENT * min(_longest(own, name) for name in feet.names)
    trunk = np.eye(4)
    trunk[:3, 3] = 0.0, 0.0, height + q[2] - hips[:, 2].mean()
    targets: dict[str, np.ndarray] = {own.coordinate_joints[0].child: trunk}
    for name, place, hip in zip(feet.names, feet.places, hips, strict=True):
        pose = np.eye(4)
        pose[:3, 3] = hip[0] - q[0], place[1] - q[1], feet.radius
        targets[name] = pose[:3, 3] if feet.corners is None else pose
    try:
        found = reach_frames(own, targets, start=q, tolerance=1e-6)
    except LinkwiseError:
        return feet
    return feet_of(robot, None, found.q, None)


def _chain(robot: Robot, frame: str) -> list[str]:
    """The moving links between the trunk and a frame, from the trunk outward."""
    above = {joint.child: joint for joint in robot.joints}
    links, link = [], next((each.link for each in robot.frames if each.name == frame), frame)
    while link in above and above[link].type != "floating":
        if above[link].moves:
            links.append(link)
        link = above[link].parent
    return links[::-1]


def _hip(robot: Robot, q: np.ndarray, foot: str) -> np.ndarray:
    """Where the leg of a foot begins to swing [m]: the second of its joints, which carries thigh and shank."""
    chain = _chain(robot, foot)
    return np.asarray(robot.pose(q, chain[min(1, len(chain) - 1)]))[:3, 3]


def _longest(robot: Robot, foot: str) -> float:
    """The longest distance between hip and foot [m] over random positions."""
    chain = _chain(robot, foot)
    states = np.array([robot.random(k) for k in range(200)])
    hip, tip = (
        np.asarray(robot.pose(states, name))[:, :3, 3] for name in (chain[min(1, len(chain) - 1)], foot)
    )
    return float(np.linalg.norm(tip - hip, axis=1).max())
