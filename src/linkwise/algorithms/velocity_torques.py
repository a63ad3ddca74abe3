"""Velocity (Coriolis and centrifugal) torques by a recursion of their own.

A. Izaguirre et al., 1992, (18)–(24), after Khalil: the motion that joint speeds alone cause, outward; its forces,
inward. Gravity and joint accelerations are not included, as the background task needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned
from linkwise.scalar import stage
from linkwise.spatial import Matrix, Spatial, Vector, skew, zero_spatial, zero_vector


@dataclass(slots=True, eq=False)
class Coasting:
    """Angular velocity and the accelerations of a link while its joints keep their speed."""

    w: Vector
    wd: Vector
    vd: Vector
    U: Matrix

    def __iter__(self) -> Iterator[Any]:
        return iter((self.w, self.wd, self.vd, self.U))


def velocity_torques(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> list[JointValue]:
    """c(q, q̇) [N·m or N], less what external wrenches contribute."""
    with stage("joint turns"):
        turned = links.turned(q)
    with stage("velocity outward"):
        still = Coasting(zero_vector(), zero_vector(), zero_vector(), Matrix(*[0.0] * 9))
        coasting = links.outward(_coasted, still, turned, qd)
    with stage("velocity torques inward"):
        loads = links.each(_load, coasting)
        if wrenches is not None:
            loads = links.each(lambda link, load, wrench: load - wrench, loads, wrenches)
        return links.inward(_gather, zero_spatial(), turned, loads)


def _coasted(link: MovingLink, parent: Coasting, turned: Turned, qd: JointValue) -> Coasting:
    """(18)–(20)."""
    joint = link.placed(turned)
    w, wd = joint.outward(parent.w), joint.outward(parent.wd)
    vd = joint.outward(parent.vd + parent.U @ joint.lever)
    gained = link.bias(w, qd)
    w, wd, vd = w + link.moved(qd).angular, wd + gained.angular, vd + gained.linear
    return Coasting(w, wd, vd, skew(wd) + _square(w))


def _square(w: Vector) -> Matrix:
    """ŵŵ."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Matrix(-(yy + zz), xy, xz, xy, -(xx + zz), yz, xz, yz, -(xx + yy))


def _load(link: MovingLink, moving: Coasting) -> Spatial:
    """(21), (22) and the term L × v̇ of (24)."""
    m, L, I = link.inertia
    force = m * moving.vd + moving.U @ L
    return Spatial(I @ moving.wd + moving.w.cross(I @ moving.w) + L.cross(moving.vd), force)


def _gather(link: MovingLink, received: Spatial, turned: Turned, load: Spatial):
    """(23), (24)."""
    x = received + load
    return link.felt(x), link.placed(turned).force_to_parent(x)
