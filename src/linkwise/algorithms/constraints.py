"""Dynamics under constraints: points and poses that are held.

With rows J of all constraints, J q̈ + γ = 0 (γ = J̇ q̇ and what controls drift) and forces λ that act along them:

    M q̈ + b = τ + Jᵀ λ,        (J M⁻¹ Jᵀ) λ = −γ − J q̈_free

Two ways to solve it. ``by_delassus``: the Delassus matrix G = J M⁻¹ Jᵀ from the closed form of the filter's inverse.
``by_penalty``: the mass matrix with a stiff penalty, M + ρ JᵀJ. Both repeat a few proximal steps (J. Carpentier,
R. Budhiraja and N. Mansard, "Proximal and sparse resolution of constrained dynamic equations", 2021), a fixed number of
operations: exact where constraints are independent, and finite where they are redundant or singular, because the forces
then are the smallest ones. The residual of J q̈ + γ shows whether a constraint cannot be met.

Drift: γ includes 2α J q̇ + α² e (Baumgarte) with the error e of the constraint, if a rate α is given.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import centroidal, coupling, dense, kinematics
from linkwise.algorithms.kinematics import frame_pose, link_poses
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, maximum, stage, where
from linkwise.spatial import Matrix, Vector

Rows = list[list[Scalar]]

PROXIMAL_STEPS = 4
PENALTY_STEPS = 10


@dataclass(frozen=True)
class Precision:
    """What the precision of the arithmetic decides."""

    softening: float
    """Of the mean diagonal of G, so that redundant rows have a pivot."""
    stiffness: float
    """Of penalties, relative to inertias: of the mean diagonal of M over that of JᵀJ, or of held links."""
    nothing: float
    """[rad/s² or m/s²], and relative to the largest row: accelerations under it count as none."""


PRECISIONS = {"float64": Precision(1e-10, 1e4, 1e-6), "float32": Precision(1e-5, 1e2, 1.0)}
_precision: ContextVar[Precision] = ContextVar("precision", default=PRECISIONS["float64"])


@contextmanager
def computed_in(dtype: str) -> Generator[None, None, None]:
    """Choose the numbers above for what is traced or computed in this block."""
    token = _precision.set(PRECISIONS[dtype])
    try:
        yield
    finally:
        _precision.reset(token)


def stiffness() -> float:
    return _precision.get().stiffness


def softening() -> float:
    return _precision.get().softening


@dataclass(frozen=True)
class Held:
    """A constraint on prepared links: (link, pose in its file frame) of both sides, −1 is the world; 6 or 3 rows.

    ``compliance`` is R of a soft constraint, J q̈ + R λ = wanted.
    """

    first: tuple[int, Transform]
    second: tuple[int, Transform]
    rows: int
    compliance: float = 0.0


def compliances(held: Sequence[Held]) -> list[float]:
    """R of all rows."""
    return [each.compliance for each in held for _ in range(each.rows)]


# -- rows -------------------------------------------------------------------------------------------------------------


def jacobian(links: Mechanism, q: Sequence[JointValue], held: Sequence[Held]) -> Rows:
    """J, one row for every direction that is held, in base axes; angular before linear."""
    rows: Rows = []
    for each in held:
        first = kinematics.jacobian(links, q, *each.first)
        second = kinematics.jacobian(links, q, *each.second)
        rows += [
            [a - b for a, b in zip(*pair, strict=True)]
            for pair in zip(first[6 - each.rows :], second[6 - each.rows :], strict=True)
        ]
    return [coupling.reduced(links, row, (True,)) for row in rows]


def bias(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue], held: Sequence[Held]
) -> list[Scalar]:
    """J̇ q̇ of all rows."""
    values: list[Scalar] = []
    for each in held:
        first = centroidal.jacobian_rate(links, q, qd, *each.first)
        second = centroidal.jacobian_rate(links, q, qd, *each.second)
        values += [a - b for a, b in zip(first[6 - each.rows :], second[6 - each.rows :], strict=True)]
    return values


def errors(links: Mechanism, q: Sequence[JointValue], held: Sequence[Held]) -> list[Scalar]:
    """How far each row is from being met: sine of the angle about each base axis [rad], gap [m]."""
    poses = link_poses(links, q)
    values: list[Scalar] = []
    for each in held:
        first = frame_pose(links, poses, *each.first)
        second = frame_pose(links, poses, *each.second)
        if each.rows == 6:
            values += [*_turn_between(second.rotation, first.rotation)]
        values += [*(first.position - second.position)]
    return values


def _turn_between(a: Matrix, b: Matrix) -> Vector:
    """½ Σ aₖ × bₖ over the columns: the axis of the turn from a to b, times the sine of its angle."""
    return 0.5 * (
        a.column(0).cross(b.column(0)) + a.column(1).cross(b.column(1)) + a.column(2).cross(b.column(2))
    )


def required(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    held: Sequence[Held],
    J: Rows,
    rate: float | None,
) -> list[Scalar]:
    """−γ: what J q̈ must be."""
    with stage("constraints"):
        values = [-value for value in bias(links, q, qd, held)]
        if rate is None:
            return values
        rates = coupling.leaders(links, qd)
        return [
            value - (2.0 * rate) * dense.dot(row, rates) - (rate * rate) * error
            for value, row, error in zip(values, J, errors(links, q, held), strict=True)
        ]


# -- solutions --------------------------------------------------------------------------------------------------------


def by_delassus(
    J: Rows,
    inverse: Rows,
    free: Sequence[Scalar],
    wanted: Sequence[Scalar],
    soft: Sequence[float] | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """(q̈, λ) from M⁻¹ and the accelerations without constraints; ``soft`` are the compliances of the rows."""
    with stage("Delassus matrix"):
        mobility = dense.product(J, inverse)
        G = softened(dense.symmetric_product(mobility, J), soft)
    with stage("constraint forces"):
        missing = [w - dense.dot(row, free) for w, row in zip(wanted, J, strict=True)]
        forces = least_forces(G, missing)
    with stage("accelerations"):
        moved = [
            a + dense.dot(column, forces) for a, column in zip(free, dense.transposed(mobility), strict=True)
        ]
        return moved, forces


def softened(G: Rows, soft: Sequence[float] | None) -> Rows:
    """G + R."""
    if soft is None or not any(soft):
        return G
    return [[x + soft[i] if i == j and soft[i] else x for j, x in enumerate(row)] for i, row in enumerate(G)]


def least_forces(G: Rows, right: Sequence[Scalar], size: Scalar | None = None) -> list[Scalar]:
    """The smallest λ with G λ = right, where G may be singular: λ ← λ + (G + μ)⁻¹ (right − G λ).

    ``size`` is what counts as large in G, by default the mean of its diagonal.
    """
    mean = _precision.get().softening * _positive((1.0 / len(G)) * _trace(G) if size is None else size)
    regular = [[x + mean if i == j else x for j, x in enumerate(row)] for i, row in enumerate(G)]
    L, pivots = dense.factorised(regular, 0.0)
    forces = dense.solved(L, pivots, right)
    for _ in range(PROXIMAL_STEPS):
        rest = [r - dense.dot(row, forces) for r, row in zip(right, G, strict=True)]
        forces = [f + d for f, d in zip(forces, dense.solved(L, pivots, rest), strict=True)]
    return forces


def by_penalty(
    J: Rows,
    M: Rows,
    net: Sequence[Scalar],
    wanted: Sequence[Scalar],
    soft: Sequence[float] | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """(q̈, λ) from M and τ − b: (M + ρ JᵀJ) q̈ = τ − b + Jᵀ(λ + ρ wanted), then λ ← λ + ρ (wanted − J q̈).

    A soft row has ρ = 1/R, and λ = ρ (wanted − J q̈) at once.
    """
    n = len(M)
    columns = dense.transposed(J)
    soft = soft if soft is not None else [0.0] * len(J)
    with stage("penalty"):
        hard = dense.transposed([row for row, R in zip(J, soft, strict=True) if not R])
        square = dense.symmetric_product(hard, hard)
        common = stiffness() * _trace(M) / _positive(_trace(square)) if square else 0.0
        weights = [1.0 / R if R else common for R in soft]
        H: Rows = [list(row) for row in M]
        for i in range(n):
            for j in range(n):
                if square:
                    H[i][j] = H[i][j] + common * square[i][j]
                for row, R in zip(J, soft, strict=True):
                    if R:
                        H[i][j] = H[i][j] + ((1.0 / R) * row[i]) * row[j]
        L, pivots = dense.factorised(H, 0.0)
    forces: list[Scalar] = [0.0] * len(J)
    qdd: list[Scalar] = [0.0] * n
    with stage("constraint forces"):
        for _ in range(PENALTY_STEPS):
            pulled = [
                s * w if R else f + s * w for f, s, w, R in zip(forces, weights, wanted, soft, strict=True)
            ]
            right = [t + dense.dot(column, pulled) for t, column in zip(net, columns, strict=True)]
            qdd = dense.solved(L, pivots, right)
            gained = [s * (w - dense.dot(row, qdd)) for s, w, row in zip(weights, wanted, J, strict=True)]
            forces = [g if R else f + g for f, g, R in zip(forces, gained, soft, strict=True)]
    return qdd, forces


def given_way(wanted: Sequence[Scalar], soft: Sequence[float], forces: Sequence[Scalar]) -> list[Scalar]:
    """What J q̈ must be where soft rows give way."""
    return [w - R * f if R else w for w, R, f in zip(wanted, soft, forces, strict=True)]


def left_over(qdd: Sequence[Scalar], J: Rows, wanted: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    """(J q̈ − wanted, the sum of the magnitudes of its terms), row by row."""
    residuals: list[Scalar] = []
    sizes: list[Scalar] = []
    for row, w in zip(J, wanted, strict=True):
        terms = [x * a for x, a in zip(row, qdd, strict=True)]
        residuals.append(sum(terms[1:], start=terms[0]) - w)
        sizes.append(sum((maximum(t, -t) for t in terms), start=maximum(w, -w)))
    return residuals, sizes


def largest_part(residuals: Sequence[Scalar], sizes: Sequence[Scalar]) -> Scalar:
    """Of what is left of the rows, relative to what adds up to it; see ``Precision.nothing``."""
    least = _precision.get().nothing * (1.0 + functools.reduce(maximum, sizes))
    parts = [maximum(r, -r) / (size + least) for r, size in zip(residuals, sizes, strict=True)]
    return functools.reduce(maximum, parts)


def after_impact(J: Rows, inverse: Rows, qd: Sequence[Scalar], restitution: Scalar) -> list[Scalar]:
    """Velocities after an impact that the constraints take: J q̇⁺ = −restitution·J q̇⁻."""
    wanted = [-restitution * dense.dot(row, qd) for row in J]
    return by_delassus(J, inverse, qd, wanted)[0]


def least_torques(
    J: Rows, tau: Sequence[Scalar], motors: Sequence[bool]
) -> tuple[list[Scalar], list[Scalar]]:
    """(τ, λ): the smallest torques of the motors with τ + Jᵀ λ = ``tau``; joints without a motor get none.

    The smallest λ that needs no torques at those joints; the part of λ that does not act on them is chosen so that
    the motors' torques are smallest. Where a motion needs a torque at a joint without a motor, the nearest possible
    torques are used.
    """
    columns = dense.transposed(J)
    driven = [column for column, motor in zip(columns, motors, strict=True) if motor]
    passive = [column for column, motor in zip(columns, motors, strict=True) if not motor]
    crossed = dense.symmetric_product(passive, passive)

    def along(right: Sequence[Scalar]) -> list[Scalar]:
        """The smallest forces whose torques at the joints without a motor are ``right``."""
        if not passive:
            return [0.0] * len(J)
        shares = least_forces(crossed, right)
        return [dense.dot(row, shares) for row in dense.transposed(passive)]

    def unfelt(values: Sequence[Scalar]) -> list[Scalar]:
        """The part of forces that has no torque at these joints."""
        seen = along([dense.dot(column, values) for column in passive])
        return [x - y for x, y in zip(values, seen, strict=True)]

    forces = along([t for t, motor in zip(tau, motors, strict=True) if not motor])
    if driven:
        own = [t for t, motor in zip(tau, motors, strict=True) if motor]
        rest = [t - dense.dot(column, forces) for t, column in zip(own, driven, strict=True)]
        rows = dense.transposed([unfelt(column) for column in driven])
        size = (1.0 / len(J)) * sum((dense.dot(row, row) for row in J[1:]), start=dense.dot(J[0], J[0]))
        right = [dense.dot(row, rest) for row in rows]
        more = least_forces(dense.symmetric_product(rows, rows), right, size)
        forces = [f + m for f, m in zip(forces, unfelt(more), strict=True)]
    left = [t - dense.dot(column, forces) for t, column in zip(tau, columns, strict=True)]
    return [t if motor else 0.0 for t, motor in zip(left, motors, strict=True)], forces


def _positive(x: Scalar) -> Scalar:
    """x, or 1 where it is zero: rows that no joint moves have no scale."""
    return where(x > 0.0, x, 1.0)


def _trace(M: Rows) -> Scalar:
    return sum((M[k][k] for k in range(1, len(M))), start=M[0][0])


def prepared(model: Any) -> list[Held]:
    """The constraints of a model on its moving links."""
    held: list[Held] = []
    for constraint in model.constraints:
        ends: list[tuple[int, Transform]] = []
        for frame, pose in constraint.ends():
            body, place = (-1, Transform.identity()) if frame is None else model.locate(frame)
            ends.append((body, place @ pose))
        held.append(Held(ends[0], ends[1], constraint.rows, float(constraint.compliance)))
    return held
