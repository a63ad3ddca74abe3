"""Where the frames are and how they move, in the axes of the file's base frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.model.axes import Axis, JointValue, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink, Turned, flat
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, stage, traced_once
from linkwise.spatial import Matrix, Spatial, Vector, zero_spatial, zero_vector


@dataclass(slots=True, eq=False)
class Pose:
    """Rotation and position of a frame in another, over any scalar."""

    rotation: Matrix
    position: Vector

    def times(self, other: Pose) -> Pose:
        return Pose(self.rotation.times(other.rotation), self.rotation @ other.position + self.position)


def constant_pose(transform: Transform) -> Pose:
    return Pose(Matrix(*transform.rotation.ravel().tolist()), Vector(*transform.translation.tolist()))


def base_pose(links: Mechanism) -> Pose:
    """The pose of the prepared base frame in the file's, cleaned of round-off."""
    return constant_pose(links.base)


def link_poses(links: Mechanism, q: Sequence[JointValue]) -> list[Pose]:
    """The pose of every prepared link frame in the file's base frame; traced once for all functions of the same q."""
    return list(traced_once(("link poses", links), flat(q), lambda: _link_poses(links, q)))


def _link_poses(links: Mechanism, q: Sequence[JointValue]) -> list[Pose]:
    with stage("joint turns"):
        turned = links.turned(q)

    def step(link: MovingLink, parent: Pose, turned: Turned) -> Pose:
        joint = link.placed(turned)
        columns = [joint.inward(Vector(*e)) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
        turn = Matrix(*(scalar for row in zip(*columns, strict=True) for scalar in row))
        return parent.times(Pose(turn, joint.lever))

    with stage("poses outward"):
        return links.outward(step, base_pose(links), turned)


def frame_pose(links: Mechanism, poses: list[Pose], body: int, pose: Transform) -> Pose:
    """The pose of a frame that lies at ``pose`` in the file's frame of link ``body`` (−1: the base)."""
    if body < 0:
        return constant_pose(pose)
    return poses[body].times(constant_pose(links[body].file_frame @ pose))


def pose(links: Mechanism, q: Sequence[JointValue], body: int, pose: Transform) -> list[list[Scalar]]:
    """The homogeneous 4×4 matrix of a frame in the base frame."""
    found = frame_pose(links, link_poses(links, q), body, pose)
    R, p = found.rotation, found.position
    return [
        [R.xx, R.xy, R.xz, p.x],
        [R.yx, R.yy, R.yz, p.y],
        [R.zx, R.zy, R.zz, p.z],
        [0.0, 0.0, 0.0, 1.0],
    ]


def axis_in_base(axis: Axis, pose: Pose, point: Vector | None = None) -> Spatial:
    """The motion that a unit rate of an axis gives its link, in base axes: at a point, or at the base's origin."""
    e = pose.rotation.column(axis.k)
    if not axis.turns:
        return Spatial(zero_vector(), e)
    linear = pose.position.cross(e) if point is None else e.cross(point - pose.position)
    return Spatial(e, linear + axis.pitch * e if axis.screws else linear)


def jacobian(links: Mechanism, q: Sequence[JointValue], body: int, pose: Transform) -> list[list[Scalar]]:
    """6×n: angular then linear velocity of a frame's origin, in base axes, per joint velocity."""
    poses = link_poses(links, q)
    with stage("jacobian"):
        target = frame_pose(links, poses, body, pose).position
        moving = {body, *links.ancestors(body)} if body >= 0 else set[int]()
        columns: list[list[Scalar]] = []
        for k, axis in links.coordinates():
            column = axis_in_base(axis, poses[k], target) if k in moving else zero_spatial()
            columns.append([*column.angular, *column.linear])
        return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(6)]


def velocity(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue], body: int, pose: Transform
) -> list[Scalar]:
    """Angular and linear velocity of a frame's origin [rad/s, m/s], in base axes, 6 values."""
    poses = link_poses(links, q)
    with stage("velocities outward"):

        def step(link: MovingLink, parent: Spatial, own: Pose, qd: JointValue) -> Spatial:
            # velocities are taken at the base's origin, so they pass from link to link unchanged
            for axis, rate in zip(link.axes, parts_of(qd), strict=True):
                parent = parent + rate * axis_in_base(axis, own)
            return parent

        velocities = links.outward(step, zero_spatial(), poses, qd)
        if body < 0:
            return [0.0] * 6
        w, v = velocities[body]
        target = frame_pose(links, poses, body, pose).position
        return [*w, *(v + w.cross(target))]


def wrench_on_link(links: Mechanism, wrench: Sequence[Scalar], body: int, pose: Transform) -> Spatial:
    """A wrench given at a frame's origin in its axes, about the prepared link frame's origin, in that frame's axes."""
    at = links[body].file_frame @ pose
    rotation = Matrix(*np.where(np.abs(at.rotation) < 1e-15, 0.0, at.rotation).ravel().tolist())
    moment, force = rotation @ Vector(*wrench[:3]), rotation @ Vector(*wrench[3:])
    return Spatial(moment + Vector(*at.translation.tolist()).cross(force), force)
