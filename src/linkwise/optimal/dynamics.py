"""How the state moves in one step, and how the next state changes with the state and the torques. Over any scalar.

A state is one list x = (q, q̇), then the torques u⁻ of the step before where costs need them, then the duration of the
step before where durations are chosen (``timings``). Changes of a state are taken along the velocity coordinates: δx =
(δq, δq̇[, δu⁻][, δh⁻]) with q ⊞ δq = ``robot.integrate(q, δq)``, so that orientations take three numbers. With the
semi-implicit Euler method

    q̇' = q̇ + h a(q, q̇, S u)         q' = q ⊞ h q̇'

only the rows of q̇' are full matrices (Ȧ, Ḃ); those of q' follow from them:

    δq' = P δq + h J δq̇'

where P and J are identities for joints with one axis each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms import coordinates, dense, drag, joint_terms, manifold
from linkwise.compiler.ir.derivative import jacobian
from linkwise.core.once import once
from linkwise.functions.table import FUNCTIONS, Setting, mechanism_of
from linkwise.model.axes import joint_value
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.contact_schedule import ContactSchedule
from linkwise.optimal.free_joints import graph_of, seen_from_base, step_slopes, velocities_of
from linkwise.optimal.linearised import Linearised
from linkwise.optimal.touching import Pattern, written_out
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar
from linkwise.simulate.integrators import INTEGRATORS, space_of

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows
    from linkwise.optimal.through_contact import ThroughContact

SEMI_IMPLICIT = "semi_implicit_euler"
PARTS_FROM = 12
"""Velocity coordinates from which derivatives of a step are computed with loops: written out, their solutions with the
mass matrix would be most of the program."""
MOST_BENT = 4
"""Joints up to which second derivatives of a step are written out."""
STIFF = 0.5
"""Part of its speed that viscous friction takes from a joint in a step, from which it is implicit."""
LEAST_SPEED = 0.01  # [rad/s or m/s] over which dry friction changes its direction


@dataclass(frozen=True, eq=False)
class Dynamics:
    """One step of a robot: what a problem, the solver and kernels share."""

    robot: Robot
    """With friction that is a smooth function of the speed."""
    step: Any
    """h [s]; a scalar where durations are chosen."""
    integrator: str
    friction: bool
    driven: tuple[int, ...]
    """Velocity coordinates with a motor: u drives these, in this order."""
    remembers: bool = False
    """Whether the torques of the step before are part of the state."""
    stabilization: float | None = None
    """Rate at which errors of constraints decay [1/s]."""
    targets: Sequence[Scalar] | None = None
    """Where frames are held in the world, as ``constraints.target_values``; None: where the robot says."""
    contacts: ContactSchedule | None = None
    """Frames that the ground may hold."""
    active: Sequence[Scalar] | None = None
    """Whether each of them is held in this stage, 1 or 0."""
    timed: bool = False
    """Whether durations are chosen: the last number of u, and that of the step before at the end of the state."""
    begins: Scalar = 1.0
    """Whether a phase begins in this stage, 1 or 0."""
    through: ThroughContact | None = None
    """Steps of the contact simulation."""
    smoothing: Scalar = 0.0
    """Of their derivatives [m/s]."""
    damping: tuple[float, ...] = ()
    """Viscous friction [N·m·s/rad or N·s/m] of every coordinate that is implicit in a step, 0 where it is not; empty:
    nowhere. See ``implicitly_damped``."""

    # -- sizes

    @property
    def nq(self) -> int:
        return self.robot.nq

    @property
    def dof(self) -> int:
        return self.robot.dof

    @property
    def motors(self) -> int:
        """Number of torques that are chosen."""
        return len(self.driven)

    @property
    def nu(self) -> int:
        """Numbers that are chosen in a stage: torques, and the duration of its step where that is chosen."""
        return self.motors + self.timed

    @property
    def remembered(self) -> int:
        return self.motors if self.remembers else 0

    @property
    def ns(self) -> int:
        """Numbers of a state: nq + n, m torques where they are remembered, 1 where durations are chosen."""
        return self.nq + self.dof + self.remembered + self.timed

    @property
    def nx(self) -> int:
        """Numbers of a change of a state: 2n, and those that are more."""
        return 2 * self.dof + self.remembered + self.timed

    @once
    def links(self) -> Mechanism:
        return mechanism_of(self.robot, base_parameters=True)

    @once
    def _leaders(self) -> list[MovingLink]:
        return [link for link in self.links if link.follows is None]

    @property
    def structured(self) -> bool:
        """Whether the rows of q' follow from those of q̇'."""
        return self.integrator == SEMI_IMPLICIT and self.through is None

    @once
    def _by_graph(self) -> bool:
        """Whether accelerations are differentiated by the graph: no recursion covers constraints and load friction."""
        return bool(self.robot.constraints) or (self.friction and joint_terms.has_load_friction(self.links))

    @once
    def flat(self) -> bool:
        """Whether positions are added as numbers are: no ball or floating joint."""
        return not any(link.free for link in self.links)

    # -- states

    def split(self, x: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """(q, q̇, torques and duration of the step before)."""
        nq, n = self.nq, self.dof
        return list(x[:nq]), list(x[nq : nq + n]), list(x[nq + n :])

    def moved(self, x: Sequence[Scalar], change: Sequence[Scalar]) -> list[Scalar]:
        """x ⊞ δx."""
        q, qd, last = self.split(x)
        n = self.dof
        rest = [a + b for a, b in zip([*qd, *last], change[n:], strict=True)]
        return [*coordinates.moved(self.links, q, change[:n]), *rest]

    def difference(self, x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
        """y ⊟ x: the change that leads from x to y."""
        (q, qd, last), (r, rd, other) = self.split(x), self.split(y)
        rest = [b - a for a, b in zip([*qd, *last], [*rd, *other], strict=True)]
        return [*coordinates.difference(self.links, q, r), *rest]

    def torques(self, u: Sequence[Scalar]) -> list[Scalar]:
        """Torques of all velocity coordinates: zero where there is no motor."""
        tau: list[Scalar] = [0.0] * self.dof
        for k, value in zip(self.driven, u[: self.motors], strict=True):
            tau[k] = value
        return tau

    def of(self, x: Sequence[Scalar], u: Sequence[Scalar] | None, given: Mapping[str, Any]) -> Dynamics:
        """The dynamics of one stage.

        Args:
            x: its state.
            u: numbers that are chosen; None at the end of the horizon.
            given: lists of numbers by the names of ``Dynamics``: ``targets``, ``active``, ``smoothing``, ``begins``.
        """
        values: dict[str, Any] = {
            key: value[0] if key in ("smoothing", "begins") else list(value) for key, value in given.items()
        }
        if self.timed and u is not None:
            values["step"] = values["begins"] * u[-1] + (1.0 - values["begins"]) * x[-1]
        return replace(self, **values) if values else self

    # -- one step

    def acceleration(self, q: Sequence[Scalar], qd: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """q̈ [rad/s² or m/s²]."""
        if self.contacts is not None:
            return self.touching(q, qd, tau)[0]
        if self.through is not None:
            after = self.through.stepped(self, q, qd, tau)[1]
            return [(b - a) / self.step for a, b in zip(qd, after, strict=True)]
        return self._outputs("forward_dynamics", "kalman", q=q, qd=qd, tau=tau)["qdd"]

    def touching(
        self, q: Sequence[Scalar], qd: Sequence[Scalar], tau: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(q̈, forces of the contacts), written out."""
        made = written_out(*self.contact_equation(q, qd, tau))
        return list(made.qdd), list(made.force)

    def contact_equation(
        self, q: Sequence[Scalar], qd: Sequence[Scalar], tau: Sequence[Scalar]
    ) -> tuple[Rows, list[Scalar], Rows, list[Scalar], list[Scalar]]:
        """(M, τ − bias, J, γ, which rows are held), see ``touching``."""
        contacts = self._scheduled()
        M, net = self._equation(q, qd, tau)
        rest: list[Scalar] = [0.0] * self.dof
        rates = contacts.rates(self, q, qd, rest)
        active = [1.0] * len(contacts.frames) if self.active is None else self.active
        return M, net, contacts.jacobian(self, q), rates, contacts.flags(active)

    def contact_slopes(
        self, x: Sequence[Scalar], qdd: Sequence[Scalar], force: Sequence[Scalar]
    ) -> tuple[Rows, Rows]:
        """Derivatives by (q along the velocity coordinates, q̇) of M q̈ + bias − Jᵀ f, and of J q̈ + γ, at given q̈, f;
        by the duration of the step, too, where that is chosen."""
        q, qd, _ = self.split(x)
        contacts, n = self._scheduled(), self.dof
        pushed, rows = contacts.push_slopes(self, q, force), contacts.rate_slopes(self, q, qd, qdd)
        if pushed is None or rows is None:
            pushed, rows = self._contact_slopes_by_graph(q, qd, qdd, force)
        inverse = self.equation_slopes(x, qdd)
        for own, push in zip(inverse, pushed, strict=True):
            own[:n] = [a - b for a, b in zip(own[:n], push[:n], strict=True)]
        still: list[Scalar] = [0.0] * self.timed
        return [[*own, *still] for own in inverse], rows

    def _contact_slopes_by_graph(
        self, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar], force: Sequence[Scalar]
    ) -> tuple[Rows, Rows]:
        """Derivatives of Jᵀ f and of J q̈ + γ, where coordinates are coupled."""
        contacts, n, nq = self._scheduled(), self.dof, self.nq
        graph = graph_of([*q, *qd])
        J = contacts.jacobian(self, q)
        moved: list[Any] = [graph.lift(dense.dot(column, force)) for column in zip(*J, strict=True)]
        moved += [graph.lift(v) for v in contacts.rates(self, q, qd, qdd)]
        inputs: list[Any] = [*q, *qd, *([self.step] if self.timed else [])]
        by_x: Rows = [list(row) for row in jacobian(moved, inputs)]
        by_q = self.along_velocities(q, [row[:nq] for row in by_x])
        rows = [[*own, *row[nq:]] for own, row in zip(by_q, by_x, strict=True)]
        return rows[:n], rows[n:]

    @once
    def pattern(self) -> Pattern:
        """What is never zero in the factors of ``touching``."""
        links = self.links
        carried = [{k, *links.ancestors(k)} for k in range(len(links))]
        if links.coupled:
            moved = [frozenset(range(len(links)))] * self.dof
        else:
            moved = [{i for i, own in enumerate(carried) if k in own} for k, _ in links.coordinates()]
        contacts = self._scheduled()
        bodies = [self.robot.locate(name)[0] for name in contacts.frames]
        still = range(3, 6) if len(links) and links[0].floating and links[0].parent < 0 else ()
        return Pattern(moved, [body for body in bodies for _ in range(contacts.size)], still)

    def _scheduled(self) -> ContactSchedule:
        assert self.contacts is not None
        return self.contacts

    def whole_body(self, name: str, **given: Sequence[Scalar]) -> Any:
        """``center_of_mass``, ``com_jacobian`` or another function of the centre of mass."""
        return self._of_robot(name, "centroidal", None, given)

    def frame_function(self, name: str, frame: str | None, **given: Sequence[Scalar]) -> Any:
        """``pose``, ``jacobian``, ``velocity`` or ``jacobian_rate`` of a frame."""
        return self._of_robot(name, "kinematics", frame, given)

    def _of_robot(
        self, name: str, algorithm: str, frame: str | None, given: Mapping[str, Sequence[Scalar]]
    ) -> Any:
        """A function of positions and velocities of the links as they are: inertias are not regrouped."""
        from linkwise.functions.evaluation import outputs_of

        known = {key: list(value) for key, value in given.items()}
        outputs = outputs_of(FUNCTIONS[name], Setting(self.robot, frame=frame), algorithm, **known)
        return next(iter(outputs.values()))

    def next_state(self, x: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        """x one step later."""
        q, qd, _ = self.split(x)
        tau = self.torques(u)
        if self.through is not None:
            new_q, new_qd = self.through.stepped(self, q, qd, tau)
        else:
            new_q, new_qd = INTEGRATORS[self.integrator](
                lambda at, q, qd: self.acceleration(q, qd, tau), q, qd, self.step, space_of(self.links)
            )
        return [*new_q, *new_qd, *self._kept(u)]

    def _kept(self, u: Sequence[Scalar]) -> list[Scalar]:
        """What a state has of the step before it."""
        return [*u[: self.remembered], *([self.step] if self.timed else [])]

    def linearised(self, x: Sequence[Scalar], u: Sequence[Scalar]) -> Linearised:
        """The next state and its derivatives; x and u are symbols."""
        if not self.structured:
            return self._differentiated(x, u)
        q, qd, _ = self.split(x)
        slopes = self.acceleration_slopes(x, u)
        # the mass matrix is there already, except where the graph is differentiated
        method = "kalman" if self._by_graph else "compound_link"
        qdd = self._outputs("forward_dynamics", method, q=q, qd=qd, tau=self.torques(u))["qdd"]
        return self._step_of(x, u, qdd, *slopes)

    @property
    def bends(self) -> bool:
        """Whether ``curvature`` is there: for arms whose second derivatives are written out."""
        plain = not (self.in_parts or self.timed or self.remembers or self.contacts or self.through)
        return plain and self.flat and self.structured and self.dof <= MOST_BENT

    def curvature(self, x: Sequence[Scalar], u: Sequence[Scalar], ahead: Sequence[Scalar]) -> Rows:
        """Σ aheadᵢ ∂²q̇'ᵢ/∂(x, u)², of which those of q' follow: δq' = δq + h δq̇'. x and u are symbols."""
        inputs: list[Any] = [*x, *u]
        total: Any = graph_of(inputs).lift(0.0)
        for weight, value in zip(ahead, self.next_state(x, u)[self.nq :], strict=True):
            total = total + weight * value
        (gradient,) = jacobian([total], inputs)
        return [list(row) for row in jacobian(list(gradient), inputs)]

    @property
    def in_parts(self) -> bool:
        """Whether the derivatives of a step are worth loops: ``equation`` and ``equation_slopes``, and solutions with
        the mass matrix between them, in place of ``linearised``."""
        able = self.structured and not (self._by_graph or self.remembers)
        return able and (self.contacts is not None or self.dof >= PARTS_FROM)

    @once
    def blocks(self) -> list[range]:
        """Velocity coordinates of every ball and floating joint: there q' is no sum of q and h q̇'."""
        found, at = [], 0
        for link in self._leaders:
            if link.free:
                found.append(range(at, at + len(link.axes)))
            at += len(link.axes)
        return found

    def equation(self, x: Sequence[Scalar], u: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """(M, τ − bias) of M q̈ = τ − bias."""
        q, qd, _ = self.split(x)
        return self._equation(q, qd, self.torques(u))

    def _equation(
        self, q: Sequence[Scalar], qd: Sequence[Scalar], tau: Sequence[Scalar]
    ) -> tuple[Rows, list[Scalar]]:
        rest = [0.0] * self.dof
        M = self._outputs("mass_matrix", "compound_link", q=q)["mass_matrix"]
        bias = self._outputs("inverse_dynamics", "newton_euler", q=q, qd=qd, qdd=rest)["tau"]
        return M, [a - b for a, b in zip(tau, bias, strict=True)]

    def equation_slopes(self, x: Sequence[Scalar], qdd: Sequence[Scalar]) -> Rows:
        """Derivatives of M q̈ + bias by (q along the velocity coordinates, q̇), where q̈ is held."""
        q, qd, _ = self.split(x)
        method, links = "newton_euler", None
        if self.from_base:
            # seen from a floating base gravity turns, and nothing else depends on where the base is
            method, (links, q) = "recursion", seen_from_base(self.links, q)
        by_q, by_qd, _ = self._outputs(
            "inverse_dynamics_derivatives", method, links, q=q, qd=qd, qdd=qdd
        ).values()
        return [[*a, *b] for a, b in zip(by_q, by_qd, strict=True)]

    @once
    def from_base(self) -> bool:
        """Whether all links are carried by one that floats, so that equations may be seen from there."""
        links = self.links
        carried = len(links) > 1 and links[0].floating and all(link.parent >= 0 for link in links[1:])
        return carried and not drag.present(links)

    def stepped(self, x: Sequence[Scalar], u: Sequence[Scalar], qdd: Sequence[Scalar]) -> Linearised:
        """The next state for known accelerations, and how positions follow from velocities; ``velocity`` is empty."""
        return self._step_of(x, u, qdd, [], [], [])

    def _step_of(
        self,
        x: Sequence[Scalar],
        u: Sequence[Scalar],
        qdd: Sequence[Scalar],
        by_q: Rows,
        by_qd: Rows,
        by_u: Rows,
    ) -> Linearised:
        n, h = len(by_q), self.step
        q, qd, _ = self.split(x)
        rows: Rows = []
        for i in range(n):
            own = [h * v + (1.0 if i == j else 0.0) for j, v in enumerate(by_qd[i])]
            rows.append([*(h * v for v in by_q[i]), *own, *(h * v for v in by_u[i])])
        new_qd = [v + h * a for v, a in zip(qd, qdd, strict=True)]
        new_q = space_of(self.links).moved(q, [h * v for v in new_qd])
        turn, gain = (None, None) if self.flat else self._position_slopes(new_qd)
        following = [*new_q, *new_qd, *self._kept(u)]
        chosen = (list(qdd), new_qd) if self.timed else None
        return Linearised(following, rows, h, turn, gain, None, self.remembered, chosen, self.begins)

    def acceleration_slopes(self, x: Sequence[Scalar], u: Sequence[Scalar]) -> tuple[Rows, Rows, Rows]:
        """(∂q̈/∂q along the velocity coordinates, ∂q̈/∂q̇, ∂q̈/∂u)."""
        q, qd, _ = self.split(x)
        if self._by_graph:
            graph, nq, n = graph_of([*x, *u]), self.nq, self.dof
            outputs = [graph.lift(a) for a in self.acceleration(q, qd, self.torques(u))]
            inputs: list[Any] = [*q, *qd, *u[: self.motors]]
            rows: Rows = [list(row) for row in jacobian(outputs, inputs)]
            by_q = self.along_velocities(q, [row[:nq] for row in rows])
            return by_q, [row[nq : nq + n] for row in rows], [row[nq + n :] for row in rows]
        by_q, by_qd, by_tau = self._outputs(
            "forward_dynamics_derivatives", "compound_link", q=q, qd=qd, tau=self.torques(u)
        ).values()
        return by_q, by_qd, [[row[k] for k in self.driven] for row in by_tau]

    def along_velocities(self, q: Sequence[Scalar], by_positions: Rows) -> Rows:
        """Derivatives by the numbers of q, as rows, turned into derivatives along the velocity coordinates."""
        if self.flat:
            return by_positions
        return manifold.by_velocities(self._leaders, self._grouped(q), by_positions)  # type: ignore[arg-type]

    # -- parts

    def _outputs(
        self, name: str, algorithm: str, links: Mechanism | None = None, **given: Sequence[Scalar]
    ) -> dict[str, Any]:
        from linkwise.functions.evaluation import outputs_of

        setting = Setting(
            self.robot,
            friction=self.friction,
            base_parameters=True,
            stabilization=self.stabilization,
            targets=self.targets,
            stand_in=links,
        )
        return outputs_of(
            FUNCTIONS[name], setting, algorithm, **{key: list(value) for key, value in given.items()}
        )

    def _grouped(self, q: Sequence[Scalar]) -> list[Any]:
        """Positions joint by joint, of those with coordinates of their own."""
        found, at = [], 0
        for link in self._leaders:
            size = len(link.axes) + link.free
            found.append(joint_value(list(q[at : at + size])))
            at += size
        return found

    def _position_slopes(self, rates: Sequence[Scalar]) -> tuple[Rows, Rows]:
        """(P, J) of q ⊞ h q̇': how q' changes, along its velocities, with q and with h q̇'."""
        n = self.dof
        turn, gain = dense.identity(n), dense.identity(n)
        at = 0
        for link in self._leaders:
            size = len(link.axes)
            if link.free:
                own = step_slopes(link, [self.step * v for v in rates[at : at + size]])
                for matrix, block in zip((turn, gain), own, strict=True):
                    for i in range(size):
                        matrix[at + i][at : at + size] = block[i]
            at += size
        return turn, gain

    def _differentiated(self, x: Sequence[Scalar], u: Sequence[Scalar]) -> Linearised:
        """By the graph: any integrator."""
        graph = graph_of([*x, *u])
        following = self.next_state(x, u)
        n, nq = self.dof, self.nq
        outputs = [graph.lift(value) for value in following[: nq + n]]
        inputs: list[Any] = [*x[: nq + n], *u, *x[self.ns - self.timed :]]
        rows: Rows = [list(row) for row in jacobian(outputs, inputs)]
        by_q = self.along_velocities(x[:nq], [row[:nq] for row in rows])
        rows = [[*own, *row[nq:]] for own, row in zip(by_q, rows, strict=True)]
        tangent = [*self._position_changes(following[:nq], rows[:nq]), *rows[nq:]]
        full = [row[: 2 * n] for row in tangent], [row[2 * n : 2 * n + self.nu] for row in tangent]
        kept = ([row[-1] for row in tangent[:n]], [row[-1] for row in tangent[n:]]) if self.timed else None
        return Linearised(
            following, tangent[n:], self.step, None, None, full, self.remembered, kept, self.begins
        )

    def _position_changes(self, q: Sequence[Scalar], rows: Rows) -> Rows:
        """Rows of changes of the numbers of q as rows of changes along the velocity coordinates."""
        if self.flat:
            return rows
        found: Rows = []
        at = 0
        for link in self._leaders:
            size = len(link.axes) + link.free
            own = rows[at : at + size]
            found += own if not link.free else velocities_of(link, q[at : at + size], own)
            at += size
        return found


def implicitly_damped(
    robot: Robot, step: float, integrator: str = SEMI_IMPLICIT
) -> tuple[Robot, tuple[float, ...]]:
    """The robot whose semi-implicit steps take stiff viscous friction at their end, and the friction in question.

    (M + h D) q̈ = τ − b(q, q̇) is M (q̇' − q̇) / h = τ − b with the viscous part D q̇' of the next velocity: friction h D is
    added to the rotors. An explicit step of a light joint with much friction, whose velocity decays within a part of
    the step, would grow without bounds. Joints whose friction brakes less than half of their speed in a step stay.

    Args:
        robot: the robot.
        step: h [s].
        integrator: must be the semi-implicit one.
    """
    if integrator != SEMI_IMPLICIT:
        raise ProblemError("implicit_damping: it is for the integrator semi_implicit")
    names = [joint.name for joint in robot.coordinate_joints for _ in range(joint.dof)]
    if robot.constraints:
        return robot, ()
    own = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    viscous = np.array([own.get(f"{name}.viscous_friction", 0.0) for name in names])
    mobility = np.diag(np.asarray(robot.inverse_mass_matrix(robot.neutral)))
    stiff = step * viscous * mobility > STIFF
    if not stiff.any():
        return robot, ()
    labels = {
        f"{name}.rotor_inertia": own.get(f"{name}.rotor_inertia", 0.0) + step * float(d)
        for name, d, wanted in zip(names, viscous, stiff, strict=True)
        if wanted
    }
    return robot.with_parameters(labels), tuple(np.where(stiff, viscous, 0.0).tolist())


def smoothed(robot: Robot, step: float, speed: float | None) -> Robot:
    """The robot whose dry friction changes its direction over ``speed`` [rad/s or m/s] instead of jumping at rest.

    None takes for each joint a speed that friction brakes within two steps, but at least ``LEAST_SPEED``: over a
    smaller one, friction would be stiffer than steps of this duration can follow.
    """
    links = mechanism_of(robot)
    if not joint_terms.has_dry_friction(links):
        return robot
    if speed is None:
        limits = coordinates.dry_friction_limits(links, [1.0] * robot.dof, [0.0] * robot.dof)
        mobility = np.diag(np.asarray(robot.inverse_mass_matrix(robot.neutral)))
        braked = [2.0 * step * max(map(float, pair)) * m for pair, m in zip(limits, mobility, strict=True)]  # type: ignore[arg-type]
        speeds = np.where(np.isfinite(braked), np.maximum(braked, LEAST_SPEED), LEAST_SPEED)
    else:
        speeds = np.full(robot.dof, speed)
    changed: dict[str, float] = {}
    for joint, own in zip([j for j in robot.coordinate_joints for _ in range(j.dof)], speeds, strict=True):
        label = f"{joint.name}.friction_speed"
        if robot.is_parameter(label) and not joint.terms.get("friction_speed"):
            changed[label] = float(own)
    return robot.with_parameters(changed)
