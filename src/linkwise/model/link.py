"""Links and the frames fixed to them."""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwise.model.hints import Hinted
from linkwise.model.inertia import Inertia
from linkwise.model.transform import Transform


@dataclass(frozen=True)
class Link(Hinted):
    """A link with its inertia about the origin of its frame."""

    name: str
    inertia: Inertia = field(default_factory=Inertia)


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link."""

    name: str
    link: str
    pose: Transform
