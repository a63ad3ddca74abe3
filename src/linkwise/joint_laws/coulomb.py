"""Coulomb friction: F_s d, with one magnitude for each direction d of ``joint_laws.direction``, sgn q̇ by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.joint_laws.direction import direction, jumps, slope
from linkwise.joint_laws.law import Law, Parameter
from linkwise.scalar import Scalar, sign, where

BOTH, FORWARD, BACKWARD = "coulomb_friction", "coulomb_friction_forward", "coulomb_friction_backward"
_PARAMETER = Parameter(
    FORWARD,
    "Coulomb friction",
    ("N·m", "N"),
    negative="doubtful",
    doubt="it would drive the joint",
    mjcf="frictionloss",
)


def both_directions(given: Any, holder: str) -> tuple[Any, Any]:
    """(forward, backward) magnitudes: a single number is that of both directions.

    Args:
        given: a number or two.
        holder: what has the friction, for the message.

    Raises:
        ModelError: neither.
    """
    if _is_one_of(given, (int, float, np.number)) and not _is_one_of(given, (bool,)):
        return given, given
    if _is_one_of(given, (tuple, list, np.ndarray)) and np.shape(given) == (2,):
        return given[0], given[1]
    raise ModelError(
        f"{holder}: coulomb_friction: expected a number, or two (forward, backward), got {given!r}"
    )


def _is_one_of(given: Any, kinds: tuple[Any, ...]) -> bool:
    return isinstance(given, kinds)


class CoulombFriction(Law):
    """Its label is ``coulomb_friction``, or two for the directions where those of some joint differ."""

    name = "coulomb_friction"
    parameters = (_PARAMETER, replace(_PARAMETER, name=BACKWARD))
    dissipates = True
    jumps = True
    always_labelled = True

    def numbers(self, holder: Any) -> tuple[Scalar, ...]:
        return tuple(holder.coulomb_friction)

    def labels(self, holders: Sequence[Any]) -> tuple[str, ...]:
        differ = any(holder.coulomb_friction[0] != holder.coulomb_friction[1] for holder in holders)
        return (FORWARD, BACKWARD) if differ else (BOTH,)

    def settable(self) -> tuple[str, ...]:
        return (BOTH, FORWARD, BACKWARD)

    def number(self, holder: Any, name: str) -> Scalar:
        return holder.coulomb_friction[1 if name == BACKWARD else 0]

    def changed(self, holder: Any, name: str, value: Scalar) -> Any:
        forward, backward = holder.coulomb_friction
        pair = {BOTH: (value, value), FORWARD: (value, backward), BACKWARD: (forward, value)}[name]
        return replace(holder, coulomb_friction=pair)

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        forward, backward = holder.coulomb_friction
        if forward is backward or forward == backward:
            return forward * direction(holder, qd)
        if jumps(holder):
            # at rest there is no friction, and a NaN speed must stay NaN: both are what sign gives
            return where(qd > 0.0, forward, where(qd < 0.0, -backward, sign(qd)))
        d = direction(holder, qd)
        return where(d > 0.0, forward, backward) * d

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        if jumps(holder):
            return 0.0
        forward, backward = holder.coulomb_friction
        return where(direction(holder, qd) > 0.0, forward, backward) * slope(holder, qd)

    def limits(self, holder: Any, qd: Scalar) -> tuple[Scalar, Scalar]:
        return holder.coulomb_friction

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        d = direction(holder, qd)
        if name == BOTH:
            return d
        return where(d < 0.0, 0.0, d) if name == FORWARD else where(d > 0.0, 0.0, d)
