"""Where inverse kinematics starts from: positions near the target; and how far an arm reaches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.model.joint import Joint
from linkwise.robot.robot import Robot

MOST_LIBRARIES = 8  # of a robot, about half a megabyte each


def sampling_range(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Joint positions to draw from [rad or m]: the limits, or half a turn or a metre to each side."""
    turns = np.array([joint.revolute for joint in robot.coordinate_joints], dtype=bool)
    lower = np.array([joint.limits.lower for joint in robot.coordinate_joints], dtype=float)
    upper = np.array([joint.limits.upper for joint in robot.coordinate_joints], dtype=float)
    lower = np.where(np.isfinite(lower), lower, np.where(turns, -np.pi, -1.0))
    return lower, np.where(np.isfinite(upper), upper, np.where(turns, np.pi, 1.0))


class Library:
    """Random positions of the joints, ordered by their distance from a target."""

    def __init__(self, robot: Robot, frame: str | None, length: float, size: int, seed: int):
        self.q = np.random.default_rng(seed).uniform(*sampling_range(robot), (size, robot.dof))
        self.length = length
        self.features = self._features(robot.pose(self.q, frame))
        self.squares = {k: np.sum(self.features[:, :k] ** 2, axis=1) for k in (3, 12)}

    def _features(self, poses: np.ndarray) -> np.ndarray:
        """Vectors whose distance is that of the poses [m], an angle counted at the arm's length."""
        points = poses[:, :3, 3]
        if poses.shape[-1] != 4:  # targets that are points
            return poses
        turned = poses[:, :3, :3].reshape(-1, 9)
        return np.concatenate([points, self.length / math.sqrt(2.0) * turned], axis=1)

    def nearest(self, targets: np.ndarray, skip: int, count: int) -> np.ndarray:
        """For each target the ``count`` nearest positions after the first ``skip``, shape (targets, count, n)."""
        wanted = targets if targets.ndim == 2 else self._features(targets)
        known = self.features[:, : wanted.shape[1]]
        distance = self.squares[wanted.shape[1]] - 2.0 * wanted @ known.T
        order = np.argpartition(distance, skip + count - 1, axis=1)[:, : skip + count]
        sorted_ = np.argsort(np.take_along_axis(distance, order, axis=1), axis=1)
        return self.q[np.take_along_axis(order, sorted_, axis=1)[:, skip:]]


def library(robot: Robot, frame: str | None, length: float, size: int, seed: int) -> Library:
    """The library of a robot, made once for these numbers."""
    known: dict[Any, Library] = vars(robot).setdefault("_libraries", {})
    key = (frame, length, size, seed)
    if key not in known:
        if len(known) >= MOST_LIBRARIES:
            known.clear()
        known[key] = Library(robot, frame, length, size, seed)
    return known[key]


def reach(robot: Robot, frame: str | None, limits: bool) -> tuple[np.ndarray, float]:
    """(centre, radius): the origin of the frame's first moving joint in the base frame [m], and the sum of the
    distances of all further ones [m]. The frame's origin is never further from the centre."""
    body, pose = robot.locate(frame)
    total = 0.0
    while body >= 0:
        total += float(np.linalg.norm(pose.translation))
        joint = robot.moving_joints[body]
        total += _travel(joint, limits)
        body, carrier = robot.carrier(joint.parent)
        pose = carrier @ joint.origin
    return np.asarray(pose.translation, dtype=float), total


def _travel(joint: Joint, limited: bool) -> float:
    """How far a joint may move the origin of its link [m]."""
    if joint.turns and not joint.pitch:
        return 0.0
    known = limited and joint.slides
    return max(abs(joint.limits.lower), abs(joint.limits.upper)) if known else math.inf
