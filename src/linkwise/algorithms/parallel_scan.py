"""Forward dynamics of a chain in logarithmic depth: the Kalman filter and smoother as parallel scans over the links.

Each link, and so each run of neighbouring links, relates what happens at its two ends by an affine map. With the
acceleration λ of the link inside and the force f from the link outside it gives

    λ' = A λ − C f + b    (acceleration of the run's last link)
    f' = Aᵀ f + J λ + η   (force on the link inside, about its origin)

J is the articulated inertia seen from the inside, C the compliance seen from the outside; both are symmetric and not
negative, so that joining two runs (inner 1, outer 2) needs the inverse of I + C₁J₂ alone, which always exists:

    D = (I + C₁J₂)⁻¹    A = A₂DA₁    C = C₂ + A₂DC₁A₂ᵀ    J = J₁ + A₁ᵀJ₂DA₁
    b = b₂ + A₂D(b₁ − C₁η₂)    η = η₁ + A₁ᵀ(J₂Db₁ + Dᵀη₂)

This is the filter's element of S. Särkkä and Á. F. García-Fernández, *Temporal parallelization of Bayesian smoothers*,
2021, with the joint torque as measurement and the rotor inertia as its noise. D is found from two Cholesky
factors, J₂ = WWᵀ and I + WᵀC₁W = QQᵀ, which need no pivoting: with H = Q⁻¹Wᵀ and K = C₁Hᵀ

    D = I − KH    J₂D = HᵀH    DC₁ = C₁ − KKᵀ

and with E = HA₁, y = b₁ − C₁η₂ the sums above become J = J₁ + EᵀE, η = η₁ + A₁ᵀη₂ + EᵀHy, b = b₂ + A₂(y − KHy).
Joining is associative, so the filter is one scan. Angular velocities before it and the smoother after it are scans of
affine maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms import dense, kalman
from linkwise.errors import ModelError
from linkwise.model.axes import JointValue, single
from linkwise.model.mechanism import Mechanism, MovingLink, Placement, Turned
from linkwise.scalar import Scalar, sqrt, stage, where
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

Rows = list[list[Scalar]]  # a matrix, row by row
NOTHING = 1e-15  # a pivot under this part of its diagonal is round-off


@dataclass(slots=True, eq=False)
class Run:
    """Neighbouring links, between λ inside and f outside: A, C, J, b, η."""

    transmission: Rows
    compliance: ArticulatedInertia
    inertia: ArticulatedInertia
    acceleration: Spatial
    force: Spatial


@dataclass(slots=True, eq=False)
class Map:
    """x ↦ F x + g."""

    F: Rows
    g: list[Scalar]


@dataclass(slots=True, eq=False)
class Felt:
    """The effect on a link of all links outside it: J and η."""

    inertia: ArticulatedInertia
    force: Spatial


def forward_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> list[Scalar]:
    """Joint accelerations for torques from which friction has been taken [rad/s² or m/s²]."""
    _check(links)
    with stage("joint turns"):
        turned = links.turned(q)
    with stage("velocities"):
        above = links.scan(then, applied, [0.0] * 3, links.each(turning, turned, qd))
    with stage("biases"):
        biases = links.each(
            lambda link, turned, qd, w: kalman.bias_acceleration(link, Vector(*w), turned, qd),
            turned,
            qd,
            above,
        )
        n = links.each(lambda link, bias: bias[1], biases)
        forces = links.each(lambda link, bias: kalman.bias_force(link, bias[0]), biases)
        if wrenches is not None:
            forces = links.each(lambda link, b, wrench: b - wrench, forces, wrenches)
    with stage("filter"):
        runs = links.each(run_of, turned, n, forces, tau)
        nothing = Felt(zero_articulated(), zero_spatial())
        felt = links.scan(joined, extended, nothing, runs, inward=True)
    with stage("smoother"):
        base = [*zero_vector(), *(-links.gravity)]
        maps = links.each(acceleration_map, turned, n, forces, tau, felt)
        inside = links.scan(then, applied, base, maps)
        return links.each(joint_acceleration, turned, n, forces, tau, felt, inside)


# -- affine maps ------------------------------------------------------------------------------------------------------


def turning(link: MovingLink, turned: Turned, qd: JointValue) -> Map:
    """(3.25): the link's angular velocity from its parent's."""
    joint = link.placed(turned)
    columns = [joint.outward(Vector(*unit)) for unit in dense.identity(3)]
    return Map(dense.transposed([list(c) for c in columns]), [*link.moved(qd).angular])


def then(first: Map, second: Map) -> Map:
    """One map after the other."""
    return Map(dense.product(second.F, first.F), applied(first.g, second))


def applied(x: Sequence[Scalar], given: Map) -> list[Scalar]:
    return [dense.dot(row, x) + g for row, g in zip(given.F, given.g, strict=True)]


# -- the filter -------------------------------------------------------------------------------------------------------


def run_of(link: MovingLink, turned: Turned, n: Spatial, force: Spatial, tau: JointValue) -> Run:
    """One link."""
    joint = link.placed(turned)
    own = articulated(link.inertia)
    column, inverse, gain = _gains(link, own)
    innovation = single(tau) - single(link.felt(force))
    axis = link.axes[0]
    updated = kalman.updated_inertia(link, axis, own, column, gain)
    compliance = zero_articulated()
    if axis.turns:
        compliance.A.zz = inverse
    else:
        compliance.C.zz = inverse
    return Run(
        _transmission(link, joint, gain),
        compliance,
        joint.inward(updated).shifted(joint.lever),
        _moved(link, n, innovation * inverse - gain.dot(n)),
        joint.force_to_parent(updated @ n + innovation * gain + force),
    )


def joined(outer: Run, inner: Run) -> Run:
    """Two runs as one; what comes first in the scan lies outside."""
    H, E, y, Hy = _halves(Felt(outer.inertia, outer.force), inner)
    C1, A1, A2 = _rows(inner.compliance), inner.transmission, outer.transmission
    K = dense.product(C1, dense.transposed(H))
    left = [
        [a - k for a, k in zip(*rows, strict=True)] for rows in zip(A1, dense.product(K, E), strict=True)
    ]  # DA₁
    soft = _minus_square(C1, K)  # DC₁
    b = [v - dense.dot(row, Hy) for v, row in zip(y, K, strict=True)]
    felt = _felt(inner, outer.force, E, Hy)
    return Run(
        dense.product(A2, left),
        outer.compliance + _symmetric(_congruent(A2, soft)),
        felt.inertia,
        outer.acceleration + _spatial([dense.dot(row, b) for row in A2]),
        felt.force,
    )


def extended(outside: Felt, inner: Run) -> Felt:
    """The effect on the link inside a run, given the effect ``outside`` on its last link."""
    _, E, _, Hy = _halves(outside, inner)
    return _felt(inner, outside.force, E, Hy)


def _halves(outside: Felt, inner: Run) -> tuple[Rows, Rows, list[Scalar], list[Scalar]]:
    """H, E = HA₁, y = b₁ − C₁η₂ and Hy."""
    C1 = _rows(inner.compliance)
    W = _cholesky(_rows(outside.inertia))
    soft = _congruent(dense.transposed(W), C1)
    Q = _cholesky(dense.raised(soft, 1.0))
    H = _forward(Q, dense.transposed(W))
    y = [
        b - c for b, c in zip(_list(inner.acceleration), _list(inner.compliance @ outside.force), strict=True)
    ]
    return H, dense.product(H, inner.transmission), y, [dense.dot(row, y) for row in H]


def _felt(inner: Run, force: Spatial, E: Rows, Hy: list[Scalar]) -> Felt:
    """J₁ + EᵀE and η₁ + A₁ᵀη₂ + EᵀHy."""
    f = _list(force)
    passed = [
        dense.dot(a, f) + dense.dot(e, Hy)
        for a, e in zip(dense.transposed(inner.transmission), dense.transposed(E), strict=True)
    ]
    return Felt(inner.inertia + _symmetric(_square(dense.transposed(E))), inner.force + _spatial(passed))


# -- the smoother -----------------------------------------------------------------------------------------------------


def acceleration_map(
    link: MovingLink, turned: Turned, n: Spatial, force: Spatial, tau: JointValue, felt: Felt
) -> Map:
    """The link's acceleration from its parent's, with all links that the link carries."""
    gain, residual = _innovation(link, force, tau, felt)
    return Map(_transmission(link, link.placed(turned), gain), _list(_moved(link, n, residual - gain.dot(n))))


def joint_acceleration(
    link: MovingLink,
    turned: Turned,
    n: Spatial,
    force: Spatial,
    tau: JointValue,
    felt: Felt,
    inside: Sequence[Scalar],
) -> Scalar:
    """(3.57)."""
    gain, residual = _innovation(link, force, tau, felt)
    return residual - gain.dot(link.placed(turned).motion_from_parent(_spatial(inside)) + n)


def _innovation(link: MovingLink, force: Spatial, tau: JointValue, felt: Felt) -> tuple[Spatial, Scalar]:
    """The gain and e⁺ = e⁻/D."""
    _, inverse, gain = _gains(link, articulated(link.inertia) + felt.inertia)
    return gain, (single(tau) - single(link.felt(force + felt.force))) * inverse


def _gains(link: MovingLink, P: ArticulatedInertia) -> tuple[Spatial, Scalar, Spatial]:
    """P Hᵀ, 1/D and the gain."""
    column = link.axes[0].column(P)
    inverse = 1.0 / (single(link.felt(column)) + link.rotor_inertia)
    return column, inverse, inverse * column


def _transmission(link: MovingLink, joint: Placement, gain: Spatial) -> Rows:
    """(I − Hᵀ gainᵀ) A⁻¹φᵀ."""
    columns = [joint.motion_from_parent(_spatial(unit)) for unit in dense.identity(6)]
    return dense.transposed([_list(_moved(link, x, -gain.dot(x))) for x in columns])


def _moved(link: MovingLink, x: Spatial, along: Scalar) -> Spatial:
    """x + Hᵀ·along."""
    return x + link.moved(along)


# -- who can be scanned -----------------------------------------------------------------------------------------------


def applies(links: Mechanism) -> str | None:
    """None where the algorithm can be used, else why not."""
    for link in links:
        if link.parent != link.index - 1:
            return f"the links branch at {link.joint_name}"
        if link.free or link.axes[0].screws:
            return f"{link.joint_name} neither turns about nor slides along one axis"
        if not link.rotor_inertia > 0.0:
            return f"{link.joint_name} has none"
    return None if len(links) else "this robot has no joints"


def _check(links: Mechanism) -> None:
    reason = applies(links)
    if reason is not None:
        raise ModelError(
            f"{links.name}: parallel_scan needs a chain with positive rotor inertia at every joint: {reason}"
        )


# -- matrices of scalars ----------------------------------------------------------------------------------------------


def _square(A: Rows) -> Rows:
    """A Aᵀ; the lower half is not computed twice."""
    return _mirrored([[dense.dot(A[i], A[j]) for j in range(i + 1)] for i in range(len(A))])


def _minus_square(S: Rows, A: Rows) -> Rows:
    """S − A Aᵀ."""
    return _mirrored([[S[i][j] - dense.dot(A[i], A[j]) for j in range(i + 1)] for i in range(len(A))])


def _congruent(A: Rows, S: Rows) -> Rows:
    """A S Aᵀ."""
    half = dense.product(A, S)
    return _mirrored([[dense.dot(half[i], A[j]) for j in range(i + 1)] for i in range(len(A))])


def _mirrored(lower: Rows) -> Rows:
    size = len(lower)
    return [[lower[max(i, j)][min(i, j)] for j in range(size)] for i in range(size)]


def _cholesky(S: Rows) -> Rows:
    """L with S = L Lᵀ, for S that is not negative; a direction without any S becomes a zero column."""
    size = len(S)
    L: Rows = [[0.0] * size for _ in range(size)]
    for j in range(size):
        pivot = S[j][j] - dense.dot(L[j][:j], L[j][:j]) if j else S[j][j]
        empty = pivot <= NOTHING * S[j][j]
        root = sqrt(where(empty, 1.0, pivot))
        inverse = where(empty, 0.0, 1.0 / root)
        L[j][j] = where(empty, 0.0, root)
        for i in range(j + 1, size):
            rest = S[i][j] - dense.dot(L[i][:j], L[j][:j]) if j else S[i][j]
            L[i][j] = rest * inverse
    return L


def _forward(L: Rows, B: Rows) -> Rows:
    """L⁻¹ B for a lower triangle without zeros on its diagonal."""
    X: Rows = []
    for i, row in enumerate(B):
        inverse = 1.0 / L[i][i]
        columns: Rows = dense.transposed(X) if X else [[] for _ in row]
        X.append(
            [
                (b - dense.dot(L[i][:i], column) if i else b) * inverse
                for b, column in zip(row, columns, strict=True)
            ]
        )
    return X


def _list(x: Spatial) -> list[Scalar]:
    return [*x.angular, *x.linear]


def _spatial(x: Sequence[Scalar]) -> Spatial:
    return Spatial(Vector(*x[:3]), Vector(*x[3:]))


def _rows(P: ArticulatedInertia) -> Rows:
    """All 36 entries."""
    A, B, C = P.A.matrix(), P.B, P.C.matrix()
    upper = [[A.xx, A.xy, A.xz, B.xx, B.xy, B.xz], [A.yx, A.yy, A.yz, B.yx, B.yy, B.yz]]
    upper += [[A.zx, A.zy, A.zz, B.zx, B.zy, B.zz], [B.xx, B.yx, B.zx, C.xx, C.xy, C.xz]]
    return [*upper, [B.xy, B.yy, B.zy, C.yx, C.yy, C.yz], [B.xz, B.yz, B.zz, C.zx, C.zy, C.zz]]


def _symmetric(S: Rows) -> ArticulatedInertia:
    return ArticulatedInertia(
        Symmetric(S[0][0], S[0][1], S[0][2], S[1][1], S[1][2], S[2][2]),
        Matrix(*S[0][3:], *S[1][3:], *S[2][3:]),
        Symmetric(S[3][3], S[3][4], S[3][5], S[4][4], S[4][5], S[5][5]),
    )
