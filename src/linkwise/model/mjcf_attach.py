"""<attach>: a body of another MJCF file, with everything it carries, under a prefix.

The other file is read by its own <compiler> and defaults, as in MuJoCo; gravity and the switches of <option> are those
of the file that attaches it. Equalities are included where everything that they name is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from linkwise.errors import suggest
from linkwise.model.link import Frame, Link
from linkwise.model.mjcf_files import inside, read_bounded
from linkwise.model.transform import Transform
from linkwise.model.xml import Element, parse_xml

DEEPEST = 10  # models within models
MOST_ATTACHED = 500  # models in one robot
ENDS = {"joint": ("joint1", "joint2"), "tendon": ("tendon1", "tendon2")}
OTHER_ENDS = ("body1", "body2", "site1", "site2")


def submodel(attach: Element, root: Element, where: str) -> tuple[Element, str]:
    """The root element of the file that an <attach> names, and its path."""
    if "frame" in attach.attrib:
        raise attach.error("frame: only bodies of another model can be attached; give body instead")
    name = attach.text_of("model")
    models = {
        element.get("name", ""): element
        for section in root
        if section.tag == "asset"
        for element in section
        if element.tag == "model"
    }
    if name not in models:
        raise attach.error(f"no <model> {name!r} in the <asset>s; {suggest(name, models) if models else ''}")
    file = models[name].text_of("file")
    path = inside(models[name], Path(where).parent, file)
    inner = parse_xml(read_bounded(models[name], path, file), str(path))
    if inner.tag != "mujoco":
        raise inner.error("the root element of a model that is attached is <mujoco>")
    for section in list(inner):
        if section.tag == "option":  # that of the outer file counts
            inner.remove(section)
    return inner, str(path)


def graft(reader: Any, child: Any, root: str, parent: str, frame: Transform, prefix: str) -> None:
    """Add what ``child`` has read on its link ``root`` to the link ``parent`` of ``reader``, at a pose."""

    def link(name: str) -> str:
        return parent if name == root else f"{prefix}{name}"

    reader.links += [Link(f"{prefix}{each.name}", each.inertia) for each in child.links[1:]]
    for joint in child.joints:
        moved = joint.parent == root and joint.type != "floating"
        origin = frame @ joint.origin if moved else joint.origin
        reader.joints.append(
            replace(
                joint,
                name=f"{prefix}{joint.name}",
                parent=link(joint.parent),
                child=f"{prefix}{joint.child}",
                origin=origin,
            )
        )
    reader.frames += [
        Frame(f"{prefix}{each.name}", link(each.link), frame @ each.pose if each.link == root else each.pose)
        for each in child.frames
    ]
    reader.named |= {f"{prefix}{name}": joint for name, joint in child.named.items()}
    reader.carried |= {f"{prefix}{name}": body for name, body in child.carried.items()}
    reader.drawn |= {f"{prefix}{name}": frame @ pose for name, pose in child.drawn.items()}
    reader.taken |= {f"{prefix}{name}" for name in child.taken}
    reader.held += _renamed(child, prefix)
    reader.attached_tendons |= _renamed_tendons(child, prefix)


def _renamed(child: Any, prefix: str) -> Iterator[Element]:
    """The equalities of a model between parts of it that were read, with their new names."""
    known = {
        "joint": set(child.named),
        "body": {each.name for each in child.links},
        "site": {each.name for each in child.frames},
        "tendon": {name[len(prefix) :] for name in _renamed_tendons(child, prefix)},
    }
    for equality in child.equalities():
        keys = [key for key in ENDS.get(equality.tag, OTHER_ENDS) if key in equality.attrib]
        if all(equality.get(key) in known[key[:-1]] for key in keys):
            yield _with_prefix(equality, (*keys, "name"), prefix)


def _renamed_tendons(child: Any, prefix: str) -> dict[str, Element]:
    """The fixed tendons whose joints were all read, with the new names of these."""
    found: dict[str, Element] = {}
    for name, tendon in child.tendons().items():
        if tendon.tag == "fixed" and all(each.get("joint") in child.named for each in tendon):
            copy = _with_prefix(tendon, ("name",), prefix)
            for each in tendon:
                copy.append(_with_prefix(each, ("joint",), prefix))
            found[f"{prefix}{name}"] = copy
    return found


def _with_prefix(element: Element, keys: Iterable[str], prefix: str) -> Element:
    renamed = {key: f"{prefix}{element.get(key)}" for key in keys if key in element.attrib}
    return Element(element.tag, {**element.attrib, **renamed}, element.where, element.line, element.parent)
