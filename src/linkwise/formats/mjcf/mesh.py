"""The meshes of an MJCF file, opened where a body's inertia comes from them.

A file is looked for in ``meshdir`` (or ``assetdir``) of the <compiler>, beside the model. It must lie in the folder of
the model or below, or in a folder that the user allows, also behind symbolic links; other files are never opened.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from linkwise.core.products import times
from linkwise.errors import suggest
from linkwise.formats.folders import OutsideError, inside
from linkwise.formats.mesh import MOST_BYTES, RULES, Mesh, MeshError, Solid, checked, read_mesh, solid_of
from linkwise.formats.mjcf.defaults import Defaults
from linkwise.formats.mjcf.settings import MjcfSettings, unit
from linkwise.formats.xml import Element
from linkwise.model.transform import Transform

CONTENT_TYPES = {"model/obj": ".obj", "model/stl": ".stl", "model/vnd.mujoco.msh": ".msh"}
MOST_MESHES = 1000  # files that are opened for one robot


class Meshes:
    """The <mesh> elements of a file by name; each is read once, when it is needed."""

    def __init__(
        self,
        root: Element,
        defaults: Defaults,
        settings: MjcfSettings,
        where: str,
        allow: Sequence[str] = (),
    ):
        self.settings, self.folder, self.allow = settings, Path(where).parent, allow
        self.elements: dict[str, Element] = {}
        for section in root:
            for element in section:
                if section.tag == "asset" and element.tag == "mesh":
                    name = element.get("name") or PurePosixPath(element.get("file", "")).stem
                    self.elements[name] = defaults.resolve(element)
        self.known: dict[str, Solid] = {}

    def solid(self, geom: Element) -> Solid:
        """What the mesh of a geom encloses, for unit density, in the frame of the geom."""
        name = geom.text_of("mesh")
        if name not in self.elements:
            raise geom.error(
                f"no mesh {name!r}; {suggest(name, self.elements) if self.elements else 'the file has none'}"
            )
        if name not in self.known:
            if len(self.known) >= MOST_MESHES:
                raise geom.error(f"more than {MOST_MESHES} meshes are needed")
            self.known[name] = self._read(self.elements[name], geom)
        return self.known[name]

    def _read(self, element: Element, geom: Element) -> Solid:
        if "builtin" in element.attrib and element.get("builtin") != "none":
            raise element.error(
                f"builtin={element.get('builtin')!r}: the inertia of a mesh that MuJoCo makes is not computed; "
                f"add an <inertial> to the body of line {geom.line}"
            )
        rule = element.get("inertia", self.settings.mesh_inertia)
        if rule not in RULES:
            raise element.error(f"inertia={rule!r}: expected one of {', '.join(RULES)}")
        try:
            mesh = self._inline(element) if "vertex" in element.attrib else self._file(element, geom)
            return solid_of(self._placed(element, mesh), rule, element.integer("maxhullvert", -1))
        except MeshError as error:
            name = element.get("file") or element.get("name")
            raise element.error(f"mesh {name!r}: {error}") from None

    def _placed(self, element: Element, mesh: Mesh) -> Mesh:
        """The mesh as MuJoCo moves it: seen from the reference frame, then scaled along its axes."""
        vertices = mesh.vertices
        if "refpos" in element.attrib:
            vertices = vertices - np.array(element.numbers("refpos", 3))
        if "refquat" in element.attrib:
            w, x, y, z = unit(element, "refquat", element.numbers("refquat", 4)).tolist()
            vertices = times(vertices, Transform.from_quaternion((0, 0, 0), (w, x, y, z)).rotation)
        scale = element.numbers("scale", 3) if "scale" in element.attrib else (1.0, 1.0, 1.0)
        if 0.0 in scale:
            raise element.error(f"scale={element.get('scale')!r}: expected numbers that are not zero")
        return Mesh(vertices, mesh.faces).scaled(np.array(scale))

    def _inline(self, element: Element) -> Mesh:
        vertices = element.numbers("vertex", len(element.text_of("vertex").split()))
        faces = (
            element.integers("face", len(element.text_of("face").split())) if "face" in element.attrib else ()
        )
        if len(vertices) % 3 or len(faces) % 3:
            raise element.error("vertex and face need three numbers each for every vertex and triangle")
        return checked(np.array(vertices).reshape(-1, 3), np.array(faces, dtype=int).reshape(-1, 3))

    def _file(self, element: Element, geom: Element) -> Mesh:
        path = self._path(element)
        try:
            info = path.stat()
        except FileNotFoundError:
            raise element.error(
                f"the mesh file {str(path)!r} is missing; the inertia of the body of line {geom.line} comes from it"
            ) from None
        except (OSError, ValueError) as error:
            raise element.error(f"the mesh file {str(path)!r} cannot be read: {error}") from None
        if not stat.S_ISREG(info.st_mode):
            raise element.error(f"the mesh file {str(path)!r} is not a regular file")
        if info.st_size > MOST_BYTES:
            raise MeshError(f"it has {info.st_size} bytes; at most {MOST_BYTES} are read")
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise element.error(f"the mesh file {str(path)!r} cannot be read: {error.strerror}") from None
        return read_mesh(data, self._ending(element, path))

    def _ending(self, element: Element, path: Path) -> str:
        """The format of a mesh file: what ``content_type`` says, else its ending."""
        kind = element.get("content_type")
        if kind is not None and kind not in CONTENT_TYPES:
            raise element.error(f"content_type={kind!r}: expected one of {', '.join(CONTENT_TYPES)}")
        return path.suffix.lower() if kind is None else CONTENT_TYPES[kind]

    def _path(self, element: Element) -> Path:
        name = element.text_of("file")
        if self.settings.strippath:
            name = PureWindowsPath(name).name
        try:
            return inside(name, self.folder, start=self.settings.meshdir, allow=self.allow)
        except OutsideError as error:
            raise element.error(str(error)) from None
