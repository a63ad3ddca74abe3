"""SRDF files: pairs of links that a setup assistant found to touch always or never."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from linkwise.errors import ModelError
from linkwise.formats.xml import MAX_BYTES, parse_xml


class DisabledPair(NamedTuple):
    """Two links whose collision is not checked, and the reason that the file states."""

    first: str
    second: str
    reason: str


def read_srdf(path: str | os.PathLike[str]) -> list[DisabledPair]:
    """The ``<disable_collisions>`` elements of an SRDF file; nothing else of it is used.

    Args:
        path: the file.

    Raises:
        ModelError: the file cannot be read, or is no SRDF file.
    """
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ModelError(f"{file}: larger than {MAX_BYTES} bytes")
        data = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}") from error
    root = parse_xml(data, str(file))
    if root.tag != "robot":
        raise ModelError(f"{file}: expected the root element <robot> of SRDF, got <{root.tag}>")
    if any(element.tag == "link" for element in root):
        raise ModelError(f"{file}: this is a URDF file, expected an SRDF file")
    return [
        DisabledPair(element.text_of("link1"), element.text_of("link2"), element.get("reason") or "")
        for element in root
        if element.tag == "disable_collisions"
    ]
