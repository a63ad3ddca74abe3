"""Stribeck friction: what is added to Coulomb friction at low speed, F d / (1 + (q̇/v)²).

The form is that of D. P. Hess and A. Soom (1990); it falls off as the exponential form does and needs no exponential.
"""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.direction import direction, slope
from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar

FRICTION, SPEED = "stribeck_friction", "stribeck_speed"


class Stribeck(Law):
    """``stribeck_friction`` is the height of the peak at low speed, ``stribeck_speed`` where half of it is left."""

    name = "stribeck"
    parameters = (
        Parameter(
            FRICTION,
            "Stribeck friction",
            ("N·m", "N"),
            negative="doubtful",
            doubt="friction would be smaller at low speed than Coulomb friction",
        ),
        Parameter(
            SPEED,
            "Stribeck speed",
            ("rad/s", "m/s"),
            coefficient=False,
            negative="refused",
            needed_by=FRICTION,
        ),
    )
    dissipates = True
    jumps = True

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return self.numbers(holder)[0] * self.column(FRICTION, holder, q, qd, 0.0)

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        friction, speed = self.numbers(holder)
        share = qd / speed
        fallen = 1.0 + share * share
        falls = -2.0 * share / (speed * (fallen * fallen))
        return friction * (slope(holder, qd) / fallen + direction(holder, qd) * falls)

    def limits(self, holder: Any, qd: Scalar) -> tuple[Scalar, Scalar]:
        friction, speed = self.numbers(holder)
        share = qd / speed
        both = friction / (1.0 + share * share)
        return both, both

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        share = qd / self.numbers(holder)[1]
        return direction(holder, qd) / (1.0 + share * share)
