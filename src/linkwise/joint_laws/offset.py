"""A constant torque at a joint: the offset of a torque sensor or of a current, or a weight on a pulley."""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar


class Offset(Law):
    """Not friction: it can drive the joint as well as brake it, so ``friction=False`` keeps it, as it keeps springs."""

    name = "torque_offset"
    parameters = (Parameter("torque_offset", "torque offset", ("N·m", "N")),)
    uses_position = True  # it has a potential energy, as a spring has

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return self.numbers(holder)[0]

    def energy(self, holder: Any, q: Scalar) -> Scalar:
        return self.numbers(holder)[0] * q

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        return 1.0
