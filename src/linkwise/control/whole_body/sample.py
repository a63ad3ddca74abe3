"""One sample of whole-body control over scalars and small matrices: from a state to torques.

What a robot is asked for is arithmetic without loops (``_model``): mass matrix, Jacobians, wanted accelerations. The rest
is matrices: accelerations as a function of torques and forces, the cost of every level, and ``solve.limited``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.control.whole_body.limits import Support, position_of_velocity
from linkwise.control.whole_body.tasks import ForceTask, State, Target, Task
from linkwise.language import dot, empty, less, product, span, straight, variable, zeros
from linkwise.scalar import maximum, minimum, where
from linkwise.solve.factors import largest, ldl, solve
from linkwise.solve.limited import Programme, within

if TYPE_CHECKING:
    from linkwise.control.whole_body.law import WholeBody


class Sample:
    """The arrays of a sample.

    Args:
        law: the controller.
        given: its inputs by name, as arrays.
    """

    def __init__(self, law: WholeBody, given: dict[str, Any]):
        self.law, self.given, self.robot = law, given, law.robot
        n, N = law.robot.dof, law.rows.unknowns
        self.n, self.N = n, N
        self.held_rows = sum(support.rows for support in law.supports)
        self.motion_tasks = [task for task in law.tasks if not isinstance(task, ForceTask) and not task.posture]
        self.sizes = {task.label: task.size(law.robot) for task in law.tasks}
        self.M, self.h = empty(n, n), empty(n)
        self.low, self.high = empty(max(1, law.rows.soft)), empty(max(1, law.rows.soft))
        self.held, self.hold_bias = empty(max(1, self.held_rows), n), empty(max(1, self.held_rows))
        self.pull = empty(max(1, 3 * law.points), n)
        self.jacobians = {task.label: empty(self.sizes[task.label], n) for task in self.motion_tasks}
        self.wanted = {task.label: empty(self.sizes[task.label]) for task in law.tasks}

    def run(self) -> dict[str, Any]:
        """All outputs by name."""
        self._read_model()
        self._solve_motion()
        self._express_tasks()
        programme = self._levels()
        return self._outputs(programme)

    # -- the robot in this state --------------------------------------------------------------------------------------

    def _read_model(self) -> None:
        given = self.given
        reads = [given["q"], given["qd"], given["targets"], given["gains"]]
        writes = [self.M, self.h, self.low, self.high, self.held, self.hold_bias, self.pull]
        writes += [self.jacobians[task.label] for task in self.motion_tasks]
        writes += [self.wanted[task.label] for task in self.law.tasks]
        straight(self._model, reads, writes)

    def _model(self, q: Any, qd: Any, targets: Any, gains: Any) -> list[list[Any]]:
        law, robot = self.law, self.robot
        state = State(robot, np.array(q, object), np.array(qd, object))
        bounds, places = law.bounds, position_of_velocity(robot)
        low, high = [], []
        for k in bounds.limited:
            place, motor = places[law.motors[k]], law.motors[k]
            least, most = bounds.accelerations(k, 0.0 if place is None else q[place], qd[motor])
            low.append(least)
            high.append(most)
        held: list[Any] = []
        bias: list[Any] = []
        pull: list[Any] = []
        for support in law.supports:
            J, own, forces = support_rows(state, support, law.damping)
            held, bias, pull = held + J, bias + own, pull + forces
        found = [flat(robot.mass_matrix(state.q)), list(robot.bias_torques(state.q, state.qd))]
        found += [low or [0.0], high or [0.0], flat(held) or [0.0] * self.n, bias or [0.0], flat(pull) or [0.0] * self.n]
        jacobians, wanted = [], []
        for number, (task, parts) in enumerate(zip(law.tasks, law.target_slices(), strict=True)):
            target = Target(*(targets[part] for part in parts))
            if isinstance(task, ForceTask):
                wanted.append(list(target.value))
                continue
            J, own = task.rows(state, target, gains[3 * number + 1], gains[3 * number + 2])
            wanted.append(list(own))
            if J is not None:
                jacobians.append(flat(J))
        return [*found, *jacobians, *wanted]

    # -- accelerations as a function of torques and forces ------------------------------------------------------------

    def _solve_motion(self) -> None:
        """Y and a₀ of q̈ = Y x + a₀."""
        law, n, N = self.law, self.n, self.N
        right = zeros(n, N + 1)
        for k, motor in enumerate(law.motors):
            right[motor, k] = 1.0
        at = law.rows.boxes
        for point, support in enumerate(law._support_of_points()):
            stands = self.given["stance"][support]
            for a in range(3):
                for i in span(n):
                    right[i, at + 3 * point + a] = stands * self.pull[3 * point + a, i]
        for i in span(n):
            right[i, N] = -self.h[i]
        solved = solve(*ldl(self.M), right)
        self.Y, self.a0 = empty(n, N), empty(n)
        self.Y[:, :] = solved[:, :N]
        self.a0[:] = solved[:, N]

    def _along(self, J: Any, wanted: Any) -> tuple[Any, Any]:
        """(A, b) of A x = b, from J q̈ = wanted."""
        b = empty(wanted.shape[0])
        for i in span(wanted.shape[0]):
            b[i] = less(wanted[i], J[i, :], self.a0)
        return product(J, self.Y), b

    def _express_tasks(self) -> None:
        law = self.law
        self.A, self.b = {}, {}
        for task in law.tasks:
            if isinstance(task, ForceTask):
                continue
            label = task.label
            if task.posture:
                A, b = empty(len(law.motors), self.N), empty(len(law.motors))
                for k, motor in enumerate(law.motors):
                    A[k, :] = self.Y[motor, :]
                    b[k] = self.wanted[label][k] - self.a0[motor]
            else:
                A, b = self._along(self.jacobians[label], self.wanted[label])
            self.A[label], self.b[label] = A, b
        self.E = self.e = None
        if law.supports:
            self.E, self.e = self._along(self.held, self.hold_bias)
            for row, support in enumerate(law._support_of_rows()):
                stands = self.given["stance"][support]
                self.e[row] = stands * self.e[row]
                for j in span(self.N, parallel=True):
                    self.E[row, j] = stands * self.E[row, j]

    # -- the programmes -----------------------------------------------------------------------------------------------

    def _levels(self) -> Programme:
        law = self.law
        facets, V, limits = self._limits()
        E, e = self.E, self.e
        x, z = self.given["start"][: self.N], self.given["start"][self.N :]
        programme: Programme | None = None
        for level in sorted({task.level for task in law.tasks}):
            own = [task for task in law.tasks if task.level == level]
            if programme is not None:
                x, z = programme.x, programme.z
            P, p = self._cost(own)
            programme = Programme(law.rows, P, p, E, e, facets, V, limits)
            programme.begin(x, z)
            programme.iterate(law.iterations)
            E, e = self._kept(own, E, e, programme.x)
        assert programme is not None
        return programme

    def _kept(self, tasks: Sequence[Task], E: Any, e: Any, x: Any) -> tuple[Any, Any]:
        """The equations of the next level: what these tasks have reached."""
        parts = [] if E is None else [(E, e)]
        for task in tasks:
            if not isinstance(task, ForceTask):
                A = self.A[task.label]
                parts.append((A, product(A, x)))
        count = sum(A.shape[0] for A, _ in parts)
        if not count:
            return E, e
        rows, right = empty(count, self.N), empty(count)
        at = 0
        for A, b in parts:
            rows[at : at + A.shape[0], :] = A
            right[at : at + A.shape[0]] = b
            at += A.shape[0]
        return rows, right

    def _cost(self, tasks: Sequence[Task]) -> tuple[Any, Any]:
        """P and p of ½ Σ w |A x − b|²."""
        law, N = self.law, self.N
        P, p = zeros(N, N), zeros(N)
        moving = [task for task in tasks if not isinstance(task, ForceTask)]
        for task in moving:
            A, b = self.A[task.label], self.b[task.label]
            weight = self.given["gains"][law.tasks.index(task), 0]
            scaled = empty(A.shape[0], N)
            for i in span(A.shape[0]):
                for j in span(N, parallel=True):
                    scaled[i, j] = weight * A[i, j]
            for i in span(N):
                for j in span(i, N, parallel=True):
                    P[i, j] = dot(A[:, i], scaled[:, j], P[i, j])
            for j in span(N, parallel=True):
                p[j] = less(p[j], scaled[:, j], b)
        for task in tasks:
            if isinstance(task, ForceTask):
                weight = self.given["gains"][law.tasks.index(task), 0]
                for point in law._points_of(task):
                    for a in range(3):
                        at = law.rows.boxes + 3 * point + a
                        P[at, at] = P[at, at] + weight
                        p[at] = p[at] - weight * self.wanted[task.label][a]
        for i in span(N):
            for j in span(i):
                P[i, j] = P[j, i]
        return P, p

    def _limits(self) -> tuple[Any, Any, Any]:
        """Facets, V and the right sides of all inequalities."""
        law = self.law
        rows = law.rows
        limits = empty(rows.count)
        for k, torque in enumerate(law.bounds.torque):
            limits[k] = float(torque)
            limits[rows.boxes + k] = float(torque)
        facets = empty(max(1, rows.cones * rows.facets), 3)
        at = 0
        for support in law.supports:
            C, c = support.pyramid()
            for _ in support.points:
                for row, most in zip(C, c, strict=True):
                    for a in range(3):
                        facets[at, a] = float(row[a])
                    limits[2 * rows.boxes + at] = float(most)
                    at += 1
        if not rows.soft:
            return facets, None, limits
        V = empty(rows.soft, self.N)
        for place, k in enumerate(law.bounds.limited):
            motor = law.motors[k]
            V[place, :] = self.Y[motor, :]
            limits[rows.hard + place] = self.high[place] - self.a0[motor]
            limits[rows.hard + rows.soft + place] = self.a0[motor] - self.low[place]
        return facets, V, limits

    # -- results ------------------------------------------------------------------------------------------------------

    def _outputs(self, programme: Programme) -> dict[str, Any]:
        law, n, N = self.law, self.n, self.N
        x = self._inside(programme.x)
        tau, qdd = zeros(n), empty(n)
        for k, motor in enumerate(law.motors):
            tau[motor] = x[k]
        for i in span(n):
            qdd[i] = dot(self.Y[i, :], x, self.a0[i])
        errors, report = empty(len(law.tasks)), empty(2)
        for number, task in enumerate(law.tasks):
            errors[number] = self._error(task, x)
        report[0] = programme.worst()
        report[1] = 0.0 if self.E is None else self._largest_error(self.E, self.e, x)
        active, following = empty(law.rows.count), empty(N + law.rows.count)
        for k in span(law.rows.count):
            active[k] = where(programme.z[k] > programme.s[k], 1.0, 0.0)
            following[N + k] = programme.z[k]
        following[:N] = x
        found = {"tau": tau, "qdd": qdd, "errors": errors, "report": report, "active": active, "next_start": following}
        if law.points:
            found["forces"] = empty(law.points, 3)
            for point, support in enumerate(law._support_of_points()):
                for a in range(3):
                    found["forces"][point, a] = (
                        self.given["stance"][support] * x[law.rows.boxes + 3 * point + a]
                    )
        return {name: found[name] for name in law.output_shapes()}

    def _inside(self, x: Any) -> Any:
        """The nearest torques within their limits, and forces that are pushed into their pyramids: what an iteration that
        has not converged leaves outside."""
        law, out = self.law, empty(self.N)
        for k, torque in enumerate(law.bounds.torque):
            out[k] = within(x[k], -float(torque), float(torque))
        point = 0
        for support in law.supports:
            C, c = support.pyramid()
            for _ in support.points:
                at = law.rows.boxes + 3 * point
                normal = within(x[at + 2], -float(c[-1]), float(c[-2]))
                most = 0.0
                for row in C[:-2]:
                    most = maximum(most, float(row[0]) * x[at] + float(row[1]) * x[at + 1])
                allowed = -float(C[0][2]) * normal
                factor = where(most > allowed, allowed / where(most > allowed, most, 1.0), 1.0)
                out[at], out[at + 1], out[at + 2] = factor * x[at], factor * x[at + 1], normal
                point += 1
        return out

    def _error(self, task: Task, x: Any) -> Any:
        if not isinstance(task, ForceTask):
            return self._largest_error(self.A[task.label], self.b[task.label], x)
        most = variable(0.0)
        for point in self.law._points_of(task):
            for a in range(3):
                at = self.law.rows.boxes + 3 * point + a
                most.value = maximum(most.value, abs(x[at] - self.wanted[task.label][a]))
        return most.value

    def _largest_error(self, A: Any, b: Any, x: Any) -> Any:
        most = variable(0.0)
        for i in span(A.shape[0]):
            most.value = maximum(most.value, abs(less(b[i], A[i, :], x)))
        return most.value


def flat(rows: Any) -> list[Any]:
    """A matrix row by row."""
    return [x for row in rows for x in row]


def support_rows(state: State, support: Support, damping: float) -> tuple[list[Any], list[Any], list[Any]]:
    """(rows that do not accelerate, what they should be less J̇ q̇, Jacobians of the forces) of a support."""
    robot = state.robot
    axes = support.axes()
    J = robot.jacobian(state.q, support.frame)
    R = robot.pose(state.q, support.frame)[:3, :3]
    bias = robot.jacobian_rate(state.q, state.qd, support.frame)
    turn = J[:3] @ state.qd
    held: list[Any] = []
    wanted: list[Any] = []
    pull: list[Any] = []
    for point in support.points:
        arm = R @ np.asarray(point, dtype=float) - float(support.radius) * axes[2]
        rows = [J[3 + a] + cross(J[:3], arm)[a] for a in range(3)]
        own = [bias[3 + a] + (cross_of(bias[:3], arm)[a] + cross_of(turn, cross_of(turn, arm))[a]) for a in range(3)]
        turned = [sum(float(axes[a][b]) * rows[b] for b in range(3)) for a in range(3)]
        pull += turned
        if len(support.points) < 3:
            held += turned
            wanted += [-sum(float(axes[a][b]) * own[b] for b in range(3)) for a in range(3)]
    if len(support.points) >= 3:
        held = [J[k] for k in range(6)]
        wanted = [-bias[k] for k in range(6)]
    if damping:
        wanted = [w - damping * (row @ state.qd) for w, row in zip(wanted, held, strict=True)]
    return [list(row) for row in held], wanted, [list(row) for row in pull]


def cross(turning: Any, arm: Any) -> list[Any]:
    """Rows of ω × arm for rows of ω."""
    return [
        turning[1] * arm[2] - turning[2] * arm[1],
        turning[2] * arm[0] - turning[0] * arm[2],
        turning[0] * arm[1] - turning[1] * arm[0],
    ]


cross_of = cross
