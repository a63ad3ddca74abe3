"""Geometry that was read from a robot file, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.geometry.solids import Part
from linkwise.model import Transform

MAX_VISUALS = 2000


@dataclass(frozen=True)
class Visual:
    """Part of a link with its pose in the link's frame."""

    link: str
    pose: Transform
    part: Part


@dataclass(frozen=True)
class Looks:
    """Geometry that could be read, one line for each element that could not, and the links that lack some of theirs."""

    visuals: tuple[Visual, ...] = ()
    problems: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
