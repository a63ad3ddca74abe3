"""A small network as a torque of the joint: one hidden layer over its position and speed,

    Σ cₖ s(aₖ q + bₖ q̇ + dₖ),    s(z) = z / √(1 + z²).

The function s is a sigmoid without exponentials, so the law has the same bits in every target. Beyond the states that
were fitted every unit levels off. ``identify(..., network=True)`` adds it to what bodies, friction and ripple leave,
where it predicts motions that were left out. It does not depend on accelerations: the mass matrix stays that of
possible bodies.
"""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter, is_zero
from linkwise.scalar import Scalar, sqrt

NEURONS = 16
"""Units of the hidden layer that a joint may have."""


def weight(unit: int) -> str:
    """The name of the coefficient c of a unit, units from 1 on."""
    return f"network_{unit}_weight"


def inner(unit: int) -> tuple[str, str, str]:
    """The names of a, b and d of a unit."""
    return f"network_{unit}_position", f"network_{unit}_speed", f"network_{unit}_bias"


def _parameters() -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for unit in range(1, NEURONS + 1):
        found.append(Parameter(weight(unit), f"weight of network unit {unit}", ("N·m", "N")))
        units = (("1/rad", "1/m"), ("s/rad", "s/m"), ("", ""))
        texts = ("position", "speed", "bias")
        found += [
            Parameter(name, f"{text} of network unit {unit}", each, coefficient=False)
            for name, text, each in zip(inner(unit), texts, units, strict=True)
        ]
    return tuple(found)


class Network(Law):
    """Up to ``NEURONS`` units: ``network_1_weight`` is c of the first, ``network_1_position``, ``network_1_speed`` and
    ``network_1_bias`` are its a, b and d."""

    name = "network"
    parameters = _parameters()
    dissipates = True
    brakes = False
    uses_position = True
    labelled_singly = True

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        total: Scalar = 0.0
        for c, a, b, d in _units(holder):
            z = a * q + b * qd + d
            total = total + c * z / sqrt(1.0 + z * z)
        return total

    def by_q(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        total: Scalar = 0.0
        for c, a, b, d in _units(holder):
            total = total + c * a * _slope(a * q + b * qd + d)
        return total

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        total: Scalar = 0.0
        for c, a, b, d in _units(holder):
            total = total + c * b * _slope(a * q + b * qd + d)
        return total

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        a, b, d = (holder.terms.get(each, 0.0) for each in inner(int(name.split("_")[1])))
        z = a * q + b * qd + d
        return z / sqrt(1.0 + z * z)


def _units(holder: Any) -> list[tuple[Scalar, Scalar, Scalar, Scalar]]:
    """(c, a, b, d) of the units that a joint has."""
    found: list[tuple[Scalar, Scalar, Scalar, Scalar]] = []
    for unit in range(1, NEURONS + 1):
        c = holder.terms.get(weight(unit), 0.0)
        if not is_zero(c):
            a, b, d = (holder.terms.get(each, 0.0) for each in inner(unit))
            found.append((c, a, b, d))
    return found


def _slope(z: Scalar) -> Scalar:
    """ds/dz."""
    size = 1.0 + z * z
    return 1.0 / (size * sqrt(size))
