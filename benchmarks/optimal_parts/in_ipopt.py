"""A problem in CasADi, solved by IPOPT with exact Hessians: states and torques are variables, the steps equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.optimal import Problem
from linkwise.optimal.parameter_table import LOWER, UPPER


def _function(name: str, function: Any, inputs: dict[str, int], shape: tuple[int, ...]) -> Any:
    outputs = {"result": shape}
    build = lambda dtype: trace(function, inputs, outputs, name=name, dtype=dtype)  # noqa: E731
    return Kernel(name, inputs.items(), outputs.items(), "float64", build).casadi()


def solve(problem: Problem, xs: np.ndarray, us: np.ndarray, iterations: int = 500) -> tuple[float, int, str]:
    """(cost, iterations, how IPOPT ended) from this first guess."""
    return InIpopt(problem, iterations).solve(problem.x0, xs, us)


class InIpopt:
    """A problem whose first state is a parameter."""

    def __init__(self, problem: Problem, iterations: int = 500):
        import casadi

        self.problem = problem
        N, ns, nu, p = problem.horizon, problem.ns, problem.nu, problem.p
        sizes = {"x": ns, "u": nu, "p": problem.np}
        step = _function("step", lambda x, u, p: [problem.next_state(x, u, p)][0], sizes, (ns,))
        stage = _function("stage", lambda x, u, p: [problem.stage_cost(x, u, p)], sizes, (1,))
        end = _function("end", lambda x, p: [problem.terminal_cost(x, p)], {"x": ns, "p": problem.np}, (1,))
        X, U, start = (
            casadi.MX.sym("X", ns, N + 1),
            casadi.MX.sym("U", nu, N),
            casadi.MX.sym("start", ns),
        )
        P = casadi.DM(p[:-1].T)
        following = step.map(N)(X[:, :-1], U, P)
        cost = casadi.sum2(stage.map(N)(X[:, :-1], U, P)) + end(X[:, -1], casadi.DM(p[-1]))
        equations = casadi.vertcat(casadi.vec(X[:, 1:] - following), X[:, 0] - start)
        z = casadi.vertcat(casadi.vec(X), casadi.vec(U))
        options = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes", "ipopt.tol": 1e-10}
        options |= {"ipopt.max_iter": iterations, "ipopt.bound_relax_factor": 0.0}
        functions = {"x": z, "f": cost, "g": equations, "p": start}
        self.solver = casadi.nlpsol("motion", "ipopt", functions, options)
        free = np.full((N + 1) * ns, np.inf)
        low, high = np.full(N * nu, -np.inf), np.full(N * nu, np.inf)
        if problem.boxed:
            low, high = (p[:-1, problem.where(side)].ravel() for side in (LOWER, UPPER))
        self.low, self.high = np.concatenate([-free, low]), np.concatenate([free, high])

    def solve(self, start: np.ndarray, xs: np.ndarray, us: np.ndarray) -> tuple[float, int, str]:
        """(cost, iterations, how IPOPT ended) from this first guess."""
        guess = np.concatenate([xs.ravel(), us.ravel()])
        found = self.solver(x0=guess, p=start, lbg=0.0, ubg=0.0, lbx=self.low, ubx=self.high)
        stats = self.solver.stats()
        return float(found["f"]), int(stats["iter_count"]), str(stats["return_status"])
