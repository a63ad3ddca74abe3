"""Many problems of the same form at once: other starts and other run-time parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import ShapeError, UnknownNameError
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.arguments import whole as whole_number
from linkwise.optimal.descent import GAP, LENGTHS, Descent
from linkwise.optimal.outcome import amounts, cost_of
from linkwise.optimal.parameter_table import LOWER, UPPER, check_sides, check_values
from linkwise.optimal.solver import guess, minimised

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem

WORSE = 1e-6  # of the cost, from which two optima are different


@dataclass(frozen=True, eq=False)
class Solutions:
    """Results of ``solve_many``; leading axes are those of the problems."""

    states: np.ndarray
    """(..., horizon + 1, ns)."""
    torques: np.ndarray
    """(..., horizon, m) [N·m or N]; always finite. Where durations are chosen, (..., horizon, m + 1) with these."""
    gains: np.ndarray
    """(..., horizon, m, nx): δu = K δx around the result."""
    cost: np.ndarray
    gap: np.ndarray
    """Sum of what is missing between f(x, u) and the next state: 0 for a motion that the dynamics allow."""
    gradient: np.ndarray
    """Largest |∂cost/∂u| of a torque that is not at its limit, of the last sweep."""
    steps_taken: np.ndarray
    """Iterations of each problem."""
    violation: np.ndarray
    """Largest amount by which a limit of states is exceeded; 0 without such limits."""
    converged: np.ndarray
    """As ``Solution.converged``."""
    failed: np.ndarray
    """True where the cost is not a number: the trajectory is the one that was given."""
    regularisation: np.ndarray
    multipliers: np.ndarray
    """Of the limits, (..., horizon + 1, nm)."""
    worse: np.ndarray
    """True where a first guess of a problem (the same start and parameters) ended in an optimum that costs more than
    that of another first guess of it, by more than 10⁻⁶ of the cost."""


def solve_many(
    problem: Problem,
    *,
    start: Any = None,
    values: Mapping[str, Any] | None = None,
    states: Any = None,
    torques: Any = None,
    iterations: int = 200,
    steps: Sequence[float] = LENGTHS,
    tolerance: float = 1e-9,
    limit_tolerance: float = 1e-6,
    dtype: str = "float64",
    threads: int | None = None,
) -> Solutions:
    """Many problems at once, in the lanes of vectors and on all cores: each gets the result of ``solve``.

    Args:
        problem: the problem; every array below may have leading axes of its own, broadcast together.
        start: states at the begin (..., ns) or (q, q̇); by default the problem's.
        values: {name: (..., size) or (..., horizon + 1, size)} of run-time parameters; see ``problem.parameters``.
            What could be both, of horizon + 1 problems, is refused.
        states: trajectories to begin with (..., horizon + 1, ns); by default those of ``solve``.
        torques: (..., horizon, m) [N·m or N]; by default those that hold the start against gravity.
        iterations: most iterations of a problem.
        steps: step sizes that are tried in each.
        tolerance: as for ``solve``; in single precision not below 1e-5.
        limit_tolerance: as for ``solve``.
        dtype: "float64" or "float32".
        threads: number of threads; by default all cores.

    Raises:
        ProblemError: a value that is not a number, or a name that the problem does not have.
    """
    if dtype not in GAP:
        raise UnknownNameError(f"dtype: expected float64 or float32, got {dtype!r}")
    x0 = _starts(problem, start)
    N, ns, nu = problem.horizon, problem.ns, problem.nu
    lanes = [np.shape(each)[:-2] for each in (states, torques) if each is not None]
    p = _tables(problem, values or {}, np.broadcast_shapes(x0.shape[:-1], *lanes))
    given = [x0, p]
    if torques is not None and np.shape(torques)[-1:] == (problem.dynamics.motors,):
        nu = problem.dynamics.motors  # durations are those of the problem
    for name, array, shape in (("states", states, (N + 1, ns)), ("torques", torques, (N, nu))):
        given.append(np.zeros(shape) if array is None else _shaped(name, array, shape))
    ranks = (1, 2, 2, 2)
    batch = np.broadcast_shapes(
        *(each.shape[: each.ndim - rank] for each, rank in zip(given, ranks, strict=True))
    )
    flat = [
        np.array(np.broadcast_to(each, (*batch, *each.shape[each.ndim - rank :]))).reshape(
            -1, *each.shape[each.ndim - rank :]
        )
        for each, rank in zip(given, ranks, strict=True)
    ]
    guesses = [
        None if array is None else each for array, each in zip((states, torques), flat[2:], strict=True)
    ]
    xs, us = guess(problem, flat[0], flat[1], *guesses)
    table = np.zeros((len(xs), N + 1, problem.nm))
    at = Descent(problem, flat[0], flat[1], xs, us, table, dtype, threads, tuple(steps))
    minimised(
        at,
        whole_number("iterations", iterations, 1),
        arguments.number("tolerance", tolerance, above=0.0),
        arguments.number("limit_tolerance", limit_tolerance, above=0.0),
    )
    violation = np.zeros(len(xs))
    if problem.nm:
        violation = np.maximum(amounts(problem, at.xs, at.us, at.p).max(axis=(1, 2)), 0.0)
    converged = at.stationary & (violation <= limit_tolerance) & ~at.failed
    cost = cost_of(at)
    found = (
        at.xs, at.us, at.gains, cost, at.gap, at.of("gradient"), at.iterations, violation, converged,
        at.failed, at.mu, at.m, worse_optima(flat[0], flat[1], cost, converged),
    )  # fmt: skip
    return Solutions(*(array.reshape((*batch, *array.shape[1:])) for array in found))


def worse_optima(x0: np.ndarray, p: np.ndarray, cost: np.ndarray, converged: np.ndarray) -> np.ndarray:
    """Which rows converged to a higher cost than another row of the same problem.

    Args:
        x0: starts (B, ns).
        p: run-time parameters (B, horizon + 1, np).
        cost: of the results (B,).
        converged: (B,).
    """
    best: dict[bytes, float] = {}
    keys = [x.tobytes() + row.tobytes() for x, row in zip(x0, p, strict=True)]
    for key, value, good in zip(keys, cost, converged, strict=True):
        if good:
            best[key] = min(value, best.get(key, np.inf))
    least = np.array([best.get(key, np.inf) for key in keys])
    return converged & (cost - least > WORSE * np.abs(cost))


def holding_torques(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Torques (..., m) that hold states (..., ns) against gravity."""
    robot = problem.dynamics.robot
    return np.asarray(robot.gravity_torques(x[..., : robot.nq]))[..., list(problem.dynamics.driven)]


def _starts(problem: Problem, start: Any) -> np.ndarray:
    if start is None:
        return problem.x0
    if isinstance(start, tuple) and len(start) == 2:
        nq, n = problem.robot.nq, problem.robot.dof
        parts = [
            _shaped("start: q", start[0], (nq,)),
            _shaped("start: qd", start[1], (n,)),
            problem.x0[nq + n :],
        ]
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        start = np.concatenate([np.broadcast_to(part, (*batch, part.shape[-1])) for part in parts], axis=-1)
    return _shaped("start", start, (problem.ns,))


def _tables(problem: Problem, values: Mapping[str, Any], lanes: tuple[int, ...]) -> np.ndarray:
    """(..., horizon + 1, np), for starts and guesses with these leading axes."""
    rows = problem.horizon + 1
    p = problem.p
    for name, value in values.items():
        at = problem.where(name)
        size = at.stop - at.start
        value = np.asarray(value, float)
        if name not in (LOWER, UPPER):
            arguments.numbers(name, value)
        elif np.isnan(value).any():
            raise ProblemError(f"{name}: expected numbers, got NaN")
        axes = value.ndim - 1
        both = 0 < axes <= len(lanes) and value.shape[:-1] == lanes[-axes:] and value.shape[-1] == size
        if both and value.shape[-2] == rows:
            raise ProblemError(
                f"{name}: {value.shape} may be a row for each of {rows} problems or for each of {rows} stages; give "
                f"(1, {rows}, {size}) for stages, ({rows}, {rows}, {size}) for problems"
            )
        if value.ndim >= 2 and value.shape[-2:] == (rows, size):
            table = value
        elif value.ndim >= 1 and value.shape[-1] == size:
            table = value[..., None, :]
        else:
            raise ShapeError(f"{name}: expected (..., {size}) or (..., {rows}, {size}), got {value.shape}")
        batch = np.broadcast_shapes(p.shape[:-2], table.shape[:-2])
        p = np.array(np.broadcast_to(p, (*batch, *p.shape[-2:])))
        p[..., at] = table
        check_values(problem, name, table)
    check_sides(problem, p)
    return p


def _shaped(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.asarray(value, float)
    if found.shape[-len(shape) :] != shape:
        wanted = ", ".join(map(str, shape))
        raise ShapeError(f"{name}: expected (..., {wanted}), got {found.shape}")
    if not np.isfinite(found).all():
        raise ProblemError(
            f"{name}: expected finite numbers, got {np.count_nonzero(~np.isfinite(found))} others"
        )
    return found
