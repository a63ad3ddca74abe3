"""Rotor inertia, reflected through the gear to the joint: I_a q̈ (Izaguirre 1992, equation (1))."""

from __future__ import annotations

from dataclasses import replace

from linkwise.joint_laws.law import Law, Parameter


class RotorInertia(Law):
    """Part of the mass matrix, so its torque is not a function of (q, q̇): see ``joint_terms.add_rotor_inertia``."""

    name = "rotor_inertia"
    parameters = (
        Parameter("rotor_inertia", "rotor inertia", ("kg·m²", "kg"), negative="refused", mjcf="armature"),
    )
    always_labelled = True

    def numbers(self, holder):
        return (holder.rotor_inertia,)

    def changed(self, holder, name, value):
        return replace(holder, rotor_inertia=value)

    def torque(self, holder, q, qd):
        return 0.0

    def column(self, name, holder, q, qd, qdd):
        return qdd
