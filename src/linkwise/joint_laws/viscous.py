"""Viscous friction: F_d q̇."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar


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

    def numbers(self, holder: Any) -> tuple[Scalar, ...]:
        return (holder.viscous_friction,)

    def changed(self, holder: Any, name: str, value: Scalar) -> Any:
        return replace(holder, viscous_friction=value)

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return holder.viscous_friction * qd

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return holder.viscous_friction

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        return qd
