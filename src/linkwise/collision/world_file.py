"""Worlds in JSON files: a list of obstacles, checked, of bounded size."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.collision.room import Box
from linkwise.collision.world import (
    Cuboid,
    HalfSpace,
    HeightField,
    Obstacle,
    PointCloud,
    Rod,
    Sphere,
    World,
)
from linkwise.errors import LinkwiseError, ModelError, suggest
from linkwise.files import outputs
from linkwise.model import Transform

MAX_BYTES = 64 << 20
EXAMPLE = '{"obstacles": [{"type": "box", "lower": [0.3, -0.5, 0], "upper": [0.4, -0.1, 0.5]}]}'
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sphere": (("centre", "radius"), ()),
    "capsule": (("start", "end", "radius"), ()),
    "box": ((), ("lower", "upper", "centre", "edges", "rpy", "rotation")),
    "half_space": (("normal", "height"), ()),
    "height_field": (("heights", "spacing"), ("origin", "depth")),
    "point_cloud": (("points",), ("radius", "cell")),
}


def read_world(path: str | os.PathLike[str]) -> World:
    """The world of a JSON file: ``{"obstacles": [{"type": "sphere", "centre": [x, y, z], "radius": r}, ...]}``.

    Args:
        path: the file; docs/planning.md lists its types.

    Raises:
        ModelError: the file cannot be read or describes no world.
    """
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ModelError(f"{file}: larger than the {MAX_BYTES} bytes of a world file")
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: not a JSON file: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("obstacles"), list):
        raise ModelError(f"{file}: expected {EXAMPLE}")
    if unknown := sorted(set(content) - {"obstacles", "name"}):
        raise ModelError(f"{file}: unknown key {unknown[0]!r}; {suggest(unknown[0], ['obstacles', 'name'])}")
    found: list[Obstacle] = []
    for number, entry in enumerate(content["obstacles"]):
        where = f"{file}: obstacle {number + 1}"
        try:
            found.append(_obstacle(entry, where))
        except ModelError:
            raise
        except (LinkwiseError, TypeError, ValueError) as error:
            raise ModelError(f"{where}: {error}") from error
    try:
        return World(found)
    except LinkwiseError as error:
        raise ModelError(f"{file}: {error}") from error


def _obstacle(entry: Any, where: str) -> Obstacle:
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind not in _KEYS:
        kinds = ", ".join(_KEYS)
        raise ModelError(f'{where}: expected a "type" ({kinds}), got {kind!r}; such as {EXAMPLE}')
    needed, optional = _KEYS[kind]
    allowed = ["type", "name", *needed, *optional]
    for key in entry:
        if key not in allowed:
            raise ModelError(f"{where}: unknown key {key!r}; {suggest(key, allowed)}")
    for key in needed:
        if key not in entry:
            raise ModelError(f"{where}: a {kind} needs {key!r}")
    given = {key: value for key, value in entry.items() if key != "type"}
    if not isinstance(given.get("name", ""), str):
        raise ModelError(f"{where}: name: expected text")
    match kind:
        case "sphere":
            return Sphere(**given)
        case "capsule":
            return Rod(**given)
        case "half_space":
            return HalfSpace(**given)
        case "height_field":
            return HeightField(**given)
        case "point_cloud":
            return PointCloud(**given)
    return _box(given, where)


def _box(given: dict[str, Any], where: str) -> Obstacle:
    if {"lower", "upper"} <= set(given) and not {"centre", "edges", "rpy", "rotation"} & set(given):
        return Box(given["lower"], given["upper"])
    if not {"centre", "edges"} <= set(given) or {"lower", "upper"} & set(given):
        raise ModelError(f"{where}: a box needs 'lower' and 'upper', or 'centre' and 'edges' (and 'rpy')")
    if "rotation" in given:
        if "rpy" in given:
            raise ModelError(f"{where}: give either 'rpy' or 'rotation'")
        return Cuboid(**given)
    turn = Numbers().array("rpy", given.get("rpy", (0.0, 0.0, 0.0)))
    centre = Numbers().array("centre", given["centre"])
    if turn.shape != (3,) or centre.shape != (3,):
        raise ModelError(f"{where}: expected three numbers for 'centre' [m] and 'rpy' [rad]")
    x, y, z = centre.tolist()
    roll, pitch, yaw = turn.tolist()
    return Cuboid.placed(
        Transform.from_rpy((x, y, z), (roll, pitch, yaw)), given["edges"], given.get("name", "")
    )


def write_world(world: World, path: str | os.PathLike[str]) -> None:
    """Write a world as a JSON file that ``read_world`` reads; boxes with axes of their own are written as such.

    Args:
        world: the world.
        path: the file.
    """
    entries = [_entry(each) for each in world.obstacles]
    outputs.write(path, json.dumps({"obstacles": entries}, indent=1) + "\n")


def _entry(each: Obstacle) -> dict[str, Any]:
    names = {
        Sphere: "sphere", Rod: "capsule", HalfSpace: "half_space", HeightField: "height_field",
        PointCloud: "point_cloud", Box: "box", Cuboid: "box",
    }  # fmt: skip
    kind = names[type(each)]
    needed, optional = _KEYS[kind]
    entry: dict[str, Any] = {"type": kind}
    for key in (*needed, *optional, "name"):
        value = getattr(each, key, None)
        if value is not None and not (isinstance(value, str) and not value):
            entry[key] = value if isinstance(value, str) else np.asarray(value).tolist()
    return entry
