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
from linkwise.optimal.arguments import whole as whole_number
from linkwise.optimal.iteration import REPORT, STEPS, iteration
from linkwise.optimal.solver import HARDER, MOST_PENALTY, PENALTY, SHRINKING

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
    """Iterations that improved the trajectory, of the last round."""
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
    rounds: int = 8,
    steps: Sequence[float] = STEPS,
    regularisation: float = 0.0,
    tolerance: float = 1e-5,
    dtype: str = "float64",
    threads: int | None = None,
) -> Solutions:
    """A fixed number of iterations for many problems at once, in the lanes of vectors and on all cores.

    Args:
        problem: the problem; every array below may have leading axes of its own, broadcast together.
        start: states at the begin (..., ns) or (q, q̇); by default the problem's.
        values: {name: (..., size) or (..., horizon + 1, size)} of run-time parameters; see ``problem.parameters``.
        states: trajectories to begin with (..., horizon + 1, ns); by default the start, at rest.
        torques: (..., horizon, m) [N·m or N]; by default those that hold the start against gravity.
        iterations: how many, from 1 on.
        rounds: updates of the multipliers of limits of states, with as many iterations after each.
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
    kernel = _kernel(problem, iterations, tuple(steps))
    begun = np.array([float(regularisation)])

    def improved(states: np.ndarray, torques: np.ndarray, m: np.ndarray | None) -> Any:
        given = [x0, _flat(p, 2), *([] if m is None else [_flat(m, 2)])]
        given += [_flat(states, 2), _flat(torques, 2), begun]
        return kernel(*(np.asarray(array, dtype) for array in given), threads=threads)

    if not problem.nm:
        return _solutions(problem, tolerance, *improved(states, torques, None))
    m, worst = _first_multipliers(problem), np.inf
    found = improved(states, torques, m)
    for _ in range(whole_number("rounds", rounds, 0)):
        c = _limits(problem, found[0], p)
        m, worst = _updated(m, c, worst)
        found = improved(found[0], found[1], m)
    return _solutions(problem, tolerance, *found, limits=_limits(problem, found[0], p), penalty=(p, m))


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


def _first_multipliers(problem: Problem) -> np.ndarray:
    """Zeros, and the first penalty, for all stages but the first."""
    table = np.zeros((problem.horizon + 1, problem.nm))
    table[1:, -2:] = PENALTY, 1.0 / PENALTY
    return table


def _updated(m: np.ndarray, c: np.ndarray, worst: Any) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers after a round, as ``solve`` changes them, and what is left of each problem's limits."""
    m = np.array(np.broadcast_to(m, (*c.shape[:-2], *m.shape[-2:])))
    own, mu = m[..., 1:, :-2], m[..., 1, -2]
    slack = np.abs(np.maximum(c, -own / mu[..., None, None])).max(axis=(-1, -2))
    m[..., 1:, :-2] = np.maximum(0.0, own + mu[..., None, None] * c)
    mu = np.where(slack > SHRINKING * worst, np.minimum(mu * HARDER, MOST_PENALTY), mu)
    m[..., 1:, -2], m[..., 1:, -1] = mu[..., None], 1.0 / mu[..., None]
    return m, slack


def _by_number(array: np.ndarray, rows: slice, batch: tuple[int, ...]) -> list[Any]:
    """Entries of the last axis, each (..., stages)."""
    part = array[..., rows, :]
    return list(np.moveaxis(np.broadcast_to(part, (*batch, *part.shape[-2:])), -1, 0))


def _limits(problem: Problem, states: np.ndarray, p: np.ndarray) -> np.ndarray:
    """c of all stages but the first: (..., horizon, number of limits)."""
    batch, later = states.shape[:-2], slice(1, None)
    found: list[Any] = problem.stage_limits(
        _by_number(states.astype(float), later, batch), _by_number(p, later, batch)
    )
    shape = (*batch, problem.horizon)
    return np.stack([np.broadcast_to(c, shape) for c in found], axis=-1)


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
    problem: Problem,
    tolerance: float,
    states: np.ndarray,
    torques: np.ndarray,
    gains: np.ndarray,
    report: np.ndarray,
    limits: np.ndarray | None = None,
    penalty: tuple[np.ndarray, np.ndarray] | None = None,
) -> Solutions:
    numbers = dict(zip(REPORT, np.moveaxis(report, -1, 0), strict=True))
    violation = np.zeros(report.shape[:-1])
    cost = numbers["cost"]
    if limits is not None and penalty is not None:
        violation = np.maximum(limits.max(axis=(-1, -2)), 0.0)
        batch, later = states.shape[:-2], slice(1, None)
        parts = [_by_number(array, later, batch) for array in (states.astype(float), *penalty)]
        added: Any = problem.penalty(*parts)
        cost = cost - np.sum(added, axis=-1)
    failed = ~np.isfinite(numbers["cost"])
    with np.errstate(invalid="ignore"):
        done = (numbers["gap"] <= tolerance) & (numbers["gradient"] <= tolerance) & (violation <= tolerance)
    return Solutions(
        states, torques, gains, cost, numbers["gap"], numbers["gradient"], numbers["accepted"].astype(int), violation,
        done & ~failed, failed, numbers["regularisation"],
    )  # fmt: skip
