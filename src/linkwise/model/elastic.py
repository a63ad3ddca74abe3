"""Elastic joints: a motor behind a spring and a damper, as in series elastic drives and harmonic gears.

A joint becomes two with the same axis and no mass between them: the joint itself, whose coordinate θ is the motor's and
whose rotor inertia is the motor's, and ``NAME_spring``, whose coordinate δ is how far the spring has given way. The
link is at θ + δ. These are the equations of M. Spong, "Modeling and control of elastic joint robots", 1987:

    M(q) q̈ + c + g = K (θ − q) + D (θ̇ − q̇)        B θ̈ + K (θ − q) + D (θ̇ − q̇) + friction = τ

so every algorithm, file format, simulation and generated program takes such robots as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.model.joint import Joint, Limits
from linkwise.model.quantity import finite
from linkwise.model.transform import Transform

if TYPE_CHECKING:
    from linkwise.model.model import Model

TYPES = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Elastic:
    """What lies between the motor of a joint and its link.

    ``stiffness`` [N·m/rad or N/m], ``damping`` [N·m·s/rad or N·s/m], ``motor_inertia`` seen at the joint [kg·m² or kg]
    (None: the joint's rotor inertia).
    """

    stiffness: float
    damping: float = 0.0
    motor_inertia: float | None = None


@dataclass(frozen=True)
class Pair:
    """An elastic joint of a robot: the joint of the motor and that of the spring."""

    motor: Joint
    spring: Joint

    @property
    def stiffness(self) -> float:
        return float(self.spring.terms["stiffness"])

    @property
    def damping(self) -> float:
        return self.spring.viscous_friction


def with_elastic_joints(model: Model, springs: Mapping[str, Elastic | float]) -> dict[str, Any]:
    """The links, joints and joints without a motor of a robot whose named joints are elastic."""
    from linkwise.model.model import Link

    joints = {joint.name: joint for joint in model.joints}
    taken = {*model.frame_names, *joints}
    for name in springs:
        if name not in model.joint_names:
            raise UnknownNameError(
                f"elastic joints: {model.name} has no joint {name!r}; {suggest(name, model.joint_names)}"
            )
    leaders = {name for relation in model.followed if relation is not None for name, _ in relation.leaders}
    links, passive = list(model.links), list(model.passive)
    changed: list[Joint] = []
    for joint in model.joints:
        if joint.name not in springs:
            changed.append(joint)
            continue
        if joint.name in leaders or joint.type not in TYPES or joint.name in model.passive:
            why = "without a motor" if joint.name in model.passive else joint.type
            why = "followed by others" if joint.name in leaders else why
            raise ModelError(
                f"elastic joints: joint {joint.name!r} is {why}; expected one of {', '.join(TYPES)} on its own"
            )
        between, spring = f"{joint.name}_motor", f"{joint.name}_spring"
        for new in (between, spring):
            if new in taken:
                raise ModelError(f"elastic joints: {model.name} has a link, frame or joint {new!r} already")
        links.append(Link(between))
        passive.append(spring)
        changed += _split(joint, _checked(joint, springs[joint.name]), between, spring)
    return {"links": links, "joints": changed, "passive": passive}


def _checked(joint: Joint, given: Elastic | float) -> Elastic:
    elastic = given if isinstance(given, Elastic) else Elastic(given)
    inertia = joint.rotor_inertia if elastic.motor_inertia is None else elastic.motor_inertia
    where = f"elastic joint {joint.name!r}"
    if not finite(f"{where}: stiffness", elastic.stiffness) > 0.0:
        raise ModelError(f"{where}: stiffness: expected a positive number, got {elastic.stiffness!r}")
    if not finite(f"{where}: damping", elastic.damping) >= 0.0:
        raise ModelError(f"{where}: damping: expected a number of at least 0, got {elastic.damping!r}")
    if not finite(f"{where}: motor_inertia", inertia) > 0.0:
        raise ModelError(
            f"{where}: its motor has no inertia; give motor_inertia= or the joint a rotor inertia"
        )
    if any(joint.terms.values()):
        names = ", ".join(name for name, value in joint.terms.items() if value)
        raise ModelError(f"{where}: it has {names} of its own, which would act on the link behind the spring")
    return Elastic(float(elastic.stiffness), float(elastic.damping), float(inertia))


def _split(joint: Joint, elastic: Elastic, between: str, spring: str) -> list[Joint]:
    """The motor's joint, which keeps name, place, limits and friction, and the spring's."""
    motor = replace(joint, child=between, rotor_inertia=float(elastic.motor_inertia or 0.0), body="")
    behind = Joint(
        spring,
        "prismatic" if joint.slides else "revolute",
        between,
        joint.child,
        axis=joint.axis,
        limits=Limits(),
        viscous_friction=elastic.damping,
        body=joint.body,
        terms={"stiffness": elastic.stiffness},
    )
    return [motor, behind]


def elastic_pairs(model: Model) -> tuple[Pair, ...]:
    """The elastic joints of a robot: pairs of joints along one axis with nothing between them but a spring."""
    by_child = {joint.child: joint for joint in model.joints}
    children: dict[str, int] = {}
    for joint in model.joints:
        children[joint.parent] = children.get(joint.parent, 0) + 1
    inertias = {link.name: link.inertia for link in model.links}
    found: list[Pair] = []
    for spring in model.coordinate_joints:
        motor = by_child.get(spring.parent)
        if (
            spring.terms.get("stiffness", 0.0) > 0.0
            and spring.terms.get("spring_reference", 0.0) == 0.0
            and motor is not None
            and motor.type in TYPES
            and motor.slides == spring.slides
            and np.allclose(motor.axis, spring.axis, rtol=0, atol=1e-12)
            and _is_identity(spring.origin)
            and children[spring.parent] == 1
            and inertias[spring.parent].is_zero
            and motor.rotor_inertia > 0.0
        ):
            found.append(Pair(motor, spring))
    return tuple(found)


def link_side(model: Model) -> dict[str, Any]:
    """The links and joints of the robot that the springs drive: rigid, without motors and their friction."""
    pairs = {pair.motor.name: pair for pair in elastic_pairs(model)}
    gone = {pair.spring.name for pair in pairs.values()}
    between = {pair.motor.child for pair in pairs.values()}
    joints: list[Joint] = []
    for joint in model.joints:
        if joint.name in pairs:
            spring = pairs[joint.name].spring
            joint = replace(
                joint, child=spring.child, rotor_inertia=0.0, viscous_friction=0.0, coulomb_friction=(0.0, 0.0),
                body=spring.body,
            )  # fmt: skip
        if joint.name not in gone:
            joints.append(joint)
    links = [link for link in model.links if link.name not in between]
    passive = [name for name in model.passive if name not in gone]
    return {"links": links, "joints": joints, "passive": passive}


def _is_identity(pose: Transform) -> bool:
    return bool(
        np.allclose(pose.rotation, np.eye(3), rtol=0, atol=1e-12) and np.abs(pose.translation).max() < 1e-12
    )
