"""A robot as simple solids from its kinematics: capsules along links, hubs at joints.

Each belongs to a body: the k-th moving link with what is fixed to it, or the base (−1), and stands in that body's frame
(see ``Model.carrier``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.core.products import length as vector_length
from linkwise.core.products import times
from linkwise.model import Model, Transform
from linkwise.model.coordinates import joint_positions

BASE = -1
THICKNESS = 0.045  # radius of the first link, as a fraction of the reach
TAPER = 0.5  # radius of the last link, as a fraction of the first
STUB = 0.06  # length of a last link without extent, as a fraction of the reach
NEGLIGIBLE = 0.02  # shorter pieces, as a fraction of the reach, are not drawn


def body_name(robot: Model, body: int) -> str:
    """The link that carries a body."""
    return robot.base if body == BASE else robot.moving_joints[body].body_link


@dataclass(frozen=True)
class Capsule:
    """Capsule of a body between two points in its frame [m]."""

    body: int
    start: np.ndarray
    end: np.ndarray
    radius: float


@dataclass(frozen=True)
class Hub:
    """A joint, at the origin of its child link's frame; ``axis`` in that frame. [m]"""

    joint: int
    axis: np.ndarray
    radius: float
    length: float
    revolute: bool
    ball: bool = False


@dataclass(frozen=True)
class Skeleton:
    """Solids of a robot, and its reach [m]: the longest distance along the links from the base to a tip."""

    capsules: tuple[Capsule, ...]
    hubs: tuple[Hub, ...]
    reach: float


def skeleton(model: Model, thickness: float = THICKNESS, taper: float = TAPER) -> Skeleton:
    """Solids that represent a robot; ``thickness`` and ``taper`` as the constants of these names."""
    reach = _reach(model)
    depth = _depths(model)
    deepest = max(depth.values(), default=0)

    def radius(body: int) -> float:
        part = (depth[body] / deepest) if deepest else 0.0
        return thickness * reach * (1.0 - (1.0 - taper) * part)

    capsules: list[Capsule] = []
    for body, points in _ends(model).items():
        rods = [_rod(model, body, point, radius(body), NEGLIGIBLE * reach) for point in points]
        capsules += [piece for rod in rods for piece in rod]
        if (
            body != BASE
            and not any(rods)
            and _is_last(model, body)
            and model.moving_joints[body].type != "floating"
        ):  # wrist with intersecting axes: show its direction
            axis = np.array(model.moving_joints[body].axis)
            capsules.append(Capsule(body, np.zeros(3), STUB * reach * axis, 0.8 * radius(body)))
    hubs = tuple(
        Hub(k, np.array(joint.axis), 1.3 * radius(k), 3.0 * radius(k), joint.turns, joint.type == "ball")
        for k, joint in enumerate(model.moving_joints)
    )
    return Skeleton(tuple(capsules), hubs, reach)


def body_poses(model: Model, q: np.ndarray) -> list[Transform]:
    """Poses of the frames of all moving links in the base frame, for one q (nq,)."""
    placed = {model.base: Transform.identity()}
    own = {joint.name: at for joint, at in zip(model.moving_joints, joint_positions(model, q), strict=True)}
    for joint in model.joints:
        placed[joint.child] = placed[joint.parent] @ joint.motion(
            own[joint.name].tolist() if joint.moves else 0.0
        )
    return [placed[joint.child] for joint in model.moving_joints]


def _ends(model: Model) -> dict[int, list[np.ndarray]]:
    """End points of each body: its child joints and its tips."""
    ends: dict[int, list[np.ndarray]] = {BASE: []} | {k: [] for k in range(len(model.moving_joints))}
    for joint in model.moving_joints:
        body, pose = model.carrier(joint.parent)
        ends[body].append((pose @ joint.origin).translation)
    for leaf in model.leaf_names:
        body, pose = model.carrier(leaf)
        ends[body].append(pose.translation)
    for frame in model.frames:
        body, pose = model.carrier(frame.link)
        ends[body].append((pose @ frame.pose).translation)
    for body, pose in held_points(model):
        ends[body].append(pose.translation)
    return ends


def held_points(model: Model) -> list[tuple[int, Transform]]:
    """(body, pose in its frame) of both sides of every constraint; points of the world belong to the base."""
    found = []
    for frame, pose in (end for constraint in model.constraints for end in constraint.ends()):
        body, own = (BASE, Transform.identity()) if frame is None else model.locate(frame)
        found.append((body, own @ pose))
    return found


def _rod(model: Model, body: int, point: np.ndarray, radius: float, negligible: float) -> list[Capsule]:
    """Capsules from the body's joint to a point: first along the joint's axis, then perpendicular to it."""
    origin = np.zeros(3)
    corner = origin
    if body == BASE:  # upward from the floor
        length = vector_length(point)
        origin = corner = point * min(1.0, radius / length) if length > 0 else origin
    else:
        joint = model.moving_joints[body]
        axis = np.array(joint.axis)
        along = times(point, axis) * axis
        if not joint.free and min(vector_length(along), vector_length(point - along)) > negligible:
            corner = along
    pieces = [(origin, corner), (corner, point)]
    return [Capsule(body, a, b, radius) for a, b in pieces if vector_length(b - a) > negligible]


def _is_last(model: Model, body: int) -> bool:
    return all(model.carrier(joint.parent)[0] != body for joint in model.moving_joints)


def _reach(model: Model) -> float:
    """Longest path from the base to any link along joint origins, with the travel of prismatic joints."""
    distance = {model.base: 0.0}
    for joint in model.joints:
        step = vector_length(joint.origin.translation)
        if joint.slides and np.isfinite(joint.limits.upper):
            step += abs(joint.limits.upper)
        distance[joint.child] = distance[joint.parent] + step
    longest = max(distance.values())
    for leaf in model.frames:
        longest = max(longest, distance[leaf.link] + vector_length(leaf.pose.translation))
    if longest <= 0.0:  # all axes meet in one point: use the extent of the masses
        longest = max((vector_length(link.inertia.com) for link in model.links), default=0.0)
    return longest if longest > 0.0 else 1.0


def _depths(model: Model) -> dict[int, int]:
    """Number of joints between the base and each body."""
    depth = {BASE: 0}
    for k, joint in enumerate(model.moving_joints):
        depth[k] = depth[model.carrier(joint.parent)[0]] + 1
    return depth
