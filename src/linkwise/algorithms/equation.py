"""The equation of motion of the whole arm: rigid bodies by any algorithm, and what the joints add.

    M(q) q̈ + c(q, q̇) + g(q) + friction(q, q̇) = τ + Jᵀ w

The algorithms compute rigid bodies; ``joint_terms`` adds rotors, friction and springs. Code that needs torques, forces
or accelerations of an arm (the table of functions, controllers, simulations, the real-time loop) takes them from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms import compound_link, energy, joint_terms, newton_euler
from linkwise.algorithms.joint_terms import added, subtracted
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar
from linkwise.spatial import Spatial, zero_vector

Torques = Callable[..., Sequence[JointValue]]
Matrix = list[list[Scalar]]


def inverse_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
    *,
    friction: bool = True,
    method: Torques = newton_euler.inverse_dynamics,
) -> Sequence[JointValue]:
    """τ = M q̈ + c + g + friction − Jᵀ w [N·m or N]."""
    tau = method(links, q, qd, qdd, wrenches)
    tau = added(links, tau, joint_terms.rotor_torques(links, qdd))
    tau = joint_terms.add_springs(links, tau, q)
    tau = joint_terms.add_world_rotors(links, tau, qd)
    if not friction:
        return tau
    return joint_terms.add_friction(links, joint_terms.with_drag(links, tau, q, qd), q, qd)


def mass_matrix(
    links: Mechanism, q: Sequence[JointValue], method: Callable[..., Matrix] = compound_link.mass_matrix
) -> Matrix:
    """M, rotor inertias included."""
    return joint_terms.add_rotor_inertia(links, method(links, q))


def gravity_torques(
    links: Mechanism, q: Sequence[JointValue], method: Torques = compound_link.gravity_torques
) -> Sequence[JointValue]:
    """g: the torques that hold the arm at rest against gravity and springs [N·m or N]."""
    return joint_terms.add_springs(links, method(links, q), q)


def coefficients(links: Mechanism, q: Sequence[JointValue]) -> tuple[Matrix, Sequence[JointValue]]:
    """(M, g) from the same compound links: Izaguirre's D_ij and D_i."""
    turned, compound = compound_link.compound_links(links, q)
    M = joint_terms.add_rotor_inertia(links, compound_link.inertia_coefficients(links, turned, compound))
    gravity = compound_link.gravity_coefficients(links, turned, compound)
    return M, joint_terms.add_springs(links, gravity, q)


def velocity_torques(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue], method: Torques | None = None
) -> Sequence[JointValue]:
    """c: Coriolis and centrifugal torques [N·m or N]; ``method`` gives those of the bodies from (links, q, q̇)."""
    if method is None:
        tau = newton_euler.inverse_dynamics(links, q, qd, zeros(links), gravity=zero_vector())
    else:
        tau = method(links, q, qd)
    return joint_terms.add_world_rotors(links, tau, qd)


def bias_torques(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
) -> Sequence[JointValue]:
    """c + g − Jᵀ w [N·m or N]."""
    tau = newton_euler.inverse_dynamics(links, q, qd, zeros(links), wrenches)
    return joint_terms.add_world_rotors(links, joint_terms.add_springs(links, tau, q), qd)


def torques_on_bodies(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    *,
    friction: bool = True,
) -> Sequence[JointValue]:
    """What is left of applied torques for the rigid bodies: less friction, less springs."""
    if friction:
        tau = joint_terms.without_drag(links, joint_terms.subtract_friction(links, tau, q, qd), q, qd)
    return joint_terms.subtract_world_rotors(links, joint_terms.subtract_springs(links, tau, q), qd)


def matrix_and_net_torques(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    *,
    friction: bool = True,
) -> tuple[Matrix, list[JointValue]]:
    """(M, M q̈) under torques and, of friction, the part that is continuous at rest."""
    M = mass_matrix(links, q)
    net = subtracted(links, tau, bias_torques(links, q, qd))
    if friction:
        net = subtracted(links, net, joint_terms.smooth_friction(links, q, qd))
    return M, net


def potential_energy(links: Mechanism, q: Sequence[JointValue]) -> Scalar:
    """Of gravity and springs [J]; its gradient is g."""
    return energy.potential_energy(links, q) + joint_terms.spring_energy(links, q)


def zeros(links: Mechanism) -> list[JointValue]:
    return links.grouped([0.0] * links.dof)
