"""The generalised momentum p = M q̇ and what the motion itself adds to its rate, without forming M or C.

A. De Luca and R. Mattone, "Sensorless robot collision detection and hybrid force/motion control", 2005, (5), (6): with
Ṁ = C + Cᵀ the equation of motion reads

    ṗ = τ + Cᵀ q̇ − g − friction + τ_ext.

Momentum of bodies gives both terms at once. H_j is the spatial momentum of link j and all links beyond it, V_j the
velocity of link j, S_j an axis of its joint, which is fixed in the link, so that it changes with V_j × S_j:

    p_j = S_j · H_j        (Cᵀ q̇)_j = (V_j × S_j) · H_j = −S_j · (V_j ×* H_j)

So one pass outward (velocities) and one inward (momenta) are enough. The second is the derivative of the kinetic energy
by q_j, and holds for ball and floating joints as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import joint_terms
from linkwise.algorithms.boundary_value import spatial_velocities
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned
from linkwise.scalar import stage
from linkwise.spatial import Spatial, zero_spatial


def momentum(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]
) -> tuple[list[JointValue], Sequence[JointValue]]:
    """(p, Cᵀ q̇) [N·m·s, N·m or N·s, N], one quantity per link; rotor inertias are part of p."""
    with stage("joint turns"):
        turned = links.turned(q)
    with stage("velocity outward"):
        velocities = spatial_velocities(links, turned, qd)
    with stage("momentum inward"):
        own = links.each(lambda link, V: link.inertia @ V, velocities)
        both = links.inward(_gathered, zero_spatial(), turned, velocities, own)
    rotors = joint_terms.rotor_torques(links, qd)
    p = joint_terms.added(links, [p for p, _ in both], rotors)
    return p, joint_terms.subtract_world_rotors(links, [carried for _, carried in both], qd)


def _gathered(link: MovingLink, received: Spatial, turned: Turned, V: Spatial, own: Spatial):
    H = received + own
    w, v = V
    turning = H.moment.cross(w) + H.force.cross(v)
    pair = (link.felt(H), link.felt(Spatial(turning, H.force.cross(w))))
    return pair, link.placed(turned).force_to_parent(H)
