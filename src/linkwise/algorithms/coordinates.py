"""The equation of motion over the robot's own coordinates: flat lists of positions, velocities and torques.

``equation`` works with one quantity per link. Controllers, simulations and motions have flat lists instead: nq numbers
of position and n of velocity, those of joints that lead others only. For an arm both are the same lists; robots with
ball and floating joints, followers and constraints differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.algorithms import (
    coupling,
    dense,
    equation,
    factorised,
    joint_terms,
    kalman,
    kinematics,
    manifold,
)
from linkwise.algorithms import momentum as momenta
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained.constraints import Held
from linkwise.algorithms.constrained.pivoted import Factors
from linkwise.model.axes import JointValue, joint_value, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink, flat
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar

Rows = list[list[Scalar]]
Solve = Callable[[Sequence[Scalar]], list[Scalar]]


# -- positions --------------------------------------------------------------------------------------------------------


def moved(links: Mechanism, q: Sequence[Scalar], step: Sequence[Scalar]) -> list[Scalar]:
    """The positions after a step along the velocity coordinates."""
    return _of_leaders(links, manifold.integrated, (q, True), (step, False))


def step_rates(links: Mechanism, step: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """The rate of a step while the robot moves at ``qd`` where the step has led, see ``manifold.step_rate``."""
    return _of_leaders(links, manifold.step_rate, (step, False), (qd, False))


def difference(links: Mechanism, start: Sequence[Scalar], end: Sequence[Scalar]) -> list[Scalar]:
    """The step from one position to another."""
    return _of_leaders(links, manifold.difference, (start, True), (end, True))


def difference_slopes(links: Mechanism, start: Sequence[Scalar], end: Sequence[Scalar]) -> list[list[Scalar]]:
    """The derivative of ``difference`` along the velocity coordinates at the end."""
    n = sum(len(link.axes) for link in links if link.follows is None)
    rows = dense.identity(n)
    at = place = 0
    for link in links:
        if link.follows is not None:
            continue
        size, numbers = len(link.axes), len(link.axes) + link.free
        if link.free:
            own = (joint_value(list(x[place : place + numbers])) for x in (start, end))
            for i, row in enumerate(manifold.difference_slopes(link, *own)):
                rows[at + i][at : at + size] = row
        at, place = at + size, place + numbers
    return rows


def position_rates(links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """The time derivatives of all position numbers."""
    return _of_leaders(links, manifold.position_rates, (q, True), (qd, False))


def _of_leaders(
    links: Mechanism, method: Callable[..., JointValue], *values: tuple[Sequence[Scalar], bool]
) -> list[Scalar]:
    """``method(link, …)`` of every joint with coordinates of its own; each list comes with whether it is positions."""
    found: list[Scalar] = []
    places = [0] * len(values)
    for link in links:
        if link.follows is not None:
            continue
        own: list[JointValue] = []
        for k, (numbers, positions) in enumerate(values):
            size = len(link.axes) + (positions and link.free)
            own.append(joint_value(list(numbers[places[k] : places[k] + size])))
            places[k] += size
        found += parts_of(method(link, *own))
    return found


def axes_of_coordinates(links: Mechanism) -> list[MovingLink]:
    """For every velocity coordinate the link that it moves."""
    return [link for link in links if link.follows is None for _ in link.axes]


# -- torques ----------------------------------------------------------------------------------------------------------


def inverse_dynamics(
    links: Mechanism,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    *,
    friction: bool = True,
) -> list[Scalar]:
    """τ = M q̈ + c + g + friction [N·m or N], of the robot without constraints."""
    at, rates, faster = _positions(links, q), coupling.expanded(links, qd), coupling.expanded(links, qdd)
    return _reduced(links, equation.inverse_dynamics(links, at, rates, faster, friction=friction))


def gravity_torques(links: Mechanism, q: Sequence[Scalar]) -> list[Scalar]:
    """g [N·m or N]."""
    return _reduced(links, equation.gravity_torques(links, _positions(links, q)))


def coefficients(links: Mechanism, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
    """(M, g): Izaguirre's D_ij and D_i."""
    M, gravity = equation.coefficients(links, _positions(links, q))
    return coupling.reduced(links, M, (True, True)), _reduced(links, gravity)


def velocity_torques(links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """c: Coriolis and centrifugal torques [N·m or N]."""
    return _reduced(
        links, equation.velocity_torques(links, _positions(links, q), coupling.expanded(links, qd))
    )


def friction(links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """Friction of a robot whose joints have none that grows with the carried torque [N·m or N]."""
    return _reduced(links, joint_terms.friction(links, _positions(links, q), coupling.expanded(links, qd)))


def momentum(
    links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """(p = M q̇, Cᵀ q̇): the generalised momentum and what the motion itself adds to its rate."""
    p, carried = momenta.momentum(links, _positions(links, q), coupling.expanded(links, qd))
    return _reduced(links, p), _reduced(links, carried)


def smooth_friction(links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """The part of friction that is continuous at rest [N·m or N]."""
    return _reduced(
        links, joint_terms.smooth_friction(links, _positions(links, q), coupling.expanded(links, qd))
    )


def add_load_friction(links: Mechanism, tau: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """Carried torques with the friction that grows with them [N·m or N]; joints that follow others have none."""
    if not joint_terms.has_load_friction(links):
        return list(tau)
    carried = coupling.expanded(links, tau, forces=True)
    return _reduced(links, joint_terms.add_load_friction(links, carried, coupling.expanded(links, qd)))


def subtract_load_friction(links: Mechanism, tau: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """What joints carry [N·m or N], of torques with the friction that grows with it."""
    if not joint_terms.has_load_friction(links):
        return list(tau)
    given = coupling.expanded(links, tau, forces=True)
    return _reduced(links, joint_terms.subtract_load_friction(links, given, coupling.expanded(links, qd)))


def dry_friction_limits(
    links: Mechanism, qd: Sequence[Scalar], given: Sequence[Scalar]
) -> list[tuple[Scalar, Scalar]]:
    """Magnitudes of dry friction in motion forward and backward [N·m or N], with that of followers.

    ``given`` are the torques less smooth friction, which load friction depends on.
    """
    axes = [links[k] for k, _ in links.coordinates()]
    rates, torques = flat(coupling.expanded(links, qd)), flat(coupling.expanded(links, given, forces=True))
    limits = [
        joint_terms.dry_friction_limits(link, rate, torque)
        for link, rate, torque in zip(axes, rates, torques, strict=True)
    ]
    found: list[tuple[Scalar, Scalar]] = []
    for own, followers in coupling.leading(links):
        forward, backward = limits[own]
        for j, ratio in followers:
            with_it, against = limits[j] if ratio > 0 else limits[j][::-1]
            forward, backward = forward + abs(ratio) * with_it, backward + abs(ratio) * against
        found.append((forward, backward))
    return found


def dry_friction(links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """The part of friction that jumps where a speed changes its sign [N·m or N], without load friction."""
    return _reduced(
        links, joint_terms.dry_friction(links, _positions(links, q), coupling.expanded(links, qd))
    )


def gradual_friction(
    links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar], tau: Sequence[Scalar]
) -> list[Scalar]:
    """Dry friction of the joints where it changes its direction over a ``friction_speed`` [N·m or N], under ``tau``."""
    at, rates = _positions(links, q), coupling.expanded(links, qd)
    given = coupling.expanded(links, tau, forces=True)
    if joint_terms.has_load_friction(links):
        given = joint_terms.subtracted(links, given, joint_terms.smooth_friction(links, at, rates))
    return _reduced(links, joint_terms.gradual_friction(links, rates, given))


def torques_of_wrench(
    links: Mechanism, q: Sequence[Scalar], wrench: Sequence[Scalar], body: int, pose: Transform
) -> list[Scalar]:
    """Jᵀ w [N·m or N] of a (moment, force) at a frame's origin in its axes."""
    at = _positions(links, q)
    J = kinematics.jacobian(links, at, body, pose)
    R = [row[:3] for row in kinematics.pose(links, at, body, pose)[:3]]
    in_base = [dense.dot(row, part) for part in (wrench[:3], wrench[3:]) for row in R]
    return coupling.reduced(links, [dense.dot(column, in_base) for column in dense.transposed(J)], (True,))


# -- motion -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Accelerated:
    """Accelerations of one state, and what they were computed with."""

    qdd: list[Scalar]
    mass_matrix: Rows
    solve: Solve
    """M⁻¹ times a list, constraints not counted."""
    held: Reactions | None


@dataclass(frozen=True, eq=False)
class Reactions:
    """How constraints react in one state: J, M⁻¹Jᵀ (as rows), the Delassus matrix, factorised by pivoting."""

    jacobian: Rows
    mobility: Rows
    rigid: Factors
    """Of the Delassus matrix, as if no constraint were soft."""
    soft: Factors
    """With the compliances of soft constraints."""

    @classmethod
    def of(
        cls, links: Mechanism, q: Sequence[JointValue], held: Sequence[Held], J: Rows, solve: Solve
    ) -> Reactions:
        mobility = [solve(row) for row in J]
        G = dense.symmetric_product(mobility, J)
        floor = constraints.closure_floor(links, q, held, J)
        rigid = soft = constraints.factorised(G, held, floor)
        compliances = constraints.compliances(held)
        if any(compliances):
            soft = constraints.factorised(constraints.softened(G, compliances), held, floor)
        return cls(J, mobility, rigid, soft)

    def corrected(
        self, values: Sequence[Scalar], wanted: Sequence[Scalar], *, soft: bool = False
    ) -> list[Scalar]:
        """The accelerations or velocities nearest to ``values``, as inertia measures it, with J·values = wanted.

        ``soft``: whether soft constraints give way.
        """
        missing = [w - dense.dot(row, values) for w, row in zip(wanted, self.jacobian, strict=True)]
        forces = (self.soft if soft else self.rigid).solved(missing)
        return [
            value + dense.dot(column, forces)
            for value, column in zip(values, dense.transposed(self.mobility), strict=True)
        ]


def accelerations(
    links: Mechanism,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    friction: bool = True,
    held: Sequence[Held] = (),
    rate: float | None = None,
) -> Accelerated:
    """q̈ under torques, constraints and, of friction, the part that is continuous at rest [rad/s² or m/s²]."""
    at, rates = _positions(links, q), coupling.expanded(links, qd)
    full, net = equation.matrix_and_net_torques(
        links, at, rates, coupling.expanded(links, tau, forces=True), friction=friction
    )
    solve, M = solver(links, full)
    free = solve(_reduced(links, net))
    if not held:
        return Accelerated(free, M, solve, None)
    J = constraints.jacobian(links, at, held)
    reactions = Reactions.of(links, at, held, J, solve)
    wanted = constraints.required(links, at, rates, held, J, rate)
    return Accelerated(reactions.corrected(free, wanted, soft=True), M, solve, reactions)


def free_accelerations(
    links: Mechanism,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    friction: bool = True,
) -> list[Scalar]:
    """q̈ of ``accelerations`` without constraints, by a recursion over the links: their number decides how many
    operations it takes, not its cube. For robots without followers [rad/s² or m/s²]."""
    at, rates = _positions(links, q), coupling.expanded(links, qd)
    net: Sequence[JointValue] = coupling.expanded(links, tau, forces=True)
    if friction:
        net = joint_terms.subtracted(links, net, joint_terms.smooth_friction(links, at, rates))
    net = equation.torques_on_bodies(links, at, rates, net, friction=False)
    return flat(kalman.forward_dynamics(links, at, rates, net))


def solver(links: Mechanism, M: Rows) -> tuple[Solve, Rows]:
    """(M⁻¹ times a list, M) over the coordinates of those that lead, from the matrix over all axes."""
    if not links.coupled:
        return factorised.solver(links, M), M
    reduced = coupling.reduced(links, M, (True, True))
    L, inverse = dense.factorised(reduced)
    return lambda right: dense.solved(L, inverse, right), reduced


def projected(
    links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar], held: Sequence[Held]
) -> tuple[list[Scalar], list[Scalar]]:
    """(q, q̇) nearby that meet the constraints: one Newton step in the positions, an impact for the velocities."""
    at = _positions(links, q)
    solve, _ = solver(links, equation.mass_matrix(links, at))
    reactions = Reactions.of(links, at, held, constraints.jacobian(links, at, held), solve)
    back = [-error for error in constraints.errors(links, at, held)]
    nothing: list[Scalar] = [0.0] * len(qd)
    new_q = moved(links, q, reactions.corrected(nothing, back))
    return new_q, reactions.corrected(list(qd), [0.0] * len(back))


def _positions(links: Mechanism, q: Sequence[Scalar]) -> list[JointValue]:
    return coupling.expanded(links, q, positions=True)


def _reduced(links: Mechanism, values: Sequence[JointValue]) -> list[Scalar]:
    return coupling.reduced(links, flat(values), (True,))
