"""Geometry of robot files: the ``<visual>`` or ``<collision>`` elements of URDF; see ``mjcf_looks`` for MJCF."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from linkwise.errors import ModelError
from linkwise.formats.mjcf.files import expanded
from linkwise.formats.xml import Element, parse_xml
from linkwise.geometry.looks import MAX_VISUALS, Looks, Visual
from linkwise.geometry.mesh_files import MeshFiles, find_mesh, folders_of
from linkwise.geometry.meshes import MAX_BYTES
from linkwise.geometry.mjcf_looks import mjcf_looks
from linkwise.geometry.solids import Colour, Part
from linkwise.model import Transform

__all__ = ["Looks", "LooksFile", "Visual", "find_mesh", "read_looks"]


def read_looks(
    path: str | os.PathLike[str],
    folders: Iterable[str | os.PathLike[str]] = (),
    *,
    purpose: str = "visual",
    links: Collection[str] | None = None,
) -> Looks:
    """Geometry of a URDF or MJCF file; empty for other files.

    Args:
        path: the robot file.
        folders: additional folders in which meshes are searched.
        purpose: "visual" for what is drawn, "collision" for what may touch.
        links: names of links; meshes of others in a URDF file are not read. None: all.
    """
    return LooksFile(path, folders).looks(purpose, links)


class LooksFile:
    """A robot file whose geometry is read for several purposes: the file is parsed once, each mesh is read once.

    Args:
        path: the robot file.
        folders: additional folders in which meshes are searched.
        shown: whether the geometry is drawn, see ``read_mesh``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        folders: Iterable[str | os.PathLike[str]] = (),
        *,
        shown: bool = True,
    ):
        file, given = Path(path), [str(folder) for folder in folders]
        data = file.read_bytes() if file.is_file() and file.stat().st_size <= MAX_BYTES else b""
        known = b"<robot" in data or b"<mujoco" in data
        self._root = parse_xml(data, str(file)) if known else None
        self._files = MeshFiles(folders_of(file, given), shown=shown)
        self._problem: str | None = None
        if self._root is not None and self._root.tag == "mujoco":
            try:
                self._root = expanded(self._root, str(file), given)
            except ModelError as error:
                self._problem = str(error)

    def looks(self, purpose: str, links: Collection[str] | None = None) -> Looks:
        """Geometry for a purpose, see ``read_looks``.

        Args:
            purpose: "visual" or "collision".
            links: names of links; None: all.
        """
        tag = self._root.tag if self._root is not None else ""
        if self._root is None or tag not in ("robot", "mujoco"):
            return Looks()
        if self._problem is not None:
            return Looks((), (self._problem,))
        if tag == "mujoco":
            return mjcf_looks(self._root, self._files, purpose)
        return _Reader(self._root, self._files, purpose, links).looks()


class _Reader:
    def __init__(self, root: Element, files: MeshFiles, purpose: str, links: Collection[str] | None):
        self.root, self.files, self.purpose, self.links = root, files, purpose, links
        self.materials = {m.get("name"): _rgba(m) for m in root if m.tag == "material"}
        self.problems: list[str] = []
        self.missing: set[str] = set()

    def looks(self) -> Looks:
        visuals: list[Visual] = []
        for link in (element for element in self.root if element.tag == "link"):
            if self.links is not None and link.get("name", "") not in self.links:
                continue
            for visual in (element for element in link if element.tag == self.purpose):
                try:
                    visuals += self.visual(link, visual)
                except ModelError as error:
                    self.problems.append(str(error))
                    self.missing.add(link.get("name", ""))
                if len(visuals) > MAX_VISUALS:
                    self.problems.append(
                        f"{self.root.where}: only the first {MAX_VISUALS} {self.purpose}s are read"
                    )
                    return Looks(
                        tuple(visuals[:MAX_VISUALS]), tuple(self.problems), frozenset(self._all_links())
                    )
        return Looks(tuple(visuals), tuple(dict.fromkeys(self.problems)), frozenset(self.missing))

    def _all_links(self) -> list[str]:
        return [element.get("name", "") for element in self.root if element.tag == "link"]

    def visual(self, link: Element, visual: Element) -> list[Visual]:
        geometry = visual.only("geometry")
        shape = None if geometry is None else next(iter(geometry), None)
        if shape is None:
            return []
        colour = self.colour(visual)
        pose = _origin(visual)
        parts = self.parts(shape)
        return [
            Visual(link.text_of("name"), pose, replace(p, colour=colour if colour is not None else p.colour))
            for p in parts
        ]

    def parts(self, shape: Element) -> list[Part]:
        match shape.tag:
            case "box":
                return [Part.of("box", *shape.numbers("size", 3))]
            case "sphere":
                return [Part.of("sphere", shape.number("radius"))]
            case "cylinder" | "capsule" as kind:
                return [Part.of(kind, shape.number("radius"), shape.number("length"))]
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
