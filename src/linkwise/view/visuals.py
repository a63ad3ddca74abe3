"""How a URDF file wants its robot to look: the ``<visual>`` elements, with their meshes where they are found.

A mesh is looked for inside the file's own folder tree (its folder, or the folder above where that one is called
``urdf`` or the like, as in ROS packages) and inside folders that the user names; nowhere else, whatever the path in
the file says. ``package://name/meshes/link1.stl`` is found there as ``name/meshes/link1.stl`` or ``meshes/link1.stl``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from linkwise.errors import ModelError
from linkwise.model import Transform
from linkwise.model.xml import Element, parse_xml
from linkwise.view import solids
from linkwise.view.meshes import ENDINGS, MAX_BYTES, Colour, Part, read_mesh

MAX_VISUALS = 2000
MAX_TOTAL_BYTES = 256 * 1024 * 1024
_INNER_FOLDERS = ("urdf", "robots", "robot", "xacro", "model", "models")


@dataclass(frozen=True)
class Visual:
    """A part of a link, at its pose in the link's frame."""

    link: str
    pose: Transform
    part: Part


@dataclass(frozen=True)
class Looks:
    """What could be shown of a file, and one line for everything that could not."""

    visuals: tuple[Visual, ...] = ()
    problems: tuple[str, ...] = ()


def read_looks(path: str | os.PathLike[str], folders: Iterable[str | os.PathLike[str]] = ()) -> Looks:
    """The visuals of a URDF file; nothing for other files."""
    file = Path(path)
    if not file.is_file() or file.stat().st_size > MAX_BYTES:
        return Looks()
    data = file.read_bytes()
    if b"<robot" not in data:
        return Looks()
    root = parse_xml(data, str(file))
    if root.tag != "robot":
        return Looks()
    return _Reader(root, _roots(file, folders)).looks()


def _roots(file: Path, folders: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The folders inside which meshes are looked for."""
    own = Path(os.path.realpath(file)).parent
    if own.name.lower() in _INNER_FOLDERS and own.parent != own:
        own = own.parent
    return [own, *(Path(os.path.realpath(folder)) for folder in folders)]


def find_mesh(name: str, roots: Sequence[Path]) -> Path | None:
    """The file that a mesh's name stands for, if it lies inside one of the folders."""
    plain = name.split("://", 1)[-1] if "://" in name else name
    steps = [step for step in PurePosixPath(plain.replace("\\", "/")).parts if step not in ("/", ".", "..")]
    for root in roots:
        for first in range(len(steps)):
            candidate = Path(os.path.realpath(root.joinpath(*steps[first:])))
            if candidate.is_relative_to(root) and candidate.is_file():
                return candidate
    return None


class _Reader:
    def __init__(self, root: Element, roots: Sequence[Path]):
        self.root, self.roots = root, roots
        self.materials = {m.get("name"): _rgba(m) for m in root if m.tag == "material"}
        self.known: dict[Path, list[Part]] = {}
        self.bytes_read = 0
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
        raise shape.error("a shape that is not known")

    def mesh(self, shape: Element) -> list[Part]:
        name = shape.text_of("filename")
        ending = PurePosixPath(name).suffix.lower()
        if ending not in ENDINGS:
            raise shape.error(f"{name}: meshes are read from {', '.join(ENDINGS)}")
        found = find_mesh(name, self.roots)
        if found is None:
            raise shape.error(f"{name}: no such file inside {' or '.join(map(str, self.roots))}")
        parts = self.read(found, ending)
        if shape.get("scale") is None:
            return parts
        factors = shape.numbers("scale", 3)
        return [Part(part.mesh.scaled(factors), part.colour) for part in parts]

    def read(self, path: Path, ending: str) -> list[Part]:
        if path not in self.known:
            info = path.stat()
            if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
                raise ModelError(f"{path}: not a regular file of at most {MAX_BYTES} bytes")
            self.bytes_read += info.st_size
            if self.bytes_read > MAX_TOTAL_BYTES:
                raise ModelError(f"{self.root.where}: its meshes have more than {MAX_TOTAL_BYTES} bytes")
            self.known[path] = read_mesh(path.read_bytes(), ending, str(path))
        return self.known[path]

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
