"""Iterations for robots that the ground holds: accelerations and forces of a stage are one system of equations.

What differs from ``iterations``: the derivatives of a stage are those of ``touching``, a stage of a rollout solves the
same system, and costs and limits of the forces f(x, u) enter with the slopes F of these forces:

    gradient += Fᵀ ∂ℓ/∂f          Hessian += Fᵀ ∂²ℓ/∂f² F          (Gauss and Newton)
"""

from __future__ import annotations

from typing import Any

from linkwise.language import dot, empty, span, straight, sums
from linkwise.optimal.iterations import Iterations, absolute_sum
from linkwise.optimal.touching import Touching, written_out
from linkwise.scalar import Scalar

WRITTEN_OUT = 1000
"""Entries of the matrix of a stage up to which its equations are written out: zeros of branches cost nothing there."""


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
        qdd, force = empty(chunk, n), empty(chunk, c)
        inverses = [empty(chunk, rows, n + c) for rows in ((n, c) if weighs else (n,))]
        rates = empty(chunk, n + c, 2 * n + self.problem.dynamics.timed)
        force_cost = [empty(chunk, c), empty(chunk, c, c)] if weighs else []

        def expanded(
            x: Any, u: Any, p: Any, m: Any, following: Any, qdd: Any, force: Any
        ) -> list[list[Scalar]]:
            of_stage = self.problem._dynamics_of(x, u, p)
            made = of_stage.stepped(x, u, qdd)
            by_x = [value for rows in of_stage.contact_slopes(x, qdd, force) for row in rows for value in row]
            gradient, gap, (value,), *hessian = self._expanded(x, u, p, m, following, made.next_state)
            more: list[list[Scalar]] = []
            if weighs:
                cost = self.problem.force_quadratic(x, u, p, m, force)
                value = value + cost.value
                more = [cost.gradient, [entry for row in cost.hessian for entry in row]]
            return [by_x, *self._turns_of(made), *more, gradient, gap, [value], *hessian]

        self._solve_stages(first, qdd, force, inverses)
        for r in span(chunk, parallel=True):
            k = first + r
            own = [*self._turns_at(r), *(part[r] for part in force_cost)]
            reads = [*self._stage(k), qdd[r], force[r]]
            straight(expanded, reads, [rates[r], *own, *self._expansion(r, k)])
        for r in span(chunk):
            self._set_slopes(r, first + r, inverses[0][r], rates[r], qdd[r])
            if weighs:
                forces = self._times(first + r, inverses[1][r], rates[r])
                self._add_forces(r, forces, *(part[r] for part in force_cost))

    def _solve_stages(self, first: Any, qdd: Any, force: Any, inverses: list[Any]) -> None:
        """Accelerations, forces and what their derivatives are multiplied with, of all stages of a chunk."""
        n, c, chunk = self.problem.dynamics.dof, self.c, self.chunk
        weighs = len(inverses) > 1

        def solved(x: Any, u: Any, p: Any) -> list[list[Scalar]]:
            made = written_out(*self._system(x, u, p))
            matrices = [matrix for matrix in made.inverses(weighs) if matrix is not None]
            return [list(part.flat) for part in (made.qdd, made.force, *matrices)]

        if self._is_short:
            for r in span(chunk, parallel=True):
                k = first + r
                writes = [part[r] for part in (qdd, force, *inverses)]
                straight(solved, [self.x[k], self.u[k], self.p[k]], writes)
            return
        systems = [empty(chunk, *shape) for shape in ((n, n), (n,), (c, n), (c,), (c,))]
        for r in span(chunk, parallel=True):
            k = first + r
            self._equation(self.x[k], self.u[k], self.p[k], [part[r] for part in systems])
        for r in span(chunk):
            made = Touching(*(part[r] for part in systems))
            qdd[r, :], force[r, :] = made.qdd, made.force
            for place, matrix in zip(inverses, made.inverses(weighs), strict=False):
                place[r, :, :] = matrix

    @property
    def _is_short(self) -> bool:
        """Whether the equations of a stage are written out."""
        return self.problem.dynamics.dof * (self.problem.dynamics.dof + self.c) <= WRITTEN_OUT

    def _system(self, x: Any, u: Any, p: Any) -> Any:
        """(M, net, J, γ, which rows are held) of a stage."""
        of_stage = self.problem._dynamics_of(x, u, p)
        q, qd, _ = of_stage.split(x)
        return of_stage.contact_equation(q, qd, of_stage.torques(u))

    def _equation(self, x: Any, u: Any, p: Any, writes: list[Any]) -> None:
        """The system of a stage, in memory."""

        def equation(x: Any, u: Any, p: Any) -> list[list[Scalar]]:
            M, net, J, rates, flags = self._system(x, u, p)
            return [[v for row in M for v in row], net, [v for row in J for v in row], rates, flags]

        straight(equation, [x, u, p], writes)

    def _set_slopes(self, r: Any, k: Any, P: Any, rates: Any, qdd: Any) -> None:
        """Rows of δq̇' = δq̇ + h δq̈ of a stage."""
        rows, d, h = self.slopes[r], self.problem.dynamics, self._duration(k)
        n, below = d.dof, self._rows_before
        for j in span(2 * n, parallel=True):
            for i, total in sums([], (P, rates[:, j], 1)):
                rows[below + i, j] = -h * total
        for i in span(n):
            for j, driven in enumerate(d.driven, start=self.n):
                rows[below + i, j] = h * P[i, driven]
            if d.timed:
                rows[below + i, self.shape.width - 1] = -h * dot(P[i, :], rates[:, 2 * n])
            rows[below + i, n + i] = rows[below + i, n + i] + 1.0
        self._set_position_rows(r, k, qdd)

    def _times(self, k: Any, Q: Any, rates: Any) -> Any:
        """Derivatives of the forces of a stage by (x, u)."""
        n, c = self.problem.dynamics.dof, self.c
        forces = empty(c, self.shape.width)
        for j in span(2 * n, parallel=True):
            for i, total in sums([], (Q, rates[:, j], 1)):
                forces[i, j] = -total
        for i in span(c):
            for j, driven in enumerate(self.problem.dynamics.driven, start=self.n):
                forces[i, j] = Q[i, driven]
            if self.problem.dynamics.timed:
                begins, by_duration = self._begins(k), -dot(Q[i, :], rates[:, 2 * n])
                forces[i, self.n - 1] = (1.0 - begins) * by_duration
                forces[i, self.shape.width - 1] = begins * by_duration
        return forces

    def _add_forces(self, r: Any, F: Any, gradient: Any, hessian: Any) -> None:
        """What costs and limits of forces add to the quadratic model of a stage."""
        c, q, x, width = self.c, self.shape.shifted, self.n, self.shape.width
        pulled = empty(c, width)
        for j in span(width, parallel=True):
            for i, total in sums([], (hessian, F[:, j], 1)):
                pulled[i, j] = total
            self.gradients[r, j] = dot(gradient, F[:, j], self.gradients[r, j])
        edges = {
            "qq": (0, q, 0, q), "vq": (q, x, 0, q), "vv": (q, x, q, x), "ux": (x, width, 0, x),
            "uu": (x, width, x, width),
        }  # fmt: skip
        for name in self.hessians:
            block, (top, bottom, left, end) = self.hessians[name][r], edges[name]
            for j in span(end - left, parallel=True):
                for i, total in sums([block[:, j]], (F[:, top:bottom].T, pulled[:, left + j], 1)):
                    block[i, j] = total

    def _try_steps(self, first: Any, stop: Any) -> None:
        """Stage by stage, these rollouts side by side."""
        N, n, tries = self.N, self.problem.dynamics.dof, len(self.steps)
        for t in span(first, stop, parallel=True):
            self.trial_x[t * (N + 1), :] = self.given["start"]
            self.merits[t, 0] = self.merits[t, 1] = 0.0
        if self._is_short:
            for k in span(N):
                for t in span(first, stop, parallel=True):
                    self._roll_short(t, k)
        else:
            qdd, force = empty(tries, n), empty(tries, self.c)
            systems = [empty(tries, *shape) for shape in ((n, n), (n,), (self.c, n), (self.c,), (self.c,))]
            for k in span(N):
                for t in span(first, stop, parallel=True):
                    row, torques = self.trial_x[t * (N + 1) + k], self.trial_u[t * N + k]
                    reads = [row, *self._plan(k), self.p[k], self.sizes[t]]
                    straight(lambda *reads: [self.fed_back(*reads)], reads, [torques])
                    self._equation(row, torques, self.p[k], [part[t] for part in systems])
                for t in span(first, stop):
                    made = Touching(*(part[t] for part in systems))
                    qdd[t, :], force[t, :] = made.qdd, made.force
                for t in span(first, stop, parallel=True):
                    reads = [self.trial_x[t * (N + 1) + k], self.trial_u[t * N + k], qdd[t], force[t]]
                    writes = [self.trial_x[t * (N + 1) + k + 1], self.merits[t]]
                    straight(self._stepped, [*reads, *self._following(t, k)], writes)
        for t in span(first, stop, parallel=True):
            self._finish(t, self.merits[t, :1])

    def _following(self, t: Any, k: Any) -> list[Any]:
        """What the end of a stage of a rollout depends on beside its state, torques, accelerations and forces."""
        return [self.gaps[k + 1], self.p[k], self.multipliers[k], self.sizes[t], self.merits[t]]

    def _roll_short(self, t: Any, k: Any) -> None:
        """A stage of a rollout whose equations are written out."""
        row = t * (self.N + 1) + k

        def rolled(
            x: Any, old: Any, u: Any, forward: Any, feedback: Any, gap: Any, p: Any, m: Any, size: Any, merits: Any
        ) -> list[list[Scalar]]:  # fmt: skip
            torques = self.fed_back(x, old, u, forward, feedback, p, size)
            made = written_out(*self._system(x, torques, p))
            following, sums = self._stepped(
                x, torques, list(made.qdd), list(made.force), gap, p, m, size, merits
            )
            return [following, torques, sums]

        reads = [self.trial_x[row], *self._plan(k), *self._following(t, k)]
        straight(rolled, reads, [self.trial_x[row + 1], self.trial_u[t * self.N + k], self.merits[t]])

    def _stepped(
        self, x: Any, u: Any, qdd: Any, forces: Any, gap: Any, p: Any, m: Any, size: Any, merits: Any
    ) -> list[list[Scalar]]:
        """The next state of a rollout, and its cost and gaps so far."""
        problem, (alpha,), (cost, away) = self.problem, size, merits
        dynamics = problem._dynamics_of(x, u, p)
        left = [(alpha - 1.0) * d for d in gap]
        following = dynamics.moved(dynamics.stepped(x, u, qdd).next_state, left)
        cost = cost + problem.stage_cost(x, u, p, forces)
        if problem.nm:
            cost = cost + problem.penalty(x, p, m, problem.force_limits(x, u, p, forces))
        return [following, [cost, absolute_sum(left, away)]]
