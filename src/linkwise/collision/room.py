"""What a robot must not touch: a floor, walls around a space, boxes, itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.collision.shapes import Tool

CLEARANCE = 0.02  # [m]


@dataclass(frozen=True)
class Box:
    """A box in base axes: lower and upper corner [m].

    As a space that must not be left: the whole of every moving link stays inside, or, with ``frames``, the origins of
    these frames. As a forbidden space: no moving link enters it; its corners must be finite.

    Args:
        lower: the lower corner.
        upper: the upper corner.
        frames: names of the frames whose origins must stay inside, in place of the links.
    """

    lower: Sequence[float] = (-np.inf, -np.inf, -np.inf)
    upper: Sequence[float] = (np.inf, np.inf, np.inf)
    frames: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            corner = np.asarray(getattr(self, name), dtype=float)
            if corner.shape != (3,) or np.isnan(corner).any():
                raise ValueError(f"box: {name}: expected three numbers [m], got {getattr(self, name)!r}")
        if not (np.asarray(self.lower) < np.asarray(self.upper)).all():
            raise ValueError(
                f"box: expected a lower corner below the upper one, got {list(self.lower)} and {list(self.upper)}"
            )

    @property
    def words(self) -> str:
        """For messages: from corner to corner."""
        return " … ".join(
            "(" + ", ".join(f"{x:g}" for x in corner) + ")" for corner in (self.lower, self.upper)
        )


@dataclass(frozen=True)
class Room:
    """What is around a robot, and what it carries.

    Args:
        floor: height [m] of the floor above the origin of the base frame, against gravity; None: there is no floor.
        inside: a space that moving links must not leave.
        forbidden: boxes that moving links must not enter.
        clearance: least distance [m] to everything, also between links.
        links: whether links must keep this distance to each other.
        tool: what is fixed to the tip.
        radius: of the capsules [m] that stand for links without geometry; None: from the reach of the robot.
        meshes: further folders in which meshes of the robot's file are searched.
    """

    floor: float | None = 0.0
    inside: Box | None = None
    forbidden: Sequence[Box] = ()
    clearance: float = CLEARANCE
    links: bool = True
    tool: Tool | None = None
    radius: float | None = None
    meshes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        flag("links", self.links)
        if self.floor is not None and not np.isfinite(self.floor):
            raise ValueError(f"floor: expected a height in metres or None, got {self.floor!r}")
        if not (np.isfinite(self.clearance) and self.clearance >= 0.0):
            raise ValueError(
                f"clearance: expected a distance of at least 0 in metres, got {self.clearance!r}"
            )
        if self.radius is not None and not (np.isfinite(self.radius) and self.radius > 0.0):
            raise ValueError(f"radius: expected a positive number of metres, got {self.radius!r}")
        for box in self.forbidden:
            if not np.isfinite([*box.lower, *box.upper]).all():
                raise ValueError(f"forbidden: a box needs finite corners, got {box.words}")
