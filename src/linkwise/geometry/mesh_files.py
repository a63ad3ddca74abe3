"""Search paths and size limits for the mesh files of a robot file.

A mesh is searched inside the file's own folder tree (its folder, or the package that has it in a folder called
``urdf`` or the like, as in ROS) and inside folders that the user names; and nowhere else, also for absolute
paths in the file. ``package://name/meshes/link1.stl`` is found there as ``name/meshes/link1.stl`` or
``meshes/link1.stl``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from linkwise.errors import ModelError
from linkwise.formats.folders import lies_in
from linkwise.formats.xml import Element
from linkwise.geometry.meshes import ENDINGS, MAX_BYTES, read_mesh
from linkwise.geometry.solids import Part

MAX_TOTAL_BYTES = 256 * 1024 * 1024
_INNER_FOLDERS = ("urdf", "robots", "robot", "xacro", "model", "models")
_IN_PACKAGES = ("package.xml", "meshes", "mesh", "collisions", "collision", "visuals", "visual")
"""A folder above that has one of these is a package; others, such as a home folder, are not searched."""


def folders_of(file: Path, folders: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Folders inside which meshes are searched."""
    own = Path(os.path.realpath(file)).parent
    if own.name.lower() in _INNER_FOLDERS and any((own.parent / name).exists() for name in _IN_PACKAGES):
        own = own.parent
    return [own, *(Path(os.path.realpath(folder)) for folder in folders)]


def find_mesh(name: str, roots: Sequence[Path]) -> Path | None:
    """Path of a mesh, if it lies inside one of the folders; otherwise None."""
    plain = name.split("://", 1)[-1] if "://" in name else name
    steps = [step for step in PurePosixPath(plain.replace("\\", "/")).parts if step not in ("/", ".", "..")]
    for root in roots:
        for first in range(len(steps)):
            named = root.joinpath(*steps[first:])
            if not named.is_file():
                continue
            candidate = Path(os.path.realpath(named))
            if lies_in(candidate, [root]):
                return candidate
    return None


class MeshFiles:
    """Reads meshes by their names in a robot file; each file is read once.

    Args:
        roots: folders in which they are searched.
        shown: whether they are drawn, see ``read_mesh``.
    """

    def __init__(self, roots: Sequence[Path], *, shown: bool = True):
        self.roots, self.shown = list(roots), shown
        self.known: dict[Path, list[Part]] = {}
        self.bytes_read = 0

    def read(self, element: Element, name: str) -> list[Part]:
        """Parts of the mesh ``name``; errors name ``element`` and its place in the file."""
        ending = PurePosixPath(name).suffix.lower()
        if ending not in ENDINGS:
            raise element.error(f"{name}: meshes are read from {', '.join(ENDINGS)}")
        path = find_mesh(name, self.roots)
        if path is None:
            raise element.error(f"{name}: no such file inside {' or '.join(map(str, self.roots))}")
        if path not in self.known:
            info = path.stat()
            if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
                raise ModelError(f"{path}: not a regular file of at most {MAX_BYTES} bytes")
            self.bytes_read += info.st_size
            if self.bytes_read > MAX_TOTAL_BYTES:
                raise ModelError(f"{element.where}: its meshes have more than {MAX_TOTAL_BYTES} bytes")
            self.known[path] = read_mesh(path.read_bytes(), ending, str(path), shown=self.shown)
        return self.known[path]
