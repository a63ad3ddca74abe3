"""What is drawn of a robot: solids in groups, each fixed to a body. The 3-D page and page files draw the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.geometry import solids
from linkwise.geometry.skeleton import BASE, Skeleton, held_points
from linkwise.geometry.visuals import Looks
from linkwise.model import Inertia, Transform
from linkwise.model.contacts import Pairing, pairings
from linkwise.model.shapes import Shape

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

METAL, DARK, GHOST = (222, 226, 232), (96, 106, 120), (120, 170, 230)
MASS, ELLIPSOID, LOAD, HELD = (30, 34, 40), (150, 110, 210), (200, 160, 70), (0, 158, 115)
TOUCHING = (90, 160, 220)
DRAWN_SHAPES = ("sphere", "capsule", "cylinder", "box", "ellipsoid")
LARGEST_ELLIPSOID = 0.1  # semi-axis of the largest ellipsoid, as a fraction of the reach


@dataclass(frozen=True)
class ScenePart:
    """A solid of one colour at a pose in the frame of a body (``BASE`` or the number of a moving link).

    ``hub`` is the joint whose torque colours it; ``double``: both sides of its faces are drawn.
    """

    group: str
    body: int
    name: str
    mesh: solids.Mesh
    colour: tuple[int, int, int]
    pose: Transform
    hub: int | None = None
    opacity: float | None = None
    shadow: bool = True
    double: bool = False


def skeleton_parts(robot: Robot, bones: Skeleton, *, ghost: bool = False) -> list[ScenePart]:
    """Capsules, hubs, rings and the base. A ghost is translucent and slightly thinner, so that it is hidden where it
    coincides with the robot."""
    size, opacity, shadow = (0.96, 0.3, False) if ghost else (1.0, None, True)
    parts = []
    for k, rod in enumerate(bones.capsules):
        mesh = solids.capsule(rod.start, rod.end, size * rod.radius)
        colour = GHOST if ghost else METAL
        parts.append(
            ScenePart(
                "skeleton",
                rod.body,
                f"rod{k}",
                mesh,
                colour,
                Transform.identity(),
                opacity=opacity,
                shadow=shadow,
            )
        )
    if not ghost and not all(joint.type == "floating" for joint in _roots(robot)):
        parts.append(_plate(bones))
    for hub in bones.hubs:
        pose = solids.from_z_to(hub.axis)
        mesh = _hub_mesh(hub).scaled((size,) * 3)
        colour, joint = (GHOST, None) if ghost else (DARK, hub.joint)
        parts.append(
            ScenePart("skeleton", hub.joint, "hub", mesh, colour, pose, joint, opacity=opacity, shadow=shadow)
        )
        if not ghost:
            ring = solids.ring(1.45 * hub.radius, 0.12 * hub.radius)
            parts.append(ScenePart("joints", hub.joint, "ring", ring, DARK, pose, joint, shadow=False))
    return parts


def mesh_parts(robot: Robot, looks: Looks, bones: Skeleton) -> list[ScenePart]:
    """The meshes of the file; a body of which no mesh could be read is drawn from its kinematics beside the others."""
    known = set(robot.link_names)
    parts = []
    for k, visual in enumerate(v for v in looks.visuals if v.link in known):
        body, pose = robot.carrier(visual.link)
        colour = visual.part.colour or METAL
        parts.append(
            ScenePart("meshes", body, f"visual{k}", visual.part.mesh, colour, pose @ visual.pose, double=True)
        )
    lost = {robot.carrier(link)[0] for link in looks.missing & known} - {part.body for part in parts}
    if parts:
        for k, rod in enumerate(rod for rod in bones.capsules if rod.body in lost):
            mesh = solids.capsule(rod.start, rod.end, rod.radius)
            parts.append(ScenePart("meshes", rod.body, f"lost{k}", mesh, METAL, Transform.identity()))
    return parts


def mass_parts(robot: Robot, reach: float) -> list[ScenePart]:
    """Centres of mass, and ellipsoids of uniform density with the same mass and inertia.

    The ellipsoids of a robot are all drawn at ``ellipsoid_scale`` of their size.
    """
    scale = ellipsoid_scale(robot, reach)
    heaviest = max((body.mass for body in robot.bodies()), default=0.0)
    parts = []
    for k, body in enumerate(robot.bodies()):
        if body.mass <= 0:
            continue
        size = 0.028 * reach * (body.mass / heaviest) ** (1 / 3)
        centre = Transform(np.eye(3), body.com)
        parts.append(ScenePart("masses", k, "mass", solids.sphere(size), MASS, centre, shadow=False))
        axes_and_rotation = ellipsoid(body)
        if axes_and_rotation is not None:
            axes, rotation = axes_and_rotation
            mesh = solids.sphere(1.0).scaled(scale * axes)
            pose = Transform(rotation, body.com)
            parts.append(
                ScenePart("ellipsoids", k, "ellipsoid", mesh, ELLIPSOID, pose, opacity=0.45, shadow=False)
            )
    return parts


def held_parts(robot: Robot, reach: float) -> list[ScenePart]:
    """Balls at the points that constraints hold."""
    ball = solids.sphere(0.03 * reach)
    return [
        ScenePart("constraints", body, f"held{k}", ball, HELD, Transform(np.eye(3), pose.translation))
        for k, (body, pose) in enumerate(held_points(robot))
    ]


def contact_shape_parts(robot: Robot) -> list[ScenePart]:
    """Solids of contacts: spheres, capsules, cylinders, boxes and ellipsoids; planes and others are not drawn."""
    shapes = list(
        dict.fromkeys(shape for pairing in pairings(robot.contact_parts) for shape in drawn_shapes(pairing))
    )
    parts: list[ScenePart] = []
    for k, shape in enumerate(shapes):
        if shape.kind not in DRAWN_SHAPES or min(shape.sizes) <= 0.0:
            continue
        body, pose = robot.locate(shape.frame)
        mesh = solids.Primitive(shape.kind, tuple(shape.sizes)).mesh()
        parts.append(
            ScenePart("contacts", body, f"contact{k}", mesh, TOUCHING, pose @ shape.pose, opacity=0.55)
        )
    return parts


def drawn_shapes(pairing: Pairing) -> list[Shape]:
    """All shapes of a pair or a pool."""
    return [shape for shape in (*(pairing.pool or (pairing.first,)), pairing.second) if shape is not None]


def ellipsoid_scale(robot: Robot, reach: float) -> float:
    """The size at which ellipsoids are drawn, at most 1. Masses far from the centre of a link make its ellipsoid larger
    than the link; at full size it would reach through the floor."""
    largest = max((axes[0].max() for axes in map(ellipsoid, robot.bodies()) if axes is not None), default=0.0)
    return min(1.0, LARGEST_ELLIPSOID * reach / largest) if largest > 0 else 1.0


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


def _hub_mesh(hub) -> solids.Mesh:
    if hub.ball:
        return solids.sphere(1.4 * hub.radius)
    if hub.revolute:
        return solids.cylinder(hub.radius, hub.length, bevel=0.12 * hub.radius)
    return solids.box((2 * hub.radius, 2 * hub.radius, hub.length))


def _roots(robot: Robot) -> list:
    """The joints that the base carries."""
    return [joint for joint in robot.moving_joints if robot.carrier(joint.parent)[0] == BASE]


def _plate(bones: Skeleton) -> ScenePart:
    """Base of the robot."""
    radius = 0.09 * bones.reach
    plate = solids.cylinder(radius, 0.25 * radius, bevel=0.05 * radius)
    return ScenePart("skeleton", BASE, "plate", plate, DARK, Transform.along((0, 0, 1), 0.125 * radius))


def group_labels(robot: Robot, reach: float, has_meshes: bool) -> dict[str, tuple[str, bool]]:
    """For each group of solids: what it is, and whether it is shown at first."""
    scale = ellipsoid_scale(robot, reach)
    size = "" if scale == 1.0 else f", at {scale:.0%} of their size"
    return {
        "meshes": ("meshes of the file", has_meshes),
        "shapes": ("capsules for distances", True),
        "skeleton": ("capsules from the kinematics", not has_meshes),
        "joints": ("rings coloured by torque", has_meshes),
        "constraints": ("points that constraints hold", True),
        "contacts": ("shapes that may touch", not has_meshes),
        "arrows": ("forces of contacts", True),
        "ellipsoids": (f"ellipsoids of the links' mass and inertia{size}", False),
        "masses": ("centres of mass", False),
    }
