"""Which shapes are compared: capsules of links with each other, with the floor, with walls and with boxes.

Neighbours, which a joint connects, are not compared with each other, nor fingers, which close on each other. What
touches by construction is left out by ``Clearance`` and listed there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from linkwise.collision.room import Box, Room
from linkwise.collision.shapes import Shapes, Slab
from linkwise.core.products import length as vector_length
from linkwise.errors import UnknownNameError, suggest
from linkwise.geometry.skeleton import BASE, Capsule
from linkwise.model import Model, Transform

FLOOR = "the floor"
MOST_PIECES = 4  # into which a capsule is divided


@dataclass(frozen=True)
class Plane:
    """normal·x ≥ height is allowed; ``words`` names it in messages."""

    normal: np.ndarray
    height: float
    words: str


@dataclass(frozen=True)
class Checks:
    """Capsules and what each is compared with; numbers of capsules, ends (2·capsule + 0 or 1), planes and boxes.

    ``pairs`` (p, 2) of capsules, ``grounded`` (g, 2) of an end and a plane, ``blocked`` (b, 2) of a capsule and a box.
    """

    capsules: tuple[Capsule, ...]
    planes: tuple[Plane, ...]
    boxes: tuple[Slab, ...]
    pairs: np.ndarray
    grounded: np.ndarray
    blocked: np.ndarray
    tool: frozenset[int] = field(default=frozenset())

    def __len__(self) -> int:
        return len(self.pairs) + len(self.grounded) + len(self.blocked)

    def kept(self, mask: np.ndarray) -> Checks:
        """Those where the mask (checks,) is true."""
        p, g = len(self.pairs), len(self.pairs) + len(self.grounded)
        return replace(
            self,
            pairs=self.pairs[mask[:p]],
            grounded=self.grounded[mask[p:g]],
            blocked=self.blocked[mask[g:]],
        )


def all_checks(robot: Model, shapes: Shapes, room: Room) -> Checks:
    """Every comparison but those of neighbours."""
    capsules = [*shapes.capsules]
    moving = [k for k, capsule in enumerate(capsules) if capsule.body != BASE]
    above = [robot.carrier(joint.parent)[0] for joint in robot.moving_joints]
    pairs = [
        (i, k)
        for i in range(len(capsules))
        for k in moving
        if (i < k or capsules[i].body == BASE) and are_apart(capsules[i].body, capsules[k].body, above)
    ]
    planes: list[Plane] = []
    grounded: list[tuple[int, int]] = []
    ends = [2 * k + side for k in moving for side in (0, 1)]
    if room.floor is not None and np.linalg.norm(robot.gravity) > 0:
        planes.append(_floor(robot, room.floor))
        grounded += [(end, 0) for end in ends]
    if room.inside is not None:
        walls = _walls(room.inside)
        kept_inside = ends
        if room.inside.frames is not None:
            points = [_point(robot, name) for name in room.inside.frames]
            kept_inside = [2 * (len(capsules) + k) for k in range(len(points))]
            capsules += points
        grounded += [(end, len(planes) + k) for k in range(len(walls)) for end in kept_inside]
        planes += walls
    boxes = [*shapes.slabs, *(_slab(box, k, len(room.forbidden)) for k, box in enumerate(room.forbidden))]
    blocked = [(k, number) for number in range(len(boxes)) for k in moving]
    return Checks(
        tuple(capsules),
        tuple(planes),
        tuple(boxes),
        _numbers(pairs if room.links else []),
        _numbers(grounded),
        _numbers(blocked),
        shapes.tool,
    )


def divided(checks: Checks, mask: np.ndarray) -> Checks:
    """Where the mask (checks,) is true, pieces of the capsules are compared in their place: parts far from a joint may
    touch although those near it always do.

    Args:
        checks: the comparisons.
        mask: which of them are divided; those of ends are not.
    """
    capsules = [*checks.capsules]
    tool = set(checks.tool)
    known: dict[int, list[int]] = {}

    def pieces(k: int) -> list[int]:
        if k not in known:
            parts = _pieces(checks.capsules[k])
            known[k] = [k] if len(parts) == 1 else list(range(len(capsules), len(capsules) + len(parts)))
            if len(parts) > 1:
                capsules.extend(parts)
                tool.update(known[k] if k in checks.tool else ())
        return known[k]

    p = len(checks.pairs)
    pairs = [(a, b) for i, k in checks.pairs[mask[:p]].tolist() for a in pieces(i) for b in pieces(k)]
    last = mask[p + len(checks.grounded) :]
    blocked = [(a, box) for k, box in checks.blocked[last].tolist() for a in pieces(k)]
    return replace(
        checks,
        capsules=tuple(capsules),
        pairs=_numbers(pairs),
        grounded=_numbers([]),
        blocked=_numbers(blocked),
        tool=frozenset(tool),
    )


def together(first: Checks, second: Checks) -> Checks:
    """The comparisons of both; the capsules of the second begin with those of the first."""
    return replace(
        second,
        pairs=np.concatenate([first.pairs, second.pairs]),
        grounded=np.concatenate([first.grounded, second.grounded]),
        blocked=np.concatenate([first.blocked, second.blocked]),
    )


def _pieces(capsule: Capsule) -> list[Capsule]:
    length = vector_length(capsule.end - capsule.start)
    count = int(np.clip(np.ceil(length / capsule.radius), 1, MOST_PIECES)) if capsule.radius > 0 else 1
    points = capsule.start + np.linspace(0.0, 1.0, count + 1)[:, None] * (capsule.end - capsule.start)
    return [replace(capsule, start=a, end=b) for a, b in pairwise(points)]


def are_apart(first: int, second: int, above: Sequence[int]) -> bool:
    """Whether two bodies are neither one body, nor connected by a joint, nor fingers: the last ones, of one link."""
    if first == second:
        return False
    parents = [above[body] if body != BASE else None for body in (first, second)]
    fingers = parents[0] == parents[1] != BASE and not {first, second} & set(above)
    return not fingers and parents[1] != first and parents[0] != second


def _floor(robot: Model, height: float) -> Plane:
    gravity = np.array(robot.gravity)
    return Plane(-gravity / vector_length(gravity), float(height), FLOOR)


def _walls(box: Box) -> list[Plane]:
    walls: list[Plane] = []
    for axis, name in enumerate("xyz"):
        low, high = box.lower[axis], box.upper[axis]
        if np.isfinite(low):
            walls.append(Plane(np.eye(3)[axis], float(low), f"the wall {name} = {low:g} m"))
        if np.isfinite(high):
            walls.append(Plane(-np.eye(3)[axis], -float(high), f"the wall {name} = {high:g} m"))
    return walls


def _slab(box: Box, number: int, count: int) -> Slab:
    lower, upper = np.asarray(box.lower, dtype=float), np.asarray(box.upper, dtype=float)
    x, y, z = (upper - lower).tolist()
    which = "the forbidden box" if count == 1 else f"forbidden box {number + 1}"
    return Slab(Transform(np.eye(3), (lower + upper) / 2), (x, y, z), f"{which} {box.words}")


def _point(robot: Model, frame: str) -> Capsule:
    if frame not in robot.frame_names:
        raise UnknownNameError(f"workspace: no frame {frame!r}; {suggest(frame, robot.frame_names)}")
    body, pose = robot.locate(frame)
    return Capsule(body, pose.translation, pose.translation, 0.0)


def _numbers(rows: list[tuple[int, int]]) -> np.ndarray:
    return np.array(rows, dtype=int).reshape(-1, 2)
