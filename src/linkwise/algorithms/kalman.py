"""Forward dynamics as a Kalman filter and a Bryson–Frazier smoother; the mass matrix as a covariance; its inverse.

G. Rodriguez, JPL 86-48, 1986, and K. Kozłowski, 1990, (3.46)–(3.58). The spatial force is the state, its inertia P
the covariance of the prediction, the joint torque the measurement: filtering goes from the tips to the base, smoothing
back. On a tree a link adds what its branches predict. Rotor inertia stands where a filter has its measurement noise:
D = H P Hᵀ + I_a. Biases are those of (3.31)–(3.33), which need no linear velocities; λ at the base is −g.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms.singularity import axis_inertia_floors, checked
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, stage
from linkwise.spatial import (
    ArticulatedInertia,
    Matrix,
    Spatial,
    Symmetric,
    Vector,
    articulated,
    zero_articulated,
    zero_spatial,
    zero_vector,
)


@dataclass(slots=True, eq=False)
class Filtered:
    """What the filter knows at a joint: P⁻ (inertia), D (axis inertia), 1/D, G (gain)."""

    inertia: ArticulatedInertia
    axis_inertia: Scalar
    inverse_axis_inertia: Scalar
    gain: Spatial

    def __iter__(self) -> Iterator[Any]:
        return iter((self.inertia, self.axis_inertia, self.inverse_axis_inertia, self.gain))


@dataclass(slots=True, eq=False)
class Estimate:
    """Predicted state z⁻, innovation e⁻ and residual e⁺ = e⁻/D at a joint."""

    state: Spatial
    innovation: Scalar
    residual: Scalar


def forward_dynamics(links: Mechanism, q, qd, tau, wrenches=None) -> list[Scalar]:
    """Joint accelerations for torques from which friction has been taken [rad/s² or m/s²]."""
    with stage("joint turns"):
        turned = links.each(lambda link, q: link.turned(q), q)
    with stage("biases"):
        biases = bias_accelerations(links, turned, qd)
        forces = links.each(lambda link, bias: bias_force(link, bias[0]), biases)
        if wrenches is not None:
            forces = links.each(lambda link, b, wrench: b - wrench, forces, wrenches)
        n = links.each(lambda link, bias: bias[1], biases)
    gravity = Spatial(zero_vector(), -links.gravity)
    filtered, updated = filter_inertias(links, turned)
    estimates = filter_states(links, turned, filtered, updated, forces, n, tau)
    return smooth(links, turned, filtered, estimates, n, gravity)


# -- biases -----------------------------------------------------------------------------------------------------------


def bias_accelerations(links: Mechanism, turned, qd) -> list[tuple[Vector, Spatial]]:
    """(ω, n̄) of every link."""

    def step(link: MovingLink, parent, turned, qd: Scalar):
        return bias_acceleration(link, parent[0], turned, qd)

    return links.outward(step, (zero_vector(), zero_spatial()), turned, qd)


def bias_acceleration(link: MovingLink, above: Vector, turned, qd: Scalar) -> tuple[Vector, Spatial]:
    """(ω, n̄) of a link whose parent turns with ``above``: (3.25), (3.31), (3.32), in the link's axes."""
    joint = link.placed(turned)
    w = joint.outward(above)
    centripetal = joint.outward(_square_times(above, joint.lever))
    if link.revolute:
        turning = Vector(w.y * qd, -(w.x * qd), 0.0)
        return Vector(w.x, w.y, w.z + qd), Spatial(turning, centripetal)
    twice = 2.0 * qd
    return w, Spatial(zero_vector(), centripetal + Vector(w.y * twice, -(w.x * twice), 0.0))


def _square_times(w: Vector, l: Vector) -> Vector:
    """ω × (ω × l), with the six products of ω that the bias force of the same link shares."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Vector(
        xy * l.y + xz * l.z - (yy + zz) * l.x,
        xy * l.x + yz * l.z - (xx + zz) * l.y,
        xz * l.x + yz * l.y - (xx + yy) * l.z,
    )


def bias_force(link: MovingLink, w: Vector) -> Spatial:
    """b̄ of (3.33): [ω × I ω, ω × (ω × h)]."""
    I = link.inertia.second_moment
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    moment = Vector(
        (I.zz - I.yy) * yz - I.xy * xz + I.xz * xy + I.yz * (yy - zz),
        (I.xx - I.zz) * xz + I.xy * yz - I.yz * xy + I.xz * (zz - xx),
        (I.yy - I.xx) * xy - I.xz * yz + I.yz * xz + I.xy * (xx - yy),
    )
    return Spatial(moment, _square_times(w, link.inertia.first_moment))


# -- filtering --------------------------------------------------------------------------------------------------------


def filter_inertias(links: Mechanism, turned) -> tuple[list[Filtered], list[ArticulatedInertia]]:
    """(3.48)–(3.50), (3.54): P⁻, D, G of every joint, and P⁺ in the link's own axes.

    Where D vanishes (a massless tip) it becomes NaN, so that nothing wrong is returned silently.
    """
    floors = axis_inertia_floors(links)

    def step(link: MovingLink, received: ArticulatedInertia, turned, floor: float):
        with stage("inertia propagation"):
            joint = link.placed(turned)
            P = received + articulated(link.inertia)
        with stage("gain"):
            column = inertia_column(link, P)
            D = link.along_axis(column) + link.rotor_inertia
            D = checked(D, floor)
            inverse = 1.0 / D
            gain = _gain(link, column, inverse)
        with stage("inertia update"):
            updated = updated_inertia(link, P, column, gain)
            in_parent = joint.inward(updated)
        with stage("inertia propagation"):
            carried = in_parent.shifted(joint.lever)
        return (Filtered(P, D, inverse, gain), updated), carried

    both = links.inward(step, zero_articulated(), turned, floors)
    filtered = links.each(lambda link, pair: pair[0], both)
    return filtered, links.each(lambda link, pair: pair[1], both)


def singular_joint(links: Mechanism, q: Sequence[float]) -> MovingLink | None:
    """The joint that moves no inertia at this state of floats: the outermost one whose D vanishes, if any."""
    turned = links.each(lambda link, q: link.turned(q), q)
    filtered, _ = filter_inertias(links, turned)
    for link in reversed(links):  # from the tips: the first to fail is the cause
        if math.isnan(filtered[link.index].axis_inertia):
            return link
    return None


def is_regular(links: Mechanism, q) -> Scalar:
    """Whether no axis inertia vanishes (and none is NaN)."""
    with stage("regularity"):
        filtered, _ = filter_inertias(links, links.each(lambda link, q: link.turned(q), q))
        first, *others = links.each(lambda link, known: known.axis_inertia, filtered)
        return sum(others, start=first) < math.inf


def inertia_column(link: MovingLink, P: ArticulatedInertia) -> Spatial:
    """P Hᵀ."""
    if link.revolute:
        return Spatial(Vector(P.A.xz, P.A.yz, P.A.zz), Vector(P.B.zx, P.B.zy, P.B.zz))
    return Spatial(Vector(P.B.xz, P.B.yz, P.B.zz), Vector(P.C.xz, P.C.yz, P.C.zz))


def _gain(link: MovingLink, column: Spatial, inverse: Scalar) -> Spatial:
    """(3.50). Without rotor inertia its component along the axis is 1 and need not be computed."""
    gain = inverse * column
    if link.rotor_inertia == 0.0:
        if link.revolute:
            gain.angular.z = 1.0
        else:
            gain.linear.z = 1.0
    return gain


def updated_inertia(
    link: MovingLink, P: ArticulatedInertia, column: Spatial, gain: Spatial
) -> ArticulatedInertia:
    """(3.54): P⁺ = (I − G H) P. The row of the axis is I_a·G: zero without rotor inertia."""
    A, B, C = P
    u, v = column  # moments and forces of P Hᵀ
    g, f = gain
    Ia = link.rotor_inertia
    if link.revolute:
        return ArticulatedInertia(
            Symmetric(A.xx - g.x * u.x, A.xy - g.x * u.y, Ia * g.x, A.yy - g.y * u.y, Ia * g.y, Ia * g.z),
            Matrix(
                *(B.xx - g.x * v.x, B.xy - g.x * v.y, B.xz - g.x * v.z),
                *(B.yx - g.y * v.x, B.yy - g.y * v.y, B.yz - g.y * v.z),
                *(Ia * f.x, Ia * f.y, Ia * f.z),
            ),
            _minus_outer(C, f, v),
        )
    return ArticulatedInertia(
        _minus_outer(A, g, u),
        Matrix(
            *(B.xx - g.x * v.x, B.xy - g.x * v.y, Ia * g.x),
            *(B.yx - g.y * v.x, B.yy - g.y * v.y, Ia * g.y),
            *(B.zx - g.z * v.x, B.zy - g.z * v.y, Ia * g.z),
        ),
        Symmetric(C.xx - f.x * v.x, C.xy - f.x * v.y, Ia * f.x, C.yy - f.y * v.y, Ia * f.y, Ia * f.z),
    )


def _minus_outer(S: Symmetric, a: Vector, b: Vector) -> Symmetric:
    """S − a bᵀ for parallel a and b."""
    return Symmetric(
        S.xx - a.x * b.x,
        S.xy - a.x * b.y,
        S.xz - a.x * b.z,
        S.yy - a.y * b.y,
        S.yz - a.y * b.z,
        S.zz - a.z * b.z,
    )


def filter_states(
    links: Mechanism, turned, filtered, updated, forces, n, tau: Sequence[Scalar]
) -> list[Estimate]:
    """(3.47), (3.51)–(3.53): z⁻, e⁻ and e⁺ of every joint."""

    def step(link: MovingLink, received: Spatial, turned, known: Filtered, P: ArticulatedInertia, b, n, tau):
        with stage("state propagation"):
            joint = link.placed(turned)
            z = received + b
        with stage("innovations"):
            e = tau - link.along_axis(z)
        with stage("state update"):
            moment, force = joint.inward(z + e * known.gain + P @ n)
        with stage("state propagation"):
            carried = Spatial(moment + joint.lever.cross(force), force)
        with stage("residuals"):
            residual = e * known.inverse_axis_inertia
        return Estimate(z, e, residual), carried

    return links.inward(step, zero_spatial(), turned, filtered, updated, forces, n, tau)


# -- smoothing --------------------------------------------------------------------------------------------------------


def smooth(links: Mechanism, turned, filtered, estimates, n, root: Spatial) -> list[Scalar]:
    """(3.55)–(3.58): joint accelerations, from the base to the tips."""
    pairs = smoothed(links, turned, filtered, estimates, n, root)
    return links.each(lambda link, pair: pair[0], pairs)


def smoothed(links: Mechanism, turned, filtered, estimates, n, root: Spatial) -> list[tuple[Scalar, Spatial]]:
    """(q̈, λ⁻) of every joint."""

    def step(link: MovingLink, parent, turned, known: Filtered, estimate: Estimate, n: Spatial):
        with stage("costate propagation"):
            joint = link.placed(turned)
            above, linear = parent[1]
            λ = Spatial(above, linear + above.cross(joint.lever))
        with stage("costate update"):
            λ = joint.outward(λ) + n
        with stage("joint acceleration"):
            qdd = estimate.residual - known.gain.dot(λ)
        with stage("costate update"):
            along = Vector(0.0, 0.0, qdd)
            λ = (
                Spatial(λ.angular + along, λ.linear)
                if link.revolute
                else Spatial(λ.angular, λ.linear + along)
            )
        return qdd, λ

    return links.outward(step, (0.0, root), turned, filtered, estimates, n)


def acceleration_parts(
    links: Mechanism, q, qd, tau, wrenches=None
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """(10.1), (10.2): the parts of q̈ that torques, bias forces (with wrenches) and bias accelerations (with gravity)
    cause; their sum is q̈."""
    turned = links.each(lambda link, q: link.turned(q), q)
    biases = bias_accelerations(links, turned, qd)
    forces = links.each(lambda link, bias: bias_force(link, bias[0]), biases)
    if wrenches is not None:
        forces = links.each(lambda link, b, wrench: b - wrench, forces, wrenches)
    n = links.each(lambda link, bias: bias[1], biases)
    nothing = [zero_spatial() for _ in links]
    rest = [0.0 for _ in links]
    filtered, updated = filter_inertias(links, turned)

    def part(forces, n, tau, root):
        estimates = filter_states(links, turned, filtered, updated, forces, n, tau)
        return smooth(links, turned, filtered, estimates, n, root)

    return (
        part(nothing, nothing, tau, zero_spatial()),
        part(forces, nothing, rest, zero_spatial()),
        part(nothing, n, rest, Spatial(zero_vector(), -links.gravity)),
    )


# -- matrices ---------------------------------------------------------------------------------------------------------


def mass_matrix(links: Mechanism, q) -> list[list[Scalar]]:
    """(7.7)–(7.11): M_ki = H_k φ(k,i) r_ii H_iᵀ with the covariance r_kk = φ r φᵀ + M_k; without rotor inertia."""
    n = len(links)
    with stage("joint turns"):
        turned = links.each(lambda link, q: link.turned(q), q)

    def step(link: MovingLink, received: ArticulatedInertia, turned):
        r = received + articulated(link.inertia)
        joint = link.placed(turned)
        return r, joint.inward(r).shifted(joint.lever)

    with stage("covariances"):
        covariances = links.inward(step, zero_articulated(), turned)
    M: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    with stage("matrix"):
        for i in range(n):
            link = links[i]
            x = inertia_column(link, covariances[i])
            M[i][i] = link.along_axis(x)
            for k in links.ancestors(i):
                x = link.placed(turned[link.index]).force_to_parent(x)
                link = links[k]
                M[k][i] = M[i][k] = link.along_axis(x)
    return M


def inverse_mass_matrix(links: Mechanism, q) -> list[list[Scalar]]:
    """(10.2)–(10.6), (10.30): the closed form of M⁻¹ (with rotor inertia).

    For i beyond k: M⁻¹_ki = d_k s with s = ψ(k⁻, i⁺) G_i, d_k = G_kᵀΛ⁺ − c_k H_k, c_k = 1/D_k + G_kᵀΛ⁺G_k. The paper
    treats a chain; joints i and j of two branches that meet in link a have M⁻¹_ij = s_iᵀ Λ⁻_a s_j.
    """
    n = len(links)
    with stage("joint turns"):
        turned = links.each(lambda link, q: link.turned(q), q)
    filtered, _ = filter_inertias(links, turned)
    with stage("costate covariance"):
        covariances = costate_covariances(links, turned, filtered)
    W: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    with stage("matrix"):
        rows = [plus @ filtered[k].gain for k, (plus, _) in enumerate(covariances)]  # Λ⁺G
        c = [
            known.inverse_axis_inertia + row.dot(known.gain)
            for known, row in zip(filtered, rows, strict=True)
        ]
        arrived: list[dict[int, tuple[int, Spatial]]] = [
            {} for _ in range(n + 1)
        ]  # at a: i -> (by which child, s_i)
        for i in range(n):
            W[i][i] = c[i]
            s, k = filtered[i].gain, i
            for a in (*links.ancestors(i), -1):
                if a >= 0:
                    s = links[k].placed(turned[k]).force_to_parent(s)
                    felt = links[a].along_axis(s)
                    W[a][i] = W[i][a] = rows[a].dot(s) - c[a] * felt
                    for j, (branch, other) in arrived[a].items():
                        if branch != k:
                            W[i][j] = W[j][i] = s.dot(covariances[a][1] @ other)
                    arrived[a][i] = (k, s)
                    s = s - felt * filtered[a].gain
                    k = a
    return W


def costate_covariances(
    links: Mechanism, turned, filtered
) -> list[tuple[ArticulatedInertia, ArticulatedInertia]]:
    """(10.30), (9.20), (9.21): (Λ⁺, Λ⁻) of every joint; Λ maps forces to accelerations."""

    def step(link: MovingLink, parent, turned, known: Filtered):
        joint = link.placed(turned)
        plus = joint.outward(_swapped(_swapped(parent[1]).shifted(-joint.lever)))
        return plus, _covariance_update(link, plus, known)

    nothing = zero_articulated()
    return links.outward(step, (nothing, nothing), turned, filtered)


def _swapped(P: ArticulatedInertia) -> ArticulatedInertia:
    """Linear before angular: φᵀΛφ is then a shift like that of an inertia, by the opposite lever."""
    return ArticulatedInertia(P.C, P.B.transposed(), P.A)


def _covariance_update(link: MovingLink, plus: ArticulatedInertia, known: Filtered) -> ArticulatedInertia:
    """(9.21): Λ⁻ = (I − G H)ᵀ Λ⁺ (I − G H) + Hᵀ D⁻¹ H: only the row and column of the axis change."""
    column = plus @ known.gain
    corner = known.gain.dot(column) + known.inverse_axis_inertia
    A, B, C = plus
    u, v = column
    if link.revolute:
        new_A = Symmetric(A.xx, A.xy, A.xz - u.x, A.yy, A.yz - u.y, A.zz - 2.0 * u.z + corner)
        new_B = Matrix(B.xx, B.xy, B.xz, B.yx, B.yy, B.yz, B.zx - v.x, B.zy - v.y, B.zz - v.z)
        return ArticulatedInertia(new_A, new_B, C)
    new_C = Symmetric(C.xx, C.xy, C.xz - v.x, C.yy, C.yz - v.y, C.zz - 2.0 * v.z + corner)
    new_B = Matrix(B.xx, B.xy, B.xz - u.x, B.yx, B.yy, B.yz - u.y, B.zx, B.zy, B.zz - u.z)
    return ArticulatedInertia(A, new_B, new_C)
