"""Inverse dynamics as a two-point boundary-value problem.

G. Rodriguez, JPL 86-48, 1986, sections 4–7, with the corrections of K. Kozłowski, 1990, (3.1)–(3.14): states are
spatial forces x (inward), costates are spatial accelerations λ (outward). λ holds the rate of the velocity in the
link's own frame, so ω × v appears in the bias force (3.14), whose term m ω×(ω×p) is missing in Rodriguez's (4.4) and
(4.11); the lever l runs from joint k to joint k−1 (Rodriguez's section 3 has it reversed). λ at the base is −g.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned
from linkwise.scalar import stage
from linkwise.spatial import RigidInertia, Spatial, zero_spatial, zero_vector


def inverse_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> list[JointValue]:
    """Joint torques without friction and rotor inertia [N·m or N]; ``wrenches`` as in ``newton_euler``."""
    with stage("joint turns"):
        turned = links.turned(q)
    with stage("biases"):
        velocities = spatial_velocities(links, turned, qd)
        bias_accelerations = links.each(bias_acceleration, velocities, qd)
        bias_forces = links.each(lambda link, V: bias_force(link.inertia, V), velocities)
    root = Spatial(zero_vector(), -links.gravity)
    costates = links.outward(_costate, root, turned, bias_accelerations, qdd)
    with stage("state propagation"):
        loads = links.each(lambda link, λ, b: link.inertia @ λ + b, costates, bias_forces)
        if wrenches is not None:
            loads = links.each(lambda link, load, wrench: load - wrench, loads, wrenches)
    return links.inward(_state, zero_spatial(), turned, loads)


def spatial_velocities(links: Mechanism, turned: Sequence[Turned], qd: Sequence[JointValue]) -> list[Spatial]:
    """(3.1)–(3.3): V⁻ of every link."""

    def step(link: MovingLink, parent: Spatial, turned: Turned, qd: JointValue) -> Spatial:
        return link.placed(turned).motion_from_parent(parent) + link.moved(qd)

    return links.outward(step, zero_spatial(), turned, qd)


def bias_acceleration(link: MovingLink, V: Spatial, qd: JointValue) -> Spatial:
    """n of (3.7), (3.7'): V × Hᵀq̇. V⁻ may stand for V⁺: they differ by Hᵀq̇ itself, which the product removes."""
    return link.carried(V, qd)


def bias_force(inertia: RigidInertia, V: Spatial) -> Spatial:
    """b of (3.14)."""
    w, v = V
    m, h, I = inertia
    carried = w.cross(v)
    return Spatial(w.cross(I @ w) + h.cross(carried), m * carried + w.cross(w.cross(h)))


def _costate(link: MovingLink, parent: Spatial, turned: Turned, bias: Spatial, qdd: JointValue) -> Spatial:
    """(3.10) at the link's origin, (3.11) in its axes."""
    with stage("costate propagation"):
        joint = link.placed(turned)
        λ = Spatial(parent.angular, parent.linear + parent.angular.cross(joint.lever))
    with stage("costate update"):
        return joint.outward(λ) + bias + link.moved(qdd)


def _state(link: MovingLink, received: Spatial, turned: Turned, load: Spatial):
    """(3.8), (3.12); (3.9) in the parent's axes."""
    with stage("state propagation"):
        joint = link.placed(turned)
        x = received + load
    with stage("state update"):
        moment, force = joint.inward(x)
    with stage("state propagation"):
        return link.felt(x), Spatial(moment + joint.lever.cross(force), force)
