"""Trajectories of problems of one form while they are improved: each by itself, all by the same compiled iteration.

An iteration is that of ``iteration``. A problem is left when the quadratic model promises no better cost, when no step
is better any more, or when its iterations are used up. The others go on, so the result of a problem does not depend on
which others are solved beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.optimal import acceptance
from linkwise.optimal.iteration import iteration
from linkwise.optimal.iterations import REPORT
from linkwise.optimal.parameter_table import units_of_cost

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem

LENGTHS = (1.0, 0.5, 0.25, 0.125, 2.0**-4, 2.0**-5, 2.0**-6, 2.0**-8)
"""Step sizes that are tried: short ones where limits bend the cost sharply."""
GAP = {"float64": 1e-8, "float32": 1e-3}  # a larger sum of gaps is open
ROUND_OFF = 1e-7  # relative improvement: a smaller promise, with no step that is better, is one of round-off
NEAR = 1e-5  # relative improvement that is left: before, second derivatives may lead to another optimum
PATIENCE = 30  # iterations without second derivatives of the dynamics
HOPELESS = 1e-2  # regularisation from which on such a problem is left
ZERO = 1e-15  # cost, in units of the largest weight, that is one of rounding
FEW = {"float64": 0.0, "float32": 1e-5}  # relative improvement that cannot be told in this precision


@dataclass(eq=False)
class Descent:
    """Where the solver is: one row for each problem."""

    problem: Problem
    x0: np.ndarray
    """(B, ns)."""
    p: np.ndarray
    """(B, horizon + 1, np)."""
    xs: np.ndarray
    """(B, horizon + 1, ns)."""
    us: np.ndarray
    """(B, horizon, m)."""
    m: np.ndarray
    """Of limits, (B, horizon + 1, nm)."""
    dtype: str = "float64"
    threads: int | None = None
    steps: tuple[float, ...] = LENGTHS
    history: list[np.ndarray] = field(default_factory=list[np.ndarray])
    """Costs after every iteration."""

    def __post_init__(self) -> None:
        count, N, d = len(self.x0), self.problem.horizon, self.problem
        self.unit = units_of_cost(d, self.p)
        self.gains = np.zeros((count, N, d.nu, d.nx))
        self.report = np.full((count, len(REPORT)), np.nan)
        self.mu, self.cost, self.first = np.zeros(count), np.full(count, np.inf), np.full(count, np.nan)
        self.gap = np.full(count, np.inf)
        self.iterations = np.zeros(count, int)
        self.stationary, self.stuck, self.failed = (np.zeros(count, bool) for _ in range(3))

    def of(self, name: str) -> np.ndarray:
        """A number of the last reports, (B,)."""
        return self.report[:, REPORT.index(name)]

    def minimise(self, problem: Problem, active: np.ndarray, tolerance: np.ndarray, most: int) -> None:
        """Iterate until no step is expected to improve the cost.

        Gauss and Newton's method leaves out second derivatives of the dynamics. Where torques of a motion are large it
        converges slowly, so that motions which are ``NEAR`` an optimum after ``PATIENCE`` iterations go on with them.

        Args:
            problem: the problem, with or without barriers.
            active: which rows, (B,).
            tolerance: relative improvement that is not worth a step, (B,).
            most: iterations of a row in all.
        """
        taken, (curved, refused) = np.zeros(len(active), int), np.zeros((2, len(active)), bool)
        self.stationary[active] = self.stuck[active] = False
        self.mu[active], self.gap[active] = 0.0, np.inf
        going = active & (self.iterations < most) & ~self.failed
        kernels: dict[bool, Kernel] = {}  # by ``curved``; finding one describes the whole robot, so once
        while going.any():
            at = np.flatnonzero(going)
            before, used = self.gap[at], self.mu[at]
            for bent in (False, True):
                some = at[curved[at] == bent]
                if some.size:
                    if bent not in kernels:
                        kernels[bent] = kernel_of(problem, 1, self.steps, bent)
                    self._iterate(kernels[bent], some)
            self.history.append(self.cost.copy())
            taken[at] += 1
            enough = np.maximum(tolerance[at], FEW[self.dtype])
            open_ = np.maximum(before, self.gap[at]) > GAP[self.dtype]
            promise = 0.5 * np.abs(self.of("expected")[at]) / self._scale(at)
            small = ~open_ & (self.of("sound")[at] > 0.5)
            done = small & (promise <= enough) & (used == 0.0)
            rejected = self.of("step")[at] == 0.0
            # steps without regularisation were refused here: it must grow until one is taken
            refused[at] = rejected & (refused[at] | (used == 0.0))
            # regularisation makes promises small: without it
            again = small & (promise <= enough) & (used > 0.0) & ~refused[at]
            few = small & (promise <= np.maximum(enough, ROUND_OFF)) & (used >= HOPELESS)
            self.mu[at[again]] = 0.0
            self.stationary[at] = done | (rejected & few)
            self.stuck[at] = rejected & (used >= acceptance.LARGEST) & ~self.stationary[at]
            self.failed[at] = ~np.isfinite(self.cost[at])
            over = self.stationary | self.stuck | self.failed | (self.iterations >= most)
            going = going & ~over
            if problem.dynamics.bends:
                slow = at[small & (promise <= NEAR) & (taken[at] >= PATIENCE) & ~curved[at] & going[at]]
                curved[slow], self.mu[slow] = True, 0.0

    def _iterate(self, kernel: Kernel, at: np.ndarray) -> None:
        N = self.problem.horizon
        tables = [self.p[at], *([self.m[at]] if self.problem.nm else []), self.xs[at], self.us[at]]
        given = [self.x0[at], *(table.reshape(len(at), -1) for table in tables), self.mu[at, None]]
        found = kernel(*(np.asarray(array, self.dtype) for array in given), threads=self.threads)
        self.xs[at], self.us[at], self.gains[at], self.report[at] = found
        assert self.xs.shape[1] == N + 1
        self.cost[at], self.gap[at], self.mu[at] = (
            self.of(key)[at] for key in ("cost", "gap", "regularisation")
        )
        self.first[at] = np.where(np.isnan(self.first[at]), self.cost[at], self.first[at])
        self.iterations[at] += 1

    def _scale(self, at: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.abs(self.cost[at]) + 1e-9 * np.abs(self.first[at]) + ZERO * self.unit[at]

    def limits(self) -> np.ndarray:
        """c of all stages, (B, horizon + 1, number of limits); −1 where a limit does not hold, see ``limited``."""
        return limit_values(self.problem, self.xs, self.us, self.p, self.problem.limited)


def kernel_of(problem: Problem, iterations: int, steps: tuple[float, ...], curved: bool = False) -> Kernel:
    """The iteration of a problem, shared by all problems of the same structure."""
    key = ("iteration", problem.horizon, iterations, steps, problem.barrier, curved)
    made = {"iterations": iterations, "steps": steps, "constant_time": False, "curved": curved}
    return _shared(problem, key, lambda: iteration(problem, **made))


def limit_values(
    problem: Problem, xs: np.ndarray, us: np.ndarray, p: np.ndarray, counted: np.ndarray
) -> np.ndarray:
    """c of trajectories, (..., horizon + 1, number of limits); −1 where ``counted`` is False."""
    states, c = problem.state_limit_count, np.full((*xs.shape[:-1], len(problem.limit_words)), -1.0)
    if states:
        c[..., :states] = np.asarray(limits_of(problem)(xs, p))
    if states < c.shape[-1]:
        c[..., :-1, states:] = np.asarray(force_limits_of(problem)(xs[..., :-1, :], us, p[..., :-1, :]))
    return np.where(counted, c, -1.0)


def force_limits_of(problem: Problem) -> Kernel:
    """(x, u, p) -> c of the forces of contacts."""
    shapes = {"limits": (len(problem.limit_words) - problem.state_limit_count,)}
    inputs = {"u": problem.nu, "p": problem.np}
    return _shared(
        problem,
        "force limits",
        lambda: _kernel(problem, "optimal_force_limits", problem.force_limits, inputs, shapes),
    )


def forces_of(problem: Problem) -> Kernel:
    """(x, u, p) -> forces of contacts."""

    def forces(x: Any, u: Any, p: Any) -> Any:
        return problem._point(x, u, p).forces

    assert problem.dynamics.contacts is not None
    shapes = {"forces": (problem.dynamics.contacts.rows,)}
    inputs = {"u": problem.nu, "p": problem.np}
    return _shared(problem, "forces", lambda: _kernel(problem, "optimal_forces", forces, inputs, shapes))


def contact_jacobian_of(problem: Problem) -> Kernel:
    """(x) -> J of all frames that the ground may hold."""
    d = problem.dynamics
    assert d.contacts is not None
    contacts, shapes = d.contacts, {"jacobian": (d.contacts.rows, d.dof)}

    def jacobian(x: Any) -> Any:
        return contacts.jacobian(d, x[: d.nq])

    return _shared(
        problem, "contact jacobian", lambda: _kernel(problem, "optimal_contacts", jacobian, {}, shapes)
    )


def limits_of(problem: Problem) -> Kernel:
    """(x, p) -> c(x), for problems with limits of the state."""
    shapes = {"limits": (problem.state_limit_count,)}
    return _shared(
        problem,
        "limits",
        lambda: _kernel(problem, "optimal_limits", problem.stage_limits, {"p": problem.np}, shapes),
    )


def costs_of(problem: Problem) -> tuple[Kernel, Kernel]:
    """(x, u, p) -> the cost of a stage, and (x, p) -> that of the end, each of shape (1,)."""

    def running(x: Any, u: Any, p: Any) -> Any:
        return [problem.stage_cost(x, u, p)]

    def last(x: Any, p: Any) -> Any:
        return [problem.terminal_cost(x, p)]

    def made(name: str, function: Any, inputs: dict[str, int]) -> Kernel:
        return _shared(
            problem, name, lambda: _kernel(problem, f"optimal_{name}", function, inputs, {"cost": (1,)})
        )

    return made("stage_cost", running, {"u": problem.nu, "p": problem.np}), made(
        "end_cost", last, {"p": problem.np}
    )


def step_of(problem: Problem) -> Kernel:
    """(x, u, p) -> the next state."""
    shapes = {"following": (problem.ns,)}
    return _shared(
        problem,
        "step",
        lambda: _kernel(
            problem, "optimal_step", problem.next_state, {"u": problem.nu, "p": problem.np}, shapes
        ),
    )


def _kernel(
    problem: Problem, name: str, function: Any, inputs: dict[str, int], shapes: dict[str, Any]
) -> Kernel:
    def named(**given: Any) -> dict[str, Any]:
        return {next(iter(shapes)): function(*given.values())}

    return traced_kernel(name, named, {"x": problem.ns, **inputs}, shapes, "float64", problem.key())


def _shared(problem: Problem, key: Any, make: Any) -> Any:
    known = vars(problem.robot).setdefault("_optimal", {})
    own = (problem.key() or problem.structure, key)
    if own not in known:
        known[own] = make()
    return known[own]
