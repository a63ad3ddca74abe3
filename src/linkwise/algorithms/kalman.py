"""Forward dynamics as a Kalman filter and a Bryson–Frazier smoother; the mass matrix as a covariance; its inverse.

G. Rodriguez, JPL 86-48, 1986, and K. Kozłowski, 1990, (3.46)–(3.58). The spatial force is the state, its inertia P
the covariance of the prediction, the joint torque the measurement: filtering goes from the tips to the base, smoothing
back. On a tree a link adds what its branches predict. Rotor inertia takes the place of a filter's measurement noise:
D = H P Hᵀ + I_a. Biases are those of (3.31)–(3.33), which need no linear velocities; λ at the base is −g.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import dense
from linkwise.algorithms.singularity import axis_inertia_floors, checked
from linkwise.model.axes import Axis, JointValue, joint_value, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink, Turned, flat
from linkwise.scalar import Condition, Scalar, stage
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
    """Quantities of the filter at a joint: P⁻ (inertia), and for each axis D (axis inertia), 1/D and G (gain)."""

    inertia: ArticulatedInertia
    axis_inertia: tuple[Scalar, ...]
    inverse_axis_inertia: tuple[Scalar, ...]
    gains: tuple[Spatial, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.inertia, self.axis_inertia, self.inverse_axis_inertia, self.gains))


@dataclass(slots=True, eq=False)
class JointEstimate:
    """Predicted state z⁻ at a joint, and for each axis the innovation e⁻ and the residual e⁺ = e⁻/D."""

    state: Spatial
    innovation: tuple[Scalar, ...]
    residual: tuple[Scalar, ...]


def forward_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> list[JointValue]:
    """Joint accelerations for torques from which friction has been taken [rad/s² or m/s²]."""
    with stage("joint turns"):
        turned = links.turned(q)
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


def bias_accelerations(
    links: Mechanism, turned: Sequence[Turned], qd: Sequence[JointValue]
) -> list[tuple[Vector, Spatial]]:
    """(ω, n̄) of every link."""

    def step(
        link: MovingLink, parent: tuple[Vector, Spatial], turned: Turned, qd: JointValue
    ) -> tuple[Vector, Spatial]:
        return bias_acceleration(link, parent[0], turned, qd)

    return links.outward(step, (zero_vector(), zero_spatial()), turned, qd)


def bias_acceleration(
    link: MovingLink, above: Vector, turned: Turned, qd: JointValue
) -> tuple[Vector, Spatial]:
    """(ω, n̄) of a link whose parent turns with ``above``: (3.25), (3.31), (3.32), in the link's axes."""
    joint = link.placed(turned)
    w = joint.outward(above)
    centripetal = Spatial(zero_vector(), joint.outward(_square_times(above, joint.lever)))
    return w + link.moved(qd).angular, centripetal + link.bias(w, qd)


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


def filter_inertias(
    links: Mechanism,
    turned: Sequence[Turned],
    measured: Mapping[int, ArticulatedInertia] | None = None,
) -> tuple[list[Filtered], list[ArticulatedInertia]]:
    """(3.48)–(3.50), (3.54): P⁻, D, G of every joint, and P⁺ in the link's own axes.

    ``measured`` is what measurements of links add to their inertias, by the number of the link. Where D vanishes (a
    massless tip) it becomes NaN, so that nothing wrong is returned silently.
    """
    floors = axis_inertia_floors(links)

    def step(link: MovingLink, received: ArticulatedInertia, turned: Turned, floor: float):
        with stage("inertia propagation"):
            joint = link.placed(turned)
            own = received + articulated(link.inertia)
            P = own + measured[link.index] if measured and link.index in measured else own
        updated = P
        each: list[tuple[Scalar, Scalar, Spatial]] = []
        for axis, least in zip(link.axes, parts_of(floor), strict=True):
            # several axes are several measurements, taken one after the other
            with stage("gain"):
                column = axis.column(updated)
                D = checked(axis.felt(column) + link.rotor_inertia, least)
                inverse = 1.0 / D
                gain = _gain(link, axis, column, inverse)
            with stage("inertia update"):
                updated = updated_inertia(link, axis, updated, column, gain)
            each.append((D, inverse, gain))
        with stage("inertia update"):
            in_parent = joint.inward(updated)
        with stage("inertia propagation"):
            carried = in_parent.shifted(joint.lever)
        inertias, inverses, gains = zip(*each, strict=True)
        return (Filtered(P, inertias, inverses, gains), updated), carried

    both = links.inward(step, zero_articulated(), turned, floors)
    filtered = links.each(lambda link, pair: pair[0], both)
    return filtered, links.each(lambda link, pair: pair[1], both)


def singular_joint(links: Mechanism, q: Sequence[float]) -> MovingLink | None:
    """The joint that moves no inertia at this state of floats: the outermost one whose D vanishes, if any."""
    turned = links.turned(q)
    filtered, _ = filter_inertias(links, turned)
    for link in reversed(links):  # from the tips: the first to fail is the cause
        inertias: Any = filtered[link.index].axis_inertia  # floats
        if any(map(math.isnan, inertias)):
            return link
    return None


def is_regular(links: Mechanism, q: Sequence[JointValue]) -> Condition:
    """Whether no axis inertia vanishes (and none is NaN)."""
    with stage("regularity"):
        filtered, _ = filter_inertias(links, links.turned(q))
        first, *others = (D for known in filtered for D in known.axis_inertia)
        return sum(others, start=first) < math.inf


def _gain(link: MovingLink, axis: Axis, column: Spatial, inverse: Scalar) -> Spatial:
    """(3.50). Without rotor inertia its component along the axis is 1 and need not be computed."""
    gain = inverse * column
    if link.rotor_inertia == 0.0 and not axis.screws:
        setattr(gain.angular if axis.turns else gain.linear, "xyz"[axis.k], 1.0)
    return gain


def updated_inertia(
    link: MovingLink, axis: Axis, P: ArticulatedInertia, column: Spatial, gain: Spatial
) -> ArticulatedInertia:
    """(3.54): P⁺ = (I − G H) P. The row of the axis is I_a·G: zero without rotor inertia (a screw has no such row)."""
    u, v = column  # moments and forces of P Hᵀ
    g, f = gain
    Ia, k = link.rotor_inertia, axis.k
    B = _minus_product(P.B, g, v)
    if axis.screws:
        return ArticulatedInertia(_minus_outer(P.A, g, u), B, _minus_outer(P.C, f, v))
    if axis.turns:
        A = _with_row(_minus_outer(P.A, g, u), k, Ia * g)
        return ArticulatedInertia(A, _with_matrix_row(B, k, Ia * f), _minus_outer(P.C, f, v))
    C = _with_row(_minus_outer(P.C, f, v), k, Ia * f)
    across = _with_matrix_row(B.transposed(), k, Ia * g).transposed()
    return ArticulatedInertia(_minus_outer(P.A, g, u), across, C)


def _with_row(S: Symmetric, k: int, row: Vector) -> Symmetric:
    """The matrix with another row k, and column k with it."""
    full = list(S.matrix())
    for i, value in enumerate(row):
        full[3 * i + k] = full[3 * k + i] = value
    return Symmetric(full[0], full[1], full[2], full[4], full[5], full[8])


def _with_matrix_row(B: Matrix, k: int, row: Vector) -> Matrix:
    entries = list(B)
    entries[3 * k : 3 * k + 3] = list(row)
    return Matrix(*entries)


def _minus_product(B: Matrix, a: Vector, b: Vector) -> Matrix:
    """B − a bᵀ."""
    rows = (Vector(B.xx, B.xy, B.xz), Vector(B.yx, B.yy, B.yz), Vector(B.zx, B.zy, B.zz))
    return Matrix(*(x for row, scale in zip(rows, a, strict=True) for x in row - scale * b))


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
    links: Mechanism,
    turned: Sequence[Turned],
    filtered: Sequence[Filtered],
    updated: Sequence[ArticulatedInertia],
    forces: Sequence[Spatial],
    n: Sequence[Spatial],
    tau: Sequence[JointValue],
) -> list[JointEstimate]:
    """(3.47), (3.51)–(3.53): z⁻, e⁻ and e⁺ of every joint."""

    def step(
        link: MovingLink,
        received: Spatial,
        turned: Turned,
        known: Filtered,
        P: ArticulatedInertia,
        b: Spatial,
        n: Spatial,
        tau: JointValue,
    ):
        with stage("state propagation"):
            joint = link.placed(turned)
            z = received + b
        updated = z
        innovations: list[Scalar] = []
        for axis, gain, torque in zip(link.axes, known.gains, parts_of(tau), strict=True):
            with stage("innovations"):
                e = torque - axis.felt(updated)
            with stage("state update"):
                updated = updated + e * gain
            innovations.append(e)
        with stage("state update"):
            moment, force = joint.inward(updated + P @ n)
        with stage("state propagation"):
            carried = Spatial(moment + joint.lever.cross(force), force)
        with stage("residuals"):
            residuals = [e * i for e, i in zip(innovations, known.inverse_axis_inertia, strict=True)]
        return JointEstimate(z, tuple(innovations), tuple(residuals)), carried

    return links.inward(step, zero_spatial(), turned, filtered, updated, forces, n, tau)


# -- smoothing --------------------------------------------------------------------------------------------------------


def smooth(
    links: Mechanism,
    turned: Sequence[Turned],
    filtered: Sequence[Filtered],
    estimates: Sequence[JointEstimate],
    n: Sequence[Spatial],
    root: Spatial,
) -> list[JointValue]:
    """(3.55)–(3.58): joint accelerations, from the base to the tips."""
    pairs = smoothed(links, turned, filtered, estimates, n, root)
    return links.each(lambda link, pair: pair[0], pairs)


def smoothed(
    links: Mechanism,
    turned: Sequence[Turned],
    filtered: Sequence[Filtered],
    estimates: Sequence[JointEstimate],
    n: Sequence[Spatial],
    root: Spatial,
) -> list[tuple[JointValue, Spatial]]:
    """(q̈, λ⁻) of every joint."""

    def step(
        link: MovingLink,
        parent: tuple[JointValue, Spatial],
        turned: Turned,
        known: Filtered,
        estimate: JointEstimate,
        n: Spatial,
    ) -> tuple[JointValue, Spatial]:
        with stage("costate propagation"):
            joint = link.placed(turned)
            above, linear = parent[1]
            λ = Spatial(above, linear + above.cross(joint.lever))
        with stage("costate update"):
            λ = joint.outward(λ) + n
        found: list[Scalar] = []
        for axis, gain, residual in reversed(
            list(zip(link.axes, known.gains, estimate.residual, strict=True))
        ):
            with stage("joint acceleration"):
                qdd = residual - gain.dot(λ)
            with stage("costate update"):
                λ = λ + axis.motion(qdd)
            found.insert(0, qdd)
        return joint_value(found), λ

    return links.outward(step, (0.0, root), turned, filtered, estimates, n)


def acceleration_parts(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> tuple[list[JointValue], list[JointValue], list[JointValue]]:
    """(10.1), (10.2): the parts of q̈ that torques, bias forces (with wrenches) and bias accelerations (with gravity)
    cause; their sum is q̈."""
    turned = links.turned(q)
    biases = bias_accelerations(links, turned, qd)
    forces = links.each(lambda link, bias: bias_force(link, bias[0]), biases)
    if wrenches is not None:
        forces = links.each(lambda link, b, wrench: b - wrench, forces, wrenches)
    n = links.each(lambda link, bias: bias[1], biases)
    nothing = [zero_spatial() for _ in links]
    rest = links.grouped([0.0] * links.dof)
    filtered, updated = filter_inertias(links, turned)

    def part(
        forces: Sequence[Spatial], n: Sequence[Spatial], tau: Sequence[JointValue], root: Spatial
    ) -> list[JointValue]:
        estimates = filter_states(links, turned, filtered, updated, forces, n, tau)
        return smooth(links, turned, filtered, estimates, n, root)

    return (
        part(nothing, nothing, tau, zero_spatial()),
        part(forces, nothing, rest, zero_spatial()),
        part(nothing, n, rest, Spatial(zero_vector(), -links.gravity)),
    )


SOLVED_FROM = 40
"""Coordinates from which M⁻¹ times fewer than half as many rows is found without M⁻¹: n operations a row, not n²."""


def solves_rows(coordinates: int, rows: int, coupled: bool) -> bool:
    """Whether M⁻¹ times so many rows is found row by row."""
    return not coupled and coordinates >= SOLVED_FROM and 2 * rows < coordinates


def times_inverse_mass(
    links: Mechanism, q: Sequence[JointValue], rows: Sequence[Sequence[Scalar]]
) -> list[list[Scalar]]:
    """Rows times M⁻¹: accelerations that each of them, as torques, causes at rest without gravity."""
    if not solves_rows(links.dof, len(rows), links.coupled):
        return dense.product([list(row) for row in rows], inverse_mass_matrix(links, q))
    turned = links.turned(q)
    filtered, updated = filter_inertias(links, turned)
    nothing = [zero_spatial() for _ in links]

    def solved(row: Sequence[Scalar]) -> list[Scalar]:
        estimates = filter_states(
            links, turned, filtered, updated, nothing, nothing, links.grouped(list(row))
        )
        return flat(smooth(links, turned, filtered, estimates, nothing, zero_spatial()))

    return [solved(row) for row in rows]


# -- matrices ---------------------------------------------------------------------------------------------------------


def mass_matrix(links: Mechanism, q: Sequence[JointValue]) -> list[list[Scalar]]:
    """(7.7)–(7.11): M_ki = H_k φ(k,i) r_ii H_iᵀ with the covariance r_kk = φ r φᵀ + M_k; without rotor inertia."""
    with stage("joint turns"):
        turned = links.turned(q)

    def step(link: MovingLink, received: ArticulatedInertia, turned: Turned):
        r = received + articulated(link.inertia)
        joint = link.placed(turned)
        return r, joint.inward(r).shifted(joint.lever)

    with stage("covariances"):
        covariances = links.inward(step, zero_articulated(), turned)
    with stage("matrix"):
        return links.pairings(turned, lambda k, axis: axis.column(covariances[k]))


def inverse_mass_matrix(links: Mechanism, q: Sequence[JointValue]) -> list[list[Scalar]]:
    """(10.2)–(10.6), (10.30): the closed form of M⁻¹ (with rotor inertia).

    For i beyond k: M⁻¹_ki = d_k s with s = ψ(k⁻, i⁺) G_i, d_k = G_kᵀΛ⁺ − c_k H_k, c_k = 1/D_k + G_kᵀΛ⁺G_k. The paper
    treats a chain; joints i and j of two branches that meet in link a have M⁻¹_ij = s_iᵀ Λ⁻_a s_j. The axes of one
    joint count as joints with nothing between them, the one that is filtered first outermost.
    """
    with stage("joint turns"):
        turned = links.turned(q)
    filtered, _ = filter_inertias(links, turned)
    with stage("costate covariance"):
        covariances = costate_covariances(links, turned, filtered)
    with stage("matrix"):
        return _inverse_entries(links, turned, filtered, covariances)


Covariances = tuple[list[ArticulatedInertia], ArticulatedInertia]
"""Λ⁺ of every axis of a link, and Λ⁻ of the link."""


def _inverse_entries(
    links: Mechanism,
    turned: Sequence[Turned],
    filtered: Sequence[Filtered],
    covariances: Sequence[Covariances],
) -> list[list[Scalar]]:
    n, first = links.dof, links.first_coordinates()
    W: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    rows: list[Spatial] = []  # Λ⁺G
    for known, (before, _) in zip(filtered, covariances, strict=True):
        rows += [plus @ gain for plus, gain in zip(before, known.gains, strict=True)]
    gains = [gain for known in filtered for gain in known.gains]
    inverses = [inverse for known in filtered for inverse in known.inverse_axis_inertia]
    c = [inverse + row.dot(gain) for inverse, row, gain in zip(inverses, rows, gains, strict=True)]
    # for every link: the coordinates whose s has arrived there, by which child, and s
    arrived: list[dict[int, tuple[int, Spatial]]] = [{} for _ in links]
    coordinates = links.coordinates()
    for i, (k, _) in enumerate(coordinates):
        W[i][i] = c[i]
        s, start, child = gains[i], i + 1, k
        for a in (k, *links.ancestors(k)):
            if a != k:
                s = links[child].placed(turned[child]).force_to_parent(s)
                for j, (branch, other) in arrived[a].items():
                    if branch != child:
                        W[i][j] = W[j][i] = s.dot(covariances[a][1] @ other)
                arrived[a][i] = (child, s)
                start = first[a]
            for b in range(start, first[a] + len(links[a].axes)):  # inner axes of this link
                felt = coordinates[b][1].felt(s)
                W[b][i] = W[i][b] = rows[b].dot(s) - c[b] * felt
                s = s - felt * gains[b]
            child = a
    return W


def costate_covariances(
    links: Mechanism, turned: Sequence[Turned], filtered: Sequence[Filtered]
) -> list[Covariances]:
    """(10.30), (9.20), (9.21): Λ⁺ of every axis and Λ⁻ of every link; Λ maps forces to accelerations."""

    def step(link: MovingLink, parent: Covariances, turned: Turned, known: Filtered) -> Covariances:
        joint = link.placed(turned)
        plus = joint.outward(_swapped(_swapped(parent[1]).shifted(-joint.lever)))
        before: list[ArticulatedInertia] = []
        for axis, inverse, gain in reversed(
            list(zip(link.axes, known.inverse_axis_inertia, known.gains, strict=True))
        ):
            before.insert(0, plus)
            plus = _covariance_update(axis, plus, inverse, gain)
        return before, plus

    return links.outward(step, ([], zero_articulated()), turned, filtered)


def _swapped(P: ArticulatedInertia) -> ArticulatedInertia:
    """Linear before angular: φᵀΛφ is then a shift like that of an inertia, by the opposite lever."""
    return ArticulatedInertia(P.C, P.B.transposed(), P.A)


def _covariance_update(
    axis: Axis, plus: ArticulatedInertia, inverse: Scalar, gain: Spatial
) -> ArticulatedInertia:
    """(9.21): Λ⁻ = (I − G H)ᵀ Λ⁺ (I − G H) + Hᵀ D⁻¹ H: only the row and column of the axis change."""
    column = plus @ gain
    corner = gain.dot(column) + inverse
    A, B, C = plus
    u, v = column
    k = axis.k
    if axis.screws:
        return _screw_covariance(axis, plus, column, corner)
    if axis.turns:
        return ArticulatedInertia(_row_less(A, k, u, corner), _with_matrix_row(B, k, B.row(k) - v), C)
    across = B.transposed()
    across = _with_matrix_row(across, k, across.row(k) - u).transposed()
    return ArticulatedInertia(A, across, _row_less(C, k, v, corner))


def _row_less(S: Symmetric, k: int, u: Vector, corner: Scalar) -> Symmetric:
    """S − e uᵀ − u eᵀ + e corner eᵀ for the unit vector e along k."""
    row = list(S.column(k))
    changed = [x - y for x, y in zip(row, u, strict=True)]
    changed[k] = row[k] - 2.0 * list(u)[k] + corner
    return _with_row(S, k, Vector(*changed))


def _screw_covariance(
    axis: Axis, plus: ArticulatedInertia, column: Spatial, corner: Scalar
) -> ArticulatedInertia:
    """Λ⁺ − e uᵀ − u eᵀ + e corner eᵀ, with the screw axis e = (unit vector, pitch·unit vector)."""
    e = axis.motion(1.0)
    half = column - (0.5 * corner) * e
    A, B, C = plus
    turning, sliding = half

    def both(S: Symmetric, a: Vector, b: Vector) -> Symmetric:
        """S − a bᵀ − b aᵀ."""
        doubled = Symmetric(
            *(2.0 * a.x * b.x, a.x * b.y + a.y * b.x, a.x * b.z + a.z * b.x),
            *(2.0 * a.y * b.y, a.y * b.z + a.z * b.y, 2.0 * a.z * b.z),
        )
        return S - doubled

    new_B = _minus_product(_minus_product(B, e.angular, sliding), turning, e.linear)
    return ArticulatedInertia(both(A, e.angular, turning), new_B, both(C, e.linear, sliding))
