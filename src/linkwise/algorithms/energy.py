"""Kinetic and potential energy."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.boundary_value import spatial_velocities
from linkwise.algorithms.kinematics import Pose, link_poses
from linkwise.model.axes import JointValue, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, stage
from linkwise.spatial import Vector


def kinetic_energy(links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]) -> Scalar:
    """½ Σ Vᵀ M V + ½ Σ I_a q̇² [J] (Rodriguez 3.2)."""
    turned = links.turned(q)
    velocities = spatial_velocities(links, turned, qd)
    with stage("kinetic energy"):
        twice = links.each(
            lambda link, V, qd: sum(
                (link.rotor_inertia * (rate * rate) for rate in parts_of(qd)), start=V.dot(link.inertia @ V)
            ),
            velocities,
            qd,
        )
        return 0.5 * sum(twice[1:], start=twice[0]) if twice else 0.0


def potential_energy(links: Mechanism, q: Sequence[JointValue]) -> Scalar:
    """−Σ m g·c [J], zero for masses in the origin of the base frame."""
    poses = link_poses(links, q)
    base = links.base.rotation
    gravity = Vector(*(base @ [*links.gravity]).tolist())
    with stage("potential energy"):

        def part(link: MovingLink, pose: Pose) -> Scalar:
            m, h, _ = link.inertia
            return gravity.dot(m * pose.position + pose.rotation @ h)

        parts = links.each(part, poses)
        return -sum(parts[1:], start=parts[0]) if parts else 0.0
