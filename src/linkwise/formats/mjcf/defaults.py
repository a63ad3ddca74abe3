"""MJCF's default classes: which attributes an element has once its class is taken into account."""

from __future__ import annotations

from collections.abc import Mapping

from linkwise.errors import suggest
from linkwise.formats.mjcf.settings import TURNS
from linkwise.formats.xml import Element

VARIABLE_LENGTH = (
    *("size", "damping", "stiffness", "gear", "gainprm", "biasprm"),
    *("friction", "solref", "solimp"),
)
ACTUATORS = (
    *("general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper", "cylinder"),
    *("muscle", "adhesion", "dcmotor"),
)
MOST_NUMBERS = 100  # that are looked at one by one in such a list; no element has as many
MAIN = "main"  # the class of everything that names none; in older files the outermost <default> may rename it


class Defaults:
    """The classes of a file. A nested class starts from the attributes of the class around it."""

    def __init__(self, root: Element):
        self.classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}}
        self._actuators: dict[str, list[tuple[str, Mapping[str, str]]]] = {MAIN: []}
        for section in root:
            if section.tag == "default":
                name = section.get("class", MAIN)
                self._add(section, name, around=MAIN)
                self.classes[MAIN], self._actuators[MAIN] = self.classes[name], self._actuators[name]

    def check(self, root: Element) -> None:
        """Refuse names of classes that do not exist, also in sections that are not read."""
        for element in root.iter():
            assert isinstance(element, Element)
            for key in ("class", "childclass"):
                name = element.get(key)
                if name is not None and element.tag != "default" and name not in self.classes:
                    raise element.error(f"no default class {name!r}; {suggest(name, self.classes)}")

    def _add(self, section: Element, name: str, around: str) -> None:
        own = {tag: dict(attributes) for tag, attributes in self.classes[around].items()}
        for child in section:
            if child.tag != "default":
                own[child.tag] = merged(own.get(child.tag, {}), child.attrib)
        if name != MAIN and name in self.classes:
            raise section.error(f"a second default class {name!r}")
        self._actuators[name] = [
            *self._actuators[around],
            *((child.tag, child.attrib) for child in section if child.tag in ACTUATORS),
        ]
        self.classes[name] = own
        for child in section:
            if child.tag == "default":
                self._add(child, child.text_of("class"), name)

    def actuators(self, element: Element) -> list[tuple[str, Mapping[str, str]]]:
        """Kind and attributes of all that an actuator inherits, in the order in which it does: unlike other elements,
        actuators of one kind inherit from those of another."""
        return self._actuators[element.get("class") or MAIN]

    def resolve(self, element: Element, childclass: str | None = None, kind: str | None = None) -> Element:
        """The element with what it inherits: from its own class, else from the nearest ``childclass``, else
        from main.

        ``kind`` is the tag under which its defaults stand where that is not its own.
        """
        name = element.get("class") or childclass or MAIN
        attributes = merged(self.classes[name].get(kind or element.tag, {}), element.attrib)
        return Element(element.tag, attributes, element.where, element.line, element.parent)


def merged(inherited: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """What an element has that inherits. As in MuJoCo, one way to write an orientation replaces another, and numbers
    that are left out at the end of a list of variable length are inherited one by one."""
    merged = {**inherited, **own}
    if any(key in own for key in TURNS):
        merged = {key: value for key, value in merged.items() if key not in TURNS or key in own}
    for key in VARIABLE_LENGTH:
        if key in inherited and key in own:
            given = own[key].split(maxsplit=MOST_NUMBERS)
            merged[key] = " ".join([*given, *inherited[key].split(maxsplit=MOST_NUMBERS)[len(given) :]])
    return merged
