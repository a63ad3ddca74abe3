"""What came out of a solution: limits that are not kept, targets that are missed, and why, in words."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.optimal.costs import JointTracking, Own, TipTracking, cost_value
from linkwise.optimal.descent import GAP, costs_of, limit_values
from linkwise.optimal.quadratic import walled
from linkwise.optimal.result import Missed, Solution, Violated

if TYPE_CHECKING:
    from linkwise.optimal.descent import Descent
    from linkwise.optimal.problem import Problem

OPEN = GAP["float64"]

HIDES = 1e3  # times the cost: what limits add, and a difference of both has lost digits
NEAR = {"m": 1e-3, "rad": 1e-3, "rad or m": 1e-3}  # a target that is missed by less counts as met


def solution(problem: Problem, at: Descent, limit_tolerance: float, most: int) -> Solution:
    """The result of a single problem with everything that is to be said about it."""
    d, xs = problem.dynamics, at.xs[0]
    violations = tuple(violated(problem, xs, at.us[0], limit_tolerance))
    missed = tuple(missed_targets(problem, xs))
    converged = bool(at.stationary[0]) and not violations
    return Solution(
        problem,
        xs[:, : d.nq].copy(),
        xs[:, d.nq : d.nq + d.dof].copy(),
        at.us[0, :, : d.motors].copy(),
        at.gains[0].copy(),
        float(cost_of(at)[0]),
        converged,
        int(at.iterations[0]),
        float(at.gap[0]),
        violations,
        missed,
        _words(at, converged, violations, most),
        np.array(at.history)[:, 0],
        float(at.mu[0]),
        at.m[0] if problem.nm else None,
        float(at.of("gradient")[0]),
        float(max(amounts(problem, xs, at.us[0], problem.p).max(), 0.0)) if problem.nm else 0.0,
        xs[1:, -1].copy() if d.timed else None,
    )


def _words(at: Descent, converged: bool, violations: tuple[Violated, ...], most: int) -> str:
    if converged:
        text = f"converged after {at.iterations[0]} iterations"
        if at.of("sound")[0] < 1.0:
            text += "; the costs do not determine all torques: add a cost of effort for a unique solution"
        return text
    parts: list[str] = []
    if at.iterations[0] >= most:
        parts.append(f"{most} iterations were not enough")
    elif at.stuck[0]:
        parts.append("no step makes the cost smaller")
    if violations:
        what = "limits that no motion nearby keeps" if at.stationary[0] else "limits that are not kept yet"
        parts.append(f"{what}: {'; '.join(map(str, violations[:5]))}")
    if at.gap[0] > OPEN:
        parts.append(f"gaps of {at.gap[0]:.2g} are left between the states and the dynamics")
    return "not converged: " + "; ".join(parts or ["the multipliers of the limits still change"])


def cost_of(at: Descent) -> np.ndarray:
    """The costs, (B,), without what limits add while they are sought."""
    if not at.problem.nm:
        return at.cost
    more = added(at)
    cost = at.cost - more
    hidden = np.abs(more) > HIDES * np.abs(cost)  # limits that cannot be kept: multipliers without bound
    return np.where(hidden, plain_cost(at), cost) if hidden.any() else cost


def plain_cost(at: Descent) -> np.ndarray:
    """The costs, (B,), stage by stage: in plain NumPy, or compiled where a function of the user's own is traced."""
    N, problem = at.problem.horizon, at.problem
    with np.errstate(all="ignore"):
        if any(isinstance(cost, Own) for cost in (*problem.costs, *problem.terminal)):
            running, last = costs_of(problem)
            stages = np.asarray(running(at.xs[:, :N], at.us, at.p[:, :N]))[..., 0]
            return stages.sum(axis=1) + np.asarray(last(at.xs[:, N], at.p[:, N]))[..., 0]
        rows = [list(np.moveaxis(table, -1, 0)) for table in (at.xs[:, :N], at.us, at.p[:, :N])]
        total: Any = problem.stage_cost(*rows)
        end: Any = problem.terminal_cost(list(at.xs[:, N].T), list(at.p[:, N].T))
        return np.broadcast_to(total, (len(at.x0), N)).sum(axis=1) + end


def added(at: Descent) -> np.ndarray:
    """What limits add to the costs that were minimised, (B,)."""
    if not at.problem.nm:
        return np.zeros(len(at.x0))
    m = at.m
    value, _, _ = walled(at.limits(), m[..., :-2], m[..., -2:-1], m[..., -1:])
    return np.asarray(value).sum(axis=(1, 2))


def amounts(problem: Problem, xs: np.ndarray, us: np.ndarray, p: np.ndarray) -> np.ndarray:
    """c of all limits, (..., horizon + 1, number of limits), also at the start, which cannot be changed.

    Args:
        problem: a problem with limits.
        xs: states (..., horizon + 1, ns).
        us: torques (..., horizon, m).
        p: run-time parameters (..., horizon + 1, np).
    """
    everywhere = np.ones_like(problem.limited)
    everywhere[-1, problem.state_limit_count :] = False
    return limit_values(problem, xs, us, p, everywhere)


def violated(problem: Problem, xs: np.ndarray, us: np.ndarray, tolerance: float) -> list[Violated]:
    """Every limit that is exceeded by more than the tolerance, at its worst; the largest first."""
    if not problem.nm:
        return []
    c = amounts(problem, xs, us, problem.p)
    found = []
    for k, (what, unit) in enumerate(problem.limit_words):
        t = int(np.argmax(c[:, k]))
        if c[t, k] > tolerance:
            time = float(xs[1 : t + 1, -1].sum()) if problem.dynamics.timed else t * problem.step
            found.append(Violated(what, float(c[t, k]), unit, t, time))
    return sorted(found, key=lambda each: -each.size)


def missed_targets(problem: Problem, xs: np.ndarray) -> list[Missed]:
    """Targets that the last state is not near to: of terminal costs, or of running ones where there are none."""
    robot, q, p = problem.robot, xs[-1, : problem.dynamics.nq], problem.p
    found = []
    for cost in problem.terminal or problem.costs:
        row = p[-1] if problem.terminal else p[-2]
        if isinstance(cost, JointTracking) and cost.target is not None:
            wanted = row[problem.where(f"{cost.label}.target")]
            step = np.asarray(robot.difference(wanted, q))[row[problem.where(f"{cost.label}.weight")] > 0]
            found.append(Missed(cost.label, float(np.abs(step).max(initial=0.0)), "rad or m"))
        if isinstance(cost, TipTracking):
            found += _missed_poses(problem, cost, row, q)
    return [missed for missed in found if missed.size > NEAR[missed.unit] or missed.unreachable]


def _missed_poses(problem: Problem, cost: TipTracking, row: np.ndarray, q: np.ndarray) -> list[Missed]:
    from linkwise.algorithms import dense
    from linkwise.optimal.rotations import matrix_of_quaternion, rotation_vector

    found = []
    T = np.asarray(problem.robot.pose(q, frame=cost.frame))
    if cost.position is not None:
        wanted = row[problem.where(f"{cost.label}.position")]
        off = float(np.linalg.norm(T[:3, 3] - wanted))
        found.append(Missed(cost.label, off, "m", _out_of_reach(problem, cost, wanted)))
    if cost.orientation is not None:
        R: Any = matrix_of_quaternion(row[problem.where(f"{cost.label}.orientation")].tolist())
        turn = rotation_vector(dense.product(dense.transposed(R), T[:3, :3].tolist()))
        found.append(
            Missed(f"orientation of {cost.label}", float(np.linalg.norm(np.array(turn, float))), "rad")
        )
    return found


def _out_of_reach(problem: Problem, cost: TipTracking, target: np.ndarray) -> float:
    """At least so far beyond the stretched links [m]; 0 where joints slide or float, which has no such bound."""
    mechanism, robot = problem.dynamics.links, problem.robot
    body, _ = robot.locate(cost.frame)
    if body < 0:
        return 0.0
    chain = [body, *mechanism.ancestors(body)]
    if any(
        mechanism[k].free or any(not axis.turns or axis.screws for axis in mechanism[k].axes) for k in chain
    ):
        return 0.0
    from linkwise.algorithms import coupling
    from linkwise.algorithms.kinematics import link_poses

    at: Any = coupling.expanded(mechanism, problem.x0[: robot.nq].tolist(), positions=True)
    poses = link_poses(mechanism, at)
    points = [np.asarray(robot.pose(problem.x0[: robot.nq], frame=cost.frame))[:3, 3]]
    points += [np.array([*poses[k].position], dtype=float) for k in chain]
    reach = sum(float(np.linalg.norm(a - b)) for a, b in pairwise(points))
    beyond = float(np.linalg.norm(target - points[-1])) - reach
    return beyond if beyond > 1e-9 else 0.0


@np.errstate(all="ignore")
def why_not_a_number(problem: Problem, xs: np.ndarray, us: np.ndarray) -> str:
    """Which cost, limit or step is not a number, at the first stage where one is."""
    for t in range(problem.horizon + 1):
        x, p = xs[t].tolist(), problem.p[t].tolist()
        last = t == problem.horizon
        u = None if last else us[t].tolist()
        point = problem._point(x, u, p)
        for cost in problem.terminal if last else problem.costs:
            if not np.isfinite(float(cost_value([cost], point, 1.0))):  # type: ignore[arg-type]
                return f"the cost {cost.label!r} is not a finite number at stage {t} of the first guess"
        if u is not None:
            following = np.array(problem.next_state(x, u, p), dtype=float)
            if not np.isfinite(following).all():
                return (
                    f"the dynamics give no finite state after stage {t} of the first guess: "
                    "is the mass matrix singular?"
                )
        for (what, _), c in zip(problem.limit_words, problem.stage_limits(x, p), strict=False):
            if not np.isfinite(float(c)):  # type: ignore[arg-type]
                return f"the limit {what!r} is not a finite number at stage {t} of the first guess"
    return "the sum of the costs is not a finite number: use smaller weights"
