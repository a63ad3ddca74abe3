"""One sample of whole-body control over scalars and small matrices: from a state to torques.

What is asked of the robot is arithmetic without loops (``_model``): mobilities of motors, supports and tasks. The
rest is matrices: wrenches and accelerations as a function of torques, the cost of every level, and ``solve.limited``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.control.whole_body.held import HeldTorques, Supports
from linkwise.control.whole_body.limits import UNLIMITED, Bounds, position_of_velocity
from linkwise.control.whole_body.mobilities import Halves, flat, support_rows
from linkwise.control.whole_body.sharing import shared_forces
from linkwise.control.whole_body.tasks import ForceTask, State, Target, Task, vector
from linkwise.language import (
    array,
    dot,
    dots,
    empty,
    less,
    product,
    span,
    straight,
    tiles,
    variable,
    zeros,
)
from linkwise.scalar import maximum, minimum, where
from linkwise.solve.active_set import ActiveSet
from linkwise.solve.factors import largest, ldl, solve
from linkwise.solve.limited import Programme, within
from linkwise.solve.linear import pseudo_inverse

if TYPE_CHECKING:
    from linkwise.control.whole_body.law import WholeBody


MOVES = (6, 0)
"""Steps of the solver after each prediction of what accelerations gain while torques are held."""
RANK = 1e-12
"""Of the mean diagonal of J M⁻¹ Jᵀ that is added to it: supports may hold each other."""


UNAVOIDABLE = 1e-30
"""Least share where something is missed, so that 0 means that nothing is."""


class Sample:
    """The arrays of a sample; a mobility of rows J and K is J M⁻¹ Kᵀ.

    Args:
        law: the controller.
        given: its inputs by name, as arrays.
    """

    def __init__(self, law: WholeBody, given: dict[str, Any]):
        self.law, self.given, self.robot = law, given, law.robot
        self.n, self.N, self.a = law.robot.dof, law.rows.unknowns, len(law.motors)
        self.held = sum(support.rows for support in law.supports)
        self.moved = [task for task in law.tasks if not isinstance(task, ForceTask) and not task.posture]
        self.wanted = {task.label: empty(law.size_of(task)) for task in law.tasks}
        self.task_rows = sum(task.size(law.robot) for task in self.moved) + len(law.separations)
        bounds = max(1, len(law.bounds.limited) + len(law.separations))
        self.low, self.high, self.beyond = empty(bounds), empty(bounds), empty(1)
        self.least, self.most = (empty(max(1, len(law.bounds.limited))) for _ in range(2))
        self.factors = empty(len(Halves.places(law.robot)) + 2 * self.n)
        self.holding = HeldTorques(law, given, self.factors)
        self.A: dict[str, Any] = {}
        self.b: dict[str, Any] = {}
        self._allocate()

    def _allocate(self) -> None:
        rows, a, held = max(1, self.task_rows), self.a, max(1, self.held)
        self.motor_mobility, self.free = empty(a, a), empty(a)
        self.coupling, self.held_mobility, self.held_free = empty(held, a), empty(held, held), empty(held)
        self.task_motors, self.task_held, self.task_free = empty(rows, a), empty(rows, held), empty(rows)
        self.J = empty(held, self.n)
        lines = sum(support.line for support in self.law.supports)
        self.lines = [empty(lines, 3)] if lines else []

    def run(self) -> dict[str, Any]:
        """All outputs by name."""
        self._read_model()
        self._hold_supports()
        self._express_tasks()
        return self._outputs(self._levels())

    # -- the robot in this state --------------------------------------------------------------------------------------

    def _read_model(self) -> None:
        writes = [
            self.motor_mobility, self.free, self.coupling, self.held_mobility, self.held_free, self.task_motors,
            self.task_held, self.task_free, self.low, self.high, self.beyond, self.least, self.most, self.J,
            self.factors, *self.lines,
        ]  # fmt: skip
        self._read(writes)

    def _read(self, writes: list[Any]) -> None:
        """``_model`` of the inputs into arrays, and into what tasks want."""
        given = self.given
        reads = [given["q"], given["qd"], given["targets"], given["gains"]]
        braking = self.law.bounds.deceleration
        if not all(isinstance(x, float) for x in braking):  # they follow from torque limits that are inputs
            reads.append(array(list(braking)))
        straight(self._model, reads, [*writes, *(self.wanted[task.label] for task in self.law.tasks)])

    def _task_rows(self, state: State, targets: Any, gains: Any) -> tuple[list[Any], list[Any]]:
        """(Jacobians of tasks, row by row, without postures; what tasks want)."""
        jacobians: list[Any] = []
        wanted: list[Any] = []
        for number, (task, parts) in enumerate(zip(self.law.tasks, self.law.target_slices(), strict=True)):
            target = Target(*(targets[part] for part in parts))
            if isinstance(task, ForceTask):
                wanted.append(list(target.value))
                continue
            J, own = task.rows(state, target, gains[3 * number + 1], gains[3 * number + 2])
            wanted.append(list(own))
            jacobians += [] if J is None else [list(row) for row in J]
        return jacobians, wanted

    def _model(self, q: Any, qd: Any, targets: Any, gains: Any, braking: Any = None) -> list[list[Any]]:
        law = self.law
        bounds = law.bounds if braking is None else replace(law.bounds, deceleration=braking)
        state = State(self.robot, vector(q), vector(qd))
        held: list[Any] = []
        held_wanted: list[Any] = []
        for support in law.supports:
            J, own = support_rows(state, support, law.damping)
            held, held_wanted = held + J, held_wanted + own
        jacobians, wanted = self._task_rows(state, targets, gains)
        apart = [separation.row(state, law.bounds.period) for separation in law.separations]
        jacobians += [gradient for gradient, _ in apart]
        halved = Halves.at(self.robot, state.q)
        units = [[1.0 if k == motor else 0.0 for k in range(self.n)] for motor in law.motors]
        motors, holds, tasks = ([halved.row(row) for row in rows] for rows in (units, held, jacobians))
        bias = list(self.robot.bias_torques(state.q, state.qd))
        pull = halved.row([-x for x in bias])
        held_free = [halved.product(row, pull) - w for row, w in zip(holds, held_wanted, strict=True)]
        found = [
            halved.symmetric(motors), [halved.product(row, pull) for row in motors],
            halved.products(holds, motors), halved.symmetric(holds), held_free,
            halved.products(tasks, motors), halved.products(tasks, holds), [halved.product(row, pull) for row in tasks],
            *self._bounds(bounds, q, qd, [least for _, least in apart]), flat(held), [*halved.numbers(), *bias],
        ]  # fmt: skip
        sizes = [1, 1, self.a, 1, 1, self.a, max(1, self.held), 1, 1, 1, 1, 1, 1, self.n, 1]
        if self.lines:
            turns = [(s, self.robot.pose(state.q, s.frame)[:3, :3]) for s in law.supports if s.line]
            found.append(flat([support.along_line(R) for support, R in turns]))
            sizes.append(1)
        if self.task_rows and not self.held:
            found[6] = [0.0] * self.task_rows
        elif not self.task_rows:
            sizes[6] = max(1, self.held)
        return [values or [0.0] * size for values, size in zip(found, sizes, strict=True)] + wanted

    def _bounds(self, bounds: Bounds, q: Any, qd: Any, apart: list[Any]) -> list[list[Any]]:
        """Least and largest accelerations of joints with limits and of distances; how much too fast a joint is; least
        and largest accelerations after which joints are not too fast."""
        law, places = self.law, position_of_velocity(self.robot)
        pairs, told, beyond = [], [], 0.0
        for k in bounds.limited:
            place = places[law.motors[k]]
            state = (k, 0.0 if place is None else q[place], qd[law.motors[k]])
            pairs.append(bounds.accelerations(*state))
            told.append(bounds.accelerations(*state, planned=1.0))
            beyond = maximum(beyond, bounds.beyond(*state))
        pairs += [(least, UNLIMITED) for least in apart]
        low, high, least, most = ([pair[side] for pair in each] for each in (pairs, told) for side in (0, 1))
        return [low, high, [beyond], least, most]

    # -- wrenches and accelerations as a function of torques ----------------------------------------------------------

    def _hold_supports(self) -> None:
        """W and w₀ of w = W τ + w₀."""
        if not self.held:
            return
        law, held, a = self.law, self.held, self.a
        G, right = empty(held, held), empty(held, a + 1)
        total = variable(0.0)
        for i in span(held):
            total += self.held_mobility[i, i]
        floor = RANK / held * total.value
        stands = [self.given["stance"][k] for k in law._support_of_rows()]
        for i in range(held):
            for j in range(i + 1):
                both = stands[i] * stands[j] * self.held_mobility[i, j]
                G[i, j] = both if i != j else both + (floor + (1.0 - stands[i]))
            for j in span(a, parallel=True):
                right[i, j] = -stands[i] * self.coupling[i, j]
            right[i, a] = -stands[i] * self.held_free[i]
        self.held_factors = ldl(G)
        solved = solve(*self.held_factors, right)
        self.W, self.w0 = empty(held, a), empty(held)
        self.W[:, :] = solved[:, :a]
        self.w0[:] = solved[:, a]

    def _motor_accelerations(self) -> tuple[Any, Any]:
        """(A, a₀) of the motors' accelerations A τ + a₀."""
        if not self.held:
            return self.motor_mobility, self.free
        A, free = empty(self.a, self.a), empty(self.a)
        for rows in tiles(self.a):
            held = [self.coupling[:, i] for i in rows]
            for j in span(rows[0], self.a, parallel=True):
                sums = dots(held, self.W[:, j], [self.motor_mobility[i, j] for i in rows])
                for i, total in zip(rows, sums, strict=True):
                    A[i, j] = total
            for i, total in zip(rows, dots(held, self.w0, [self.free[i] for i in rows]), strict=True):
                free[i] = total
        for i in span(self.a):
            for j in span(i):
                A[i, j] = A[j, i]
        return A, free

    def _express_tasks(self) -> None:
        """Every task as A τ = b."""
        law, a = self.law, self.a
        self.motion, self.motion_free = self._motor_accelerations()
        if self.held:
            A, free = empty(max(1, self.task_rows), a), empty(max(1, self.task_rows))
            for rows in tiles(self.task_rows):
                held = [self.task_held[i, :] for i in rows]
                for j in span(a, parallel=True):
                    sums = dots(held, self.W[:, j], [self.task_motors[i, j] for i in rows])
                    for i, total in zip(rows, sums, strict=True):
                        A[i, j] = total
                for i, total in zip(
                    rows, dots(held, self.w0, [self.task_free[i] for i in rows]), strict=True
                ):
                    free[i] = total
        else:
            A, free = self.task_motors, self.task_free
        at = 0
        for task in law.tasks:
            if isinstance(task, ForceTask):
                continue
            size = task.size(self.robot)
            rows, offset = (
                (self.motion, self.motion_free)
                if task.posture
                else (A[at : at + size, :], free[at : at + size])
            )
            at += 0 if task.posture else size
            b = empty(size)
            for i in span(size):
                b[i] = self.wanted[task.label][i] - offset[i]
            self.A[task.label], self.b[task.label] = rows, b
        self.apart, self.apart_free = A[at:, :], free[at:]

    def _limits(self) -> tuple[Any, Any]:
        """(bounds above forces as rows of x, right sides of all inequalities); forces are also kept for tasks of
        forces."""
        law, rows, a = self.law, self.law.rows, self.a
        limits = empty(rows.count)
        for k, torque in enumerate(law.bounds.torque):
            limits[k] = torque
            limits[rows.boxes + k] = torque
        if not rows.bounds and not rows.forces:
            return None, limits
        S = (zeros if a < self.N else empty)(rows.bounds + rows.forces, self.N)
        for place, k in enumerate(law.bounds.limited):
            for j in span(a, parallel=True):
                S[place, j] = self.motion[k, j]
            limits[rows.moving + place] = self.high[place] - self.motion_free[k]
            limits[rows.moving + rows.bounds + place] = self.motion_free[k] - self.low[place]
        for k in range(len(law.separations)):
            place = len(law.bounds.limited) + k
            for j in span(a, parallel=True):
                S[place, j] = self.apart[k, j]
            limits[rows.moving + place] = self.high[place] - self.apart_free[k]
            limits[rows.moving + rows.bounds + place] = self.apart_free[k] - self.low[place]
        self.force_free = empty(max(1, rows.forces))
        self._forces(S)
        facets, owners = rows.each_facet(), law._support_of_facets()
        sides = [side for support in law.supports for _, c in support.limited() for side in c.tolist()]
        for (number, first, row), side, owner in zip(facets, sides, owners, strict=True):
            stands = self.given["stance"][owner]
            offset = sum((c * self.force_free[first + b] for b, c in enumerate(row) if c), start=0.0)
            limits[number] = stands * float(side) + (1.0 - stands) - offset
        return S, limits

    def _forces(self, S: Any) -> None:
        """Rows of S for the forces of points and for the wrenches of soles, f = S x + f₀."""
        law, rows, a = self.law, self.law.rows, self.a
        row = first = share = line = 0
        for support in law.supports:
            spread, shares = (np.eye(6), support.shares) if support.by_wrench else support.shared
            for k in range(len(spread)):
                at = rows.bounds + row + k
                parts = [(first + i, float(c)) for i, c in enumerate(spread[k]) if abs(c) > 1e-14]
                for j in span(a, parallel=True):
                    S[at, j] = sum(
                        (c * self.W[i, j] for i, c in parts[1:]), start=parts[0][1] * self.W[parts[0][0], j]
                    )
                self.force_free[row + k] = sum((c * self.w0[i] for i, c in parts), start=0.0)
                for j in range(shares.shape[1]):
                    S[at, a + share + j] = float(shares[k, j])
                if support.line:
                    S[at, a + share] = self._on_line(line, k)
            row += len(spread)
            first += support.rows
            share += support.free_shares
            line += support.line

    def _on_line(self, line: int, k: int) -> Any:
        """Share of row k of the forces on two points in the force along the line between them.

        Args:
            line: number of the support among those on two points.
            k: 0 to 5.
        """
        along = self.lines[0][line, k % 3]
        return along if k < 3 else -along

    # -- the programmes -----------------------------------------------------------------------------------------------

    def _levels(self) -> Programme | ActiveSet:
        """The last level, solved by the active-set method, or all of them by the interior-point method, which keeps
        what the levels before have reached. While torques are held, one level is solved twice, with what that
        changes."""
        law = self.law
        self.S, limits = self._limits()
        if law.by_active_set:
            solver = ActiveSet(law.rows, *self._cost(law.tasks), self.S, limits, law.iterations)
            solver.run(self.given["start"])
            for steps in MOVES if self.holding.kept else ():
                solver.move_bounds(*self._changed(solver.x), steps)
            return solver
        levels = sorted({task.level for task in law.tasks})
        if len(levels) == 1 and self.holding.kept:
            levels *= 2
        E, e = None, None
        right, z = limits, self.given["start"]
        programme: Programme | None = None
        for number, level in enumerate(levels):
            own = [task for task in law.tasks if task.level == level]
            if programme is not None:
                z = programme.z
            P, p = self._cost(own)
            programme = Programme(law.rows, P, p, E, e, self.S, right)
            programme.begin(z)
            programme.iterate(law.iterations)
            if number + 1 < len(levels):
                if level < levels[number + 1]:
                    E, e = self._kept(own, E, e, programme.x)
                if self.holding.kept:
                    right = self.holding.moved(limits, *self._changed(programme.x))
        assert programme is not None
        return programme

    def _changed(self, x: Any) -> tuple[Any, Any]:
        """How bounds of joints change while the torques of x are held, see ``HeldTorques``."""
        return self.holding.changed(self._torques(x), self._moving_places())

    def _torques(self, x: Any) -> Any:
        """Torques (n,) of the unknowns."""
        tau = zeros(self.n)
        for k, motor in enumerate(self.law.motors):
            tau[motor] = x[k]
        return tau

    def _moving_places(self) -> Sequence[int]:
        """Where bounds of joints are among those that the solver moves."""
        return range(len(self.law.bounds.limited))

    def _rows_of(self, task: Task) -> list[tuple[Any, Any]]:
        """[(A, b)] of a task, over all unknowns; those of torques alone have fewer columns."""
        if not isinstance(task, ForceTask):
            return [(self.A[task.label], self.b[task.label])]
        found = []
        first = line = 0
        for support in self.law.supports:
            if task.contact in (None, support.label):
                wanted, b = self.wanted[task.label], empty(support.rows)
                within = 0.0  # what is wanted of the share, which W τ + w₀ have nothing of
                for k in range(support.rows if support.line else 0):
                    within = within + 0.5 * self._on_line(line, k) * wanted[k]
                for k in range(support.rows):
                    own = wanted[k] - within * self._on_line(line, k) if support.line else wanted[k]
                    b[k] = own - self.w0[first + k]
                found.append((self.W[first : first + support.rows, :], b))
            first += support.rows
            line += support.line
        return found

    def _kept(self, tasks: Sequence[Task], E: Any, e: Any, x: Any) -> tuple[Any, Any]:
        """The equations of the next level: what these tasks have reached."""
        parts = [] if E is None else [(E, e)]
        for task in tasks:
            for A, _ in self._rows_of(task):
                parts.append((A, product(A, x[: A.shape[1]])))
        count = sum(A.shape[0] for A, _ in parts)
        rows, right = zeros(count, self.N), empty(count)
        at = 0
        for A, b in parts:
            rows[at : at + A.shape[0], : A.shape[1]] = A
            right[at : at + A.shape[0]] = b
            at += A.shape[0]
        return rows, right

    def _cost(self, tasks: Sequence[Task]) -> tuple[Any, Any]:
        """P and p of ½ Σ w |A x − b|²."""
        law, N = self.law, self.N
        parts = [
            (self.given["gains"][law.tasks.index(t), 0], *part) for t in tasks for part in self._rows_of(t)
        ]
        parts.sort(key=lambda part: part[1] is None or part[1].shape[1] < N)
        writes = parts[0][1] is not None and parts[0][1].shape[1] == N  # the first one writes, others add
        P, p = empty(N, N) if writes else zeros(N, N), zeros(N)
        for number, (weight, A, b) in enumerate(parts):
            if A is None:
                for i in span(N):
                    P[i, i] = P[i, i] + weight
                    p[i] = p[i] - weight * b[i]
                continue
            columns = A.shape[1]
            for rows in tiles(columns):
                for j in span(rows[0], columns, parallel=True):
                    sums = dots([A[:, i] for i in rows], A[:, j], [0.0] * len(rows))
                    for i, total in zip(rows, sums, strict=True):
                        P[i, j] = weight * total if writes and not number else P[i, j] + weight * total
            for j in span(columns, parallel=True):
                p[j] = p[j] - weight * dot(A[:, j], b)
        for i in span(N):
            for j in span(i):
                P[i, j] = P[j, i]
        return P, p

    # -- results ------------------------------------------------------------------------------------------------------

    def _outputs(self, programme: Programme | ActiveSet) -> dict[str, Any]:
        law = self.law
        tau, x = self._commanded(programme.x)
        errors, report = empty(len(law.tasks)), empty(4)
        for number, task in enumerate(law.tasks):
            most = variable(0.0)
            for A, b in self._rows_of(task):
                for i in span(b.shape[0]):
                    missed = b[i] - x[i] if A is None else less(b[i], A[i, :], x[: A.shape[1]])
                    most.value = maximum(most.value, abs(missed))
            errors[number] = most.value
        report[0] = programme.worst()
        active, following = programme.active(), empty(law.rows.count)
        following[:] = programme.z if isinstance(programme, Programme) else active
        found = {"tau": tau, "errors": errors, "report": report, "active": active, "next_start": following}
        report[1], report[3] = 0.0, self._avoidable(programme, x)
        supports = None
        if law.points:
            found["forces"], wrench = self._inside(x)
            supports = Supports(self.J, self.held_factors, wrench, self._slip(x, wrench))
            report[1] = largest(supports.slip)
        found["qdd"] = self._moved_by(tau, x, supports)
        if self.holding.foretold:
            self.holding.foretell(tau, supports)
        report[2] = self.holding.too_fast(found["qdd"], self.least, self.most, self.beyond[0])
        return {name: found[name] for name in law.output_shapes()}

    def _avoidable(self, programme: Programme | ActiveSet, x: Any) -> Any:
        """How much of the sum of squares f of what limits are missed by might be avoided, at most, as a share of it:
        f is convex, so with its gradient g over torques τ' within their limits f(τ') ≥ f(τ) + g (τ' − τ). Torques
        without a limit count as limited to the largest one that there is."""
        law = self.law
        missed, slope = programme.slope(x)
        tau, slope = self._by_torques(x, slope)
        longest, gap = variable(1.0), variable(0.0)
        for i in span(tau.shape[0]):
            longest.value = maximum(longest.value, abs(tau[i]))
        for k in range(tau.shape[0]):
            limited = k in law.limited_torques
            most = law.bounds.torque[k] if limited else longest.value
            gap += slope[k] * tau[k] + abs(slope[k]) * most
        some = missed > 0.0
        share = minimum(maximum(gap.value / where(some, missed, 1.0), UNAVOIDABLE), 1.0)
        return where(some, share, 0.0)

    def _by_torques(self, x: Any, slope: Any) -> tuple[Any, Any]:
        """(unknowns, motors first; a gradient over them): where these are torques, both as they are."""
        return x, slope

    def _commanded(self, x: Any) -> tuple[Any, Any]:
        """(torques within their limits, unknowns that go with them)."""
        kept = empty(self.N)
        kept[:] = x
        for k, torque in enumerate(self.law.bounds.torque):
            kept[k] = within(kept[k], -torque, torque)
        return self._torques(kept), kept

    def _moved_by(self, tau: Any, x: Any, supports: Supports | None) -> Any:
        """Accelerations (n,)."""
        qdd = empty(self.n)
        pushes = [] if supports is None else [supports.wrench, supports.J]
        straight(self.holding.accelerations, [tau, self.factors, *pushes], [qdd])
        return qdd

    def _inside(self, x: Any) -> tuple[Any, Any]:
        """(forces inside their pyramids, wrenches that they make): those of x, moved where they are outside."""
        law, rows = self.law, self.law.rows
        forces, wrench = empty(law.points, 3), empty(self.held)
        point = first = 0
        pushes = self._pushes(x, rows.bounds)
        for number, support in enumerate(law.supports):
            stands = self.given["stance"][number]
            C, c = support.pyramid()
            moved: list[Any] = []
            found = pushes[number]
            for k in range(len(support.points)):
                raw = found[3 * k : 3 * k + 3]
                normal = within(raw[2], -float(c[-1]), float(c[-2]))
                most = 0.0
                for row in C[:-2]:
                    most = maximum(most, float(row[0]) * raw[0] + float(row[1]) * raw[1])
                allowed = -float(C[0][2]) * normal
                outside = most > allowed
                factor = where(outside, allowed / where(outside, most, 1.0), 1.0)
                own = [stands * factor * raw[0], stands * factor * raw[1], stands * normal]
                for a in range(3):
                    forces[point, a] = own[a]
                moved += own
                point += 1
            spread = pseudo_inverse(support.shared[0])
            for i in range(support.rows):
                parts = [float(v) * f for v, f in zip(spread[i], moved, strict=True) if abs(v) > 1e-14]
                wrench[first + i] = sum(parts[1:], start=parts[0])
            first += support.rows
        return forces, wrench

    def _pushes(self, x: Any, at: int) -> list[list[Any]]:
        """Forces of the points of every support."""
        found, first = [], at
        for support in self.law.supports:
            count = 6 if support.by_wrench else 3 * len(support.points)
            rows = [(k, self.force_free[k - first]) for k in range(at, at + count)]
            found.append([dot(self.S[k, :], x, free) for k, free in rows])
            at += count
        soles = [k for k, support in enumerate(self.law.supports) if support.by_wrench]
        shared = shared_forces([self.law.supports[k] for k in soles], [found[k] for k in soles])
        for k, forces in zip(soles, shared, strict=True):
            found[k] = forces
        return found

    def _slip(self, x: Any, wrench: Any) -> Any:
        """Accelerations of supports that should not move, (held,)."""
        slip = empty(self.held)
        for row, support in enumerate(self.law._support_of_rows()):
            a = dot(
                self.held_mobility[row, :],
                wrench,
                dot(self.coupling[row, :], x[: self.a], self.held_free[row]),
            )
            slip[row] = self.given["stance"][support] * a
        return slip
