"""Derivatives of inverse dynamics by analytic recursions.

S. Singh, R. Russell and P. Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector
algebra", 2022. With Ψ̇ = v_parent × S, Ψ̈ = a_parent × S + v_parent × Ψ̇, Ṡ = v × S (v, a of the links; gravity is a base
that accelerates with −g), the composite inertia I, the composite body Coriolis matrix B and the composite force f of
the links beyond joint i, for every ancestor j of i (and i itself):

    ∂τ_i/∂q_j = S_iᵀ (2B_i Ψ̇_j + I_i Ψ̈_j)            ∂τ_j/∂q_i = S_jᵀ (2B_i Ψ̇_i + I_i Ψ̈_i + f_i ×̄* S_i)
    ∂τ_i/∂q̇_j = S_iᵀ (2B_i S_j + I_i (Ψ̇_j + Ṡ_j))     ∂τ_j/∂q̇_i = S_jᵀ (2B_i S_i + I_i (Ψ̇_i + Ṡ_i))

All quantities are taken in the base frame about its origin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.carriers import Carriers, Place
from linkwise.algorithms.coriolis import (
    Block,
    add_blocks,
    body_coriolis,
    inertia_in_base,
    joint_axes,
    motion_cross,
    times,
    transposed_times,
)
from linkwise.algorithms.kinematics import Pose, link_poses
from linkwise.model.axes import JointValue, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, stage
from linkwise.spatial import RigidInertia, Spatial, Vector, zero_vector

AxisMotion = tuple[Spatial, Spatial, Spatial, Spatial]
"""(S, Ψ̇, Ψ̈, Ψ̇ + Ṡ) of an axis."""
Moving = tuple[Spatial, Spatial, list[AxisMotion]]
"""Velocity and acceleration of a link, and the motion of its axes."""
Composite = tuple[RigidInertia, Block, Spatial]
"""Inertia I, twice the Coriolis block B and force f of a link with all links beyond it."""


def inverse_dynamics_derivatives(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue], qdd: Sequence[JointValue]
) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
    """(∂τ/∂q, ∂τ/∂q̇), n×n each, without friction."""
    each, composite = axes_and_composites(links, q, qd, qdd)
    by_q, by_qd = np.full((2, links.dof, links.dof), 0.0, object)
    with stage("derivatives"):
        add_pairs(by_q, by_qd, Carriers(links), each.__getitem__, composite.__getitem__)
    return by_q.tolist(), by_qd.tolist()


def add_pairs(
    by_q: Any,
    by_qd: Any,
    carriers: Carriers,
    axis: Callable[[Place], AxisMotion],
    composite: Callable[[Place], Composite],
    sign: float = 1.0,
) -> None:
    """Add the derivatives by all pairs of axes of which one carries the other.

    Args:
        by_q: ∂τ/∂q, a matrix over axes.
        by_qd: ∂τ/∂q̇.
        carriers: the pairs.
        axis: the motion of an axis.
        composite: of a link.
        sign: −1 adds the negative derivatives.
    """
    for i in carriers.axes():
        forces = forces_of(axis(i), composite(carriers.link[i]))
        row_B, row_I, column_q, column_qd = (sign * force for force in forces)
        for axes, carry in ((carriers.own(i), False), (carriers.others(i), True)):
            for j in axes:
                S, psi_d, psi_dd, mixed = axis(j)
                by_q[i, j] = by_q[i, j] + (row_B.dot(psi_d) + row_I.dot(psi_dd))
                by_qd[i, j] = by_qd[i, j] + (row_B.dot(S) + row_I.dot(mixed))
                if carry:
                    by_q[j, i] = by_q[j, i] + S.dot(column_q)
                    by_qd[j, i] = by_qd[j, i] + S.dot(column_qd)


def forces_of(axis: AxisMotion, composite: Composite) -> tuple[Spatial, Spatial, Spatial, Spatial]:
    """The forces of axis i, (2Bᵀ S, I S, 2B Ψ̇ + I Ψ̈ + f ×̄* S, 2B S + I (Ψ̇ + Ṡ)): the first two give its row, the others
    its column."""
    (S, psi_d, psi_dd, mixed), (body, twice_B, f) = axis, composite
    column_q = times(twice_B, psi_d) + body @ psi_dd + force_cross(S, f)
    return transposed_times(twice_B, S), body @ S, column_q, times(twice_B, S) + body @ mixed


def axes_and_composites(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue], qdd: Sequence[JointValue]
) -> tuple[list[AxisMotion], list[Composite]]:
    """The motion of every axis, and what every link is with all links beyond it."""
    poses = link_poses(links, q)
    with stage("axes and motion"):
        axes = links.each(joint_axes, poses)
        gravity = Vector(*(links.base.rotation @ [*links.gravity]).tolist())
        still = Spatial(zero_vector(), zero_vector())
        root: Moving = (still, Spatial(zero_vector(), -gravity), [])

        def step(
            link: MovingLink, parent: Moving, axes: list[Spatial], qd: JointValue, qdd: JointValue
        ) -> Moving:
            v, a, _ = parent
            psi_d = [motion_cross(v, S) for S in axes]  # Ψ̇
            psi_dd = [
                motion_cross(a, S) + motion_cross(v, psi) for S, psi in zip(axes, psi_d, strict=True)
            ]  # Ψ̈
            for S, psi, rate, acceleration in zip(axes, psi_d, parts_of(qd), parts_of(qdd), strict=True):
                v = v + rate * S
                a = a + acceleration * S + rate * psi
            # Ṡ; for one axis S × S vanishes, which saves a product where nothing turns
            rates = [motion_cross(v, S) for S in axes] if link.turns else psi_d
            mixed = [psi + rate for psi, rate in zip(psi_d, rates, strict=True)]
            return v, a, list(zip(axes, psi_d, psi_dd, mixed, strict=True))

        moving = links.outward(step, root, axes, qd, qdd)
    with stage("composite inertias"):
        composite = _composite(links, poses, moving)
    return [known for _, _, axes in moving for known in axes], composite


def _composite(links: Mechanism, poses: list[Pose], moving: list[Moving]) -> list[Composite]:
    """Of every link with all links beyond it, in the base frame."""
    inertias = links.each(inertia_in_base, poses)
    composite: list[Composite] = []
    for body, (v, a, _) in zip(inertias, moving, strict=True):
        momentum = body @ v
        composite.append((body, body_coriolis(body, v, momentum, 1.0), body @ a + force_cross(v, momentum)))
    for link in reversed(links):
        if link.parent >= 0:
            above, mine = composite[link.parent], composite[link.index]
            composite[link.parent] = (
                above[0] + mine[0],
                add_blocks(above[1], mine[1]),
                above[2] + mine[2],
            )
    return composite


def force_cross(V: Spatial, x: Spatial) -> Spatial:
    """V ×* x: how a force fixed in a body changes as the body moves with V."""
    w, v = V
    return Spatial(w.cross(x.moment) + v.cross(x.force), w.cross(x.force))
