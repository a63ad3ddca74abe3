"""Positions that an MJCF file states: its keyframes, in the coordinates of the robot that was read from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.formats.mjcf.defaults import Defaults
from linkwise.formats.mjcf.files import expanded
from linkwise.formats.xml import MAX_BYTES, Element, parse_xml
from linkwise.model import Model

PREFERRED = (
    "home",
    "stand",
    "rest",
    "neutral",
)  # parts of the names of keyframes, in this order; else the first one
WIDTHS = {"free": 7, "ball": 4}  # numbers of a joint in ``qpos``; others have one


def keyframe_position(model: Model) -> np.ndarray | None:
    """Positions (nq,) of a keyframe; None where the robot's file has none, or none that fits it.

    Args:
        model: the robot; its ``source`` is the file.
    """
    try:
        root = _read(model.source)
        if root is None:
            return None
        keys = [
            key for section in root if section.tag == "keyframe" for key in section if "qpos" in key.attrib
        ]
        if not keys:
            return None
        numbers = np.array([float(word) for word in _preferred(keys).text_of("qpos").split()])
        return _in_coordinates(model, list(_joints(root)), numbers)
    except (
        LinkwiseError,
        ValueError,
        OSError,
    ):  # the file was read before: what is odd about it was said then
        return None


def _read(source: Sequence[str]) -> Element | None:
    file = Path(source[0]) if source else None
    if file is None or not file.is_file() or file.stat().st_size > MAX_BYTES:
        return None
    data = file.read_bytes()
    if b"<mujoco" not in data:
        return None
    return expanded(parse_xml(data, str(file)), str(file), source[1:])


def _preferred(keys: Sequence[Element]) -> Element:
    for word in PREFERRED:
        for key in keys:
            if word in key.get("name", "").lower():
                return key
    return keys[0]


def _joints(root: Element) -> Iterator[tuple[str, int]]:
    """Names of the joints in the order of ``qpos``, with their numbers there."""
    defaults = Defaults(root)

    def of_body(body: Element, childclass: str | None) -> Iterator[tuple[str, int]]:
        items = list(_through_frames(body, body.get("childclass", childclass)))
        for child, inherited in items:
            if child.tag == "freejoint":
                yield child.get("name", ""), WIDTHS["free"]
            elif child.tag == "joint":
                kind = defaults.resolve(child, inherited).get("type", "hinge")
                yield child.get("name", ""), WIDTHS.get(kind, 1)
        for child, inherited in items:  # the joints of a body come before those that it carries
            if child.tag == "body":
                yield from of_body(child, inherited)

    for section in root:
        if section.tag == "worldbody":
            yield from of_body(section, None)


def _through_frames(parent: Element, childclass: str | None) -> Iterator[tuple[Element, str | None]]:
    for child in parent:
        if child.tag == "frame":
            yield from _through_frames(child, child.get("childclass", childclass))
        else:
            yield child, childclass


def _in_coordinates(model: Model, joints: Sequence[tuple[str, int]], qpos: np.ndarray) -> np.ndarray | None:
    """The numbers of a keyframe by the robot's joints: by name, those of free bodies in their order."""
    if sum(width for _, width in joints) != len(qpos):
        return None
    ends = np.cumsum([width for _, width in joints])
    places = {name: qpos[end - width : end] for (name, width), end in zip(joints, ends, strict=True) if name}
    free = iter(
        [qpos[end - 7 : end] for (_, width), end in zip(joints, ends, strict=True) if width == WIDTHS["free"]]
    )
    found: list[float] = []
    for joint in model.coordinate_joints:
        own = next(free, None) if joint.type == "floating" else places.get(joint.name)
        if own is None or len(own) != joint.nq:
            return None
        *before, w, x, y, z = own if joint.nq > 1 else (0.0, 0.0, 0.0, 0.0)
        found += own.tolist() if joint.nq == 1 else [*before, x, y, z, w]
    return np.array(found) if np.isfinite(found).all() else None
