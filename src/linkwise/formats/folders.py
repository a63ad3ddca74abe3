"""Which files a robot file may name: those in its own folder or below, and those in folders that the user allows.

Robot files come from strangers. Whatever one names (an included file, an attached model, a mesh, a folder of meshes) is
looked for from the folder that the format says, with symbolic links followed to their ends, and opened only where it
lies in one of the allowed folders. Every reader uses these functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath

Folder = str | os.PathLike[str]


class OutsideError(ValueError):
    """A file that must not be opened; the message says why, without the name of the robot file."""


def inside(name: str, folder: Folder, *, start: str = "", allow: Iterable[Folder] = ()) -> Path:
    """The path of a file that a robot file names.

    Args:
        name: the name in the robot file.
        folder: the folder of the robot file; files below it may be opened.
        start: a folder that the robot file names, from which ``name`` is looked for, such as ``meshdir`` of MJCF.
        allow: further folders whose files may be opened; absolute names are for these only.

    Returns:
        The path, without symbolic links; there need not be a file.

    Raises:
        OutsideError: it lies outside these folders, or cannot be a path.
    """
    allowed = tuple(allow)
    if "\0" in name or "\0" in start:
        raise OutsideError(f"file {name!r}: no path has a zero character")
    if (_is_absolute(name) or _is_absolute(start)) and not allowed:
        raise OutsideError(f"file {name!r}: expected a path relative to the folder of the main file")
    try:
        home = Path(folder).resolve()
        path = (home / start / name).resolve()
        tops = [home, *(Path(each).resolve() for each in allowed)]
    except (OSError, RuntimeError, ValueError) as error:
        raise OutsideError(f"file {name!r} cannot be read: {error}") from None
    if not lies_in(path, tops):
        raise OutsideError(
            f"file {name!r} lies outside the folder of the main file; copy it there, or allow its folder"
        )
    return path


def lies_in(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path is one of these folders or below one; all without symbolic links.

    Args:
        path: what is to be opened.
        folders: those that are allowed.
    """
    return any(path.is_relative_to(folder) for folder in folders)


def _is_absolute(name: str) -> bool:
    return PurePosixPath(name).is_absolute() or bool(PureWindowsPath(name).anchor)
