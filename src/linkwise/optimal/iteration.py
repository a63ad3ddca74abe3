"""Iterations of the solver as one program: loops over the horizon around straight-line pieces, a fixed number of them.

    for each iteration
        for each stage (independent of each other): linearise, quadratic cost, gap to the next state
        for each stage from the last one: the step of ``riccati_loops``
        for each step size (independent): roll out with feedback, clamp, add up cost and gaps
        take the best step size (``acceptance``) by selection

There is no branch on data and no allocation: the same program runs many problems in the lanes of vectors, one problem
with stages and columns in lanes, as C on a controller and as CUDA, with the same bits. A trajectory whose cost is not a
number is never taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.compiler.graph import Graph
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.loops import (
    Array,
    Declare,
    Element,
    For,
    Place,
    Register,
    Statement,
    Whole,
    name,
    whole,
)
from linkwise.compiler.procedure import Procedure, ProcedureNest, cells
from linkwise.optimal import acceptance
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.arguments import whole as whole_number
from linkwise.optimal.riccati_loops import EXPECTED, GRADIENT, LARGEST, SOUND, R, Riccati, Shape
from linkwise.scalar import Scalar, where

if TYPE_CHECKING:
    from linkwise.compiler.program import Dtype
    from linkwise.optimal.problem import Problem

K, T = name("k"), name("t")
COST, GAP, MU, TAKEN, ACCEPTED = (Register(key) for key in ("cost", "gap", "mu", "taken", "accepted"))
TRIAL_COST, TRIAL_GAP = Register("trial_cost"), Register("trial_gap")
FINITE = 3e38
"""A cost or gap of larger magnitude counts as infinite."""
REPORT = ("cost", "gap", "gradient", "expected", "step", "regularisation", "accepted", "sound")
"""What a problem reports: cost and sum of |gaps| of the result; of the last sweep the largest |∂/∂u| of a free torque,
the first-order change of the cost, the step size taken (0: none) and whether no pivot was negative; the regularisation
of the next iteration; how many iterations took a step."""


STEPS = (1.0, 0.5, 0.25, 0.125)
"""Step sizes that are tried."""


def iteration(problem: Problem, *, iterations: int = 1, steps: Sequence[float] = STEPS) -> Kernel:
    """A kernel that does iterations of the solver, for one problem or many at once.

    Inputs, each (..., size): ``start`` (ns), ``parameters`` ((horizon + 1)·np: ``problem.p`` row by row),
    ``multipliers`` ((horizon + 1)·nm, only for problems with limits), ``states`` ((horizon + 1)·ns) and ``torques``
    (horizon·m) of the trajectory to begin with, ``regularisation`` (1; 0 is a good start). Outputs: ``new_states``
    (horizon + 1, ns), ``new_torques`` (horizon, m), ``gains`` K (horizon, m, nx) of the last sweep with δu = K δx, and
    ``report``, see ``REPORT``. Where no step is taken the trajectory stays, but begins at ``start``. The same object
    gives C without allocation (``source("c")``) and CUDA; the time of a call does not depend on the data.

    Args:
        problem: what is optimised; its parameters and start are inputs.
        iterations: how many, from 1 on.
        steps: step sizes that are tried in each, from (0, 1].

    Raises:
        ProblemError: a number of iterations below 1, or no step size.
    """
    count = whole_number("iterations", iterations, 1)
    sizes = tuple(sorted((float(size) for size in steps), reverse=True))
    if not sizes or any(not 0.0 < size <= 1.0 for size in sizes):
        raise ProblemError(f"steps: expected step sizes above 0 and up to 1, got {steps!r}")
    loops = IterationLoops(problem, count, sizes, "float64")
    own = problem.key()
    key = None if own is None else own + repr((problem.horizon, count, sizes)).encode()

    def build(dtype: Any) -> Any:
        return IterationLoops(problem, count, sizes, dtype).nest()

    return Kernel(NAME, loops.inputs().items(), loops.outputs().items(), "float64", build, key)


NAME = "iteration"


class IterationLoops:
    """The statements for one problem."""

    def __init__(self, problem: Problem, iterations: int, steps: Sequence[float], dtype: Dtype):
        self.problem, self.iterations, self.steps = problem, iterations, tuple(steps)
        self.made = Procedure(dtype)
        self.N, self.ns, self.n, self.m = problem.horizon, problem.ns, problem.nx, problem.nu
        self.shape = stage_shape(problem)
        self.riccati = Riccati(self.shape, self.N, self.made)

    def inputs(self) -> dict[str, int]:
        """Names and sizes of what is given."""
        p, N = self.problem, self.N
        found = {"start": p.ns, "parameters": (N + 1) * p.np, "multipliers": (N + 1) * p.nm}
        found |= {"states": (N + 1) * p.ns, "torques": N * p.nu, "regularisation": 1}
        return {key: size for key, size in found.items() if size}

    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what is computed."""
        N = self.N
        return {
            "new_states": (N + 1, self.ns),
            "new_torques": (N, self.m),
            "gains": (N, self.m, self.n),
            "report": (len(REPORT),),
        }

    def nest(self) -> ProcedureNest:
        """The whole program."""
        p, N, tries = self.problem, self.N, len(self.steps)
        arrays = [Array(key, "input", size) for key, size in self.inputs().items()]
        for key, shape in self.outputs().items():
            size = 1
            for length in shape:
                size *= length
            arrays.append(Array(key, "output", size))
        arrays.append(Array("step_sizes", "constant", tries))
        arrays += [Array("p", "scratch", p.np, N + 1)] if p.np else []
        arrays += [Array("multiplier", "scratch", p.nm, N + 1)] if p.nm else []
        arrays += [
            Array("x", "scratch", self.ns, N + 1),
            Array("u", "scratch", self.m, N),
            Array("values", "scratch", 1, N + 1),
            Array("trial_x", "scratch", self.ns, tries * (N + 1)),
            Array("trial_u", "scratch", self.m, tries * N),
            Array("merits", "scratch", 2, tries),
            Array("picks", "scratch", tries),
            *self.riccati.arrays(),
        ]
        body: list[Statement] = [
            Declare(dict.fromkeys((COST, GAP, TAKEN, ACCEPTED, EXPECTED, GRADIENT, LARGEST), 0.0)),
            Declare({MU: Element("regularisation", whole(0)), SOUND: 1.0}),
            *self._taken_in(),
            For("iteration", whole(0), whole(self.iterations), self._iteration()),
            *self._given_out(),
        ]
        return ProcedureNest(
            NAME,
            self.made.dtype,
            tuple(arrays),
            body,
            constants={"step_sizes": self.steps},
            operations=self.made.operations(body),
        )

    # -- places

    def _p(self, row: Whole) -> list[Place]:
        return cells("p", self.problem.np, 0, row)

    def _multipliers(self, row: Whole) -> list[Place]:
        return cells("multiplier", self.problem.nm, 0, row)

    def _x(self, row: Whole) -> list[Place]:
        return cells("x", self.ns, 0, row)

    # -- in and out

    def _taken_in(self) -> list[Statement]:
        """Copies of what is given; numbers that are none become the start or zero."""
        p, N, ns = self.problem, self.N, self.ns

        def states(given: Any, start: Any) -> list[list[Scalar]]:
            return [[_finite(a, b) for a, b in zip(given, start, strict=True)]]

        def torques(given: Any) -> list[list[Scalar]]:
            return [[_finite(a, 0.0) for a in given]]

        def same(given: Any) -> list[list[Scalar]]:
            return [list(given)]

        step = self.made.step
        start = cells("start", ns)
        found: list[Statement] = [step(same, [start], [cells("x", ns, 0, whole(0))])]
        found.append(
            _each(1, N + 1, step(states, [cells("states", ns, K * ns), start], [self._x(K)], apart=True))
        )
        found.append(
            _each(0, N, step(torques, [cells("torques", self.m, K * self.m)], [cells("u", self.m, 0, K)]))
        )
        for key, array, size in (("parameters", "p", p.np), ("multipliers", "multiplier", p.nm)):
            if size:
                copied = step(same, [cells(key, size, K * size)], [cells(array, size, 0, K)], apart=True)
                found.append(_each(0, N + 1, copied))
        if self.problem.boxed:
            found.append(_each(0, N, self._clamped()))
        zeros = step(lambda: [[0.0] * self.n], [], [cells("gaps", self.n, 0, whole(0))])
        return [*found, zeros]

    def _clamped(self) -> Statement:
        def clamped(u: Any, limits: Any) -> list[list[Scalar]]:
            m = self.m
            return [[_within(a, low, high) for a, low, high in zip(u, limits[:m], limits[m:], strict=True)]]

        places = cells("u", self.m, 0, K)
        return self.made.step(clamped, [places, self._limits(K)], [places])

    def _limits(self, row: Whole) -> list[Place]:
        """Lower and upper torque limits of a stage."""
        if not self.problem.boxed:
            return []
        lower, upper = (self.problem.where(f"torque.{side}") for side in ("lower", "upper"))
        return [*cells("p", self.m, lower.start, row), *cells("p", self.m, upper.start, row)]

    def _given_out(self) -> list[Statement]:
        N, ns, m, n = self.N, self.ns, self.m, self.n

        def same(given: Any) -> list[list[Scalar]]:
            return [list(given)]

        def reported(given: Any) -> list[list[Scalar]]:
            """A plan whose cost or gap is not finite, because an input is not, is not sound."""
            cost, gap, *others, sound = given
            return [[cost, gap, *others, where(abs(cost) + gap <= FINITE, sound, 0.0)]]

        step = self.made.step
        numbers: list[Place] = [COST, GAP, GRADIENT, EXPECTED, TAKEN, MU, ACCEPTED, SOUND]
        return [
            _each(0, N + 1, step(same, [self._x(K)], [cells("new_states", ns, K * ns)], apart=True)),
            _each(0, N, step(same, [cells("u", m, 0, K)], [cells("new_torques", m, K * m)], apart=True)),
            _each(
                0,
                N,
                step(
                    same, [cells("feedback", m * n, 0, K)], [cells("gains", m * n, K * (m * n))], apart=True
                ),
            ),
            step(reported, [numbers], [cells("report", len(REPORT))]),
        ]

    # -- an iteration

    def _iteration(self) -> list[Statement]:
        N = self.N
        step = self.made.step
        cleared: list[Place] = [EXPECTED, GRADIENT, LARGEST, SOUND, COST, GAP]
        value: list[Place] = [Element("values", whole(0), K)]
        sums = step(
            lambda cost, l, gap, d: [[cost[0] + l[0]], [_total(d, gap[0])]],
            [[COST], value, [GAP], cells("gaps", self.n, 0, K)],
            [[COST], [GAP]],
        )
        riccati = self.riccati
        k, chunk = riccati.k, riccati.chunk
        stage = riccati.stage(cells("u", self.m, 0, k), self._limits(k), MU)
        chunks: list[Statement] = [
            For("r", whole(0), whole(chunk), [self._linearised(k)], parallel=True, repeatable=True),
            For("r", whole(chunk - 1), whole(-1), [*riccati.passed_on(k + 1), *stage], whole(-1)),
        ]
        return [
            step(lambda: [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]], [], [cleared]),
            self._end(),
            For("c", whole(N // chunk - 1), whole(-1), chunks, whole(-1)),
            For("k", whole(0), whole(N + 1), [sums]),
            self._trials(),
            *self._selected(),
        ]

    def _linearised(self, k: Whole) -> Statement:
        """Rows of the derivatives, quadratic cost and gap of a stage."""
        problem, shape = self.problem, self.shape

        def linearised(x: Any, u: Any, p: Any, m: Any, following: Any) -> list[list[Scalar]]:
            made = problem.linearised(x, u, p)
            rows = full_rows(made, shape)
            cost = problem.stage_quadratic(x, u, p, m)
            gap = problem.dynamics.difference(following, made.next_state)
            return [
                [value for row in rows for value in row],
                cost.gradient,
                [cost.hessian[i][j] for i, j in shape.slots],
                gap,
                [cost.value],
            ]

        reads = [self._x(k), cells("u", self.m, 0, k), self._p(k), self._multipliers(k), self._x(k + 1)]
        writes = [cells("slopes", shape.full * shape.width, 0, R), cells("gradients", shape.width, 0, R)]
        writes += [cells("hessians", len(shape.slots), 0, R), cells("gaps", self.n, 0, k + 1)]
        return self.made.step(linearised, reads, [*writes, [Element("values", whole(0), k)]], apart=True)

    def _end(self) -> Statement:
        """The value function at the end of the horizon."""
        problem, shape, N = self.problem, self.shape, whole(self.N)
        q, v = shape.shifted, shape.full

        def end(x: Any, p: Any, m: Any) -> list[list[Scalar]]:
            cost = problem.terminal_quadratic(x, p, m)
            H = cost.hessian
            return [
                [H[i][j] for i in range(q) for j in range(i + 1)],
                [H[i][q + j] for i in range(q) for j in range(v)],
                [H[q + i][q + j] for i in range(v) for j in range(i + 1)],
                cost.gradient,
                [cost.value],
            ]

        reads = [self._x(N), self._p(N), self._multipliers(N)]
        writes = [cells("Vqq", q * (q + 1) // 2), cells("Vqv", q * v), cells("Vvv", v * (v + 1) // 2)]
        writes += [cells("vx", self.n), [Element("values", whole(0), N)]]
        return self.made.step(end, reads, writes, apart=True)

    def _trials(self) -> Statement:
        """A rollout for each step size."""
        N = self.N
        start = self.made.step(
            lambda x: [list(x)], [cells("start", self.ns)], [cells("trial_x", self.ns, 0, T * (N + 1))]
        )
        end = self.made.step(
            lambda cost, gap: [[cost[0]], [gap[0]]],
            [[TRIAL_COST], [TRIAL_GAP]],
            [[Element("merits", whole(0), T)], [Element("merits", whole(1), T)]],
            apart=True,
        )
        body: list[Statement] = [
            Declare({TRIAL_COST: 0.0, TRIAL_GAP: 0.0}),
            start,
            For("k", whole(0), whole(N), [self._rolled()]),
            self._rolled_end(),
            end,
        ]
        return For("t", whole(0), whole(len(self.steps)), body, parallel=True, repeatable=True)

    def _rolled(self) -> Statement:
        """One stage of a rollout."""
        problem, N, n, m = self.problem, self.N, self.n, self.m
        dynamics = problem.dynamics
        row = T * (N + 1) + K

        def rolled(
            x: Any,
            old: Any,
            u: Any,
            forward: Any,
            feedback: Any,
            gap: Any,
            p: Any,
            mult: Any,
            size: Any,
            so_far: Any,
        ) -> list[list[Scalar]]:
            (alpha,) = size
            change = dynamics.difference(old, x)
            torques: list[Any] = []
            for i in range(m):
                value = u[i] + alpha * forward[i]
                for j in range(n):
                    value = value + feedback[i * n + j] * change[j]
                torques.append(value)
            if problem.boxed:
                low, high = problem.where("torque.lower"), problem.where("torque.upper")
                sides = zip(torques, p[low], p[high], strict=True)
                torques = [_within(value, a, b) for value, a, b in sides]
            left = [(alpha - 1.0) * d for d in gap]
            following = dynamics.moved(problem.next_state(x, torques, p), left)
            cost = so_far[0] + problem.stage_cost(x, torques, p)
            if problem.nm:
                cost = cost + problem.penalty(x, p, mult)
            return [following, torques, [cost, _total(left, so_far[1])]]

        reads = [
            cells("trial_x", self.ns, 0, row),
            self._x(K),
            cells("u", m, 0, K),
            cells("forward", m, 0, K),
        ]
        reads += [
            cells("feedback", m * n, 0, K),
            cells("gaps", n, 0, K + 1),
            self._p(K),
            self._multipliers(K),
        ]
        reads += [[Element("step_sizes", T)], [TRIAL_COST, TRIAL_GAP]]
        writes = [cells("trial_x", self.ns, 0, row + 1), cells("trial_u", m, 0, T * N + K)]
        return self.made.step(rolled, reads, [*writes, [TRIAL_COST, TRIAL_GAP]], apart=True)

    def _rolled_end(self) -> Statement:
        problem, N = self.problem, self.N

        def end(x: Any, p: Any, mult: Any, cost: Any) -> list[list[Scalar]]:
            total = cost[0] + problem.terminal_cost(x, p)
            if problem.nm:
                total = total + problem.penalty(x, p, mult)
            return [[total]]

        last = whole(N)
        reads = [cells("trial_x", self.ns, 0, T * (N + 1) + N), self._p(last), self._multipliers(last)]
        return self.made.step(end, [*reads, [TRIAL_COST]], [[TRIAL_COST]])

    def _selected(self) -> list[Statement]:
        """Which trial is taken, and the trajectory that stays."""
        N, tries = self.N, len(self.steps)

        def decided(costs: Any, gaps: Any, now: Any) -> list[list[Scalar]]:
            cost, gap, mu, largest, sound, accepted, expected = now
            weight = acceptance.WEIGHT * largest
            merits = [acceptance.merit(c, g, weight) for c, g in zip(costs, gaps, strict=True)]
            promised = [(size - 0.5 * size * size) * abs(expected) for size in self.steps]
            picks = acceptance.chosen(acceptance.merit(cost, gap, weight), merits, promised)
            picks = [where(sound > 0.5, pick, 0.0) for pick in picks]
            any_of, taken = 0.0, 0.0
            for pick, size, c, g in zip(picks, self.steps, costs, gaps, strict=True):
                any_of = any_of + pick
                taken = taken + size * pick
                cost, gap = where(pick > 0.5, c, cost), where(pick > 0.5, g, gap)
            return [picks, [cost, gap, acceptance.regularised(mu, any_of), taken, accepted + any_of]]

        costs = [Element("merits", whole(0), whole(t)) for t in range(tries)]
        gaps = [Element("merits", whole(1), whole(t)) for t in range(tries)]
        now: list[Place] = [COST, GAP, MU, LARGEST, SOUND, ACCEPTED, EXPECTED]
        writes: list[Sequence[Place]] = [cells("picks", tries), [COST, GAP, MU, TAKEN, ACCEPTED]]
        decision = self.made.step(decided, [costs, gaps, now], writes)
        return [
            decision,
            _each(1, N + 1, self._copied("x", self.ns, N + 1)),
            _each(0, N, self._copied("u", self.m, N)),
        ]

    def _copied(self, array: str, size: int, rows: int) -> Statement:
        tries = len(self.steps)

        def copied(old: Any, picks: Any, *new: Any) -> list[list[Scalar]]:
            found = list(old)
            for pick, values in zip(picks, new, strict=True):
                found = [where(pick > 0.5, b, a) for a, b in zip(found, values, strict=True)]
            return [found]

        own = cells(array, size, 0, K)
        new = [cells(f"trial_{array}", size, 0, K + t * rows) for t in range(tries)]
        return self.made.step(copied, [own, cells("picks", tries), *new], [own])


def stage_shape(problem: Problem) -> Shape:
    """Sizes, and which entries of the Hessian are not always zero."""
    graph = Graph()
    x, u, p = graph.inputs("x", problem.ns), graph.inputs("u", problem.nu), graph.inputs("p", problem.np)
    cost = problem.stage_quadratic(x, u, p, graph.inputs("m", problem.nm))
    size = problem.nx + problem.nu
    slots = [
        (i, j)
        for i in range(size)
        for j in range(i, size)
        if graph.lift(cost.hessian[i][j]) is not graph.zero
    ]
    dynamics = problem.dynamics
    shifts = dynamics.structured and dynamics.flat and not dynamics.remembers
    shifted = dynamics.dof if shifts else 0
    return Shape(shifted, problem.nx - shifted, problem.nu, problem.step, tuple(slots), problem.boxed)


def full_rows(made: Any, shape: Shape) -> list[list[Scalar]]:
    """Rows of δx' that are full matrices, by (δx, δu)."""
    if shape.shifted:
        return made.velocity
    A, B = made.matrices()
    return [[*a, *b] for a, b in zip(A, B, strict=True)]


def _each(first: int, stop: int, *body: Statement) -> For:
    """Stages that do not depend on each other."""
    return For("k", whole(first), whole(stop), list(body), parallel=True, repeatable=True)


def _finite(value: Any, instead: Any) -> Scalar:
    return where(abs(value) < acceptance.HUGE, value, instead)


def _within(value: Any, low: Any, high: Any) -> Scalar:
    return where(value < low, low, where(value > high, high, value))


def _total(values: Sequence[Any], start: Any) -> Scalar:
    for value in values:
        start = start + abs(value)
    return start
