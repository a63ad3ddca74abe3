"""The robot in the 3-D scene of a viser server: one node per body; everything fixed to the body is below that node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.geometry import solids
from linkwise.geometry.skeleton import BASE, Skeleton, body_poses, skeleton
from linkwise.geometry.visuals import Looks
from linkwise.model import Inertia, Transform
from linkwise.model.coordinates import velocity_coordinates
from linkwise.view.bars import tint
from linkwise.view.live import ball_radius

if TYPE_CHECKING:
    import viser

    from linkwise.robot import Robot

METAL, DARK, GHOST = (222, 226, 232), (96, 106, 120), (120, 170, 230)
MASS, ELLIPSOID, LOAD = (30, 34, 40), (150, 110, 210), (200, 160, 70)
GROUPS = ("meshes", "shapes", "skeleton", "joints", "ellipsoids", "masses", "frames", "names")


class RobotScene:
    """Scene nodes of one robot under ``root``. ``ghost``: only a translucent skeleton."""

    def __init__(
        self,
        server: viser.ViserServer,
        robot: Robot,
        looks: Looks,
        root: str = "/robot",
        *,
        ghost: bool = False,
    ):
        self.server, self.robot, self.root = server, robot, root
        self.bones: Skeleton = skeleton(robot)
        self.groups: dict[str, list[Any]] = {group: [] for group in GROUPS}
        moving = range(len(robot.moving_joints))
        self.hubs: list[list[Any]] = [[] for _ in moving]
        self.bodies = [server.scene.add_frame(f"{root}/{k}", show_axes=False) for k in moving]
        self.base = server.scene.add_frame(f"{root}/base", show_axes=False)
        self.load: Any = None
        self._shown: list[tuple[int, solids.Mesh]] = []  # meshes of the file in the frames of their bodies
        self._last: list[tuple[int, int, int]] = [(-1, -1, -1) for _ in moving]
        self._add_skeleton(ghost)
        if not ghost:
            self._add_meshes(looks)
            self._add_masses()
            self._add_frames()
        self.has_meshes = bool(self.groups["meshes"])

    # -- changes ------------------------------------------------------------------------------------------------------

    def move(self, q: np.ndarray) -> None:
        """Move every body to its pose at q (nq,)."""
        for node, pose in zip(self.bodies, body_poses(self.robot, q), strict=True):
            node.position = pose.translation
            node.wxyz = quaternion(pose.rotation)

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

    def box(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest corner of the box around the robot at q, in base axes [m]."""
        placed = [Transform.identity(), *body_poses(self.robot, q)]
        points = [pose.translation[np.newaxis] for pose in placed]
        for rod in self.bones.capsules:
            points.append(
                np.array([rod.start, rod.end]) @ placed[rod.body + 1].rotation.T
                + placed[rod.body + 1].translation
            )
        for body, mesh in self._shown:
            points.append(mesh.vertices[:: max(1, len(mesh.vertices) // 500)] @ placed[body + 1].rotation.T)
            points[-1] = points[-1] + placed[body + 1].translation
        stacked = np.concatenate(points)
        return stacked.min(axis=0), stacked.max(axis=0)

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

    def _add_skeleton(self, ghost: bool) -> None:
        look: dict[str, Any] = {"opacity": 0.3, "cast_shadow": False} if ghost else {}
        for k, rod in enumerate(self.bones.capsules):
            # slightly thinner, so that a ghost is hidden where it coincides with the robot
            mesh = solids.capsule(rod.start, rod.end, (0.96 if ghost else 1.0) * rod.radius)
            handle = self._mesh(rod.body, f"rod{k}", mesh, GHOST if ghost else METAL, **look)
            self.groups["skeleton"].append(handle)
        if not ghost and not all(joint.type == "floating" for joint in self._roots()):
            self._add_plate()
        for hub in self.bones.hubs:
            pose = solids.from_z_to(hub.axis)
            if hub.ball:
                mesh = solids.sphere(1.4 * hub.radius)
            elif hub.revolute:
                mesh = solids.cylinder(hub.radius, hub.length, bevel=0.12 * hub.radius)
            else:
                mesh = solids.box((2 * hub.radius, 2 * hub.radius, hub.length))
            if ghost:
                mesh = mesh.scaled((0.96, 0.96, 0.96))
            handle = self._mesh(hub.joint, "hub", mesh, GHOST if ghost else DARK, pose, **look)
            self.groups["skeleton"].append(handle)
            if not ghost:
                self.hubs[hub.joint].append(handle)
                ring = solids.ring(1.45 * hub.radius, 0.12 * hub.radius)
                handle = self._mesh(hub.joint, "ring", ring, DARK, pose, cast_shadow=False)
                self.groups["joints"].append(handle)
                self.hubs[hub.joint].append(handle)

    def _roots(self) -> list[Any]:
        """The joints that the base carries."""
        return [joint for joint in self.robot.moving_joints if self.robot.carrier(joint.parent)[0] == BASE]

    def _add_plate(self) -> None:
        """Base of the robot."""
        radius = 0.09 * self.bones.reach
        plate = solids.cylinder(radius, 0.25 * radius, bevel=0.05 * radius)
        pose = Transform.along((0, 0, 1), 0.125 * radius)
        self.groups["skeleton"].append(self._mesh(BASE, "plate", plate, DARK, pose))

    def _add_meshes(self, looks: Looks) -> None:
        known = set(self.robot.link_names)
        for k, visual in enumerate(v for v in looks.visuals if v.link in known):
            body, pose = self.robot.carrier(visual.link)
            colour = visual.part.colour or METAL
            handle = self._mesh(
                body, f"visual{k}", visual.part.mesh, colour, pose @ visual.pose, side="double"
            )
            self._shown.append((body, visual.part.mesh.moved(pose @ visual.pose)))
            self.groups["meshes"].append(handle)

    def _add_masses(self) -> None:
        """Centres of mass, and ellipsoids of uniform density with the same mass and inertia."""
        heaviest = max((body.mass for body in self.robot.bodies()), default=0.0)
        for k, body in enumerate(self.robot.bodies()):
            if body.mass <= 0:
                continue
            size = 0.028 * self.bones.reach * (body.mass / heaviest) ** (1 / 3)
            centre = Transform(np.eye(3), body.com)
            ball = self._mesh(k, "mass", solids.sphere(size), MASS, centre, cast_shadow=False)
            self.groups["masses"].append(ball)
            found = ellipsoid(body)
            if found is not None:
                axes, rotation = found
                mesh = solids.sphere(1.0).scaled(axes)
                pose = Transform(rotation, body.com)
                handle = self._mesh(k, "ellipsoid", mesh, ELLIPSOID, pose, opacity=0.45, cast_shadow=False)
                self.groups["ellipsoids"].append(handle)

    def _add_frames(self) -> None:
        length = 0.09 * self.bones.reach
        for k, joint in enumerate(self.robot.moving_joints):
            frame = self.server.scene.add_frame(
                self._path(k, "axes"), axes_length=length, axes_radius=0.06 * length
            )
            label = self.server.scene.add_label(self._path(k, "name"), joint.name)
            self.groups["frames"].append(frame)
            self.groups["names"].append(label)


def ellipsoid(body: Inertia) -> tuple[np.ndarray, np.ndarray] | None:
    """(semi-axes [m], rotation) of the ellipsoid of uniform density with this mass and inertia; None if impossible."""
    moments, rotation = np.linalg.eigh(body.matrix_about_com)
    if body.mass <= 0:
        return None
    squares = 2.5 / body.mass * (moments.sum() - 2.0 * moments)
    if not np.isfinite(squares).all() or squares.max() <= 0 or squares.min() < -1e-6 * squares.max():
        return None
    if np.linalg.det(rotation) < 0:
        rotation = rotation * np.array([1.0, 1.0, -1.0])
    return np.sqrt(np.maximum(squares, 1e-4 * squares.max())), rotation


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """(w, x, y, z) of a rotation matrix (3, 3)."""
    from linkwise.compat import quaternion_from_matrix

    return quaternion_from_matrix(rotation)
