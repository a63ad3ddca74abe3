"""A constant torque at a joint: the offset of a torque sensor or of a current, or a weight on a pulley."""

from __future__ import annotations

from linkwise.joint_laws.law import Law, Parameter


class Offset(Law):
    """Not friction: it can drive the joint as well as brake it, so ``friction=False`` keeps it, as it keeps springs."""

    name = "torque_offset"
    parameters = (Parameter("torque_offset", "torque offset", ("N·m", "N")),)
    uses_position = True  # it has a potential energy, as a spring has

    def torque(self, holder, q, qd):
        return self.numbers(holder)[0]

    def energy(self, holder, q):
        return self.numbers(holder)[0] * q

    def column(self, name, holder, q, qd, qdd):
        return 1.0
