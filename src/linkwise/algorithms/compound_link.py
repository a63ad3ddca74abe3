"""Inertia and gravity coefficients by compound links.

A. Izaguirre et al., "A new computational structure for real-time dynamics", 1992, (2)–(17), for every pairing of
revolute and prismatic joints. Errors of the paper corrected: (1) multiplies D_ij by the acceleration of joint *j*;
(8)'s last entry is l_x² + l_y²; the masses add as M_j = M_{j+1} + m_j and (15) needs L_{j+1}; the printed program
leaves J413 and J423 out when it carries compound link 4 into frame 3.

The frames here are those of modified DH, in which the moments of a link are constant in its own frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.velocity_torques import velocity_torques
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned, flat
from linkwise.scalar import Scalar, stage
from linkwise.spatial import RigidInertia, Spatial, Vector, zero_rigid


def inverse_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> list[JointValue]:
    """Σ_j D_ij q̈_j + velocity torques + D_i: torques without friction and rotor inertia [N·m or N]."""
    turned, compound = compound_links(links, q)
    D = inertia_coefficients(links, turned, compound)
    gravity = gravity_coefficients(links, turned, compound)
    velocity = velocity_torques(links, q, qd, wrenches)
    with stage("sum"):
        accelerations = flat(qdd)
        rest = [v + g for v, g in zip(flat(velocity), flat(gravity), strict=True)]
        torques = [
            sum((d * a for d, a in zip(row, accelerations, strict=True)), start=start)
            for row, start in zip(D, rest, strict=True)
        ]
        return links.grouped(torques)


def mass_matrix(links: Mechanism, q: Sequence[JointValue]) -> list[list[Scalar]]:
    """D_ij without rotor inertia."""
    turned, compound = compound_links(links, q)
    return inertia_coefficients(links, turned, compound)


def gravity_torques(links: Mechanism, q: Sequence[JointValue]) -> list[JointValue]:
    """D_i: the torques that hold the arm against gravity [N·m or N]."""
    turned, compound = compound_links(links, q)
    return gravity_coefficients(links, turned, compound)


def compound_links(links: Mechanism, q: Sequence[JointValue]) -> tuple[list[Turned], list[RigidInertia]]:
    """(15), (17): mass, first and second moments of each compound link, about its frame's origin."""
    with stage("joint turns"):
        turned = links.turned(q)

    def step(link: MovingLink, received: RigidInertia, turned: Turned):
        compound = received + link.inertia
        joint = link.placed(turned)
        return compound, joint.inward(compound).shifted(joint.lever)

    with stage("compound links"):
        return turned, links.inward(step, zero_rigid(), turned)


def inertia_coefficients(
    links: Mechanism, turned: Sequence[Turned], compound: Sequence[RigidInertia]
) -> list[list[Scalar]]:
    """(3), (9), (11): D_ij = (z_i × p)·(z_j × L_j) + z_i·I_j z_j, and the same for prismatic joints.

    The force and moment that compound link j needs for a unit acceleration of joint j are carried inward, link by
    link; their component along the axis of each joint i on the way is D_ij. With a·(b × c) = (a × b)·c that is (9),
    with all p's shared.
    """
    with stage("inertia coefficients"):
        # I z, z × L for a turning axis; L × z, M z for a sliding one
        return links.pairings(turned, lambda k, axis: axis.rigid_column(compound[k]))


def gravity_coefficients(
    links: Mechanism, turned: Sequence[Turned], compound: Sequence[RigidInertia]
) -> list[JointValue]:
    """(5), (13): −(z × L)·g for a revolute joint, −M z·g for a prismatic one, with g in the link's axes."""
    with stage("gravity coefficients"):

        def in_link(link: MovingLink, g: Vector, turned: Turned) -> Vector:
            return link.placed(turned).outward(g)

        gravity = links.outward(in_link, links.gravity, turned)

        def coefficient(link: MovingLink, body: RigidInertia, g: Vector) -> JointValue:
            return link.felt(Spatial(g.cross(body.first_moment), -body.mass * g))

        return links.each(coefficient, compound, gravity)
