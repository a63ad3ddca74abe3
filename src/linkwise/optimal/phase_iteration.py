"""Iterations for robots that the ground holds: accelerations and forces of a stage are one system of equations.

What differs from ``iterations``: the derivatives of a stage are those of ``touching``, a stage of a rollout solves the
same system, and costs and limits of the forces f(x, u) enter with the slopes F of these forces:

    gradient += Fᵀ ∂ℓ/∂f          Hessian += Fᵀ ∂²ℓ/∂f² F          (Gauss and Newton)
"""

from __future__ import annotations

from typing import Any

from linkwise.language import dot, empty, span, straight
from linkwise.optimal.iterations import Iterations, absolute_sum
from linkwise.optimal.touching import Stages, Touching
from linkwise.scalar import Scalar


class PhaseIterations(Iterations):
    """Iterations of a problem with contacts."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        contacts = self.problem.dynamics.contacts
        assert contacts is not None
        self.c = contacts.rows

    def _linearise_in_parts(self, first: Any) -> None:
        n, c, chunk = self.problem.dynamics.dof, self.c, self.chunk
        weighs = self.problem.weighs_forces
        stages, systems = Stages(chunk, n, c), self._systems(chunk)
        rates, held = empty(chunk, n, 2 * n), empty(chunk, c, 2 * n)
        force_cost = [empty(chunk, c), empty(chunk, c, c)] if weighs else []

        def expanded(
            x: Any, u: Any, p: Any, m: Any, following: Any, qdd: Any, force: Any
        ) -> list[list[Scalar]]:
            of_stage = self.problem._dynamics_of(p)
            made = of_stage.stepped(x, u, qdd)
            by_x = [
                [value for row in rows for value in row] for rows in of_stage.contact_slopes(x, qdd, force)
            ]
            gradient, gap, (value,), *hessian = self._expanded(x, u, p, m, following, made.next_state)
            more: list[list[Scalar]] = []
            if weighs:
                cost = self.problem.force_quadratic(x, u, p, m, force)
                value = value + cost.value
                more = [cost.gradient, [entry for row in cost.hessian for entry in row]]
            return [*by_x, *self._turns_of(made), *more, gradient, gap, [value], *hessian]

        for r in span(chunk, parallel=True):
            self._equation(
                self.x[first + r], self.u[first + r], self.p[first + r], [part[r] for part in systems]
            )
        for r in span(chunk):
            stages[r].solve(*(part[r] for part in systems))
        for r in span(chunk, parallel=True):
            k = first + r
            own = [*self._turns_at(r), *(part[r] for part in force_cost)]
            reads = [*self._stage(k), stages[r].qdd, stages[r].force]
            straight(expanded, reads, [rates[r], held[r], *own, *self._expansion(r, k)])
        for r in span(chunk):
            forces = self._slopes(r, stages[r], rates[r], held[r])
            if weighs:
                self._add_forces(r, forces, *(part[r] for part in force_cost))

    def _systems(self, count: int) -> list[Any]:
        """Memory for (M, net, J, γ, which rows are held) of several stages."""
        n, c = self.problem.dynamics.dof, self.c
        return [empty(count, *shape) for shape in ((n, n), (n,), (c, n), (c,), (c,))]

    def _equation(self, x: Any, u: Any, p: Any, writes: list[Any]) -> None:
        """The system of a stage."""
        problem = self.problem

        def equation(x: Any, u: Any, p: Any) -> list[list[Scalar]]:
            of_stage = problem._dynamics_of(p)
            q, qd, _ = of_stage.split(x)
            M, net, J, rates, flags = of_stage.contact_equation(q, qd, of_stage.torques(u))
            return [[v for row in M for v in row], net, [v for row in J for v in row], rates, flags]

        straight(equation, [x, u, p], writes)

    def _slopes(self, r: Any, stage: Touching, rates: Any, held: Any) -> Any:
        """Rows of δq̇' of a stage; gives those of the forces."""
        n, c, width = self.problem.dynamics.dof, self.c, self.shape.width
        right, rows = empty(n, width), empty(c, width)
        self._fill_right_side(right, rates)
        for i in span(c):
            for j in span(2 * n):
                rows[i, j] = held[i, j]
            for j in span(2 * n, width):
                rows[i, j] = 0.0
        accelerations, forces = stage.slopes(right, rows)
        self._set_velocity_rows(r, accelerations)
        return forces

    def _add_forces(self, r: Any, F: Any, gradient: Any, hessian: Any) -> None:
        """What costs and limits of forces add to the quadratic model of a stage."""
        c, q, x, width = self.c, self.shape.shifted, self.n, self.shape.width
        pulled = empty(c, width)
        for i in span(c):
            for j in span(width, parallel=True):
                pulled[i, j] = dot(hessian[i, :], F[:, j])
        for j in span(width, parallel=True):
            self.gradients[r, j] = dot(gradient, F[:, j], self.gradients[r, j])
        edges = {
            "qq": (0, q, 0, q), "vq": (q, x, 0, q), "vv": (q, x, q, x), "ux": (x, width, 0, x),
            "uu": (x, width, x, width),
        }  # fmt: skip
        for name, (top, bottom, left, end) in edges.items():
            block = self.hessians[name][r]
            for i in span(bottom - top):
                for j in span(end - left, parallel=True):
                    block[i, j] = dot(F[:, top + i], pulled[:, left + j], block[i, j])

    def _try_steps(self) -> None:
        """Stage by stage, all rollouts: their systems of equations are solved one after the other."""
        N, n, tries = self.N, self.problem.dynamics.dof, len(self.steps)
        stages, systems = Stages(tries, n, self.c), self._systems(tries)
        for t in span(tries, parallel=True):
            self.trial_x[t * (N + 1), :] = self.given["start"]
            self.merits[t, 0] = self.merits[t, 1] = 0.0
        for k in span(N):
            for t in span(tries, parallel=True):
                row, torques = self.trial_x[t * (N + 1) + k], self.trial_u[t * N + k]
                reads = [row, *self._plan(k), self.p[k], self.sizes[t]]
                straight(lambda *reads: [self.fed_back(*reads)], reads, [torques])
                self._equation(row, torques, self.p[k], [part[t] for part in systems])
            for t in span(tries):
                stages[t].solve(*(part[t] for part in systems))
            for t in span(tries, parallel=True):
                self._stepped(t, k, stages[t])
        for t in span(tries, parallel=True):
            self._finish(t, self.merits[t, :1])

    def _stepped(self, t: Any, k: Any, stage: Touching) -> None:
        """The next state of a rollout, and what a stage adds to its cost and gaps."""
        problem, row = self.problem, t * (self.N + 1) + k

        def stepped(
            x: Any, u: Any, qdd: Any, forces: Any, gap: Any, p: Any, m: Any, size: Any, merits: Any
        ) -> list[list[Scalar]]:
            (alpha,), (cost, away) = size, merits
            dynamics = problem._dynamics_of(p)
            left = [(alpha - 1.0) * d for d in gap]
            following = dynamics.moved(dynamics.stepped(x, u, qdd).next_state, left)
            cost = cost + problem.stage_cost(x, u, p, forces)
            if problem.nm:
                cost = cost + problem.penalty(x, p, m, problem.force_limits(x, u, p, forces))
            return [following, [cost, absolute_sum(left, away)]]

        reads = [self.trial_x[row], self.trial_u[t * self.N + k], stage.qdd, stage.force, self.gaps[k + 1]]
        reads += [self.p[k], self.multipliers[k], self.sizes[t], self.merits[t]]
        straight(stepped, reads, [self.trial_x[row + 1], self.merits[t]])
