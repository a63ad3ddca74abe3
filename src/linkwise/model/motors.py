"""Motors that move several joints: rotor inertia and friction of their own along a weighted sum of joint positions.

The motor of a wrist may turn with q₅ + q₆: its rotor resists q̈₅ + q̈₆ and its friction depends on q̇₅ + q̇₆, and both
joints feel what it resists with. Here such a motor is a joint without a coordinate of its own, which follows several
others (``Mimic.also``), with a link without mass behind it: every algorithm then has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.joint_laws.plain import plain_friction
from linkwise.model.joint import Joint, Limits, Mimic
from linkwise.model.link import Link
from linkwise.model.quantity import finite

if TYPE_CHECKING:
    from linkwise.model.model import Model

ROTOR = "_rotor"  # the end of the name of its link


@dataclass(frozen=True)
class Motor:
    """A motor that turns with Σ factor·q(joint) + offset, over the ``joints`` {name: factor} that it moves.

    Its numbers are those of a joint, along that sum: rotor_inertia [kg·m² or kg], viscous_friction [N·m·s/rad or
    N·s/m], coulomb_friction forward and backward [N·m or N], and further laws in ``terms``. What it resists with acts
    on each joint times its factor.
    """

    name: str
    joints: Mapping[str, float]
    rotor_inertia: float = 0.0
    viscous_friction: float = 0.0
    coulomb_friction: tuple[float, float] = (0.0, 0.0)
    terms: Mapping[str, float] = field(default_factory=dict[str, float])
    offset: float = 0.0


def with_motors(model: Model, motors: Iterable[Motor]) -> dict[str, Any]:
    """The links and joints of the robot with these motors in place of those it had."""
    parts = without_motors(model)
    links: list[Link] = list(parts["links"])
    joints: list[Joint] = list(parts["joints"])
    moving = {joint.name: joint for joint in model.coordinate_joints}
    for motor in motors:
        for name, factor in motor.joints.items():
            if name not in moving:
                raise UnknownNameError(
                    f"motor {motor.name!r}: no joint {name!r} with a coordinate of its own; {suggest(name, moving)}"
                )
            finite(f"motor {motor.name!r}: factor of {name!r}", factor)
        if not motor.joints:
            raise ModelError(f"motor {motor.name!r}: it moves no joint")
        (first, multiplier), *others = ((name, float(factor)) for name, factor in motor.joints.items())
        slides = all(moving[name].slides for name in motor.joints)
        relation = Mimic(first, multiplier, float(motor.offset), True, tuple(others))
        links.append(Link(motor.name + ROTOR))
        joints.append(
            Joint(
                motor.name,
                "prismatic" if slides else "continuous",
                model.base,
                motor.name + ROTOR,
                rotor_inertia=motor.rotor_inertia,
                viscous_friction=motor.viscous_friction,
                coulomb_friction=motor.coulomb_friction,
                terms=motor.terms,
                mimic=relation,
            )
        )
    return {"links": links, "joints": joints}


def without_motors(model: Model) -> dict[str, Any]:
    """The links and joints of the robot without its motors."""
    rotors = {motor.name + ROTOR for motor in model.motors}
    return {
        "links": [link for link in model.links if link.name not in rotors],
        "joints": [joint for joint in model.joints if joint.child not in rotors],
    }


def motors_of(joints: Sequence[Joint], links: Sequence[Link], base: str) -> tuple[Motor, ...]:
    """The motors among the joints of a robot."""
    bodies = {link.name: link for link in links}
    parents = {joint.parent for joint in joints}
    return tuple(
        Motor(
            joint.name,
            dict(joint.mimic.leaders),
            joint.rotor_inertia,
            joint.viscous_friction,
            joint.coulomb_friction,
            joint.terms,
            joint.mimic.offset,
        )
        for joint in joints
        if joint.mimic is not None
        and joint.mimic.coupled
        and joint.child == joint.name + ROTOR
        and joint.parent == base
        and joint.child not in parents
        and not any(bodies[joint.child].inertia.parameters)
        and np.array_equal(joint.origin.matrix, np.eye(4))
        and joint.limits == Limits()
    )


def locked_motors(motors: Iterable[Motor], positions: Mapping[str, float]) -> list[Motor]:
    """The motors that still move some joint when others are fixed at these positions."""
    found: list[Motor] = []
    for motor in motors:
        kept = {name: factor for name, factor in motor.joints.items() if name not in positions}
        offset = motor.offset + sum(
            factor * float(positions[name]) for name, factor in motor.joints.items() if name in positions
        )
        if kept:
            found.append(replace(motor, joints=kept, offset=offset))
    return found


def plain_friction_of_motors(motors: Iterable[Motor], joint: str) -> tuple[float, float]:
    """(viscous, Coulomb) friction that comes nearest to that of motors at one of the joints that they move."""
    damping = friction = 0.0
    for motor in motors:
        factor = float(motor.joints.get(joint, 0.0))
        if factor:
            viscous, coulomb = plain_friction(motor)
            damping, friction = damping + viscous * factor * factor, friction + coulomb * abs(factor)
    return damping, friction
