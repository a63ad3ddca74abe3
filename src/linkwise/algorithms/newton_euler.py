"""Recursive Newton–Euler inverse dynamics.

K. Kozłowski, "New computational algorithms for a discrete Kalman filter in robot dynamics", 1990, (3.24)–(3.33):
velocities and accelerations outward, forces inward. Links are numbered from the base here (the paper counts from the
tip). The acceleration recursion carries the joint *acceleration* (printed with one dot), and gravity enters as a base
that accelerates with −g.

The two bias terms (3.31)–(3.33) and the accelerations are combined in one matrix per link, U = ω̇^ + ω^ω^ (Luh,
Khalil): the acceleration of a point at l is v̇ + U·l, the force of the body is m·v̇ + U·h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import dense
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned, flat
from linkwise.scalar import Scalar, stage
from linkwise.spatial import Matrix, RigidInertia, Spatial, Vector, zero_spatial, zero_vector


@dataclass(slots=True, eq=False)
class Moving:
    """How a link moves: angular velocity, angular acceleration, acceleration of its origin, and U."""

    w: Vector
    wd: Vector
    vd: Vector
    U: Matrix

    def __iter__(self) -> Iterator[Any]:
        return iter((self.w, self.wd, self.vd, self.U))


def inverse_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
    *,
    gravity: Vector | None = None,
) -> list[JointValue]:
    """Joint torques without friction and rotor inertia [N·m or N].

    q, qd, qdd and the torques hold one quantity per link (see ``model.axes``). ``wrenches``: the external (moment,
    force) on each link, about its origin, in its axes. ``gravity`` replaces the robot's own.
    """
    with stage("joint turns"):
        turned = links.turned(q)
    with stage("motion outward"):
        moving = motion(links, turned, qd, qdd, gravity)
    with stage("forces of the links"):
        loads = links.each(lambda link, moving: body_force(link.inertia, moving), moving)
    with stage("forces inward"):
        return joint_torques(links, turned, loads, wrenches)


def motion(
    links: Mechanism,
    turned: Sequence[Turned],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    gravity: Vector | None = None,
) -> list[Moving]:
    """(3.24)–(3.27), (3.31), (3.32): velocities and accelerations, from the base to the tips."""
    g = links.gravity if gravity is None else gravity
    still = Moving(zero_vector(), zero_vector(), -g, Matrix(*[0.0] * 9))
    return links.outward(_moved, still, turned, qd, qdd)


def _moved(link: MovingLink, parent: Moving, turned: Turned, qd: JointValue, qdd: JointValue) -> Moving:
    joint = link.placed(turned)
    w = joint.outward(parent.w)
    wd = joint.outward(parent.wd)
    vd = joint.outward(parent.vd + parent.U @ joint.lever)
    gained = link.bias(w, qd) + link.moved(qdd)
    w, wd, vd = w + link.moved(qd).angular, wd + gained.angular, vd + gained.linear
    return Moving(w, wd, vd, acceleration_matrix(w, wd))


def acceleration_matrix(w: Vector, wd: Vector) -> Matrix:
    """U = ω̇^ + ω^ω^."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Matrix(
        -(yy + zz), xy - wd.z, xz + wd.y, xy + wd.z, -(xx + zz), yz - wd.x, xz - wd.y, yz + wd.x, -(xx + yy)
    )


def body_force(inertia: RigidInertia, moving: Moving) -> Spatial:
    """M λ + b̄ of (3.29), (3.33): the force that moves one body, about its origin."""
    h = inertia.first_moment
    force = inertia.mass * moving.vd + moving.U @ h
    return Spatial(turning_moment(inertia, moving) + h.cross(moving.vd), force)


def turning_moment(inertia: RigidInertia, moving: Moving) -> Vector:
    """I ω̇ + ω × I ω, with the products of angular velocities taken from U."""
    I, U = inertia.second_moment, moving.U
    w, wd = moving.w, moving.wd
    return Vector(
        I.xx * wd.x + (I.zz - I.yy) * (w.y * w.z) - I.xy * U.zx + I.xz * U.yx + I.yz * (U.yy - U.zz),
        I.yy * wd.y + (I.xx - I.zz) * (w.x * w.z) + I.xy * U.zy - I.yz * U.xy + I.xz * (U.zz - U.xx),
        I.zz * wd.z + (I.yy - I.xx) * (w.x * w.y) - I.xz * U.yz + I.yz * U.xz + I.xy * (U.xx - U.yy),
    )


def joint_torques(
    links: Mechanism,
    turned: Sequence[Turned],
    loads: Sequence[Spatial],
    wrenches: Sequence[Spatial] | None = None,
) -> list[JointValue]:
    """(3.28)–(3.30): forces from the tips to the base, and their component along each joint's axis."""
    if wrenches is not None:
        loads = links.each(lambda link, load, wrench: load - wrench, loads, wrenches)

    def step(link: MovingLink, received: Spatial, turned: Turned, load: Spatial):
        x = received + load
        return link.felt(x), link.placed(turned).force_to_parent(x)

    return links.inward(step, zero_spatial(), turned, loads)


def mass_matrix(links: Mechanism, q: Sequence[JointValue]) -> list[list[Scalar]]:
    """M by n inverse dynamics with unit accelerations, without velocities and gravity."""
    n = links.dof
    still = links.grouped([0.0] * n)
    columns = [
        flat(inverse_dynamics(links, q, still, links.grouped(row), gravity=zero_vector()))
        for row in dense.identity(n)
    ]
    return [[columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
