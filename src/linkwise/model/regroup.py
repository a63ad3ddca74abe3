"""Regrouping of inertial parameters: the same torques from fewer of them.

Two kinds of bodies can change their link without changing any torque:

* mass spread along the axis of a revolute joint: it does not matter on which side of the joint it turns. Of the ten
  parameters of a link, m, h_z and I_yy describe such a body (I_xx = I_yy, I_zz = 0) and pass to the parent;
* the inertia tensor of a link behind a prismatic joint: it turns with the parent anyway;
* a mass in the centre of a ball joint.

What passes to the base has no effect and is dropped. The rules are exact, for trees too. They change potential
energy, the states and gains of the filter and the columns of the regressor, so they serve torques, mass matrices and
accelerations only.
"""

from __future__ import annotations

from dataclasses import replace

from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.spatial import RigidInertia, Symmetric, Vector, zero_rigid, zero_symmetric, zero_vector


def regrouped(links: Mechanism) -> Mechanism:
    """A mechanism with the same torques, in which revolute links have seven parameters and prismatic ones four."""
    kept: list[RigidInertia] = [link.inertia for link in links]
    for link in reversed(links):
        own, passed = _split(link, kept[link.index])
        kept[link.index] = own
        if link.parent >= 0:
            kept[link.parent] = kept[link.parent] + _in_parent(link, passed)
    moved = [replace(link, inertia=inertia) for link, inertia in zip(links, kept, strict=True)]
    return Mechanism(links.name, moved, links.gravity, links.base, links.original, links.wind)


def _split(link: MovingLink, inertia: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
    """(what must stay, what may pass to the parent)."""
    m, h, I = inertia
    if link.floating:
        return inertia, zero_rigid()
    if link.free:  # a mass in the centre of a ball joint
        return RigidInertia(0.0, h, I), RigidInertia(m, zero_vector(), zero_symmetric())
    if not link.turns:
        return RigidInertia(m, h, zero_symmetric()), RigidInertia(0.0, Vector(0.0, 0.0, 0.0), I)
    if link.slides:
        return inertia, zero_rigid()
    line = RigidInertia(m, Vector(0.0, 0.0, h.z), Symmetric(I.yy, 0.0, 0.0, I.yy, 0.0, 0.0))
    rest = Symmetric(I.xx - I.yy, I.xy, I.xz, 0.0, I.yz, I.zz)
    return RigidInertia(0.0, Vector(h.x, h.y, 0.0), rest), line


def _in_parent(link: MovingLink, body: RigidInertia) -> RigidInertia:
    """A body that need not turn or slide with the joint, in the parent's frame."""
    at_rest = link.at_rest()
    return at_rest.inward(body).shifted(at_rest.lever)
