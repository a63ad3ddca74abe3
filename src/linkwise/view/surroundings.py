"""What a robot must not touch, in the 3-D scene: boxes, the space that must not be left; and capsules of its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.geometry import solids
from linkwise.model import Transform
from linkwise.view.scene import RobotScene, quaternion

if TYPE_CHECKING:
    from linkwise.collision import Box, Clearance

FORBIDDEN, ALLOWED, SHAPE = (213, 94, 0), (0, 158, 115), (0, 114, 178)
LARGEST = 20.0  # [m] walls that are farther away are not drawn


def add_surroundings(scene: RobotScene, clearance: Clearance) -> None:
    """Adds boxes, and the capsules of the links as a group that can be hidden."""
    room = clearance.room
    for k, capsule in enumerate(clearance.shapes.capsules):
        mesh = solids.capsule(capsule.start, capsule.end, capsule.radius)
        scene.add_shape(capsule.body, f"shape{k}", mesh, SHAPE)
    for k, box in enumerate(room.forbidden):
        _add_box(scene, f"/forbidden{k}", box, FORBIDDEN, 0.45)
    if room.inside is not None:
        _add_box(scene, "/inside", room.inside, ALLOWED, 0.08)


def _add_box(scene: RobotScene, name: str, box: Box, colour: tuple[int, int, int], opacity: float) -> None:
    lower, upper = (
        np.clip(np.asarray(corner, dtype=float), -LARGEST, LARGEST) for corner in (box.lower, box.upper)
    )
    mesh = solids.box((upper - lower).tolist())
    pose = Transform(np.eye(3), (lower + upper) / 2)
    scene.server.scene.add_mesh_simple(
        name,
        mesh.vertices.astype(np.float32),
        mesh.faces.astype(np.uint32),
        color=colour,
        opacity=opacity,
        side="double",
        cast_shadow=False,
        wxyz=quaternion(pose.rotation),
        position=pose.translation,
    )
