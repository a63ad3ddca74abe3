"""What URDF cannot express, as ``linkwise:`` elements that other readers ignore.

- In ``<robot>``: ``<linkwise:robot>`` with ``gravity`` (3 numbers [m/s²]) and ``reduced`` (``true``: a set
  of base parameters), and any number of ``<linkwise:frame>`` with ``name``, ``link``, ``xyz`` [m] and
  ``rotation`` (9 numbers, row by row); of ``<linkwise:constraint>`` with ``type`` (weld or point), ``frame``, ``to``
  (another frame; the world if left out), ``name``, ``compliance``, ``xyz`` and, for a weld, ``rotation``, for a point,
  ``offset``; of ``<linkwise:passive>`` with ``joint``, a joint without a motor; of ``<linkwise:motor>``, a motor that
  moves several joints, with ``name``, ``offset`` and the numbers of a joint, and for each joint that it moves a
  ``<linkwise:drives>`` with ``motor``, ``joint`` and ``factor``; one ``<linkwise:fluid>`` with ``density``,
  ``viscosity`` and ``wind``, and for all that it resists a ``<linkwise:drag>`` with ``link``, ``shape``, ``size``,
  ``coefficients``, ``xyz`` and ``rotation``.
- In ``<joint>``: ``<linkwise:joint>`` with ``rotor_inertia``, ``coulomb_forward``, ``coulomb_backward``,
  ``axis``, ``rotation``, ``pitch`` of a helical joint [m/rad], ``lower`` and ``upper`` of a continuous one,
  ``viscous_friction`` where ``<dynamics>`` has only what is nearest to it, ``motors_damping`` and ``motors_friction``:
  the part of ``<dynamics>`` that stands for motors of several joints, ``coupled`` (``true`` or ``false``: whether
  a mimic joint has no coordinate of its own), ``body`` (the link whose frame parameters are labelled in) and the
  parameters of further laws by their names (``stiffness``, ``spring_reference``, ``compensated_mass`` …).
- In ``<link>``: ``<linkwise:inertia>`` with ``parameters``: the ten of the link, in the order of ``LABELS``.

``axis``, ``rotation`` and ``parameters`` only repeat, to the last bit, what standard elements say with
round-off. The standard elements may have been edited: where the two disagree the standard elements count, and a
warning says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.formats.constraint_parts import KINDS, Parts, constraint_of
from linkwise.formats.xml import Element
from linkwise.joint_laws import TERMS
from linkwise.joint_laws.plain import RICHER, plain_friction
from linkwise.model.constraints import Constraint
from linkwise.model.fluid import DragBody, Fluid
from linkwise.model.inertia import Inertia
from linkwise.model.joint import Joint
from linkwise.model.model import Frame
from linkwise.model.motors import Motor
from linkwise.model.transform import Transform

PREFIX = "linkwise:"
NAMESPACE = "urn:linkwise:urdf:1"
AGREEMENT = 1e-9  # relative; far above round-off, far below what anyone edits


def read_robot(root: Element) -> dict[str, Any]:
    """gravity, reduced and frames, as far as the file states them."""
    settings: dict[str, Any] = {
        "frames": [_read_frame(e) for e in root if e.tag == PREFIX + "frame"],
        "constraints": [_read_constraint(e) for e in root if e.tag == PREFIX + "constraint"],
        "passive": [e.text_of("joint") for e in root if e.tag == PREFIX + "passive"],
    }
    surrounding = root.only(PREFIX + "fluid")
    if surrounding is not None:
        settings["fluid"] = _read_fluid(surrounding, [e for e in root if e.tag == PREFIX + "drag"])
    robot = root.only(PREFIX + "robot")
    if robot is None:
        return settings
    if robot.get("gravity") is not None:
        settings["gravity"] = robot.numbers("gravity", 3)
    if robot.get("reduced") is not None:
        settings["reduced"] = _flag(robot, "reduced")
    return settings


def _read_fluid(element: Element, bodies: Sequence[Element]) -> Fluid:
    """<linkwise:fluid>, with a <linkwise:drag> for all that it resists."""
    resisted: list[DragBody] = []
    for each in bodies:
        x, y, z = each.numbers("size", 3)
        a, b, c, d, e = each.numbers("coefficients", 5)
        resisted.append(
            DragBody(each.text_of("link"), _pose(each), each.text_of("shape"), (x, y, z), (a, b, c, d, e))
        )
    x, y, z = element.numbers("wind", 3)
    return Fluid(element.number("density"), element.number("viscosity"), (x, y, z), tuple(resisted))


def read_motors(root: Element) -> list[Motor]:
    """Motors that move several joints."""
    moved: dict[str, dict[str, float]] = {}
    for each in root:
        if each.tag == PREFIX + "drives":
            moved.setdefault(each.text_of("motor"), {})[each.text_of("joint")] = each.number("factor")
    return [
        Motor(
            name := each.text_of("name"),
            moved.get(name, {}),
            each.number("rotor_inertia", 0.0),
            each.number("viscous_friction", 0.0),
            (each.number("coulomb_forward", 0.0), each.number("coulomb_backward", 0.0)),
            {term: each.number(term) for term in TERMS if each.get(term) is not None},
            each.number("offset", 0.0),
        )
        for each in root
        if each.tag == PREFIX + "motor"
    ]


def _flag(element: Element, attribute: str) -> bool:
    text = element.get(attribute)
    if text not in ("true", "false"):
        raise element.error(f'{attribute}="{text}": expected true or false')
    return text == "true"


def _read_frame(element: Element) -> Frame:
    return Frame(element.text_of("name"), element.text_of("link"), _pose(element))


def _pose(element: Element) -> Transform:
    rotation = _rotation(element)
    if (
        not np.allclose(rotation @ rotation.T, np.eye(3), rtol=0, atol=AGREEMENT)
        or np.linalg.det(rotation) < 0
    ):
        raise element.error(f'rotation="{element.get("rotation")}" is no rotation matrix')
    return Transform(rotation, np.array(element.numbers("xyz", 3)))


def _read_constraint(element: Element) -> Constraint:
    kind = element.text_of("type")
    if kind not in KINDS:
        raise element.error(f"type {kind!r}: expected one of {', '.join(KINDS)}")
    to = element.text_of("to") if element.get("to") is not None else None
    offset = np.zeros(3)
    if kind == "weld":
        pose = _pose(element)
    else:
        pose = Transform(np.eye(3), np.array(element.numbers("xyz", 3)))
        offset = np.array(element.numbers("offset", 3)) if element.get("offset") is not None else offset
    name, compliance = element.get("name") or "", element.number("compliance", 0.0)
    return constraint_of(Parts(kind, element.text_of("frame"), to, pose, offset, name, compliance))


def read_joint(element: Element, joint: Joint) -> Joint:
    """The joint with what its extension adds."""
    extra = element.only(PREFIX + "joint")
    if extra is None:
        return joint
    if extra.get("rotation") is not None:
        rotation = _rotation(extra)
        if _agrees(extra, "rotation", rotation, joint.origin.rotation, 1.0):
            joint = replace(joint, origin=Transform(rotation, joint.origin.translation))
    if not joint.moves:
        return joint
    if extra.get("axis") is not None:
        x, y, z = extra.numbers("axis", 3)
        if _agrees(extra, "axis", np.array((x, y, z)), np.array(joint.axis), 1.0):
            joint = replace(joint, axis=(x, y, z))
    if extra.get("pitch") is not None and not joint.screws:
        raise extra.error(f"pitch: a joint of type {joint.type!r} has none")
    if extra.get("coupled") is not None and joint.mimic is not None:
        joint = replace(joint, mimic=replace(joint.mimic, coupled=_flag(extra, "coupled")))
    if extra.get("lower") is not None or extra.get("upper") is not None:
        ends = {key: extra.number(key) for key in ("lower", "upper") if extra.get(key) is not None}
        joint = replace(joint, limits=replace(joint.limits, **ends))
    read = replace(
        joint,
        rotor_inertia=extra.number("rotor_inertia", 0.0),
        body=extra.get("body") or "",
        pitch=extra.number("pitch", 0.0),
        terms={name: extra.number(name) for name in TERMS if extra.get(name) is not None},
    )
    return _with_friction(extra, read)


def _with_friction(extra: Element, joint: Joint) -> Joint:
    """The joint with its own friction; ``<dynamics>`` has the nearest that others know, and counts if it was edited."""
    forward, backward = joint.coulomb_friction
    exact = replace(
        joint,
        viscous_friction=extra.number("viscous_friction", joint.viscous_friction),
        coulomb_friction=(
            extra.number("coulomb_forward", forward),
            extra.number("coulomb_backward", backward),
        ),
    )
    of_motors = np.array([extra.number("motors_damping", 0.0), extra.number("motors_friction", 0.0)])
    stated, meant = np.array([joint.viscous_friction, forward]), np.array(plain_friction(exact)) + of_motors
    if not stated.any() or _agrees(extra, "friction numbers", meant, stated, float(np.abs(stated).max())):
        return exact
    richer = {p.name for law in RICHER for p in law.parameters}
    return replace(joint, terms={name: value for name, value in joint.terms.items() if name not in richer})


def read_inertia(link: Element, inertia: Inertia) -> Inertia:
    """The inertia to the last bit, if the extension states it and agrees with the standard elements."""
    extra = link.only(PREFIX + "inertia")
    if extra is None:
        return inertia
    exact = Inertia.from_parameters(extra.numbers("parameters", 10))
    for part, scale in (
        (slice(0, 1), inertia.mass),
        (slice(1, 4), float(np.linalg.norm(inertia.first_moment))),
        (slice(4, 10), inertia_scale(inertia)),
    ):
        mine, theirs = np.array(exact.parameters[part]), np.array(inertia.parameters[part])
        if not _agrees(extra, "parameters", mine, theirs, scale):
            return inertia
    return exact


def inertia_scale(inertia: Inertia) -> float:
    """The size of the numbers whose difference the inertia may be [kg·m²]: mass·distance² and the moments."""
    shift = inertia.mass * float(inertia.com @ inertia.com)
    return max(float(np.abs(inertia.inertia_about_origin).max()), shift)


def _rotation(element: Element) -> np.ndarray:
    return np.array(element.numbers("rotation", 9)).reshape(3, 3)


def _agrees(element: Element, what: str, exact: np.ndarray, standard: np.ndarray, scale: float) -> bool:
    agree = bool(np.abs(exact - standard).max() <= AGREEMENT * scale)
    if not agree:
        element.warn(
            f"its {what} disagree with the standard elements, which count; were they edited by hand?"
        )
    return agree
