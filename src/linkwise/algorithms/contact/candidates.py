"""Candidates of contact: for each its gap, its point, its axes and the rows of its velocity.

The ground is the plane z = height of the world. A sphere with centre x and radius r has the gap x_z − r − height and
touches the ground at x − r e_z; the axes of contact are those of the world. Rows are the velocity of that point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.algorithms import coupling
from linkwise.algorithms.kinematics import Pose, axis_in_base, frame_pose, link_poses
from linkwise.model import contacts as parts
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, all_of, stage, where
from linkwise.spatial import Matrix, Vector

Rows = list[list[Scalar]]


@dataclass(frozen=True)
class Candidate:
    """A sphere of link ``body`` (with its centre at ``place`` in the link's file frame) that may touch the ground.

    A corner of a box is one of the four of the face that points down: ``half`` of the edges, and which ``corner``.
    """

    body: int
    place: Transform
    radius: float
    friction: float
    restitution: float
    half: tuple[float, float, float] | None = None
    corner: tuple[float, float] = (0.0, 0.0)
    stiffness: float | None = None
    damping: float = 0.0
    torsional_friction: float = 0.0
    rolling_friction: float = 0.0


@dataclass(frozen=True)
class Touch:
    """One candidate in one state: its gap [m] and three rows of velocity, tangents before the normal."""

    gap: Scalar
    rows: Rows


def prepared(model: Any) -> list[Candidate]:
    """The candidates of a model on its moving links."""
    found: list[Candidate] = []
    for contact in parts.contacts_of(model.contact_parts):
        body, pose = model.locate(contact.frame)
        for point in contact.points or ():
            at = pose @ Transform(np.eye(3), np.array(point))
            each = Candidate(body, at, contact.radius, contact.friction or 0.0, contact.restitution)
            each = replace(each, stiffness=contact.stiffness, damping=contact.damping)
            each = replace(
                each, torsional_friction=contact.torsional_friction, rolling_friction=contact.rolling_friction
            )
            if contact.edges is None:
                found.append(each)
                continue
            x, y, z = contact.edges
            box = replace(each, half=(0.5 * x, 0.5 * y, 0.5 * z))
            found += [replace(box, corner=(a, b)) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    return found


def gaps(
    links: Mechanism, q: Sequence[JointValue], candidates: Sequence[Candidate], height: Sequence[Scalar]
) -> list[Scalar]:
    """Distance of every candidate to what it may touch [m]; negative where it is inside."""
    poses = link_poses(links, q)
    with stage("gaps"):
        return [
            _centre(links, poses, each).z - (each.radius + level)
            for each, level in zip(candidates, height, strict=True)
        ]


def touches(
    links: Mechanism, q: Sequence[JointValue], candidates: Sequence[Candidate], height: Sequence[Scalar]
) -> list[Touch]:
    """Gaps and rows of all candidates."""
    poses = link_poses(links, q)
    with stage("contact rows"):
        found: list[Touch] = []
        for each, level in zip(candidates, height, strict=True):
            centre = _centre(links, poses, each)
            point = Vector(centre.x, centre.y, centre.z - each.radius) if each.radius else centre
            rows = _velocity_rows(links, poses, each.body, point)
            found.append(Touch(centre.z - (each.radius + level), rows))
        return found


def _centre(links: Mechanism, poses: list[Pose], each: Candidate) -> Vector:
    pose = frame_pose(links, poses, each.body, each.place)
    if each.half is None:
        return pose.position
    return pose.rotation @ _corner(pose.rotation, each.half, each.corner) + pose.position


def _corner(R: Matrix, half: tuple[float, float, float], corner: tuple[float, float]) -> Vector:
    """A corner of the lowest face of a box, in its own axes.

    The face is across the axis that is nearest to the vertical. The lowest corner and the lowest edge of a box belong
    to this face in every orientation.
    """
    (x, y, z), (a, b) = half, corner
    down = [where(r > 0.0, -1.0, 1.0) for r in (R.zx, R.zy, R.zz)]
    squares = [r * r for r in (R.zx, R.zy, R.zz)]
    by_x = all_of(squares[0] > squares[1], squares[0] > squares[2])
    by_y = squares[1] > squares[2]
    return Vector(
        where(by_x, x * down[0], a * x),
        where(by_x, a * y, where(by_y, y * down[1], b * y)),
        where(by_x, b * z, where(by_y, b * z, z * down[2])),
    )


def turning_rows(links: Mechanism, q: Sequence[JointValue], body: int) -> Rows:
    """Rows of the angular velocity of a link, in base axes."""
    poses = link_poses(links, q)
    with stage("contact rows"):
        moving = {body, *links.ancestors(body)} if body >= 0 else set[int]()
        rows: Rows = [[], [], []]
        for k, axis in links.coordinates():
            column = [*axis_in_base(axis, poses[k]).angular] if k in moving else [0.0, 0.0, 0.0]
            for row, entry in zip(rows, column, strict=True):
                row.append(entry)
        return [coupling.reduced(links, row, (True,)) for row in rows]


def _velocity_rows(links: Mechanism, poses: list[Pose], body: int, point: Vector) -> Rows:
    """Rows of the velocity of the point of a link that is at ``point``, in base axes."""
    moving = {body, *links.ancestors(body)} if body >= 0 else set[int]()
    rows: Rows = [[], [], []]
    for k, axis in links.coordinates():
        column = [*axis_in_base(axis, poses[k], point).linear] if k in moving else [0.0, 0.0, 0.0]
        for row, entry in zip(rows, column, strict=True):
            row.append(entry)
    return [coupling.reduced(links, row, (True,)) for row in rows]
