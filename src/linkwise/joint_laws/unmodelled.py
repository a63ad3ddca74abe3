"""Torque that neither a possible body nor friction that brakes explains: a function of the joint's position and speed,

    c₁ q̇ + c₂ q̇ |q̇| + c₃ q̇/√(q̇² + v²) + a₁ cos q + b₁ sin q + a₂ cos 2q + b₂ sin 2q.

Cables and hoses, springs of counterweights, drive gains that depend on the position and sensors behind gears cause it;
coefficients have any sign. ``identify`` adds it where it predicts motions that were left out, and says so. It does not
depend on accelerations: the mass matrix stays that of possible bodies.
"""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter, is_zero
from linkwise.scalar import Scalar, cos, maximum, sign, sin, sqrt

VISCOUS, SQUARE, DRY = "unmodelled_viscous", "unmodelled_square", "unmodelled_coulomb"
SPEED = "unmodelled_speed"
COS_1, SIN_1, COS_2, SIN_2 = "unmodelled_cos_1", "unmodelled_sin_1", "unmodelled_cos_2", "unmodelled_sin_2"
COEFFICIENTS = (VISCOUS, SQUARE, DRY, COS_1, SIN_1, COS_2, SIN_2)


class Unmodelled(Law):
    """Seven coefficients of any sign, and the speed v over which the third one changes its direction."""

    name = "unmodelled"
    parameters = (
        Parameter(VISCOUS, "unmodelled torque, viscous", ("N·m·s/rad", "N·s/m")),
        Parameter(SQUARE, "unmodelled torque, square of the speed", ("N·m·s²/rad²", "N·s²/m²")),
        Parameter(DRY, "unmodelled torque, by direction", ("N·m", "N")),
        Parameter(COS_1, "unmodelled torque, cos q", ("N·m", "N")),
        Parameter(SIN_1, "unmodelled torque, sin q", ("N·m", "N")),
        Parameter(COS_2, "unmodelled torque, cos 2q", ("N·m", "N")),
        Parameter(SIN_2, "unmodelled torque, sin 2q", ("N·m", "N")),
        Parameter(
            SPEED,
            "speed over which unmodelled torque changes its direction",
            ("rad/s", "m/s"),
            coefficient=False,
            negative="refused",
        ),
    )
    dissipates = True
    brakes = False
    uses_position = True

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        total: Scalar = 0.0
        for name in COEFFICIENTS:
            coefficient = holder.terms.get(name, 0.0)
            if not is_zero(coefficient):
                total = total + coefficient * self.column(name, holder, q, qd, 0.0)
        return total

    def by_q(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        a1, b1, a2, b2 = (holder.terms.get(name, 0.0) for name in (COS_1, SIN_1, COS_2, SIN_2))
        return b1 * cos(q) - a1 * sin(q) + 2.0 * (b2 * cos(2.0 * q) - a2 * sin(2.0 * q))

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        viscous, square, dry, v = (holder.terms.get(name, 0.0) for name in (VISCOUS, SQUARE, DRY, SPEED))
        slope = viscous + 2.0 * square * maximum(qd, -qd)
        if is_zero(v) or is_zero(dry):
            return slope
        size = qd * qd + v * v
        return slope + dry * (v * v) / (size * sqrt(size))

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        if name == VISCOUS:
            return qd
        if name == SQUARE:
            return qd * maximum(qd, -qd)
        if name == DRY:
            v = holder.terms.get(SPEED, 0.0)
            return sign(qd) if is_zero(v) else qd / sqrt(qd * qd + v * v)
        turned = q if name in (COS_1, SIN_1) else 2.0 * q
        return cos(turned) if name in (COS_1, COS_2) else sin(turned)
