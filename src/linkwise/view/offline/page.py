"""A robot as one HTML file that needs no network: what it shows is data, what it computes is WebAssembly.

The data is compressed JSON in base64, so that no name of a robot, link or joint can become part of the page's code.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import warnings
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms import coupling, kinematics
from linkwise.arguments.flags import flag_or_none
from linkwise.compiler.emit import wasm
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.errors import LinkwiseError, ModelWarning
from linkwise.files import outputs
from linkwise.functions.table import mechanism_of
from linkwise.geometry.posture import up_of
from linkwise.geometry.simplify import shared_out, simplified
from linkwise.geometry.skeleton import skeleton
from linkwise.geometry.solids import Mesh, sphere, turned
from linkwise.geometry.visuals import Looks, read_looks
from linkwise.model import Transform
from linkwise.model.checks import masslessness
from linkwise.model.contacts import Contact, Ground, ground_of
from linkwise.model.coordinates import position_coordinates, velocity_coordinates
from linkwise.report.svg import COLOURS, escape
from linkwise.version import __version__
from linkwise.view.bars import TINTS
from linkwise.view.dials import dials_of, values_of
from linkwise.view.live import LOAD_DENSITY, Live, heaviest_load
from linkwise.view.motions import easy_speeds
from linkwise.view.parts import (
    LOAD,
    ScenePart,
    contact_shape_parts,
    group_labels,
    held_parts,
    mass_parts,
    mesh_parts,
    skeleton_parts,
)
from linkwise.view.placing import camera_of, floor_of, scene_box
from linkwise.view.scene import ARROW_COLOUR, arrow_scale

if TYPE_CHECKING:
    from linkwise.motion import Trajectory
    from linkwise.robot.robot import Robot
    from linkwise.simulate import Result

MOST_BYTES = 6_000_000  # of a page file
MOST_TRIANGLES = 60_000  # of all meshes of the file together
MOST_SOURCE = 400_000  # characters of C of one function
MOST_ROWS = 600  # of a motion
C_FUNCTIONS = ("gravity_torques", "inverse_dynamics", "forward_dynamics", "mass_matrix", "pose", "jacobian")
TOUCHING = "Contacts are part of simulations, not of poses that are set by sliders."
CONTACT = "Contact with the floor or between links is not modelled: links pass through each other."


def write_page(
    robot: Robot,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    *,
    meshes: Iterable[str | os.PathLike[str]] = (),
    motion: Trajectory | None = None,
    frame: str | None = None,
    q: np.ndarray | None = None,
    dark: bool | None = None,
    result: Result | None = None,
) -> Path:
    """Write a robot as one HTML file that works without a network: sliders, gravity torques, motions, code.

    Args:
        robot: the robot.
        path: the file to write.
        source: the file that the robot came from, for its meshes; by default the one that it was loaded from.
        meshes: further folders with meshes.
        motion: a motion to play.
        frame: the frame that carries the load.
        q: the position at the start [rad or m], shape (nq,).
        dark: a dark page; by default as the reader's system is set.
        result: a simulation to play, with arrows for the forces of contacts.

    Returns:
        The path.
    """
    text = page_file(robot, source, meshes=meshes, motion=motion, frame=frame, q=q, dark=dark, result=result)
    outputs.write(path, text)
    return Path(path)


def page_file(
    robot: Robot,
    source: str | os.PathLike[str] | None = None,
    *,
    meshes: Iterable[str | os.PathLike[str]] = (),
    motion: Trajectory | None = None,
    frame: str | None = None,
    q: np.ndarray | None = None,
    dark: bool | None = None,
    result: Result | None = None,
) -> str:
    """The text of the file that ``write_page`` writes, at most ``MOST_BYTES`` long.

    Args:
        robot: the robot.
        source: the file that the robot came from, for its meshes; by default the one that it was loaded from.
        meshes: further folders with meshes.
        motion: a motion to play.
        frame: the frame that carries the load.
        q: the position at the start [rad or m], shape (nq,).
        dark: a dark page; by default as the reader's system is set.
        result: a simulation to play, with arrows for the forces of contacts.
    """
    dark = flag_or_none("dark", dark)
    known = robot.source if source is None else (source,)
    looks = read_looks(known[0], (*meshes, *known[1:])) if known else Looks()
    problems = list(looks.problems)
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        warnings.warn(f"not drawn: {problems[0]}{more}", ModelWarning, stacklevel=2)
    live = Live(robot, frame)
    if q is None and result is not None:
        q = np.asarray(result.q).reshape(-1, robot.nq)[0]
    live.q = live.q if q is None else np.asarray(q, dtype=float)
    data = {
        **_scene(robot, looks, live.q),
        **_controls(live),
        "modules": _modules(robot, live),
        "motion": None if motion is None else _rows(motion),
        "simulation": None if result is None else _simulation(robot, result),
        "sources": _sources(robot, live.tip),
        "file": Path(known[0]).name if known else robot.name,
        "dark": dark,
        "version": __version__,
    }
    packed = gzip.compress(json.dumps(data, allow_nan=False).encode(), mtime=0)
    folder = files("linkwise.view.offline")
    script = wasm.LOADER + "".join(
        (folder / name).read_text("utf-8") for name in ("scene.js", "simulation.js", "panel.js")
    )
    filled = {
        "title": escape(robot.name),
        "style": (folder / "style.css").read_text("utf-8"),
        "script": script,
        "data": base64.b64encode(packed).decode(),
    }
    template = (folder / "page.html").read_text("utf-8")
    text = re.sub(r"\{(title|style|script|data)\}", lambda found: filled[found[1]], template)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise LinkwiseError(
            f"{robot.name}: the page file would have {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f} MB; lock "
            "joints that do not move, or show the robot with linkwise view"
        )
    return text


# -- what is drawn -------------------------------------------------------------------------------------------


def _scene(robot: Robot, looks: Looks, q: np.ndarray) -> dict[str, Any]:
    bones = skeleton(robot)
    drawn = mesh_parts(robot, looks, bones)
    solid = skeleton_parts(robot, bones) + held_parts(robot, bones.reach) + mass_parts(robot, bones.reach)
    touching = contact_shape_parts(robot)
    solid += touching
    shares = shared_out([part.mesh for part in drawn], MOST_TRIANGLES)
    parts = [_packed(part, simplified(part.mesh, most)) for part, most in zip(drawn, shares, strict=True)]
    parts = [part for part in parts if part is not None]
    has_meshes = bool(parts)
    parts += [part for each in solid if (part := _packed(each, each.mesh)) is not None]
    seen = [*drawn, *touching]
    low, high = scene_box(robot, bones, [(p.body, p.mesh.moved(p.pose)) for p in seen], q)
    up = up_of(robot)
    ground = _ground(robot)
    target, distance = camera_of(low, high, bones.reach)
    labels = group_labels(robot, bones.reach, has_meshes)
    there = {part["group"] for part in parts}
    return {
        "name": robot.name,
        "up": up.tolist(),
        "reach": bones.reach,
        "floor": ground.height if ground is not None else floor_of(low, high, up, bones.reach),
        "camera": {"yaw": -0.8, "pitch": 0.33, "target": target.tolist(), "distance": 1.15 * distance},
        "bodies": len(robot.moving_joints),
        "parts": parts,
        "groups": [
            {"group": group, "label": label, "visible": visible}
            for group, (label, visible) in labels.items()
            if group in there
        ],
        "problems": list(looks.problems[:20]),
    }


def _ground(robot: Robot) -> Ground | None:
    """The ground that the robot may touch; None: it touches none."""
    touching = any(isinstance(part, Contact) and part.other is None for part in robot.contact_parts)
    return ground_of(robot.contact_parts) if touching else None


def _packed(part: ScenePart, mesh: Mesh) -> dict[str, Any] | None:
    """A part with its vertices as multiples of 1/65535 of its box; None if nothing is left of it."""
    if not len(mesh.faces) or not np.isfinite(mesh.vertices).all():
        return None
    low = mesh.vertices.min(axis=0)
    step = np.maximum(np.ptp(mesh.vertices, axis=0), 1e-12) / 65535
    kind = "<u4" if len(mesh.vertices) > 65535 else "<u2"
    return {
        "group": part.group,
        "body": part.body,
        "hub": part.hub,
        "colour": list(part.colour),
        "opacity": 1 if part.opacity is None else part.opacity,
        "pose": _three_rows(part.pose),
        "vertices": _base64(np.rint((mesh.vertices - low) / step).astype("<u2")),
        "faces": _base64(mesh.faces.astype(kind)),
        "low": low.tolist(),
        "step": step.tolist(),
    }


def _three_rows(pose: Transform) -> list[float]:
    return np.column_stack([pose.rotation, pose.translation]).ravel().tolist()


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


# -- what is set and shown -----------------------------------------------------------------------------------


def _controls(live: Live) -> dict[str, Any]:
    robot = live.robot
    dials, coordinates = dials_of(robot), velocity_coordinates(robot)
    one_axis = not any(joint.free for joint in robot.coordinate_joints)
    leaders = zip(robot.moving_joints, robot.followed, strict=True)
    owners = [joint.name if relation is None else relation.joint for joint, relation in leaders]
    without = masslessness(robot)
    notes = ([f"Warning: {without}."] if without else []) + [TOUCHING if robot.contact_parts else CONTACT]
    if robot.constraints:
        notes.insert(0, "Loops are closed: other joints follow the one that is moved.")
        notes.append("Gravity torques are those of the tree without its loops.")
    return {
        "dials": [
            {
                "name": dial.name,
                "unit": dial.symbol,
                "factor": dial.unit,
                "low": dial.shown[0],
                "high": dial.shown[1],
                "inside": [dial.lower, dial.upper],
            }
            for dial in dials
        ],
        "joints": [
            {"free": joint.free, "lengths": joint.nq - 4 if joint.free else 0}
            for joint in robot.coordinate_joints
        ],
        "home": values_of(robot, live.q).tolist(),
        "positions": [coordinate.name for coordinate in position_coordinates(robot)],
        "torques": [
            {
                "name": each.name,
                "unit": "N·m" if each.revolute else "N",
                "scale": float(scale),
                "limited": bool(np.isfinite(each.limits.largest_effort)),
            }
            for each, scale in zip(coordinates, live.scale, strict=True)
        ],
        "hubs": [[k for k, each in enumerate(coordinates) if each.joint.name == owner] for owner in owners],
        "tints": TINTS.tolist(),
        "colours": list(COLOURS),
        "load": _load(live) if live.carries else None,
        "moves": one_axis and robot.dof > 0 and not robot.constraints,
        "speeds": easy_speeds(robot).tolist() if one_axis else [],
        "notes": notes,
    }


def _load(live: Live) -> dict[str, Any]:
    body, pose = live.robot.locate(live.tip)
    part = ScenePart("load", body, "load", sphere(1.0), LOAD, pose)
    ball = _packed(part, part.mesh)
    position = pose.translation.tolist()
    return {
        "body": body,
        "position": position,
        "most": heaviest_load(live),
        "density": LOAD_DENSITY,
        "ball": ball,
    }


def _rows(motion: Trajectory) -> dict[str, Any]:
    count = int(np.clip(motion.duration * 60, 2, MOST_ROWS))
    samples = motion.sampled(points=count)
    return {
        "t": (samples.t - samples.t[0]).tolist(),
        **{name: getattr(samples, name).tolist() for name in ("q", "qd", "qdd")},
    }


def _simulation(robot: Robot, result: Result) -> dict[str, Any]:
    """Rows of a simulation: positions, and where and how contacts push, in axes of the base."""
    if result.q.ndim != 2:
        raise LinkwiseError("result: a page shows the simulation of one robot, not of a batch")
    if result.robot.nq != robot.nq:
        raise LinkwiseError(f"result: expected {robot.nq} positions, got {result.robot.nq}")
    rows = np.unique(np.linspace(0, len(result.t) - 1, MOST_ROWS).round().astype(int))
    t, q = result.t[rows], np.asarray(result.q)[rows]
    points = forces = np.zeros((len(rows), 0, 3))
    if result.robot.contact_names:
        points, forces = result.contact_points[rows], result.contact_arrows[rows]
    arrow = ScenePart("arrows", -1, "arrow", _arrow(), ARROW_COLOUR, Transform.identity())
    return {
        "t": (t - t[0]).tolist(),
        "q": q.tolist(),
        "points": np.round(points, 5).tolist(),
        "forces": np.round(forces, 4).tolist(),
        "scale": arrow_scale(robot, skeleton(robot).reach),
        "arrow": _packed(arrow, arrow.mesh),
        "names": list(result.robot.contact_names),
        "follows": robot.moving_joints[0].type == "floating",
    }


def _arrow() -> Mesh:
    """From the origin to z = 1; its width is that of a length of 1 m."""
    return turned(np.array([0.0, 0.03, 0.03, 0.075, 0.0]), np.array([0.0, 0.0, 0.72, 0.72, 1.0]), 12)


# -- what is computed ----------------------------------------------------------------------------------------


def _modules(robot: Robot, live: Live) -> dict[str, Any]:
    """WebAssembly of the functions that the page calls."""
    if not robot.dof:
        return {}
    made = {"poses": _module(_poses(robot), "poses"), "gravity": _function(robot, "gravity_torques", "tau")}
    one_axis = not any(joint.free for joint in robot.coordinate_joints)
    if one_axis and not robot.constraints:
        made["inverse"] = _function(robot, "inverse_dynamics", "tau")
    if live.carries:
        loaded = robot.with_payload(1.0, (0, 0, 0), (0, 0, 0), frame=live.tip)
        made["gravity_loaded"] = _function(loaded, "gravity_torques", "tau")
        if "inverse" in made:
            made["inverse_loaded"] = _function(loaded, "inverse_dynamics", "tau")
    if robot.constraints and one_axis:
        made["errors"] = _function(robot, "constraint_errors", "errors")
        made["jacobian"] = _function(robot, "constraint_jacobian", "J")
    return made


def _function(robot: Robot, name: str, output: str) -> dict[str, Any]:
    kernel = robot.kernel(name)
    assert isinstance(kernel, Kernel)  # no parameter stays an input
    return _module(kernel.program(), output)


def _module(program: Any, output: str) -> dict[str, Any]:
    """The module of a program with one output, under this name."""
    made = wasm.module(program)
    for array in made["arrays"]:
        if array["kind"] == "output":
            array["name"] = output
    return made


def _poses(robot: Robot) -> Any:
    """A program that gives the poses of all bodies, three rows of four numbers each."""
    links = mechanism_of(robot)

    def poses(q: Any) -> list[list[Any]]:
        placed = kinematics.link_poses(links, coupling.expanded(links, q, positions=True))
        rows = []
        for k in range(len(links)):
            pose = kinematics.frame_pose(links, placed, k, Transform.identity())
            R, p = pose.rotation, pose.position
            rows.append([R.xx, R.xy, R.xz, p.x, R.yx, R.yy, R.yz, p.y, R.zx, R.zy, R.zz, p.z])
        return rows

    return trace(poses, {"q": robot.nq}, {"poses": (len(links), 12)}, name="poses")


def _sources(robot: Robot, tip: str) -> dict[str, str]:
    """C of the functions that people ask for, where it is not too long."""
    sources = {}
    for name in C_FUNCTIONS if robot.dof else ():
        frame = tip if name in ("pose", "jacobian") else None
        try:
            text = robot.kernel(name, frame=frame).source("c")
        except LinkwiseError:  # no such function for this robot
            continue
        if len(text) <= MOST_SOURCE:
            sources[name] = text
    return sources
