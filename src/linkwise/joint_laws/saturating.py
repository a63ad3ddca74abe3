"""Viscous friction that saturates, as that of a greased gear: F q̇ / (|q̇| + v)."""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar, maximum

FRICTION, SPEED = "saturating_friction", "saturating_speed"


class SaturatingFriction(Law):
    """``saturating_friction`` is reached at high speed, half of it at ``saturating_speed``. Continuous at rest."""

    name = "saturating_friction"
    parameters = (
        Parameter(
            FRICTION,
            "saturating friction",
            ("N·m", "N"),
            negative="doubtful",
            doubt="friction would fall with the speed",
        ),
        Parameter(
            SPEED,
            "speed at which friction saturates",
            ("rad/s", "m/s"),
            coefficient=False,
            negative="refused",
            needed_by=FRICTION,
        ),
    )
    dissipates = True

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return self.numbers(holder)[0] * self.column(FRICTION, holder, q, qd, 0.0)

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        friction, speed = self.numbers(holder)
        reach = maximum(qd, -qd) + speed
        return friction * speed / (reach * reach)

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        return qd / (maximum(qd, -qd) + self.numbers(holder)[1])
