"""Limits of states by barriers: a path of problems whose solutions come near the limits from inside.

Every limit c ≤ 0 adds t/(−c) to the cost, continued by a parabola near and beyond the limit, so that a guess may be
outside. From a large height t on, each problem is solved roughly and the next one, with a smaller t, begins there: a
few iterations each, where the kinks of an augmented Lagrangian take thousands. The slopes of the barriers are
multipliers; Σ λ |c| bounds how much of the cost the barriers still hold back. The end of the path is handed to the
augmented Lagrangian, which makes it exact where it converges soon; else it stands, inside of all limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.optimal import outcome
from linkwise.optimal.code import code_of
from linkwise.optimal.descent import Iterate, linearised, minimised
from linkwise.optimal.quadratic import walled

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem
    from linkwise.optimal.result import Solution

FIRST = 1e-3
"""Height of the first barriers, by the cost of the first guess."""
LOWER = 0.05
"""From one height to the next."""
STAGES = 20
"""At most; the last height is 1e-28 of that cost."""
EDGE = 0.3
"""Distance from a limit at which the parabola begins: this times √(height/cost), at most this."""
ROUGHLY, FINELY, FINE = 1e-3, 1e-6, 1e-8
"""Relative improvement at which a problem of the path counts as solved, at heights above and below ``FINE``."""
HELD_BACK = 1e-6
"""Of the cost, that barriers may hold back at the end of the path."""
POLISHING = 40
"""Iterations of the augmented Lagrangian at the end of the path."""


def solution(
    problem: Problem,
    at: Iterate,
    m: np.ndarray,
    most: int,
    tolerance: float,
    limit_tolerance: float,
    exact: Callable[..., bool],
) -> Solution:
    """The result for a problem with limits.

    Args:
        problem: with limits of states or tips.
        at: the first guess.
        m: table of multipliers with the first penalty.
        most: iterations in all.
        tolerance: as for ``solve``.
        limit_tolerance: as for ``solve``.
        exact: the augmented Lagrangian that ends the path; whether it converged.
    """
    walls = problem.with_barrier()
    code = code_of(walls)
    table = np.zeros_like(m)
    table[:, -1] = 1.0
    linearised(code, walls, at, table)
    scale = abs(at.cost) + 1e-12
    at.history.clear()
    height, last, added = FIRST * scale, False, 0.0
    slope = np.zeros_like(m[1:, :-2])
    for stage in range(STAGES):
        table[1:, -2], table[1:, -1] = height, EDGE * min(1.0, np.sqrt(height / scale))
        at.mu, at.stationary = 0.0, False
        enough = max(tolerance, ROUGHLY if height > FINE * scale else FINELY)
        minimised(code, walls, at, table, most, enough)
        c = np.asarray(code.limits(at.xs, problem.p))[1:]
        wall: Any = walled(c, height, float(table[1, -1]))  # type: ignore[arg-type]
        added, slope = float(np.sum(wall[0])), np.asarray(wall[1])
        held_back = float(np.sum(slope * np.abs(c)))
        last = held_back <= HELD_BACK * abs(at.cost - added)
        if last or at.iterations >= most or (not at.stationary and at.why):
            break
        if stage < STAGES - 1:
            height *= LOWER
    multipliers = m.copy()
    multipliers[1:, :-2] = slope
    if last and at.stationary:
        polished = replace(at, history=[], why="")
        fine = multipliers.copy()
        budget = min(most, at.iterations + POLISHING)
        if exact(code_of(problem), problem, polished, fine, budget, tolerance, limit_tolerance):
            polished.history = [*at.history, *polished.history]
            return outcome.solution(problem, polished, fine, limit_tolerance)
    elif at.stationary:
        at.stationary = False
        at.why = f"{STAGES} heights of the barriers were not enough"
    return outcome.solution(problem, at, multipliers, limit_tolerance, added)
