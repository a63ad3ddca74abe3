"""From the shapes of a file and their pairs to the contacts of a robot, with a bounded number of candidates.

Shapes touch the ground in groups of one friction; a group with many candidates keeps those that are nearest to the
ground in every state (``Contact.nearest``). Robots with many joints do so for each limb: a candidate that may be on any
link couples all joints with each other. Pairs of links, and of links with things fixed in the world, are taken
where few enough are left; else a note says that they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import Model
from linkwise.model.contacts import Contact, Ground, Part, Tendon, moves, stops_for
from linkwise.model.shapes import CANDIDATES, FACE, Shape, candidates_of, lost_reach
from linkwise.model.transform import Transform

FEW = 8
"""Candidates with the ground that are all taken; of a larger group as many are taken as are nearest."""
FEW_OTHERS = 4
"""The same for all groups but the first one, that of the most friction groups' first member: feet."""
MANY_JOINTS = 24
"""Velocity coordinates above which the nearest candidates are those of each limb."""
LIMB = 4
"""Coordinates of a branch that is a limb of its own, beside others."""
LOW = 0.3
"""Part of the robot's height: limbs that are so near to the lowest one (at the position zero) are feet."""
FEW_OF_A_LIMB = 2
"""Candidates of a limb that is no foot; feet have those of a face."""
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
    """Coefficient of Coulomb friction, and moments against spinning and rolling over the normal force [m]; stiffness
    [1/s²] and damping [1/s] of a soft contact that moves one kilogram, 0 for a rigid one."""

    friction: float
    torsional: float = 0.0
    rolling: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0
    margin: float = 0.0
    """Distance at which the shapes touch [m]."""

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
    named: bool = False
    """Whether the file names this pair: a link may touch the one that carries it, and it goes before others."""


class NothingTouches(ModelError):
    """No two shapes of a file can touch."""


@dataclass(frozen=True)
class Findings:
    """Shapes of a file, pairs of them that may touch, and what is said about them. ``ground``: friction with the plane
    z = 0 of the world for formats that have no floor. ``tendons``: sums of joint positions that stop. ``neighbours``:
    whether links touch those that carry them. ``stops``: whether joints stop at the ends of their ranges."""

    geoms: tuple[Geom, ...]
    pairs: tuple[Touching, ...]
    notes: tuple[str, ...] = ()
    ground: float | None = None
    tendons: tuple[Tendon, ...] = ()
    neighbours: bool = False
    stops: bool = True


def hull_notes(hulls: Sequence[tuple[str, Shape, Any]]) -> list[str]:
    """What is said of hulls (label, shape, vertices of the mesh in its axes): of several ones the worst in one note, so
    that other notes are not lost among theirs."""
    if not hulls:
        return []
    lost = [1e3 * lost_reach(vertices, hull.points) for _, hull, vertices in hulls]
    worst = max(range(len(hulls)), key=lost.__getitem__)
    label, hull, vertices = hulls[worst]
    farther = f", which reaches up to {lost[worst]:.2g} mm farther" if lost[worst] > 1e-3 else ""
    note = f"{label}: {len(hull.points)} corners stand for the hull of {len(vertices)} vertices{farther}"
    return [note if len(hulls) == 1 else f"hulls stand for {len(hulls)} meshes, the worst one: {note}"]


def contact_parts(robot: Model, findings: Findings) -> tuple[list[Part], list[str]]:
    """(ground, contacts, stops; notes)."""
    geoms, notes = findings.geoms, list(findings.notes)
    body = [robot.carrier(geom.link)[0] for geom in geoms]
    above = [robot.carrier(joint.parent)[0] for joint in robot.moving_joints]
    floor = next((k for k, geom in enumerate(geoms) if body[k] < 0 and _is_level(robot, geom)), None)
    is_held = bool(robot.constraints) or any(relation is not None for relation in robot.followed)
    if is_held:
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
        elif _can_touch(body[first], body[second], above, findings.neighbours or pair.named):
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
    made, count = _groups_on_ground(robot, geoms, grounded, is_held, notes)
    parts += made
    made, left = _paired(geoms, body, others, MOST - count)
    parts += made
    if left:
        notes.append(left)
    if not any(isinstance(part, Contact) for part in parts):
        raise NothingTouches(
            f"{robot.name}: contact=True: the file has nothing that touches"
            + (": " + "; ".join(notes) if notes else "")
        )
    parts += _tendons(robot, findings.tendons, notes)
    return [*parts, *stops_for(robot, findings.stops)], notes


def _tendons(robot: Model, tendons: Sequence[Tendon], notes: list[str]) -> list[Tendon]:
    """Tendons that move; adds to the notes."""
    moving = {joint.name for joint in robot.moving_joints}
    found: list[Tendon] = []
    for tendon in tendons:
        missing = [name for name in tendon.weights if name not in moving]
        # MuJoCo lets a site have the name of a body, which is another frame
        taken = {f"{name}_site" for name in tendon.through} & set(robot.frame_names)
        through = [f"{name}_site" if f"{name}_site" in taken else name for name in tendon.through]
        named = replace(tendon, through=through)
        if missing:
            notes.append(f"{tendon.label} has no ends here: joint {missing[0]!r} does not move")
        elif moves(robot, named):
            found.append(named)
    return found


_PLANE = Shape("ground", "plane")


def _without_turning(pairs: Sequence[Touching]) -> tuple[list[Touching], int]:
    """(pairs with Coulomb friction alone, how many had more)."""
    plain = [replace(pair, friction=replace(pair.friction, torsional=0.0, rolling=0.0)) for pair in pairs]
    return plain, sum(pair.friction.turns for pair in pairs)


def _options(friction: Rubbing, name: str) -> dict[str, Any]:
    return {
        "friction": friction.friction,
        "torsional_friction": friction.torsional,
        "rolling_friction": friction.rolling,
        "margin": friction.margin,
        **_yielding(friction),
        "name": name,
    }


def _yielding(friction: Rubbing) -> dict[str, Any]:
    if not friction.stiffness:
        return {}
    return {"stiffness": friction.stiffness, "damping": friction.damping}


class _Bounds(NamedTuple):
    """Candidates up to which all are taken, how many are the nearest of more, and whether of each limb."""

    most: int
    few: int
    by_limb: bool


def _groups_on_ground(
    robot: Model, geoms: Sequence[Geom], grounded: dict[Rubbing, list[int]], is_held: bool, notes: list[str]
) -> tuple[list[Contact], int]:
    """(contacts of all groups of one friction, their candidates); adds to the notes."""
    made: list[Contact] = []
    count = 0
    groups = sorted(grounded.items(), key=lambda item: (len(item[1]), item[0]))
    for number, (friction, members) in enumerate(groups):
        if is_held and robot.dof <= MANY_JOINTS:  # its step has the matrix of all rows
            few = max(FEW // len(groups), 1)
            bounds = _Bounds(few, few, False)
        else:
            bounds = _Bounds(FEW, FEW if number == 0 else FEW_OTHERS, robot.dof > MANY_JOINTS)
        contacts, candidates = _grounded(robot, geoms, members, friction, bounds)
        made += contacts
        count += candidates
        if any(each.nearest is not None for each in contacts):
            total = sum(candidates_of(geoms[k].shape, _PLANE) for k in members)
            notes.append(
                f"of {total} candidates with the ground (friction {friction.friction:g}) the {candidates} nearest are "
                "taken"
            )
            if friction.turns:
                notes.append(f"{TURNING} of these is left out")
    return made, count


def _grounded(
    robot: Model, geoms: Sequence[Geom], members: Sequence[int], friction: Rubbing, bounds: _Bounds
) -> tuple[list[Contact], int]:
    """One contact for each geom, or one for all of them or for those of a limb with the nearest candidates."""
    if sum(candidates_of(geoms[k].shape, _PLANE) for k in members) <= bounds.most:
        return _single(geoms, members, friction)
    if not bounds.by_limb:
        return _nearest(geoms, members, friction, bounds.few, "ground")
    made: list[Contact] = []
    total = 0
    for top, (own, is_low) in _limbs(robot, geoms, members).items():
        most = FACE if is_low else FEW_OF_A_LIMB
        if sum(candidates_of(geoms[k].shape, _PLANE) for k in own) <= most:
            contacts, count = _single(geoms, own, friction)
        else:
            name = f"ground under {robot.moving_joints[top].child}"
            contacts, count = _nearest(geoms, own, friction, most, name)
        made += contacts
        total += count
    return made, total


def _single(geoms: Sequence[Geom], members: Sequence[int], friction: Rubbing) -> tuple[list[Contact], int]:
    made = [
        Contact(geoms[k].link, shapes=[geoms[k].shape], **_options(friction, geoms[k].label)) for k in members
    ]
    return made, sum(candidates_of(geoms[k].shape, _PLANE) for k in members)


def _nearest(
    geoms: Sequence[Geom], members: Sequence[int], friction: Rubbing, few: int, name: str
) -> tuple[list[Contact], int]:
    shapes = [geoms[k].shape for k in members]
    options: dict[str, Any] = {
        "friction": friction.friction,
        "margin": friction.margin,
        **_yielding(friction),
    }
    one = Contact(shapes[0].frame, shapes=shapes, nearest=few, name=name, **options)
    return [one], few


def _limbs(robot: Model, geoms: Sequence[Geom], members: Sequence[int]) -> dict[int, tuple[list[int], bool]]:
    """Geoms by the limb they belong to (the number of its first link), and whether it is a foot.

    A limb begins where a link carries several branches with at least ``LIMB`` coordinates.
    """
    joints = robot.moving_joints
    above = [robot.carrier(joint.parent)[0] for joint in joints]
    size = [joint.dof for joint in joints]
    for k in reversed(range(len(joints))):
        if above[k] >= 0:
            size[above[k]] += size[k]
    large: dict[int, int] = {}
    for k, below in enumerate(above):
        large[below] = large.get(below, 0) + (size[k] >= LIMB)
    places: list[Transform] = []
    for k, joint in enumerate(joints):
        own = robot.carrier(joint.parent)[1] @ joint.origin
        places.append(own if above[k] < 0 else places[above[k]] @ own)
    limbs: dict[int, list[int]] = {}
    lowest: dict[int, float] = {}
    heights: list[float] = []
    for k in members:
        top, pose = robot.carrier(geoms[k].link)
        heights.append(float((places[top] @ pose @ geoms[k].shape.pose).translation[2]))
        while above[top] >= 0 and not (size[top] >= LIMB and large[above[top]] > 1):
            top = above[top]
        limbs.setdefault(top, []).append(k)
        lowest[top] = min(lowest.get(top, heights[-1]), heights[-1])
    level = min(heights) + LOW * (max(heights) - min(heights))
    return {top: (own, lowest[top] <= level) for top, own in limbs.items()}


def _paired(
    geoms: Sequence[Geom], body: Sequence[int], pairs: Sequence[Touching], room: int
) -> tuple[list[Contact], str]:
    """(contacts between links, what is left out): all of them, or those that the file names, or none."""
    if not pairs:
        return [], ""
    known = [p for p in pairs if _is_modelled(geoms[p.first].shape, geoms[p.second].shape)]
    unknown = len(pairs) - len(known)
    count = _candidates(geoms, known)
    example = next((p for p in pairs if p not in known), pairs[0])
    names = f"{geoms[example.first].label} and {geoms[example.second].label}"
    left = f"{unknown} pairs of shapes that are not modelled are left out ({names} …)" if unknown else ""
    if count > room:
        named = [p for p in known if p.named]
        taken = named if _candidates(geoms, named) <= room else []
        example = next(p for p in known if p not in taken)
        names = f"{geoms[example.first].label} and {geoms[example.second].label}"
        left = (
            f"{len(pairs) - len(taken)} pairs of links or things in the world ({names} …) are left out: "
            f"{count - _candidates(geoms, taken)} more candidates; "
            "give those that matter to robot.with_contacts([*robot.contact_parts, lw.Contact(FRAME, OTHER)])"
        )
        known = taken
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
    return made, left


def _candidates(geoms: Sequence[Geom], pairs: Sequence[Touching]) -> int:
    return sum(candidates_of(geoms[p.first].shape, geoms[p.second].shape) for p in pairs)


def _is_modelled(first: Shape, second: Shape) -> bool:
    return (first.kind, second.kind) in CANDIDATES or (second.kind, first.kind) in CANDIDATES


def _can_touch(first: int, second: int, above: Sequence[int], neighbours: bool) -> bool:
    """Not one body; a body and the one that carries it only if ``neighbours``, as in MuJoCo; what the world carries may
    touch it."""
    if first == second or neighbours:
        return first != second
    return not any(a >= 0 and b >= 0 and above[a] == b for a, b in ((first, second), (second, first)))


def _place(robot: Model, geom: Geom):
    return robot.carrier(geom.link)[1] @ geom.shape.pose


def _is_level(robot: Model, geom: Geom) -> bool:
    if geom.shape.kind != "plane":
        return False
    return bool(np.abs(_place(robot, geom).rotation[:, 2] - (0.0, 0.0, 1.0)).max() < _LEVEL)
