"""Gibbs–Appell inverse dynamics.

A. Valera et al., "Solving the inverse dynamic control for low cost real-time industrial robot control applications",
2003, (9)–(26). The torque is the derivative of the energy of accelerations by the joint acceleration, split into A
(turning about the centre of mass) and B (moving it). Errors of the paper corrected: with modified DH frames the
moment arm in (22)–(25) runs from O_j; (9), (10) and (14) need the factor ρ for prismatic joints.

A body without mass has no centre of mass, but a set of reduced parameters may still give it moments: its reference
point G is then the frame's origin and its first moment about G does not vanish (it is zero for every real body).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned
from linkwise.scalar import stage
from linkwise.spatial import RigidInertia, Spatial, Symmetric, Vector, zero_spatial, zero_vector


@dataclass(slots=True, eq=False)
class LinkMotion:
    """Angular velocity, angular acceleration, acceleration of the origin (9)–(11)."""

    w: Vector
    wd: Vector
    rdd: Vector

    def __iter__(self) -> Iterator[Any]:
        return iter((self.w, self.wd, self.rdd))


@dataclass(slots=True, eq=False)
class Centred:
    """A body seen from its reference point G: where G is, the first moment about it, the inertia about it."""

    arm: Vector
    first_moment: Vector
    inertia: Symmetric


def inverse_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> list[JointValue]:
    """Joint torques without friction and rotor inertia [N·m or N]; ``wrenches`` as in ``newton_euler``."""
    with stage("step 1: rotations"):
        turned = links.turned(q)
    with stage("step 2: velocities and accelerations"):
        still = LinkMotion(zero_vector(), zero_vector(), -links.gravity)
        moving = links.outward(_moved, still, turned, qd, qdd)
        # step 3, the derivatives of ω̇ by q̈ (14), is the axis z in the link's own frame: nothing to compute
        at_centre = links.each(_acceleration_of_centre, moving)
    with stage("step 4: A terms"):
        own_alpha = links.each(_turning, moving, at_centre)
        if wrenches is not None:
            own_alpha = links.each(lambda link, a, wrench: a - wrench.moment, own_alpha, wrenches)
        alpha = links.inward(_gather_alpha, zero_vector(), turned, own_alpha)
    with stage("step 5: B terms"):
        own_force = links.each(
            lambda link, moving, rdd: _inertial_force(link.inertia, moving, rdd), moving, at_centre
        )
        own_beta = links.each(lambda link, f: f.cross(centred(link.inertia).arm), own_force)
        if wrenches is not None:
            own_force = links.each(lambda link, f, wrench: f - wrench.force, own_force, wrenches)
        own = links.each(lambda link, b, f: Spatial(b, f), own_beta, own_force)
        beta = links.inward(_gather_beta, zero_spatial(), turned, own)
    with stage("step 6: generalised forces"):
        # (16), (23) for a turning axis; for a sliding one the derivative of the acceleration of G is the axis itself
        return links.each(lambda link, a, b: link.felt(Spatial(a - b.angular, b.linear)), alpha, beta)


def centred(inertia: RigidInertia) -> Centred:
    """The body about its centre of mass (about its origin when it has no mass)."""
    m, h, I = inertia
    if isinstance(m, float) and m == 0.0:
        return Centred(zero_vector(), h, I)
    c = Vector(h.x / m, h.y / m, h.z / m)
    xx, yy, zz = h.x * c.x, h.y * c.y, h.z * c.z
    about = Symmetric(
        I.xx - (yy + zz),
        I.xy + h.x * c.y,
        I.xz + h.x * c.z,
        I.yy - (xx + zz),
        I.yz + h.y * c.z,
        I.zz - (xx + yy),
    )
    return Centred(c, zero_vector(), about)


def _moved(
    link: MovingLink, parent: LinkMotion, turned: Turned, qd: JointValue, qdd: JointValue
) -> LinkMotion:
    """(9)–(11)."""
    joint = link.placed(turned)
    w = joint.outward(parent.w)
    wd = joint.outward(parent.wd)
    lever = joint.lever
    rdd = joint.outward(parent.rdd + parent.w.cross(parent.w.cross(lever)) + parent.wd.cross(lever))
    gained = link.bias(w, qd) + link.moved(qdd)
    return LinkMotion(w + link.moved(qd).angular, wd + gained.angular, rdd + gained.linear)


def _acceleration_of_centre(link: MovingLink, moving: LinkMotion) -> Vector:
    """(12)."""
    arm = centred(link.inertia).arm
    return moving.rdd + moving.w.cross(moving.w.cross(arm)) + moving.wd.cross(arm)


def _turning(link: MovingLink, moving: LinkMotion, rdd: Vector) -> Vector:
    """The link's own part of (17)."""
    body = centred(link.inertia)
    w = moving.w
    return body.inertia @ moving.wd + w.cross(body.inertia @ w) + body.first_moment.cross(rdd)


def _inertial_force(inertia: RigidInertia, moving: LinkMotion, rdd: Vector) -> Vector:
    """m r̈_G (and what a first moment about G adds, for bodies without mass)."""
    h = centred(inertia).first_moment
    return inertia.mass * rdd + moving.w.cross(moving.w.cross(h)) + moving.wd.cross(h)


def _gather_alpha(link: MovingLink, received: Vector, turned: Turned, own: Vector):
    """(17): α_j = own part + R α_{j+1}."""
    alpha = own + received
    return alpha, link.placed(turned).inward(alpha)


def _gather_beta(link: MovingLink, received: Spatial, turned: Turned, own: Spatial):
    """(25), (26): β_j and φ_j + m r̈_G, about the link's origin."""
    total = own + received
    joint = link.placed(turned)
    phi = joint.inward(total.linear)
    return total, Spatial(joint.inward(total.angular) + phi.cross(joint.lever), phi)
