"""What an iteration of the solver does with a trajectory, over any scalar:

    for each iteration
        for each stage (independent of each other): linearise, quadratic cost, gap to the next state
        for each stage from the last one: the step of ``solve.riccati``
        for each step size (independent): roll out with feedback, clamp, add up cost and gaps
        take the best step size (``acceptance``) by selection

Where the time may depend on the data, the longest step is tried first, and the others only if that is not taken.

There is no branch on data and no allocation: the same program runs many problems in the lanes of vectors, one problem
with stages and columns in lanes, as C on a controller and as CUDA, with the same bits. A trajectory whose cost is not a
number is never taken. Its loops are those of ``linkwise.language``: matrices of arms are written out, larger ones stay
loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from linkwise.compiler.ir.graph import Graph
from linkwise.language import dot, empty, needed, span, straight, variable
from linkwise.optimal import acceptance
from linkwise.optimal.timings import BEGINS
from linkwise.scalar import Scalar, clipped, where
from linkwise.solve.factors import ldl, solve
from linkwise.solve.riccati import Riccati, Shape

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem

FINITE = 3e38
"""A cost or gap of larger magnitude counts as infinite."""
REPORT = ("cost", "gap", "gradient", "expected", "step", "regularisation", "accepted", "sound")
"""What a problem reports: cost and sum of |gaps| of the result; of the last sweep the largest |∂/∂u| of a free torque,
the first-order change of the cost, the step size taken (0: none) and its soundness (1; 0.75 where the costs do not
determine all torques; 0 where a pivot was negative); the regularisation of the next iteration; how many iterations took
a step."""
ROUNDED = 100.0
"""Sum of gaps, in units of the smallest pivot, up to which they are closed but for rounding."""
LEAST_STAGES, MOST_STAGES = 4, 16
"""Of a chunk: so many stages are linearised before their sweep, so that their derivatives stay in a near cache."""


class Iterations:
    """The trajectory of a problem, and what an iteration does with it.

    Args:
        problem: what is optimised.
        shape: of its stages.
        steps: step sizes that are tried.
        smallest: pivot.
        given: inputs by name.
        plans: whether these are plans of predictive control, whose gaps are closed first (``exact_weight``).
        constant_time: whether all step sizes are tried in any case.
        curved: whether second derivatives of the dynamics count, see ``Dynamics.bends``.
    """

    def __init__(
        self,
        problem: Problem,
        shape: Shape,
        steps: Sequence[float],
        smallest: float,
        given: dict[str, Any],
        plans: bool = False,
        constant_time: bool = True,
        curved: bool = False,
    ):
        self.plans, self.curved = plans, curved
        self.first = len(steps) if constant_time else 1
        """How many step sizes are tried at first."""
        self.still = variable(1.0)  # negative where the others are needed
        self.problem, self.steps, self.given = problem, tuple(steps), given
        N, tries = problem.horizon, len(steps)
        self.N, self.ns, self.n, self.m = N, problem.ns, problem.nx, problem.nu
        s = self.shape = shape
        self.chunk = chunk_of(N)
        self.x, self.u = empty(N + 1, self.ns), empty(N, self.m)
        self.p, self.multipliers = empty(N + 1, problem.np), empty(N + 1, problem.nm)
        self.slopes = empty(self.chunk, s.full, s.width)
        self.gradients = empty(self.chunk, s.width)
        # rows of positions follow from those of velocities: in the sweep or, where durations are chosen, before it
        self.turned = tuple(problem.dynamics.blocks) if problem.dynamics.in_parts else s.turned
        self.turns = [[empty(self.chunk, len(at), len(at)) for at in self.turned] for _ in range(2)]
        self.hessians = {name: empty(self.chunk, *s.block_shape(name)) for name in s.blocks}
        self.gaps, self.values = empty(N + 1, self.n), empty(N + 1, 1)
        self.k, self.K = empty(N, self.m), empty(N, self.m, self.n)
        self.trial_x, self.trial_u = empty(tries * (N + 1), self.ns), empty(tries * N, self.m)
        self.merits, self.picks = empty(tries, 2), empty(tries)
        self.room = (empty(self.m), empty(self.m)) if s.boxed else None
        self.sizes = empty(tries, 1)
        for t, size in enumerate(self.steps):
            self.sizes[t, 0] = size
        self.riccati = Riccati(s, smallest)
        self.cost, self.gap, self.taken, self.accepted = (variable(0.0) for _ in range(4))
        self.mu = variable(given["regularisation"][0])

    def run(self, iterations: int) -> dict[str, Any]:
        """All iterations, and what they leave."""
        self._take_in()
        for _ in span(iterations):
            self._iterate()
        report = empty(len(REPORT))
        r = self.riccati
        cost, gap, sound = self.cost.value, self.gap.value, r.sound.value
        # a plan whose cost or gap is not finite, because an input is not, is not sound
        sound = where(abs(cost) + gap <= FINITE, sound, 0.0)
        values = (cost, gap, r.gradient, r.expected, self.taken, self.mu, self.accepted, sound)
        for k, value in enumerate(values):
            report[k] = value
        return {"new_states": self.x, "new_torques": self.u, "gains": self.K, "report": report}

    def _take_in(self) -> None:
        """Copies of what is given; numbers that are none become the start or zero."""
        given, N = self.given, self.N
        start = given["start"]
        self.x[0, :] = start
        for k in span(1, N + 1, parallel=True):
            for i in span(self.ns):
                self.x[k, i] = _finite(given["states"][k, i], start[i])
        for k in span(N, parallel=True):
            for i in span(self.m):
                value = _finite(given["torques"][k, i], 0.0)
                if self.shape.boxed:
                    low, high = (given["parameters"][k, at.start + i] for at in self.problem.control_limits)
                    value = clipped(value, low, high)
                self.u[k, i] = value
        for name, table in (("parameters", self.p), ("multipliers", self.multipliers)):
            if name in given:
                table[:, :] = given[name]
        for i in span(self.n):
            self.gaps[0, i] = 0.0

    def _iterate(self) -> None:
        N, riccati, chunk = self.N, self.riccati, self.chunk
        riccati.clear()
        self._end()
        for c in span(N // chunk - 1, -1, -1):
            if self.problem.dynamics.in_parts:
                self._linearise_in_parts(c * chunk)
            else:
                for r in span(chunk, parallel=True):
                    self._linearise(r, c * chunk + r)
            for r in span(chunk - 1, -1, -1):
                self._sweep(r, c * chunk + r)
        self.cost.value = self.gap.value = 0.0
        for k in span(N + 1):
            reads = [self.cost, self.values[k], self.gap, self.gaps[k]]
            straight(_sums, reads, [self.cost, self.gap])
        if self.first == len(self.steps):
            self._try_steps(0, self.first)
        else:
            self.still.value = -1.0
            for turn in span(2):  # the first step size, then the others
                for _ in needed(self.still):
                    self._try_steps(turn, 1 + turn * (len(self.steps) - 1))
                    self._judge_first()
        self._select()

    def _linearise(self, r: Any, k: Any) -> None:
        """Rows of the derivatives, quadratic cost and gap of a stage."""
        problem = self.problem

        def linearised(x: Any, u: Any, p: Any, m: Any, following: Any) -> list[list[Scalar]]:
            made = problem.linearised(x, u, p)
            rows = [value for row in full_rows(made, self.shape) for value in row]
            turns = self._turns_of(made)
            return [rows, *turns, *self._expanded(x, u, p, m, following, made.next_state)]

        writes = [self.slopes[r], *self._turns_at(r), *self._expansion(r, k)]
        straight(linearised, self._stage(k), writes)

    def _turns_of(self, made: Any) -> list[list[Scalar]]:
        """Blocks of a stage by which positions follow from positions and velocities, row by row."""
        matrices = (made.turn, made.gain) if self.turned else ()
        return [[matrix[i][j] for i in at for j in at] for matrix in matrices for at in self.turned]

    def _turns_at(self, r: Any) -> list[Any]:
        """Where these are kept."""
        return [block[r] for matrix in self.turns for block in matrix]

    def _stage(self, k: Any) -> list[Any]:
        """What the quadratic model of a stage depends on."""
        return [self.x[k], self.u[k], self.p[k], self.multipliers[k], self.x[k + 1]]

    def _expansion(self, r: Any, k: Any) -> list[Any]:
        """Where ``_expanded`` is kept."""
        parts = [self.gradients[r], self.gaps[k + 1], self.values[k]]
        return [*parts, *(block[r] for block in self.hessians.values())]

    def _expanded(self, x: Any, u: Any, p: Any, m: Any, following: Any, reached: Any) -> list[list[Scalar]]:
        """Gradient and value of the cost, the gap, and blocks of the Hessian."""
        cost = self.problem.stage_quadratic(x, u, p, m)
        gap = self.problem.dynamics.difference(following, reached)
        blocks = ([cost.hessian[i][j] for i, j in block] for block in self.shape.blocks.values())
        return [cost.gradient, gap, [cost.value], *blocks]

    def _linearise_in_parts(self, first: Any) -> None:
        """The same for all stages of a chunk of a large robot: solutions with the mass matrix are loops."""
        dynamics, n, chunk = self.problem.dynamics, self.problem.dynamics.dof, self.chunk
        M, force, qdd = empty(chunk, n, n), empty(chunk, n), empty(chunk, n)
        L, inverse, rates = empty(chunk, n, n), empty(chunk, n), empty(chunk, n, 2 * n)

        def equation(x: Any, u: Any) -> list[list[Scalar]]:
            matrix, net = dynamics.equation(x, u)
            return [[value for row in matrix for value in row], net]

        def expanded(x: Any, u: Any, p: Any, m: Any, following: Any, qdd: Any) -> list[list[Scalar]]:
            made = self.problem._dynamics_of(x, u, p).stepped(x, u, qdd)
            by_x = [value for row in dynamics.equation_slopes(x, qdd) for value in row]
            return [by_x, *self._turns_of(made), *self._expanded(x, u, p, m, following, made.next_state)]

        for r in span(chunk, parallel=True):
            straight(equation, [self.x[first + r], self.u[first + r]], [M[r], force[r]])
        for r in span(chunk):
            L[r, :, :], inverse[r, :] = ldl(M[r])
            qdd[r, :] = solve(L[r], inverse[r], force[r])
        for r in span(chunk, parallel=True):
            k = first + r
            writes = [rates[r], *self._turns_at(r), *self._expansion(r, k)]
            straight(expanded, [*self._stage(k), qdd[r]], writes)
        right = empty(n, self.shape.width)
        for r in span(chunk):
            self._fill_right_side(right, rates[r])
            self._set_velocity_rows(r, first + r, solve(L[r], inverse[r], right), qdd[r])

    def _fill_right_side(self, right: Any, rates: Any) -> None:
        """Derivatives of the net torques S u − b at fixed accelerations by (x, u), from those of b by x."""
        dynamics, n = self.problem.dynamics, self.problem.dynamics.dof
        for j in span(2 * n):
            for i in span(n):
                right[i, j] = -rates[i, j]
        for j in range(2 * n, self.shape.width):
            right[:, j] = 0.0
        for j, driven in enumerate(dynamics.driven, start=self.n):
            right[driven, j] = 1.0

    def _set_velocity_rows(self, r: Any, k: Any, accelerations: Any, qdd: Any) -> None:
        """Rows of δq̇' = δq̇ + h δq̈ of a stage, from the derivatives of its accelerations."""
        rows, n, h = self.slopes[r], self.problem.dynamics.dof, self._duration(k)
        below = self._rows_before
        for i in span(n):
            for j in span(self.shape.width):
                rows[below + i, j] = h * accelerations[i, j]
            rows[below + i, n + i] = rows[below + i, n + i] + 1.0
        self._set_position_rows(r, k, qdd)

    def _duration(self, k: Any) -> Any:
        """Of the step of a stage."""
        if not self.problem.dynamics.timed:
            return self.problem.step
        begins = self._begins(k)
        return begins * self.u[k, self.m - 1] + (1.0 - begins) * self.x[k, self.ns - 1]

    def _begins(self, k: Any) -> Any:
        return self.p[k, self.problem.where(BEGINS).start]

    @property
    def _rows_before(self) -> int:
        """Rows of positions before those of velocities."""
        return self.problem.dynamics.dof if self.problem.dynamics.timed else 0

    def _set_position_rows(self, r: Any, k: Any, qdd: Any) -> None:
        """Where durations are chosen, the rows of δq' = T δq + h S δq̇' + S q̇' δh, q̈ δh in those of δq̇', and the row of
        δh itself. What is there of derivatives by h is in the last column."""
        d = self.problem.dynamics
        if not d.timed:
            return
        rows, n, h, width = self.slopes[r], d.dof, self._duration(k), self.shape.width
        last, before, begins = width - 1, self.n - 1, self._begins(k)
        free = [i for at in self.turned for i in at]
        for i in span(n):
            rows[n + i, last] = rows[n + i, last] + qdd[i]
        moved = empty(n, width)  # h δq̇' + q̇' δh
        for i in span(n):
            for j in span(width, parallel=True):
                moved[i, j] = h * rows[n + i, j]
            moved[i, last] = moved[i, last] + (self.x[k, d.nq + i] + h * qdd[i])
        for i in range(n):
            if i not in free:
                for j in span(self.shape.width, parallel=True):
                    rows[i, j] = moved[i, j]
                rows[i, i] = rows[i, i] + 1.0
        for at, T, S in zip(self.turned, *self.turns, strict=True):
            for i in span(len(at)):
                for j in span(self.shape.width, parallel=True):
                    rows[at.start + i, j] = dot(S[r][i, :], moved[at.start : at.stop, j])
                for j in span(len(at)):
                    rows[at.start + i, at.start + j] = rows[at.start + i, at.start + j] + T[r][i, j]
        for i in span(2 * n):
            rows[i, before] = (1.0 - begins) * rows[i, last]
            rows[i, last] = begins * rows[i, last]
        for j in span(width):
            rows[before, j] = 0.0
        rows[before, before], rows[before, last] = 1.0 - begins, begins

    def _end(self) -> None:
        """The value function at the end of the horizon."""
        problem, r, N = self.problem, self.riccati, self.N
        q = self.shape.shifted

        def end(x: Any, p: Any, m: Any) -> list[list[Scalar]]:
            cost = problem.terminal_quadratic(x, p, m)
            H = cost.hessian
            blocks = ((H[:q], slice(q)), (H[:q], slice(q, None)), (H[q:], slice(q, None)))
            return [
                *([value for row in rows for value in row[columns]] for rows, columns in blocks),
                cost.gradient,
                [cost.value],
            ]

        writes = [r.Vqq, r.Vqv, r.Vvv, r.vx, self.values[N]]
        straight(end, [self.x[N], self.p[N], self.multipliers[N]], writes)

    def _sweep(self, r: Any, k: Any) -> None:
        """One stage backward."""
        if self.room is not None:
            for i in span(self.m):
                for side, at in zip(self.room, self.problem.control_limits, strict=True):
                    side[i] = self.p[k, at.start + i] - self.u[k, i]
        riccati = self.riccati
        turns = [[block[r] for block in matrix] for matrix in self.turns] if self.shape.turned else ((), ())
        riccati.next_value(self.gaps[k + 1], self.mu.value, turns)
        cost = {name: block[r] for name, block in self.hessians.items()}
        if self.curved:
            reads = [self.x[k], self.u[k], self.p[k], riccati.ahead, *cost.values()]
            straight(self._bent, reads, list(cost.values()))
        riccati.stage(self.slopes[r], self.gradients[r], cost, self.room, self.mu.value, self.k[k], self.K[k])

    def _bent(self, x: Any, u: Any, p: Any, ahead: Any, *blocks: Any) -> list[list[Scalar]]:
        """Blocks of the Hessian with the second derivatives of the dynamics, weighted by the gradient ``ahead`` of the
        value function of the next stage."""
        H = self.problem._dynamics_of(x, u, p).curvature(x, u, ahead)
        places = self.shape.blocks.values()
        return [
            [value + H[i][j] for value, (i, j) in zip(block, at, strict=True)]
            for block, at in zip(blocks, places, strict=True)
        ]

    def _try_steps(self, first: Any, stop: Any) -> None:
        """A rollout for each of some step sizes."""
        for t in span(first, stop, parallel=True):
            cost, left_gap = variable(0.0), variable(0.0)
            self.trial_x[t * (self.N + 1), :] = self.given["start"]
            for k in span(self.N):
                self._roll(t, k, cost, left_gap)
            self._finish(t, cost)
            self.merits[t, 0], self.merits[t, 1] = cost.value, left_gap.value

    def _finish(self, t: Any, cost: Any) -> None:
        """The cost of the last state of a rollout."""
        problem, N = self.problem, self.N

        def end(x: Any, p: Any, mult: Any, cost: Any) -> list[list[Scalar]]:
            total = cost[0] + problem.terminal_cost(x, p)
            if problem.nm:
                total = total + problem.penalty(x, p, mult)
            return [[total]]

        straight(end, [self.trial_x[t * (N + 1) + N], self.p[N], self.multipliers[N], cost], [cost])

    def _roll(self, t: Any, k: Any, cost: Any, left_gap: Any) -> None:
        """One stage of a rollout."""
        problem, dynamics = self.problem, self.problem.dynamics
        row = t * (self.N + 1) + k

        def rolled(
            x: Any, old: Any, u: Any, forward: Any, feedback: Any, gap: Any, p: Any, mult: Any, size: Any,
            cost: Any, gaps: Any,
        ) -> list[list[Scalar]]:  # fmt: skip
            torques = self.fed_back(x, old, u, forward, feedback, p, size)
            (alpha,) = size
            left = [(alpha - 1.0) * d for d in gap]
            following = dynamics.moved(problem.next_state(x, torques, p), left)
            total = cost[0] + problem.stage_cost(x, torques, p)
            if problem.nm:
                total = total + problem.penalty(x, p, mult)
            return [following, torques, [total], [absolute_sum(left, gaps[0])]]

        reads = [self.trial_x[row], *self._plan(k), self.gaps[k + 1], self.p[k], self.multipliers[k]]
        reads += [self.sizes[t], cost, left_gap]
        straight(rolled, reads, [self.trial_x[row + 1], self.trial_u[t * self.N + k], cost, left_gap])

    def _plan(self, k: Any) -> list[Any]:
        """What a rollout follows in a stage."""
        return [self.x[k], self.u[k], self.k[k], self.K[k]]

    def fed_back(
        self, x: Any, old: Any, u: Any, forward: Any, feedback: Any, p: Any, size: Any
    ) -> list[Scalar]:
        """Torques of a rollout: u + α k + K (x ⊟ x_old), within their limits."""
        n, (alpha,) = self.n, size
        change = self.problem.dynamics.difference(old, x)
        torques: list[Any] = []
        for i in range(self.m):
            value = u[i] + alpha * forward[i]
            for j in range(n):
                value = value + feedback[i * n + j] * change[j]
            torques.append(value)
        return self.problem.clamped(torques, p) if self.problem.boxed else torques

    def _select(self) -> None:
        """Which trial is taken, and the trajectory that stays."""
        riccati = self.riccati

        def decided(trials: Any, now: Any, *further: Any) -> list[list[Scalar]]:
            costs, gaps = trials[::2], trials[1::2]
            (cost,), (gap, mu, closing, sound, accepted, expected, largest) = (
                now,
                (value[0] for value in further),
            )
            picks = self._chosen(costs, gaps, cost, gap, closing, expected, largest)
            picks = [where(sound > 0.5, pick, 0.0) for pick in picks]
            # where nothing is left to gain no step is better: that is no reason to regularise, which weakens the gains
            left = abs(expected) + abs(closing)
            done = (left < ROUNDED * riccati.smallest * abs(cost)) & (sound > 0.5)
            any_of, taken = 0.0, 0.0
            for pick, size, c, g in zip(picks, self.steps, costs, gaps, strict=True):
                any_of = any_of + pick
                taken = taken + size * pick
                cost, gap = where(pick > 0.5, c, cost), where(pick > 0.5, g, gap)
            more = accepted + any_of
            mu = acceptance.regularised(mu, where(done, 1.0, taken))
            return [picks, [cost], [gap], [mu], [taken], [more]]

        now = [self.cost, self.gap, self.mu, riccati.closing, riccati.sound, self.accepted, riccati.expected]
        now.append(riccati.largest)
        writes = [self.picks, self.cost, self.gap, self.mu, self.taken, self.accepted]
        straight(decided, [self.merits, *now], writes)
        self._take(range(self.first))
        if self.first < len(self.steps):
            for _ in needed(self.still):
                self._take(range(self.first, len(self.steps)))

    def _chosen(
        self, costs: Any, gaps: Any, cost: Any, gap: Any, closing: Any, expected: Any, largest: Any
    ) -> list[Scalar]:
        """1 for the trial that is taken."""
        weight = self._weight(gap, closing, expected, largest)
        merits = [acceptance.merit(c, g, weight) for c, g in zip(costs, gaps, strict=True)]
        promised = [(size - 0.5 * size * size) * abs(expected) for size in self.steps]
        return acceptance.chosen(acceptance.merit(cost, gap, weight), merits, promised)

    def _weight(self, gap: Any, closing: Any, expected: Any, largest: Any) -> Any:
        """Of the gaps in the merit."""
        if self.plans:
            return acceptance.exact_weight(largest)
        return acceptance.weight(gap, expected, closing, ROUNDED * self.riccati.smallest)

    def _judge_first(self) -> None:
        """Whether the first step size brings enough, so that no other one is needed."""
        riccati = self.riccati

        def judged(trial: Any, *now: Any) -> list[list[Scalar]]:
            cost, gap, closing, expected, largest, sound = (value[0] for value in now)
            enough = self._enough(trial, cost, gap, closing, expected, largest)
            return [[where(sound > 0.5, where(enough > 0.5, 1.0, -1.0), 1.0)]]

        now = [self.cost, self.gap, riccati.closing, riccati.expected, riccati.largest, riccati.sound]
        straight(judged, [self.merits[0], *now], [self.still])

    def _enough(self, trial: Any, cost: Any, gap: Any, closing: Any, expected: Any, largest: Any) -> Any:
        """1 where the first trial is better by a part of what it promises."""
        weight = self._weight(gap, closing, expected, largest)
        promised = (self.steps[0] - 0.5 * self.steps[0] * self.steps[0]) * abs(expected)
        merit, before = (acceptance.merit(c, g, weight) for c, g in ((trial[0], trial[1]), (cost, gap)))
        return acceptance.enough(before, merit, promised)

    def _take(self, trials: Sequence[int]) -> None:
        """The trajectory of a trial, where it is taken."""
        N = self.N
        for k in span(1, N + 1, parallel=True):
            self._copy(self.x[k], {t: self.trial_x[k + t * (N + 1)] for t in trials})
        for k in span(N, parallel=True):
            self._copy(self.u[k], {t: self.trial_u[k + t * N] for t in trials})

    def _copy(self, row: Any, trials: Mapping[int, Any]) -> None:
        for i in span(row.shape[0]):
            value = row[i]
            for t, trial in trials.items():
                value = where(self.picks[t] > 0.5, trial[i], value)
            row[i] = value


def stage_shape(problem: Problem, curved: bool = False) -> Shape:
    """Sizes, and which entries of the Hessian are not always zero; ``curved`` ones have second derivatives of the
    dynamics."""
    graph = Graph()
    x, u, p = graph.inputs("x", problem.ns), graph.inputs("u", problem.nu), graph.inputs("p", problem.np)
    cost = problem.stage_quadratic(x, u, p, graph.inputs("m", problem.nm))
    size = problem.nx + problem.nu
    dynamics = problem.dynamics
    matrices = [cost.hessian]
    if curved:
        matrices.append(problem._dynamics_of(x, u, p).curvature(x, u, graph.inputs("ahead", dynamics.dof)))
    entries = frozenset(
        (i, j)
        for i in range(size)
        for j in range(i + 1)
        if problem.weighs_forces or any(graph.lift(H[i][j]) is not graph.zero for H in matrices)
    )
    shifted = dynamics.dof if dynamics.structured and not (dynamics.remembers or dynamics.timed) else 0
    turned = tuple(dynamics.blocks) if shifted else ()
    return Shape(shifted, problem.nx - shifted, problem.nu, problem.step, entries, problem.boxed, turned)


def full_rows(made: Any, shape: Shape) -> list[list[Scalar]]:
    """Rows of δx' that are full matrices, by (δx, δu)."""
    if shape.shifted:
        return made.velocity
    A, B = made.matrices()
    return [[*a, *b] for a, b in zip(A, B, strict=True)]


def chunk_of(horizon: int) -> int:
    """How many stages are linearised at a time: the divisor of the horizon, up to ``MOST_STAGES``, that leaves least of
    vectors of ``LEAST_STAGES`` lanes unused, the largest of such; all if none fills a vector.
    """
    divisors = [size for size in range(LEAST_STAGES, MOST_STAGES + 1) if horizon % size == 0]
    return max(divisors, key=lambda size: (-(-size % LEAST_STAGES) / size, size), default=horizon)


def _finite(value: Any, instead: Any) -> Scalar:
    return where(abs(value) < acceptance.HUGE, value, instead)


def _sums(cost: Any, value: Any, gap: Any, gaps: Any) -> list[list[Scalar]]:
    return [[cost[0] + value[0]], [absolute_sum(gaps, gap[0])]]


def absolute_sum(values: Sequence[Any], start: Any) -> Scalar:
    """start + Σ |values|."""
    for value in values:
        start = start + abs(value)
    return start
