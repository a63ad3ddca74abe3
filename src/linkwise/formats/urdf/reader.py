"""URDF files, with the usual deviations from the specification, read into a ``Model``.

What is read: links with their ``<inertial>``; joints with origin, axis, limits, dynamics and mimic.
Everything else (visual, collision, material, gazebo, transmission, sensor ...) is passed over: no mesh or
``package://`` path is ever opened.

Where the format leaves room, or files break it in ways whose meaning is clear:

- a joint without ``<axis>`` turns about (1, 0, 0); axes of other lengths are normalised; a zero axis is an
  error, except on a fixed joint, which has none;
- ``damping`` is the viscous friction, ``friction`` the Coulomb friction in both directions;
- a ``<mimic>`` joint keeps a coordinate of its own, and the relation is data (as in Pinocchio); a relation to
  a joint that is not there is dropped, with a warning;
- a link without ``<inertial>`` has no mass; an ``<inertial>`` without ``<inertia>`` is a point mass, and an
  empty one is nothing at all, both with a warning;
- ``lower`` and ``upper`` both left out, or ``lower`` > ``upper`` (PyBullet's idiom, with a warning), mean no
  limit; one of them left out is zero, as the format says; a limit beyond 1e30 is none (Pinocchio writes the
  largest double for that);
- ``quat_xyzw`` counts in files of version 1.1 and 1.2;
- a robot without a name is called after its file, with a warning;
- of an element that may stand once and stands twice the first counts, with a warning;
- a speed or effort limit below zero means none, with a warning;
- what is not read but looks like a misspelt element or attribute is a warning (``urdf_spelling``).

Numbers must be plain decimals; unexpanded xacro is an error where a value depends on it. A ``planar`` joint NAME is
the three joints ``NAME_x``, ``NAME_y`` and ``NAME_theta``: its axis is the normal of the plane (see ``planar``).

``linkwise:`` elements contain what URDF cannot express: see ``urdf_writer``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.formats.urdf import extension as urdf_extension
from linkwise.formats.urdf.spelling import warn_of_misspellings
from linkwise.formats.xml import XACRO, XACRO_COMMAND, Element, parse_xml
from linkwise.model.inertia import Inertia
from linkwise.model.joint import Joint, Limits, Mimic
from linkwise.model.model import Link, Model
from linkwise.model.planar import planar_joints
from linkwise.model.quantity import limit as no_limit_beyond
from linkwise.model.transform import Transform

# in URDF; the last two are no standard: PyBullet has spherical joints, Linkwise writes screws as helical ones
TYPES = ("revolute", "continuous", "prismatic", "floating", "planar", "fixed", "spherical", "helical")
NAMES = {"spherical": "ball"}  # where a type has another name here
WITHOUT_LIMITS = ("continuous", "floating", "planar", "spherical")  # joints that need no <limit>
# xacro that only defines something; every other xacro element would put something into the robot
_HARMLESS_XACRO = ("xacro:property", "xacro:macro", "xacro:arg")


def read_urdf(data: bytes, where: str) -> Model:
    """The robot of a URDF file; ``where`` names the file in errors and warnings."""
    root = parse_xml(data, where)
    if root.tag != "robot":
        raise root.error("the root element of a URDF file is <robot>")
    _refuse_xacro(root)
    _refuse_macros_alone(root)
    name = _robot_name(root)
    moving = frozenset(
        e.get("name")
        for e in root
        if e.tag == "joint" and e.get("type") not in (None, "fixed", "planar", *NAMES)
    )
    names = {e.get("name") for e in root if e.tag in ("joint", "link", "linkwise:frame")}
    context = _Context(quaternions=_version(root) >= (1, 1), moving_joints=moving, names=names)
    links = [_read_link(element, context) for element in root if element.tag == "link"]
    joints: list[Joint] = []
    for element in root:
        if element.tag == "joint" and element.get("type") == "planar":
            between, three = _read_planar(element, context)
            links += [Link(link) for link in between]
            joints += three
        elif element.tag == "joint":
            joints.append(_read_joint(element, context))
    extras = urdf_extension.read_robot(root)
    warn_of_misspellings(root)
    try:
        model = Model(name, links, joints, **extras)
        motors = urdf_extension.read_motors(root)
        return model.with_motors(motors) if motors else model
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error


@dataclass(frozen=True)
class _Context:
    """What reading an element needs of the rest of its file."""

    quaternions: bool  # whether quat_xyzw counts
    moving_joints: frozenset[str | None]  # names that a mimic joint may follow
    names: set[str | None]  # of links, joints and frames, those that were made here too

    def unused(self, name: str) -> str:
        while name in self.names:
            name = f"{name}_"
        self.names.add(name)
        return name


def _version(root: Element) -> tuple[int, int]:
    text = root.get("version")
    if text is None:
        return (1, 0)
    found = re.fullmatch(r"\s*([0-9]{1,4})(?:\.([0-9]{1,4}))?\s*", text)
    if not found or int(found[1]) != 1:
        raise root.error(f'version="{text}": only URDF 1.0 to 1.2 can be read')
    version = (1, int(found[2] or 0))
    if version > (1, 2):
        root.warn(f'version="{text}" is newer than 1.2; read as 1.2')
    return version


def _robot_name(root: Element) -> str:
    name = root.get("name", "")
    if name.strip():
        return _name(root, "name")
    derived = PurePath(root.where).stem or "robot"
    root.warn(f"the robot has no name; called {derived!r} after its file")
    return derived


# -- links --------------------------------------------------------------------------------------------------


def _read_link(element: Element, context: _Context) -> Link:
    name = _name(element, "name")
    _refuse_xacro(element)
    inertial = element.only("inertial")
    if inertial is None:
        return Link(name, urdf_extension.read_inertia(element, Inertia()))
    _refuse_xacro(inertial)
    return Link(name, urdf_extension.read_inertia(element, _read_inertial(inertial, context)))


def _read_inertial(inertial: Element, context: _Context) -> Inertia:
    mass, inertia = inertial.only("mass"), inertial.only("inertia")
    if mass is None:
        if inertia is not None:
            raise inertial.error("it has an <inertia> but no <mass>")
        inertial.warn("it has neither <mass> nor <inertia>; the link is taken as massless")
        return Inertia()
    value = mass.number("value")
    if value < 0:
        raise mass.error(f"mass {value:g} is negative")
    pose = _read_origin(inertial, context)
    if inertia is None:
        inertial.warn("it has no <inertia>; taken as a point mass")
        moments = (0.0,) * 6
    else:
        moments = tuple(inertia.number(entry) for entry in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    # an unturned inertia keeps its digits to the last bit
    rotation = None if np.array_equal(pose.rotation, np.eye(3)) else pose.rotation
    return Inertia.from_com(value, pose.translation, moments, rotation)


def _read_origin(owner: Element, context: _Context) -> Transform:
    """The ``<origin>`` of an element; the identity without one."""
    origin = owner.only("origin")
    if origin is None:
        return Transform.identity()
    xyz = (0.0, 0.0, 0.0) if origin.get("xyz") is None else origin.numbers("xyz", 3)
    rpy = (0.0, 0.0, 0.0) if origin.get("rpy") is None else origin.numbers("rpy", 3)
    if origin.get("quat_xyzw") is None or (not context.quaternions and origin.get("rpy") is not None):
        return Transform.from_rpy(xyz, rpy)
    if not context.quaternions:
        raise origin.error('quat_xyzw needs <robot version="1.1"> or later; older readers would ignore it')
    if origin.get("rpy") is not None:
        raise origin.error("it has both rpy and quat_xyzw; one of them must go")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    if not any((x, y, z, w)):
        raise origin.error(f'quat_xyzw="{origin.get("quat_xyzw")}" is zero and no rotation')
    return Transform.from_quaternion(xyz, (w, x, y, z))


# -- joints -------------------------------------------------------------------------------------------------


def _read_joint(element: Element, context: _Context) -> Joint:
    name = _name(element, "name")
    kind = element.text_of("type")
    if kind not in TYPES:
        raise element.error(f"type {kind!r} is not supported; expected one of {', '.join(TYPES)}")
    _refuse_xacro(element)
    ends = _read_ends(element)
    details: dict[str, Any] = {}
    if kind != "fixed":
        details = {
            "axis": _read_axis(element),
            "limits": _read_limits(element, kind),
            "mimic": _read_mimic(element, context),
            **_read_dynamics(element),
        }
    joint = Joint(name, NAMES.get(kind, kind), *ends, origin=_read_origin(element, context), **details)
    return urdf_extension.read_joint(element, joint)


def _read_ends(element: Element) -> list[str]:
    ends: list[str] = []
    for role in ("parent", "child"):
        end = element.only(role)
        if end is None:
            raise element.error(f"it has no <{role}>")
        ends.append(_name(end, "link"))
    return ends


def _read_planar(element: Element, context: _Context) -> tuple[list[str], list[Joint]]:
    """The two links between and the three joints of a planar joint."""
    name = _name(element, "name")
    _refuse_xacro(element)
    if element.only("mimic") is not None:
        raise element.error("a planar joint cannot mimic another one")
    parent, child = _read_ends(element)
    return planar_joints(
        *(name, parent, child, child),
        context.unused,
        origin=_read_origin(element, context),
        normal=_read_axis(element),
        limits=_read_limits(element, "planar"),
        **_read_dynamics(element),
    )


def _read_axis(joint: Element) -> tuple[float, float, float]:
    axis = joint.only("axis")
    if axis is None:
        return (1.0, 0.0, 0.0)
    x, y, z = axis.numbers("xyz", 3, any_size=True)
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0:
        raise axis.error(f'xyz="{axis.get("xyz")}" is zero and no direction')
    length = math.hypot(x, y, z)
    if abs(length - 1.0) <= 1e-15:  # already exact to double precision: keep the digits of the file
        return (x, y, z)
    x, y, z = x / largest, y / largest, z / largest  # neither overflow nor underflow, whatever the length
    length = math.hypot(x, y, z)
    return (x / length, y / length, z / length)


def _read_limits(joint: Element, kind: str) -> Limits:
    limit = joint.only("limit")
    if limit is None:
        if kind not in WITHOUT_LIMITS:
            joint.warn(f"a {kind} joint needs a <limit>; taken as unlimited")
        return Limits()
    velocity, effort = (_magnitude(limit, quantity) for quantity in ("velocity", "effort"))
    if kind == "continuous" or (limit.get("lower") is None and limit.get("upper") is None):
        return Limits(velocity=velocity, effort=effort)
    lower, upper = (no_limit_beyond(limit.number(end, 0.0, any_size=True)) for end in ("lower", "upper"))
    if lower > upper:
        limit.warn(f"lower {lower:g} is above upper {upper:g}; taken as no limit, as PyBullet does")
        lower, upper = -math.inf, math.inf
    return Limits(lower, upper, velocity, effort)


def _magnitude(limit: Element, quantity: str) -> float:
    value = no_limit_beyond(limit.number(quantity, math.inf, any_size=True))
    if value < 0:
        limit.warn(f"{quantity} {value:g} is negative; taken as no limit")
        return math.inf
    return value


def _read_dynamics(joint: Element) -> dict[str, Any]:
    dynamics = joint.only("dynamics")
    if dynamics is None:
        return {}
    coulomb = dynamics.number("friction", 0.0)
    return {"viscous_friction": dynamics.number("damping", 0.0), "coulomb_friction": (coulomb, coulomb)}


def _read_mimic(joint: Element, context: _Context) -> Mimic | None:
    mimic = joint.only("mimic")
    if mimic is None:
        return None
    followed = _name(mimic, "joint")
    if followed not in context.moving_joints or followed == joint.get("name"):
        mimic.warn(f"joint {followed!r} is no other moving joint; the relation is dropped")
        return None
    return Mimic(followed, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


# -- names and xacro ----------------------------------------------------------------------------------------


def _name(element: Element, attribute: str) -> str:
    name = element.text_of(attribute)
    if "${" in name or "$(" in name:
        raise element.error(f'{attribute}="{name}" is unexpanded xacro; {XACRO}')
    return name


def _refuse_macros_alone(root: Element) -> None:
    """A file that defines macros and has no link is for other files to include."""
    macros = [child for child in root if child.tag.startswith("xacro:")]
    if macros and not any(child.tag == "link" for child in root):
        raise macros[0].error(
            "the file only defines macros of xacro, the macro language of ROS, and no robot; expand the file that uses "
            f"them (often NAME.urdf.xacro): {XACRO_COMMAND}"
        )


def _refuse_xacro(owner: Element) -> None:
    for child in owner:
        if child.tag.startswith("xacro:") and child.tag not in _HARMLESS_XACRO:
            raise child.error(f"unexpanded xacro; {XACRO}")
