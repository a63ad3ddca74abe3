"""Viscous friction: F_d q̇."""

from __future__ import annotations

from dataclasses import replace

from linkwise.joint_laws.law import Law, Parameter


class ViscousFriction(Law):
    """Proportional to the speed."""

    name = "viscous_friction"
    parameters = (
        Parameter(
            "viscous_friction",
            "viscous friction",
            ("N·m·s/rad", "N·s/m"),
            negative="doubtful",
            doubt="it would drive the joint",
            mjcf="damping",
        ),
    )
    dissipates = True
    always_labelled = True

    def numbers(self, holder):
        return (holder.viscous_friction,)

    def changed(self, holder, name, value):
        return replace(holder, viscous_friction=value)

    def torque(self, holder, q, qd):
        return holder.viscous_friction * qd

    def by_qd(self, holder, q, qd):
        return holder.viscous_friction

    def column(self, name, holder, q, qd, qdd):
        return qd
