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
for the others of its group without changing. What is inside and is held there by friction has no solution: impulses
would grow without bound. The last steps begin anew and do not ask it to come out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.algorithms import dense
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.contact import derivatives, solver
from linkwise.algorithms.contact.derivatives import Law
from linkwise.algorithms.contact.patches import Patch, dot
from linkwise.algorithms.contact.point import JointRow, Point, inverse_above, on_disk, selected
from linkwise.joint_laws import is_zero
from linkwise.scalar import (
    Condition,
    Scalar,
    all_of,
    like,
    maximum,
    minimum,
    negated,
    stage,
    where,
    while_loop,
)

Rows = list[list[Scalar]]
ADAPTED = 10.0
"""Steps whose ε depends on what the last one did."""
FALLING = 22.0
"""The step from which ε falls a second time, more slowly."""
LAST = 48.0
"""The step from which it falls a third time, from where contacts give way as much as by the inertia they move."""
HELD_FROM = 96.0
"""The step from which what friction holds in the ground stays there; ε falls a last time."""


@dataclass(frozen=True, eq=False)
class Turning:
    """Friction against turning: two rows of angular velocity, whose impulses are at most ``coefficient`` [m] times the
    normal impulse of a contact. The second row is zero for spinning about the normal."""

    contact: int
    coefficient: float
    rows: Rows


@dataclass(frozen=True, eq=False)
class Touching:
    """The problem in velocities: M, rows J of contacts and what is added to their velocities, μ, and the laws of
    joints with their rows."""

    M: Rows
    rows: Rows
    bias: Sequence[Scalar]
    friction: Sequence[Scalar]
    joints: Sequence[JointRow]
    joint_rows: Rows
    compliance: Sequence[Scalar]
    """R of every contact: 0 where it is rigid."""
    turning: Sequence[Turning] = ()
    patches: Sequence[Patch] = ()
    """Contacts that belong to one link."""
    lifts: bool = False
    """Whether all contacts can part without sliding, as those of floating robots with the ground: friction holds none
    of them in it then."""

    @property
    def alone(self) -> list[int]:
        """Contacts that are in no patch."""
        together = {k for patch in self.patches for k in patch.contacts}
        return [k for k in range(len(self.friction)) if k not in together]

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
        w: list[Scalar] = [0.0] * len(self.rows)
        for k in self.alone:
            w[3 * k : 3 * k + 3] = [dot(row, v) for row in self.rows[3 * k : 3 * k + 3]]
        for patch in self.patches:
            for k, own in zip(patch.contacts, patch.velocities(v), strict=True):
                w[3 * k : 3 * k + 3] = [*own]
        if biased:
            w = [x if is_zero(b) else b + x for b, x in zip(self.bias, w, strict=True)]
        turning = [dot(row, v) for each in self.turning for row in each.rows]
        return [*w, *(dot(row, v) for row in self.joint_rows), *turning]

    def unbiased(self, w: Sequence[Scalar]) -> list[Scalar]:
        """J v of w = J v + bias."""
        own = [x if is_zero(b) else x - b for b, x in zip(self.bias, w, strict=False)]
        return [*own, *w[len(own) :]]

    def pushed(self, p: Sequence[Scalar]) -> list[Scalar]:
        """Jᵀ p."""
        total: list[Scalar] = [0.0] * len(self.M)
        own = [(self.rows[i], p[i]) for k in self.alone for i in range(3 * k, 3 * k + 3)]
        own += [pair for patch in self.patches for pair in zip(patch.rows, patch.wrench(p), strict=True)]
        turning = [row for each in self.turning for row in each.rows]
        own += zip(turning, p[self.before_turning :], strict=True)
        own += zip(self.joint_rows, p[len(self.rows) :], strict=False)
        for row, x in own:
            total = [t if is_zero(j) else t + j * x for t, j in zip(total, row, strict=True)]
        return total

    def informed(self, laws: Sequence[Law]) -> Rows:
        """M + Jᵀ K J, with K of contacts, joint rows and friction against turning."""
        matrix, contacts = [list(row) for row in self.M], len(self.friction)
        for k in self.alone:
            _add_information(matrix, self.rows[3 * k : 3 * k + 3], laws[k])
        for patch in self.patches:
            patch.add_information(matrix, laws)
        for law, row in zip(laws[contacts:], self.joint_rows, strict=False):
            add_square(matrix, row, law[0])
        for law, each in zip(laws[contacts + len(self.joints) :], self.turning, strict=True):
            _add_information(matrix, [*each.rows, self.rows[3 * each.contact + 2]], law, turning=True)
        return matrix


@dataclass(frozen=True)
class Schedule:
    """When the iteration ends, and ε of its steps relative to G_kk.

    Args:
        goal: residual, relative to velocities with and by the first impulses, at which it ends.
        moving: the same relative to velocities after the step: what slides may be less exact than what is at rest.
        enough: residual from which it ends at a step that makes it no smaller than half: round-off.
        most: steps after which it ends anyway.
        first: ε of the first step.
        wildest: a step that makes the residual more than so many times larger is not taken; None: all are.
        exact: whether each step computes the velocities from its impulses. Else they are sums of changes, in which
            round-off of 1/ε times that of the largest change stays.
    """

    goal: float
    moving: float
    enough: float
    most: int
    first: float = 1e-2
    wildest: float | None = None
    exact: bool = False

    def limits(self, square: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Squares of the residuals for ``goal``, ``enough``, and of problems that may have no solution."""
        floor = 100.0 * constraints.round_off()
        goal, enough = max(self.goal, floor), max(self.enough, floor)
        return goal**2 * square, enough**2 * square, max(goal, solver.HOPELESS) ** 2 * square

    def taken(
        self, before: list[Scalar], after: list[Scalar], last: Sequence[Scalar], merit: Scalar
    ) -> list[Scalar]:
        """What the next step starts from, with the squares of the last residual and of this one."""
        if self.wildest is None:
            return after
        return selected(merit > self.wildest**2 * last[0], before, after)

    def proximal(self, count: Scalar, last: Scalar, falls: Scalar) -> Scalar:
        """ε of the next step.

        Where a step makes the residual smaller, the next one is nearer to Newton's; where it does not, contacts give
        way more: they find their places one by one. Where that runs in circles, ε falls from 0.1, from 0.3, from 1 and,
        where contacts no longer have to part, from 0.3.
        Round-off of a step is 1/ε times that of its change, so the first one, with the largest change, has a large ε.

        Args:
            count: steps so far.
            last: ε of the last one.
            falls: whether it halved the smallest residual.
        """
        next_one = where(falls > 0.5, maximum(last * last, 1e-7), minimum(10.0 * last, 0.1))
        first = where(count < 1.0, self.first, next_one)
        second = where(count < ADAPTED + 1.0, 0.1, 0.2 * last)
        third = where(count < FALLING + 1.0, 0.3, 0.5 * last)
        fourth = where(count < LAST + 1.0, 1.0, 0.7 * last)
        fifth = where(count < HELD_FROM + 1.0, 0.3, 0.5 * last)
        latest = where(count < HELD_FROM, fourth, fifth)
        later = where(count < FALLING, second, where(count < LAST, third, latest))
        return maximum(where(count < ADAPTED, first, later), constraints.softening())


def solve(
    problem: Touching,
    stiff: Sequence[Scalar],
    least: Scalar,
    free: Sequence[Scalar],
    schedule: Schedule,
    start: tuple[Sequence[Scalar], Sequence[Scalar]] | None = None,
    moved_by: Callable[[Sequence[Scalar]], list[Scalar]] | None = None,
) -> list[Scalar]:
    """Impulses of contacts and joint rows, those of the step with the smallest residual.

    Args:
        problem: what touches.
        stiff: G_kk of every row, or something like it.
        least: what counts as nothing of it.
        free: velocities without impulses.
        schedule: of the steps.
        start: (impulses, velocities with them) to start from.
        moved_by: velocities with given impulses, where each step computes them; None: they are sums of changes.
    """
    soft = [inverse_above(x, least) for x in stiff]
    v = list(free if start is None else start[1])
    # gaps of contacts that are far away would be most of the velocities with their bias
    unbiased = problem.velocities(v, biased=False)
    # zeros with a lane for every state
    p: list[Scalar] = [0.0 * w for w in unbiased] if start is None else list(start[0])
    w = problem.velocities(v)
    n, size = len(p), len(v)
    at = _evaluated(problem, stiff, soft, p, w)
    square = dense.dot(unbiased, unbiased)
    if start is not None:
        by_impulses = [a * b for a, b in zip(stiff, p, strict=True)]
        square = square + dense.dot(by_impulses, by_impulses)
    goal, enough, hopeless = schedule.limits(square)
    outward: list[Scalar] = [] if problem.lifts else _outward_speeds(problem)
    known = [] if schedule.wildest is None else [at.merit]  # the residual of the last step that was taken
    begun = [*p, *v, *dense.added(w, [*outward, *([0.0] * (n - len(outward)))])]

    def body(count: Scalar, near: Scalar, best: Scalar, falls: Scalar, *state: Scalar) -> tuple[Scalar, ...]:
        if outward:
            anew = solver.begins_anew(count, HELD_FROM, outward, goal)
            state = (*selected(anew, begun, state[: 2 * n + size]), *state[2 * n + size :])
            best = where(anew, solver.UNSOLVED, best)
        p, v, w, best_p, last, choices = _split(state, n, size, n, n, len(known))
        near = schedule.proximal(count, near, falls)
        at = _chosen(problem, stiff, soft, p, w, choices, falls < 0.5)
        with stage("contact Newton steps"):
            p, v, w = _stepped(problem, stiff, soft, at, v, w, near, least, moved_by)
        new = _evaluated(problem, stiff, soft, p, w)
        better, falls = new.merit < best, where(new.merit < 0.25 * best, 1.0, 0.0)
        best_p = selected(better, p, best_p)
        before = [*state[: 2 * n + size], *best_p, *last, *choices]
        after = [*p, *v, *w, *best_p, *(new.merit for _ in last), *_choices(new)]
        after = schedule.taken(before, after, [maximum(x, best) for x in last], new.merit)
        return (count + 1.0, near, where(better, new.merit, best), falls, *after)

    def active(count: Scalar, _near: Scalar, best: Scalar, falls: Scalar, *state: Scalar) -> Condition:
        wanted = goal
        if outward:
            wanted = where(solver.begins_anew(count, HELD_FROM, outward, goal), hopeless, goal)
        missed, rounded = best > wanted, all_of(best <= enough, falls < 0.5)
        if schedule.moving > 0.0:
            w = problem.unbiased(_split(state, n, size, n, n)[2])
            missed = all_of(missed, best > schedule.moving**2 * dense.dot(w, w))
        return all_of(all_of(missed, count < float(schedule.most)), negated(rounded))

    zero = 0.0 * at.merit
    first = (zero, zero, at.merit, zero + 1.0, *p, *v, *w, *p, *known, *_choices(at))
    _, _, _, _, *state = while_loop(active, body, first, uneven=True)
    return [like(x, 0.0) for x in _split(state, n, size, n, n)[3]]


def _outward_speeds(problem: Touching) -> list[Scalar]:
    """At which contacts are asked to part, 0 for tangents and soft contacts."""
    return [
        maximum(-b, 0.0) if k % 3 == 2 and is_zero(problem.compliance[k // 3]) else 0.0
        for k, b in enumerate(problem.bias)
    ]


def _split(values: Sequence[Scalar], *sizes: int) -> list[list[Scalar]]:
    """Parts of these sizes, and the rest."""
    ends = [0, *itertools.accumulate(sizes), len(values)]
    return [list(values[a:b]) for a, b in itertools.pairwise(ends)]


def _choices(at: Point) -> list[Scalar]:
    """What contacts choose at a point, as numbers that a loop carries."""
    return [*at.pressed, *at.held, *(x for direction in at.directions for x in direction)]


def _chosen(
    problem: Touching,
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    p: list[Scalar],
    w: list[Scalar],
    choices: Sequence[Scalar],
    careful: Condition,
) -> Point:
    """A point with these choices of its contacts; those of joints follow from p and w."""
    contacts, disks = len(problem.friction), len(problem.friction) + len(problem.turning)
    pressed, held, along = _split(choices, contacts, disks)
    w = problem.softened(w, p)
    joints = [
        solver.joint_choice(row, p[k], w[k], stiff[k], soft[k], careful)[0]
        for k, row in enumerate(problem.joints, start=3 * contacts)
    ]
    return Point(p, w, pressed, held, [along[k : k + 2] for k in range(0, 2 * disks, 2)], joints, [], 0.0)


def changes_of(
    problem: Touching,
    stiff: Sequence[Scalar],
    least: Scalar,
    p: Sequence[Scalar],
    v: Sequence[Scalar],
    free: Sequence[Scalar],
    smoothing: Scalar,
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
    moved = eliminated(derivatives.constants(problem.informed(laws)), problem.pushed(changes))
    change = _impulse_changes(problem, laws, changes, problem.velocities(moved, biased=False))
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
    w: Sequence[Scalar],
    near: Scalar,
    least: Scalar,
    moved_by: Callable[[Sequence[Scalar]], list[Scalar]] | None,
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """(p, v, w) after a step (2); v of p by ``moved_by``, or raised by its change."""
    p, often = at.p, 1.0 / near
    missing: list[Scalar] = []  # r
    laws: list[Law] = []
    for k, friction in enumerate(problem.friction):
        x, z = 3 * k, 3 * k + 2
        # ε of a contact is relative to the mean of its three G_kk; 1/ε of one that nothing moves is zero
        mean = (1.0 / 3.0) * (stiff[x] + stiff[x + 1] + stiff[z])
        own = near * mean
        R, pressed = problem.compliance[k], at.pressed[k]
        press = (pressed * often) * inverse_above(mean, least) if is_zero(R) else pressed / (own + R)
        normal = pressed * p[z] - press * at.w[z]
        law, tangents = _friction_step(at, k, x, friction, own, normal, stiff[x], near * least)
        missing += [*tangents, normal - p[z]]
        laws.append((*law, press))
    _add_joints(problem, at, near, stiff, soft, missing, laws)
    for place, each in enumerate(problem.turning):
        x, z = problem.before_turning + 2 * place, 3 * each.contact + 2
        normal = missing[z] + p[z]
        law, turned = _friction_step(
            at,
            len(problem.friction) + place,
            x,
            each.coefficient,
            near * stiff[x],
            normal,
            stiff[x],
            near * least,
        )
        missing += turned
        laws.append((*law, laws[each.contact][5]))
    change = eliminated(problem.informed(laws), problem.pushed(missing))
    faster = problem.velocities(change, biased=False)
    p = dense.added(p, _impulse_changes(problem, laws, missing, faster))
    if moved_by is None:
        return p, dense.added(v, change), dense.added(w, faster)
    v = moved_by(p)
    return p, v, problem.velocities(v)


def _friction_step(
    at: Point,
    place: int,
    x: int,
    coefficient: Scalar,
    own: Scalar,
    normal: Scalar,
    stiff: Scalar,
    floor: Scalar,
) -> tuple[tuple[Scalar, Scalar, Scalar, Scalar, Scalar], list[Scalar]]:
    """(K without the normal, r) of two impulses on a disk: of sliding, or of turning.

    Args:
        at: the iterate.
        place: of its choices.
        x: the first of the two rows.
        coefficient: radius of the disk relative to the normal impulse.
        own: ε.
        normal: p_n − w_n/ε.
        stiff: G_kk.
        floor: what counts as nothing of ε.
    """
    p, w, kappa, (u, s) = at.p[x : x + 2], at.w[x : x + 2], at.held[place], at.directions[place]
    hold = kappa * inverse_above(stiff * (1.0 - kappa) + kappa * own, floor)
    xx, xy, yy = hold * (1.0 - u * u), -(hold * u) * s, hold * (1.0 - s * s)
    along, across = coefficient * u, coefficient * s
    pull = own * p[0] - w[0], own * p[1] - w[1]
    return (xx, xy, yy, along, across), [
        (xx * pull[0] + xy * pull[1]) + along * normal - p[0],
        (xy * pull[0] + yy * pull[1]) + across * normal - p[1],
    ]


def _add_joints(
    problem: Touching,
    at: Point,
    near: Scalar,
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    missing: list[Scalar],
    laws: list[Law],
) -> None:
    """What stops and dry friction of joints add to a step (2)."""
    p, w, often = at.p, at.w, 1.0 / near
    for row, (kappa, value, yielding) in enumerate(at.joints, start=3 * len(problem.friction)):
        if is_zero(yielding):
            gain = (kappa * often) * soft[row]
        else:
            gain = kappa / (near * stiff[row] + yielding)
        # κ = 1: w⁺ + R p⁺ = value, κ = 0: p⁺ = value
        held = p[row] + gain * (value - w[row] - yielding * p[row])
        missing.append(where(kappa > 0.0, held, value) - p[row])
        laws.append((gain, 0.0, 0.0, 0.0, 0.0, 0.0))


def _impulse_changes(
    problem: Touching, laws: Sequence[Law], missing: Sequence[Scalar], faster: Sequence[Scalar]
) -> list[Scalar]:
    """Δp = r − K J Δv, with J Δv of all rows."""
    contacts, joints = len(problem.friction), len(problem.joints)
    places = [(3 * k, law, 3 * k + 2) for k, law in enumerate(laws[:contacts])]
    before = [(3 * contacts + k, law) for k, law in enumerate(laws[contacts : contacts + joints])]
    turning = [
        (problem.before_turning + 2 * k, law, 3 * each.contact + 2)
        for k, (law, each) in enumerate(zip(laws[contacts + joints :], problem.turning, strict=True))
    ]
    found = list(missing)
    for k, law in before:
        found[k] = missing[k] - law[0] * faster[k]
    for x, (xx, xy, yy, along, across, press), z in [*places, *turning]:
        a, b, normal = faster[x], faster[x + 1], press * faster[z]
        found[x] = missing[x] - (xx * a + xy * b) - along * normal
        found[x + 1] = missing[x + 1] - (xy * a + yy * b) - across * normal
    for _, law, z in places:
        found[z] = missing[z] - law[5] * faster[z]
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


def add_square(matrix: Rows, row: Sequence[Scalar], gain: Scalar) -> None:
    """matrix + gain rowᵀ row; entries that are the same on both sides of the diagonal stay one."""
    moving = [j for j, x in enumerate(row) if not is_zero(x)]
    for place, i in enumerate(moving):
        scaled = gain * row[i]
        for j in moving[: place + 1]:
            same = matrix[i][j] is matrix[j][i]
            more = scaled * row[j]
            matrix[i][j] = matrix[i][j] + more
            matrix[j][i] = matrix[i][j] if same else matrix[j][i] + more


def eliminated(matrix: Rows, right: Sequence[Scalar]) -> list[Scalar]:
    """x with A x = right, eliminated from the last coordinate to the first: structural zeros stay zeros, and entries
    that are the same on both sides of the diagonal are computed once."""
    A, x, n = [list(row) for row in matrix], list(right), len(matrix)
    inverses: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        inverses[k] = 1.0 / A[k][k]
        columns = [j for j in range(k) if not is_zero(A[k][j])]
        mirrored = {j for j in columns if A[j][k] is A[k][j]}
        for i in range(k):
            if is_zero(A[i][k]):
                continue
            factor = A[i][k] * inverses[k]
            for j in columns:
                twin = i in mirrored and j in mirrored and A[i][j] is A[j][i]
                if twin and j < i:
                    continue
                A[i][j] = A[i][j] - factor * A[k][j]
                if twin:
                    A[j][i] = A[i][j]
            x[i] = x[i] - factor * x[k]
    for k in range(n):
        for j in range(k):
            if not is_zero(A[k][j]):
                x[k] = x[k] - A[k][j] * x[j]
        x[k] = inverses[k] * x[k]
    return x
