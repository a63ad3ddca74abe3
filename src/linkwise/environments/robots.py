"""Files of robots that are not bundled: where they are looked for."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

from linkwise.errors import ModelError, ModelWarning
from linkwise.robot.loading import load
from linkwise.robot.robot import Robot

FOLDERS = "LINKWISE_ROBOTS"
"""Environment variable: folders with robots, such as a copy of MuJoCo Menagerie."""
FILES = {
    "go2": ("unitree_go2/go2_mjx.xml", "go2_description/urdf/go2.urdf"),
    "anymal": ("anybotics_anymal_b/anymal_b.xml", "anymal_b_simple_description/robots/anymal.urdf"),
    "g1": ("unitree_g1/g1.xml", "g1_description/urdf/g1_29dof.urdf"),
}


def found(name: str, given: Robot | str | Path | None) -> Robot:
    """The robot that was given, or its file in the folders that there are.

    Args:
        name: of ``FILES``.
        given: a robot, a path, or None: ``LINKWISE_ROBOTS``, robot_descriptions' copy of MuJoCo Menagerie, and
            example-robot-data.
    """
    if isinstance(given, Robot):
        return given
    if given is not None:
        return _loaded(Path(given))
    for folder in _folders():
        for file in FILES[name]:
            if (folder / file).is_file():
                return _loaded(folder / file)
    raise ModelError(
        f"{name}: no file {' or '.join(FILES[name])}; git clone https://github.com/google-deepmind/mujoco_menagerie "
        f"and set {FOLDERS} to that folder, or give robot=FILE"
    )


def _loaded(path: Path) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load(path)


def _folders() -> list[Path]:
    parts: list[Path] = [Path(part) for part in os.environ.get(FOLDERS, "").split(os.pathsep) if part]
    cache: Any = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
    parts.append(Path(cache).expanduser() / "mujoco_menagerie")
    spec = importlib.util.find_spec("example_robot_data")
    if spec is not None and spec.origin is not None:
        share = Path(spec.origin).parents[4] / "share" / "example-robot-data" / "robots"
        parts += [share, *(Path(path) for path in spec.submodule_search_locations or ())]
    return parts
