"""Robots in TOML: chains by Denavit–Hartenberg numbers, and trees. ``docs/formats.md`` has the format."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from linkwise.errors import ModelError
from linkwise.files.settings import REQUIRED, parse_toml
from linkwise.formats.constraint_parts import KINDS, Parts, constraint_of
from linkwise.formats.toml.table import DRIVE_KEYS, INERTIAL_KEYS, LIMIT_KEYS, POSE_KEYS, RobotSettings
from linkwise.formats.toml.writer import write_toml
from linkwise.model.axes import JOINT_TYPES, MOVING_TYPES
from linkwise.model.constraints import Constraint
from linkwise.model.dh import CONVENTIONS, DhJoint, chain
from linkwise.model.fluid import COEFFICIENTS, SHAPES, DragBody, Fluid
from linkwise.model.joint import Joint, Mimic
from linkwise.model.model import STANDARD_GRAVITY, Frame, Link, Model
from linkwise.model.motors import Motor

__all__ = ["read_citation", "read_toml", "write_toml"]

HEADER_KEYS = ("name", "source", "notes", "convention", "gravity", "reduced")
CHAIN_KEYS = (*HEADER_KEYS, "base", "joint", "motor", "frame")
TREE_KEYS = (*HEADER_KEYS, "passive", "link", "joint", "motor", "frame", "constraint", "fluid")
DH_KEYS = ("alpha", "alpha_deg", "a", "d", "theta", "theta_deg")
CHAIN_JOINT_KEYS = ("name", "link", "type", *DH_KEYS, *LIMIT_KEYS, *INERTIAL_KEYS, *DRIVE_KEYS)
TREE_JOINT_KEYS = (
    "name",
    "type",
    "parent",
    "child",
    "body",
    *POSE_KEYS,
    "axis",
    "pitch",
    *LIMIT_KEYS,
    *DRIVE_KEYS,
    "mimic",
)
UNIT_TOLERANCE = 1e-12  # an axis this close to unit length is kept to the last bit


def read_toml(data: bytes, where: str) -> Model:
    """The robot of a TOML file; ``where`` (usually the file's name) begins every error message."""
    top = _parse(data, where)
    convention = top.choice("convention", (*CONVENTIONS, "tree"))
    top.allow(TREE_KEYS if convention == "tree" else CHAIN_KEYS)
    try:
        model = _tree(top) if convention == "tree" else _chain(top, convention, where)
        motors = [_motor(table) for table in _tables(top, "motor")]
        return model.with_motors(motors) if motors else model
    except ModelError as error:
        # the checks of the model itself have no names of files
        raise error if str(error).startswith(where) else ModelError(f"{where}: {error}") from None


def read_citation(data: bytes, where: str) -> str:
    """What the file says about the source of its numbers; empty when it says nothing."""
    return _parse(data, where).get("source", str, "")


def _parse(data: bytes, where: str) -> RobotSettings:
    return RobotSettings(parse_toml(data, where, ModelError), where)


def _header(top: RobotSettings) -> dict[str, Any]:
    top.get("source", str, "")
    top.get("notes", str, "")
    gravity = top.numbers("gravity", 3) if top.has("gravity") else STANDARD_GRAVITY
    return {"gravity": gravity, "reduced": top.get("reduced", bool, False)}


def _tables(top: RobotSettings, kind: str) -> list[RobotSettings]:
    """The tables [[kind]], each named in messages by its own name where it has one."""
    tables: Any = top.values.get(kind, [])
    if not isinstance(tables, list) or not all(isinstance(e, dict) for e in cast("list[Any]", tables)):
        raise top.fail("", f"expected {kind!r} to be tables [[{kind}]]")
    return [
        RobotSettings(
            entry, f"{top.path}: [[{kind}]] {entry['name'] if isinstance(entry.get('name'), str) else k}"
        )
        for k, entry in enumerate(cast("list[dict[str, Any]]", tables), start=1)
    ]


# -- chains --------------------------------------------------------------------------------------------------


def _chain(top: RobotSettings, convention: str, where: str) -> Model:
    joints = _tables(top, "joint")
    if not joints:
        raise top.fail("", "a chain needs at least one [[joint]]")
    base = None
    if top.has("base"):
        given: Any = top.values["base"]
        if not isinstance(given, dict):
            raise top.fail("", "expected 'base' to be a table [base] with xyz and rpy, rpy_deg or rotation")
        table = RobotSettings(cast("dict[str, Any]", given), f"{where}: [base]")
        table.allow(POSE_KEYS)
        base = table.pose()
    rows = [_dh_joint(table, number) for number, table in enumerate(joints, start=1)]
    return chain(
        top.get("name", str),
        rows,
        convention,
        base=base,
        frames=_frames(top, default=rows[-1].link),
        **_header(top),
    )


def _dh_joint(table: RobotSettings, number: int) -> DhJoint:
    table.allow(CHAIN_JOINT_KEYS)
    kind = table.choice("type", JOINT_TYPES, "revolute")
    return DhJoint(
        name=table.get("name", str, f"joint{number}"),
        link=table.get("link", str, f"link{number}"),
        type=kind,
        alpha=table.angle("alpha"),
        a=table.number("a", 0.0),
        d=table.number("d", 0.0),
        theta=table.angle("theta"),
        inertia=table.inertia(),
        limits=table.limits(kind),
        **table.drive(),
    )


def _frames(top: RobotSettings, default: str | None = None) -> list[Frame]:
    """[[frame]]: a named frame on a link, in a chain on the last one unless it says otherwise."""
    frames: list[Frame] = []
    for table in _tables(top, "frame"):
        table.allow(("name", "link", *POSE_KEYS))
        frames.append(
            Frame(
                table.get("name", str),
                table.get("link", str, REQUIRED if default is None else default),
                table.pose(),
            )
        )
    return frames


# -- trees ---------------------------------------------------------------------------------------------------


def _tree(top: RobotSettings) -> Model:
    links: list[Link] = []
    for table in _tables(top, "link"):
        table.allow(("name", *INERTIAL_KEYS))
        links.append(Link(table.get("name", str), table.inertia()))
    joints = [_tree_joint(table) for table in _tables(top, "joint")]
    return Model(
        top.get("name", str),
        links,
        joints,
        frames=_frames(top),
        constraints=[_constraint(table) for table in _tables(top, "constraint")],
        passive=_passive(top),
        fluid=_fluid(top),
        **_header(top),
    )


def _fluid(top: RobotSettings) -> Fluid | None:
    """[fluid], with a [[fluid.body]] for all that it resists."""
    if not top.has("fluid"):
        return None
    table = RobotSettings(cast("dict[str, Any]", top.get("fluid", dict)), top.where("fluid"))
    table.allow(("density", "viscosity", "wind", "body"))
    bodies: list[DragBody] = []
    for body in _tables(table, "body"):
        body.allow(("link", "shape", "size", "coefficients", *POSE_KEYS))
        coefficients = body.numbers("coefficients", 5) if body.has("coefficients") else COEFFICIENTS
        x, y, z = body.numbers("size", 3)
        a, b, c, d, e = coefficients
        shape = body.choice("shape", SHAPES)
        bodies.append(DragBody(body.get("link", str), body.pose(), shape, (x, y, z), (a, b, c, d, e)))
    x, y, z = table.vector("wind").tolist()
    given = tuple(bodies) if table.has("body") else None
    return Fluid(table.number("density", 0.0), table.number("viscosity", 0.0), (x, y, z), given)


def _constraint(table: RobotSettings) -> Constraint:
    kind = table.choice("type", KINDS)
    table.allow(
        ("type", "frame", "to", "name", "compliance", *(("offset",) if kind == "point" else ()), *POSE_KEYS)
    )
    if kind == "point" and table.has("rpy", "rpy_deg", "rotation"):
        raise table.fail("", "a point has no orientation: give xyz and offset only")
    pose = table.pose()
    offset = table.vector("offset")
    to = table.get("to", str) if table.has("to") else None
    name, compliance = table.get("name", str, ""), table.number("compliance", 0.0)
    return constraint_of(Parts(kind, table.get("frame", str), to, pose, offset, name, compliance))


def _passive(top: RobotSettings) -> list[str]:
    names = cast("list[Any]", top.get("passive", list, []))
    if not all(isinstance(name, str) for name in names):
        raise top.fail("passive", f"expected names of joints, got {names!r:.80}")
    return names


def _tree_joint(table: RobotSettings) -> Joint:
    table.allow(TREE_JOINT_KEYS)
    kind = table.choice("type", JOINT_TYPES)
    return Joint(
        name=table.get("name", str),
        type=kind,
        parent=table.get("parent", str),
        child=table.get("child", str),
        body=table.get("body", str, ""),
        origin=table.pose(),
        axis=_axis(table),
        limits=table.limits(kind),
        mimic=_mimic(table),
        pitch=_pitch(table, kind),
        **table.drive(),
    )


def _axis(table: RobotSettings) -> tuple[float, float, float]:
    if not table.has("axis"):
        return (0.0, 0.0, 1.0)
    axis = table.vector("axis")
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise table.fail("axis", f"{table.values['axis']}: a direction has a length other than 0")
    if abs(length - 1.0) > UNIT_TOLERANCE:
        axis = axis / length
    x, y, z = axis.tolist()
    return (x, y, z)


def _mimic(table: RobotSettings) -> Mimic | None:
    if not table.has("mimic"):
        return None
    value = table.values["mimic"]
    if not isinstance(value, dict):
        raise table.fail("mimic", f"expected a table with joint, multiplier and offset, got {value!r}")
    relation = RobotSettings(cast("dict[str, Any]", value), table.where("mimic"))
    relation.allow(("joint", "multiplier", "offset", "coupled"))
    return Mimic(
        relation.get("joint", str),
        relation.number("multiplier", 1.0),
        relation.number("offset", 0.0),
        relation.get("coupled", bool) if relation.has("coupled") else None,
    )


def _motor(table: RobotSettings) -> Motor:
    """[[motor]]: a motor that moves several joints, ``joints = { NAME = factor, … }``."""
    table.allow(("name", "joints", "offset", *DRIVE_KEYS))
    value = table.values.get("joints")
    if not isinstance(value, dict) or not value:
        raise table.fail("joints", f"expected a table of joints with their factors, got {value!r:.80}")
    factors = RobotSettings(cast("dict[str, Any]", value), table.where("joints"))
    joints = {name: factors.number(name) for name in factors.values}
    return Motor(table.get("name", str), joints, offset=table.number("offset", 0.0), **table.drive())


def _pitch(table: RobotSettings, kind: str) -> float:
    screws = [name for name, known in MOVING_TYPES.items() if known.screws]
    if table.has("pitch") and kind not in screws:
        raise table.fail("pitch", f"a {kind} joint has none; it is for type {' or '.join(map(repr, screws))}")
    return table.number("pitch", 0.0)
