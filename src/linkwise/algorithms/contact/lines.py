"""Lengths of tendons and the rows of their rates.

A tendon over joints has the length Σ c_k q_k. One through points x_0, x_1, … of links has Σ |x_k − x_{k−1}|, whose rate
is the sum of u · (ẋ_k − ẋ_{k−1}) with the direction u of each line. Joints that move both ends have no part in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import coupling, dense
from linkwise.algorithms.contact import recovery
from linkwise.algorithms.contact.candidates import moved_by, velocity_rows
from linkwise.algorithms.contact.point import TINY, JointRow
from linkwise.algorithms.kinematics import Pose, frame_pose, link_poses
from linkwise.model.axes import JointValue, parts_of
from linkwise.model.contacts import tendons_of
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, sqrt, stage, summed
from linkwise.spatial import Vector


@dataclass(frozen=True)
class TendonRow:
    """A length that stops at the ends of its range: over links with their weights, or through points of links."""

    weights: Sequence[tuple[int, float]]
    through: Sequence[tuple[int, Transform]]
    lower: float
    upper: float
    restitution: float


def prepared(model: Any) -> list[TendonRow]:
    """The tendons of a model."""
    links = {joint.name: k for k, joint in enumerate(model.moving_joints)}
    return [
        TendonRow(
            [(links[name], weight) for name, weight in each.weights.items()],
            [model.locate(frame) for frame in each.through],
            each.lower,
            each.upper,
            each.restitution,
        )
        for each in tendons_of(model.contact_parts)
    ]


def add(
    tendons: Sequence[TendonRow],
    links: Mechanism,
    q: Sequence[JointValue],
    frames: list[Pose],
    v: Sequence[Scalar],
    h: Scalar,
    rows: list[list[Scalar]],
    laws: list[JointRow],
) -> None:
    """Add the rows and laws of tendons.

    Args:
        tendons: of the robot.
        links: of the robot.
        q: positions.
        frames: poses whose axes the velocities are along.
        v: velocities before the step.
        h: the step [s].
        rows: of joints, to which theirs are added.
        laws: of the rows.
    """
    with stage("tendons"):
        for each in tendons:
            length, row = tendon(links, q, frames, each)
            rows.append(row)
            laws.append(JointRow(*recovery.ends(each, length, dense.dot(row, v), h)))


def tendon(
    links: Mechanism, q: Sequence[JointValue], frames: list[Pose], path: TendonRow
) -> tuple[Scalar, list[Scalar]]:
    """(length, row of its rate over the coordinates of joints that lead).

    Args:
        links: of the robot.
        q: positions.
        frames: poses whose axes the velocities are along.
        path: of the tendon.
    """
    if path.through:
        return _through(links, q, frames, path.through)
    first, row = links.first_coordinates(), [0.0] * len(links.coordinates())
    for k, weight in path.weights:
        row[first[k]] = weight
    length = summed(weight * parts_of(q[k])[0] for k, weight in path.weights)
    return length, coupling.reduced(links, row, (True,))


def _through(
    links: Mechanism, q: Sequence[JointValue], frames: list[Pose], points: Sequence[tuple[int, Transform]]
) -> tuple[Scalar, list[Scalar]]:
    poses = link_poses(links, q)
    places = [(body, frame_pose(links, poses, body, place).position) for body, place in points]
    lengths: list[Scalar] = []
    rates: list[list[Scalar]] = []
    for (first, start), (second, end) in itertools.pairwise(places):
        line = end - start
        length = sqrt(line.dot(line) + TINY)
        lengths.append(length)
        if first != second:
            along, own, other = (1.0 / length) * line, moved_by(links, second), moved_by(links, first)
            rates.append(_along(along, velocity_rows(links, frames, second, end, own - other)))
            rates.append(_along(-along, velocity_rows(links, frames, first, start, other - own)))
    return summed(lengths), [summed(column) for column in zip(*rates, strict=True)]


def _along(direction: Vector, rows: list[list[Scalar]]) -> list[Scalar]:
    return [direction.dot(Vector(*column)) for column in zip(*rows, strict=True)]
