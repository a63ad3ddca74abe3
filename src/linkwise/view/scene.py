"""The robot in the 3-D scene of a viser server: one node per body; everything fixed to the body is below that node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.geometry import solids
from linkwise.geometry.skeleton import BASE, Skeleton, body_poses, skeleton
from linkwise.geometry.visuals import Looks
from linkwise.model import Transform
from linkwise.model.coordinates import velocity_coordinates
from linkwise.view.bars import tint
from linkwise.view.live import ball_radius
from linkwise.view.parts import (
    LOAD,
    ScenePart,
    contact_shape_parts,
    held_parts,
    mass_parts,
    mesh_parts,
    skeleton_parts,
)
from linkwise.view.placing import scene_box

if TYPE_CHECKING:
    import viser

    from linkwise.robot.robot import Robot

ARROW_COLOUR = (220, 50, 47)
ARROW = 0.5  # length of an arrow of the robot's weight, as a fraction of the reach
GROUPS = (
    *(
        "meshes",
        "shapes",
        "skeleton",
        "joints",
        "constraints",
        "contacts",
        "arrows",
        "ellipsoids",
        "masses",
        "frames",
        "names",
    ),
)


class RobotScene:
    """Scene nodes of one robot under ``root``, which lies at ``offset`` [m]. ``ghost``: only a translucent skeleton."""

    def __init__(
        self,
        server: viser.ViserServer,
        robot: Robot,
        looks: Looks,
        root: str = "/robot",
        *,
        ghost: bool = False,
        offset: np.ndarray | None = None,
    ):
        self.server, self.robot, self.root = server, robot, root
        self.bones: Skeleton = skeleton(robot)
        self.groups: dict[str, list[Any]] = {group: [] for group in GROUPS}
        moving = range(len(robot.moving_joints))
        self.hubs: list[list[Any]] = [[] for _ in moving]
        self.offset = np.zeros(3) if offset is None else offset
        self.node = server.scene.add_frame(root, show_axes=False, position=self.offset)
        self.bodies = [server.scene.add_frame(f"{root}/{k}", show_axes=False) for k in moving]
        self.base = server.scene.add_frame(f"{root}/base", show_axes=False)
        self.load: Any = None
        self.shown: list[tuple[int, solids.Mesh]] = []  # meshes of the file in the frames of their bodies
        self._last: list[tuple[int, int, int]] = [(-1, -1, -1) for _ in moving]
        reach = self.bones.reach
        shown = skeleton_parts(robot, self.bones, ghost=ghost)
        if not ghost:
            shown += (
                mesh_parts(robot, looks, self.bones) + mass_parts(robot, reach) + held_parts(robot, reach)
            )
            shown += contact_shape_parts(robot)
        for part in shown:
            self._add(part)
        if not ghost:
            self._add_frames()
        self.has_meshes = bool(self.groups["meshes"])

    # -- changes ------------------------------------------------------------------------------------------------------

    def move(self, q: np.ndarray) -> None:
        """Move every body to its pose at q (nq,)."""
        for node, pose in zip(self.bodies, body_poses(self.robot, q), strict=True):
            node.position = pose.translation
            node.wxyz = quaternion(pose.rotation)

    def put(self, offset: np.ndarray) -> None:
        """Put the whole robot somewhere else [m]."""
        self.offset = self.node.position = offset

    def colour(self, parts: Sequence[float] | np.ndarray) -> None:
        """Colour every joint by its largest torque, given as a fraction of its scale; followers as their leader."""
        largest: dict[str, float] = {}
        for coordinate, part in zip(velocity_coordinates(self.robot), parts, strict=True):
            name = coordinate.joint.name
            largest[name] = max(largest.get(name, 0.0), abs(float(part)))
        leaders = zip(self.robot.moving_joints, self.robot.followed, strict=True)
        for k, (joint, relation) in enumerate(leaders):
            colour = tint(largest[joint.name if relation is None else relation.joint])
            if colour != self._last[k]:
                self._last[k] = colour
                for handle in self.hubs[k]:
                    handle.color = colour

    def show(self, group: str, visible: bool) -> None:
        for handle in self.groups[group]:
            handle.visible = visible

    def carry(self, mass: float, frame: str) -> None:
        """Show the load at a frame."""
        body, pose = self.robot.locate(frame)
        if self.load is None:
            ball = solids.sphere(1.0)
            self.load = self._mesh(body, "load", ball, LOAD, pose)
        self.load.visible = mass > 0
        if mass > 0:
            self.load.scale = ball_radius(mass)

    def add_shape(self, body: int, name: str, mesh: solids.Mesh, colour: tuple[int, int, int]) -> None:
        """Adds a translucent solid to a body, in its frame."""
        handle = self._mesh(body, name, mesh, colour, opacity=0.25, cast_shadow=False)
        self.groups["shapes"].append(handle)

    def arrows(self, points: np.ndarray, forces: np.ndarray) -> None:
        """Draw forces [N] at points [m] as arrows, both (k, 3): that of the weight is ``ARROW`` of the reach."""
        size = arrow_scale(self.robot, self.bones.reach)
        pushing = np.linalg.norm(forces, axis=-1) > 0.0
        starts, ends = points[pushing], points[pushing] + size * forces[pushing]
        segments = np.stack([starts, ends], axis=1) if pushing.any() else np.zeros((1, 2, 3))
        for handle in self.groups["arrows"]:
            handle.points = segments.astype(np.float32)  # a new node would flicker
            return
        thick = 0.008 * self.bones.reach
        handle = self.server.scene.add_arrows(
            f"{self.root}/arrows",
            segments.astype(np.float32),
            ARROW_COLOUR,
            shaft_radius=thick,
            head_radius=2.5 * thick,
            head_length=4.0 * thick,
        )
        self.groups["arrows"] = [handle]

    def box(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest corner of the box around the robot at q, in base axes [m]."""
        low, high = scene_box(self.robot, self.bones, self.shown, q)
        return low + self.offset, high + self.offset

    # -- construction --------------------------------------------------------------------------------------------------

    def _path(self, body: int, name: str) -> str:
        return f"{self.root}/{'base' if body == BASE else body}/{name}"

    def _mesh(
        self, body: int, name: str, mesh: solids.Mesh, colour, pose: Transform | None = None, **options
    ) -> Any:
        pose = Transform.identity() if pose is None else pose
        return self.server.scene.add_mesh_simple(
            self._path(body, name),
            mesh.vertices.astype(np.float32),
            mesh.faces.astype(np.uint32),
            color=colour,
            wxyz=quaternion(pose.rotation),
            position=pose.translation,
            **options,
        )

    def _add(self, part: ScenePart) -> None:
        look: dict[str, Any] = {} if part.opacity is None else {"opacity": part.opacity}
        if part.double:
            look["side"] = "double"
        handle = self._mesh(
            part.body, part.name, part.mesh, part.colour, part.pose, cast_shadow=part.shadow, **look
        )
        self.groups[part.group].append(handle)
        if part.hub is not None:
            self.hubs[part.hub].append(handle)
        if part.group == "meshes":
            self.shown.append((part.body, part.mesh.moved(part.pose)))

    def _add_frames(self) -> None:
        length = 0.09 * self.bones.reach
        for k, joint in enumerate(self.robot.moving_joints):
            frame = self.server.scene.add_frame(
                self._path(k, "axes"), axes_length=length, axes_radius=0.06 * length
            )
            label = self.server.scene.add_label(self._path(k, "name"), joint.name)
            self.groups["frames"].append(frame)
            self.groups["names"].append(label)


def arrow_scale(robot: Robot, reach: float) -> float:
    """Length of the arrow of a force [m/N]."""
    weight = sum(body.mass for body in robot.bodies()) * float(np.linalg.norm(robot.gravity))
    return ARROW * reach / weight if weight > 0.0 else ARROW * reach


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """(w, x, y, z) of a rotation matrix (3, 3)."""
    from linkwise.compat import quaternion_from_matrix

    return quaternion_from_matrix(rotation)
