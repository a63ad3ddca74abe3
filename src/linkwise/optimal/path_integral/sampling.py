"""The steps of sampling control as kernels: rollouts with costs, least cost, weighted mean of torques."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms.constrained.constraints import computed_in
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.compiler.rollout import NEXT, Feed, Interface, RolloutKernel, trace_rollout
from linkwise.core.once import once
from linkwise.optimal.parameter_table import LOWER, UPPER
from linkwise.optimal.path_integral.weights import exponential
from linkwise.optimal.problem import Problem
from linkwise.scalar import Scalar, clipped, where
from linkwise.simulate.noise import normal

PENALTY = 1e4
"""Weight of limits of states and tips: ½ · PENALTY · max(0, excess)² in each stage."""


@dataclass(frozen=True, eq=False)
class Sampling:
    """The kernels of one problem in one precision. Targets, noise and temperature are inputs."""

    problem: Problem
    dtype: str

    # -- rollouts -----------------------------------------------------------------------------------------------------

    @once
    def rollout(self) -> RolloutKernel:
        """Rolls samples out: where they end, and their costs without those of the end.

        A row of the feed is a stage: torques of the plan, run-time parameters, number of the random torques.
        """
        problem = self.problem
        m, size = problem.nu, problem.nu + problem.np + 1

        def step(x, cost, noise, stream, spread, stage):
            plan, p, number = stage[:m], stage[m:-1], stage[-1]
            u = self.torques(plan, noise, stream, spread[0], number, self._limits(p))
            new = problem.next_state(x, u, p)
            return {
                NEXT + "x": new,
                NEXT + "cost": [cost[0] + problem.stage_cost(x, u, p) + self._beyond(x, p)],
            }

        interface = Interface(
            {"x": problem.ns, "cost": 1},
            {"noise": m, "stream": 2, "spread": 1},
            {"stage": Feed(size, size)},
            {},
        )
        return self._repeated("sampled_motions", interface, step)

    @once
    def ending(self) -> Kernel:
        """(x, cost, p) -> the cost of the whole motion, from its last state."""
        problem = self.problem

        def total(x, cost, p):
            return {"total": [cost[0] + problem.terminal_cost(x, p) + self._beyond(x, p)]}

        sizes = {"x": problem.ns, "cost": 1, "p": problem.np}
        return traced_kernel("cost_of_motion", total, sizes, {"total": (1,)}, self.dtype, self.key)

    def torques(
        self,
        plan: Sequence[Scalar],
        noise: Sequence[Scalar],
        stream: Sequence[Scalar],
        spread: Scalar,
        number: Scalar,
        limits: tuple[Sequence[Scalar], Sequence[Scalar]] | None,
    ) -> list[Scalar]:
        """The torques of a sample, within the limits: a function of plan, sample and number alone."""
        drawn = [normal(stream, number, float(k), self.dtype) for k in range(len(plan))]
        found = [u + (spread * s) * e for u, s, e in zip(plan, noise, drawn, strict=True)]
        return limited(found, limits)

    def _limits(self, p: Sequence[Scalar]) -> tuple[Sequence[Scalar], Sequence[Scalar]] | None:
        problem = self.problem
        return (p[problem.where(LOWER)], p[problem.where(UPPER)]) if problem.boxed else None

    def _beyond(self, x: Sequence[Scalar], p: Sequence[Scalar]) -> Scalar:
        """What limits of states and tips add to the cost."""
        problem = self.problem
        if not problem.nm:
            return 0.0
        return problem.penalty(x, p, [*[0.0] * len(problem.limit_words), PENALTY, 1.0 / PENALTY])

    # -- weights ------------------------------------------------------------------------------------------------------

    @once
    def least(self) -> RolloutKernel:
        """The smallest of costs that come one after the other; NaN does not count."""

        def smaller(least, cost):
            return {NEXT + "least": [where(cost[0] < least[0], cost[0], least[0])]}

        interface = Interface({"least": 1}, {}, {"cost": Feed(1, 1, shared=False)}, {})
        return self._repeated("least_cost", interface, smaller)

    @once
    def summed(self) -> RolloutKernel:
        """For one torque of the plan: Σ w τ (m), Σ w and Σ w² over samples that come one after the other."""
        m = self.problem.nu
        interface = Interface(
            {"sums": m + 2},
            {"noise": m, "plan": m, "bounds": 2 * m, "number": 1, "least": 1, "temperature": 1},
            {"sample": Feed(4, 4, shared=False)},
            {},
        )

        def added(sums, noise, plan, bounds, number, least, temperature, sample):
            *stream, spread, cost = sample
            u = self.torques(plan, noise, stream, spread, number[0], (bounds[:m], bounds[m:]))
            w = exponential((cost - least[0]) / temperature[0])
            terms = [*(w * t for t in u), w, w * w]
            return {NEXT + "sums": [a + b for a, b in zip(sums, terms, strict=True)]}

        return self._repeated("weighted_torques", interface, added)

    @once
    def joined(self) -> RolloutKernel:
        """Sums of blocks added up, one after the other."""
        size = self.problem.nu + 2

        def added(sums, part):
            return {NEXT + "sums": [a + b for a, b in zip(sums, part, strict=True)]}

        return self._repeated(
            "joined_sums", Interface({"sums": size}, {}, {"part": Feed(size, size, shared=False)}, {}), added
        )

    @once
    def mean(self) -> Kernel:
        """(sums, plan, bounds) -> the mean torques of all samples; those of the plan where no sample counts."""
        m = self.problem.nu

        def divided(sums, plan, bounds):
            *torques, weight, _ = sums
            some = weight > 0.0
            by = where(some, weight, 1.0)
            found = [where(some, t / by, u) for t, u in zip(torques, plan, strict=True)]
            return {"u": limited(found, (bounds[:m], bounds[m:]))}

        sizes = {"sums": m + 2, "plan": m, "bounds": 2 * m}
        return traced_kernel("mean_torques", divided, sizes, {"u": (m,)}, self.dtype, self.key)

    # -- compiled -----------------------------------------------------------------------------------------------------

    @once
    def key(self) -> bytes:
        """Identifies the arithmetic of the problem; with a user's own function by the traced program."""
        known = self.problem.key()
        if known is None:
            from linkwise.compiler.emit import c

            problem = self.problem
            sizes = {"x": problem.ns, "u": problem.nu, "p": problem.np}

            def functions(x, u, p):
                costs = [problem.stage_cost(x, u, p), problem.terminal_cost(x, p), self._beyond(x, p)]
                return {"costs": costs, "next": problem.next_state(x, u, p)}

            shapes = {"costs": (3,), "next": (problem.ns,)}
            program = trace(functions, sizes, shapes, name="problem", dtype="float64")
            known = hashlib.sha256(c.source(program).encode()).digest()
        return known + self.dtype.encode()

    def _repeated(self, name: str, interface: Interface, step: Any) -> RolloutKernel:
        def build(dtype: str):
            with computed_in(dtype):
                return trace_rollout(step, interface, name=name, dtype=dtype)  # type: ignore[arg-type]

        return RolloutKernel(name, interface, build, self.key)


def limited(u: Sequence[Scalar], limits: tuple[Sequence[Scalar], Sequence[Scalar]] | None) -> list[Scalar]:
    """Torques within their limits."""
    if limits is None:
        return list(u)
    return [clipped(t, low, high) for t, low, high in zip(u, *limits, strict=True)]
