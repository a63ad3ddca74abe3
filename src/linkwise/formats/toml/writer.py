"""Any robot as TOML in the general tree form; every number is written so that it reads back the same."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from linkwise.core import foreign
from linkwise.errors import ModelError
from linkwise.formats.constraint_parts import Parts, parts_of
from linkwise.model.fluid import Fluid
from linkwise.model.inertia import Inertia
from linkwise.model.joint import Joint, Limits
from linkwise.model.model import Model
from linkwise.model.motors import Motor, without_motors
from linkwise.model.transform import Transform


def write_toml(model: Model, *, source: str = "") -> str:
    """The text of a TOML file; what has its default value is left out."""
    lines = [f"name = {_text(model.name)}"]
    if source:
        lines.append(f"source = {_text(source)}")
    lines += ['convention = "tree"', f"gravity = {_list(model.gravity)}"]
    if model.reduced:
        lines.append("reduced = true")
    if model.passive:
        lines.append(f"passive = [{', '.join(map(_text, model.passive))}]")
    bare = without_motors(model)
    for link in bare["links"]:
        lines += ["", "[[link]]", f"name = {_text(link.name)}", *_inertia(link.inertia)]
    for joint in bare["joints"]:
        lines += ["", "[[joint]]", *_joint(joint)]
    for motor in model.motors:
        lines += ["", "[[motor]]", *_motor(motor)]
    for frame in model.frames:
        lines += [
            "",
            "[[frame]]",
            f"name = {_text(frame.name)}",
            f"link = {_text(frame.link)}",
            *_pose(frame.pose),
        ]
    for constraint in model.constraints:
        lines += ["", "[[constraint]]", *_constraint(parts_of(constraint))]
    if model.fluid is not None:
        lines += ["", *_fluid(model.fluid)]
    return "\n".join(lines) + "\n"


def _fluid(fluid: Fluid) -> list[str]:
    lines = [
        "[fluid]",
        f"density = {_number(fluid.density)}",
        f"viscosity = {_number(fluid.viscosity)}",
        f"wind = {_list(fluid.wind)}",
    ]
    for body in fluid.bodies or ():
        lines += ["", "[[fluid.body]]", f"link = {_text(body.link)}", f"shape = {_text(body.shape)}"]
        lines += [f"size = {_list(body.size)}", *_pose(body.pose)]
        if body.shape == "ellipsoid":
            lines.append(f"coefficients = {_list(body.coefficients)}")
    return lines


def _constraint(parts: Parts) -> list[str]:
    lines = [f"type = {_text(parts.kind)}", f"frame = {_text(parts.frame)}"]
    for key, value in (("to", parts.to), ("name", parts.name)):
        if value:
            lines.append(f"{key} = {_text(value)}")
    if not _same(parts.offset, np.zeros(3)):
        lines.append(f"offset = {_list(parts.offset)}")
    if parts.compliance:
        lines.append(f"compliance = {_number(parts.compliance)}")
    return [*lines, *_pose(parts.pose)]


def _inertia(inertia: Inertia) -> list[str]:
    if _same(inertia.parameters, Inertia().parameters):
        return []
    return [
        f"mass = {_number(inertia.mass)}",
        f"first_moment = {_list(inertia.first_moment)}",
        "inertia_about_origin = { "
        + ", ".join(
            f"{label} = {_number(value)}"
            for label, value in zip(
                ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"), inertia.inertia_about_origin, strict=True
            )
        )
        + " }",
    ]


def _joint(joint: Joint) -> list[str]:
    lines = [
        f"name = {_text(joint.name)}",
        f"type = {_text(joint.type)}",
        f"parent = {_text(joint.parent)}",
        f"child = {_text(joint.child)}",
        *([f"body = {_text(joint.body)}"] if joint.body else []),
        *_pose(joint.origin),
    ]
    if joint.moves or not _same(joint.axis, (0.0, 0.0, 1.0)):
        lines.append(f"axis = {_list(joint.axis)}")
    lines += _limits(joint.limits)
    if not _same([joint.pitch], [0.0]):
        lines.append(f"pitch = {_number(joint.pitch)}")
    lines += _drive(joint)
    if joint.mimic is not None:
        m = joint.mimic
        if m.also:
            raise ModelError(f"joint {joint.name!r}: only a motor may follow several joints in a file")
        values = f"multiplier = {_number(m.multiplier)}, offset = {_number(m.offset)}"
        if m.coupled is not None:
            values += f", coupled = {'true' if m.coupled else 'false'}"
        lines.append(f"mimic = {{ joint = {_text(m.joint)}, {values} }}")
    return lines


def _motor(motor: Motor) -> list[str]:
    moved = ", ".join(f"{_text(name)} = {_number(factor)}" for name, factor in motor.joints.items())
    lines = [f"name = {_text(motor.name)}", f"joints = {{ {moved} }}"]
    if not _same([motor.offset], [0.0]):
        lines.append(f"offset = {_number(motor.offset)}")
    return [*lines, *_drive(motor)]


def _drive(holder: Joint | Motor) -> list[str]:
    """Rotor inertia, friction and further laws."""
    lines = [
        f"{key} = {_number(getattr(holder, key))}"
        for key in ("rotor_inertia", "viscous_friction")
        if not _same([getattr(holder, key)], [0.0])
    ]
    if not _same(holder.coulomb_friction, (0.0, 0.0)):
        lines.append(f"coulomb_friction = {_list(holder.coulomb_friction)}")
    return [*lines, *(f"{name} = {_number(value)}" for name, value in holder.terms.items())]


def _limits(limits: Limits) -> list[str]:
    lines: list[str] = []
    if not (math.isinf(limits.lower) and limits.lower < 0 and math.isinf(limits.upper) and limits.upper > 0):
        lines.append(f"limits = {_list([limits.lower, limits.upper])}")
    if limits.velocity != math.inf:
        lines.append(f"velocity_limit = {_number(limits.velocity)}")
    if limits.effort != math.inf:
        lines.append(f"effort_limit = {_number(limits.effort)}")
    return lines


def _pose(pose: Transform) -> list[str]:
    """The rotation as a matrix: angles would lose the last bits."""
    lines: list[str] = []
    if not _same(pose.translation, np.zeros(3)):
        lines.append(f"xyz = {_list(pose.translation)}")
    if not _same(pose.rotation.ravel(), np.eye(3).ravel()):
        rows = ",\n".join(f"  {_list(row)}" for row in pose.rotation)
        lines.append(f"rotation = [\n{rows},\n]")
    return lines


def _same(left: Iterable[float], right: Iterable[float]) -> bool:
    """Equal to the last bit, the sign of zero included."""
    return np.array(left, dtype=float).tobytes() == np.array(right, dtype=float).tobytes()


def _text(value: str) -> str:
    return foreign.toml_string(str(value))


def _number(value: float) -> str:
    return repr(float(value))


def _list(values: Iterable[float]) -> str:
    return "[" + ", ".join(_number(v) for v in values) + "]"
