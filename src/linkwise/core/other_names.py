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
    """Valid names that have the same words as a typed one, else those that differ in few letters; capital letters and
    underscores do not count. Names that share letters by chance, such as "completion" and "operations", are not near.

    Args:
        name: what was typed.
        valid: names that are possible.
        most: how many are given.
    """
    plain, typed = {_letters(each): each for each in valid}, _letters(name[:100])
    if typed in plain:
        return [plain[typed]]
    if same := [each for each in plain.values() if words_of(each) == words_of(name)]:
        return same[:most]
    if len(typed) < SHORTEST:
        return []
    if len(typed) <= SHORT:
        return [each for plain_name, each in plain.items() if _one_letter_apart(typed, plain_name)][:most]
    near = difflib.get_close_matches(typed, plain, n=most, cutoff=NEAR)
    if not near:
        near = difflib.get_close_matches(
            typed, [each for each in plain if each[:1] == typed[0]], n=most, cutoff=NEAR_FROM_THE_START
        )
    return [plain[each] for each in near]


NEAR = 0.8
"""Fraction of letters in common (``difflib``) from which long names are near."""
NEAR_FROM_THE_START = 0.75
"""The same for names that begin with the same letter: "columb" and "coulomb"."""
SHORT = 4
"""Letters of a short name, in which one letter may differ."""
SHORTEST = 3
"""Letters of the shortest name that is near others: of two, one would be half of the name."""
FILLERS = frozenset(
    {
        "a",
        "an",
        "arm",
        "calc",
        "calculate",
        "class",
        "compute",
        "control",
        "controller",
        "create",
        "do",
        "fn",
        "for",
        "func",
        "function",
        "get",
        "in",
        "law",
        "make",
        "method",
        "mj",
        "model",
        "my",
        "of",
        "robot",
        "run",
        "set",
        "the",
        "to",
    }
)
"""Words that say nothing about which name is meant: get_jacobian, PDController."""


@functools.cache
def words_of(name: str) -> frozenset[str]:
    """The words of a name in camel or snake case, in the singular, without those that say nothing.

    >>> sorted(words_of("getMassMatrix"))
    ['mass', 'matrix']
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)
    words = [part.lower() for part in parts]
    single = [singular(word) for word in words]
    return frozenset(word for word in single if word not in FILLERS) or frozenset(single)


def singular(word: str) -> str:
    """The singular of a noun in small letters.

    >>> [singular(word) for word in ("torques", "velocities", "matrices", "mass")]
    ['torque', 'velocity', 'matrix', 'mass']
    """
    if word in PLURALS:
        return PLURALS[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word[-1] == "s" != word[-2] else word


PLURALS = {
    "matrices": "matrix",
    "indices": "index",
    "vertices": "vertex",
    "bodies": "body",
    "series": "series",
}


def by_words(name: str, section: str) -> str | None:
    """What to type instead of a name, where the table has one with the same words; None if it has none.

    Args:
        name: what was typed.
        section: a section of the table.
    """
    return instead_of(section).get(name) or _by_words(section).get(words_of(name))


@functools.cache
def _by_words(section: str) -> dict[frozenset[str], str]:
    table: dict[frozenset[str], str] = {}
    for name, use in instead_of(section).items():
        table.setdefault(words_of(name), use)
    return table


def related(name: str, valid: Iterable[str], most: int = 3) -> list[str]:
    """Valid names that share a word with a typed one, those with most words in common first. A word that many names
    have is no sign of what is meant, nor is a number ("ros2", "atan2").

    Args:
        name: what was typed.
        valid: names that are possible.
        most: how many are given.
    """
    typed, names = frozenset(word for word in words_of(name) if not word.isdigit()), list(valid)
    shared = {word: [each for each in names if word in words_of(each)] for word in typed}
    told = {word for word, each in shared.items() if 0 < len(each) <= COMMON}
    found = [each for each in names if words_of(each) & told]
    return sorted(found, key=lambda each: -len(words_of(each) & typed) / len(words_of(each) | typed))[:most]


COMMON = 5
"""Names that may share a word before it says nothing."""


def _one_letter_apart(one: str, other: str) -> bool:
    """Whether a letter was left out, added, exchanged or swapped with its neighbour. The first letter is not exchanged:
    of a short name it is half of the meaning ("bag", "lag")."""
    if abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 2:
        return False
    k = next(
        (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    swapped = one[:k] + one[k + 1 : k + 2] + one[k : k + 1] + one[k + 2 :]
    return (
        (k > 0 and one[k + 1 :] == other[k + 1 :])
        or one[k + 1 :] == other[k:]
        or one[k:] == other[k + 1 :]
        or swapped == other
    )


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
