"""Impulses of contacts, stops and dry friction: a solver of fixed length without branches.

Unknown are impulses p; the velocities of their rows after the step are w = G p + c. The laws, row by row:

    contact (two tangents t, one normal n)    0 ≤ p_n ⊥ w_n ≥ 0                            Signorini
                                              |p_t| ≤ μ p_n, p_t = −μ p_n w_t/|w_t|        Coulomb (w_t ≠ 0)
    joint                                     lower ≤ w ≤ upper, friction between its limits

With z = p − w/G_kk (own scales ρ = 1/G_kk) a contact is solved where p is the nearest point of its cone section to z
(P. Alart and A. Curnier, "A mixed formulation for frictional contact problems prone to Newton like solution methods",
1991):

    p_n = max(z_n, 0),        p_t = κ z_t,   κ = min(1, μ max(z_n, 0)/|z_t|)                                       (1)

Two methods are combined. *Sweeps* (block Gauss–Seidel) solve one contact after the other: it takes no impulse if it
parts anyway, the one that stops it if that is inside the cone, or else one with which it slides (``_of_contact``). They
find in a few sweeps which contacts are open, stick and slide. *Newton's steps* on (1) then solve all rows at once: with
the direction d = z_t/|z_t| of sliding, P the projection across it, and p⁺ the impulses after the step,

    open     p⁺ = 0
    closed   G_n p⁺ + c_n = 0                                                                                      (2)
    sticks   G_t p⁺ + c_t = 0                                                                                      (3)
    slides   p_t⁺ = μ p_n⁺ d + κ P (p_t⁺ − ρ (G_t p⁺ + c_t))                                                       (4)

(3) is (4) with κ = 1, d = 0 and P = 1, and an open contact is (4) with κ = 0, d = 0: there is nothing to select but
κ and d. A step counts only where it makes the residual of (1) smaller. Where it does, the error is squared in each
step: friction that can hold leaves velocities of round-off, not of a small number.

Redundant contacts make G singular. Then p is not unique, w is; a proximal term ε (p⁺ − p) in (2)–(4) keeps the step
finite and vanishes where the steps converge.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkwise.algorithms import dense
from linkwise.algorithms.constrained.constraints import round_off, softening
from linkwise.algorithms.contact import derivatives
from linkwise.algorithms.contact.point import (
    TINY,
    JointRow,
    Point,
    ends_of,
    inverse_above,
    on_disk,
    selected,
    where_known,
)
from linkwise.scalar import (
    Condition,
    Scalar,
    all_of,
    like,
    like_all,
    maximum,
    minimum,
    sqrt,
    stage,
    where,
    while_loop,
)

Rows = list[list[Scalar]]
SLIDING_STEPS = (1, 2)
"""Steps towards the root of a sliding contact in the first sweep of all, and in others."""
LEAST_SLIDING = 0.02
"""a at which these begin at least, relative to the scale of the tangents."""
NO_IMPULSE = 1e-15
"""[N·s]: limits of friction below it are none."""
HELD_FROM = 12
"""Rounds of a sweep and a step for states that are not solved, after which what friction holds in the ground stays
there; few states need any."""
MOST_ROUNDS = 16
SWEPT = (0, 1, 2, 6, 7, 8, 12, 13)
"""Rounds that begin with a sweep. Their steps count where they make the residual smaller, those of others anyway."""
WILDEST = 1e9
"""Times larger squares of residuals with which they do not count: what is not a number is among these."""
HOPELESS = 1e-6
"""Relative residual above which they begin anew: what is nearer to a solution than that has one."""
UNSOLVED = 1e30
"""[(m/s)²]: the residual of what has not been tried."""
MOST_CHANGE = 8.0
"""By which such a step multiplies or divides."""


@dataclass(frozen=True, eq=False)
class Problem:
    """w = G p + c, three rows for every contact (tangents before the normal), then one for every joint row."""

    G: Rows
    c: Sequence[Scalar]
    friction: Sequence[Scalar]
    """μ of every contact."""
    joints: Sequence[JointRow] = ()
    free: Sequence[Scalar] | None = None
    """Velocities without impulses and bias, what residuals are relative to; None: c."""
    lifts: bool = False
    """Whether every contact can part, whatever friction does."""


@dataclass(frozen=True)
class Effort:
    """How much is computed: sweeps, Newton's steps, and rounds of both.

    Args:
        sweeps: before the first of Newton's steps.
        newton_steps: how many.
        repeats: further steps after each of them with the same matrix, which cost little.
        proximal: ε of Newton's steps relative to the mean of G's diagonal; the last one for all others. A large one
            keeps directions that hardly any impulse moves from huge impulses, a small one converges quickly.
        goal: residual relative to the velocities without impulses, above which a state gets further rounds of a sweep
            and a step, at most ``MOST_ROUNDS``; None: none.
        filtered: the schedule of ``filtered``, which solves it in place of all this.
    """

    sweeps: int = 4
    newton_steps: int = 3
    repeats: int = 0
    proximal: tuple[float, ...] = (1e-6, 1e-9)
    goal: float | None = None
    filtered: Any = None


@dataclass(frozen=True, eq=False)
class _Scales:
    """What is computed once: mean of G's diagonal, what counts as nothing of it, and for every row G_kk and
    ρ = 1/G_kk."""

    mean: Scalar
    least: Scalar
    stiff: list[Scalar]
    soft: list[Scalar]


def solve(
    problem: Problem, effort: Effort, start: Sequence[Scalar] | None = None, smoothing: Scalar = 0.0
) -> tuple[list[Scalar], list[Scalar]]:
    """(p, residuals of (1) as velocities): after a fixed number of sweeps and Newton's steps."""
    scales = _scales(problem)
    p: list[Scalar] = [0.0] * len(problem.c) if start is None else list(start)
    w = None
    with stage("contact sweeps"):
        for k in range(effort.sweeps):
            p, w = _swept(problem, scales, p, first=k == 0)
    at = _evaluated(problem, scales, p, w)
    for k in range(effort.newton_steps):
        near = max(softening(), effort.proximal[min(k, len(effort.proximal) - 1)]) * scales.mean
        at = _newton_step(problem, scales, at, near, effort)
    if effort.goal is not None:
        at = _finished(problem, scales, at, effort)
    p = _differentiable(problem, scales, at, smoothing)
    *p, unknown = where_known([*problem.c, *ends_of(problem.joints)], [*p, 0.0])
    residuals = [at.residuals[0] + unknown, *at.residuals[1:]]
    return p, [like(x, 0.0) for x in residuals]


def _newton_step(
    problem: Problem, scales: _Scales, at: Point, near: Scalar, effort: Effort, anyway: bool = False
) -> Point:
    """The best of this point (not ``anyway``), the one after a step, and after repeats with its matrix."""
    with stage("contact Newton steps"):
        matrix, right = _linearised(problem, scales, at, near)
        factors, chosen = _factorised(matrix, at.pressed), at
        new = _evaluated(problem, scales, _solved(factors, right))
        at = new if anyway else at.unless(new.merit < at.merit, new)
        for _ in range(effort.repeats):
            change = _solved(factors, _missing(problem, scales, chosen, at))
            new = _evaluated(problem, scales, [a + b for a, b in zip(at.p, change, strict=True)])
            at = at.unless(new.merit < at.merit, new)
        return at


def _finished(problem: Problem, scales: _Scales, at: Point, effort: Effort) -> Point:
    """Further rounds for states that are not solved: half of them begin with a sweep from where the last one ended, all
    end in a step. The best point of all rounds is the result. Where a contact begins to slide, Newton's steps often
    make the residual a thousand times larger before they find the solution: without a sweep they count even so.

    What is inside has no solution where friction does not let it come out: impulses would grow without bound. The last
    rounds begin anew and do not ask for it. The residual, which is that of the law, says so.
    """
    n, free = len(at.p), problem.c if problem.free is None else problem.free
    reached = max(effort.goal or 0.0, 100.0 * round_off())
    square = dense.dot(free, free)
    goal, hopeless = (reached * reached) * square, max(reached, HOPELESS) ** 2 * square
    near = max(softening(), effort.proximal[-1]) * scales.mean
    outward = [] if problem.lifts else outward_speeds(problem.c, free, len(problem.friction))

    def body(count: Scalar, best: Scalar, *state: Scalar) -> tuple[Scalar, ...]:
        own, start = problem, state[:n]
        if outward:
            held, begins = count >= float(HELD_FROM), begins_anew(count, float(HELD_FROM), outward, goal)
            own = replace(
                problem, c=[c + where(held, x, 0.0) for c, x in zip(problem.c, outward, strict=True)]
            )
            start = [where(begins, 0.0, x) for x in start]
            best = where(begins, UNSOLVED, best)
        p, w = _swept(own, scales, start)
        sweeps = functools.reduce(minimum, [(count - float(k)) * (count - float(k)) for k in SWEPT]) < 0.5
        p, w = selected(sweeps, p, start), selected(sweeps, w, _velocities(own, start))
        at = _evaluated(own, scales, p, w)
        new = _newton_step(own, scales, at, near, effort, anyway=True)
        new = at.unless(new.merit < where(sweeps, 1.0, WILDEST) * at.merit, new)
        better = new.merit < best
        return (count + 1.0, where(better, new.merit, best), *new.p, *selected(better, new.p, state[n:]))

    def active(count: Scalar, best: Scalar, *_: Scalar) -> Condition:
        if not outward:
            return all_of(best > goal, count < float(HELD_FROM))
        begins = begins_anew(count, float(HELD_FROM), outward, goal)
        return all_of(best > where(begins, hopeless, goal), count < float(MOST_ROUNDS))

    p = [like(x, 0.0) for x in at.p]
    found = while_loop(active, body, (0.0 * at.merit, at.merit, *p, *p), uneven=True)
    return _evaluated(problem, scales, [like(x, 0.0) for x in found[2 + n :]])


def outward_speeds(biased: Sequence[Scalar], free: Sequence[Scalar], contacts: int) -> list[Scalar]:
    """The speeds at which contacts are asked to part, 0 in all other rows.

    Args:
        biased: velocities with their bias.
        free: without.
        contacts: how many there are.
    """
    return [
        maximum(b - a, 0.0) if k < 3 * contacts and k % 3 == 2 else 0.0
        for k, (a, b) in enumerate(zip(biased, free, strict=True))
    ]


def begins_anew(count: Scalar, at: Scalar, outward: Sequence[Scalar], goal: Scalar) -> Condition:
    """Whether this is the step from which no contact is asked to part, and one was."""
    return all_of(all_of(count >= at, count < at + 1.0), dense.dot(outward, outward) > goal)


def _differentiable(problem: Problem, scales: _Scales, at: Point, smoothing: Scalar) -> list[Scalar]:
    """The impulses with their derivatives, see ``derivatives``."""
    p = [like(x, 0.0) for x in projected(problem.friction, at.p)]

    def changes() -> list[Scalar]:
        at = _evaluated(problem, scales, p)
        laws, right = derivatives.linearised(at, problem.friction, scales.stiff, scales.least, smoothing)
        matrix = derivatives.constants(derivatives.unit_plus_product(laws, problem.G))
        return derivatives.of_solutions(_solved(_factorised(matrix), right), at.merit, problem.c)

    return like_all(p, changes)


# -- scales -----------------------------------------------------------------------------------------------------------


def _scales(problem: Problem) -> _Scales:
    G, contacts = problem.G, len(problem.friction)
    with stage("contact scales"):
        mean = (1.0 / len(G)) * sum((G[k][k] for k in range(1, len(G))), start=G[0][0])
        least = softening() * mean
        stiff: list[Scalar] = []
        for k in range(contacts):
            own = [row[3 * k : 3 * k + 3] for row in G[3 * k : 3 * k + 3]]
            across = 0.5 * (own[0][0] + own[1][1])
            stiff += [across, across, own[2][2]]
        stiff += [G[k][k] for k in range(3 * contacts, len(G))]
        return _Scales(mean, least, stiff, [inverse_above(x, least) for x in stiff])


# -- sweeps -----------------------------------------------------------------------------------------------------------


def _swept(
    problem: Problem, scales: _Scales, p: Sequence[Scalar], first: bool = False
) -> tuple[list[Scalar], list[Scalar]]:
    """(p, w) after one Gauss–Seidel sweep over all contacts and joint rows.

    Velocities by the impulses that are swept already are part of w after the sweep as well.
    """
    G, p, contacts = problem.G, list(p), len(problem.friction)
    swept = list(problem.c)
    for k in range(contacts):
        own = slice(3 * k, 3 * k + 3)
        for i in range(3 * k, 3 * k + 3):
            swept[i] = _raised_by(swept[i], G[i][: 3 * k], p)
        free = [_raised_by(swept[i], G[i][3 * k + 3 :], p[3 * k + 3 :]) for i in range(3 * k, 3 * k + 3)]
        block = [row[own] for row in G[own]]
        impulse = _of_contact(block, scales.soft[3 * k + 2], free, problem.friction[k], scales.least, first)
        # what parts without an impulse gets none, even where one that wedges it would be another solution
        p[own] = [where(free[2] >= 0.0, 0.0, x) for x in impulse]
    for k, row in enumerate(problem.joints, start=3 * contacts):
        swept[k] = _raised_by(swept[k], G[k][:k], p)
        w = swept[k] + dense.dot(G[k][k:], p[k:])
        p[k] = _of_joint(row, p[k], w, scales.stiff[k], scales.soft[k])
    firsts = [k - k % 3 if k < 3 * contacts else k for k in range(len(p))]
    return p, [a + dense.dot(G[k][i:], p[i:]) for k, (a, i) in enumerate(zip(swept, firsts, strict=True))]


def _raised_by(w: Scalar, row: Sequence[Scalar], p: Sequence[Scalar]) -> Scalar:
    """w and what as many impulses as the row is long add to it."""
    return w + dense.dot(row, p[: len(row)]) if row else w


def _of_contact(
    block: Rows, soft: Scalar, free: Sequence[Scalar], friction: Scalar, least: Scalar, first: bool
) -> list[Scalar]:
    """p of a closed contact, where those of all others stay: p_t = −w_t/a, w_n = 0 and |p_t| = μ p_n, or a = 0.

    With p_n from w_n = 0 the tangents have the matrix S = G_tt − G_tn G_nt/G_nn, and p_t = −(S + a)⁻¹ r. A large a
    gives a small p_t inside the cone, a = 0 one that sticks and is outside: between them is a root. As 1/|p_t| is
    nearly a straight line over a, Newton's steps on μ p_n/|p_t| − 1 approach it quickly (J. J. Moré and D. C. Sorensen,
    "Computing a trust region step", 1983); the derivative of p_t is −(S + a)⁻¹ p_t. They begin at the root for an S
    that is the same in all directions, where p_t = −s r gives the normal impulse s G_nt r/G_nn more. Sweeps over the
    normal and the tangents by themselves would cycle where these are coupled strongly, as in light feet.

    Args:
        block: of G.
        soft: 1/G_nn.
        free: velocities without its own impulse.
        friction: μ.
        least: what counts as nothing of G's diagonal.
        first: whether a rough result will do.
    """
    across = [soft * block[i][2] for i in (0, 1)]
    xx, xy, yy = (block[i][j] - across[i] * block[2][j] for i, j in ((0, 0), (0, 1), (1, 1)))
    r = [free[i] - across[i] * free[2] for i in (0, 1)]

    def slid(a: Scalar) -> list[Scalar]:
        """(p_t, p_n, (S + a)⁻¹ p_t), times the determinant of S + a and its square, and the determinant."""
        first, second = xx + a, yy + a
        size = first * second - xy * xy
        x, y = xy * r[1] - second * r[0], xy * r[0] - first * r[1]
        normal = -((soft * free[2]) * size + across[0] * x + across[1] * y)
        return [x, y, normal, second * x - xy * y, first * y - xy * x, size]

    limit = -friction * (soft * free[2])
    stiff = xx + yy
    length = sqrt(r[0] * r[0] + r[1] * r[1] + TINY)
    wanted = length - friction * (across[0] * r[0] + across[1] * r[1])
    a = maximum(wanted / maximum(limit, NO_IMPULSE) - 0.5 * stiff, LEAST_SLIDING * stiff)
    for _ in range(SLIDING_STEPS[0 if first else 1]):
        x, y, normal, u, v, size = slid(a)
        square = x * x + y * y + TINY
        outside = sqrt(square) - friction * normal
        rises = friction * (square * (across[0] * u + across[1] * v) + normal * (x * u + y * v))
        known = rises > 0.0
        step = 1.0 + (outside * square) * size / (a * where(known, rises, 1.0))
        change = where(known, step, where(outside > 0.0, MOST_CHANGE, 0.0))
        a = a * minimum(maximum(change, 1.0 / MOST_CHANGE), MOST_CHANGE)
    x, y, normal, _, _, _ = slid(least)
    limit = friction * normal
    sticks = all_of(normal >= 0.0, x * x + y * y <= limit * limit)
    x, y, normal, _, _, size = slid(where(sticks, least, a))
    presses = normal > 0.0
    inverse = where(presses, 1.0 / size, 0.0)
    return [inverse * x, inverse * y, where(presses, inverse * normal, -soft * free[2])]


def on_disk_of(t: Sequence[Scalar], limit: Scalar) -> list[Scalar]:
    """The nearest point to t of the disk of this radius."""
    part = minimum(1.0, limit / sqrt(t[0] * t[0] + t[1] * t[1] + TINY))
    return [part * t[0], part * t[1]]


def _of_joint(row: JointRow, p: Scalar, w: Scalar, stiff: Scalar, soft: Scalar) -> Scalar:
    """The impulse of a joint row where those of all other rows stay: friction, then what the stops still need.

    Both are subgradients of convex functions of the one velocity w, so the stops clip what friction has left of it.
    """
    free = w - stiff * p
    rubbed: Scalar = 0.0
    if row.forward is not None and row.backward is not None:
        inverse = soft if row.compliance == 0.0 else 1.0 / (stiff + row.compliance)
        rubbed = minimum(maximum(-free * inverse, -row.forward), row.backward)
    left = free + stiff * rubbed
    stopped = left
    if row.lower is not None:
        stopped = maximum(stopped, row.lower)
    if row.upper is not None:
        stopped = minimum(stopped, row.upper)
    return rubbed + soft * (stopped - left)


# -- Newton's steps ---------------------------------------------------------------------------------------------------


def _velocities(problem: Problem, p: Sequence[Scalar]) -> list[Scalar]:
    """w = G p + c."""
    return [x + dense.dot(row, p) for x, row in zip(problem.c, problem.G, strict=True)]


def _evaluated(problem: Problem, scales: _Scales, p: list[Scalar], w: list[Scalar] | None = None) -> Point:
    with stage("contact residuals"):
        w = _velocities(problem, p) if w is None else w
    return evaluated(problem.friction, problem.joints, scales.stiff, scales.soft, p, w)


def evaluated(
    frictions: Sequence[Scalar],
    joint_rows: Sequence[JointRow],
    stiff: Sequence[Scalar],
    soft: Sequence[Scalar],
    p: list[Scalar],
    w: list[Scalar],
) -> Point:
    """What (1) says about these impulses: its choices and its residuals r [m/s or rad/s].

    Args:
        frictions: μ of every contact.
        joint_rows: one for every joint that stops or rubs.
        stiff: G_kk of every row.
        soft: ρ = 1/G_kk.
        p: impulses.
        w: velocities after the step.
    """
    with stage("contact residuals"):
        pressed: list[Scalar] = []
        held: list[Scalar] = []
        directions: Rows = []
        residuals: list[Scalar] = []
        for k, friction in enumerate(frictions):
            x, z = 3 * k, 3 * k + 2
            normal = maximum(p[z] - soft[z] * w[z], 0.0)
            closed = where(normal > 0.0, 1.0, 0.0)
            kappa, direction, own = on_disk(p[x:z], w[x:z], stiff[x], soft[x], friction * normal, closed)
            pressed.append(closed)
            held.append(kappa)
            directions.append(direction)
            residuals += own
            residuals.append(where(normal > 0.0, w[z], stiff[z] * p[z]))
        joints: Rows = []
        for k, row in enumerate(joint_rows, start=3 * len(frictions)):
            choice, residual = joint_choice(row, p[k], w[k], stiff[k], soft[k])
            joints.append(choice)
            residuals.append(residual)
        merit = dense.dot(residuals, residuals)
        return Point(p, w, pressed, held, directions, joints, residuals, merit)


def joint_choice(
    row: JointRow, p: Scalar, w: Scalar, stiff: Scalar, soft: Scalar, careful: Condition | None = None
) -> tuple[list[Scalar], Scalar]:
    """((κ, value, R), residual): w + R p is ``value`` where κ = 1, the impulse is where κ = 0.

    Where ``careful`` holds, friction goes from one of its limits to the other by way of sticking: with a scale ρ that
    is too large it would go to and fro between them.
    """
    residual = stiff * (p - _of_joint(row, p, w, stiff, soft))
    left = w - stiff * p
    kappa: Scalar = 0.0
    value: Scalar = 0.0
    yielding: Scalar = row.compliance
    if row.forward is not None and row.backward is not None:
        inverse = soft if row.compliance == 0.0 else 1.0 / (stiff + row.compliance)
        tried = -left * inverse
        rubbed = minimum(maximum(tried, -row.forward), row.backward)
        sticks = all_of(tried > -row.forward, tried < row.backward)
        if careful is not None:
            sticks = sticks | all_of(careful, tried * p < 0.0)
        left = left + stiff * rubbed
        kappa, value = where(sticks, 1.0, 0.0), where(sticks, 0.0, rubbed)
    for bound, below in ((row.lower, True), (row.upper, False)):
        if bound is not None:
            stops = left < bound if below else left > bound
            kappa, value = where(stops, 1.0, kappa), where(stops, bound, value)
            yielding = yielding if row.compliance == 0.0 else where(stops, 0.0, yielding)
    return [kappa, value, yielding], residual


def _linearised(problem: Problem, scales: _Scales, at: Point, proximal: Scalar) -> tuple[Rows, list[Scalar]]:
    """(A, b) with A p⁺ = b of (2)–(4). Rows of normals are those of closed contacts, see ``_factorised``."""
    G, soft, size = problem.G, scales.soft, len(problem.c)
    # proximal: G p⁺ + c + ε (p⁺ − p)
    c = [x - proximal * p for x, p in zip(problem.c, at.p, strict=True)]
    near = dense.raised(G, proximal)
    matrix: Rows = []
    right: list[Scalar] = []
    for k, friction in enumerate(problem.friction):
        x, y, z = 3 * k, 3 * k + 1, 3 * k + 2
        kappa, (u, v) = at.held[k], at.directions[k]
        weight = kappa * soft[x]
        across = [weight * (1.0 - u * u), -(weight * u) * v, weight * (1.0 - v * v)]
        first = [across[0] * near[x][j] + across[1] * near[y][j] for j in range(size)]
        second = [across[1] * near[x][j] + across[2] * near[y][j] for j in range(size)]
        first[x], first[y] = first[x] + (1.0 - kappa * (1.0 - u * u)), first[y] + kappa * (u * v)
        second[x], second[y] = second[x] + kappa * (u * v), second[y] + (1.0 - kappa * (1.0 - v * v))
        first[z], second[z] = first[z] - friction * u, second[z] - friction * v
        right += [-(across[0] * c[x] + across[1] * c[y]), -(across[1] * c[x] + across[2] * c[y])]
        right.append(-c[z])
        matrix += [first, second, near[z]]
    for k, (kappa, value, yielding) in enumerate(at.joints, start=3 * len(problem.friction)):
        weight = kappa * soft[k]
        row = [weight * g for g in near[k]]
        row[k] = row[k] + (1.0 - kappa) + weight * yielding
        matrix.append(row)
        right.append(weight * (value - c[k]) + (1.0 - kappa) * value)
    return matrix, right


def _missing(problem: Problem, scales: _Scales, chosen: Point, at: Point) -> list[Scalar]:
    """b − A p of ``_linearised`` at another point, with what that one chooses but the matrix of the first one.

    As w_n⁺ = 0 is a row of its own, those of the tangents have p_n⁺ in the place of p_n⁺ − ρ w_n⁺.
    """
    soft, r = scales.soft, at.residuals
    right: list[Scalar] = []
    for k, friction in enumerate(problem.friction):
        x, y, z = 3 * k, 3 * k + 1, 3 * k + 2
        u, v = chosen.directions[k]
        pressed = friction * (soft[z] * r[z])
        right += [pressed * u - soft[x] * r[x], pressed * v - soft[x] * r[y], -r[z]]
    for k, (kappa, value, yielding) in enumerate(at.joints, start=3 * len(problem.friction)):
        held = (kappa * soft[k]) * (value - at.w[k] - yielding * at.p[k])
        right.append(held + (1.0 - kappa) * (value - at.p[k]))
    return right


def _factorised(matrix: Rows, pressed: Sequence[Scalar] = ()) -> tuple[Rows, list[Scalar]]:
    """(factors, inverses of the pivots) by Gaussian elimination without pivoting: the diagonal is positive in (2)–(4).

    Args:
        matrix: its rows.
        pressed: 0 for contacts whose normal row and column are left out, else 1: a pivot that is infinitely large.
    """
    rows, n = [list(row) for row in matrix], len(matrix)
    inverses: list[Scalar] = []
    for k in range(n):
        inverse = 1.0 / rows[k][k]
        inverses.append(pressed[k // 3] * inverse if k % 3 == 2 and k < 3 * len(pressed) else inverse)
        for i in range(k + 1, n):
            rows[i][k] = rows[i][k] * inverses[k]
            for j in range(k + 1, n):
                rows[i][j] = rows[i][j] - rows[i][k] * rows[k][j]
    return rows, inverses


def _solved(factors: tuple[Rows, list[Scalar]], right: Sequence[Scalar]) -> list[Scalar]:
    """x with A x = right."""
    (rows, inverses), x = factors, list(right)
    for k in range(len(x)):
        for i in range(k + 1, len(x)):
            x[i] = x[i] - rows[i][k] * x[k]
    for k in reversed(range(len(x))):
        for j in range(k + 1, len(x)):
            x[k] = x[k] - rows[k][j] * x[j]
        x[k] = inverses[k] * x[k]
    return x


def projected(frictions: Sequence[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
    """The nearest impulses whose contacts do not pull and keep their cones."""
    p = list(p)
    for k, friction in enumerate(frictions):
        x, y, z = 3 * k, 3 * k + 1, 3 * k + 2
        p[z] = maximum(p[z], 0.0)
        p[x], p[y] = on_disk_of((p[x], p[y]), friction * p[z])
    return p


def largest(values: Sequence[Scalar]) -> Scalar:
    """The largest magnitude."""
    return functools.reduce(maximum, (abs(x) for x in values))
