"""Contacts as measurements of the filter: impulses without the matrix G = J M⁻¹ Jᵀ.

A contact that presses with p + K (wanted − J v⁺) adds the information Jᵀ K J to the inertia M, as a measurement with
the covariance K⁻¹ does in a Kalman filter. Newton's steps of ``solver`` have this form: solved for the impulses of one
contact, equations (2)–(4) there are p⁺ = a − K w⁺ with

    open      K = 0                      sticks   K = 1/ε
    slides    p_n⁺ = p_n − w_n⁺/ε,   p_t⁺ = μ p_n⁺ d + s P (ε p_t − w_t⁺),   s = κ ρ/(1 − κ + κ ρ ε)               (1)

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

from linkwise.algorithms import dense
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.contact import derivatives, solver
from linkwise.algorithms.contact.derivatives import Law
from linkwise.algorithms.contact.point import JointRow, Point, inverse_above, on_disk
from linkwise.joint_laws import is_zero
from linkwise.scalar import Condition, Scalar, all_of, like, maximum, negated, stage, where, while_loop

Rows = list[list[Scalar]]


@dataclass(frozen=True, eq=False)
class Turning:
    """Friction against turning: two rows of angular velocity, whose impulses are at most ``coefficient`` [m] times the
    normal impulse of a contact. The second row is zero for spinning about the normal."""

    contact: int
    coefficient: float
    rows: Rows


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
    compliance: Sequence[Scalar]
    """R of every contact: 0 where it is rigid."""
    turning: Sequence[Turning] = ()

    @property
    def before_turning(self) -> int:
        """Rows before those of ``turning``."""
        return len(self.rows) + len(self.joints)

    def softened(self, w: list[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
        """w + R p."""
        w = list(w)
        for k, R in enumerate(self.compliance):
            if not is_zero(R):
                w[3 * k + 2] = w[3 * k + 2] + R * p[3 * k + 2]
        return w

    def velocities(self, v: Sequence[Scalar], biased: bool = True) -> list[Scalar]:
        """w = J v + bias of the contacts, then the velocities of the joint rows; J v alone if not ``biased``."""
        bias = self.bias if biased else [0.0] * len(self.bias)
        touching = [
            _dot(row, v) if is_zero(b) else b + _dot(row, v) for b, row in zip(bias, self.rows, strict=True)
        ]
        turning = [_dot(row, v) for each in self.turning for row in each.rows]
        return [*touching, *(v[k] for k in self.coordinates), *turning]

    def pushed(self, p: Sequence[Scalar]) -> list[Scalar]:
        """Jᵀ p."""
        total: list[Scalar] = [0.0] * len(self.M)
        turning = [row for each in self.turning for row in each.rows]
        own = [*zip(self.rows, p, strict=False), *zip(turning, p[self.before_turning :], strict=True)]
        for row, x in own:
            total = [t if is_zero(j) else t + j * x for t, j in zip(total, row, strict=True)]
        for k, x in zip(self.coordinates, p[len(self.rows) :], strict=False):
            total[k] = total[k] + x
        return total


@dataclass(frozen=True)
class Schedule:
    """When the iteration ends, and ε of its steps relative to G_kk.

    Args:
        goal: residual, relative to the velocities without impulses, at which it ends.
        enough: residual from which it ends at a step that makes it no smaller than half: round-off.
        most: steps after which it ends anyway.
    """

    goal: float
    enough: float
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
    soft = [inverse_above(x, least) for x in stiff]
    # gaps of contacts that are far away would be most of the velocities with their bias
    without = problem.velocities(free, biased=False)
    p: list[Scalar] = [0.0 * w for w in without]  # as many lanes as there are states
    v = list(free)
    if start is not None:
        p, v = list(start[0]), list(start[1])
    n, size = len(p), len(v)
    merit = _evaluated(problem, stiff, soft, p, problem.velocities(v)).merit
    floor = max(schedule.goal, 100.0 * constraints.round_off())
    square = dense.dot(without, without)
    goal, enough = (floor * floor) * square, max(schedule.enough, floor) ** 2 * square

    def body(count: Scalar, near: Scalar, best: Scalar, falls: Scalar, *state: Scalar) -> tuple[Scalar, ...]:
        p, v, best_p = list(state[:n]), state[n : n + size], state[n + size :]
        near = schedule.proximal(count, near)
        at = _evaluated(problem, stiff, soft, p, problem.velocities(v))
        with stage("contact Newton steps"):
            p, v = _stepped(problem, stiff, soft, at, v, near, least)
        merit = _evaluated(problem, stiff, soft, p, problem.velocities(v)).merit
        better, falls = merit < best, where(merit < 0.25 * best, 1.0, 0.0)
        best_p = [where(better, new, old) for new, old in zip(p, best_p, strict=True)]
        return (count + 1.0, near, where(better, merit, best), falls, *p, *v, *best_p)

    def active(count: Scalar, _near: Scalar, best: Scalar, falls: Scalar, *_: Scalar) -> Condition:
        rounded = all_of(best <= enough, falls < 0.5)
        return all_of(all_of(best > goal, count < float(schedule.most)), negated(rounded))

    zero = 0.0 * merit
    _, _, _, _, *state = while_loop(active, body, (zero, zero, merit, zero + 1.0, *p, *v, *p))
    return [like(x, 0.0) for x in state[n + size :]]


def changes_of(
    problem: Touching,
    stiff: Sequence[Scalar],
    least: Scalar,
    p: Sequence[Scalar],
    v: Sequence[Scalar],
    free: Sequence[Scalar],
    smoothing: float,
) -> list[Scalar]:
    """Zeros with the derivatives of the impulses, see ``derivatives``.

    Args:
        problem: what touches.
        stiff: G_kk of every row.
        least: what counts as nothing of it.
        p: impulses, constants for derivatives.
        v: velocities with these impulses.
        free: velocities without.
        smoothing: of derivatives [m/s].
    """
    soft = [inverse_above(x, least) for x in stiff]
    at = _evaluated(problem, stiff, soft, list(p), problem.velocities(v))
    laws, changes = derivatives.linearised(at, problem.friction, stiff, least, smoothing, problem.compliance)
    for b, each in enumerate(problem.turning):
        x = problem.before_turning + 2 * b
        law, change = derivatives.turning(
            at, len(problem.friction) + b, x, each.coefficient, changes[3 * each.contact + 2], stiff[x], least
        )
        laws.append((*law, laws[each.contact][5]))
        changes += change
    # (M + Jᵀ K J) dv = Jᵀ (−K dw + dp_μ), dw at constant impulses
    matrix = [list(row) for row in problem.M]
    contacts = len(problem.friction)
    for k, law in enumerate(laws[:contacts]):
        _add_information(matrix, problem.rows[3 * k : 3 * k + 3], law)
    for law, k in zip(laws[contacts:], problem.coordinates, strict=False):
        matrix[k][k] = matrix[k][k] + law[0]
    for b, each in enumerate(problem.turning):
        own = [*each.rows, problem.rows[3 * each.contact + 2]]
        _add_information(matrix, own, laws[contacts + len(problem.joints) + b], turning=True)
    right = problem.pushed(changes)
    moved = eliminated(derivatives.constants(matrix), right)
    change = _impulse_changes(problem, laws, changes, moved)
    return derivatives.of_solutions(change, at.merit, problem.velocities(free, biased=False))


def residuals(
    problem: Touching, stiff: Sequence[Scalar], least: Scalar, p: list[Scalar], v: Sequence[Scalar]
) -> list[Scalar]:
    """How far impulses and velocities are from the laws, as velocities."""
    soft = [inverse_above(x, least) for x in stiff]
    return _evaluated(problem, stiff, soft, p, problem.velocities(v)).residuals


def _evaluated(
    problem: Touching,
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    p: list[Scalar],
    w: list[Scalar],
) -> Point:
    w = problem.softened(w, p)
    at = solver.evaluated(problem.friction, problem.joints, stiff, soft, p, w)
    if not problem.turning:
        return at
    held, directions, residuals = list(at.held), list(at.directions), list(at.residuals)
    for x, each in enumerate(problem.turning):
        z, x = 3 * each.contact + 2, problem.before_turning + 2 * x
        limit = each.coefficient * maximum(p[z] - soft[z] * w[z], 0.0)
        closed = at.pressed[each.contact]
        kappa, direction, own = on_disk(p[x : x + 2], w[x : x + 2], stiff[x], soft[x], limit, closed)
        held.append(kappa)
        directions.append(direction)
        residuals += own
    merit = dense.dot(residuals, residuals)
    return Point(p, w, at.pressed, held, directions, at.joints, residuals, merit)


def _stepped(
    problem: Touching,
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    at: Point,
    v: Sequence[Scalar],
    near: Scalar,
    least: Scalar,
) -> tuple[list[Scalar], list[Scalar]]:
    """(p, v) after a step (2)."""
    p, w, contacts = at.p, at.w, len(problem.friction)
    matrix = [list(row) for row in problem.M]
    often = 1.0 / near
    missing: list[Scalar] = []  # r
    laws: list[Law] = []
    for k, friction in enumerate(problem.friction):
        x, y, z = 3 * k, 3 * k + 1, 3 * k + 2
        kappa, pressed, (u, s) = at.held[k], at.pressed[k], at.directions[k]
        # ε of a contact is relative to the mean of its three G_kk; 1/ε of one that nothing moves is zero
        mean = (1.0 / 3.0) * (stiff[x] + stiff[y] + stiff[z])
        own = near * mean
        R = problem.compliance[k]
        press = (pressed * often) * inverse_above(mean, least) if is_zero(R) else pressed / (own + R)
        loose = stiff[x] * (1.0 - kappa) + kappa * own
        hold = kappa * inverse_above(loose, near * least)
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
    _add_joints(problem, at, near, stiff, soft, matrix, missing, laws)
    for b, each in enumerate(problem.turning):
        x, z = problem.before_turning + 2 * b, 3 * each.contact + 2
        kappa, (u, s) = at.held[contacts + b], at.directions[contacts + b]
        own = near * stiff[x]
        hold = kappa * inverse_above(stiff[x] * (1.0 - kappa) + kappa * own, near * least)
        xx, xy, yy = hold * (1.0 - u * u), -(hold * u) * s, hold * (1.0 - s * s)
        along, across, press = each.coefficient * u, each.coefficient * s, laws[each.contact][5]
        normal = missing[z] + p[z]
        pull = own * p[x] - w[x], own * p[x + 1] - w[x + 1]
        missing += [
            (xx * pull[0] + xy * pull[1]) + along * normal - p[x],
            (xy * pull[0] + yy * pull[1]) + across * normal - p[x + 1],
        ]
        laws.append((xx, xy, yy, along, across, press))
        _add_information(matrix, [*each.rows, problem.rows[z]], laws[-1], turning=True)
    change = eliminated(matrix, problem.pushed(missing))
    new = [a + b for a, b in zip(p, _impulse_changes(problem, laws, missing, change), strict=True)]
    return new, [a + b for a, b in zip(v, change, strict=True)]


def _add_joints(
    problem: Touching,
    at: Point,
    near: Scalar,
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    matrix: Rows,
    missing: list[Scalar],
    laws: list[Law],
) -> None:
    """What stops and dry friction of joints add to a step (2)."""
    p, w, often = at.p, at.w, 1.0 / near
    for k, (kappa, value, yielding) in enumerate(at.joints):
        row, coordinate = 3 * len(problem.friction) + k, problem.coordinates[k]
        if is_zero(yielding):
            gain = (kappa * often) * soft[row]
        else:
            gain = kappa / (near * stiff[row] + yielding)
        # κ = 1: w⁺ + R p⁺ = value, κ = 0: p⁺ = value
        held = p[row] + gain * (value - w[row] - yielding * p[row])
        missing.append(where(kappa > 0.0, held, value) - p[row])
        matrix[coordinate][coordinate] = matrix[coordinate][coordinate] + gain
        laws.append((gain, 0.0, 0.0, 0.0, 0.0, 0.0))


def _impulse_changes(
    problem: Touching, laws: Sequence[Law], missing: Sequence[Scalar], change: Sequence[Scalar]
) -> list[Scalar]:
    """Δp = r − K J Δv."""
    contacts = len(problem.friction)
    found: list[Scalar] = []
    for k, (xx, xy, yy, along, across, press) in enumerate(laws[:contacts]):
        a, b, c = (_dot(row, change) for row in problem.rows[3 * k : 3 * k + 3])
        normal = press * c
        found += [
            missing[3 * k] - (xx * a + xy * b) - along * normal,
            missing[3 * k + 1] - (xy * a + yy * b) - across * normal,
            missing[3 * k + 2] - normal,
        ]
    for k, coordinate in enumerate(problem.coordinates):
        found.append(missing[3 * contacts + k] - laws[contacts + k][0] * change[coordinate])
    for b, each in enumerate(problem.turning):
        x = problem.before_turning + 2 * b
        xx, xy, yy, along, across, press = laws[contacts + len(problem.joints) + b]
        a, d = (_dot(row, change) for row in each.rows)
        normal = press * _dot(problem.rows[3 * each.contact + 2], change)
        found += [
            missing[x] - (xx * a + xy * d) - along * normal,
            missing[x + 1] - (xy * a + yy * d) - across * normal,
        ]
    return found


def _add_information(matrix: Rows, rows: Rows, law: Sequence[Scalar], turning: bool = False) -> None:
    """matrix + Jᵀ K J of one contact: symmetric in the tangents, not where the normal impulse moves the others.

    Of ``turning`` the third row is that of the normal of its contact, whose own part is there already.
    """
    xx, xy, yy, along, across, press = law
    moving = [j for j in range(len(matrix)) if not all(is_zero(row[j]) for row in rows)]
    first = {j: xx * rows[0][j] + xy * rows[1][j] for j in moving}
    second = {j: xy * rows[0][j] + yy * rows[1][j] for j in moving}
    left = {j: (0.0 if turning else rows[2][j]) + along * rows[0][j] + across * rows[1][j] for j in moving}
    right = {j: press * rows[2][j] for j in moving}
    for place, i in enumerate(moving):
        for j in moving[place:]:
            tangents = rows[0][i] * first[j] + rows[1][i] * second[j]
            matrix[i][j] = matrix[i][j] + (tangents + left[i] * right[j])
            if i != j:
                matrix[j][i] = matrix[j][i] + (tangents + left[j] * right[i])


def eliminated(matrix: Rows, right: Sequence[Scalar]) -> list[Scalar]:
    """x with A x = right, eliminated from the last coordinate to the first: structural zeros stay zeros."""
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
