"""The Coriolis matrix with Christoffel's symbols, so that Ṁ − 2C is skew, and the symbols themselves.

S. Echeandia and P. Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel symbols for rigid-body
systems", 2021: the body Coriolis matrix B(I, V) = ½[(V×*)I + (I V)×̄* − I(V×)] and its sums over the outer links. All
quantities are taken in the base frame about its origin, where they pass from link to link unchanged. The D_ijk of
Izaguirre's (1) are the entries of C for unit velocities, because C is linear in q̇.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.carriers import Carriers, Place
from linkwise.algorithms.kinematics import Pose, axis_in_base, link_poses
from linkwise.joint_laws import is_zero, world_rotor
from linkwise.model.axes import JointValue, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, stage
from linkwise.spatial import Matrix, RigidInertia, Spatial, Symmetric, Vector, skew, zero_spatial

Block = list[list[Scalar]]


def coriolis_matrix(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]
) -> list[list[Scalar]]:
    """C(q, q̇), n×n: C q̇ are the velocity torques, and C + Cᵀ = Ṁ."""
    C = _coriolis(links, link_poses(links, q), qd)
    for i, j, entry in rotor_entries(links, qd):
        C[i][j] = C[i][j] + entry
    return C


def rotor_entries(links: Mechanism, qd: Sequence[JointValue]) -> list[tuple[int, int, Scalar]]:
    """What rotors along the axes of the world add: row, column and a [ω]×, which is skew."""
    entries: list[tuple[int, int, Scalar]] = []
    for link, first, rates in zip(links, links.first_coordinates(), qd, strict=True):
        a = link.terms.get(world_rotor.NAME, 0.0)
        if not is_zero(a) and len(link.axes) == world_rotor.FLOATING:
            x, y, z = parts_of(rates)[:3]
            cross = ((0, 1, -z), (0, 2, y), (1, 0, z), (1, 2, -x), (2, 0, -y), (2, 1, x))
            entries += [(first + 3 + i, first + 3 + j, a * entry) for i, j, entry in cross]
    return entries


def christoffel(links: Mechanism, q: Sequence[JointValue]) -> list[list[list[Scalar]]]:
    """D_ijk, n×n×n, symmetric in j and k: the velocity torques are Σ_jk D_ijk q̇_j q̇_k."""
    n = links.dof
    poses = link_poses(links, q)
    unit = [[1.0 if i == k else 0.0 for i in range(n)] for k in range(n)]
    slices = [_coriolis(links, poses, links.grouped(rates)) for rates in unit]
    return [[[slices[k][i][j] for k in range(n)] for j in range(n)] for i in range(n)]


Moving = tuple[Spatial, list[Spatial]]
"""Velocity of a link, and the rates of its axes."""
Composite = tuple[RigidInertia, Block]
"""Inertia of a link with all links beyond it, and the sum of their B."""


def _coriolis(links: Mechanism, poses: list[Pose], qd: Sequence[JointValue]) -> list[list[Scalar]]:
    S, rates, total = axes_and_composites(links, poses, qd)
    C = np.full((links.dof, links.dof), 0.0, object)
    with stage("matrix"):
        axes = list(zip(S, rates, strict=True))
        add_pairs(C, Carriers(links), axes.__getitem__, total.__getitem__)
    return C.tolist()


def add_pairs(
    C: Any,
    carriers: Carriers,
    axis: Callable[[Place], tuple[Spatial, Spatial]],
    composite: Callable[[Place], Composite],
) -> None:
    """Add the entries of all pairs of axes of which one carries the other.

    Args:
        C: a matrix over axes.
        carriers: the pairs.
        axis: S and Ṡ of an axis.
        composite: of a link.
    """
    for j in carriers.axes():
        forces = forces_of(*axis(j), composite(carriers.link[j]))
        for i in carriers.own(j):
            C[i, j] = C[i, j] + axis(i)[0].dot(forces[0])
        for i in carriers.others(j):
            S, rate = axis(i)
            C[i, j] = C[i, j] + S.dot(forces[0])
            C[j, i] = C[j, i] + carried(S, rate, forces)


def forces_of(S: Spatial, rate: Spatial, composite: Composite) -> tuple[Spatial, Spatial, Spatial]:
    """(I Ṡ + B S, I S, Bᵀ S) of an axis and what it moves."""
    body, B = composite
    return body @ rate + times(B, S), body @ S, transposed_times(B, S)


def carried(S: Spatial, rate: Spatial, forces: tuple[Spatial, Spatial, Spatial]) -> Scalar:
    """The entry in the row of an axis and the column of one that carries it, with S and Ṡ of the latter."""
    return rate.dot(forces[1]) + S.dot(forces[2])


def axes_and_composites(
    links: Mechanism, poses: list[Pose], qd: Sequence[JointValue]
) -> tuple[list[Spatial], list[Spatial], list[Composite]]:
    """Every axis and its rate, and for every link its composite."""
    n = len(links)
    with stage("axes and velocities"):
        S = [axis for axes in links.each(joint_axes, poses) for axis in axes]

        def step(link: MovingLink, parent: Moving, pose: Pose, qd: JointValue) -> Moving:
            velocity, axes = parent[0], joint_axes(link, pose)
            for axis, rate in zip(axes, parts_of(qd), strict=True):
                velocity = velocity + rate * axis
            return velocity, [motion_cross(velocity, axis) for axis in axes]

        still: Moving = (zero_spatial(), [])
        moving = links.outward(step, still, poses, qd)
        rates = [rate for _, own in moving for rate in own]
    with stage("composite inertias"):
        inertias = links.each(inertia_in_base, poses)
        own = [
            (body, body_coriolis(body, V, body @ V)) for body, (V, _) in zip(inertias, moving, strict=True)
        ]
        total: list[Composite | None] = [None] * n
        for link in reversed(links):
            k = link.index
            body, block = own[k]
            known = total[k]
            total[k] = (body, block) if known is None else (known[0] + body, add_blocks(known[1], block))
            if link.parent >= 0:
                above = total[link.parent]
                mine = total[k]
                assert mine is not None
                total[link.parent] = (
                    mine if above is None else (above[0] + mine[0], add_blocks(above[1], mine[1]))
                )
    return S, rates, [composite for composite in total if composite is not None]


def joint_axes(link: MovingLink, pose: Pose) -> list[Spatial]:
    """The joint's axes about the base's origin, in base axes."""
    return [axis_in_base(axis, pose) for axis in link.axes]


def inertia_in_base(link: MovingLink, pose: Pose) -> RigidInertia:
    """The link's inertia about the base's origin, in base axes."""
    m, h, I = link.inertia
    R = pose.rotation
    k = R.times(I.matrix()).times(R.transposed())
    body = RigidInertia(m, R @ h, Symmetric(k.xx, k.xy, k.xz, k.yy, k.yz, k.zz))
    return body.shifted(pose.position)


def motion_cross(V: Spatial, S: Spatial) -> Spatial:
    w, v = V
    return Spatial(w.cross(S.angular), w.cross(S.linear) + v.cross(S.angular))


def body_coriolis(body: RigidInertia, V: Spatial, momentum: Spatial, factor: float = 0.5) -> Block:
    """2·factor·B(I, V), a 6×6 matrix made of 3×3 blocks; ``momentum`` is I V."""
    m, h, I = body
    w, v = V
    W, Vx, H = skew(w), skew(v), skew(h)
    full = I.matrix()
    mass = Matrix(m, 0.0, 0.0, 0.0, m, 0.0, 0.0, 0.0, m)
    lower = _scaled(H, -1.0)
    # V×* = [[w^, v^], [0, w^]],  V× = [[w^, 0], [v^, w^]],  f ×̄* = [[−n^, −f^], [−f^, 0]] for f = (n, f)
    n, f = skew(momentum.angular), skew(momentum.linear)
    aa = W.times(full) + Vx.times(lower) - n - (full.times(W) + H.times(Vx))
    ab = W.times(H) + Vx.times(mass) - f - H.times(W)
    ba = W.times(lower) - f - (lower.times(W) + mass.times(Vx))
    bb = W.times(mass) - mass.times(W)
    return _assemble(*(_scaled(block, factor) for block in (aa, ab, ba, bb)))


def _scaled(M: Matrix, factor: float) -> Matrix:
    return Matrix(*(factor * entry for entry in M))


def _assemble(aa: Matrix, ab: Matrix, ba: Matrix, bb: Matrix) -> Block:
    rows: Block = []
    for left, right in ((aa, ab), (ba, bb)):
        l, r = list(left), list(right)
        rows += [l[3 * i : 3 * i + 3] + r[3 * i : 3 * i + 3] for i in range(3)]
    return rows


def add_blocks(A: Block, B: Block) -> Block:
    return [[a + b for a, b in zip(r, s, strict=True)] for r, s in zip(A, B, strict=True)]


def _flat(x: Spatial) -> list[Scalar]:
    return [*x.angular, *x.linear]


def times(B: Block, x: Spatial) -> Spatial:
    flat = _flat(x)
    values = [sum((row[k] * flat[k] for k in range(1, 6)), start=row[0] * flat[0]) for row in B]
    return Spatial(Vector(*values[:3]), Vector(*values[3:]))


def transposed_times(B: Block, x: Spatial) -> Spatial:
    return times([list(column) for column in zip(*B, strict=True)], x)
