"""Motions of least cost: descents (``descent``), with limits of states and tips around them.

Limits of states and tips are kept by barriers (``barrier``), then made exact by an augmented Lagrangian (J. Nocedal and
S. Wright, "Numerical Optimization", ch. 17): multipliers λ ← max(0, λ + μ c) after every inner solution, and a larger
penalty μ where the violation does not shrink.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.optimal import barrier, outcome
from linkwise.optimal.arguments import ProblemError, number, numbers, whole
from linkwise.optimal.code import Code, code_of
from linkwise.optimal.descent import Iterate, minimised
from linkwise.optimal.problem import LOWER, UPPER, Problem
from linkwise.optimal.result import Solution

PENALTY, MOST_PENALTY, HARDER = 10.0, 1e9, 10.0  # of limits: the first, the largest, the factor
SHRINKING = 0.25  # of the violation between two updates of the multipliers, with which the penalty stays
ROUNDS = 25  # updates of the multipliers


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
        torques: first guess of the torques (horizon, m) [N·m or N]; by default those that hold the start.
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
    code = code_of(problem)
    at = _first(code, problem, states, torques)
    m = _first_multipliers(problem, multipliers)
    if not problem.nm:
        minimised(code, problem, at, m, most, tolerance)
        return outcome.solution(problem, at, m, limit_tolerance)
    if multipliers is not None:
        _exact(code, problem, at, m, most, tolerance, limit_tolerance)
        return outcome.solution(problem, at, m, limit_tolerance)
    return barrier.solution(problem, at, m, most, tolerance, limit_tolerance, _exact)


def _exact(
    code: Code,
    problem: Problem,
    at: Iterate,
    m: np.ndarray,
    most: int,
    tolerance: float,
    limit_tolerance: float,
) -> bool:
    """The augmented Lagrangian, from multipliers m, which are changed; whether limits and complementarity hold."""
    worst = np.inf
    for _ in range(ROUNDS):
        at.mu, at.stationary = 0.0, False
        minimised(code, problem, at, m, most, tolerance)
        c = np.asarray(code.limits(at.xs, problem.p))[1:]
        violation = max(0.0, float(c.max(initial=0.0)))
        lam, mu = m[1:, :-2], m[1, -2]
        slack = float(np.abs(np.maximum(c, -lam / mu)).max(initial=0.0))
        if at.stationary and slack <= limit_tolerance:
            return True
        if at.iterations >= most or (violation > limit_tolerance and mu >= MOST_PENALTY):
            return False
        lam = np.maximum(0.0, lam + mu * c)
        if slack > SHRINKING * worst:
            mu = min(mu * HARDER, MOST_PENALTY)
        worst = slack
        m[1:, :-2], m[1:, -2], m[1:, -1] = lam, mu, 1.0 / mu
    return False


# -- first guesses ----------------------------------------------------------------------------------------------------


def first_guess(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(states, torques) that ``solve`` begins with: the start at rest, and the torques that hold it."""
    at = _first(code_of(problem), problem, None, None)
    return at.xs, at.us


def _first(code: Code, problem: Problem, states: Any, torques: Any) -> Iterate:
    N, robot, d = problem.horizon, problem.robot, problem.dynamics
    if torques is None:
        q, rest = problem.x0[: d.nq], np.zeros(d.dof)
        hold = np.asarray(robot.inverse_dynamics(q, rest, rest))[list(d.driven)]
        us = np.tile(np.where(np.isfinite(hold), hold, 0.0), (N, 1))
    else:
        us = numbers("torques", torques, (N, problem.nu)).copy()
    if problem.boxed:
        us = np.clip(us, problem.p[:-1, problem.where(LOWER)], problem.p[:-1, problem.where(UPPER)])
    if states is None:
        xs = np.tile(problem.x0, (N + 1, 1))
        xs[1:, d.nq : d.nq + d.dof] = 0.0
        xs[1:, d.nq + d.dof :] = us[:, : d.remembered]
        if problem.nu < d.dof and np.isfinite(moved := _rolled_out(code, problem, us)).all():
            xs = moved  # a floating base does not stay where it is
    else:
        xs = numbers("states", states, (N + 1, problem.ns)).copy()
        xs[0] = problem.x0
    return Iterate(xs, us)


def _rolled_out(code: Code, problem: Problem, us: np.ndarray) -> np.ndarray:
    """The states that torques lead to."""
    N, nx, nu = len(us), problem.nx, problem.nu
    still = {"k": np.zeros((N, nu)), "K": np.zeros((N, nu, nx))}
    xs = np.tile(problem.x0, (N + 1, 1))
    with np.errstate(all="ignore"):
        return code.trials(
            xs, us, still, np.zeros((N, nx)), np.ones(1), problem.p, np.zeros((N + 1, problem.nm))
        )[0][0]


def _first_multipliers(problem: Problem, given: Any) -> np.ndarray:
    """Zeros and the first penalty; nothing at the start, which is given."""
    rows, nm = problem.horizon + 1, problem.nm
    if given is not None:
        return numbers("multipliers", given, (rows, nm)).copy()
    m = np.zeros((rows, nm))
    if nm:
        m[1:, -2], m[1:, -1] = PENALTY, 1.0 / PENALTY
    return m
