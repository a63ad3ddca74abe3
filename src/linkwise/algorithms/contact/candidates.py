"""Candidates of contact: for each its gap, its point, its axes and the rows of its velocity.

The ground is the plane z = height of the world. A sphere with centre x and radius r has the gap x_z − r − height and
touches the ground at x − r e_z; the axes of contact are those of the world. Rows are the velocity of that point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms import coupling
from linkwise.algorithms.kinematics import Pose, axis_in_base, frame_pose, link_poses
from linkwise.model import contacts as parts
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, stage
from linkwise.spatial import Vector

Rows = list[list[Scalar]]


@dataclass(frozen=True)
class Candidate:
    """A sphere of link ``body`` (with its centre at ``place`` in the link's file frame) that may touch the ground."""

    body: int
    place: Transform
    radius: float
    friction: float
    restitution: float


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
            found.append(Candidate(body, at, contact.radius, contact.friction or 0.0, contact.restitution))
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
    return frame_pose(links, poses, each.body, each.place).position


def _velocity_rows(links: Mechanism, poses: list[Pose], body: int, point: Vector) -> Rows:
    """Rows of the velocity of the point of a link that is at ``point``, in base axes."""
    moving = {body, *links.ancestors(body)} if body >= 0 else set[int]()
    rows: Rows = [[], [], []]
    for k, axis in links.coordinates():
        column = [*axis_in_base(axis, poses[k], point).linear] if k in moving else [0.0, 0.0, 0.0]
        for row, entry in zip(rows, column, strict=True):
            row.append(entry)
    return [coupling.reduced(links, row, (True,)) for row in rows]
