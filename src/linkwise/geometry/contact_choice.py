"""From the shapes of a file and their pairs to the contacts of a robot, with a bounded number of candidates.

Shapes touch the ground in groups of one friction; a group with many candidates keeps those that are nearest to the
ground in every state (``Contact.nearest``). Pairs of links, and of links with things fixed in the world, are taken
where few enough are left; else a note says that they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import Model
from linkwise.model.contacts import Contact, Ground, Part
from linkwise.model.shapes import CANDIDATES, Shape, candidates_of

FEW = 8
"""Candidates with the ground that are all taken; of a larger group as many are taken as are nearest."""
FEW_OTHERS = 4
"""The same for all groups but the first one, that of the most friction groups' first member: feet."""
MOST = 12
"""Candidates up to which pairs of links are taken."""
TURNING = "torsional and rolling friction"
_LEVEL = 1e-9


@dataclass(frozen=True)
class Geom:
    """A shape of a link in a file: what it is called in messages, its coefficient of friction, its own name."""

    link: str
    shape: Shape
    label: str
    friction: float
    name: str = ""


@dataclass(frozen=True, order=True)
class Rubbing:
    """Coefficient of Coulomb friction, and moments against spinning and rolling over the normal force [m]."""

    friction: float
    torsional: float = 0.0
    rolling: float = 0.0

    @property
    def turns(self) -> bool:
        """Whether it acts against turning."""
        return bool(self.torsional or self.rolling)


@dataclass(frozen=True)
class Touching:
    """Numbers of two geoms that may touch, and their friction."""

    first: int
    second: int
    friction: Rubbing


@dataclass(frozen=True)
class Findings:
    """Shapes of a file, pairs of them that may touch, and what is said about them. ``ground``: friction with the plane
    z = 0 of the world for formats that have no floor."""

    geoms: tuple[Geom, ...]
    pairs: tuple[Touching, ...]
    notes: tuple[str, ...] = ()
    ground: float | None = None


def contact_parts(robot: Model, findings: Findings) -> tuple[list[Part], list[str]]:
    """(ground, contacts; notes)."""
    geoms, notes = findings.geoms, list(findings.notes)
    body = [robot.carrier(geom.link)[0] for geom in geoms]
    above = [robot.carrier(joint.parent)[0] for joint in robot.moving_joints]
    floor = next((k for k, geom in enumerate(geoms) if body[k] < 0 and _is_level(robot, geom)), None)
    if robot.constraints or any(relation is not None for relation in robot.followed):
        pairs, twisting = _without_turning(findings.pairs)
        notes += [f"{TURNING} is left out of {twisting} pairs: the robot has constraints"] if twisting else []
    else:
        pairs = findings.pairs
    grounded: dict[Rubbing, list[int]] = {}
    others: list[Touching] = []
    for pair in pairs:
        first, second = pair.first, pair.second
        if floor in (first, second) and max(body[first], body[second]) >= 0:
            grounded.setdefault(pair.friction, []).append(second if first == floor else first)
        elif _can_touch(body[first], body[second], above):
            others.append(pair)
    if findings.ground is not None:
        moving = [k for k in range(len(geoms)) if body[k] >= 0]
        if moving:
            grounded[Rubbing(findings.ground)] = moving
    parts: list[Part] = []
    if floor is not None:
        height = _place(robot, geoms[floor]).translation[2]
        parts.append(Ground(friction=geoms[floor].friction, height=float(height)))
    elif findings.ground is not None:
        parts.append(Ground(friction=findings.ground))
    count = 0
    groups = sorted(grounded.items(), key=lambda item: (len(item[1]), item[0]))
    for number, (friction, members) in enumerate(groups):
        made, candidates = _grounded(geoms, members, friction, FEW if number == 0 else FEW_OTHERS)
        parts += made
        count += candidates
        if len(made) == 1 and made[0].nearest is not None:
            total = sum(candidates_of(geoms[k].shape, _PLANE) for k in members)
            notes.append(
                f"of {total} candidates with the ground (friction {friction.friction:g}) the {candidates} nearest are "
                "taken"
            )
            if friction.turns:
                notes.append(f"{TURNING} of these is left out")
    made, left = _paired(geoms, body, others, MOST - count)
    parts += made
    if left:
        notes.append(left)
    if not any(isinstance(part, Contact) for part in parts):
        raise ModelError(
            f"{robot.name}: contact=True: the file has nothing that touches"
            + (": " + "; ".join(findings.notes) if findings.notes else "")
        )
    return parts, notes


_PLANE = Shape("ground", "plane")


def _without_turning(pairs: Sequence[Touching]) -> tuple[list[Touching], int]:
    """(pairs with Coulomb friction alone, how many had more)."""
    plain = [replace(pair, friction=Rubbing(pair.friction.friction)) for pair in pairs]
    return plain, sum(pair.friction.turns for pair in pairs)


def _options(friction: Rubbing, name: str) -> dict[str, Any]:
    return {
        "friction": friction.friction,
        "torsional_friction": friction.torsional,
        "rolling_friction": friction.rolling,
        "name": name,
    }


def _grounded(
    geoms: Sequence[Geom], members: Sequence[int], friction: Rubbing, few: int
) -> tuple[list[Contact], int]:
    """One contact for each geom, or one for all of them with the nearest candidates."""
    counts = [candidates_of(geoms[k].shape, _PLANE) for k in members]
    if sum(counts) <= FEW:
        return [
            Contact(geoms[k].link, shapes=[geoms[k].shape], **_options(friction, geoms[k].label))
            for k in members
        ], sum(counts)
    shapes = [geoms[k].shape for k in members]
    one = Contact(shapes[0].frame, shapes=shapes, friction=friction.friction, nearest=few, name="ground")
    return [one], few


def _paired(
    geoms: Sequence[Geom], body: Sequence[int], pairs: Sequence[Touching], room: int
) -> tuple[list[Contact], str]:
    """(contacts between links, what is left out)."""
    if not pairs:
        return [], ""
    known = [p for p in pairs if _is_modelled(geoms[p.first].shape, geoms[p.second].shape)]
    unknown = len(pairs) - len(known)
    count = sum(candidates_of(geoms[p.first].shape, geoms[p.second].shape) for p in known)
    example = next((p for p in pairs if p not in known), pairs[0])
    names = f"{geoms[example.first].label} and {geoms[example.second].label}"
    if count > room:
        return [], (
            f"{len(pairs)} pairs of links or things in the world ({names} …) are left out: {count} more candidates; "
            "give those that matter to robot.with_contacts([*robot.contact_parts, lw.Contact(FRAME, OTHER)])"
        )
    made: list[Contact] = []
    for p in known:
        first, second = geoms[p.first], geoms[p.second]
        if body[p.first] < 0:
            first, second = second, first
        made.append(
            Contact(
                first.link,
                second.link,
                shapes=[first.shape],
                other_shapes=[second.shape],
                **_options(p.friction, f"{first.label}:{second.label}"),
            )
        )
    left = f"{unknown} pairs of shapes that are not modelled are left out ({names} …)" if unknown else ""
    return made, left


def _is_modelled(first: Shape, second: Shape) -> bool:
    return (first.kind, second.kind) in CANDIDATES or (second.kind, first.kind) in CANDIDATES


def _can_touch(first: int, second: int, above: Sequence[int]) -> bool:
    """Not one body, not a body and the one that carries it, as in MuJoCo; what the world carries may touch it."""
    if first == second:
        return False
    return not any(a >= 0 and b >= 0 and above[a] == b for a, b in ((first, second), (second, first)))


def _place(robot: Model, geom: Geom):
    return robot.carrier(geom.link)[1] @ geom.shape.pose


def _is_level(robot: Model, geom: Geom) -> bool:
    if geom.shape.kind != "plane":
        return False
    return bool(np.abs(_place(robot, geom).rotation[:, 2] - (0.0, 0.0, 1.0)).max() < _LEVEL)
