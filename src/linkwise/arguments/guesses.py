"""Names that people try first say what to type instead, from the table of ``core.other_names``.

``robot.fk`` raises an AttributeError with the text "fk: use robot.pose(q)": ``hasattr`` is False, and neither ``dir``
nor completion lists the name.

Robots must not have a ``__getattr__``: CPython looks up methods without creating an object for each call only in
classes that have none (a call of ``gravity_torques`` took 570 instead of 220 ns with one). Therefore every name is a
descriptor in a base class that comes last, and the misspellings are likely ones, made from the real names.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from linkwise.core.other_names import PLURALS, by_words, instead_of, nearest, related, singular, words_of
from linkwise.errors import DtypeError

ROBOT_GUESSES, MODULE_GUESSES = instead_of("robot"), instead_of("linkwise")
PARTS = (
    "linkwise",
    *["control", "motion", "optimal", "simulate", "collision", "identify", "environments", "view"],
)
"""Sections of the table whose names people look for in the module ``linkwise``, too."""
CONFUSED = ["iy", "yi", "ae", "ea", "ei", "ie", "sz", "zs", "ck", "kc", "oe"]
"""Letters written one for the other."""


def misspellings(name: str) -> Iterator[str]:
    """Likely misspellings of a name and other ways to write it: a letter left out, doubled, confused or swapped with
    its neighbour, camel case, without underscores, with or without an s, with get or compute before it."""
    words = name.split("_")
    yield words[0] + "".join(word.capitalize() for word in words[1:])
    yield "".join(words)
    for before in ("get", "compute", "calc"):
        yield f"{before}_{name}"
        yield before + "".join(word.capitalize() for word in words)
    for k in range(len(words)):
        other = "_".join([*words[:k], _number(words[k]), *words[k + 1 :]])
        yield from (other, f"get_{other}")
    for k in range(len(name)):
        yield name[:k] + name[k + 1 :]
        yield name[:k] + name[k] + name[k:]
        if k + 1 < len(name):
            yield name[:k] + name[k + 1] + name[k] + name[k + 2 :]
        yield from (name[:k] + pair[1] + name[k + 1 :] for pair in CONFUSED if name[k] == pair[0])


def _ways(name: str) -> Iterator[str]:
    """Other ways to write a name of the table: snake and camel case, singular and plural, with get before it."""
    if len(name) < 3 or name.startswith("mj"):
        return
    words = _CAPITAL.sub("_", name).lower().split("_")
    snake = "_".join(words)
    camel = words[0] + "".join(map(str.capitalize, words[1:]))
    yield from (snake, camel, _number(snake), _number(camel))
    if words[0] not in ("get", "compute"):
        yield from (f"get_{snake}", f"get{camel[0].upper()}{camel[1:]}", f"compute_{snake}")


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _number(word: str) -> str:
    """The other number of a noun: torque, torques; matrix, matrices."""
    one = singular(word)
    if one != word:
        return one
    plural = next((plural for plural, each in PLURALS.items() if each == word != plural), None)
    return plural or (word[:-1] + "ies" if word[-1:] == "y" and word[-2:-1] not in "aeiou" else word + "s")


class Guess:
    """An attribute of robots that says what to type instead."""

    __slots__ = ("meant", "name", "use")

    def __init__(self, name: str, meant: str | None, use: str = ""):
        self.name, self.meant, self.use = name, meant, use

    def __get__(self, robot: Any, owner: type | None = None) -> Any:
        if self.meant is None:
            raise AttributeError(f"{self.name}: use {self.use}")
        raise AttributeError(f"Robot has no attribute {self.name!r}; did you mean {self.meant!r}?")


class RobotType(type):
    """The class of ``Robot``: adds a last base class with the guesses, which are not listed, and raises a helpful
    error for names that the class does not have."""

    def __new__(mcls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> Any:
        if not any(isinstance(base, mcls) for base in bases):
            names = {name for base in bases for name in public_names(base)}
            bases = (*bases, _answering(names | {name for name in content if not name.startswith("_")}))
        return super().__new__(mcls, name, bases, content)

    def __dir__(cls) -> list[str]:
        return _without_guesses(cls, super().__dir__())

    def __getattr__(cls, name: str) -> Any:
        names = () if name.startswith("_") else public_names(cls)
        raise AttributeError(answer(name, "Robot", names, "linkwise", "robot"))


def _answering(names: set[str]) -> type:
    """A class whose attributes are the guesses and the likely misspellings of these names."""
    found: dict[str, Any] = {}
    for name, use in ROBOT_GUESSES.items():
        found |= {way: Guess(way, None, use) for way in _ways(name) if way not in ROBOT_GUESSES}
    found |= {name: Guess(name, None, use) for name, use in ROBOT_GUESSES.items()}
    for name in sorted(names):
        if len(name) > 3:
            found |= {wrong: Guess(wrong, name) for wrong in misspellings(name) if wrong not in found}
    for name in names:
        found.pop(name, None)
    return type.__new__(RobotType, "Guesses", (), {"__slots__": (), "__dir__": _listed, **found})


def _listed(robot: Any) -> list[str]:
    """What ``dir`` gives, before and after the first call: without guesses, and without what a robot remembers."""
    remembered = {name for name in vars(robot) if name.startswith("_")}
    return [name for name in _without_guesses(type(robot), object.__dir__(robot)) if name not in remembered]


def _without_guesses(cls: type, names: Iterable[str]) -> list[str]:
    *others, guesses, _ = cls.__mro__
    real = set().union(
        *(base.__dict__ for base in others)
    )  # a derived class may have a method of such a name
    return [name for name in names if name in real or name.startswith("_") or name not in guesses.__dict__]


def public_names(cls: type) -> list[str]:
    """Names of methods, properties and, from annotations, of attributes."""
    annotated = [name for base in cls.__mro__ for name in inspect.get_annotations(base)]
    return [name for name in (*dir(cls), *annotated) if not name.startswith("_")]


def answer(name: str, owner: str, names: Iterable[str], *sections: str) -> str:
    """What to type instead of a name that ``owner`` does not have: from sections of the table, or names that are near
    or about the same thing."""
    if name.startswith("_"):
        return f"{owner} has no attribute {name!r}"
    names = list(names)
    for section in sections:
        if name in instead_of(section):
            return f"{name}: use {instead_of(section)[name]}"
    if not any(words_of(each) == words_of(name) for each in names):
        for section in sections:
            if use := by_words(name, section):
                return f"{name}: use {use}"
    close = nearest(name, names, most=3) or related(name, names)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"{owner} has no attribute {name!r}{hint}"


class Part(ModuleType):
    """A part of the package: names that it does not have, and calls of itself, say what to type."""

    def __getattr__(self, name: str) -> Any:
        part = self.__name__.rpartition(".")[2]
        names = vars(self).get("__all__", ())
        raise AttributeError(answer(name, f"module {self.__name__!r}", names, part))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        raise DtypeError(
            f"{self.__name__} is a module: use {instead_of('called')[self.__name__.rpartition('.')[2]]}"
        )


def answer_for(module: str) -> None:
    """Let a part answer what to type instead of names that it does not have."""
    sys.modules[module].__class__ = Part


def module_answer(name: str, names: Iterable[str], methods: Iterable[str], robots: Iterable[str] = ()) -> str:
    """The same for the module ``linkwise``: a robot's methods are guessed there, too."""
    if name in MODULE_GUESSES:
        return f"{name}: use {MODULE_GUESSES[name]}"
    if name in ROBOT_GUESSES:
        return f"{name}: use {ROBOT_GUESSES[name]} with robot = linkwise.load('panda') or of a file"
    if name.lower() in robots:
        return f"{name}: use linkwise.load({name.lower()!r})"
    if name in methods:
        return f"{name} belongs to robots: robot.{name} with robot = linkwise.load('panda') or of a file"
    return answer(name, "module 'linkwise'", names, *PARTS, "robot")
