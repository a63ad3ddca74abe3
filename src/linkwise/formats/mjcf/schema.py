"""Which elements and attributes an MJCF file may have, how often, and what becomes of each.

MuJoCo refuses a file with an element or attribute that it does not know. A reader that passes over them would leave
a default in force where ``<option gravty="0 0 0"/>`` meant something else, so the whole file is checked, also the
sections that are not read further. A reader that passes over an attribute that it does know would take
``<weld torquescale="0">`` for a weld. ``schema.txt`` therefore accounts for every attribute: it is read, or has no
effect on the equation of motion for a stated reason, or is refused. What has no effect is taken out of the tree here,
so no other part of the reader can use an attribute that the table does not list as read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from linkwise.errors import suggest
from linkwise.formats.mjcf.settings import TURNS
from linkwise.formats.mjcf.values import check_values
from linkwise.formats.xml import Element

FRAME_ATTRIBUTES = ("name", "childclass", "pos", *TURNS)
ONCE = ("!", "?")
SECTIONS_OF_ONE_KIND = ("tendon", "equality", "actuator", "sensor")  # their elements share one set of names
NO_EFFECT, REFUSED = "~", "!"  # marks of groups of attributes in ``schema.txt``


@dataclass(frozen=True)
class Account:
    """What becomes of an attribute: it is read; or, with a reason, has no effect; or is refused unless it has the value
    that is harmless."""

    reason: str = ""
    refused: bool = False
    harmless: str = ""

    @property
    def read(self) -> bool:
        return not self.reason


@dataclass
class ElementRule:
    """The attributes and children that an element may have; ``often`` is its mark in ``schema.txt``, ``refused``
    the reason why a file with this element is refused."""

    name: str
    often: str
    attributes: dict[str, Account]
    children: dict[str, ElementRule] = field(default_factory=dict)
    refused: str = ""


def check_names(root: Element) -> None:
    """Refuse elements, attributes and values that MJCF does not have or that cannot be represented, and repeated
    elements that it has once; take out attributes without effect on the equation of motion."""
    _check(root, schema())


def _check(element: Element, rule: ElementRule) -> None:
    if rule.refused:
        raise element.error(rule.refused)
    for attribute, value in element.attrib.items():
        account = rule.attributes.get(attribute)
        if account is None:
            raise element.error(f"unknown attribute {attribute!r}; {_valid(attribute, rule.attributes)}")
        if account.refused and value != account.harmless:
            raise element.error(f"{attribute}={value!r}: {account.reason}")
    turns = [key for key in TURNS if key in element.attrib]
    if len(turns) > 1:
        raise element.error(f"{turns[0]!r} and {turns[1]!r} exclude each other")
    check_values(element)
    for attribute in [key for key in element.attrib if not rule.attributes[key].read]:
        del element.attrib[attribute]
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
    elements: dict[str, list[Element]] = {}
    for section in root:
        for element in section.iter():
            assert isinstance(element, Element)
            if element.get("name") and element is not section:
                kind = section.tag if section.tag in SECTIONS_OF_ONE_KIND else element.tag
                elements.setdefault(kind, []).append(element)
    return elements


def _valid(name: str, known: Iterable[str]) -> str:
    return suggest(name, known) if known else "it has none"


@cache
def schema() -> ElementRule:
    """The rule of the root element, <mujoco>."""
    text = resources.files("linkwise.formats.mjcf").joinpath("schema.txt").read_text("utf-8")
    reasons: dict[str, str] = {}
    parents: list[ElementRule] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        head, _, rest = line.partition(":")
        if head[0] in (NO_EFFECT, REFUSED):
            reasons[head] = rest.strip()
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        name, often = head.split()
        often, refused, why = often.partition(REFUSED) if often != REFUSED else (often, "", "")
        rule = ElementRule(name, often, _accounts(rest.split(), reasons))
        rule.refused = reasons[refused + why] if refused else ""
        del parents[depth:]
        if parents:
            parents[-1].children[name] = rule
        if often == "R":
            rule.children[name] = rule
        parents.append(rule)
    root = parents[0]
    body = root.children.pop("body")
    frame = {name: Account() for name in FRAME_ATTRIBUTES}
    body.children["frame"] = ElementRule("frame", "R", frame, body.children)
    root.children["worldbody"] = ElementRule("worldbody", "*", {}, body.children)
    return root


def _accounts(words: Iterable[str], reasons: dict[str, str]) -> dict[str, Account]:
    """The attributes of one line: those that are read, then groups that begin with the word of a reason."""
    accounts: dict[str, Account] = {}
    group = ""
    for word in words:
        if word[0] in (NO_EFFECT, REFUSED):
            group = word
            continue
        name, _, harmless = word.partition("=")
        accounts[name] = Account(reasons[group], group[0] == REFUSED, harmless) if group else Account()
    return accounts
