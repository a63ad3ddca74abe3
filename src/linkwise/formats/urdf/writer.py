"""A ``Model`` as URDF text that gives the same robot back, to the last bit.

Numbers are written with as many digits as a double needs. Standard elements say everything they can, so that
any reader gets the robot to round-off; what URDF cannot express (rotor inertia, friction that differs by
direction, gravity, named frames, constraints) and the last bits that its elements cannot hold go into ``linkwise:``
elements, which other readers pass over: see ``urdf_extension``. "No limit" is written as the largest double, as
Pinocchio does.

Not kept, as it has no effect: axis, limits and friction of a fixed joint; a mimic relation to a joint that does not
move. Not possible: a link with a first moment but no mass, found in sets of base parameters, which URDF cannot
express; such a robot must be saved as TOML.

Ball joints are written as ``spherical`` (a type that PyBullet reads) and screws as ``helical``, which no other program
reads: a program that does not know them says so instead of taking them for something else.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

import numpy as np

from linkwise.errors import ModelError
from linkwise.formats.constraint_parts import parts_of
from linkwise.formats.urdf.extension import NAMESPACE, PREFIX
from linkwise.formats.urdf.reader import NAMES
from linkwise.formats.xml_text import element, numbers, quoted
from linkwise.joint_laws.plain import plain_friction
from linkwise.model.constraints import Constraint
from linkwise.model.fluid import Fluid
from linkwise.model.inertia import Inertia
from linkwise.model.joint import Joint
from linkwise.model.model import STANDARD_GRAVITY, Frame, Link, Model
from linkwise.model.motors import Motor, plain_friction_of_motors, without_motors
from linkwise.model.transform import Transform

_TYPES = {known: name for name, known in NAMES.items()}
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def write_urdf(model: Model) -> str:
    """The robot as the text of a URDF file."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<robot name={quoted(model.name)} xmlns:{PREFIX[:-1]}={quoted(NAMESPACE)}>",
    ]
    extras: dict[str, str] = {}
    if model.gravity != STANDARD_GRAVITY:
        extras["gravity"] = numbers(model.gravity)
    if model.reduced:
        extras["reduced"] = "true"
    if extras:
        lines.append(element(PREFIX + "robot", extras, indent=1))
    bare = without_motors(model)
    for link in bare["links"]:
        lines += _link_lines(link)
    for joint in bare["joints"]:
        lines += _joint_lines(joint, model)
    for motor in model.motors:
        lines += _motor_lines(motor)
    lines += [_frame_line(frame) for frame in model.frames]
    lines += [_constraint_line(constraint) for constraint in model.constraints]
    lines += [element(PREFIX + "passive", {"joint": name}, indent=1) for name in model.passive]
    lines += [] if model.fluid is None else _fluid_lines(model.fluid)
    lines.append("</robot>")
    return "\n".join(lines) + "\n"


# -- links --------------------------------------------------------------------------------------------------


def _link_lines(link: Link) -> list[str]:
    if _is_exactly_zero(link.inertia):
        return [element("link", {"name": link.name}, indent=1)]
    mass, com, moments = _about_com(link)
    lines = [
        f"  <link name={quoted(link.name)}>",
        "    <inertial>",
        element("origin", {"xyz": numbers(com), "rpy": "0 0 0"}, indent=3),
        element("mass", {"value": repr(mass)}, indent=3),
        element("inertia", dict(zip(_MOMENTS, map(repr, moments), strict=True)), indent=3),
        "    </inertial>",
    ]
    if _bits(Inertia.from_com(mass, com, moments).parameters) != _bits(link.inertia.parameters):
        lines.append(element(PREFIX + "inertia", {"parameters": numbers(link.inertia.parameters)}))
    return [*lines, "  </link>"]


def _about_com(link: Link) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Mass, centre of mass and moments about it; reading them gives the parameters back to round-off."""
    inertia = link.inertia
    if inertia.mass == 0 and any(inertia.first_moment):
        raise ModelError(
            f"link {link.name!r}: it has a first moment {inertia.first_moment} but no mass, which URDF "
            "cannot express; save the robot as .toml"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        com = inertia.com
        # subtract what reading will add, with the same operations, so that the sum comes back
        added = np.array(Inertia.from_com(inertia.mass, com, (0.0, 0.0, 0.0)).inertia_about_origin)
        moments = np.array(inertia.inertia_about_origin) - added
    if not (np.isfinite(com).all() and np.isfinite(moments).all()):
        raise ModelError(
            f"link {link.name!r}: mass {inertia.mass!r} with first moment {inertia.first_moment} has no "
            "finite centre of mass, which URDF needs; save the robot as .toml"
        )
    return inertia.mass, tuple(com.tolist()), tuple(moments.tolist())


# -- joints -------------------------------------------------------------------------------------------------


def _joint_lines(joint: Joint, model: Model) -> list[str]:
    extras: dict[str, str] = {}
    rpy = joint.origin.rpy
    if _bits(Transform.from_rpy(rpy=rpy).rotation.flat) != _bits(joint.origin.rotation.flat):
        extras["rotation"] = numbers(joint.origin.rotation.flat)
    lines = [
        f"  <joint name={quoted(joint.name)} type={quoted(_TYPES.get(joint.type, joint.type))}>",
        element("parent", {"link": joint.parent}),
        element("child", {"link": joint.child}),
        element("origin", {"xyz": numbers(joint.origin.translation), "rpy": numbers(rpy)}),
    ]
    if joint.moves:
        lines += _moving_lines(joint, model, extras)
    if extras:
        lines.append(element(PREFIX + "joint", extras))
    return [*lines, "  </joint>"]


def _moving_lines(joint: Joint, model: Model, extras: dict[str, str]) -> Iterable[str]:
    """The lines of a joint that moves; what has no line of its own is added to the extras."""
    if abs(math.hypot(*joint.axis) - 1.0) > 1e-15:  # the reader would normalise it
        extras["axis"] = numbers(joint.axis)
    yield element("axis", {"xyz": numbers(joint.axis)})
    limits = {"effort": _limit(joint.limits.effort), "velocity": _limit(joint.limits.velocity)}
    if joint.pitch:
        extras["pitch"] = repr(joint.pitch)
    if joint.type == "continuous":  # others do not expect them there
        for key in ("lower", "upper"):
            if math.isfinite(getattr(joint.limits, key)):
                extras[key] = repr(float(getattr(joint.limits, key)))
    else:
        limits |= {"lower": _limit(joint.limits.lower), "upper": _limit(joint.limits.upper)}
    yield element("limit", limits)
    forward, backward = joint.coulomb_friction
    damping, friction = plain_friction(joint)  # what others know
    more = plain_friction_of_motors(model.motors, joint.name)
    if any(more):
        damping, friction = damping + more[0], friction + more[1]
        extras |= {"motors_damping": repr(more[0]), "motors_friction": repr(more[1])}
    if damping or friction:
        yield element("dynamics", {"damping": repr(damping), "friction": repr(friction)})
    if damping != joint.viscous_friction:
        extras["viscous_friction"] = repr(joint.viscous_friction)
    if (forward, backward) != (friction, friction):
        extras |= {"coulomb_forward": repr(forward), "coulomb_backward": repr(backward)}
    if joint.body:
        extras["body"] = joint.body
    if joint.rotor_inertia:
        extras["rotor_inertia"] = repr(joint.rotor_inertia)
    extras |= {name: repr(float(value)) for name, value in joint.terms.items()}
    moving = [other.name for other in model.moving_joints if other is not joint]
    if joint.mimic is not None and joint.mimic.joint in moving:
        relation = joint.mimic
        if relation.also:
            raise ModelError(f"joint {joint.name!r}: only a motor may follow several joints in a file")
        factors = {"multiplier": repr(relation.multiplier), "offset": repr(relation.offset)}
        if relation.coupled is not None:
            extras["coupled"] = "true" if relation.coupled else "false"
        yield element("mimic", {"joint": relation.joint, **factors})


def _motor_lines(motor: Motor) -> list[str]:
    forward, backward = motor.coulomb_friction
    given = {
        "name": motor.name,
        "offset": repr(float(motor.offset)),
        "rotor_inertia": repr(float(motor.rotor_inertia)),
    }
    given |= {"viscous_friction": repr(float(motor.viscous_friction))}
    given |= {"coulomb_forward": repr(float(forward)), "coulomb_backward": repr(float(backward))}
    given |= {name: repr(float(value)) for name, value in motor.terms.items()}
    moved = [
        element(
            PREFIX + "drives", {"motor": motor.name, "joint": name, "factor": repr(float(factor))}, indent=1
        )
        for name, factor in motor.joints.items()
    ]
    return [element(PREFIX + "motor", given, indent=1), *moved]


def _frame_line(frame: Frame) -> str:
    place = {"xyz": numbers(frame.pose.translation), "rotation": numbers(frame.pose.rotation.flat)}
    return element(PREFIX + "frame", {"name": frame.name, "link": frame.link, **place}, indent=1)


def _constraint_line(constraint: Constraint) -> str:
    parts = parts_of(constraint)
    given = {"type": parts.kind, "frame": parts.frame}
    given |= {key: text for key, text in (("to", parts.to), ("name", parts.name)) if text}
    if parts.compliance:
        given["compliance"] = numbers([parts.compliance])
    given["xyz"] = numbers(parts.pose.translation)
    if parts.kind == "weld":
        given["rotation"] = numbers(parts.pose.rotation.flat)
    else:
        given["offset"] = numbers(parts.offset)
    return element(PREFIX + "constraint", given, indent=1)


def _fluid_lines(fluid: Fluid) -> list[str]:
    given = {"density": repr(fluid.density), "viscosity": repr(fluid.viscosity), "wind": numbers(fluid.wind)}
    lines = [element(PREFIX + "fluid", given, indent=1)]
    for body in fluid.bodies or ():
        given = {
            "link": body.link,
            "shape": body.shape,
            "size": numbers(body.size),
            "coefficients": numbers(body.coefficients),
            "xyz": numbers(body.pose.translation),
            "rotation": numbers(body.pose.rotation.flat),
        }
        lines.append(element(PREFIX + "drag", given, indent=1))
    return lines


# -- text ---------------------------------------------------------------------------------------------------


def _limit(value: float) -> str:
    return repr(math.copysign(sys.float_info.max, value) if math.isinf(value) else float(value))


def _bits(values: Iterable[float]) -> bytes:
    return np.fromiter(values, dtype=float).tobytes()


def _is_exactly_zero(inertia: Inertia) -> bool:
    return not any(_bits(inertia.parameters))
