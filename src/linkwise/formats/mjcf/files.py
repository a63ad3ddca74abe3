"""MJCF that is spread over several files, or says something once for many: <include> and <replicate>.

Both are expanded before anything is read. An <include> may name a regular file in the folder of the main file or below
it, or in a folder that the user allows; nothing else is ever opened, and every file once, as in MuJoCo.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from linkwise.core.products import times
from linkwise.formats import folders
from linkwise.formats.mjcf.settings import MjcfSettings, read_settings
from linkwise.formats.xml import MAX_BYTES, Element, parse_xml

MOST_FILES = 100
MOST_COPIES = 10_000
MOST_EXPANDED = 100_000  # elements of a file once copies are written out
REPLICATE = ("count", "euler", "offset", "sep", "childclass")
ROOTS = ("mujoco", "mujocoinclude")
TENDONS = ("fixed", "spatial")
DRIVEN = {"joint": "joint", "jointinparent": "joint", "tendon": "tendon"}  # what actuators name and is read
COPIED = ("tendon", "equality", "actuator")  # sections whose elements are copied with what they name
PARTS = {"joint": "joint", "site": "site", "geom": "geom", "sidesite": "site"}  # what parts of tendons name


def expanded(root: Element, where: str, allow: Sequence[str] = ()) -> Element:
    """The document with what it includes and repeats written out; ``allow`` are further folders whose files it may
    include."""
    _include(root, Path(where), [Path(where).name], allow)
    if any(element.tag == "replicate" for element in root.iter()):
        _check_size(root, root)
        _replicate(root, root, read_settings(root))
    return root


# -- include ----------------------------------------------------------------------------------------------------------


def _include(element: Element, main: Path, seen: list[str], allow: Sequence[str]) -> None:
    children = list(element)
    if not any(child.tag == "include" for child in children):
        for child in children:
            _include(child, main, seen, allow)
        return
    for child in children:
        element.remove(child)
    for child in children:
        if child.tag != "include":
            element.append(child)
            _include(child, main, seen, allow)
            continue
        for inner in _included(child, main, seen, allow):
            inner.parent = element
            element.append(inner)


def _included(include: Element, main: Path, seen: list[str], allow: Sequence[str]) -> list[Element]:
    """The elements of another file, its own <include>s expanded."""
    name = include.text_of("file")
    path = inside(include, main.parent, name, allow)
    if str(path) in seen:
        raise include.error(f"file {name!r} is included a second time")
    if len(seen) >= MOST_FILES:
        raise include.error(f"more than {MOST_FILES} files are included")
    seen.append(str(path))
    inner = parse_xml(read_bounded(include, path, name), str(path))
    if inner.tag not in ROOTS:
        raise inner.error("the root element of an included file is <mujoco> or <mujocoinclude>")
    _include(inner, main, seen, allow)
    return list(inner)


def read_bounded(element: Element, path: Path, name: str) -> bytes:
    """The bytes of a regular file of bounded size; ``name`` is what the element calls it."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise element.error(f"file {name!r} is not a regular file")
        if info.st_size > MAX_BYTES:
            raise element.error(f"file {name!r} has {info.st_size} bytes; at most {MAX_BYTES} are read")
        return path.read_bytes()
    except OSError as error:
        raise element.error(f"file {name!r} cannot be read: {error.strerror}") from None


def inside(include: Element, folder: Path, name: str, allow: Sequence[str] = ()) -> Path:
    """The path of a file that lies in the folder or below it, or in one of the allowed folders, also behind symbolic
    links."""
    try:
        return folders.inside(name, folder, allow=allow)
    except folders.OutsideError as error:
        raise include.error(str(error)) from None


# -- replicate --------------------------------------------------------------------------------------------------------


def _check_size(root: Element, element: Element, copies: int = 1) -> int:
    """The elements that this one is written out to, in so many copies; refused before any is made."""
    inside = copies
    if element.tag == "replicate":
        inside *= _count(element)
        copies += inside * _references(root, element)
    total = copies + sum(_check_size(root, child, inside) for child in element)
    if total > MOST_EXPANDED:
        raise element.error(f"written out it has {total} elements or more; at most {MOST_EXPANDED} are read")
    return total


def _references(root: Element, replicate: Element) -> int:
    """Elements of tendons, equalities and actuators that are copied with what is in a <replicate>."""
    names = {each.get("name") for each in replicate.iter()} - {None}
    sections = [each for tag in COPIED for each in root if each.tag == tag]
    children = [(child, list(child.iter())) for section in sections for child in section]
    return sum(
        len(parts)
        for _, parts in children
        if any(not names.isdisjoint(each.attrib.values()) for each in parts)
    )


def _count(replicate: Element) -> int:
    count = replicate.integer("count", 0)
    if not 0 < count <= MOST_COPIES:
        raise replicate.error(f"count={count}: expected a positive number of copies, at most {MOST_COPIES}")
    return count


def _replicate(element: Element, root: Element, settings: MjcfSettings) -> None:
    """Write copies out, each in a <frame> of its own."""
    for child in list(element):
        _replicate(child, root, settings)
    if not any(child.tag == "replicate" for child in element):
        return
    children = list(element)
    for child in children:
        element.remove(child)
    for child in children:
        if child.tag == "replicate":
            for copy in _copies(child, settings):
                copy.parent = element
                element.append(copy)
            _replicate_references(root, child)
        else:
            element.append(child)


def _replicate_references(root: Element, replicate: Element) -> None:
    """As in MuJoCo, a tendon with a part in the copies is copied too, actuators with what they drive, and an equality
    whose ends are all in them; one with an end outside is dropped."""
    inside: dict[str, set[str]] = {"tendon": set()}
    for each in replicate.iter():
        inside.setdefault(each.tag, set()).add(each.get("name", ""))
    suffixes = _suffixes(replicate)
    for section in [each for tag in COPIED for each in root if each.tag == tag]:
        children = list(section)
        for child in children:
            section.remove(child)
        for child in children:
            ends = DRIVEN if section.tag == "actuator" else ends_of(child)
            parts = [(child, key, kind) for key, kind in ends.items() if key in child.attrib]
            if section.tag == "tendon":
                parts = [(part, key, PARTS[key]) for part in child for key in PARTS if key in part.attrib]
            copied = [part.get(key) in inside.get(kind, ()) for part, key, kind in parts]
            if not any(copied):
                section.append(child)
                continue
            if section.tag == "tendon":
                inside["tendon"].add(child.get("name", ""))
            elif not all(copied):
                continue
            for suffix in suffixes:
                section.append(_renamed(child, section, suffix, inside))


def _renamed(element: Element, parent: Element, suffix: str, inside: dict[str, set[str]]) -> Element:
    """A copy of a tendon, an equality or an actuator whose names of copied parts, and its own, have the suffix."""
    named = PARTS if parent.tag in TENDONS else DRIVEN if parent.tag == "actuator" else {}
    kinds = {**ends_of(element), **named}
    attributes = {
        key: text + suffix if key == "name" or text in inside.get(kinds.get(key, ""), ()) else text
        for key, text in element.attrib.items()
    }
    copy = Element(element.tag, attributes, element.where, element.line, parent)
    for child in element:
        copy.append(_renamed(child, copy, suffix, inside))
    return copy


def ends_of(equality: Element) -> dict[str, str]:
    """The attributes of an equality that name its ends, and what kind of element each names."""
    kinds = (equality.tag,) if equality.tag in ("joint", "tendon") else ("body", "site")
    return {f"{kind}{k}": kind for kind in kinds for k in (1, 2) if f"{kind}{k}" in equality.attrib}


def _suffixes(replicate: Element) -> list[str]:
    count = replicate.integer("count", 0)
    digits = len(str(count - 1))
    return [f"{replicate.get('sep', '')}{k:0{digits}d}" for k in range(count)]


def _copies(replicate: Element, settings: MjcfSettings) -> Iterator[Element]:
    """As in MuJoCo, copy k is turned by k times the angles, and stands where k steps lead, each along the axes of the
    copy before it."""
    for key in replicate.attrib:
        if key not in REPLICATE:
            raise replicate.error(f"unknown attribute {key!r}; valid: {', '.join(REPLICATE)}")
    step = np.array(replicate.numbers("offset", 3) if "offset" in replicate.attrib else (0.0, 0.0, 0.0))
    angles = np.array(replicate.numbers("euler", 3) if "euler" in replicate.attrib else (0.0, 0.0, 0.0))
    more = {"childclass": replicate.text_of("childclass")} if "childclass" in replicate.attrib else {}
    place = np.zeros(3)
    for k, suffix in enumerate(_suffixes(replicate)):
        pose = {
            "pos": " ".join(map(repr, place.tolist())),
            "euler": " ".join(map(repr, (k * angles).tolist())),
        }
        frame = Element("frame", {**pose, **more}, replicate.where, replicate.line, replicate.parent)
        for child in replicate:
            frame.append(_copied(child, frame, suffix))
        place = place + times(settings.pose(frame).rotation, step)
        yield frame


def _copied(element: Element, parent: Element, suffix: str) -> Element:
    attributes = dict(element.attrib)
    if "name" in attributes:
        attributes["name"] += suffix
    copy = Element(element.tag, attributes, element.where, element.line, parent)
    copy.suffix = element.suffix + suffix
    for child in element:
        copy.append(_copied(child, copy, suffix))
    return copy
