"""Unrecognised URDF elements and attributes that look like misspellings of known ones.

A reader that passes over what it does not know, as readers of URDF must, passes over ``<axes xyz="0 1 0"/>`` too, and
the joint silently turns about x. So an unknown element or attribute that is nearly one that is read, where the right
one is missing, is a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from linkwise.formats.xml import Element

# elements with those of their children and attributes that are read
_CHILDREN = {
    "robot": ("link", "joint"),
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
_ATTRIBUTES = {
    "origin": ("xyz", "rpy"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset"),
    "parent": ("link",),
    "child": ("link",),
}
_INCLUDES = ("include", "xi:include")


def warn_of_misspellings(root: Element) -> None:
    """Warn of every element and attribute that was probably meant to be another one."""
    for element in root:
        if element.tag in _INCLUDES:
            element.warn("it names another file, which is not read")
    _look(root, "robot")


def _look(element: Element, tag: str) -> None:
    for attribute in element.attrib:
        meant = _meant(attribute, _ATTRIBUTES.get(tag, ()), element.attrib)
        if meant is not None:
            element.warn(f"attribute {attribute!r} is not read; did you mean {meant!r}?")
    known = _CHILDREN.get(tag, ())
    present = {child.tag for child in element}
    for child in element:
        # a robot has many links and joints, so correct ones do not show that a misspelt one is missing
        meant = _meant(child.tag, known, () if tag == "robot" else present)
        if meant is not None and (tag != "robot" or child.tag.lower() == meant):
            child.warn(f"it is not read; did you mean <{meant}>?")
        if child.tag in known:
            _look(child, child.tag)


def _meant(name: str, known: Iterable[str], present: Iterable[str]) -> str | None:
    """The known name that is missing and that this unknown one nearly is."""
    if name in known:
        return None
    missing = [other for other in known if other not in present]
    close = difflib.get_close_matches(name.lower(), missing, n=1, cutoff=0.65)
    return close[0] if close else None
