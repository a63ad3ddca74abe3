"""What a joint adds to the equation of motion by itself: rotor inertia, friction, springs, carried weight.

One law is one file and one row of ``LAWS``; readers, writers, labels, the regressor, dynamics, derivatives, energies
and simulations take what they need from the table. The order of the rows is that of labels and of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from linkwise.joint_laws.coulomb import CoulombFriction, both_directions
from linkwise.joint_laws.direction import Direction
from linkwise.joint_laws.gravity_compensation import GravityCompensation
from linkwise.joint_laws.law import Law, Parameter, is_zero
from linkwise.joint_laws.load import LoadFriction
from linkwise.joint_laws.network import Network
from linkwise.joint_laws.offset import Offset
from linkwise.joint_laws.ripple import Ripple
from linkwise.joint_laws.rotor import RotorInertia
from linkwise.joint_laws.saturating import SaturatingFriction
from linkwise.joint_laws.spring import Spring
from linkwise.joint_laws.stribeck import Stribeck
from linkwise.joint_laws.unmodelled import Unmodelled
from linkwise.joint_laws.viscous import ViscousFriction
from linkwise.joint_laws.world_rotor import WorldRotor
from linkwise.scalar import Scalar

LAWS: tuple[Law, ...] = (
    RotorInertia(),
    ViscousFriction(),
    CoulombFriction(),
    Spring(),
    GravityCompensation(),
    Stribeck(),
    SaturatingFriction(),
    LoadFriction(),
    Offset(),
    Unmodelled(),
    Ripple(),
    Network(),
    Direction(),
    WorldRotor(),
)
FIELDS = ("rotor_inertia", "viscous_friction", "coulomb_friction")
"""Laws with a field of their own in ``Joint`` and a syntax of their own in files; the others are in ``terms``."""
TERMS: dict[str, Parameter] = {
    parameter.name: parameter for law in LAWS if law.name not in FIELDS for parameter in law.parameters
}
"""The parameters that ``terms`` may hold."""
_OWNER = {name: law for law in LAWS for name in law.settable()}
UNITS: dict[str, tuple[str, str]] = {
    name: next((p.units for p in law.parameters if p.name == name), law.parameters[0].units)
    for name, law in _OWNER.items()
}
"""The units of every settable number: of joints that turn, and of joints that slide."""

_H = TypeVar("_H")


def settable() -> tuple[str, ...]:
    """The names by which numbers of a joint may be changed."""
    return tuple(_OWNER)


def coefficients(joints: Sequence[Any]) -> list[tuple[Law, str]]:
    """(law, end of the label) of all coefficients of a robot with these joints, in the order of its labels."""
    return [(law, name) for law in LAWS for name in law.labels(joints)]


def has_dry_friction(holder: Any) -> bool:
    """Whether a joint has friction that holds it at rest; a symbol may."""
    return any(law.dissipates and law.jumps and not law.absent(holder) for law in LAWS)


def number(holder: Any, name: str) -> Scalar:
    """A number of a joint by the end of its label."""
    return _OWNER[name].number(holder, name)


def changed(holder: _H, name: str, value: Scalar) -> _H:
    """The joint, or the prepared link, with another number."""
    return _OWNER[name].changed(holder, name, value)


__all__ = [
    "FIELDS",
    "LAWS",
    "TERMS",
    "UNITS",
    "Law",
    "Parameter",
    "both_directions",
    "changed",
    "coefficients",
    "has_dry_friction",
    "is_zero",
    "number",
    "settable",
]
