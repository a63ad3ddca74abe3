"""A linear spring at a joint: k (q − q₀)."""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar


class Spring(Law):
    """Pulls the joint back to its rest position. The reference is a constant for the regressor: torques are linear in
    the stiffness, and in both only as k and k·q₀."""

    name = "spring"
    parameters = (
        Parameter(
            "stiffness",
            "stiffness",
            ("N·m/rad", "N/m"),
            negative="doubtful",
            doubt="it would push the joint away from its rest position",
            mjcf="stiffness",
        ),
        Parameter(
            "spring_reference",
            "spring reference",
            ("rad", "m"),
            coefficient=False,
            angle=True,
            mjcf="springref",
        ),
    )
    uses_position = True

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        stiffness, rest = self.numbers(holder)
        return stiffness * (q - rest)

    def by_q(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return self.numbers(holder)[0]

    def energy(self, holder: Any, q: Scalar) -> Scalar:
        stiffness, rest = self.numbers(holder)
        return 0.5 * stiffness * (q - rest) * (q - rest)

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        return q - self.numbers(holder)[1]
