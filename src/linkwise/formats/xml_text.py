"""Elements of XML as text, for writers: names that XML can hold, numbers that read back the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from xml.sax.saxutils import quoteattr

from linkwise.errors import ModelError

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def element(tag: str, attributes: Mapping[str, str], *, indent: int = 2) -> str:
    written = "".join(f" {key}={quoted(text)}" for key, text in attributes.items())
    return f"{'  ' * indent}<{tag}{written}/>"


def quoted(text: str) -> str:
    if _NOT_XML.search(text):
        raise ModelError(f"name {text!r}: it has a character that XML cannot hold")
    return quoteattr(text)


def numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)
