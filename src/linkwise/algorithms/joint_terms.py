"""What a joint adds by itself: rotor inertia and friction (Izaguirre 1992, equation (1))."""

from __future__ import annotations

from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, sign, stage, where


def friction(links: Mechanism, qd) -> list[Scalar]:
    """F_d q̇ + F_s sgn q̇ of every joint [N·m or N]; F_s may differ by direction, and friction at rest is zero."""
    with stage("friction"):
        return links.each(_friction, qd)


def _friction(link: MovingLink, qd: Scalar) -> Scalar:
    viscous = link.viscous_friction * qd
    forward, backward = link.coulomb_friction
    if forward == 0.0 and backward == 0.0:
        return viscous
    if forward is backward or forward == backward:
        return viscous + forward * sign(qd)
    # at rest there is no friction, and a NaN speed must stay NaN: both are what sign gives
    return viscous + where(qd > 0.0, forward, where(qd < 0.0, -backward, sign(qd)))


def rotor_torques(links: Mechanism, qdd) -> list[Scalar]:
    """I_a q̈ of every joint."""
    with stage("rotor inertia"):
        return links.each(lambda link, qdd: link.rotor_inertia * qdd, qdd)


def add_rotor_inertia(links: Mechanism, M: list[list[Scalar]]) -> list[list[Scalar]]:
    """The mass matrix with the rotor inertias on its diagonal."""
    return [
        [entry + links[i].rotor_inertia if i == j else entry for j, entry in enumerate(row)]
        for i, row in enumerate(M)
    ]
