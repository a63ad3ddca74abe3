"""One descent: feasibility-driven differential dynamic programming (FDDP) with limits of torques.

C. Mastalli et al., "Crocoddyl: an efficient and versatile framework for multi-contact optimal control", 2020. An
iteration linearises all stages, sweeps backward (``riccati``), and tries a fixed set of step lengths α at once. A trial
contracts the gaps f̄ of multiple shooting, x' = f(x, u) ⊞ (α − 1) f̄ (eq. 14), so a full step closes them. The
improvement that the quadratic model expects of a step (eqs. 16, 17), with δx where the trial leads, is

    −ΔJ(α) = −α (Σ kᵀ qu + f̄ᵀ(v + V f̄)) − α²/2 (Σ kᵀ Quu k − f̄ᵀ V f̄) + (1 − α) Σ f̄ᵀ V δx.

The longest step is taken that brings a tenth of it; where closing gaps costs something, the cost may grow by twice what
is expected (Goldstein's condition of the paper).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.errors import ConvergenceError
from linkwise.optimal import outcome
from linkwise.optimal.arrays_sweep import unpacked
from linkwise.optimal.code import Code
from linkwise.optimal.problem import LOWER, UPPER, Problem

LENGTHS = np.array([1.0, 0.5, 0.25, 0.125, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-10])
"""Step lengths that are tried, all in one call."""
SMALLEST, LARGEST = 1e-9, 1e9  # of the regularisation while it is not zero
FACTOR = 10.0  # by which it grows and shrinks
MOST_PATIENCE = 15  # long steps before less regularisation is tried again
SHORT, LONG = 0.01, 0.5  # step lengths up to which it grows, and beyond which it shrinks
GAP = 1e-9  # a larger gap is open
PART, TWICE = 0.1, 2.0  # of the promised improvement, or increase, that a step must bring, or may


@dataclass(eq=False)
class Iterate:
    """Where the solver is."""

    xs: np.ndarray
    us: np.ndarray
    mu: float = 0.0
    wait: int = 0
    """Long steps to take before the regularisation shrinks,"""
    patience: int = 0
    """and how many there were the last time."""
    cost: float = np.inf
    gap: float = np.inf
    iterations: int = 0
    history: list[float] = field(default_factory=list)
    gains: np.ndarray | None = None
    stationary: bool = False
    singular: bool = False
    why: str = ""


def minimised(code: Code, problem: Problem, at: Iterate, m: np.ndarray, most: int, tolerance: float) -> None:
    """Iterate until no step is expected to improve the cost."""
    stages, end = linearised(code, problem, at, m)
    while at.iterations < most:
        found = _swept(code, problem, at, stages, end)
        if found is None:
            at.why = f"the Hessian stays indefinite up to a regularisation of {LARGEST:g}"
            return
        gaps = np.ascontiguousarray(stages[3][::-1])
        promise = Promise.of(problem, found, gaps, end)
        at.gains = found["K"]
        if at.gap <= GAP and promise.full() <= tolerance * _scale(at):
            if at.mu == 0.0 or at.singular:
                at.stationary, at.why = True, ""
                return
            at.mu = 0.0  # the regularisation makes steps short: judge without it
            continue
        at.iterations += 1
        length = _stepped(code, problem, at, m, found, gaps, promise)
        if length <= SHORT:
            at.mu = max(SMALLEST, FACTOR * at.mu)
        elif length > LONG:
            _relaxed(at)
        if not length:
            at.wait = at.patience = min(2 * at.patience + 1, MOST_PATIENCE)
            if at.mu > LARGEST:
                # round-off decides: the best that can be found
                at.stationary = at.gap <= GAP and promise.full() <= 1e3 * tolerance * _scale(at)
                at.why = "" if at.stationary else "no step makes the cost smaller"
                return
            continue
        at.singular = False
        at.history.append(at.cost)
        stages, end = linearised(code, problem, at, m)
    at.why = f"{most} iterations were not enough"


def _relaxed(at: Iterate) -> None:
    """Less regularisation after a long step, but not at once where less of it has failed lately."""
    if at.wait > 0:
        at.wait -= 1
        return
    at.mu = at.mu / FACTOR if at.mu > SMALLEST else 0.0


def _scale(at: Iterate) -> float:
    return abs(at.cost) + 1e-9 * abs(at.history[0] if at.history else at.cost) + 1e-15


def linearised(code: Code, problem: Problem, at: Iterate, m: np.ndarray):
    """(stages with the last one first, end); notes cost and gap."""
    given = [np.ascontiguousarray(array[::-1]) for array in (at.xs[:-1], at.us, at.xs[1:], problem.p[:-1])]
    more = [np.ascontiguousarray(m[-2::-1])] if problem.nm else []
    stages = code.stages(*given, *more, threads=1)
    end = code.end(at.xs[-1], problem.p[-1], *([m[-1]] if problem.nm else []))
    at.cost = float(stages[4].sum() + end[2][0])
    at.gap = float(np.abs(stages[3]).max())
    if not (np.isfinite(at.cost) and np.isfinite(at.gap)):
        raise ConvergenceError(outcome.why_not_a_number(problem, at.xs, at.us))
    if not at.history:
        at.history.append(at.cost)
    return stages, end


def _swept(code: Code, problem: Problem, at: Iterate, stages: Any, end: Any) -> dict[str, np.ndarray] | None:
    """The backward sweep, with as much regularisation as it needs; None where none helps."""
    box = None
    if problem.boxed:
        us, p = at.us[::-1], problem.p[-2::-1]
        box = [np.ascontiguousarray(p[:, problem.where(side)] - us) for side in (LOWER, UPPER)]
    while at.mu <= LARGEST:
        found = code.sweep(stages, end, at.mu, box)
        if (
            found["gain"][:, 2].min() > 0.5
            and np.isfinite(found["k"]).all()
            and np.isfinite(found["K"]).all()
        ):
            return found
        at.mu, at.singular = max(SMALLEST, FACTOR * at.mu), True
    return None


@dataclass(frozen=True, eq=False)
class Promise:
    """How the quadratic model changes with the length α of a step: α slope + α²/2 curvature + (α − 1) f̄ᵀ V δx."""

    slope: float
    curvature: float
    pulls: np.ndarray | None
    """V f̄ of every gap, (N, nx); None where all are closed."""

    @classmethod
    def of(cls, problem: Problem, found: dict[str, np.ndarray], gaps: np.ndarray, end: Any) -> Promise:
        slope, curvature = found["gain"][:, :2].sum(axis=0)
        if np.abs(gaps).max() <= GAP:
            return cls(float(slope), float(curvature), None)
        v = np.vstack([found["value_gradient"][1:], end[0]])
        V = unpacked(np.vstack([found["value_hessian"][1:], end[1]]), problem.nx)
        pulls = np.einsum("tij,tj->ti", V, gaps)
        bent = float(np.einsum("ti,ti->", gaps, pulls))
        return cls(float(slope + np.einsum("ti,ti->", gaps, v)) + bent, float(curvature) - bent, pulls)

    def improvements(self, problem: Problem, xs: np.ndarray, trials: np.ndarray) -> np.ndarray:
        """−ΔJ(α) of every trial (lengths, N + 1, ns)."""
        change = LENGTHS * self.slope + 0.5 * LENGTHS**2 * self.curvature
        if self.pulls is not None:
            steps = problem.differences(np.broadcast_to(xs[1:], trials[:, 1:].shape), trials[:, 1:])
            change = change + (LENGTHS - 1.0) * np.einsum("ti,ati->a", self.pulls, steps)
        return -change

    def full(self) -> float:
        """The size of the change that a full step promises."""
        return abs(self.slope + 0.5 * self.curvature)


def _stepped(
    code: Code, problem: Problem, at: Iterate, m: np.ndarray, found: Any, gaps: np.ndarray, promise: Promise
) -> float:
    """Try all step lengths; take the longest one that brings what the model promises, and give its length, or 0."""
    held = np.zeros_like(gaps) if promise.pulls is None else gaps
    with np.errstate(all="ignore"):
        xs, us, costs = code.trials(at.xs, at.us, found, held, LENGTHS, problem.p, m)
        promised = promise.improvements(problem, at.xs, xs)
        gained = at.cost - costs
    sound = np.isfinite(costs) & np.isfinite(xs).all(axis=(1, 2)) & np.isfinite(us).all(axis=(1, 2))
    # where the model promises a larger cost, which closing gaps may need, it may grow by twice as much
    sound &= gained >= np.where(promised >= 0.0, PART * promised, TWICE * promised)
    if promise.pulls is None:
        sound &= gained > 0.0
    if not sound.any():
        return 0.0
    best = int(np.argmax(sound))
    at.xs, at.us, at.cost = xs[best], us[best], float(costs[best])
    return float(LENGTHS[best])
