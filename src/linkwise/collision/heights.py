"""How high the lowest point of a robot is, by the rods that stand for its links and by its meshes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from linkwise.collision.body_pairs import body_poses_of
from linkwise.collision.shapes import Reading
from linkwise.geometry.looks import Visual
from linkwise.geometry.skeleton import skeleton
from linkwise.geometry.solids import Mesh
from linkwise.robot.robot import Robot

_DIRECTIONS = 128  # in which corners of a mesh are looked for that are farthest out
_CORNERS = 4000  # of a mesh that are looked at, about


def lowest_points(robot: Robot, q: np.ndarray, corners: Iterable[tuple[int, np.ndarray]] = ()) -> np.ndarray:
    """Heights of the lowest points of the moving links above the origin of the base, against gravity [m], (states,).

    Args:
        robot: the robot; joints of one coordinate each.
        q: positions [rad or m], shape (states, n).
        corners: of meshes of bodies, in their frames (k, 3), see ``outermost``.
    """
    pull = float(np.sqrt((np.array(robot.gravity) ** 2).sum()))
    up = -np.array(robot.gravity) / pull if pull > 0 else np.array([0.0, 0.0, 1.0])
    rods = [rod for rod in skeleton(robot).capsules if rod.body >= 0]
    balls = [(rod.body, end[None], rod.radius) for rod in rods for end in (rod.start, rod.end)]
    balls += [(body, some, 0.0) for body, some in corners]
    if not balls:
        return np.zeros(len(q))
    poses, lowest = body_poses_of(robot, q), np.full(len(q), np.inf)
    for body, points, radius in balls:
        turned = (poses[:, body, :, :3] * up[:, None]).sum(axis=1)  # the direction up in axes of the body
        away = (turned[:, None] * points).sum(axis=-1).min(axis=1)
        lowest = np.minimum(lowest, away + (poses[:, body, :, 3] * up).sum(axis=-1) - radius)
    return lowest


def outermost(meshes: Iterable[tuple[int, Mesh]]) -> list[tuple[int, np.ndarray]]:
    """Corners (k, 3) of the meshes of moving bodies that are the farthest ones in some direction.

    Args:
        meshes: of bodies, in their frames.
    """
    k = np.arange(_DIRECTIONS) + 0.5
    height, turn = 1.0 - 2.0 * k / _DIRECTIONS, np.pi * (1.0 + 5.0**0.5) * k
    width = np.sqrt(1.0 - height * height)
    ways = np.stack([width * np.cos(turn), width * np.sin(turn), height], axis=-1)
    found: list[tuple[int, np.ndarray]] = []
    for body, mesh in meshes:
        if body >= 0 and len(mesh.vertices):
            some = mesh.vertices[:: max(1, len(mesh.vertices) // _CORNERS)]
            x, y, z = some.T
            far = ways[:, :1] * x + ways[:, 1:2] * y + ways[:, 2:] * z
            found.append((body, some[np.unique(far.argmax(axis=1))]))
    return found


def meshes_of(robot: Robot) -> list[tuple[int, Mesh]]:
    """Meshes of the bodies of a robot, in their frames: its collision geometry, else its visual geometry.

    Args:
        robot: the robot; its geometry is read from the file that it was loaded from.
    """
    return _Meshes(robot).found


class _Meshes(Reading):
    def __init__(self, robot: Robot):
        self.found: list[tuple[int, Mesh]] = []
        super().__init__(robot, ())

    def _add(self, visual: Visual) -> None:
        body, pose = self.robot.carrier(visual.link)
        self.pieces.setdefault(body, [])
        primitive = visual.part.primitive
        mesh = visual.part.mesh if primitive is None else primitive.mesh()
        self.found.append((body, mesh.moved(pose @ visual.pose)))
