"""Friction that grows with the torque which the gear carries: c d |T|.

T is everything that the joint transmits besides friction: links, rotor, springs and external forces. So

    τ = T + f + c d |T|,

with f the other friction. Given τ, T follows at once, because |c d| < 1: T = (τ − f) / (1 + c d sgn(τ − f)).
"""

from __future__ import annotations

from typing import Any

from linkwise.joint_laws.direction import direction
from linkwise.joint_laws.law import Law, Parameter, is_zero
from linkwise.scalar import Scalar, maximum, where

NAME = "load_friction"


class LoadFriction(Law):
    """The share c of the carried torque that is lost; below 1, or the joint could not be moved from its far side."""

    name = NAME
    parameters = (
        Parameter(
            NAME,
            "load friction",
            ("of the torque", "of the force"),
            coefficient=False,
            negative="refused",
            below=1.0,
        ),
    )
    dissipates = True
    jumps = True
    of_load = True

    def absent(self, holder: Any) -> bool:
        return is_absent(holder)

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        """Nothing without a carried torque, see ``added`` and ``removed``."""
        return 0.0


def is_absent(holder: Any) -> bool:
    """Whether a joint has no load friction."""
    return is_zero(holder.terms.get(NAME, 0.0))


def added(holder: Any, carried: Scalar, qd: Scalar) -> Scalar:
    """T + c d |T|."""
    if is_absent(holder):
        return carried
    return carried + _lost(holder, qd) * maximum(carried, -carried)


def removed(holder: Any, given: Scalar, qd: Scalar) -> Scalar:
    """T, where T + c d |T| is given."""
    if is_absent(holder):
        return given
    lost = _lost(holder, qd)
    return given / where(given > 0.0, 1.0 + lost, 1.0 - lost)


def limit(holder: Any, given: Scalar, forward: bool) -> Scalar:
    """c |T| in motion forward or backward, where ``given`` is the torque less the other friction of that motion."""
    share = holder.terms[NAME]
    along = given > 0.0 if forward else given < 0.0
    size = maximum(given, -given)
    return share * size / where(along, 1.0 + share, 1.0 - share)


def _lost(holder: Any, qd: Scalar) -> Scalar:
    return holder.terms[NAME] * direction(holder, qd)
