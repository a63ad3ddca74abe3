"""MJCF's default classes: which attributes an element has once its class is taken into account."""

from __future__ import annotations

from linkwise.model.model import suggest
from linkwise.model.xml import Element

MAIN = "main"  # the class of everything that names none; in older files the outermost <default> may rename it


class Defaults:
    """The classes of a file. A nested class starts from the attributes of the class around it."""

    def __init__(self, root: Element):
        self.classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}}
        for section in root:
            if section.tag == "default":
                name = section.get("class", MAIN)
                self._add(section, name, inherited=self.classes[MAIN])
                self.classes[MAIN] = self.classes[name]

    def _add(self, section: Element, name: str, inherited: dict[str, dict[str, str]]) -> None:
        own = {tag: dict(attributes) for tag, attributes in inherited.items()}
        for child in section:
            if child.tag != "default":
                own.setdefault(child.tag, {}).update(child.attrib)
        self.classes[name] = own
        for child in section:
            if child.tag == "default":
                self._add(child, child.text_of("class"), own)

    def resolve(self, element: Element, childclass: str | None = None, kind: str | None = None) -> Element:
        """The element with what it inherits: from its own class, else from the nearest ``childclass``, else
        from main.

        ``kind`` is the tag under which its defaults stand where that is not its own.
        """
        name = element.get("class") or childclass or MAIN
        if name not in self.classes:
            raise element.error(f"no default class {name!r}; {suggest(name, self.classes)}")
        attributes = {**self.classes[name].get(kind or element.tag, {}), **element.attrib}
        return Element(element.tag, attributes, element.where, element.line, element.parent)
