"""The compiled parts of the solver: all stages linearised in one call, the backward sweep, and trial rollouts.

``Code`` has four kernels of a problem, made once for its structure: other targets, weights, limits and starts use the
same. Stages are the lanes of the first; the sweep is a rollout backward in time; the trials are rollouts with one step
length per lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.constraints import computed_in
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.program import trace
from linkwise.compiler.rollout import NEXT, Feed, Interface, RolloutKernel, trace_rollout
from linkwise.once import once
from linkwise.optimal import riccati
from linkwise.optimal.arrays_sweep import array_sweep
from linkwise.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows
    from linkwise.optimal.problem import Problem

WRITTEN_OUT = 24
"""Up to so many numbers of (δx, u) the sweep is one rollout of written-out stages; larger stages are a kernel each,
with loops over their matrices (``arrays_sweep``)."""


class Code:
    """Kernels of one problem; see ``code_of``."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.compact = (
            problem.dynamics.structured and problem.dynamics.flat and not problem.dynamics.remembers
        )
        """Whether δq' = δq + h δq̇' and nothing else: the sweep then needs the rows of q̇' alone."""
        self.written_out = problem.nx + problem.nu <= WRITTEN_OUT

    # -- all stages at once

    @once
    def stages(self) -> Kernel:
        """(x, u, x', p[, m]) -> slopes of the step, gradient and Hessian of the cost, gap, cost."""
        p = self.problem
        nx, nu, z = p.nx, p.nu, p.nx + p.nu
        shapes = {"slopes": self._slope_shape(), "gradient": (z,), "hessian": (z * (z + 1) // 2,)}
        shapes |= {"gap": (nx,), "cost": (1,)}

        def function(x, u, following, p, m=()):
            moved = self.problem.linearised(x, u, p)
            if self.compact:
                slopes = moved.velocity
            else:
                slopes = [[*a, *b] for a, b in zip(*moved.matrices(), strict=True)]
            Q = self.problem.stage_quadratic(x, u, p, m)
            gap = self.problem.dynamics.difference(following, moved.next_state)
            return slopes, Q.gradient, _packed(Q.hessian), gap, [Q.value]

        return self._kernel("optimal_stages", function, {"x": p.ns, "u": nu, "following": p.ns}, shapes)

    @once
    def end(self) -> Kernel:
        """(x, p[, m]) -> gradient, Hessian and value of the terminal cost."""
        p = self.problem
        shapes = {"gradient": (p.nx,), "hessian": (p.nx * (p.nx + 1) // 2,), "cost": (1,)}

        def function(x, p, m=()):
            Q = self.problem.terminal_quadratic(x, p, m)
            return Q.gradient, _packed(Q.hessian), [Q.value]

        return self._kernel("optimal_end", function, {"x": p.ns}, shapes)

    @once
    def limits(self) -> Kernel:
        """(x, p) -> c(x), for problems with limits."""
        shapes = {"limits": (len(self.problem.limit_words),)}
        inputs = {"x": self.problem.ns, "p": self.problem.np}
        function = lambda x, p: [self.problem.stage_limits(x, p)]  # noqa: E731
        return self._made("optimal_limits", lambda x, p: function(x, p)[0], inputs, shapes)

    # -- backward

    def sweep(
        self, stages: Sequence[np.ndarray], end: Sequence[np.ndarray], mu: float, box: Any
    ) -> dict[str, np.ndarray]:
        """Gains, steps and value functions of all stages, the first one first; ``stages`` have the last one first."""
        if not self.written_out:
            return array_sweep(self, stages, end, mu, box)
        p = self.problem
        slopes, gradient, hessian, gap, _ = stages
        given: dict[str, Any] = {"V": end[1], "v": end[0], "mu": np.array([mu])}
        tables = {"slopes": slopes, "gradient": gradient, "hessian": hessian, "gap": gap}
        if p.boxed:
            tables["low"], tables["high"] = box
        given |= {name: table.reshape(-1) for name, table in tables.items()}
        _, written = self._sweep(given, steps=len(slopes), threads=1)
        return {name: array[::-1] for name, array in written.items()}

    @once
    def _sweep(self) -> RolloutKernel:
        p = self.problem
        nx, nu, z = p.nx, p.nu, p.nx + p.nu
        sizes = {
            "slopes": int(np.prod(self._slope_shape())),
            "gradient": z,
            "hessian": z * (z + 1) // 2,
            "gap": nx,
        }
        if p.boxed:
            sizes |= {"low": nu, "high": nu}
        half = nx * (nx + 1) // 2
        interface = Interface(
            {"V": half, "v": nx},
            {"mu": 1},
            {name: Feed(size, size) for name, size in sizes.items()},
            {"k": (nu,), "K": (nu, nx), "value_gradient": (nx,), "value_hessian": (half,), "gain": (3,)},
        )

        def step(V, v, mu, slopes, gradient, hessian, gap, low=None, high=None):
            V, H = _full(V, nx), _full(hessian, z)
            v = [a + riccati._dot(row, gap) for a, row in zip(v, V, strict=True)]
            # new states stay near the old ones: feedback remains where torques alone would be held back
            V = [
                [value + mu[0] if i == j else value for j, value in enumerate(row)] for i, row in enumerate(V)
            ]
            rows = _rows(slopes, self._slope_shape()[1])
            if self.compact:
                Q = riccati.shifted_expansion(V, v, rows, p.step, gradient, H)
            else:
                A, B = [row[:nx] for row in rows], [row[nx:] for row in rows]
                Q = riccati.expansion(V, v, A, B, gradient, H)
            found = riccati.stage(Q, mu[0], low, high)
            value = _packed(found.V)
            return {
                NEXT + "V": value,
                NEXT + "v": found.v,
                "k": found.k,
                "K": found.K,
                "value_gradient": found.v,
                "value_hessian": value,
                "gain": [found.slope, found.curvature, found.sound],
            }

        return self._rollout("optimal_sweep", step, interface)

    # -- forward

    def trials(
        self, xs: np.ndarray, us: np.ndarray, found: dict[str, np.ndarray], gaps: np.ndarray, lengths: np.ndarray,
        p: np.ndarray, m: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """(states, torques, costs) of one rollout per step length, shapes (lengths, N + 1, ns), (lengths, N, nu)."""
        problem = self.problem
        given: dict[str, Any] = {"x": xs[0], "cost": np.zeros(1), "length": lengths[:, None]}
        tables = {"xs": xs[:-1], "us": us, "k": found["k"], "K": found["K"], "gap": gaps, "p": p[:-1]}
        if problem.nm:
            tables["m"] = m[:-1]
        given |= {name: np.ascontiguousarray(table).reshape(-1) for name, table in tables.items()}
        carried, written = self._trial(given, steps=len(us), threads=1)
        last = carried["x"]
        states = np.concatenate([written["state"], last[:, None]], axis=1)
        more = [np.broadcast_to(m[-1], (len(lengths), problem.nm))] if problem.nm else []
        end = self.end(last, np.broadcast_to(p[-1], (len(lengths), problem.np)), *more, threads=1)
        return states, written["torque"], carried["cost"][:, 0] + end[2][:, 0]

    @once
    def _trial(self) -> RolloutKernel:
        p = self.problem
        sizes = {"xs": p.ns, "us": p.nu, "k": p.nu, "K": p.nu * p.nx, "gap": p.nx, "p": p.np}
        if p.nm:
            sizes["m"] = p.nm
        interface = Interface(
            {"x": p.ns, "cost": 1},
            {"length": 1},
            {name: Feed(size, size) for name, size in sizes.items()},
            {"state": (p.ns,), "torque": (p.nu,)},
        )
        d = p.dynamics

        def step(x, cost, length, xs, us, k, K, gap, p, m=()):
            problem, (length,) = self.problem, length
            change = d.difference(xs, x)
            u = [
                a + (length * b + riccati._dot(row, change))
                for a, b, row in zip(us, k, _rows(K, problem.nx), strict=True)
            ]
            if problem.boxed:
                u = problem.clamped(u, p)
            back = [(length - 1.0) * g for g in gap]
            following = d.moved(problem.next_state(x, u, p), back)
            value = cost[0] + problem.stage_cost(x, u, p)
            if problem.nm:
                value = value + problem.penalty(x, p, m)
            return {NEXT + "x": following, NEXT + "cost": [value], "state": x, "torque": u}

        return self._rollout("optimal_trial", step, interface)

    # -- parts

    def _slope_shape(self) -> tuple[int, int]:
        p = self.problem
        return (p.dynamics.dof if self.compact else p.nx, p.nx + p.nu)

    def _kernel(
        self, name: str, function: Callable[..., Any], inputs: dict[str, int], shapes: dict[str, Any]
    ) -> Kernel:
        p = self.problem
        return self._made(name, function, inputs | {"p": p.np} | ({"m": p.nm} if p.nm else {}), shapes)

    def _made(
        self, name: str, function: Callable[..., Any], inputs: dict[str, int], shapes: dict[str, Any]
    ) -> Kernel:
        def build(dtype: Any):
            with computed_in(dtype):
                return trace(function, inputs, shapes, name=name, dtype=dtype)

        return Kernel(name, inputs.items(), shapes.items(), "float64", build, self.problem.key())

    def _rollout(self, name: str, step: Callable[..., Any], interface: Interface) -> RolloutKernel:
        def build(dtype: Any):
            with computed_in(dtype):
                return trace_rollout(step, interface, name=name, dtype=dtype)

        key = self.problem.key()
        if key is None:  # a function of the user's own: by its traced program
            import hashlib

            from linkwise.compiler.emit import c

            key = hashlib.sha256(c.source(build("float64").step).encode()).digest()
        return RolloutKernel(name, interface, build, key)


def code_of(problem: Problem) -> Code:
    """The kernels of a problem, shared by all problems of the same structure."""
    known = vars(problem.robot).setdefault("_optimal", {})
    key = problem.key() or (problem.structure, problem.barrier)
    if key not in known:
        known[key] = Code(problem)
    return known[key]


def _packed(S: Rows) -> list[Scalar]:
    """The lower half of a symmetric matrix, row by row."""
    return [S[i][j] for i in range(len(S)) for j in range(i + 1)]


def _full(packed: Sequence[Scalar], n: int) -> Rows:
    return [[packed[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)] for j in range(n)] for i in range(n)]


def _rows(flat: Sequence[Scalar], width: int) -> Rows:
    return [list(flat[k : k + width]) for k in range(0, len(flat), width)]
