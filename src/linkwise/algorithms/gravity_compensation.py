"""Forces on the links against gravity, for weight that is carried from outside: MuJoCo's ``gravcomp``.

Each link may have a mass and a first moment whose weight does not load the joints. They act like a body of that
negative mass that has weight but no inertia, so their torques and their energy depend on q alone and belong to g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linkwise.algorithms import derivatives
from linkwise.algorithms.kinematics import Pose, link_poses
from linkwise.joint_laws.gravity_compensation import GravityCompensation
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned
from linkwise.scalar import Scalar, stage
from linkwise.spatial import Matrix, RigidInertia, Spatial, Vector, zero_spatial, zero_symmetric

LAW = GravityCompensation()


def present(links: Mechanism) -> bool:
    """Whether some link has it; a symbol may have."""
    return any(not LAW.absent(link) for link in links)


def compensated(link: MovingLink) -> tuple[Scalar, Vector]:
    """The mass and the first moment whose weight is carried, in the prepared frame."""
    m, *h = LAW.numbers(link)
    return in_prepared_frame(link, m, Vector(*h))


def in_prepared_frame(link: MovingLink, m: Scalar, h: Vector) -> tuple[Scalar, Vector]:
    """A mass and a first moment in the file's frame of a link, in its prepared frame."""
    pose = link.file_frame
    R = Matrix(*(0.0 if abs(x) < 1e-15 else float(x) for x in pose.rotation.ravel()))
    return m, R @ h + m * Vector(*pose.translation.tolist())


def torques(links: Mechanism, q: Sequence[JointValue]) -> list[JointValue]:
    """What is added to the torques that hold the arm [N·m or N]."""
    with stage("gravity compensation"):
        turned = links.turned(q)
        gravity = gravity_in_links(links, turned)
        own = links.each(lambda link, g: force(g, *compensated(link)), gravity)

        def step(link: MovingLink, received: Spatial, turned: Turned, own: Spatial):
            total = received + own
            return link.felt(total), link.placed(turned).force_to_parent(total)

        return links.inward(step, zero_spatial(), turned, own)


def gravity_in_links(links: Mechanism, turned: Sequence[Turned]) -> list[Vector]:
    """Gravity in the axes of every link."""

    def in_link(link: MovingLink, g: Vector, turned: Turned) -> Vector:
        return link.placed(turned).outward(g)

    return links.outward(in_link, links.gravity, turned)


def force(g: Vector, m: Scalar, h: Vector) -> Spatial:
    """What the joints need less (so it is negative where it lifts), about the link's origin."""
    return Spatial(h.cross(g), m * g)


def energy(links: Mechanism, q: Sequence[JointValue]) -> Scalar:
    """+Σ m g·c of the compensated masses [J]; its gradient is ``torques``."""
    poses = link_poses(links, q)
    gravity = Vector(*(links.base.rotation @ [*links.gravity]).tolist())
    with stage("gravity compensation"):

        def part(link: MovingLink, pose: Pose) -> Scalar:
            m, h = compensated(link)
            return gravity.dot(m * pose.position + pose.rotation @ h)

        parts = links.each(part, poses)
        return sum(parts[1:], start=parts[0])


def derivatives_by_q(links: Mechanism, q: Sequence[JointValue]) -> list[list[Scalar]]:
    """The derivative of ``torques`` along the velocity coordinates: those of negative bodies at rest."""

    def negative(link: MovingLink) -> RigidInertia:
        m, h = compensated(link)
        return RigidInertia(-m, -h, zero_symmetric())

    bodies = Mechanism(
        links.name,
        [replace(link, inertia=negative(link)) for link in links],
        links.gravity,
        links.base,
        links.original,
    )
    still = links.grouped([0.0] * links.dof)
    return derivatives.inverse_dynamics_derivatives(bodies, q, still, still)[0]
