"""Constraints taken apart and put together again, for files: every format has the same parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.constraints import Constraint, Point, Weld
from linkwise.model.transform import Transform

KINDS = ("weld", "point")


@dataclass(frozen=True)
class Parts:
    """``to`` None is the world. A point has an ``offset`` in its frame, and its ``pose`` no rotation."""

    kind: str
    frame: str
    to: str | None
    pose: Transform
    offset: np.ndarray
    name: str
    compliance: float = 0.0


def parts_of(constraint: Constraint) -> Parts:
    (frame, own), (to, pose) = constraint.ends()
    if type(constraint) not in (Weld, Point):
        raise ModelError(f"{constraint.label}: files have no words for a {type(constraint).__name__}")
    kind = KINDS[type(constraint) is Point]
    return Parts(kind, frame, to, pose, own.translation, constraint.name, float(constraint.compliance))


def constraint_of(parts: Parts) -> Constraint:
    return replace(_hard(parts), compliance=parts.compliance)


def _hard(parts: Parts) -> Constraint:
    if parts.kind == "weld":
        if parts.to is None:
            return Weld(parts.frame, parts.pose, name=parts.name)
        return Weld(parts.frame, parts.to, parts.pose, parts.name)
    position, offset = tuple(parts.pose.translation.tolist()), tuple(parts.offset.tolist())
    if parts.to is None:
        return Point(parts.frame, position, offset=offset, name=parts.name)
    return Point(parts.frame, parts.to, position, offset, parts.name)
