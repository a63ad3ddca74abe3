"""What a file format cannot hold of a robot: what other programs will not see in a file that was written here.

TOML holds everything but contacts. URDF and MJCF files contain all of it too, in elements that other programs pass over
or in a copy that they do not use, so loading such a file here gives the same robot. Other programs see the standard
elements alone. Every difference between those and the robot is one ``Loss``. A law of a joint that no format is said to
hold is lost, so a new row of ``LAWS`` is stated without a change here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.formats.constraint_parts import parts_of
from linkwise.joint_laws import LAWS, Law
from linkwise.joint_laws.plain import RICHER, plain_friction
from linkwise.model.contacts import Ground, Part, Stop
from linkwise.model.joint import Joint
from linkwise.model.model import STANDARD_GRAVITY, Model
from linkwise.model.motors import Motor, without_motors

HELD = {
    ".urdf": ("viscous_friction", "coulomb_friction"),
    ".xml": ("rotor_inertia", "viscous_friction", "coulomb_friction", "spring", "gravity_compensation"),
}
"""The laws of a joint that standard elements of each format can describe."""
HELD_BY_MOTORS = {".urdf": (), ".xml": ("rotor_inertia", "viscous_friction", "coulomb_friction", "spring")}
REFUSED_TYPES = {
    "ball": "written as type 'spherical', which PyBullet reads; urdfdom, Pinocchio and MuJoCo refuse the file",
    "helical": "written as type 'helical', which no other program reads",
}


@dataclass(frozen=True)
class Loss:
    """One term of a robot that other programs will not see as it is: ``where`` it belongs ("joint 'elbow'"), its name
    ``term`` ("stiffness"), and ``text``, its value with units and what becomes of it."""

    where: str
    term: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


def losses(model: Model, ending: str) -> list[Loss]:
    """What other programs will not see in a file of this robot.

    Args:
        model: the robot.
        ending: the format, by the ending of its files: .toml, .urdf or .xml (MJCF).
    """
    lost = [
        Loss(_label(part), "contact", "no file format holds contacts: it is lost")
        for part in model.contact_parts
    ]
    if ending not in HELD:
        return lost
    joints = [joint for joint in without_motors(model)["joints"] if joint.moves]
    for joint in joints:
        lost += _type_and_limits(joint, ending)
        lost += _laws(f"joint {joint.name!r}", joint, _slides(joint), _held(joint, ending))
        lost += _friction(joint, ending)
        lost += _relation(joint)
    for motor in model.motors:
        lost += _motor(motor, joints, ending)
    return [*lost, *_whole(model, ending)]


# -- joints -----------------------------------------------------------------------------------------------------------


def _held(joint: Joint, ending: str) -> tuple[str, ...]:
    """The laws that the format holds for this joint. Friction of several axes has no meaning in URDF; springs of a free
    joint of MuJoCo act along other axes."""
    if ending == ".urdf" and joint.free:
        return ()
    if joint.type != "floating":
        return HELD[ending]
    if joint.rotor_inertia == joint.number("world_rotor_inertia"):  # MuJoCo's armature of a free joint
        return (*(name for name in HELD[ending] if name != "spring"), "world_rotor_inertia")
    return tuple(name for name in HELD[ending] if name not in ("spring", "rotor_inertia"))


def _type_and_limits(joint: Joint, ending: str) -> Iterator[Loss]:
    where, limits = f"joint {joint.name!r}", joint.limits
    length = "m" if _slides(joint) else "rad"
    if ending == ".urdf":
        if joint.type in REFUSED_TYPES:
            yield Loss(where, "type", f"a {joint.type} joint is {REFUSED_TYPES[joint.type]}")
        if joint.type == "continuous" and any(map(math.isfinite, (limits.lower, limits.upper))):
            ends = f"from {limits.lower:g} to {limits.upper:g} {length}"
            yield Loss(where, "limits", f"the range {ends} of a continuous joint is lost")
        return
    if math.isfinite(limits.largest_velocity):
        yield Loss(where, "velocity", f"speed limit {limits.velocity:g} {length}/s is lost")
    if joint.free and math.isfinite(limits.largest_effort):
        yield Loss(where, "effort", f"effort limit {limits.effort:g} of a {joint.type} joint is lost")
    if not joint.free and not limits.lower < limits.upper:
        ends = f"from {limits.lower:g} to {limits.upper:g} {length}"
        yield Loss(where, "limits", f"the range {ends} is lost")


def _laws(where: str, holder: Any, slides: bool, held: Sequence[str]) -> Iterator[Loss]:
    """Laws that the format has no words for. Richer friction becomes plain friction where there is such, see
    ``_friction``."""
    richer = [law.name for law in RICHER] if "coulomb_friction" in held else []
    for law in LAWS:
        if law.name in (*held, *richer) or _absent(law, holder):
            continue
        yield Loss(where, law.name, f"{_values(law, holder, slides)} is lost")


def _friction(joint: Joint, ending: str) -> Iterator[Loss]:
    """Friction that standard elements describe by the nearest damping and Coulomb friction."""
    if "coulomb_friction" not in _held(joint, ending):
        return
    forward, backward = joint.coulomb_friction
    damping, friction = plain_friction(joint)
    richer = [_values(law, joint, _slides(joint)) for law in RICHER if not law.absent(joint)]
    if richer:
        yield Loss(
            f"joint {joint.name!r}",
            "friction",
            f"with {', '.join(richer)}, its friction becomes the nearest plain one: viscous {damping:g}, Coulomb "
            f"{friction:g}",
        )
    elif forward != backward:
        yield Loss(
            f"joint {joint.name!r}",
            "coulomb_friction",
            f"Coulomb friction {forward:g} forward and {backward:g} backward becomes {friction:g} in both directions",
        )


def _relation(joint: Joint) -> Iterator[Loss]:
    relation = joint.mimic
    if relation is not None and not relation.coupled:
        yield Loss(
            f"joint {joint.name!r}",
            "mimic",
            f"it keeps a coordinate of its own; others may make it follow {relation.joint!r}, or drop the relation",
        )


def _motor(motor: Motor, joints: Sequence[Joint], ending: str) -> Iterator[Loss]:
    where = f"motor {motor.name!r}"
    if ending == ".urdf":
        names = ", ".join(motor.joints)
        yield Loss(
            where, "motor", f"one motor of several joints ({names}) becomes friction of each by itself"
        )
    kinds = {joint.name: _slides(joint) for joint in joints}
    slides = all(kinds[name] for name in motor.joints)
    held = HELD_BY_MOTORS[ending] or ("viscous_friction", "coulomb_friction")
    yield from _laws(where, motor, slides, held)
    forward, backward = motor.coulomb_friction
    if forward != backward or any(not law.absent(motor) for law in RICHER):
        yield Loss(where, "friction", "its friction becomes the nearest that is equal in both directions")


# -- the whole robot --------------------------------------------------------------------------------------------------


def _whole(model: Model, ending: str) -> Iterator[Loss]:
    for name in model.passive:
        yield Loss(f"joint {name!r}", "passive", "that it has no motor is lost")
    if model.fluid is not None:
        yield Loss(
            "",
            "fluid",
            f"the fluid of density {model.fluid.density:g} kg/m³ and viscosity {model.fluid.viscosity:g} Pa·s is lost: "
            "others see no drag",
        )
    if ending != ".urdf":
        return
    if tuple(model.gravity) != tuple(STANDARD_GRAVITY):
        numbers = " ".join(f"{x:g}" for x in model.gravity)
        yield Loss("", "gravity", f"gravity {numbers} m/s² is lost; others take 0 0 -9.81")
    for frame in model.frames:
        yield Loss(f"frame {frame.name!r}", "frame", f"the frame on link {frame.link!r} is lost")
    for constraint in model.constraints:
        kind = parts_of(constraint).kind
        yield Loss(
            constraint.label, "constraint", f"the {kind} constraint is lost: others let it move freely"
        )


def _label(part: Part) -> str:
    if isinstance(part, Stop):
        return f"stop of joint {part.joint!r}"
    return "ground" if isinstance(part, Ground) else part.label


def _absent(law: Law, holder: Any) -> bool:
    return not any(law.numbers(holder))


def _values(law: Law, holder: Any, slides: bool) -> str:
    """ "stiffness 3.2 N·m/rad, spring reference 0.1 rad"; what is zero is left out."""
    said = [
        f"{parameter.text} {value:g} {parameter.units[slides]}"
        for parameter, value in zip(law.parameters, law.numbers(holder), strict=True)
        if value
    ]
    return ", ".join(dict.fromkeys(said))


def _slides(joint: Joint) -> bool:
    return joint.slides
