"""Contacts as measurements of the filter: impulses without the matrix G = J M⁻¹ Jᵀ.

A contact that presses with p + K (wanted − J v⁺) adds the information Jᵀ K J to the inertia M, as a measurement with
the covariance K⁻¹ does in a Kalman filter. Newton's steps of ``solver`` have this form: solved for the impulses of one
contact, equations (2)–(4) there are p⁺ = a − K w⁺ with

    open      K = 0                      sticks   K = 1/ε
    slides    p_n⁺ = p_n − w_n⁺/ε,       p_t⁺ = μ p_n⁺ d + s P (ε p_t − w_t⁺),      s = κ ρ/(1 − κ + κ ρ ε)              (1)

so that with r = a − K w − p, and w of the last velocities v,

    (M + Jᵀ K J) Δv = Jᵀ r,        Δp = r − K J Δv                                                              (2)

M + Jᵀ K J has the sparsity of M where everything touches the ground: a contact moves with the joints between it and
the base, and M couples these already. A step then costs one factorisation along the branches, however many contacts a
link has, and joints that stop or rub only change the diagonal. K is not symmetric where a contact slides. Redundant
contacts need no care: no matrix here is singular.

A step does not always make the residual smaller. The impulses with the smallest residual of all steps are the result.
The iteration ends where the residual is small enough: the number of steps is bounded, and a state that has ended waits
for the others of its group without changing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms import constraints, dense
from linkwise.algorithms.contact import solver
from linkwise.algorithms.contact.solver import JointRow
from linkwise.joint_laws import is_zero
from linkwise.scalar import Condition, Scalar, all_of, like, maximum, stage, where, while_loop

Rows = list[list[Scalar]]
LAST_PROXIMAL = 1e-8
"""ε of the step that is differentiated: derivatives have this relative error."""


@dataclass(frozen=True, eq=False)
class Touching:
    """The problem in velocities: M, rows J of contacts and what is added to their velocities, μ, and the joint rows
    with their coordinates."""

    M: Rows
    rows: Rows
    bias: Sequence[Scalar]
    friction: Sequence[Scalar]
    joints: Sequence[JointRow]
    coordinates: Sequence[int]

    def velocities(self, v: Sequence[Scalar]) -> list[Scalar]:
        """w = J v + bias of the contacts, then the velocities of the joint rows."""
        touching = [b + _dot(row, v) for b, row in zip(self.bias, self.rows, strict=True)]
        return [*touching, *(v[k] for k in self.coordinates)]

    def pushed(self, p: Sequence[Scalar]) -> list[Scalar]:
        """Jᵀ p."""
        total: list[Scalar] = [0.0] * len(self.M)
        for row, x in zip(self.rows, p, strict=False):
            total = [t if is_zero(j) else t + j * x for t, j in zip(total, row, strict=True)]
        for k, x in zip(self.coordinates, p[len(self.rows) :], strict=True):
            total[k] = total[k] + x
        return total


@dataclass(frozen=True)
class Schedule:
    """When the iteration ends, and ε of its steps relative to G_kk.

    Args:
        goal: residual, relative to the velocities without impulses, at which it ends.
        most: steps after which it ends anyway.
    """

    goal: float
    most: int

    def proximal(self, count: Scalar, last: Scalar) -> Scalar:
        """ε of the next step.

        The first steps are nearly those of Newton, and suffice for most states. Where they run in circles, ε falls
        slowly from a tenth, and a second time from 0.3: contacts that give way a little find their places one by one.
        """
        slow, slower = 1e-5 ** (1.0 / 11.0), (1e-5 / 0.3) ** (1.0 / 15.0)
        first = where(count < 2.0, 1e-2, where(count < 3.0, 1e-4, 1e-6))
        second = where(count < 6.0, 0.1, slow * last)
        third = where(count < 18.0, 0.3, slower * last)
        return maximum(where(count < 5.0, first, where(count < 17.0, second, third)), constraints.softening())


def solve(
    problem: Touching,
    stiff: Sequence[Scalar],
    least: Scalar,
    free: Sequence[Scalar],
    schedule: Schedule,
    start: tuple[Sequence[Scalar], Sequence[Scalar]] | None = None,
) -> list[Scalar]:
    """Impulses of contacts and joint rows, those of the step with the smallest residual.

    Args:
        problem: what touches.
        stiff: G_kk of every row, or something like it.
        least: what counts as nothing of it.
        free: velocities without impulses.
        schedule: of the steps.
        start: (impulses, velocities with them) to start from.
    """
    soft = [solver.inverse_above(x, least) for x in stiff]
    without = problem.velocities(free)
    p: list[Scalar] = [0.0 * w for w in without]  # as many lanes as there are states
    v = list(free)
    if start is not None:
        p, v = list(start[0]), list(start[1])
    n, size = len(p), len(v)
    merit = _evaluated(problem, stiff, soft, p, problem.velocities(v)).merit
    floor = max(schedule.goal, 100.0 * constraints.round_off())
    goal = (floor * floor) * dense.dot(without, without)

    def body(count: Scalar, near: Scalar, best: Scalar, *state: Scalar) -> tuple[Scalar, ...]:
        p, v, best_p = list(state[:n]), state[n : n + size], state[n + size :]
        near = schedule.proximal(count, near)
        at = _evaluated(problem, stiff, soft, p, problem.velocities(v))
        with stage("contact Newton steps"):
            p, v = _stepped(problem, stiff, soft, at, v, near, least)
        merit = _evaluated(problem, stiff, soft, p, problem.velocities(v)).merit
        better = merit < best
        best_p = [where(better, new, old) for new, old in zip(p, best_p, strict=True)]
        return (count + 1.0, near, where(better, merit, best), *p, *v, *best_p)

    def active(count: Scalar, _near: Scalar, best: Scalar, *_: Scalar) -> Condition:
        return all_of(best > goal, count < float(schedule.most))

    zero = 0.0 * merit
    _, _, _, *state = while_loop(active, body, (zero, zero, merit, *p, *v, *p))
    return [like(x, 0.0) for x in state[n + size :]]


def differentiable(
    problem: Touching,
    stiff: Sequence[Scalar],
    least: Scalar,
    p: Sequence[Scalar],
    v: Sequence[Scalar],
    free: Sequence[Scalar],
) -> list[Scalar]:
    """The impulses with the derivatives of one more step, see ``solver.differentiated``.

    Args:
        problem: what touches.
        stiff: G_kk of every row.
        least: what counts as nothing of it.
        p: impulses, constants for derivatives.
        v: velocities with these impulses.
        free: velocities without.
    """
    soft = [solver.inverse_above(x, least) for x in stiff]
    at = _evaluated(problem, stiff, soft, list(p), problem.velocities(v))
    step, moved = _stepped(problem, stiff, soft, at, v, LAST_PROXIMAL, least)
    merit = _evaluated(problem, stiff, soft, step, problem.velocities(moved)).merit
    return solver.differentiated(at, step, merit, problem.velocities(free))


def residuals(
    problem: Touching, stiff: Sequence[Scalar], least: Scalar, p: list[Scalar], v: Sequence[Scalar]
) -> list[Scalar]:
    """How far impulses and velocities are from the laws, as velocities."""
    soft = [solver.inverse_above(x, least) for x in stiff]
    return _evaluated(problem, stiff, soft, p, problem.velocities(v)).residuals


def _evaluated(
    problem: Touching,
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    p: list[Scalar],
    w: list[Scalar],
) -> solver.Point:
    return solver.evaluated(problem.friction, problem.joints, stiff, soft, p, w)


def _stepped(
    problem: Touching,
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    at: solver.Point,
    v: Sequence[Scalar],
    near: Scalar,
    least: Scalar,
) -> tuple[list[Scalar], list[Scalar]]:
    """(p, v) after a step (2)."""
    p, w, contacts = at.p, at.w, len(problem.friction)
    matrix = [list(row) for row in problem.M]
    often = 1.0 / near
    missing: list[Scalar] = []  # r
    laws: list[tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]] = []
    for k, friction in enumerate(problem.friction):
        x, y, z = 3 * k, 3 * k + 1, 3 * k + 2
        kappa, pressed, (u, s) = at.held[k], at.pressed[k], at.directions[k]
        # ε of a contact is relative to the mean of its three G_kk; 1/ε of one that nothing moves is zero
        mean = (1.0 / 3.0) * (stiff[x] + stiff[y] + stiff[z])
        own = near * mean
        press = (pressed * often) * solver.inverse_above(mean, least)
        loose = stiff[x] * (1.0 - kappa) + kappa * own
        hold = kappa * solver.inverse_above(loose, near * least)
        xx, xy, yy = hold * (1.0 - u * u), -(hold * u) * s, hold * (1.0 - s * s)
        along, across = friction * u, friction * s
        normal = pressed * p[z] - press * w[z]
        pull = own * p[x] - w[x], own * p[y] - w[y]
        missing += [
            (xx * pull[0] + xy * pull[1]) + along * normal - p[x],
            (xy * pull[0] + yy * pull[1]) + across * normal - p[y],
            normal - p[z],
        ]
        laws.append((xx, xy, yy, along, across, press))
        _add_information(matrix, problem.rows[x : z + 1], laws[-1])
    for k, (kappa, value, yielding) in enumerate(at.joints):
        row, coordinate = 3 * contacts + k, problem.coordinates[k]
        if is_zero(yielding):
            gain = (kappa * often) * soft[row]
        else:
            gain = kappa / (near * stiff[row] + yielding)
        # κ = 1: w⁺ + R p⁺ = value, κ = 0: p⁺ = value
        held = p[row] + gain * (value - w[row] - yielding * p[row])
        missing.append(where(kappa > 0.0, held, value) - p[row])
        matrix[coordinate][coordinate] = matrix[coordinate][coordinate] + gain
        laws.append((gain, 0.0, 0.0, 0.0, 0.0, 0.0))
    change = eliminated(matrix, problem.pushed(missing))
    new: list[Scalar] = []
    for k in range(contacts):
        xx, xy, yy, along, across, press = laws[k]
        a, b, c = (_dot(row, change) for row in problem.rows[3 * k : 3 * k + 3])
        normal = missing[3 * k + 2] - press * c
        new += [
            p[3 * k] + (missing[3 * k] - (xx * a + xy * b) - along * (press * c)),
            p[3 * k + 1] + (missing[3 * k + 1] - (xy * a + yy * b) - across * (press * c)),
            p[3 * k + 2] + normal,
        ]
    for k, coordinate in enumerate(problem.coordinates):
        row = 3 * contacts + k
        new.append(p[row] + (missing[row] - laws[contacts + k][0] * change[coordinate]))
    return new, [a + b for a, b in zip(v, change, strict=True)]


def _add_information(matrix: Rows, rows: Rows, law: Sequence[Scalar]) -> None:
    """matrix + Jᵀ K J of one contact: symmetric in the tangents, not where the normal impulse moves the others."""
    xx, xy, yy, along, across, press = law
    moving = [j for j in range(len(matrix)) if not all(is_zero(row[j]) for row in rows)]
    first = {j: xx * rows[0][j] + xy * rows[1][j] for j in moving}
    second = {j: xy * rows[0][j] + yy * rows[1][j] for j in moving}
    left = {j: rows[2][j] + along * rows[0][j] + across * rows[1][j] for j in moving}
    right = {j: press * rows[2][j] for j in moving}
    for place, i in enumerate(moving):
        for j in moving[place:]:
            tangents = rows[0][i] * first[j] + rows[1][i] * second[j]
            matrix[i][j] = matrix[i][j] + (tangents + left[i] * right[j])
            if i != j:
                matrix[j][i] = matrix[j][i] + (tangents + left[j] * right[i])


def eliminated(matrix: Rows, right: Sequence[Scalar]) -> list[Scalar]:
    """x with A x = right, eliminated from the last coordinate to the first: entries that are zero by structure stay so."""
    A, x, n = [list(row) for row in matrix], list(right), len(matrix)
    inverses: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        inverses[k] = 1.0 / A[k][k]
        columns = [j for j in range(k) if not is_zero(A[k][j])]
        for i in range(k):
            if is_zero(A[i][k]):
                continue
            factor = A[i][k] * inverses[k]
            for j in columns:
                A[i][j] = A[i][j] - factor * A[k][j]
            x[i] = x[i] - factor * x[k]
    for k in range(n):
        for j in range(k):
            if not is_zero(A[k][j]):
                x[k] = x[k] - A[k][j] * x[j]
        x[k] = inverses[k] * x[k]
    return x


def _dot(row: Sequence[Scalar], v: Sequence[Scalar]) -> Scalar:
    products = [a * b for a, b in zip(row, v, strict=True) if not is_zero(a)]
    return sum(products[1:], start=products[0]) if products else 0.0
