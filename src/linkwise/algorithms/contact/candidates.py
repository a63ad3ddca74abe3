"""Candidates of contact: for each its gap, its point, its axes and the rows of its velocity.

The ground is the plane z = height of the world. A sphere with centre x and radius r has the gap x_z − r − height and
touches the ground at x − r e_z; the axes of contact are those of the world. Two shapes give candidates of ``pairs``.
Rows are the velocity of the point on the first body less that on the second, in the axes of contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkwise.algorithms import coupling
from linkwise.algorithms.contact import pairs
from linkwise.algorithms.contact.boxes import lowest_corner
from linkwise.algorithms.kinematics import Pose, axis_in_base, frame_pose, link_poses
from linkwise.model import contacts as parts
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.model.shapes import Shape, candidates_of
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, all_of, stage, where
from linkwise.spatial import Matrix, Vector

Rows = list[list[Scalar]]


@dataclass(frozen=True)
class Candidate:
    """A sphere of link ``body`` (with its centre at ``place`` in the link's file frame) that may touch the ground.

    A corner of a box is one of the four of the face that points down: ``half`` of the edges, and which ``corner``. A
    candidate of two shapes has a ``pair`` and its ``number`` in it.
    """

    body: int
    place: Transform
    radius: float
    friction: float
    restitution: float
    half: tuple[float, float, float] | None = None
    corner: tuple[float, float] = (0.0, 0.0)
    stiffness: float | None = None
    damping: float = 0.0
    torsional_friction: float = 0.0
    rolling_friction: float = 0.0
    margin: float = 0.0
    """Distance at which it touches [m]: gaps are less by it."""
    other: int | None = None
    """The other link (−1: the base); None: the ground."""
    pair: ShapePair | None = None
    number: int = 0
    pool: tuple[Candidate, ...] = ()
    """Candidates of which it is the one that is ``number``-th nearest to the ground, of ``count`` that are taken."""
    count: int = 0

    def axes_of(self, links: Mechanism) -> set[int]:
        """Links whose joints change where it is, relative to what it may touch."""
        if self.pool:
            return set[int]().union(*(each.axes_of(links) for each in self.pool))
        return moved_by(links, self.body) ^ moved_by(links, -1 if self.other is None else self.other)


@dataclass(frozen=True, eq=False)
class ShapePair:
    """Two shapes, each on a link (−1: the base) at a place in its file frame; without a second one: the ground."""

    first: tuple[int, Transform, Shape]
    second: tuple[int, Transform, Shape] | None


@dataclass(frozen=True)
class Touch:
    """One candidate in one state: gap [m], three rows of velocity (tangents before the normal), point [m], axes."""

    gap: Scalar
    rows: Rows
    point: Vector
    axes: tuple[Vector, Vector, Vector] | None = None
    """None: those of the world."""


def prepared(model: Any) -> list[Candidate]:
    """The candidates of a model on its moving links."""
    found: list[Candidate] = []
    for pairing in parts.pairings(model.contact_parts):
        contact = pairing.contact
        law = {
            "stiffness": contact.stiffness,
            "damping": contact.damping,
            "torsional_friction": contact.torsional_friction,
            "rolling_friction": contact.rolling_friction,
            "margin": contact.margin,
        }
        found += [replace(each, **law) for each in _candidates(model, pairing)]
    return found


def _candidates(model: Any, pairing: parts.Pairing) -> list[Candidate]:
    contact, first, second = pairing.contact, pairing.first, pairing.second
    if pairing.pool:
        single = [replace(pairing, first=shape, pool=(), count=0) for shape in pairing.pool]
        pool = tuple(each for one in single for each in _candidates(model, one))
        slot = Candidate(-1, Transform.identity(), 0.0, pairing.friction, contact.restitution)
        slot = replace(slot, pool=pool, count=pairing.count)
        return [replace(slot, number=number) for number in range(pairing.count)]
    body, pose = model.locate(first.frame)
    place = pose @ first.pose
    mu, e = pairing.friction, contact.restitution
    if second is None and first.kind == "sphere":
        return [Candidate(body, place, first.sizes[0], mu, e)]
    if second is None and first.kind == "capsule":
        radius, length = first.sizes
        ends = [place @ Transform.along((0.0, 0.0, 1.0), part * length) for part in (-0.5, 0.5)]
        return [Candidate(body, end, radius, mu, e) for end in ends]
    if second is None and first.kind == "box":
        x, y, z = first.sizes
        half = (0.5 * x, 0.5 * y, 0.5 * z)
        signs = [(a, b) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
        return [Candidate(body, place, 0.0, mu, e, half, sign) for sign in signs]
    if second is None:
        pair, other = ShapePair((body, place, first), None), None
    else:
        other, at = model.locate(second.frame)
        pair = ShapePair((body, place, first), (other, at @ second.pose, second))
    return [
        Candidate(body, place, 0.0, mu, e, other=other, pair=pair, number=number)
        for number in range(pairing.count or candidates_of(first, _GROUND.shape))
    ]


def gaps(
    links: Mechanism, q: Sequence[JointValue], candidates: Sequence[Candidate], height: Sequence[Scalar]
) -> list[Scalar]:
    """Distance of every candidate to what it may touch [m]; negative where it is inside."""
    poses = link_poses(links, q)
    with stage("gaps"):
        met = _Met(links, poses)
        return [met.gap(each, level) - each.margin for each, level in zip(candidates, height, strict=True)]


def touches(
    links: Mechanism,
    q: Sequence[JointValue],
    candidates: Sequence[Candidate],
    height: Sequence[Scalar],
    frames: list[Pose] | None = None,
) -> list[Touch]:
    """Gaps and rows of all candidates; ``frames``: whose axes velocities are along, else those of the links."""
    poses = link_poses(links, q)
    frames = poses if frames is None else frames
    with stage("contact rows"):
        found: list[Touch] = []
        met = _Met(links, poses)
        for each, level in zip(candidates, height, strict=True):
            if each.pool:
                found.append(_pool_touch(links, frames, met.nearest(each), level))
                continue
            if each.pair is not None:
                found.append(_pair_touch(links, frames, each, met.at(each, level)))
                continue
            centre = _centre(links, poses, each)
            point = Vector(centre.x, centre.y, centre.z - each.radius) if each.radius else centre
            rows = velocity_rows(links, frames, each.body, point)
            found.append(Touch(centre.z - (each.radius + level), rows, point))
        return [
            replace(touch, gap=touch.gap - each.margin) if each.margin else touch
            for touch, each in zip(found, candidates, strict=True)
        ]


def frames(
    links: Mechanism, q: Sequence[JointValue], candidates: Sequence[Candidate], height: Sequence[Scalar]
) -> list[list[list[Scalar]]]:
    """The 4×4 pose of every contact in the base frame: its axes (the normal last) and its point."""
    found: list[list[list[Scalar]]] = []
    for touch in touches(links, q, candidates, height):
        a, b, n = touch.axes or (Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))
        rows = [list(row) for row in zip(a, b, n, touch.point, strict=True)]
        found.append([*rows, [0.0, 0.0, 0.0, 1.0]])
    return found


class _Met:
    """Candidates of pairs: each pair is computed once."""

    def __init__(self, links: Mechanism, poses: list[Pose]):
        self.links, self.poses = links, poses
        self.known: dict[int, list[pairs.Meeting]] = {}
        self.pools: dict[int, list[_Lowest]] = {}

    def gap(self, each: Candidate, level: Scalar) -> Scalar:
        if each.pool:
            return self.nearest(each).height - level
        if each.pair is not None:
            return self.at(each, level).gap
        return _centre(self.links, self.poses, each).z - (each.radius + level)

    def nearest(self, slot: Candidate) -> _Lowest:
        """The lowest points of a pool are found once for all of its candidates."""
        if id(slot.pool) not in self.pools:
            points = [_lowest_point(self, each) for each in slot.pool]
            self.pools[id(slot.pool)] = _lowest(points, slot.count)
        return self.pools[id(slot.pool)][slot.number]

    def at(self, each: Candidate, level: Scalar) -> pairs.Meeting:
        pair = each.pair
        assert pair is not None
        if id(pair) not in self.known:
            second = _GROUND if pair.second is None else self._placed(pair.second)
            self.known[id(pair)] = pairs.meetings(self._placed(pair.first), second)
        met = self.known[id(pair)][each.number]
        if pair.second is not None:
            return met
        # above z = 0 so far; the ground may have another height under every candidate
        return pairs.Meeting(met.gap - level, met.normal, (met.point[0], met.point[1], met.gap))

    def _placed(self, part: tuple[int, Transform, Shape]) -> pairs.Placed:
        body, place, shape = part
        return pairs.Placed(shape, frame_pose(self.links, self.poses, body, place))


_GROUND = pairs.Placed(
    Shape("ground", "plane"),
    Pose(Matrix(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), Vector(0.0, 0.0, 0.0)),
)


def _pair_touch(links: Mechanism, frames: list[Pose], each: Candidate, met: pairs.Meeting) -> Touch:
    point = Vector(*met.point)
    own = velocity_rows(links, frames, each.body, point, each.axes_of(links), each.other)
    if each.other is None:
        return Touch(met.gap, own, point)
    axes = tuple(Vector(*axis) for axis in pairs.axes(met.normal))
    x, y, z = own
    rows = [[a.x * i + a.y * j + a.z * k for i, j, k in zip(x, y, z, strict=True)] for a in axes]
    return Touch(met.gap, rows, point, (axes[0], axes[1], axes[2]))


def _centre(links: Mechanism, poses: list[Pose], each: Candidate) -> Vector:
    pose = frame_pose(links, poses, each.body, each.place)
    if each.half is None:
        return pose.position
    R = pose.rotation
    corner = lowest_corner((R.zx, R.zy, R.zz), each.half, each.corner)
    return R @ Vector(*corner) + pose.position


def moved_by(links: Mechanism, body: int) -> set[int]:
    """Links whose joints move this one; none for the base, −1."""
    return {body, *links.ancestors(body)} if body >= 0 else set[int]()


def turning_rows(links: Mechanism, frames: list[Pose], each: Candidate, touch: Touch) -> Rows:
    """Rows of the angular velocity of a candidate's link relative to what it touches, about the axes of the contact."""
    with stage("contact rows"):
        moving = each.axes_of(links)
        behind = set[int]() if each.other is None else moved_by(links, each.other)
        rows: Rows = [[], [], []]
        for k, axis in links.coordinates():
            column: list[Scalar] = [0.0, 0.0, 0.0]
            if k in moving:
                turned = axis_in_base(axis, frames[k]).angular
                turned = -turned if k in behind else turned
                column = [*turned] if touch.axes is None else [along.dot(turned) for along in touch.axes]
            for row, entry in zip(rows, column, strict=True):
                row.append(entry)
        return [coupling.reduced(links, row, (True,)) for row in rows]


def velocity_rows(
    links: Mechanism,
    frames: list[Pose],
    body: int,
    point: Vector,
    moving: set[int] | None = None,
    other: int | None = None,
) -> Rows:
    """Rows of the velocity of the point of a link that is at ``point``, in base axes; less that of another link."""
    moving = moved_by(links, body) if moving is None else moving
    behind = set[int]() if other is None else moved_by(links, other)
    rows: Rows = [[], [], []]
    for k, axis in links.coordinates():
        column: list[Scalar] = [0.0, 0.0, 0.0]
        if k in moving:
            column = [*axis_in_base(axis, frames[k], point).linear]
            column = [-x for x in column] if k in behind else column
        for row, entry in zip(rows, column, strict=True):
            row.append(entry)
    return [coupling.reduced(links, row, (True,)) for row in rows]


# -- the nearest of many ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Lowest:
    """A point of one of several links: its height, the point itself, and the number of the link as a scalar."""

    height: Scalar
    point: Vector
    body: Scalar
    bodies: frozenset[int]
    """Links that it may belong to."""


def _lowest_point(met: _Met, each: Candidate) -> _Lowest:
    bodies = frozenset([each.body])
    if each.pair is not None:
        meeting = met.at(each, 0.0)
        return _Lowest(meeting.gap, Vector(*meeting.point), float(each.body), bodies)
    centre = _centre(met.links, met.poses, each)
    height = centre.z - each.radius
    return _Lowest(height, Vector(centre.x, centre.y, height), float(each.body), bodies)


def _lowest(points: list[_Lowest], count: int) -> list[_Lowest]:
    """The lowest ones by height: each point goes to its place among those before it, without branches."""
    found: list[_Lowest] = []
    for new in points:
        kept: list[_Lowest] = []
        for old in found:
            swaps = new.height < old.height
            kept.append(_either(swaps, new, old))
            new = _either(swaps, old, new)
        found = [*kept, new][:count]
    return found


def _either(condition: Any, one: _Lowest, other: _Lowest) -> _Lowest:
    return _Lowest(
        where(condition, one.height, other.height),
        Vector(*(where(condition, a, b) for a, b in zip(one.point, other.point, strict=True))),
        where(condition, one.body, other.body) if one.body != other.body else one.body,
        one.bodies | other.bodies,
    )


def _pool_touch(links: Mechanism, frames: list[Pose], lowest: _Lowest, level: Scalar) -> Touch:
    """Rows of the velocity of a point whose link is chosen by its number."""
    rows: Rows = [[], [], []]
    for k, axis in links.coordinates():
        moved = frozenset(body for body in lowest.bodies if k in moved_by(links, body))
        column: list[Scalar] = [0.0, 0.0, 0.0]
        if moved:
            column = [*axis_in_base(axis, frames[k], lowest.point).linear]
        if moved and moved != lowest.bodies:
            low, high = min(moved), max(moved)
            if any(low < body < high and body not in moved for body in lowest.bodies):
                raise AssertionError("links behind a joint have successive numbers")
            is_moved = all_of(lowest.body > low - 0.5, lowest.body < high + 0.5)
            column = [where(is_moved, x, 0.0) for x in column]
        for row, entry in zip(rows, column, strict=True):
            row.append(entry)
    reduced = [coupling.reduced(links, row, (True,)) for row in rows]
    return Touch(lowest.height - level, reduced, lowest.point)
