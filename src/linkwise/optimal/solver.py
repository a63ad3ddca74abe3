"""Motions of least cost: descents (``descent``), with multipliers of limits around them; one problem or many at once.

Limits c ≤ 0 of states and tips add (λ/μ) φ(μ c) to the cost (``quadratic.walled``): smooth, so that a descent takes a
few iterations, finite outside of the limits, and exact, because the multipliers λ ← λ φ'(μ c) of the next round take
over what the barrier held back. μ grows where a violation does not shrink.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.errors import ConvergenceError
from linkwise.optimal import outcome
from linkwise.optimal.arguments import ProblemError, number, numbers, whole
from linkwise.optimal.contact_schedule import ACTIVE
from linkwise.optimal.descent import ZERO, Descent, contact_jacobian_of, step_of
from linkwise.optimal.problem import Problem
from linkwise.optimal.quadratic import walled
from linkwise.optimal.result import Solution
from linkwise.optimal.through_contact import SMOOTHING

PENALTY, MOST_PENALTY = 3.0, 1e7  # μ: the first and the largest
HARDER = 4.0  # growth of μ
FIRST = 1e-3  # the first multipliers, in units of the cost of the first guess
FORCES = 1e-2  # of that, for limits of forces: every foot has one in every stage
LEAST, MOST = 0.1, 10.0  # change of a multiplier in one round: limits that are not reached let go quickly
SHRINKING = 0.25  # of the violation between two rounds, with which μ stays
RELEASING = (
    0.5  # the same of what multipliers of limits that are not reached hold back, once all limits are kept
)
NO_COST = 1e-12  # of the largest weight: cost of a first guess without one
ROUNDS = 40  # updates of the multipliers
ROUGHLY, FINER = (
    1e-3,
    1e-3,
)  # relative improvement at which a round ends: at most, and by what is left of the limits
HELD_BACK = 1e-7  # of the cost, that multipliers of limits which are not reached may hold back


def solve(
    problem: Problem,
    *,
    states: Any = None,
    torques: Any = None,
    iterations: int = 200,
    tolerance: float = 1e-9,
    limit_tolerance: float = 1e-6,
    multipliers: Any = None,
) -> Solution:
    """The motion of least cost near a first guess.

    Args:
        problem: robot, costs and limits.
        states: first guess of the states (horizon + 1, ns), which need not follow from the torques; by default the
            start, at rest, or with joints without motors where the torques lead.
        torques: first guess of the torques (horizon, m) [N·m or N]; by default those that hold the start. Where
            durations are chosen, ``Solution.controls`` (horizon, m + 1) has both.
        iterations: most iterations in all.
        tolerance: relative to the cost: converged when no step is expected to improve it by more.
        limit_tolerance: by which limits of states and tips may be exceeded [rad, m, rad/s].
        multipliers: of the limits, (horizon + 1, nm), from a solution of a similar problem.

    Returns:
        The motion; ``converged`` is False, and ``message`` says why, where iterations ran out or limits cannot be met.

    Raises:
        ProblemError: the start or the guess cannot be right.
        ConvergenceError: the cost of the first guess is not a number; the message names the stage and the cost.
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem: expected linkwise.optimal.Problem, got {type(problem).__name__}")
    most = whole("iterations", iterations, 1)
    tolerance = number("tolerance", tolerance, above=0.0)
    limit_tolerance = number("limit_tolerance", limit_tolerance, above=0.0)
    N = problem.horizon
    if torques is not None:
        given = numbers("torques", torques)
        with_durations = problem.dynamics.timed and given.shape == (N, problem.nu)
        size = problem.nu if with_durations else problem.dynamics.motors
        torques = numbers("torques", given, (N, size))[None]
    if states is not None:
        states = numbers("states", states, (N + 1, problem.ns))[None]
    m = None if multipliers is None else numbers("multipliers", multipliers, (N + 1, problem.nm))[None]
    at = Descent(
        problem,
        problem.x0[None],
        problem.p[None],
        *guess(problem, problem.x0[None], problem.p[None], states, torques),
        _table(problem, 1),
        threads=1,
    )
    minimised(at, most, tolerance, limit_tolerance, m)
    if at.failed[0]:
        xs, us = guess(problem, problem.x0[None], problem.p[None], states, torques)
        raise ConvergenceError(outcome.why_not_a_number(problem, xs[0], us[0]))
    return outcome.solution(problem, at, limit_tolerance, most)


def minimised(
    at: Descent, most: int, tolerance: float, limit_tolerance: float, m: np.ndarray | None = None
) -> None:
    """Solve all problems of a batch.

    Args:
        at: the first guesses, which become the solutions.
        most: iterations of each problem in all.
        tolerance: as for ``solve``.
        limit_tolerance: as for ``solve``.
        m: multipliers to begin with, of similar problems.
    """
    problem, count = at.problem, len(at.x0)
    active = np.ones(count, bool)
    if problem.dynamics.through is not None:
        _sharpened(at, most, tolerance, limit_tolerance, m)
    elif not problem.nm:
        at.minimise(problem, active, np.full(count, tolerance), most)
    else:
        _within_limits(at, most, tolerance, limit_tolerance, m)


def _sharpened(
    at: Descent, most: int, tolerance: float, limit_tolerance: float, m: np.ndarray | None
) -> None:
    """Rounds with derivatives of contacts that are less and less smooth."""
    problem = at.problem
    assert problem.dynamics.through is not None
    values = problem.dynamics.through.stages()
    for turn, smoothing in enumerate(values, start=1):
        at.p[..., problem.where(SMOOTHING)] = smoothing
        part = most * turn // len(values)
        if not problem.nm:
            at.minimise(problem, np.ones(len(at.x0), bool), np.full(len(at.x0), tolerance), part)
        else:
            _within_limits(at, part, tolerance, limit_tolerance, m)
            m = at.m


def _within_limits(
    at: Descent, most: int, tolerance: float, limit_tolerance: float, m: np.ndarray | None
) -> None:
    """Rounds of multipliers of limits."""
    problem, count = at.problem, len(at.x0)
    active = np.ones(count, bool)
    walls = problem.with_barrier()
    if m is not None:
        at.m[:] = m
    else:
        at.m[..., -2], at.m[..., -1] = PENALTY, 1.0 / PENALTY
        at.m[..., :-2] = (FIRST * scale_of(at))[:, None, None] * problem.limited
        at.m[..., problem.state_limit_count : -2] *= FORCES
    enough = np.full(count, tolerance if m is not None else max(tolerance, ROUGHLY))
    worst = most_held = np.full(count, np.inf)
    fine = hopeless = np.zeros(count, bool)
    for _ in range(ROUNDS):
        at.minimise(walls, active, enough, most)
        c = at.limits()
        lam, mu = at.m[..., :-2], at.m[:, 1, -2]
        _, slope, _ = walled(c, lam, mu[:, None, None], 1.0)
        violation = np.maximum(c.max(axis=(1, 2)), 0.0)
        force = np.clip(slope, LEAST * lam, MOST * lam)
        held = (force * np.abs(c)).sum(axis=(1, 2)) / (np.abs(outcome.cost_of(at)) + ZERO * at.unit)
        fine = at.stationary & (enough <= tolerance) & (violation <= limit_tolerance) & (held <= HELD_BACK)
        hopeless = (violation > limit_tolerance) & (mu >= MOST_PENALTY)
        active = active & ~fine & ~hopeless & (at.iterations < most) & ~at.failed
        if not active.any():
            break
        slow = violation > np.maximum(SHRINKING * worst, limit_tolerance)
        slow |= (violation <= limit_tolerance) & (held > np.maximum(RELEASING * most_held, HELD_BACK))
        mu = np.where(slow, np.minimum(mu * HARDER, MOST_PENALTY), mu)
        worst, most_held = (np.where(active, *pair) for pair in ((violation, worst), (held, most_held)))
        at.m[active, :, :-2] = force[active]
        at.m[active, :, -2], at.m[active, :, -1] = mu[active, None], 1.0 / mu[active, None]
        left = np.maximum(violation, held)
        enough = np.where(active, np.clip(FINER * left, tolerance, np.minimum(enough, ROUGHLY)), enough)
    at.stationary &= fine | hopeless  # a descent that ended before its multipliers did is no solution


def scale_of(at: Descent) -> np.ndarray:
    """|cost| of the first guesses, without limits."""
    total = np.abs(outcome.plain_cost(at))
    return np.where(np.isfinite(total), total, 1.0) + NO_COST * at.unit


def first_guess(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(states, torques) that ``solve`` begins with: the start at rest, and the torques that hold it."""
    xs, us = guess(problem, problem.x0[None], problem.p[None], None, None)
    return xs[0], us[0]


def guess(
    problem: Problem, x0: np.ndarray, p: np.ndarray, states: np.ndarray | None, torques: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(states (B, horizon + 1, ns), torques (B, horizon, m)) to begin with; what is None is made from the starts."""
    N, d, count = problem.horizon, problem.dynamics, len(x0)
    if torques is None:
        hold = _holding(problem, x0, p)
        torques = np.repeat(np.where(np.isfinite(hold), hold, 0.0)[:, None], N, axis=1)
    if torques.shape[-1] < problem.nu:  # durations are those of the problem
        torques = np.concatenate([torques, np.full((*torques.shape[:-1], 1), problem.step)], axis=-1)
    us = np.array(np.broadcast_to(torques, (count, N, problem.nu)))
    if problem.boxed:
        us = np.clip(us, *(p[:, :-1, at] for at in problem.control_limits))
    if states is not None:
        xs = np.array(np.broadcast_to(states, (count, N + 1, problem.ns)))
        xs[:, 0] = x0
        return xs, us
    xs = np.repeat(x0[:, None], N + 1, axis=1)
    xs[:, 1:, d.nq : d.nq + d.dof] = 0.0
    xs[:, 1:, d.nq + d.dof :] = us[:, :, (0 if d.remembers else d.motors) :]
    if (
        d.motors < d.dof and d.contacts is None and d.through is None
    ):  # a floating base does not stay where it is
        moved, step = xs.copy(), step_of(problem)
        with np.errstate(all="ignore"):
            for k in range(N):
                moved[:, k + 1] = step(moved[:, k], us[:, k], p[:, k])
        sound = np.isfinite(moved).all(axis=(1, 2))
        xs[sound] = moved[sound]
    return xs, us


def _holding(problem: Problem, x0: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Torques (B, m) that hold the starts, with forces of the frames that are held in the first stage."""
    d, rest = problem.dynamics, np.zeros((len(x0), problem.dynamics.dof))
    q = x0[:, : d.nq]
    needed = np.asarray(problem.robot.inverse_dynamics(q, rest, rest))
    if d.contacts is not None:
        held = np.repeat(p[:, 0, problem.where(ACTIVE)], d.contacts.size, axis=1)
        J = np.swapaxes(np.asarray(contact_jacobian_of(problem)(x0)) * held[:, :, None], 1, 2)
        passive = [k for k in range(d.dof) if k not in d.driven]
        for row, columns in zip(needed, J, strict=True):
            row -= columns @ np.linalg.lstsq(columns[passive], row[passive], rcond=None)[0]
    return needed[:, list(d.driven)]


def _table(problem: Problem, count: int) -> np.ndarray:
    """Of multipliers; nothing counts at the start, which is given."""
    return np.zeros((count, problem.horizon + 1, problem.nm))
