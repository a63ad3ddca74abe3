"""The robot itself, as TOML in a <custom> text of an MJCF file that Linkwise wrote.

MJCF cannot hold everything that a robot has, nor its numbers to the last bit. The copy does, and counts as long as the
rest of the file is what Linkwise wrote, which a digest shows.
"""

from __future__ import annotations

import hashlib
import re

from linkwise.errors import ModelWarning, warn
from linkwise.formats.toml.reader import read_toml, write_toml
from linkwise.formats.xml import Element
from linkwise.formats.xml_text import element
from linkwise.model.model import Model

ROBOT, DIGEST = "linkwise_robot", "linkwise_digest"
_CUSTOM = re.compile(rb"  <custom>\n.*?\n  </custom>\n", re.DOTALL)


def with_copy(text: str, model: Model) -> str:
    """The text of an MJCF file with a copy of its robot."""
    lines = [
        "  <custom>",
        element("text", {"name": DIGEST, "data": _digest(text.encode())}),
        element("text", {"name": ROBOT, "data": write_toml(model)}),
        "  </custom>",
        "</mujoco>",
    ]
    return text.removesuffix("</mujoco>\n") + "\n".join(lines) + "\n"


def copy_in(root: Element, data: bytes, where: str) -> Model | None:
    """The copy, where there is one and the file was not edited since."""
    texts = {
        inner.get("name"): inner
        for section in root
        if section.tag == "custom"
        for inner in section
        if inner.tag == "text"
    }
    robot, digest = texts.get(ROBOT), texts.get(DIGEST)
    if robot is None or digest is None:
        return None
    if digest.get("data") != _digest(_CUSTOM.sub(b"", data, count=1)):
        warn(
            f"{where}: the file was edited after Linkwise wrote it; its elements count, and what MJCF has no words for "
            "(speed limits, friction that differs by direction) is lost",
            ModelWarning,
        )
        return None
    return read_toml(robot.text_of("data").encode(), where)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
