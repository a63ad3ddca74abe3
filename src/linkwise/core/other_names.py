"""Names that people try first, and what to type instead: the table ``other_names.txt``, for Python and commands."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from pathlib import Path


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    """{section: {name: what to type}}."""
    table: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    use = ""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if title := re.fullmatch(r"\[(\w+)\]", line):
            section = table.setdefault(title.group(1), {})
        elif line.startswith(" "):
            section.update(dict.fromkeys(line.split(), use))
        elif line and not line.startswith("#"):
            use = line
    return table


def instead_of(section: str) -> dict[str, str]:
    """What to type instead of names that people try on one thing.

    Args:
        section: "robot", "linkwise", a part of it such as "motion", "called" or "command".
    """
    return _table().get(section, {})


def meant(name: str, valid: Collection[str]) -> str | None:
    """The valid name of a method or a command that another library calls ``name``; None where there is none.

    Args:
        name: what was typed.
        valid: names that are possible.
    """
    for section in ("command", "robot"):
        method = re.match(r"(?:robot\.|linkwise )(\w+)", instead_of(section).get(name, ""))
        if method is not None and method.group(1) in valid:
            return method.group(1)
    return None
