"""Rotor inertia of a floating joint that resists along the axes of the world: MuJoCo's ``armature`` of a free joint."""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar

NAME = "world_rotor_inertia"
FLOATING = 6  # axes of a floating joint: three turn, three slide


class WorldRotor(Law):
    """The velocities of a floating joint are (ω, v) along the axes of the link, so a rotor inertia a resists there with
    (a ω̇, a v̇). One that resists along the axes of the world, an inertia without weight, needs a ω × v besides. That is
    this law; with ``rotor_inertia`` of the same size, which is the part in the mass matrix, the two are MuJoCo's
    ``armature``."""

    name = "world_rotor_inertia"
    parameters = (
        Parameter(NAME, "rotor inertia along the axes of the world", ("kg", "kg"), negative="refused"),
    )

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        """Nothing of one axis by itself: see ``joint_terms.world_rotor_torques``."""
        return 0.0

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        return 0.0


def sideways(rates: tuple[Scalar, ...]) -> list[Scalar]:
    """(0, ω × v) of the six velocities of a floating joint."""
    a, b, c, x, y, z = rates
    return [0.0, 0.0, 0.0, b * z - c * y, c * x - a * z, a * y - b * x]
