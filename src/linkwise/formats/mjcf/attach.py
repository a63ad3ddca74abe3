"""<attach>: a body of another MJCF file, with everything it carries, under a prefix.

The other file is read by its own <compiler> and defaults, as in MuJoCo; gravity and the switches of <option> are those
of the file that attaches it. Equalities are included where everything that they name is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from linkwise.errors import suggest
from linkwise.formats.mjcf.files import ends_of, inside, read_bounded
from linkwise.formats.xml import Element, parse_xml
from linkwise.model.link import Frame, Link
from linkwise.model.transform import Transform

DEEPEST = 10  # models within models
MOST_ATTACHED = 500  # models in one robot
UNNAMED = "MuJoCo Model"  # what MuJoCo calls a model without a name
PLAIN = ("text/xml", "application/xml")  # content types of MJCF files


def submodel(attach: Element, root: Element, where: str, allow: Sequence[str] = ()) -> tuple[Element, str]:
    """The root element of the file that an <attach> names, and its path."""
    if attach.get("prefix") is None:
        raise attach.error("attribute 'prefix' is missing")
    name = attach.text_of("model")
    models: dict[str, tuple[Element, Element, str]] = {}
    for element in [each for section in root if section.tag == "asset" for each in section]:
        if element.tag == "model" and element.get("name", name) == name and name not in models:
            inner, path = _opened(element, where, allow)
            models[element.get("name") or inner.get("model", UNNAMED)] = element, inner, path
    if name not in models:
        raise attach.error(f"no <model> {name!r} in the <asset>s; {suggest(name, models) if models else ''}")
    _, inner, path = models[name]
    policy = [each.get("conflict") for each in root if each.tag == "compiler" and "conflict" in each.attrib]
    for section in list(inner):
        if section.tag == "option":  # that of the outer file counts
            if policy and policy[-1] == "merge":
                raise section.error("options of attached models are not merged; remove conflict='merge'")
            inner.remove(section)
    return inner, path


def _opened(element: Element, where: str, allow: Sequence[str]) -> tuple[Element, str]:
    """The root element of a <model> and the path of its file."""
    if element.get("content_type", PLAIN[0]) not in PLAIN:
        raise element.error(f"content_type={element.get('content_type')!r}: only XML files are attached")
    file = element.text_of("file")
    path = inside(element, Path(where).parent, file, allow)
    inner = parse_xml(read_bounded(element, path, file), str(path))
    if inner.tag != "mujoco":
        raise inner.error("the root element of a model that is attached is <mujoco>")
    return inner, str(path)


def graft(
    reader: Any, child: Any, root: str, parent: str, frame: Transform, renamed: Callable[[str], str]
) -> None:
    """Add what ``child`` has read on its link ``root`` to the link ``parent`` of ``reader``, at a pose."""

    def link(name: str) -> str:
        return parent if name == root else renamed(name)

    reader.links += [Link(renamed(each.name), each.inertia) for each in child.links[1:]]
    reader.driven |= {renamed(name): forces for name, forces in child.forces().items()}
    for joint in child.joints:
        moved = joint.parent == root and joint.type != "floating"
        origin = frame @ joint.origin if moved else joint.origin
        reader.joints.append(
            replace(
                joint,
                name=renamed(joint.name),
                parent=link(joint.parent),
                child=renamed(joint.child),
                origin=origin,
            )
        )
    reader.frames += [
        Frame(renamed(each.name), link(each.link), frame @ each.pose if each.link == root else each.pose)
        for each in child.frames
    ]
    reader.named |= {renamed(name): joint for name, joint in child.named.items()}
    reader.carried |= {renamed(name): body for name, body in child.carried.items()}
    reader.resisted += [replace(body, link=renamed(body.link)) for body in child.resisted]
    reader.drawn |= {renamed(name): frame @ pose for name, pose in child.drawn.items()}
    reader.taken |= {renamed(name) for name in child.taken}
    reader.held += _renamed(child, renamed)
    reader.attached_tendons |= _renamed_tendons(child, renamed)
    reader.attached_motors += [
        replace(motor, name=renamed(motor.name), joints={renamed(j): f for j, f in motor.joints.items()})
        for motor in child.motors(of_read_joints=True)
    ]


def _renamed(child: Any, renamed: Callable[[str], str]) -> Iterator[Element]:
    """The equalities of a model between parts of it that were read, with their new names."""
    known = {
        "joint": set(child.named),
        "body": {each.name for each in child.links},
        "site": {each.name for each in child.frames},
        "tendon": {name for name, tendon in child.tendons().items() if _whole(tendon, child)},
    }
    for equality in child.equalities():
        ends = ends_of(equality)
        if all(equality.get(key) in known[kind] for key, kind in ends.items()):
            yield _with_names(equality, (*ends, "name"), renamed)


def _renamed_tendons(child: Any, renamed: Callable[[str], str]) -> dict[str, Element]:
    """The fixed tendons whose joints were all read, with the new names of these."""
    tendons: dict[str, Element] = {}
    for name, tendon in child.tendons().items():
        if _whole(tendon, child):
            copy = _with_names(tendon, ("name",), renamed)
            for each in tendon:
                copy.append(_with_names(each, ("joint",), renamed))
            tendons[renamed(name)] = copy
    return tendons


def _whole(tendon: Element, child: Any) -> bool:
    return tendon.tag == "fixed" and all(each.get("joint") in child.named for each in tendon)


def _with_names(element: Element, keys: Iterable[str], renamed: Callable[[str], str]) -> Element:
    names = {key: renamed(element.get(key, "")) for key in keys if key in element.attrib}
    return Element(element.tag, {**element.attrib, **names}, element.where, element.line, element.parent)
