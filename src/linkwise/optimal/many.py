"""Many problems of the same form at once: other starts and other run-time parameters, a fixed number of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from linkwise.errors import ShapeError
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.iteration import REPORT, STEPS, iteration

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel
    from linkwise.optimal.problem import Problem


@dataclass(frozen=True, eq=False)
class Solutions:
    """Results of ``solve_many``; leading axes are those of the problems."""

    states: np.ndarray
    """(..., horizon + 1, ns)."""
    torques: np.ndarray
    """(..., horizon, m) [N·m or N]; always finite."""
    gains: np.ndarray
    """(..., horizon, m, nx): δu = K δx around the result."""
    cost: np.ndarray
    gap: np.ndarray
    """Sum of what is missing between f(x, u) and the next state: 0 for a motion that the dynamics allow."""
    gradient: np.ndarray
    """Largest |∂cost/∂u| of a torque that is not at its limit, of the last sweep."""
    steps_taken: np.ndarray
    """Iterations that improved the trajectory."""
    violation: np.ndarray
    """Largest amount by which a limit of states is exceeded; 0 without such limits."""
    converged: np.ndarray
    """True where no gap, no violated limit and no gradient is left, within ``tolerance``."""
    failed: np.ndarray
    """True where the cost is not a number: the trajectory is the one that was given."""
    regularisation: np.ndarray


def solve_many(
    problem: Problem,
    *,
    start: Any = None,
    values: Mapping[str, Any] | None = None,
    states: Any = None,
    torques: Any = None,
    iterations: int = 20,
    steps: Sequence[float] = STEPS,
    regularisation: float = 0.0,
    tolerance: float = 1e-5,
    dtype: str = "float64",
    threads: int | None = None,
) -> Solutions:
    """A fixed number of iterations for many problems at once, in the lanes of vectors and on all cores.

    Limits of states count with multipliers of zero, as penalties; see ``Problem`` for exact ones.

    Args:
        problem: the problem; every array below may have leading axes of its own, broadcast together.
        start: states at the begin (..., ns) or (q, q̇); by default the problem's.
        values: {name: (..., size) or (..., horizon + 1, size)} of run-time parameters; see ``problem.parameters``.
        states: trajectories to begin with (..., horizon + 1, ns); by default the start, at rest.
        torques: (..., horizon, m) [N·m or N]; by default those that hold the start against gravity.
        iterations: how many, from 1 on.
        steps: step sizes that are tried in each.
        regularisation: added to the diagonal of the torques' Hessian at first.
        tolerance: of gaps, violations and gradients for ``converged``.
        dtype: "float64" or "float32".
        threads: number of threads; by default all cores.

    Raises:
        ProblemError: a value that is not a number, or a name that the problem does not have.
    """
    x0 = _starts(problem, start)
    p = _tables(problem, values or {})
    N, ns, m = problem.horizon, problem.ns, problem.nu
    if states is None:
        states = np.repeat(x0[..., None, :], N + 1, axis=-2)
    states = _shaped("states", states, (N + 1, ns))
    if torques is None:
        torques = np.repeat(holding_torques(problem, x0)[..., None, :], N, axis=-2)
    torques = _shaped("torques", torques, (N, m))
    given = [x0, _flat(p, 2), *([_flat(_penalties(problem), 2)] if problem.nm else [])]
    given += [_flat(states, 2), _flat(torques, 2), np.array([float(regularisation)])]
    kernel = _kernel(problem, iterations, tuple(steps))
    found = kernel(*(np.asarray(array, dtype) for array in given), threads=threads)
    return _solutions(problem, p, x0, tolerance, *found)


def holding_torques(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Torques (..., m) that hold states (..., ns) against gravity."""
    robot = problem.dynamics.robot
    return np.asarray(robot.gravity_torques(x[..., : robot.nq]))[..., list(problem.dynamics.driven)]


_kernels: WeakKeyDictionary[Any, dict[Any, Kernel]] = WeakKeyDictionary()


def _kernel(problem: Problem, iterations: int, steps: tuple[float, ...]) -> Kernel:
    """Made once for problems that differ in numbers alone: those share their dynamics."""
    kept = _kernels.setdefault(problem.dynamics, {})
    found = kept.get((iterations, steps))
    if found is None:
        found = kept[iterations, steps] = iteration(problem, iterations=iterations, steps=steps)
    return found


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


def _tables(problem: Problem, values: Mapping[str, Any]) -> np.ndarray:
    """(..., horizon + 1, np)."""
    rows = problem.horizon + 1
    p = problem.p
    for name, value in values.items():
        at = problem.where(name)
        size = at.stop - at.start
        value = np.asarray(value, float)
        arguments.numbers(name, value)
        if value.ndim >= 2 and value.shape[-2:] == (rows, size):
            table = value
        elif value.ndim >= 1 and value.shape[-1] == size:
            table = value[..., None, :]
        else:
            raise ShapeError(f"{name}: expected (..., {size}) or (..., {rows}, {size}), got {value.shape}")
        batch = np.broadcast_shapes(p.shape[:-2], table.shape[:-2])
        p = np.array(np.broadcast_to(p, (*batch, *p.shape[-2:])))
        p[..., at] = table
    return p


def _penalties(problem: Problem) -> np.ndarray:
    """Multipliers of zero, and a penalty, for all stages but the first."""
    table = np.zeros((problem.horizon + 1, problem.nm))
    table[1:, -2:] = 1e3, 1e-3
    return table


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


def _flat(array: np.ndarray, axes: int) -> np.ndarray:
    return array.reshape(*array.shape[:-axes], -1)


def _solutions(
    problem: Problem, p: np.ndarray, x0: np.ndarray, tolerance: float, states, torques, gains, report
) -> Solutions:
    numbers = dict(zip(REPORT, np.moveaxis(report, -1, 0), strict=True))
    violation = np.zeros(report.shape[:-1])
    if problem.limits:
        violation = _violations(problem, states, p)
    failed = ~np.isfinite(numbers["cost"])
    with np.errstate(invalid="ignore"):
        done = (numbers["gap"] <= tolerance) & (numbers["gradient"] <= tolerance) & (violation <= tolerance)
    return Solutions(
        states, torques, gains, numbers["cost"], numbers["gap"], numbers["gradient"], numbers["accepted"].astype(int),
        violation, done & ~failed, failed, numbers["regularisation"],
    )  # fmt: skip


def _violations(problem: Problem, states: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Largest excess of a limit over the horizon."""
    later = np.moveaxis(states[..., 1:, :].astype(float), -1, 0)
    table = np.moveaxis(
        np.broadcast_to(p[..., 1:, :], (*states.shape[:-2], *p[..., 1:, :].shape[-2:])), -1, 0
    )
    found: list[Any] = problem.stage_limits(list(later), list(table))
    limits = [np.broadcast_to(c, later.shape[1:]) for c in found]
    return np.maximum(np.max(limits, axis=0).max(axis=-1), 0.0)
