"""Robots of the package robot_descriptions, by their names there: ``ur5e_description``, or ``ur5e`` for short.

The package knows where a few hundred robots are kept and downloads one when its module is imported, so nothing is
imported before a name is known to be one of them.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwise.errors import ModelError
from linkwise.formats.files import bundled_names

PACKAGE = "robot_descriptions"
ENDINGS = ("_description", "_mj_description")  # URDF and MJCF


@dataclass(frozen=True)
class RobotSource:
    """Where a robot is: what ``linkwise.load`` takes, and folders in which its meshes may be."""

    path: str
    folders: tuple[str, ...] = ()


def locate(name: str) -> RobotSource:
    """Finds a robot by its name: bundled names and files take precedence over descriptions."""
    if name in bundled_names() or os.path.exists(name) or Path(name).suffix or "/" in name:
        return RobotSource(name)
    known = names()
    if name.endswith(ENDINGS[0]) and not known:
        raise ModelError(
            f"{name!r}: no such bundled robot or file; names that end in {ENDINGS[0]} are those of the package "
            f"{PACKAGE}, which is not installed: pip install {PACKAGE}"
        )
    for candidate in (name, *(name + ending for ending in ENDINGS)):
        if candidate in known:
            return _fetched(candidate)
    if name.endswith(ENDINGS[0]):
        raise ModelError(f"{name!r}: {PACKAGE} has no such robot; {_nearest(name, known)}")
    return RobotSource(name)


def names() -> list[str]:
    """Names that the package knows, read from its file names; none where it is not installed."""
    try:
        package = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):  # a module without a spec
        return []
    places = None if package is None else package.submodule_search_locations
    modules = pkgutil.iter_modules(list(places or ()))
    return sorted(module.name for module in modules if module.name.endswith(ENDINGS[0]))


def _fetched(name: str) -> RobotSource:
    try:
        module = importlib.import_module(f"{PACKAGE}.{name}")
    except Exception as error:  # no network, no git, a broken cache: the package passes on any exception
        raise ModelError(f"{name}: {PACKAGE} could not fetch it: {type(error).__name__}: {error}") from error
    path = next((getattr(module, key) for key in ("URDF_PATH", "MJCF_PATH") if hasattr(module, key)), None)
    if path is None:
        raise ModelError(f"{name}: {PACKAGE} has neither a URDF nor an MJCF file of it")
    folders = [getattr(module, key, None) for key in ("PACKAGE_PATH", "REPOSITORY_PATH")]
    return RobotSource(str(path), tuple(str(folder) for folder in folders if folder is not None))


def _nearest(name: str, known: Sequence[str]) -> str:
    """The nearest name, by what comes before the ending they share; all of them would fill a screen."""
    stems = {each.removesuffix(ENDINGS[0]): each for each in known}
    close = difflib.get_close_matches(name.removesuffix(ENDINGS[0]), stems, n=1)
    return f"did you mean {stems[close[0]]!r}?" if close else f"it has {len(known)} others"
