"""Visual geometry of robot files: the ``<visual>`` elements of URDF; see ``mjcf_looks`` for MJCF."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from linkwise.errors import ModelError
from linkwise.model import Transform
from linkwise.model.xml import Element, parse_xml
from linkwise.view import solids
from linkwise.view.looks import MAX_VISUALS, Looks, Visual
from linkwise.view.mesh_files import MeshFiles, find_mesh, folders_of
from linkwise.view.meshes import MAX_BYTES
from linkwise.view.mjcf_looks import mjcf_looks
from linkwise.view.solids import Colour, Part

__all__ = ["Looks", "Visual", "find_mesh", "read_looks"]


def read_looks(path: str | os.PathLike[str], folders: Iterable[str | os.PathLike[str]] = ()) -> Looks:
    """Visual geometry of a URDF or MJCF file; empty for other files.

    Args:
        path: the robot file.
        folders: additional folders in which meshes are searched.
    """
    file = Path(path)
    if not file.is_file() or file.stat().st_size > MAX_BYTES:
        return Looks()
    data = file.read_bytes()
    if b"<robot" not in data and b"<mujoco" not in data:
        return Looks()
    root = parse_xml(data, str(file))
    if root.tag == "mujoco":
        return mjcf_looks(root, MeshFiles(folders_of(file, folders)))
    if root.tag != "robot":
        return Looks()
    return _Reader(root, MeshFiles(folders_of(file, folders))).looks()


class _Reader:
    def __init__(self, root: Element, files: MeshFiles):
        self.root, self.files = root, files
        self.materials = {m.get("name"): _rgba(m) for m in root if m.tag == "material"}
        self.problems: list[str] = []

    def looks(self) -> Looks:
        visuals: list[Visual] = []
        for link in (element for element in self.root if element.tag == "link"):
            for visual in (element for element in link if element.tag == "visual"):
                try:
                    visuals += self.visual(link, visual)
                except ModelError as error:
                    self.problems.append(str(error))
                if len(visuals) > MAX_VISUALS:
                    self.problems.append(f"{self.root.where}: only the first {MAX_VISUALS} visuals are shown")
                    return Looks(tuple(visuals[:MAX_VISUALS]), tuple(self.problems))
        return Looks(tuple(visuals), tuple(dict.fromkeys(self.problems)))

    def visual(self, link: Element, visual: Element) -> list[Visual]:
        geometry = visual.only("geometry")
        shape = None if geometry is None else next(iter(geometry), None)
        if shape is None:
            return []
        colour = self.colour(visual)
        pose = _origin(visual)
        parts = self.parts(shape)
        return [
            Visual(link.text_of("name"), pose, Part(p.mesh, colour if colour is not None else p.colour))
            for p in parts
        ]

    def parts(self, shape: Element) -> list[Part]:
        match shape.tag:
            case "box":
                return [Part(solids.box(shape.numbers("size", 3)))]
            case "sphere":
                return [Part(solids.sphere(shape.number("radius")))]
            case "cylinder":
                return [Part(solids.cylinder(shape.number("radius"), shape.number("length")))]
            case "capsule":
                half = shape.number("length") / 2
                ends = (
                    Transform.along((0, 0, 1), -half).translation,
                    Transform.along((0, 0, 1), half).translation,
                )
                return [Part(solids.capsule(*ends, shape.number("radius")))]
            case "mesh":
                return self.mesh(shape)
        raise shape.error("unknown shape")

    def mesh(self, shape: Element) -> list[Part]:
        parts = self.files.read(shape, shape.text_of("filename"))
        if shape.get("scale") is None:
            return parts
        factors = shape.numbers("scale", 3)
        return [Part(part.mesh.scaled(factors), part.colour) for part in parts]

    def colour(self, visual: Element) -> Colour | None:
        material = visual.only("material")
        if material is None:
            return None
        own = _rgba(material)
        return own if own is not None else self.materials.get(material.get("name"))


def _rgba(material: Element) -> Colour | None:
    colour = material.only("color")
    if colour is None:
        return None
    red, green, blue, _ = (round(255 * min(max(c, 0.0), 1.0)) for c in colour.numbers("rgba", 4))
    return red, green, blue


def _origin(owner: Element) -> Transform:
    origin = owner.only("origin")
    if origin is None:
        return Transform.identity()
    xyz = (0.0, 0.0, 0.0) if origin.get("xyz") is None else origin.numbers("xyz", 3)
    rpy = (0.0, 0.0, 0.0) if origin.get("rpy") is None else origin.numbers("rpy", 3)
    return Transform.from_rpy(xyz, rpy)
