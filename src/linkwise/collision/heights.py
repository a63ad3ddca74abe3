"""How high the lowest point of a robot is, by the rods that stand for its links."""

from __future__ import annotations

import numpy as np

from linkwise.collision.body_pairs import body_poses_of
from linkwise.geometry.skeleton import skeleton
from linkwise.robot.robot import Robot


def lowest_points(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Heights of the lowest points of the moving links above the origin of the base, against gravity [m], (states,).

    Args:
        robot: the robot; joints of one coordinate each.
        q: positions [rad or m], shape (states, n).
    """
    pull = float(np.sqrt((np.array(robot.gravity) ** 2).sum()))
    up = -np.array(robot.gravity) / pull if pull > 0 else np.array([0.0, 0.0, 1.0])
    rods = [rod for rod in skeleton(robot).capsules if rod.body >= 0]
    if not rods:
        return np.zeros(len(q))
    ends = np.array([[*end, 1.0] for rod in rods for end in (rod.start, rod.end)])
    bodies = np.repeat([rod.body for rod in rods], 2)
    radii = np.repeat([rod.radius for rod in rods], 2)
    placed = (body_poses_of(robot, q)[:, bodies] * ends[:, None]).sum(axis=-1)
    return ((placed * up).sum(axis=-1) - radii).min(axis=1)
