"""Contacts of robot files: collision geometry of URDF against the ground, and what MJCF files say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from linkwise.errors import ModelError
from linkwise.formats.mjcf.files import expanded
from linkwise.formats.xml import MAX_BYTES, parse_xml
from linkwise.geometry.contact_choice import Findings, Geom, NothingTouches, contact_parts, hull_notes
from linkwise.geometry.mesh_files import MeshFiles, folders_of
from linkwise.geometry.mjcf_contacts import MOST_CORNERS, mjcf_contacts
from linkwise.geometry.visuals import read_looks
from linkwise.model import Model
from linkwise.model.contacts import DEFAULT_FRICTION, Part
from linkwise.model.shapes import Shape

MOST_BESIDE = 50  # files in a folder that are searched for an <include>
_INCLUDED = re.compile(r"""<include\s+file=["']([^"']+)["']""")


def read_contacts(
    robot: Model, path: str | os.PathLike[str], folders: Iterable[str] = ()
) -> tuple[list[Part], list[str]]:
    """(the contacts of a robot's file, what is said about them).

    Args:
        robot: the robot, as it was read from the file.
        path: the file.
        folders: further folders with meshes and included files.

    Raises:
        ModelError: the format has no collision geometry, a mesh cannot be read, or a shape is not modelled.
    """
    file, folders = Path(path), tuple(folders)
    data = file.read_bytes() if file.is_file() else b""
    root = parse_xml(data, str(file)) if b"<mujoco" in data or b"<robot" in data else None
    if root is not None and root.tag == "mujoco":
        whole = expanded(root, str(file), folders)
        try:
            return contact_parts(robot, mjcf_contacts(whole, MeshFiles(folders_of(file, folders))))
        except NothingTouches:
            scenes = _including(file)
            if not scenes:
                raise
            raise ModelError(
                f"{file}: contact=True: nothing to touch; load {scenes[0]}, which includes it"
            ) from None
    if root is None or root.tag != "robot":
        raise ModelError(
            f"{path}: contact=True: only URDF and MJCF files have collision shapes; use robot.with_contacts"
        )
    return contact_parts(robot, _urdf(robot, file, folders))


def _including(file: Path) -> list[Path]:
    """The files beside this one that include it, scenes with a floor usually."""
    beside = [
        path for path in sorted(file.parent.glob("*.xml"))[:MOST_BESIDE] if path.is_file() and path != file
    ]
    texts = {path: path.read_text("utf-8", "replace") for path in beside if path.stat().st_size <= MAX_BYTES}
    return [path for path, text in texts.items() if file.name in _INCLUDED.findall(text)]


def _urdf(robot: Model, file: Path, folders: tuple[str, ...]) -> Findings:
    """Every collision element against the ground."""
    looks = read_looks(file, folders, purpose="collision")
    if looks.problems:
        raise ModelError(f"contact=True: {looks.problems[0]}")
    geoms: list[Geom] = []
    hulls: list[tuple[str, Shape, np.ndarray]] = []
    for each in looks.visuals:
        place = {"offset": each.pose.translation.tolist(), "rotation": each.pose.rotation.tolist()}
        primitive = each.part.primitive
        if primitive is None:
            vertices = each.part.mesh.vertices
            shape = Shape.hull(each.link, vertices, most=MOST_CORNERS, **place)
            hulls.append((f"mesh of {each.link}", shape, vertices))
        else:
            shape = Shape(each.link, primitive.kind, primitive.sizes, **place)
        geoms.append(Geom(each.link, shape, shape.label, DEFAULT_FRICTION))
    return Findings(tuple(geoms), (), tuple(hull_notes(hulls)), ground=DEFAULT_FRICTION)
