"""How accelerations are computed, with and without constraints: which algorithm. Part of ``evaluation``."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from linkwise.algorithms import (
    coupling,
    dense,
    equation,
    factorised,
    joint_terms,
    kalman,
    kinematics,
    newton_euler,
)
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained import filter as constraint_filter
from linkwise.algorithms.singularity import may_be_singular
from linkwise.errors import ModelError
from linkwise.functions.table import Setting
from linkwise.model.mechanism import flat
from linkwise.scalar import Scalar
from linkwise.spatial import Spatial, zero_spatial


def wrenches(setting: Setting, wrench) -> list[Spatial] | None:
    """The wrench on every prepared link; none if it acts on the base."""
    if wrench is None:
        return None
    links = setting.links()
    body, pose = setting.target()
    loads = [zero_spatial() for _ in links]
    if body >= 0:
        loads[body] = kinematics.wrench_on_link(links, wrench, body, pose)
    return loads


def net_torques(setting: Setting, q, qd, tau):
    """What is left of the torques for the rigid bodies."""
    return equation.torques_on_bodies(setting.links(), q, qd, tau, friction=setting.friction)


def forward_kalman(setting: Setting, q, qd, tau, wrench=None):
    if setting.model.constraints:
        return constrained(setting, q, qd, tau, wrench)[0].qdd
    return free_kalman(setting, q, qd, tau, wrench)


def free_kalman(setting: Setting, q, qd, tau, wrench=None):
    links, net = setting.links(), net_torques(setting, q, qd, tau)
    if links.coupled and may_be_singular(links):
        # a follower without inertia of its own is moved by its leader: only the coupled mass matrix shows whether it
        # is singular
        return free_compound(setting, q, qd, tau, wrench)
    qdd = kalman.forward_dynamics(links, q, qd, net, wrenches(setting, wrench))
    if not links.coupled:
        return qdd
    return coupling.in_step(links, kalman.inverse_mass_matrix(links, q), flat(qdd))


def forward_compound(setting: Setting, q, qd, tau, wrench=None):
    if setting.model.constraints:
        return constrained_by_mass_matrix(setting, q, qd, tau, wrench)[0].qdd
    return free_compound(setting, q, qd, tau, wrench)


def free_compound(setting: Setting, q, qd, tau, wrench=None):
    links = setting.links()
    M = equation.mass_matrix(links, q)
    bias = newton_euler.inverse_dynamics(links, q, qd, equation.zeros(links), wrenches(setting, wrench))
    right = flat(joint_terms.subtracted(links, net_torques(setting, q, qd, tau), bias))
    return coupling.solve_reduced(links, M, right) if links.coupled else factorised.solve(links, M, right)


# -- matrices ---------------------------------------------------------------------------------------------------------


def inverse_mass_compound(setting: Setting, q):
    links = setting.links()
    M = equation.mass_matrix(links, q)
    return coupling.invert_reduced(links, M) if links.coupled else factorised.invert(links, M)


def inverse_mass_kalman(setting: Setting, q):
    links = setting.links()
    if links.coupled and may_be_singular(links):
        return inverse_mass_compound(setting, q)
    inverse = kalman.inverse_mass_matrix(links, q)
    return coupling.inverse_in_step(links, inverse) if links.coupled else inverse


def mobility_of(setting: Setting, q, J: list[list[Scalar]]) -> list[list[Scalar]]:
    """J M⁻¹."""
    links = setting.links()
    if kalman.solves_rows(links.dof, len(J), links.coupled):
        return kalman.times_inverse_mass(links, q, J)
    return dense.product(J, inverse_mass_kalman(setting, q))


# -- constraints ------------------------------------------------------------------------------------------------------


def rows_of(setting: Setting, q):
    """(constraints on prepared links, their Jacobian)."""
    held = setting.held()
    return held, constraints.jacobian(setting.links(), q, held)


class HeldState(NamedTuple):
    """The constraints of a robot in one state: on prepared links, J, what J q̈ must be, see ``closure_floor``."""

    held: list[constraints.Held]
    J: list[list[Scalar]]
    wanted: list[Scalar]
    floor: Scalar


def held_state(setting: Setting, q, qd) -> HeldState:
    links = setting.links()
    held, J = rows_of(setting, q)
    wanted = constraints.required(links, q, qd, held, J, setting.stabilization)
    return HeldState(held, J, wanted, constraints.closure_floor(links, q, held, J))


def constrained(setting: Setting, q, qd, tau, wrench=None) -> tuple[constraints.Solved, HeldState]:
    """Accelerations and forces by the Delassus matrix."""
    own = held_state(setting, q, qd)
    free = flat(free_kalman(setting, q, qd, tau, wrench))
    mobility = mobility_of(setting, q, own.J)
    return constraints.by_delassus(own.J, mobility, free, own.wanted, own.held, own.floor), own


def constrained_by_mass_matrix(
    setting: Setting, q, qd, tau, wrench=None
) -> tuple[constraints.Solved, HeldState]:
    """The same by the mass matrix."""
    links = setting.links()
    own = held_state(setting, q, qd)
    bias = newton_euler.inverse_dynamics(links, q, qd, equation.zeros(links), wrenches(setting, wrench))
    net = flat(joint_terms.subtracted(links, net_torques(setting, q, qd, tau), bias))
    M = coupling.reduced(links, equation.mass_matrix(links, q), (True, True))
    right = coupling.reduced(links, net, (True,))
    singular = may_be_singular(links)
    return constraints.by_mass_matrix(own.J, M, right, own.wanted, own.held, own.floor, singular), own


def filtered(setting: Setting, q, qd, tau, wrench=None):
    """(q̈, λ, residuals, sizes) with constraints as measurements of the filter."""
    links, held = setting.links(), setting.held()
    if (reason := constraint_filter.applies(links, held)) is not None:
        raise ModelError(
            f"{setting.model.name}: algorithm='filter' holds links to the world, but {reason}; "
            "use algorithm='kalman' or 'compound_link'"
        )
    net, loads = net_torques(setting, q, qd, tau), wrenches(setting, wrench)
    return constraint_filter.forward_dynamics(links, q, qd, net, held, setting.stabilization, loads)


def constraint_residuals(setting: Setting, q, qd, tau, wrench=None):
    """(J q̈ + γ, what it is compared with), row by row."""
    return left_over(*constrained(setting, q, qd, tau, wrench))


def left_over(solved: constraints.Solved, own: HeldState):
    wanted = constraints.given_way(own.wanted, constraints.compliances(own.held), solved.forces)
    return constraints.left_over(solved.qdd, own.J, wanted, own.held, own.floor)


def with_unmet(solve: Callable[..., tuple[constraints.Solved, HeldState]]):
    """(q̈, the largest part of a row that is not met)."""

    def run(setting: Setting, q, qd, tau, wrench=None):
        solved, own = solve(setting, q, qd, tau, wrench)
        return solved.qdd, constraints.largest_part(*left_over(solved, own))

    return run


def forces_of(solve: Callable[..., tuple[constraints.Solved, HeldState]]):
    return lambda setting, q, qd, tau: solve(setting, q, qd, tau)[0].least_forces()


def filtered_with_unmet(setting: Setting, q, qd, tau, wrench=None):
    qdd, _, residuals, sizes = filtered(setting, q, qd, tau, wrench)
    return qdd, constraints.largest_part(residuals, sizes)


def delassus_by(inverse: Callable[..., list[list[Scalar]]] | None = None):
    """With this M⁻¹; None: as it is quickest."""

    def run(setting: Setting, q):
        _, J = rows_of(setting, q)
        mobility = mobility_of(setting, q, J) if inverse is None else dense.product(J, inverse(setting, q))
        return dense.symmetric_product(mobility, J)

    return run


def constraint_rank(setting: Setting, q):
    """(independent rows, the estimated relative error of accelerations)."""
    links = setting.links()
    held, J = rows_of(setting, q)
    G = dense.symmetric_product(mobility_of(setting, q, J), J)
    G = constraints.softened(G, constraints.compliances(held))
    factors = constraints.factorised(G, held, constraints.closure_floor(links, q, held, J))
    return factors.rank, constraints.accuracy(factors)


def impact(setting: Setting, q, qd, restitution):
    held, J = rows_of(setting, q)
    rates = coupling.leaders(setting.links(), qd)
    return constraints.after_impact(J, mobility_of(setting, q, J), rates, restitution[0], held)
