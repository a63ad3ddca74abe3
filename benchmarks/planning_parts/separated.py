"""Problems that no motion can solve: a joint has to pass a value at which a link is inside an obstacle in any case.

A vertex of a link's mesh, placed by Pinocchio, is deeper in an obstacle than it can move while the joints before take
values between those of a grid. Joints move continuously, so one that is below the value at the start and above it at
the goal has to pass it.
"""

from __future__ import annotations

import numpy as np

from linkwise.collision import World
from linkwise.collision.validity import solids
from linkwise.collision.world import COLUMNS
from planning_parts.meshes import Meshes
from planning_parts.problems import PlanningProblem

GRID = 1440  # values of the joint before
VALUES = 9  # of the joint that are tried
JOINTS = 2  # the first ones


def why_separated(meshes: Meshes, problem: PlanningProblem) -> str | None:
    """The joint and the value that it cannot pass; None where that is not shown."""
    lower, upper = meshes.robot.limits.lower, meshes.robot.limits.upper
    first = meshes.robot.moving_joints[0]
    if not np.isfinite([lower[:JOINTS], upper[:JOINTS]]).all() or not first.turns:
        return None
    for joint in range(JOINTS):
        start, goals = problem.start[joint], problem.goal[:, joint]
        if goals.min() > start or goals.max() < start:  # all goals are on the same side
            nearest = goals.min() if goals.min() > start else goals.max()
            for value in np.linspace(start, nearest, VALUES + 2)[1:-1]:
                if _blocked(meshes, problem.world, joint, float(value)):
                    return f"{meshes.robot.joint_names[joint]} cannot pass {value:.3f}"
    return None


def _blocked(meshes: Meshes, world: World, joint: int, value: float) -> bool:
    """Whether the link that a joint moves is inside an obstacle for all values of the joint before."""
    limits = meshes.robot.limits
    grid = np.linspace(limits.lower[0], limits.upper[0], GRID) if joint else np.zeros(1)
    q = np.zeros((len(grid), meshes.robot.nq))
    q[:, 0], q[:, joint] = grid, value
    half = (grid[1] - grid[0]) / 2 if joint else 0.0
    body = list(meshes.model.names).index(meshes.robot.joint_names[joint])
    shapes = [each for each in meshes.geometry.geometryObjects if each.parentJoint == body]
    for row in meshes.positions(q):
        meshes.pin.forwardKinematics(meshes.model, meshes.data, row)
        points = [_vertices(each, meshes.data.oMi[body] * each.placement) for each in shapes]
        axis = meshes.data.oMi[1].translation
        if max((_deepest(world, each, half, axis) for each in points if len(each)), default=0.0) <= 0.0:
            return False
    return True


def _vertices(shape, pose) -> np.ndarray:
    found = np.asarray(shape.geometry.vertices()) if hasattr(shape.geometry, "vertices") else np.zeros((0, 3))
    found = found * np.asarray(shape.meshScale)
    return found[:: max(1, len(found) // 300)] @ pose.rotation.T + pose.translation


def _deepest(world: World, points: np.ndarray, half: float, axis: np.ndarray) -> float:
    """How much deeper in an obstacle a point is than it moves while the first joint, through ``axis``, turns by
    ``half``."""
    moved = half * np.linalg.norm(points - axis, axis=1)
    depths = [
        float((-solids.distance(kind, row, tuple(points.T), 0.0) - moved).max())
        for kind in COLUMNS
        for row in world.solids[kind].tolist()
    ]
    return max(depths, default=-np.inf)
