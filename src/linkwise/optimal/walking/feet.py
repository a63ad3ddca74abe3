"""Feet of a walking robot: frames at the centres of spheres, points or soles, and where they stand."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.core.products import times
from linkwise.errors import ModelWarning
from linkwise.model.contacts import Contact, Shape
from linkwise.model.coordinates import position_coordinates
from linkwise.model.link import Frame
from linkwise.model.transform import Transform
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.robot.robot import Robot
from linkwise.solve.linear import singular_values


@dataclass(frozen=True, eq=False)
class Feet:
    """The robot with a frame at the centre of every foot.

    Args:
        robot: with frames of its feet.
        names: of these frames: front left, front right, rear left, rear right for four feet.
        radius: of the feet [m].
        stand: positions (nq,) in which it stands on the ground z = 0.
        places: centres of the feet in that position [m], (feet, 3).
        corners: of the soles about their centres, in their frames, which are level while the robot stands [m], shape
            (feet, k, 3); None: feet like balls.
    """

    robot: Robot
    names: tuple[str, ...]
    radius: float
    stand: np.ndarray
    places: np.ndarray
    corners: np.ndarray | None = None

    @property
    def area(self) -> tuple[float, float]:
        """Half length and half width of the largest rectangle about the centre of a sole [m]."""
        assert self.corners is not None
        length, width = (float(np.abs(self.corners[..., k]).min()) for k in range(2))
        return length, width

    @property
    def hips(self) -> np.ndarray:
        """Places of the feet beside the origin of the trunk while it walks (x, y) [m], (feet, 2): those of standing,
        moved so that their middle is below the centre of mass."""
        center = np.asarray(self.robot.center_of_mass(self.stand))[:2]
        return self.places[:, :2] - self.stand[:2] + center - self.places[:, :2].mean(axis=0)


def feet_of(robot: Robot, feet: Sequence[str] | None, stand: Any, radius: float | None) -> Feet:
    """The feet of a robot, which stands in a position with its lowest foot on the ground.

    Links with three contacts or more have soles, whose corners these are; the frame of a sole is in the middle of them.
    Where no contact is a sphere or a point, soles are the lowest faces of boxes, capsules and hulls at the ends of
    limbs.

    Args:
        robot: with a floating base.
        feet: frames; None: the spheres that touch the ground, see ``Robot.with_contacts``.
        stand: positions of the robot (nq,) or of its joints alone (nq − 7,); None: ``robot.neutral``.
        radius: of the feet [m]; None: that of the contacts, else 0.
    """
    if not isinstance(robot, Robot):
        raise ProblemError(f"robot: expected a Robot, got {type(robot).__name__}")
    if robot.coordinate_joints[0].type != "floating":
        raise ProblemError(f"{robot.name} has no floating base; load it with base='floating'")
    on_limbs = [
        each for each in robot.contacts or () if robot.locate(each.frame)[0] > 0
    ]  # the trunk has no foot
    with_ground = [contact for contact in on_limbs if contact.other is None]
    q = _upright(robot, stand)
    touching = _points_of(with_ground) or _soles_of(robot, with_ground, q)
    corners: list[np.ndarray] = []
    if feet is None:
        if not touching:
            raise ProblemError(
                f"feet: give the names of their frames; {robot.name} has no contacts to take them from"
            )
        frames, corners = _frames(robot, touching, q)
        robot = robot.with_frames(frames)
        feet = [frame.name for frame in frames]
    if radius is None:
        radii = {contact.radius for contact in touching}
        radius = radii.pop() if len(radii) == 1 else 0.0
    radius = arguments.number("radius", radius, least=0.0)
    places = np.array([np.asarray(robot.pose(q, frame=name))[:3, 3] for name in feet])
    q[2] += radius - places[:, 2].min()
    order = _order(places)
    names = tuple(feet[k] for k in order)
    if corners:
        _warn_of_rank(robot, names, q)
    places = np.array([np.asarray(robot.pose(q, frame=name))[:3, 3] for name in names])
    return Feet(robot, names, radius, q, places, np.array([corners[k] for k in order]) if corners else None)


def _warn_of_rank(robot: Robot, soles: Sequence[str], q: np.ndarray) -> None:
    """A warning where soles that all stand are held in more directions than the joints can move."""
    values = singular_values(np.vstack([np.asarray(robot.jacobian(q, name)) for name in soles]))
    rank = int((values > FLAT * values[0]).sum())
    if rank < 6 * len(soles):
        warnings.warn(
            f"{robot.name}: its soles are held in {6 * len(soles)} directions while all stand, of which the joints can "
            f"move {rank} in this position: knees are straight, or legs have fewer than six joints. Plans may fail; "
            "choose another stand=, and try rehearse()",
            ModelWarning,
            stacklevel=4,
        )


def _points_of(contacts: Sequence[Contact]) -> list[Contact]:
    """Contacts with the ground that may be feet. Those of a file have shapes: one sphere is a foot, and what else may
    touch, such as the trunk of a robot that falls, is none."""
    found = []
    for contact in contacts:
        match contact.shapes:
            case ():
                found.append(contact)
            case (Shape(kind="sphere") as ball,):
                options = {"radius": ball.sizes[0], "offset": ball.offset, "friction": contact.friction}
                found.append(Contact(ball.frame, name=contact.name, **options))
            case _:
                pass
    return found


FLAT = 1e-3
"""Of the largest singular value: soles cannot be moved along directions of smaller ones."""
LEVEL = 0.005
"""Height [m] above the lowest corner of a hull up to which others belong to its lowest face."""
STANDING = 0.02
"""Height [m] above the lowest point of the robot up to which points are those of soles: hands and knees are higher."""


def _soles_of(robot: Robot, contacts: Sequence[Contact], q: np.ndarray) -> list[Contact]:
    """A contact for each link at the end of a limb, with the points of its shapes that are lowest in a position."""
    low: dict[str, tuple[Contact, list[np.ndarray]]] = {}
    for contact in contacts:
        for shape in contact.shapes:
            if _is_end(robot, shape.frame):
                low.setdefault(shape.frame, (contact, []))[1].extend(_lowest_of(robot, shape, q))
    heights = [point[2] for _, points in low.values() for point in points]
    soles = []
    for frame, (contact, points) in low.items():
        sole = np.array([point for point in points if point[2] < min(heights) + STANDING])
        if len(sole) > 2:
            place = np.asarray(robot.pose(q, frame=frame))
            corners = times(sole - place[:3, 3], place[:3, :3])
            soles.append(Contact(frame, points=corners.tolist(), friction=contact.friction, name=frame))
    return soles


def _is_end(robot: Robot, frame: str) -> bool:
    """Whether no joint moves something that hangs on the body of a frame."""
    body = robot.locate(frame)[0]
    return all(robot.carrier(joint.parent)[0] != body for joint in robot.moving_joints)


def _lowest_of(robot: Robot, shape: Shape, q: np.ndarray) -> list[np.ndarray]:
    """Corners of the lowest face of a box or a hull, or the lowest points of end spheres, in the world [m]."""
    place = times(robot.pose(q, frame=shape.frame), shape.pose.matrix)
    up, radius = place[2, :3], 0.0
    match shape.kind:
        case "box":
            half, axis = 0.5 * np.array(shape.sizes), int(np.argmax(np.abs(up)))
            signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
            corners = half * signs[signs[:, axis] * up[axis] < 0.0]
        case "hull":
            points = np.array(shape.points)
            heights = times(points, up)
            corners = points[heights < heights.min() + LEVEL]
        case "capsule":
            radius, length = shape.sizes
            corners = np.array([(0.0, 0.0, -0.5 * length), (0.0, 0.0, 0.5 * length)])
        case "sphere":
            (radius,), corners = shape.sizes, np.zeros((1, 3))
        case _:
            return []
    return [times(place[:3, :3], corner) + place[:3, 3] - (0.0, 0.0, radius) for corner in corners]


def _upright(robot: Robot, stand: Any) -> np.ndarray:
    """Positions (nq,) with the trunk upright."""
    q = np.array(robot.neutral if stand is None else stand, dtype=float)
    if q.shape == (robot.nq - 7,):
        q = np.concatenate([robot.neutral[:7], q])
    q = arguments.numbers("stand", q, (robot.nq,)).copy()
    q[:7] = (0.0, 0.0, q[2], 0.0, 0.0, 0.0, 1.0)
    _check_range(robot, q)
    return q


def _on_link(robot: Robot, name: str) -> tuple[str, Transform]:
    """The link of a link or frame of this name, and its place there."""
    found = next((frame for frame in robot.frames if frame.name == name), None)
    return (name, Transform.identity()) if found is None else (found.link, found.pose)


def _frames(robot: Robot, touching: Sequence[Any], q: np.ndarray) -> tuple[list[Frame], list[np.ndarray]]:
    """Frames of the feet, and corners of soles; no corners where every link has one sphere."""
    of_link: dict[str, list[Any]] = {}
    for contact in touching:
        points = [contact.offset] if contact.points is None else contact.points
        of_link.setdefault(contact.frame, []).extend(points)
    if all(len(points) < 3 for points in of_link.values()):
        spheres = [(each, *_on_link(robot, each.frame)) for each in touching]
        return [
            Frame(f"{each.name or each.frame} centre", link, place @ Transform.from_rpy(each.offset))
            for each, link, place in spheres
        ], []
    counts = {len(points) for points in of_link.values()}
    if len(counts) > 1:
        raise ProblemError(
            f"feet: soles have other numbers of contacts each: {sorted(counts)}; give them the same"
        )
    frames, corners = [], []
    for frame, points in of_link.items():
        level = np.asarray(robot.pose(q, frame=frame))[:3, :3].T  # axes of the world in those of the frame
        seen = times(points, level)
        middle = 0.5 * (seen.min(axis=0) + seen.max(axis=0))
        link, place = _on_link(robot, frame)
        frames.append(Frame(f"{frame} sole", link, place @ Transform(level, times(level, middle))))
        corners.append(seen - middle)
    return frames, corners


def _check_range(robot: Robot, q: np.ndarray) -> None:
    """Refuse positions outside of the joints' limits."""
    for coordinate, value, low, high in zip(
        position_coordinates(robot), q, robot.limits.lower, robot.limits.upper, strict=True
    ):
        if not low <= value <= high:
            raise ProblemError(
                f"stand: {coordinate.name} at {value:g} is outside of its limits {low:g} and {high:g}; give joint "
                "positions in which the robot stands"
            )


def _order(places: np.ndarray) -> list[int]:
    """Front before rear, left before right; two feet: left, right."""
    count = len(places)
    by_front = sorted(range(count), key=lambda k: -places[k, 0])
    half = count if count < 4 else count // 2
    return [
        k for part in (by_front[:half], by_front[half:]) for k in sorted(part, key=lambda k: -places[k, 1])
    ]
