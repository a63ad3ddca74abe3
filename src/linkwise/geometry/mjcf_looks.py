"""Geometry of MJCF files: geoms of groups 0 to 2, which MuJoCo's viewer shows by default, or geoms that collide.

Files that keep collision shapes apart put them into group 3 and above. A geom collides unless its ``contype`` and
``conaffinity`` are both 0. Planes and height fields belong to the world and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from linkwise.errors import ModelError
from linkwise.formats.mjcf.defaults import Defaults
from linkwise.formats.mjcf.geom import SIZES, geom_place
from linkwise.formats.mjcf.reader import WORLD
from linkwise.formats.mjcf.settings import read_settings
from linkwise.formats.xml import Element
from linkwise.geometry.looks import MAX_VISUALS, Looks, Visual
from linkwise.geometry.mesh_files import MeshFiles
from linkwise.geometry.solids import Colour, Part
from linkwise.model import Transform

SHOWN_GROUPS = (0.0, 1.0, 2.0)
NO_PART_OF_A_ROBOT = ("plane", "hfield", "sdf")


def mjcf_looks(root: Element, files: MeshFiles, purpose: str = "visual") -> Looks:
    """Geoms of an MJCF file that can be read, and one line for each that cannot."""
    return _Reader(root, files, purpose).looks()


class _Reader:
    def __init__(self, root: Element, files: MeshFiles, purpose: str):
        self.root, self.files, self.purpose = root, files, purpose
        self.settings, self.defaults = read_settings(root), Defaults(root)
        self.folder = _mesh_folder(root)
        assets = [child for section in root if section.tag == "asset" for child in section]
        self.meshes = {_mesh_name(e): e for e in assets if e.tag == "mesh"}
        self.materials = {e.get("name"): e for e in assets if e.tag == "material"}
        self.problems: list[str] = []
        self.missing: set[str] = set()

    def looks(self) -> Looks:
        visuals: list[Visual] = []
        for section in (s for s in self.root if s.tag == "worldbody"):
            for visual in self._inside(section, WORLD, Transform.identity(), section.get("childclass")):
                visuals.append(visual)
                if len(visuals) == MAX_VISUALS:
                    self.problems.append(f"{self.root.where}: only the first {MAX_VISUALS} geoms are shown")
                    return Looks(tuple(visuals), tuple(self.problems), frozenset(v.link for v in visuals))
        return Looks(tuple(visuals), tuple(dict.fromkeys(self.problems)), frozenset(self.missing))

    def _inside(
        self, parent: Element, link: str, frame: Transform, childclass: str | None
    ) -> Iterator[Visual]:
        """Geoms of a body and its child bodies; ``frame`` is the pose of the enclosing <frame> elements in the body."""
        for child in parent:
            if child.tag == "frame":
                inner = frame @ self.settings.pose(child)
                yield from self._inside(child, link, inner, child.get("childclass", childclass))
            elif child.tag == "body":
                inner_class = child.get("childclass", childclass)
                yield from self._inside(child, child.get("name", ""), Transform.identity(), inner_class)
            elif child.tag == "geom":
                try:
                    yield from self._geom(self.defaults.resolve(child, childclass), link, frame)
                except ModelError as error:
                    self.problems.append(str(error))
                    self.missing.add(link)

    def _geom(self, geom: Element, link: str, frame: Transform) -> list[Visual]:
        kind = geom.get("type", "mesh" if "mesh" in geom.attrib else "sphere")
        if kind in NO_PART_OF_A_ROBOT or not self._wanted(geom):
            return []
        if not link:
            raise geom.error("its body has no name, so it is not shown")
        colour = self._colour(geom)
        if kind == "mesh":
            pose, parts = self.settings.pose(geom), self._mesh(geom)
        elif kind in SIZES:
            pose, size = geom_place(geom, kind, self.settings)
            parts = [_solid(kind, size)]
        else:
            raise geom.error(f"type {kind!r}: a shape that is not known")
        return [
            Visual(link, frame @ pose, replace(part, colour=part.colour if colour is None else colour))
            for part in parts
        ]

    def _wanted(self, geom: Element) -> bool:
        if self.purpose == "visual":
            return geom.number("group", 0.0) in SHOWN_GROUPS
        return geom.number("contype", 1.0) != 0.0 or geom.number("conaffinity", 1.0) != 0.0

    def _mesh(self, geom: Element) -> list[Part]:
        name = geom.text_of("mesh")
        asset = self.meshes.get(name)
        if asset is None:
            raise geom.error(f"no mesh {name!r} in <asset>")
        asset = self.defaults.resolve(asset)
        if "file" not in asset.attrib:
            raise asset.error("meshes without a file are not shown")
        parts = self.files.read(asset, str(PurePosixPath(self.folder) / asset.text_of("file")))
        scale = asset.numbers("scale", 3) if "scale" in asset.attrib else (1.0, 1.0, 1.0)
        shift = np.array(asset.numbers("refpos", 3) if "refpos" in asset.attrib else (0.0, 0.0, 0.0))
        turn = asset.numbers("refquat", 4) if "refquat" in asset.attrib else (1.0, 0.0, 0.0, 0.0)
        own = Transform.from_quaternion(shift, turn).inverse()
        return [Part(part.mesh.moved(own).scaled(scale), part.colour) for part in parts]

    def _colour(self, geom: Element) -> Colour | None:
        """The geom's own colour, else its material's."""
        if "rgba" in geom.attrib:
            return _rgb(geom)
        material = self.materials.get(geom.get("material"))
        if material is None:
            return None
        given = self.defaults.resolve(material)
        return _rgb(given) if "rgba" in given.attrib else None


def _solid(kind: str, size) -> Part:
    """A primitive centred at the origin, axis along z; sizes of geoms are half lengths and radii."""
    if kind == "box":
        return Part.of(kind, *(2 * s for s in size))
    if kind in ("cylinder", "capsule"):
        return Part.of(kind, size[0], 2 * size[1])
    return Part.of(kind, *size)


def _mesh_folder(root: Element) -> str:
    """The compiler's meshdir, otherwise assetdir."""
    folder = ""
    for section in (s for s in root if s.tag == "compiler"):
        folder = section.get("meshdir", section.get("assetdir", folder))
    return folder


def _mesh_name(asset: Element) -> str:
    return asset.get("name") or PurePosixPath(asset.get("file", "").replace("\\", "/")).stem


def _rgb(element: Element) -> Colour:
    red, green, blue, _ = (round(255 * min(max(c, 0.0), 1.0)) for c in element.numbers("rgba", 4))
    return red, green, blue
