"""``linkwise info``."""

from __future__ import annotations

import math
import warnings
from typing import Any

from linkwise.cli.support import headings
from linkwise.cli.support.options import json_option, load_robot, robot_argument
from linkwise.cli.support.output import Table, number, say, say_json, show
from linkwise.model.axes import MOVING_TYPES
from linkwise.model.joint import Joint, Limits


@headings.command("info")
@robot_argument
@json_option
def command(robot: str, gravity, lock, base, mimic, as_json: bool) -> None:
    """Show what is in a robot: joints, links, frames, parameters, and warnings about it.

    \b
    Example:
      linkwise info puma560
      linkwise info arm.urdf --lock finger_joint1=0.02 --json
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load_robot(robot, gravity, lock, base, mimic)
    facts = describe(loaded, list(dict.fromkeys(str(warning.message) for warning in caught)))
    if as_json:
        say_json(facts)
    else:
        _show(facts)


def describe(robot, warned: list[str]) -> dict[str, Any]:
    """Everything that is shown, as plain data."""
    kept = {joint.name: joint for joint in robot.coordinate_joints}
    return {
        "name": robot.name,
        "dof": robot.dof,
        "nq": robot.nq,
        "moving_joints": len(robot.moving_joints),
        "mass": sum(link.inertia.mass for link in robot.links),
        "gravity": robot.gravity,
        "base": robot.base,
        "leaves": robot.leaf_names,
        "reduced": robot.reduced,
        "massless_joints": robot.massless_joints,
        "parameters": len(robot.parameter_labels),
        "joints": [_joint(joint, kept.get(joint.name, joint).limits) for joint in robot.joints],
        "links": [_link(link) for link in robot.links],
        "frames": [{"name": frame.name, "link": frame.link} for frame in robot.frames],
        "warnings": warned,
    }


def _joint(joint: Joint, limits: Limits) -> dict[str, Any]:
    """A joint with the limits that it keeps: those of the file, or what its followers leave of them."""
    return {
        "name": joint.name,
        "type": joint.type,
        "parent": joint.parent,
        "child": joint.child,
        "pitch": joint.pitch,
        "limits": {
            "lower": limits.lower,
            "upper": limits.upper,
            "velocity": limits.velocity,
            "effort": limits.effort,
        },
        "limited_by_followers": limits != joint.limits,
        "rotor_inertia": joint.rotor_inertia,
        "viscous_friction": joint.viscous_friction,
        "coulomb_friction": joint.coulomb_friction,
        "terms": dict(joint.terms),
        "mimic": None
        if joint.mimic is None
        else {
            "joint": joint.mimic.joint,
            "multiplier": joint.mimic.multiplier,
            "offset": joint.mimic.offset,
            "coupled": joint.mimic.coupled,
        },
    }


def _link(link) -> dict[str, Any]:
    mass = link.inertia.mass
    return {"name": link.name, "mass": mass, "com": link.inertia.com if mass else None}


def _show(facts: dict[str, Any]) -> None:
    say(f"{facts['name']}: {facts['moving_joints']} moving joints, {number(facts['mass'])} kg")
    if not facts["dof"] == facts["nq"] == facts["moving_joints"]:
        say(f"  coordinates {facts['nq']} positions, {facts['dof']} velocities")
    say(f"  gravity     {_vector(facts['gravity'])} m/s²")
    say(f"  base        {facts['base']}")
    say(f"  leaves      {', '.join(facts['leaves'])}")
    kind = (
        "a reduced set, not physical link by link"
        if facts["reduced"]
        else "ten per moving link, then the joints'"
    )
    say(f"  parameters  {facts['parameters']} ({kind})")
    say()
    show(_joint_table(facts["joints"]))
    rows = [
        [link["name"], number(link["mass"]), _vector(link["com"]) if link["com"] is not None else ""]
        for link in facts["links"]
    ]
    show(Table("Links", ["name", ">mass [kg]", "centre of mass [m]"], rows))
    if facts["frames"]:
        show(
            Table(
                "Frames", ["name", "on link"], [[frame["name"], frame["link"]] for frame in facts["frames"]]
            )
        )
    for warning in facts["warnings"]:
        say(f"warning: {' '.join(warning.split())}")


_COLUMNS = (
    "name",
    "type",
    ">lower",
    ">upper",
    ">speed",
    ">effort",
    ">rotor inertia",
    ">viscous friction",
    ">Coulomb friction",
)
_DRIVES = _COLUMNS[-3:]  # left out where they are zero for all joints


def _joint_table(joints: list[dict[str, Any]]) -> Table:
    moving = [joint for joint in joints if joint["type"] != "fixed"]
    drives = {joint["name"]: _drive(joint) for joint in moving}
    used = [k for k in range(3) if any(cells[k] != "0" for cells in drives.values())]
    rows = []
    for joint in joints:
        if joint["type"] == "fixed":
            rows.append([joint["name"], "fixed", *[""] * (4 + len(used))])
            continue
        limits = joint["limits"]
        unit = 1.0 if MOVING_TYPES[joint["type"]].slides else math.degrees(1.0)
        range_ = [number(limits[key] * unit) + (" m" if unit == 1.0 else "°") for key in ("lower", "upper")]
        if MOVING_TYPES[joint["type"]].free:
            range_ = ["", ""]
        rows.append(
            [joint["name"], joint["type"], *range_, number(limits["velocity"]), number(limits["effort"])]
            + [drives[joint["name"]][k] for k in used]
        )
    unused = [name.removeprefix(">") for k, name in enumerate(_DRIVES) if k not in used]
    notes = [f"zero for all joints: {', '.join(unused)}"] if unused and moving else []
    columns = [*_COLUMNS[:-3], *(_DRIVES[k] for k in used)]
    notes += [
        f"{joint['name']}: {', '.join(f'{name} {number(value)}' for name, value in joint['terms'].items())}"
        for joint in joints
        if joint["terms"]
    ]
    notes += [
        f"{j['name']}: {number(j['pitch'])} m per rad" for j in moving if MOVING_TYPES[j["type"]].screws
    ]
    notes += [
        f"{joint['name']}: limits within which joints that follow it keep theirs"
        for joint in joints
        if joint["limited_by_followers"]
    ]
    notes += [_relation(joint["name"], **joint["mimic"]) for joint in joints if joint["mimic"]]
    return Table("Joints (SI units; ranges in degrees or metres)", columns, rows, notes)


def _drive(joint: dict[str, Any]) -> list[str]:
    """The cells of rotor inertia, viscous and Coulomb friction."""
    forward, backward = joint["coulomb_friction"]
    coulomb = number(forward) if forward == backward else f"{number(forward)} / {number(backward)}"
    return [number(joint["rotor_inertia"]), number(joint["viscous_friction"]), coulomb]


def _relation(name: str, joint: str, multiplier: float, offset: float, coupled: bool) -> str:
    shift = "" if offset == 0.0 else f" {'+' if offset > 0 else '−'} {number(abs(offset))}"
    formula = f"{name} = {number(multiplier)}·{joint}{shift}"
    if coupled:
        return f"{formula}: no coordinate of its own (--mimic independent gives it one)"
    return f"{formula} in the file; its coordinate is independent"


def _vector(values) -> str:
    return ", ".join(number(float(value)) for value in values)
