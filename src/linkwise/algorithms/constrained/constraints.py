"""Dynamics under constraints: points and poses that are held.

With rows J of all constraints, J q̈ + γ = 0 (γ = J̇ q̇ and what controls drift) and forces λ that act along them:

    M q̈ + b = τ + Jᵀ λ,        (J M⁻¹ Jᵀ) λ = −γ − J q̈_free

Two ways to solve it. ``by_delassus``: the Delassus matrix G = J M⁻¹ Jᵀ from the closed form of the filter's inverse.
``by_mass_matrix``: the same matrix from a factorised mass matrix. Both factorise G with pivoting (``pivoted``), so that
redundant rows are found and left out: rows that depend on others up to round-off, or up to the accuracy of the robot's
geometry, which the error of closure shows (loops from CAD files close up to 1e-8 m). The accelerations do not depend on
which of them are left out, and forces are made the smallest ones. The residual of J q̈ + γ shows whether a constraint
cannot be met.

Drift: γ includes 2α J q̇ + α² e (Baumgarte) with the error e of the constraint, if a rate α is given.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from linkwise.algorithms import centroidal, coupling, dense, kinematics
from linkwise.algorithms.constrained import pivoted
from linkwise.algorithms.constrained.pivoted import Factors
from linkwise.algorithms.kinematics import Pose, frame_pose, link_poses
from linkwise.joint_laws import is_zero
from linkwise.model.axes import JointValue
from linkwise.model.constraints import target_size
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, maximum, sqrt, stage, where
from linkwise.spatial import Matrix, Vector

Rows = list[list[Scalar]]
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)

ACCURACY = 32.0
"""Round-off of accelerations far from singular states, in units of that of one operation."""
REFINEMENTS = 2
"""Steps of iterative refinement after the first solution."""
CLOSURE_SLACK = 10.0
"""Residuals may be this many times the relative error of closure."""
LEAST_CLOSED = 1e-5
"""Relative error of closure [rad] from which rows are not taken for dependent any more: such a state is not closed."""


@dataclass(frozen=True)
class Precision:
    """What the precision of the arithmetic decides."""

    dependent: float
    """A row of G counts as dependent on others where its pivot is at most this part of its size: the square of the
    angle [rad] from which directions are told apart."""
    stiffness: float
    """Of measurements without noise, relative to inertias of held links."""
    tolerance: float
    """Of J q̈ + γ, relative to what adds up to it."""
    round_off: float
    """Of one operation, relative."""
    softening: float
    """Of the mean diagonal of G of contacts, so that redundant ones have a pivot."""
    nothing: float
    """[rad/s² or m/s²], and relative to the largest row: accelerations under it count as none."""


PRECISIONS = {
    "float64": Precision(1e-13, 1e4, 1e-6, 2.0**-53, 1e-10, 1e-6),
    "float32": Precision(1e-5, 1e2, 1e-2, 2.0**-24, 1e-5, 1.0),
}
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


def dependent() -> float:
    return _precision.get().dependent


def softening() -> float:
    return _precision.get().softening


def round_off() -> float:
    return _precision.get().round_off


@dataclass(frozen=True)
class Held:
    """A constraint on prepared links: (link, pose in its file frame) of both sides, −1 is the world; 6 or 3 rows.

    ``compliance`` is R of a soft constraint, J q̈ + R λ = wanted. ``target``: where in the world the frame is held,
    if that is an input instead of the constant in ``second``.
    """

    first: tuple[int, Transform]
    second: tuple[int, Transform]
    rows: int
    compliance: float = 0.0
    target: Pose | None = None


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
        second = each.target or frame_pose(links, poses, *each.second)
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


@dataclass(frozen=True, eq=False)
class Solved:
    """Accelerations under constraints, forces with which they are so, and how G was factorised."""

    qdd: list[Scalar]
    forces: list[Scalar]
    hard: list[int]
    """Rows that ``factors`` is about."""
    factors: Factors | None

    def least_forces(self) -> list[Scalar]:
        """Redundant rows share forces so that these are smallest."""
        if self.factors is None:
            return self.forces
        with stage("constraint forces"):
            forces = list(self.forces)
            shared = self.factors.smallest_solution([forces[k] for k in self.hard])
            for k, force in zip(self.hard, shared, strict=True):
                forces[k] = force
            return forces


def blocks(held: Sequence[Held]) -> list[tuple[list[int], bool]]:
    """Rows with a common unit, three directions each, and whether they are linear."""
    found: list[tuple[list[int], bool]] = []
    at = 0
    for each in held:
        for k in range(at, at + each.rows, 3):
            found.append(([k, k + 1, k + 2], k + 3 == at + each.rows))
        at += each.rows
    return found


def closure_floor(links: Mechanism, q: Sequence[JointValue], held: Sequence[Held], J: Rows) -> Scalar:
    """Pivots of G at most this part of their size belong to rows that depend on others.

    Directions differ by less than three times the error of closure of a loop beside its levers, or by round-off. Frames
    that are held to the world close no loop of the file: their errors say nothing about its axes.
    """
    with stage("constraints"):
        floor: Scalar = dependent()
        if not any(_closes_loop(each) for each in held):
            return floor
        off = errors(links, q, held)
        loops = [_closes_loop(each) for each in held for _ in range(each.rows)]
        for rows, _ in blocks(held):
            if not loops[rows[0]]:
                continue
            gap = sum((off[k] * off[k] for k in rows[1:]), start=off[rows[0]] * off[rows[0]])
            lever = sum((dense.dot(J[k], J[k]) for k in rows[1:]), start=dense.dot(J[rows[0]], J[rows[0]]))
            floor = maximum(floor, 9.0 * gap / _positive(lever))
        most = max(LEAST_CLOSED * LEAST_CLOSED, dependent())
        return where(floor > most, most, floor)


def accuracy(factors: Factors) -> Scalar:
    """The estimated relative error of accelerations: round-off over the sine of the angle to a singular state.

    Forces are only as exact as its square allows.
    """
    return ACCURACY * _precision.get().round_off / sqrt(factors.smallest)


def _closes_loop(each: Held) -> bool:
    return each.first[0] >= 0 and each.second[0] >= 0


def factorised(G: Rows, held: Sequence[Held], floor: Scalar) -> Factors:
    """G by pivoting; what is large in a row is the mean of its block, which does not depend on the base's axes."""
    means: list[tuple[list[int], bool, Scalar]] = [
        (rows, linear, (1.0 / 3.0) * (G[rows[0]][rows[0]] + G[rows[1]][rows[1]] + G[rows[2]][rows[2]]))
        for rows, linear in blocks(held)
    ]
    sizes: list[Scalar] = [1.0] * len(G)
    for rows, linear, mean in means:
        # rows that move by round-off alone are small beside others of their unit
        largest = functools.reduce(maximum, (other for _, kind, other in means if kind == linear))
        size = _positive(maximum(mean, floor * largest))
        for k in rows:
            sizes[k] = size
    return pivoted.factorised(G, floor, sizes)


def by_delassus(
    J: Rows,
    mobility: Rows,
    free: Sequence[Scalar],
    wanted: Sequence[Scalar],
    held: Sequence[Held],
    floor: Scalar | None = None,
) -> Solved:
    """Accelerations and forces from ``mobility`` = J M⁻¹ and the accelerations without constraints; ``floor``: see
    ``closure_floor``."""
    with stage("Delassus matrix"):
        G = softened(dense.symmetric_product(mobility, J), compliances(held))
    with stage("constraint forces"):
        factors = factorised(G, held, dependent() if floor is None else floor)
        moved, forces = _refined(factors, J, mobility, free, wanted, compliances(held))
        return Solved(moved, forces, list(range(len(J))), factors)


def _refined(
    factors: Factors,
    J: Rows,
    mobility: Rows,
    free: Sequence[Scalar],
    wanted: Sequence[Scalar],
    soft: Sequence[float],
) -> tuple[list[Scalar], list[Scalar]]:
    """(q̈, λ) with J q̈ + R λ = wanted, refined by what is left of J q̈.

    Close to a singular state forces are large and cancel in G λ; J q̈ does not suffer from that.
    """
    columns = dense.transposed(mobility)
    qdd, forces = list(free), list[Scalar]()
    for _ in range(1 + REFINEMENTS):
        given = wanted if not forces else given_way(wanted, soft, forces)
        missing = [w - dense.dot(row, qdd) for w, row in zip(given, J, strict=True)]
        more = factors.solved(missing, refined=False)
        qdd = [a + dense.dot(column, more) for a, column in zip(qdd, columns, strict=True)]
        forces = [f + m for f, m in zip(forces, more, strict=True)] if forces else more
    return qdd, forces


def softened(G: Rows, soft: Sequence[float] | None) -> Rows:
    """G + R."""
    if soft is None or not any(soft):
        return G
    return [[x + soft[i] if i == j and soft[i] else x for j, x in enumerate(row)] for i, row in enumerate(G)]


def by_mass_matrix(
    J: Rows,
    M: Rows,
    net: Sequence[Scalar],
    wanted: Sequence[Scalar],
    held: Sequence[Held],
    floor: Scalar,
    may_be_singular: bool,
) -> Solved:
    """Accelerations and forces from M and τ − b.

    Soft rows are springs, M + Jᵀ R⁻¹ J. If M may be singular, ρ JᵀJ is added for the other rows and ρ Jᵀ wanted on the
    right: the solution stays the same, and M + ρ JᵀJ is regular where the constraints hold what has no inertia.
    """
    soft = compliances(held)
    hard = [k for k, R in enumerate(soft) if not R]
    with stage("mass matrix"):
        common = common_weight(M, [J[k] for k in hard]) if may_be_singular and hard else 0.0
        weights: list[Scalar] = [1.0 / R if R else common for R in soft]
        H = weighted_sum(M, J, weights)
        right = list(net)
        for row, weight, w in zip(J, weights, wanted, strict=True):
            if not is_zero(weight):
                right = [r + weight * x * w for r, x in zip(right, row, strict=True)]
        L, pivots = dense.factorised(H, 0.0)
        free = dense.solved(L, pivots, right)
    forces: list[Scalar] = [0.0] * len(J)
    qdd, factors = free, None
    if hard:
        with stage("Delassus matrix"):
            own = [J[k] for k in hard]
            mobility = [dense.solved(L, pivots, row) for row in own]
            G = dense.symmetric_product(mobility, own)
        with stage("constraint forces"):
            factors = factorised(G, [each for each in held if not each.compliance], floor)
            qdd, pulls = _refined(factors, own, mobility, free, [wanted[k] for k in hard], [0.0] * len(hard))
            for k, force in zip(hard, pulls, strict=True):
                forces[k] = force
    with stage("constraint forces"):
        for k, R in enumerate(soft):
            if R:
                forces[k] = (1.0 / R) * (wanted[k] - dense.dot(J[k], qdd))
    return Solved(qdd, forces, hard, factors)


def common_weight(M: Rows, rows: Rows) -> Scalar:
    """ρ for which ρ JᵀJ is as large as M."""
    square = sum((dense.dot(row, row) for row in rows[1:]), start=dense.dot(rows[0], rows[0]))
    return _trace(M) / _positive(square)


def weighted_sum(M: Rows, J: Rows, weights: Sequence[Scalar]) -> Rows:
    """M + Jᵀ ρ J with one weight ρ for each row."""
    H: Rows = [list(row) for row in M]
    for row, weight in zip(J, weights, strict=True):
        if is_zero(weight):
            continue
        for i, x in enumerate(row):
            scaled = weight * x
            for j in range(i, len(row)):
                H[i][j] = H[j][i] = H[i][j] + scaled * row[j]
    return H


def given_way(wanted: Sequence[Scalar], soft: Sequence[float], forces: Sequence[Scalar]) -> list[Scalar]:
    """What J q̈ must be where soft rows give way."""
    return [w - R * f if R else w for w, R, f in zip(wanted, soft, forces, strict=True)]


def left_over(
    qdd: Sequence[Scalar],
    J: Rows,
    wanted: Sequence[Scalar],
    held: Sequence[Held],
    floor: Scalar | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """(J q̈ − wanted, what it is compared with), row by row.

    The sum of the magnitudes of the terms of all three rows of a block, so that the axes of the base do not matter;
    larger where the loop does not close exactly (``floor``), because its directions are no more exact than that.
    """
    residuals: list[Scalar] = []
    sizes: list[Scalar] = []
    for row, w in zip(J, wanted, strict=True):
        terms = [x * a for x, a in zip(row, qdd, strict=True)]
        residuals.append(sum(terms[1:], start=terms[0]) - w)
        sizes.append(sum((abs(t) for t in terms), start=abs(w)))
    return residuals, block_sizes(sizes, held, floor)


def block_sizes(sizes: Sequence[Scalar], held: Sequence[Held], floor: Scalar | None = None) -> list[Scalar]:
    """Sizes of rows as sums over their blocks, enlarged by what the error of closure allows."""
    factor = 1.0 if floor is None else 1.0 + (CLOSURE_SLACK / _precision.get().tolerance) * sqrt(floor)
    whole = list(sizes)
    for rows, _ in blocks(held):
        total = factor * (sizes[rows[0]] + sizes[rows[1]] + sizes[rows[2]])
        for k in rows:
            whole[k] = total
    return whole


def largest_part(residuals: Sequence[Scalar], sizes: Sequence[Scalar]) -> Scalar:
    """Of what is left of the rows, relative to what adds up to it; see ``Precision.nothing``."""
    least = _precision.get().nothing * (1.0 + functools.reduce(maximum, sizes))
    parts = [abs(r) / (size + least) for r, size in zip(residuals, sizes, strict=True)]
    return functools.reduce(maximum, parts)


def after_impact(
    J: Rows, mobility: Rows, qd: Sequence[Scalar], restitution: Scalar, held: Sequence[Held]
) -> list[Scalar]:
    """Velocities after an impact that the constraints take: J q̇⁺ = −restitution·J q̇⁻."""
    wanted = [-restitution * dense.dot(row, qd) for row in J]
    rigid = [replace(each, compliance=0.0) for each in held]
    return by_delassus(J, mobility, qd, wanted, rigid).qdd


def least_torques(
    J: Rows, tau: Sequence[Scalar], motors: Sequence[bool]
) -> tuple[list[Scalar], list[Scalar]]:
    """(τ, what joints without a motor miss): the smallest torques of the motors with τ + Jᵀ λ = ``tau``.

    The smallest λ that needs no torques at joints without a motor; the part of λ that does not act on them is chosen
    so that the motors' torques are smallest. Where a motion needs a torque at a joint without a motor, the nearest
    possible torques are used, and the torque that is missing there is not zero.
    """
    columns = dense.transposed(J)
    driven = [column for column, motor in zip(columns, motors, strict=True) if motor]
    passive = [column for column, motor in zip(columns, motors, strict=True) if not motor]
    size = (1.0 / len(J)) * sum((dense.dot(row, row) for row in J[1:]), start=dense.dot(J[0], J[0]))
    sizes = [_positive(size)]
    solver = (
        pivoted.factorised(dense.symmetric_product(passive, passive), dependent(), sizes * len(passive))
        if passive
        else None
    )

    def along(right: Sequence[Scalar]) -> list[Scalar]:
        """The smallest forces whose torques at the joints without a motor are ``right``."""
        if solver is None:
            return [0.0] * len(J)
        shares = solver.solved(right)
        return [dense.dot(row, shares) for row in dense.transposed(passive)]

    def unfelt(values: Sequence[Scalar]) -> list[Scalar]:
        """The part of forces that has no torque at these joints."""
        seen = along([dense.dot(column, values) for column in passive])
        return [x - y for x, y in zip(values, seen, strict=True)]

    forces: list[Scalar] = [0.0] * len(J)
    if passive:
        # the part of the torques that forces can make, by least squares
        rows = dense.transposed(passive)
        wanted = [t for t, motor in zip(tau, motors, strict=True) if not motor]
        square = pivoted.factorised(dense.symmetric_product(rows, rows), dependent(), sizes * len(J))
        some = square.solved([dense.dot(row, wanted) for row in rows])
        forces = along([dense.dot(column, some) for column in passive])
    if driven:
        own = [t for t, motor in zip(tau, motors, strict=True) if motor]
        rest = [t - dense.dot(column, forces) for t, column in zip(own, driven, strict=True)]
        rows = dense.transposed([unfelt(column) for column in driven])
        right = [dense.dot(row, rest) for row in rows]
        square = dense.symmetric_product(rows, rows)
        more = pivoted.factorised(square, dependent(), sizes * len(J)).solved(right)
        forces = [f + m for f, m in zip(forces, unfelt(more), strict=True)]
    left = [t - dense.dot(column, forces) for t, column in zip(tau, columns, strict=True)]
    return (
        [t if motor else 0.0 for t, motor in zip(left, motors, strict=True)],
        [0.0 if motor else t for t, motor in zip(left, motors, strict=True)],
    )


def _positive(x: Scalar) -> Scalar:
    """x, or 1 where it is zero: rows that no joint moves have no scale."""
    return where(x > 0.0, x, 1.0)


def _trace(M: Rows) -> Scalar:
    return sum((M[k][k] for k in range(1, len(M))), start=M[0][0])


def prepared(model: Any, targets: Sequence[Scalar] | None = None) -> list[Held]:
    """The constraints of a model on its moving links; ``targets`` are ordered as by ``target_values``."""
    held: list[Held] = []
    rest = list(targets) if targets is not None else []
    for constraint in model.constraints:
        ends: list[tuple[int, Transform]] = []
        for frame, pose in constraint.ends():
            body, place = (-1, Transform.identity()) if frame is None else model.locate(frame)
            ends.append((body, place @ pose))
        target = None
        if targets is not None and (size := target_size(constraint)):
            numbers, rest = rest[:size], rest[size:]
            rotation = Matrix(*numbers[3:]) if size == 12 else Matrix(*IDENTITY)
            target = Pose(rotation, Vector(*numbers[:3]))
        held.append(Held(ends[0], ends[1], constraint.rows, float(constraint.compliance), target))
    return held
