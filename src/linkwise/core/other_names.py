"""Names that people try first, and what to type instead: the table ``other_names.txt``, for Python and commands."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Collection, Iterable
from pathlib import Path


@functools.cache
def _table() -> dict[str, list[tuple[str, str]]]:
    """{section: (name, what to type)}."""
    table: dict[str, list[tuple[str, str]]] = {}
    section: list[tuple[str, str]] = []
    use = ""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if title := re.fullmatch(r"\[(\w+)\]", line):
            section = table.setdefault(title.group(1), [])
        elif line.startswith(" "):
            section += [(name, use) for name in line.split()]
        elif line and not line.startswith("#"):
            use = line
    return table


@functools.cache
def instead_of(section: str) -> dict[str, str]:
    """What to type instead of names that people try on one thing.

    Args:
        section: "robot", "linkwise", a part of it such as "motion", "called", "command" or "option".
    """
    return dict(_table().get(section, []))


def meant(name: str, valid: Collection[str]) -> str | None:
    """The valid name of a method or a command that another library calls ``name``; None where there is none.

    Args:
        name: what was typed.
        valid: names that are possible.
    """
    for section in ("command", "robot", "controller", "argument"):
        method = re.match(r"(?:robot\.|linkwise |)(\w+)", instead_of(section).get(name, ""))
        if method is not None and method.group(1) in valid:
            return method.group(1)
    return None


def nearest(name: str, valid: Iterable[str], most: int = 1) -> list[str]:
    """Valid names that differ from a typed one in few letters; capital letters and underscores do not count. Names
    that share some letters by chance, such as "completion" and "operations", are not near.

    Args:
        name: what was typed.
        valid: names that are possible.
        most: how many are given.
    """
    plain, typed = {_letters(each): each for each in valid}, _letters(name[:100])
    cutoff = NEAR if len(typed) > SHORT else NEAR_SHORT
    return [plain[each] for each in difflib.get_close_matches(typed, plain, n=most, cutoff=cutoff)]


NEAR, NEAR_SHORT = 0.75, 0.6
"""Fraction of letters in common (``difflib``) from which names are near; in a short name one letter counts more."""
SHORT = 4
"""Letters of a short name."""


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def option_instead(name: str, valid: Collection[str]) -> str | None:
    """The option of a command that means what was typed, such as ``--duration`` for ``--time``; None if there is none.

    Args:
        name: the option that was typed, with its hyphens.
        valid: the options of the command.
    """
    for use, names in _options().items():
        if name.lstrip("-") in names and use in valid:
            return use
    return next(iter(nearest(name, [each for each in valid if each.startswith("--")])), None)


@functools.cache
def _options() -> dict[str, list[str]]:
    """{option: what people type instead}: one name may mean several options, of which a command has one."""
    table: dict[str, list[str]] = {}
    for name, use in _table().get("option", []):
        table.setdefault(use, []).append(name)
    return table
