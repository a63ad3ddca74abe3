"""Where the camera and the floor are, so that the robot is in the middle of the picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from linkwise.geometry.skeleton import Skeleton, body_poses
from linkwise.geometry.solids import Mesh
from linkwise.model import Transform

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot


def scene_box(
    robot: Robot, bones: Skeleton, shown: Iterable[tuple[int, Mesh]], q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest corner of the box around the robot at q, in base axes [m].

    Args:
        robot: the robot.
        bones: its solids from kinematics.
        shown: its meshes, in the frames of their bodies.
        q: position, shape (nq,).
    """
    placed = [Transform.identity(), *body_poses(robot, q)]
    floats = any(joint.type == "floating" for joint in robot.coordinate_joints)
    points = [pose.translation[np.newaxis] for pose in (placed[1:] if floats else placed)]
    for rod in bones.capsules:
        pose = placed[rod.body + 1]
        points.append(np.array([rod.start, rod.end]) @ pose.rotation.T + pose.translation)
    for body, mesh in shown:
        pose = placed[body + 1]
        some = mesh.vertices[:: max(1, len(mesh.vertices) // 500)]
        points.append(some @ pose.rotation.T + pose.translation)
    stacked = np.concatenate(points)
    return stacked.min(axis=0), stacked.max(axis=0)


def camera_of(low: np.ndarray, high: np.ndarray, reach: float) -> tuple[np.ndarray, float]:
    """(the point to look at, the distance from it)."""
    return (low + high) / 2, 1.75 * max(
        float(np.linalg.norm(high - low)), reach
    )  # a robot that is bent can stretch


def floor_of(low: np.ndarray, high: np.ndarray, up: np.ndarray, reach: float) -> float:
    """Height of the floor along ``up`` [m]; bases may extend slightly below it."""
    lowest = float(np.minimum(low * up, high * up).sum())
    return lowest if lowest < -0.05 * reach else 0.0
