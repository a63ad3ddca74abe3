"""Iterations for robots that the ground holds: accelerations and forces of a stage are one system of equations.

What differs from ``iterations``: the derivatives of a stage are those of ``touching``, a stage of a rollout solves the
same system, and costs and limits of the forces f(x, u) enter with the slopes F of these forces:

    gradient += Fᵀ ∂ℓ/∂f          Hessian += Fᵀ ∂²ℓ/∂f² F          (Gauss and Newton)
"""

from __future__ import annotations

from typing import Any

from linkwise.language import array, dot, empty, span, straight, sums, zeros
from linkwise.optimal.iterations import Iterations, absolute_sum
from linkwise.optimal.touching import Touching, shapes_of, written_out
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
        self.pattern = self.problem.dynamics.pattern
        size = self.problem.dynamics.dof + self.c * self.problem.weighs_forces
        self.units = zeros(size, size)
        for i in span(size):
            self.units[i, i] = 1.0

    def _linearise_in_parts(self, first: Any) -> None:
        n, c, chunk = self.problem.dynamics.dof, self.c, self.chunk
        weighs = self.problem.weighs_forces
        qdd, force = empty(chunk, n), empty(chunk, c)
        factors = [empty(chunk, *shape) for shape in shapes_of(n, c)]
        right = empty(chunk, n + c, 2 * n + self.problem.dynamics.timed)
        force_cost = [empty(chunk, c), empty(chunk, c, c)] if weighs else []

        def expanded(
            x: Any, u: Any, p: Any, m: Any, following: Any, qdd: Any, force: Any
        ) -> list[list[Scalar]]:
            of_stage = self.problem._dynamics_of(x, u, p)
            made = of_stage.stepped(x, u, qdd)
            sides = self.pattern.checked(
                [row for rows in of_stage.contact_slopes(x, qdd, force) for row in rows]
            )
            gradient, gap, (value,), *hessian = self._expanded(x, u, p, m, following, made.next_state)
            more: list[list[Scalar]] = []
            if weighs:
                cost = self.problem.force_quadratic(x, u, p, m, force)
                value = value + cost.value
                more = [cost.gradient, [entry for row in cost.hessian for entry in row]]
            return [
                [v for row in sides for v in row],
                *self._turns_of(made),
                *more,
                gradient,
                gap,
                [value],
                *hessian,
            ]

        self._solve_stages(first, qdd, force, factors)
        for r in span(chunk, parallel=True):
            k = first + r
            own = [*self._turns_at(r), *(part[r] for part in force_cost)]
            reads = [*self._stage(k), qdd[r], force[r]]
            straight(expanded, reads, [right[r], *own, *self._expansion(r, k)])
        forces = empty(c, self.shape.width) if weighs else None
        for r in span(chunk):
            self._set_slopes(r, first + r, [part[r] for part in factors], right[r], qdd[r], forces)
            if weighs:
                self._add_forces(r, forces, *(part[r] for part in force_cost))

    def _solve_stages(self, first: Any, qdd: Any, force: Any, factors: list[Any]) -> None:
        """Accelerations, forces and the factors of their system, of all stages of a chunk."""
        n, c, chunk = self.problem.dynamics.dof, self.c, self.chunk

        def solved(x: Any, u: Any, p: Any) -> list[list[Scalar]]:
            made = written_out(*self._system(x, u, p))
            return [list(made.qdd), list(made.force), *self.pattern.numbers(made.factors)]

        if self._is_short:
            for r in span(chunk, parallel=True):
                k = first + r
                writes = [part[r] for part in (qdd, force, *factors)]
                straight(solved, [self.x[k], self.u[k], self.p[k]], writes)
            return
        systems = [empty(chunk, *shape) for shape in ((n, n), (n,), (c, n), (c,), (c,))]
        for r in span(chunk, parallel=True):
            k = first + r
            self._equation(self.x[k], self.u[k], self.p[k], [part[r] for part in systems])
        for r in span(chunk):
            made = Touching(*(part[r] for part in systems))
            qdd[r, :], force[r, :] = made.qdd, made.force
            for place, part in zip(factors, made.factors.parts, strict=True):
                triangular = part is made.factors.L or part is made.factors.C
                for i in span(part.shape[0]):
                    if triangular:
                        place[r, i, :i] = part[i, :i]
                    else:
                        place[r, i] = part[i]

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

    def _set_slopes(self, r: Any, k: Any, factors: list[Any], right: Any, qdd: Any, forces: Any) -> None:
        """Rows of δq̇' = δq̇ + h δq̈ of a stage, and derivatives of its forces where they are wanted."""
        rows, d, h = self.slopes[r], self.problem.dynamics, self._duration(k)
        n, below, size = d.dof, self._rows_before, self.units.shape[0]
        T = empty(n + self.c, size)

        def column(unit: Any, *parts: Any) -> list[list[Scalar]]:
            turning: Any = unit[n:] or [0.0] * self.c
            changed, pushed = self.pattern.factors(*parts).solved(array(unit[:n]), array(turning))
            return [[*changed, *(-v for v in pushed)]]

        for j in span(size, parallel=True):
            straight(column, [self.units[:, j], *factors], [T[:, j]])
        for group in self.pattern.groups():
            for turn in span(group.count):
                products = [(T[own, :], right[own, :]) for own in group.rows(turn)]
                for j in span(group.columns, parallel=True):
                    at = group.first + turn * group.shift + j
                    for i, total in sums([], *((of[:, :n].T, to[:, at], 1) for of, to in products)):
                        rows[below + i, at] = -(h * total)
                    if forces is not None:
                        for i, total in sums([], *((of[:, n:].T, to[:, at], 1) for of, to in products)):
                            forces[i, at] = -total
        for j in self.pattern.still:
            rows[below : below + n, j] = 0.0
            if forces is not None:
                forces[:, j] = 0.0
        for j, driven in enumerate(d.driven, start=self.n):
            for i in span(n):
                rows[below + i, j] = h * T[driven, i]
            if forces is not None:
                forces[:, j] = T[driven, n:]
        if d.timed:
            self._set_last_column(rows, right[:, 2 * n], T, h)
        for i in span(n):
            rows[below + i, n + i] = rows[below + i, n + i] + 1.0
        self._set_position_rows(r, k, qdd)
        if forces is not None and d.timed:
            begins = self._begins(k)
            for i in span(self.c):
                by_duration = -dot(T[:, n + i], right[:, 2 * n])
                forces[i, self.n - 1] = (1.0 - begins) * by_duration
                forces[i, self.shape.width - 1] = begins * by_duration

    def _set_last_column(self, rows: Any, by_duration: Any, T: Any, h: Any) -> None:
        """Of rows of velocities, where durations are chosen."""
        below = self._rows_before
        for i in span(self.problem.dynamics.dof):
            rows[below + i, self.shape.width - 1] = -(h * dot(T[:, i], by_duration))

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
