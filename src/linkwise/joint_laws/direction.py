"""The direction of friction at a joint: a number in [−1, 1] by which Coulomb friction and similar terms are multiplied.

Without further numbers it is sgn q̇, which jumps. With a ``friction_speed`` v it is smooth,

    d = q̇ / √(q̇² + v²),

and with a ``presliding_distance`` δ the joint has a memory: gears give way a little before they slide, so that d goes
from −1 to 1 while the joint moves by 2δ, and stays as it is while the joint rests (the stop operator of Prandtl, one
element of a Maxwell slip model):

    d ← min(1, max(−1, d + Δq/δ)).

The memory is not part of the state (q, q̇). Functions that are given no memory take the smooth direction; kernels made
with ``inputs=("direction",)`` take d as an input, and ``Robot.directions`` gives it along a motion.
"""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.law import Law, Parameter, is_zero
from linkwise.scalar import Scalar, sign, sqrt

MEMORY = "direction"
SPEED, DISTANCE = "friction_speed", "presliding_distance"


def direction(holder: Any, qd: Scalar) -> Scalar:
    """d of a joint at the speed ``qd``: the memory that was given, or else a function of the speed."""
    given = holder.terms.get(MEMORY)
    if given is not None:
        return given
    speed = holder.terms.get(SPEED, 0.0)
    return sign(qd) if is_zero(speed) else qd / sqrt(qd * qd + speed * speed)


def slope(holder: Any, qd: Scalar) -> Scalar:
    """The derivative of d by the speed; that of a jump is 0, as is that of a memory that is given."""
    speed = holder.terms.get(SPEED, 0.0)
    if is_zero(speed) or holder.terms.get(MEMORY) is not None:
        return 0.0
    square = qd * qd + speed * speed
    return speed * speed / (square * sqrt(square))


def jumps(holder: Any) -> bool:
    """Whether d is sgn q̇."""
    return is_zero(holder.terms.get(SPEED, 0.0)) and holder.terms.get(MEMORY) is None


class Direction(Law):
    """No torque of its own: the numbers that say how the direction of friction changes at this joint."""

    name = "direction"
    parameters = (
        Parameter(
            SPEED,
            "speed over which friction changes its direction",
            ("rad/s", "m/s"),
            coefficient=False,
            negative="refused",
        ),
        Parameter(
            DISTANCE,
            "distance over which friction changes its direction",
            ("rad", "m"),
            coefficient=False,
            negative="refused",
        ),
    )

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        return 0.0
