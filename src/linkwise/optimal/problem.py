"""A problem of optimal motion: a robot, a horizon, costs and limits; its functions over the abstract scalar.

    minimise   Σₜ h·ℓ(xₜ, uₜ) + ℓ_N(x_N)      with   x₀ given,  xₜ₊₁ = f(xₜ, uₜ)
    subject to lower ≤ u ≤ upper,  c(xₜ, uₜ) ≤ 0

Where durations are chosen, u has the duration h of the step behind the torques.

``next_state``, ``stage_cost``, ``terminal_cost`` and ``stage_limits`` take lists of numbers, arrays or symbols.
Everything that may change without new code is in one flat list p: targets, weights, limits. The table ``problem.p`` has
one row of it for each stage, and a last one for the end of the horizon.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.once import once
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import UnknownNameError, suggest
from linkwise.model.constraints import TARGETS
from linkwise.model.coordinates import velocity_coordinates
from linkwise.optimal import arguments, parameter_table
from linkwise.optimal.arguments import ProblemError, whole
from linkwise.optimal.contact_schedule import ACTIVE, ContactSchedule
from linkwise.optimal.costs import Cost, Own, Point, Terms, cost_value, values_of
from linkwise.optimal.dynamics import Dynamics, implicitly_damped, smoothed
from linkwise.optimal.limits import Limit, StateLimits
from linkwise.optimal.linearised import Linearised
from linkwise.optimal.parameter_table import LOWER, UPPER, arranged, check_sides, check_values
from linkwise.optimal.problem_checks import (
    check_constraints,
    check_terms,
    driven,
    integrator_name,
    listed,
    pair,
)
from linkwise.optimal.problem_checks import torque_limits as limits_of_torques
from linkwise.optimal.quadratic import (
    Quadratic,
    by_forces,
    convex_curvature,
    exact,
    least_squares,
    penalty,
)
from linkwise.optimal.through_contact import SMOOTHING, ThroughContact
from linkwise.optimal.timings import BEGINS, Tied, Timings
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, clipped


class Problem(Summarised):
    """What is to be optimised.

    Args:
        robot: the robot; with a floating base, the base has no motor.
        horizon: number of steps.
        step: duration of one [s].
        start: (q, q̇) at the begin, shapes (nq,) and (n,); by default ``robot.neutral`` at rest.
        costs: of the running part: rates, multiplied by ``step`` and summed. See ``linkwise.optimal.costs``.
        terminal: costs of the last state.
        limits: of states and tips, see ``linkwise.optimal.limits``.
        torque_limits: True: the robot's; False: none; or one number or a list of m [N·m or N], or a tuple
            (lower, upper) of these.
        state_limits: whether the robot's limits of position and velocity hold.
        integrator: "semi_implicit" or another one of ``simulate``.
        friction: whether the robot's friction counts.
        friction_speed: over which dry friction changes its direction [rad/s or m/s], where the robot gives none: its
            jump at rest has no derivative. By default what friction brakes within two steps, at least 0.01.
        motors: names of the joints with a motor; by default all but floating ones and those in ``robot.passive``.
        last_torque: u before the first step (m,), for costs of the differences of torques; zeros by default.
        stabilization: rate at which errors of constraints decay [1/s]; where frames are held in the world is then the
            run-time parameter "targets", as ``robot.kernel(..., inputs=("targets",))`` has it.
        contacts: frames that the ground holds, stage by stage, see ``ContactSchedule``; which ones is the run-time
            parameter "contacts.active". Or a ``ThroughContact``: the laws of contact decide. A robot with contacts
            needs one of both.
        timings: durations of phases are chosen, too, see ``Timings``; ``step`` is then the first guess of the duration
            of a step. Tables of targets stay those of the stages.
        implicit_damping: whether semi-implicit steps take the viscous friction of joints that it brakes within a step
            at their end: steps may then be long.

    Raises:
        ProblemError: something cannot be right; the message names it.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        horizon: int = 50,
        step: float = 0.01,
        start: tuple[Any, Any] | None = None,
        costs: Sequence[Cost] = (),
        terminal: Sequence[Cost] = (),
        limits: Sequence[Limit] = (),
        torque_limits: Any = True,
        state_limits: bool = False,
        integrator: str = "semi_implicit",
        friction: bool = True,
        friction_speed: float | None = None,
        motors: Sequence[str] | None = None,
        last_torque: Any = None,
        stabilization: float | None = None,
        contacts: ContactSchedule | ThroughContact | None = None,
        timings: Timings | None = None,
        implicit_damping: bool = False,
    ):
        if not isinstance(robot, Robot):
            raise ProblemError(f"robot: expected a Robot, got {type(robot).__name__}")
        self.robot = robot
        self.horizon, self.timings = whole("horizon", horizon, 1), timings
        self.costs, self.terminal = listed("costs", costs, Cost), listed("terminal", terminal, Cost)
        self.limits = listed("limits", limits, Limit)
        if flag("state_limits", state_limits):
            self.limits = (*self.limits, StateLimits())
        h = arguments.number("step", step, above=0.0)
        if timings is not None:
            self.costs = (*self.costs, Tied(timings, h))
        through, schedule = (contacts, None) if isinstance(contacts, ThroughContact) else (None, contacts)
        method, friction = integrator_name(integrator), flag("friction", friction)
        moving, damping = self._moving(h, method, friction, friction_speed, implicit_damping)
        memory = any(cost.remembers for cost in self.costs)
        self.dynamics = Dynamics(
            moving if through is None else robot, h, method, friction, driven(robot, motors), memory, stabilization,
            contacts=schedule, through=through, timed=timings is not None, damping=damping,
        )  # fmt: skip
        check_terms(self)
        self.limits = tuple(sorted(self.limits, key=lambda limit: limit.of_forces))
        self.torque_lower, self.torque_upper = limits_of_torques(self, torque_limits)
        last = 0.0 if last_torque is None else last_torque
        self._last = arguments.table("last_torque", last, self.dynamics.motors, 1)
        self.x0 = self.state(*((robot.neutral, np.zeros(robot.dof)) if start is None else pair(start)))
        if robot.constraints and stabilization is None:
            check_constraints(self)
        self._slots, self.p = arranged(self)
        self.barrier = False
        """Whether limits are barriers with multipliers, for ``solve``; else an augmented Lagrangian."""
        self.structure = object()
        """Shared by copies with other values: they use the same code."""

    def _moving(
        self, h: float, method: str, friction: bool, speed: float | None, implicit: bool
    ) -> tuple[Robot, tuple[float, ...]]:
        """(the robot with smooth friction, implicit friction of its joints)."""
        if speed is not None:
            speed = arguments.number("friction_speed", speed, above=0.0)
        implicit = flag("implicit_damping", implicit)
        if not friction:
            return self.robot, ()
        robot, damping = implicitly_damped(self.robot, h, method) if implicit else (self.robot, ())
        return smoothed(robot, h, speed), damping

    # -- sizes and arguments

    @property
    def step(self) -> float:
        """Duration of a step [s]; where durations are chosen, their first guess."""
        return self.dynamics.step

    @property
    def nu(self) -> int:
        """Number of torques, and one more where durations are chosen."""
        return self.dynamics.nu

    @property
    def nx(self) -> int:
        """Numbers of a change of a state."""
        return self.dynamics.nx

    @property
    def ns(self) -> int:
        """Numbers of a state."""
        return self.dynamics.ns

    @property
    def np(self) -> int:
        """Number of run-time parameters of a stage."""
        return self.p.shape[1]

    @property
    def nm(self) -> int:
        """Numbers of the limits of a stage: multipliers, penalty and its inverse; 0 without limits."""
        return len(self.limit_words) + 2 if self.limit_words else 0

    @property
    def boxed(self) -> bool:
        """Whether some torque or duration is limited."""
        limits = (self.torque_lower, self.torque_upper)
        return self.timings is not None or any(np.isfinite(side).any() for side in limits)

    @once
    def control_limits(self) -> tuple[slice, slice]:
        """Where lower and upper limits of u lie among the parameters: of torques, and of the duration behind them."""
        lower, upper = self.where(LOWER), self.where(UPPER)
        return slice(lower.start, lower.start + self.nu), slice(upper.start, upper.start + self.nu)

    @once
    def weight_columns(self) -> list[tuple[list[int], list[int]]]:
        """Columns of weights among the parameters, see ``parameter_table.weight_columns``."""
        return parameter_table.weight_columns(self)

    @once
    def limit_words(self) -> list[tuple[str, str]]:
        """(what is limited, unit) of every function of ``stage_limits``."""
        return [*self._words_of(False), *self._words_of(True)]

    @once
    def state_limit_count(self) -> int:
        """How many of ``limit_words`` are functions of the state; the others are of the forces of contacts."""
        return len(self._words_of(False))

    def _words_of(self, forces: bool) -> list[tuple[str, str]]:
        contacts = self.dynamics.contacts
        return [
            words
            for limit in self.limits
            if limit.of_forces == forces
            for words in (limit.frame_words(contacts) if forces else limit.words(self.robot))
        ]

    @once
    def limited(self) -> np.ndarray:
        """Which limits hold in which stage, (horizon + 1, number of limits): those of the state not at the start, which
        is given, those of forces not at the end."""
        table = np.ones((self.horizon + 1, len(self.limit_words)), bool)
        table[0, : self.state_limit_count] = False
        table[-1, self.state_limit_count :] = False
        return table

    @once
    def motor_names(self) -> list[str]:
        """Names of the coordinates that u drives."""
        names = [coordinate.name for coordinate in velocity_coordinates(self.robot)]
        return [names[k] for k in self.dynamics.driven]

    def state(self, q: Any, qd: Any, last: Any = None) -> np.ndarray:
        """A state (ns,) of positions and velocities, and the torques before it.

        Args:
            q: positions, shape (nq,).
            qd: velocities, shape (n,).
            last: torques of the step before (m,); by default those of the problem.
        """
        q = arguments.numbers("start: q", q, (self.robot.nq,))
        qd = arguments.numbers("start: qd", qd, (self.robot.dof,))
        q = q if self.dynamics.flat else np.asarray(self.robot.normalize(q))
        arguments.numbers("start: q, normalized", q)
        more = self._last if last is None else arguments.numbers("last", last, (self.dynamics.motors,))
        parts = [q, qd, more if self.dynamics.remembers else (), [self.step] if self.dynamics.timed else ()]
        return np.concatenate(parts)

    @property
    def parameters(self) -> dict[str, int]:
        """Names of the run-time parameters and their sizes."""
        return {slot.name: slot.at.stop - slot.at.start for slot in self._slots}

    def where(self, name: str) -> slice:
        """Where a parameter lies in p.

        Args:
            name: of the parameter, one of ``parameters``.
        """
        for slot in self._slots:
            if slot.name == name:
                return slot.at
        raise UnknownNameError(f"no parameter {name!r}; {suggest(name, self.parameters)}")

    def table(self, values: Mapping[str, Any]) -> np.ndarray:
        """A copy of ``p``, (horizon + 1, np), with other values: {name: (size,) or (horizon + 1, size)}.

        "NAME.target" of a cost of tips takes a pose.

        Args:
            values: by name, see ``parameters``.
        """
        p, rows = self.p.copy(), self.horizon + 1
        for name, value in values.items():
            for own, numbers in self._converted(name, value).items():
                at = self.where(own)
                p[:, at] = arguments.table(
                    own, numbers, at.stop - at.start, rows, finite=own not in (LOWER, UPPER)
                )
                check_values(self, own, p[:, at])
        check_sides(self, p)
        return p

    def with_values(self, values: Mapping[str, Any], *, start: tuple[Any, Any] | None = None) -> Problem:
        """The same problem with other parameters or another start; nothing is compiled again.

        Args:
            values: by name, see ``table``.
            start: (q, q̇) at the begin; as before by default.
        """
        made = copy.copy(self)
        made.p = self.table(values)
        if start is not None:
            made.x0 = self.state(*pair(start))
        return made

    # -- the functions

    def next_state(self, x: Sequence[Scalar], u: Sequence[Scalar], p: Sequence[Scalar] = ()) -> list[Scalar]:
        """f(x, u): the state one step later.

        Args:
            x: state, ns scalars.
            u: torques, m scalars.
            p: run-time parameters; targets of constraints are read. None: those of the robot.
        """
        return self._dynamics_of(x, u, p).next_state(x, u)

    def linearised(self, x: Sequence[Scalar], u: Sequence[Scalar], p: Sequence[Scalar] = ()) -> Linearised:
        """f(x, u) with its derivatives along changes of x; x and u are symbols.

        Args:
            x: state, ns symbols.
            u: torques, m symbols.
            p: run-time parameters; targets of constraints are read. None: those of the robot.
        """
        return self._dynamics_of(x, u, p).linearised(x, u)

    def _dynamics_of(self, x: Sequence[Scalar], u: Sequence[Scalar] | None, p: Sequence[Scalar]) -> Dynamics:
        """With frames held where and when the parameters say, and the duration of the step."""
        names = {"targets": TARGETS, "active": ACTIVE, "smoothing": SMOOTHING, "begins": BEGINS}
        known = {key: name for key, name in names.items() if len(p) and name in self.parameters}
        return self.dynamics.of(x, u, {key: p[self.where(name)] for key, name in known.items()})

    def stage_cost(
        self,
        x: Sequence[Scalar],
        u: Sequence[Scalar],
        p: Sequence[Scalar],
        forces: Sequence[Scalar] | None = None,
    ) -> Scalar:
        """h·ℓ(x, u) of one stage.

        Args:
            x: state, ns scalars.
            u: torques, m scalars.
            p: run-time parameters of the stage.
            forces: of the contacts, where they are known.
        """
        point = self._point(x, u, p, forces)
        return cost_value(self.costs, point, point.dynamics.step)

    def terminal_cost(self, x: Sequence[Scalar], p: Sequence[Scalar]) -> Scalar:
        """ℓ_N(x).

        Args:
            x: the last state, ns scalars.
            p: the last row of run-time parameters.
        """
        return cost_value(self.terminal, self._point(x, None, p), 1.0)

    def stage_limits(self, x: Sequence[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
        """c(x) of one stage or of the end; must not be positive. What each is: ``limit_words``.

        Args:
            x: state, ns scalars.
            p: run-time parameters of the stage.
        """
        return self._limits(self._point(x, None, p), False)

    def force_limits(
        self,
        x: Sequence[Scalar],
        u: Sequence[Scalar],
        p: Sequence[Scalar],
        forces: Sequence[Scalar] | None = None,
    ) -> list[Scalar]:
        """c of the forces of contacts of one stage; must not be positive.

        Args:
            x: state, ns scalars.
            u: torques, m scalars.
            p: run-time parameters of the stage.
            forces: of the contacts, where they are known.
        """
        return self._limits(self._point(x, u, p, forces), True)

    @property
    def weighs_forces(self) -> bool:
        """Whether costs or limits depend on the forces of contacts."""
        return any(term.of_forces for term in (*self.costs, *self.limits))

    def force_quadratic(
        self,
        x: Sequence[Scalar],
        u: Sequence[Scalar],
        p: Sequence[Scalar],
        m: Sequence[Scalar],
        forces: Sequence[Scalar],
    ) -> Quadratic:
        """Value, gradient and Hessian of what depends on the forces of contacts, by these; they are symbols.

        Args:
            x: state, ns symbols.
            u: torques, m symbols.
            p: run-time parameters of the stage.
            m: multipliers, penalty μ and 1/μ of the stage's limits.
            forces: of the contacts.
        """
        point = self._point(x, u, p, forces)
        total = Quadratic.zero(len(forces))
        for cost in self.costs:
            if cost.of_forces:
                terms = by_forces(point, cost.terms(point, values_of(cost.label, point.values)))
                total = total.plus(least_squares(point, terms, point.dynamics.step))
        limits = self._limits(point, True)
        if limits:
            terms = by_forces(point, Terms(limits, []))
            own = m[self.state_limit_count :]
            total = total.plus(least_squares(point, terms, 1.0, own, self.barrier))
            total = total.plus(convex_curvature(point, terms, own, self.barrier))
        return total

    def stage_quadratic(
        self, x: Sequence[Scalar], u: Sequence[Scalar], p: Sequence[Scalar], m: Sequence[Scalar] = ()
    ) -> Quadratic:
        """Value, gradient and Hessian of h·ℓ and of limits by (δx, u); x and u are symbols.

        Args:
            x: state, ns symbols.
            u: torques, m symbols.
            p: run-time parameters of the stage.
            m: multipliers, penalty μ and 1/μ of the stage's limits.
        """
        point = self._point(x, u, p)
        return self._quadratic(self.costs, point, m, point.dynamics.step)

    def terminal_quadratic(
        self, x: Sequence[Scalar], p: Sequence[Scalar], m: Sequence[Scalar] = ()
    ) -> Quadratic:
        """Value, gradient and Hessian of ℓ_N and of limits by δx; x are symbols.

        Args:
            x: state, ns symbols.
            p: the last row of run-time parameters.
            m: multipliers, penalty μ and 1/μ of the limits at the end.
        """
        return self._quadratic(self.terminal, self._point(x, None, p), m, 1.0)

    def differences(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """y ⊟ x of states (..., ns): changes (..., nx).

        Args:
            x: from these states.
            y: to these.
        """
        nq = self.dynamics.nq
        if self.dynamics.flat:
            return y - x
        step = np.asarray(
            self.robot.difference(np.ascontiguousarray(x[..., :nq]), np.ascontiguousarray(y[..., :nq]))
        )
        return np.concatenate([step, y[..., nq:] - x[..., nq:]], axis=-1)

    def clamped(self, u: Sequence[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
        """Torques within their limits.

        Args:
            u: torques, m scalars.
            p: run-time parameters of the stage.
        """
        low, high = (p[at] for at in self.control_limits)
        return [clipped(a, b, c) for a, b, c in zip(u, low, high, strict=True)]

    def penalty(
        self, x: Sequence[Scalar], p: Sequence[Scalar], m: Sequence[Scalar], of_forces: Sequence[Scalar] = ()
    ) -> Scalar:
        """What limits add to the cost of a stage: (max(0, λ + μ c)² − λ²)/2μ.

        Args:
            x: state, ns scalars.
            p: run-time parameters of the stage.
            m: multipliers, penalty μ and 1/μ.
            of_forces: ``force_limits``; none at the end of the horizon.
        """
        limits = [*self.stage_limits(x, p), *of_forces]
        return penalty(limits, [*m[: len(limits)], *m[-2:]], self.barrier)

    def with_barrier(self) -> Problem:
        """The same problem with barriers that have multipliers in place of the augmented Lagrangian of its limits, see
        ``quadratic.walled``."""
        made = copy.copy(self)
        made.barrier = True
        return made

    # -- parts

    def _point(
        self,
        x: Sequence[Scalar],
        u: Sequence[Scalar] | None,
        p: Sequence[Scalar],
        forces: Sequence[Scalar] | None = None,
    ) -> Point:
        values = {slot.name: list(p[slot.at]) for slot in self._slots}
        return Point(self._dynamics_of(x, u, p), list(x), u, values, forces)

    def _limits(self, point: Point, of_forces: bool) -> list[Scalar]:
        return [
            c
            for limit in self.limits
            if limit.of_forces == of_forces
            for c in limit.functions(point, values_of(limit.label, point.values))
        ]

    def _quadratic(self, costs: Sequence[Cost], point: Point, m: Sequence[Scalar], scale: Any) -> Quadratic:
        total = Quadratic.zero(self.nx + (0 if point.u is None else self.nu))
        for cost in costs:
            if cost.of_forces:
                continue  # ``force_quadratic``
            values = values_of(cost.label, point.values)
            if isinstance(cost, Own) and not cost.least_squares:
                total = total.plus(exact(point, cost.value(point, values), scale))
            else:
                terms = cost.terms(point, values)
                total = total.plus(least_squares(point, terms, scale))
        if self.state_limit_count:
            limits = self._limits(point, False)
            multipliers = [*m[: len(limits)], *m[-2:]]
            total = total.plus(least_squares(point, Terms(limits, []), 1.0, multipliers, self.barrier))
        return total

    def _converted(self, name: str, value: Any) -> dict[str, Any]:
        """A pose for a cost of tips as the parameters that it means."""
        label, _, key = name.rpartition(".")
        if key != "target" or name in self.parameters or f"{label}.position" not in self.parameters:
            return {name: value}
        from linkwise.optimal.rotations import quaternion_of

        turned = f"{label}.orientation" in self.parameters
        place, R = arguments.poses(name, value, self.horizon + 1, turned)
        return {f"{label}.position": place} | ({f"{label}.orientation": quaternion_of(R)} if turned else {})

    def key(self) -> bytes | None:
        """Identifies the code of the functions; None where a function of the user's own decides it."""
        if any(isinstance(cost, Own) for cost in (*self.costs, *self.terminal)):
            return None
        d = self.dynamics
        parts = (
            d.robot.content_without_targets(), d.step, d.integrator, d.friction, d.driven, d.remembers, d.stabilization,
            [cost.key() for cost in self.costs], [cost.key() for cost in self.terminal],
            [limit.key(self.robot) for limit in self.limits], self.parameters, self.boxed, self.barrier,
            d.contacts and d.contacts.key(), d.timed, d.through is not None, d.through and self.robot.content(),
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).digest()

    def _summary(self) -> Summary:
        d = self.dynamics
        rows = [
            ["robot", f"{self.robot.name}, {d.motors} motors"],
            [
                "horizon",
                f"{self.horizon} steps of {'about ' if d.timed else ''}{self.step:g} s, "
                + ("contact steps" if d.through else d.integrator),
            ],
            ["costs", ", ".join(cost.label for cost in self.costs) or "none"],
            ["terminal", ", ".join(cost.label for cost in self.terminal) or "none"],
            [
                "limits",
                ", ".join([*(["torques"] if self.boxed else []), *(c.label for c in self.limits)]) or "none",
            ],
            ["parameters", f"{self.np} per stage: {', '.join(self.parameters)}"],
        ]
        return Summary("Problem", ("", ""), rows)
