"""Rotor inertia, reflected through the gear to the joint: I_a q̈ (Izaguirre 1992, equation (1))."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar


class RotorInertia(Law):
    """Part of the mass matrix, so its torque is not a function of (q, q̇): see ``joint_terms.add_rotor_inertia``."""

    name = "rotor_inertia"
    parameters = (
        Parameter("rotor_inertia", "rotor inertia", ("kg·m²", "kg"), negative="refused", mjcf="armature"),
    )
    always_labelled = True

    def numbers(self, holder: Any) -> tuple[Scalar, ...]:
        return (holder.rotor_inertia,)

    def changed(self, holder: Any, name: str, value: Scalar) -> Any:
        return replace(holder, rotor_inertia=value)

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return 0.0

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        return qdd
