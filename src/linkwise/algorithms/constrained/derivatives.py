"""Derivatives of accelerations under constraints, from the equations that they solve.

With M q̈ + b = τ + Jᵀλ and J q̈ + γ + R λ = 0 in a state, at the q̈ and λ of that state,

    M dq̈ − Jᵀ dλ = dτ − d(M q̈ + b − Jᵀλ)          J dq̈ + R dλ = −d(J q̈ + γ)

where the right sides are taken at constant q̈ and λ. J q̈ + γ is the acceleration of the held frames. As in
``derivatives``, all vectors are taken in the base frame about its origin, and a coordinate moves all links beyond it
like one rigid body: axes S of joints beyond change by S_k × S.

Where rows are redundant, they must stay so along motions that the constraints allow. If they do not, as in a flat
four-bar linkage that may fold in two ways, the derivative does not exist, and the result is not a number: for u with
Jᵀ u = 0 and velocities v with J v = 0, uᵀ dJ v is not zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkwise.algorithms import coupling, dense
from linkwise.algorithms.carriers import coordinates_by_link
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained.constraints import Held
from linkwise.algorithms.constrained.pivoted import Factors
from linkwise.algorithms.coriolis import joint_axes, motion_cross
from linkwise.algorithms.kinematics import frame_pose, link_poses
from linkwise.joint_laws import is_zero
from linkwise.model.axes import JointValue, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, maximum, sqrt, stage, where
from linkwise.spatial import Spatial, Vector, zero_spatial, zero_vector

Rows = list[list[Scalar]]
Moving = tuple[Spatial, Spatial]
"""Velocity and acceleration of a link."""

INCONSISTENT = 1e-4
"""Part of the terms of dJ q̈ + … that may be left where the derivative exists."""
NOTHING = 1e-12
"""Square of ∂(J v)/∂q for a v of one: less is round-off."""


def of_rows(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    held: Sequence[Held],
    forces: Sequence[Scalar],
) -> tuple[Rows, Rows, Rows]:
    """(∂(J q̈ + γ)/∂q, ∂(J q̈ + γ)/∂q̇, ∂(Jᵀλ)/∂q), without stabilization; columns and torques of leaders only."""
    poses = link_poses(links, q)
    axes = links.each(joint_axes, poses)

    n = links.dof
    by_q: Rows = []
    by_qd: Rows = []
    pull_by_q: Rows = [[0.0] * n for _ in range(n)]
    with stage("derivatives of constraints"):
        moving = links.outward(_moved, (zero_spatial(), zero_spatial()), axes, qd, qdd)
        own = coordinates_by_link(links)
        at = 0
        for each in held:
            columns_q: list[list[Scalar]] = [[0.0] * 6 for _ in range(n)]
            columns_qd: list[list[Scalar]] = [[0.0] * 6 for _ in range(n)]
            λ = list(forces[at : at + each.rows])
            at += each.rows
            for sign, (body, pose) in ((1.0, each.first), (-1.0, each.second)):
                if body < 0:
                    continue
                p = frame_pose(links, poses, body, pose).position
                force = sign * Vector(*λ[-3:])
                moment = (sign * Vector(*λ[:3]) if each.rows == 6 else zero_vector()) + p.cross(force)
                support = [body, *links.ancestors(body)]
                for k in support:
                    parent = links[k].parent
                    before = moving[parent] if parent >= 0 else (zero_spatial(), zero_spatial())
                    for i, S in zip(own[k], axes[k], strict=True):
                        changes = _changes(S, before, moving[k][0], moving[body], p)
                        for columns, change in zip((columns_q, columns_qd), changes, strict=True):
                            columns[i] = [c + sign * x for c, x in zip(columns[i], change, strict=True)]
                        moved = S.linear + S.angular.cross(p)
                        turned = Spatial(moved.cross(force), zero_vector())
                        beyond = set(support[: support.index(k) + 1])
                        for other in support:
                            for j, T in zip(own[other], axes[other], strict=True):
                                change = T.dot(turned)
                                if other in beyond and i != j:
                                    change = change + motion_cross(S, T).dot(Spatial(moment, force))
                                pull_by_q[j][i] = pull_by_q[j][i] + change
            by_q += dense.transposed(columns_q)[6 - each.rows :]
            by_qd += dense.transposed(columns_qd)[6 - each.rows :]
        by_q, by_qd = ([coupling.reduced(links, row, (True,)) for row in rows] for rows in (by_q, by_qd))
        return by_q, by_qd, coupling.reduced(links, pull_by_q, (True, True))


def _moved(link: MovingLink, parent: Moving, axes: list[Spatial], qd: JointValue, qdd: JointValue) -> Moving:
    """A link's motion from that of its parent."""
    v, a = parent
    start = v
    for S, rate, acceleration in zip(axes, parts_of(qd), parts_of(qdd), strict=True):
        v = v + rate * S
        a = a + acceleration * S + rate * motion_cross(start, S)
    return v, a


def _changes(
    S: Spatial, before: Moving, own: Spatial, frame: Moving, p: Vector
) -> tuple[list[Scalar], list[Scalar]]:
    """How the acceleration of a frame's point p, angular then linear, changes with axis S's coordinate and rate.

    ``before`` is the motion of what carries the joint, ``own`` the velocity of the joint's link."""
    v0, a0 = before
    v, a = frame
    relative = v - v0
    rest = a - a0 - motion_cross(v0, relative)
    dv = motion_cross(S, relative)
    da = motion_cross(S, rest) + motion_cross(v0, dv)
    moved = S.linear + S.angular.cross(p)
    by_q = _at_point(v, a, dv, da, p, moved)
    by_rate = _at_point(v, a, S, motion_cross(v0, S) + motion_cross(S, v - own), p, zero_vector())
    return by_q, by_rate


def _at_point(v: Spatial, a: Spatial, dv: Spatial, da: Spatial, p: Vector, dp: Vector) -> list[Scalar]:
    """Change of (α, a + α × p + ω × (v + ω × p)) with the changes of v, a and p."""
    speed = v.linear + v.angular.cross(p)
    dspeed = dv.linear + dv.angular.cross(p) + v.angular.cross(dp)
    linear = (
        da.linear
        + da.angular.cross(p)
        + a.angular.cross(dp)
        + dv.angular.cross(speed)
        + v.angular.cross(dspeed)
    )
    return [*da.angular, *linear]


def of_accelerations(
    M: Rows,
    J: Rows,
    held: Sequence[Held],
    floor: Scalar,
    torques: tuple[Rows, Rows],
    rows: tuple[Rows, Rows],
    bent: Rows,
    may_be_singular: bool,
) -> tuple[Rows, Rows, Rows]:
    """(∂q̈/∂q, ∂q̈/∂q̇, ∂q̈/∂τ).

    Args:
        M: mass matrix.
        J: rows of the constraints.
        held: the constraints.
        floor: see ``constraints.closure_floor``.
        torques: ∂(M q̈ + b − Jᵀλ) by q and q̇.
        rows: ∂(J q̈ + γ) by q and q̇.
        bent: ∂(J v)/∂q of a velocity v that the constraints allow.
        may_be_singular: whether M may be singular where constraints hold what has no inertia.
    """
    n, m = len(M), len(J)
    soft = constraints.compliances(held)
    with stage("mass matrix"):
        hard = [row for row, R in zip(J, soft, strict=True) if not R]
        common = constraints.common_weight(M, hard) if may_be_singular and hard else 0.0
        weights: list[Scalar] = [0.0 if R else common for R in soft]
        L, pivots = dense.factorised(constraints.weighted_sum(M, J, weights), 0.0)
        inverse = dense.inverse_of(L, pivots)
    with stage("Delassus matrix"):
        mobility = [dense.solved(L, pivots, row) for row in J]
        G = constraints.softened(dense.symmetric_product(mobility, J), soft)
        factors = constraints.factorised(G, held, floor)
        inverted = [factors.solved(row) for row in dense.identity(m)]
        force_per_torque = dense.product(inverted, mobility)  # −∂λ/∂τ
    with stage("derivatives"):
        columns, back = dense.transposed(mobility), dense.transposed(force_per_torque)
        pulled = dense.symmetric_product(columns, back)
        by_tau = [[inverse[i][j] - pulled[i][j] for j in range(n)] for i in range(n)]
        results: list[Rows] = []
        for by_torques, by_rows in zip(torques, rows, strict=True):
            right = [list(row) for row in by_torques]
            for row, weight, change in zip(J, weights, by_rows, strict=True):
                if not is_zero(weight):
                    right = [
                        [r + weight * x * c for r, c in zip(line, change, strict=True)]
                        for x, line in zip(row, right, strict=True)
                    ]
            first, second = dense.product(by_tau, right), dense.product(back, by_rows)
            results.append(
                [[-a - b for a, b in zip(*pair, strict=True)] for pair in zip(first, second, strict=True)]
            )
        return _existing(results[0], J, held, factors, back, bent), results[1], by_tau


def allowed(J: Rows, held: Sequence[Held], floor: Scalar, v: Sequence[Scalar]) -> list[Scalar]:
    """Velocities of length one that the constraints allow, nearest to the direction of v."""
    G = dense.symmetric_product(J, J)
    factors = constraints.factorised(G, held, floor)
    forces = factors.solved([dense.dot(row, v) for row in J])
    found = [x - dense.dot(column, forces) for x, column in zip(v, dense.transposed(J), strict=True)]
    length = sqrt(dense.dot(found, found))
    return [x / where(length > 0.0, length, 1.0) for x in found]


def _existing(by_q: Rows, J: Rows, held: Sequence[Held], factors: Factors, back: Rows, bent: Rows) -> Rows:
    """∂q̈/∂q, not a number where redundant rows do not stay redundant along motions that the constraints allow.

    Rows that were left out: what G G⁻¹ does not give back of ∂(J v)/∂q. Motions: the columns of I − M⁻¹JᵀG⁻¹J.
    """
    n, m = len(by_q), len(J)
    shares = [factors.solved([bent[k][j] for k in range(m)], refined=False) for j in range(n)]
    left = [[bent[k][j] - dense.dot(factors.matrix[k], shares[j]) for j in range(n)] for k in range(m)]
    kept = dense.product(dense.product(left, back), J)
    worst: Scalar = 0.0
    for block, _ in constraints.blocks(held):
        if constraints.compliances(held)[block[0]]:
            continue
        size = sum((bent[k][j] * bent[k][j] for k in block for j in range(n)), start=NOTHING)
        rest = [left[k][j] - kept[k][j] for k in block for j in range(n)]
        worst = maximum(worst, dense.dot(rest, rest) - (INCONSISTENT * INCONSISTENT) * size)
    return [[where(worst <= 0.0, x, math.nan) for x in row] for row in by_q]
