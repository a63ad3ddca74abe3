"""Which elements and attributes an MJCF file may have, and how often.

MuJoCo refuses a file with an element or attribute that it does not know. A reader that passes over them would leave
a default in force where ``<option gravty="0 0 0"/>`` meant something else, so the whole file is checked, also the
sections that are not read further. ``mjcf_schema.txt`` has the names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from linkwise.errors import suggest
from linkwise.model.mjcf_settings import TURNS
from linkwise.model.mjcf_values import check_values
from linkwise.model.xml import Element

FRAME_ATTRIBUTES = ("name", "childclass", "pos", *TURNS)
ONCE = ("!", "?")
SECTIONS_OF_ONE_KIND = ("tendon", "equality", "actuator", "sensor")  # their elements share one set of names


@dataclass
class ElementRule:
    """The attributes and children that an element may have; ``often`` is its mark in ``mjcf_schema.txt``."""

    name: str
    often: str
    attributes: tuple[str, ...]
    children: dict[str, ElementRule] = field(default_factory=dict)


def check_names(root: Element) -> None:
    """Refuse elements, attributes and values that MJCF does not have, and repeated elements that it has once."""
    _check(root, schema())


def _check(element: Element, rule: ElementRule) -> None:
    for attribute in element.attrib:
        if attribute not in rule.attributes:
            raise element.error(f"unknown attribute {attribute!r}; {_valid(attribute, rule.attributes)}")
    turns = [key for key in TURNS if key in element.attrib]
    if len(turns) > 1:
        raise element.error(f"{turns[0]!r} and {turns[1]!r} exclude each other")
    check_values(element)
    count = Counter(child.tag for child in element)
    for child in element:
        inner = rule.children.get(child.tag)
        if inner is None:
            raise child.error(f"unknown element in <{element.tag}>; {_valid(child.tag, rule.children)}")
        if inner.often in ONCE and count[child.tag] > 1:
            raise child.error(f"<{element.tag}> has {count[child.tag]} of them; at most one is allowed")
        _check(child, inner)


def check_unique(root: Element) -> None:
    """Refuse two elements of one kind with one name."""
    for kind, elements in _named(root).items():
        seen: dict[str, Element] = {}
        for element in elements:
            name = element.get("name", "")
            if name in seen:
                raise element.error(f"the {kind} of line {seen[name].line} has this name already")
            seen[name] = element


def _named(root: Element) -> dict[str, list[Element]]:
    """The elements with a name, by what MuJoCo takes as one kind."""
    found: dict[str, list[Element]] = {}
    for section in root:
        for element in section.iter():
            assert isinstance(element, Element)
            if element.get("name") and element is not section:
                kind = section.tag if section.tag in SECTIONS_OF_ONE_KIND else element.tag
                found.setdefault(kind, []).append(element)
    return found


def _valid(name: str, known: Iterable[str]) -> str:
    return suggest(name, known) if known else "it has none"


@cache
def schema() -> ElementRule:
    """The rule of the root element, <mujoco>."""
    text = resources.files("linkwise.model").joinpath("mjcf_schema.txt").read_text("utf-8")
    parents: list[ElementRule] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        head, _, attributes = line.partition(":")
        name, often = head.split()
        rule = ElementRule(name, often, tuple(attributes.replace("|", " ").split()))
        del parents[depth:]
        if parents:
            parents[-1].children[name] = rule
        if often == "R":
            rule.children[name] = rule
        parents.append(rule)
    root = parents[0]
    body = root.children.pop("body")
    body.children["frame"] = ElementRule("frame", "R", FRAME_ATTRIBUTES, body.children)
    root.children["worldbody"] = ElementRule("worldbody", "*", (), body.children)
    return root
