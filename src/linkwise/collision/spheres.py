"""Spheres around the links of a robot, for checks of many configurations.

Every triangle of a link's collision geometry lies in one of the link's spheres, so nothing can touch the mesh before it
touches a sphere. Spheres lie inside the links and reach beyond their surface by about the same length everywhere, the
least one for which the given number of spheres is enough; ``Spheres.excess`` says how far. Links without geometry get
spheres along the kinematics, as ``shapes_of`` has capsules there.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.collision.cover import Cover, Covering, excess_of
from linkwise.collision.fit import divided_edges, groups_of
from linkwise.collision.shapes import SIDES, TAPER, THICKNESS, Reading
from linkwise.compiler.runtime import cache, threads
from linkwise.core.once import once
from linkwise.core.products import length, times
from linkwise.geometry.looks import Visual
from linkwise.geometry.skeleton import Capsule, skeleton
from linkwise.geometry.solids import Mesh, Primitive, cylinder, sphere
from linkwise.model import Model

PER_BODY = 7  # spheres of a moving link, on average
MOST = 512  # of a robot
ROUNDING = (
    1e-4  # [m] added to every radius: positions in single precision are this exact for robots below 100 m
)
FINE = 4e-3  # [m] excess of small spheres in place of one sphere
FINE_EDGE = 12e-3  # [m] longest edge of triangles that they cover
MOST_SMALL = 96  # of one sphere
MOST_NEAR = 256  # of one that touches in many postures
GROUPED = 8  # of them in a group
FINEST = 8e-4  # [m] excess where links that can be apart are nearer to each other than small spheres show
MOST_FINEST = 128  # of one group
_LEAST_EXCESS = 1e-3  # [m]
_HALVINGS = 9  # of the range of the excess
_TRIES = 6  # of a smaller excess, as spheres that others make superfluous are not counted before
_THINNER = 0.95  # factor of the excess in each of them
_CENTRING = 24  # steps of the search for the centre of an enclosing sphere
_CENTRED = 200  # points by which it is found, about
Place = tuple[int, int]  # of a group: number of the sphere, place in it
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


class SmallSpheres(NamedTuple):
    """Small spheres in place of larger ones, in groups. What a mesh has in the larger one lies in its groups, and what
    it has in a group lies in the small spheres of the group.

    ``parent``: the number of the larger one of each group (g,), ascending; ``groups``: centre [m] in the frame of its
    body and radius [m] of each group (g, 4); ``starts``: numbers of their first small spheres (g + 1,); ``rows``:
    centre and radius of the small spheres (k, 4).
    """

    parent: np.ndarray
    groups: np.ndarray
    starts: np.ndarray
    rows: np.ndarray


class Divide(Protocol):
    """Gives small spheres in place of some."""

    def __call__(
        self,
        numbers: tuple[int, ...],
        more: frozenset[int] = frozenset(),
        finer: frozenset[Place] = frozenset(),
        /,
    ) -> SmallSpheres:
        """Small spheres of spheres with these numbers; ``more``: numbers of those that may be divided into more small
        ones; ``finer``: groups, by sphere and place in it, in place of which there are groups of spheres that reach
        beyond the mesh by less."""
        ...


@dataclass(frozen=True, eq=False)
class Spheres:
    """Spheres of a robot in the frames of its bodies (see ``Model.carrier``).

    Args:
        body: the body of each sphere, shape (k,), ascending; −1 is the base.
        centre: in the frame of the body [m], shape (k, 3).
        radius: [m], shape (k,).
        excess: largest distance [m] of a sphere's surface from the geometry that it covers, measured at points of it.
        notes: where the geometry came from, in words.
        links: names of the links that have geometry, by body.
        divide: gives small spheres in place of some; None where there is no geometry to cover.
        surfaces: triangles (k, 3, 3) of each mesh and solid [m], by body; of bodies without geometry there are none.
        problems: what could not be read of the geometry, in words.
        seen_only: bodies of visual geometry alone, in a file that has collision geometry of others.
    """

    body: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    excess: float
    notes: tuple[str, ...] = ()
    links: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    divide: Divide | None = None
    surfaces: Mapping[int, list[np.ndarray]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    seen_only: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.body)

    def of(self, body: int) -> np.ndarray:
        """Numbers of the spheres of a body."""
        return np.flatnonzero(self.body == body)

    def row(self, number: int) -> np.ndarray:
        """Centre [m] and radius [m] of a sphere, shape (1, 4)."""
        return np.append(self.centre[number], self.radius[number])[None]

    @property
    def bodies(self) -> list[int]:
        """Bodies that have spheres."""
        return sorted(set(self.body.tolist()))

    def bound(self, body: int) -> tuple[np.ndarray, float]:
        """Centre [m] and radius [m] of a sphere around all spheres of a body."""
        return self._bounds[body]

    @once
    def _bounds(self) -> dict[int, tuple[np.ndarray, float]]:
        """Spheres around the spheres of each body."""
        of = {body: self.of(body) for body in self.bodies}
        return {body: enclosing_sphere(self.centre[k], self.radius[k]) for body, k in of.items()}


def spheres_of(
    robot: Model,
    *,
    count: int | None = None,
    margin: float = 0.0,
    meshes: Iterable[str | os.PathLike[str]] = (),
) -> Spheres:
    """Spheres that cover the collision geometry of a robot's links; kept for the next call with the same arguments.

    Args:
        robot: the robot; its geometry is read from the file that it was loaded from.
        count: number of spheres of all links together; by default seven for each moving link. Links with more separate
            parts have more.
        margin: added to every radius [m].
        meshes: further folders with meshes.
    """
    given = Numbers()
    number = given.whole("count", count, 1, MOST) if count is not None else None
    extra = given.number("margin", margin, least=0.0)
    known: dict[object, Spheres] = robot.__dict__.setdefault("_spheres", {})
    key = (number, extra, tuple(os.fspath(each) for each in meshes))
    if key not in known:
        known[key] = _spheres(robot, number, extra, _Triangles(robot, key[2]))
    return known[key]


@lru_cache(maxsize=64)
def _spheres(robot: Model, count: int | None, margin: float, geometry: _Triangles) -> Spheres:
    """Equal robots may come from files with other geometry, so that is part of the key."""
    bones = [rod for rod in skeleton(robot, THICKNESS, TAPER).capsules if rod.body in geometry.lacking]
    total = PER_BODY * max(1, len(robot.moving_joints)) if count is None else count
    pieces = _Pieces(geometry.triangles)
    rows, excess = _fitted_once(pieces, min(total, MOST))
    body, centre, radius = rows[:, 0].astype(int), rows[:, 1:4], rows[:, 4]
    round_ones = [*geometry.balls, *(ball for rod in bones for ball in _along(rod))]
    body = np.concatenate([body, np.array([each[0] for each in round_ones], dtype=int)])
    centre = np.concatenate([centre, np.array([each[1] for each in round_ones]).reshape(-1, 3)])
    radius = np.concatenate([radius, np.array([each[2] for each in round_ones], dtype=float)])
    order = np.argsort(body, kind="stable")
    notes = [note.replace("capsules", "spheres") for note in geometry.notes(bones)]
    links = {key: tuple(dict.fromkeys(names)) for key, names in geometry.links.items()}
    size = radius[order] + ROUNDING + margin

    def divide(
        numbers: tuple[int, ...],
        more: frozenset[int] = frozenset(),
        finer: frozenset[Place] = frozenset(),
    ) -> SmallSpheres:
        fitted = {
            int(order[k]): MOST_NEAR if k in more else MOST_SMALL for k in numbers if order[k] < len(rows)
        }
        smaller = tuple(sorted((int(order[k]), place) for k, place in finer))
        found = _divided_once(pieces, rows, fitted, smaller)
        found = found[np.lexsort((found[:, 1], np.argsort(order)[found[:, 0].astype(int)]))]
        found[:, 5] += ROUNDING + margin
        heads = found[:, 6] == 1.0
        before = np.flatnonzero(heads) - np.arange(int(heads.sum()))
        return SmallSpheres(
            np.argsort(order)[found[heads, 0].astype(int)],
            found[heads, 2:6],
            np.append(before, int((~heads).sum())),
            found[~heads, 2:6],
        )

    surfaces = {body: parts for body, parts in geometry.surfaces.items() if body not in geometry.lacking}
    problems = tuple(dict.fromkeys(geometry.problems))
    return Spheres(
        body[order],
        centre[order],
        size,
        excess,
        tuple(notes),
        links,
        divide,
        surfaces,
        problems,
        geometry.seen_only,
    )


class _Triangles(Reading):
    """Geometry by body: ``triangles`` (k, 3, 3), and ``balls`` (body, centre, radius) that need no fitting."""

    def __init__(self, robot: Model, meshes: tuple[str, ...]):
        self.triangles: dict[int, list[np.ndarray]] = {}
        self.balls: list[tuple[int, np.ndarray, float]] = []
        self.links: dict[int, list[str]] = {}
        self.surfaces: dict[int, list[np.ndarray]] = {}
        super().__init__(robot, meshes)
        self._content = self._digest()

    def _digest(self) -> bytes:
        """Of everything that was read."""
        content = hashlib.sha256()
        for body, parts in sorted(self.triangles.items()):
            for part in parts:
                content.update(b"%d %d" % (body, len(part)) + part.tobytes())
        for body, centre, radius in self.balls:
            content.update(b"%d" % body + np.append(centre, radius).tobytes())
        more = (self.robot.source, self.links, sorted(self.lacking), self.problems, sorted(self.seen_only))
        content.update(repr(more).encode())
        return content.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Triangles) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def _add(self, visual: Visual) -> None:
        body, pose = self.robot.carrier(visual.link)
        pose = pose @ visual.pose
        primitive = visual.part.primitive
        self.pieces.setdefault(body, [])
        self.links.setdefault(body, []).append(visual.link)
        own = (visual.part.mesh if primitive is None else primitive.mesh()).moved(pose)
        self.surfaces.setdefault(body, []).append(own.vertices[own.faces])
        if primitive is not None and primitive.kind in ("sphere", "capsule"):
            half = np.array([0.0, 0.0, primitive.sizes[1] / 2 if primitive.kind == "capsule" else 0.0])
            ends = [times(pose.rotation, end) + pose.translation for end in (-half, half)]
            self.balls += _along(Capsule(body, ends[0], ends[1], primitive.sizes[0]))
            return
        mesh = own if primitive is None else _around(primitive).moved(pose)
        if len(mesh.faces):
            self.triangles.setdefault(body, []).append(mesh.vertices[mesh.faces])


def _around(primitive: Primitive) -> Mesh:
    """A mesh that contains the solid."""
    outside = 1.0 / math.cos(math.pi / SIDES)
    if primitive.kind == "cylinder":
        return cylinder(outside * primitive.sizes[0], primitive.sizes[1], sides=SIDES)
    if primitive.kind == "ellipsoid":
        return sphere(outside**2, sides=SIDES).scaled(primitive.sizes)
    return primitive.mesh()


def _along(rod: Capsule) -> list[tuple[int, np.ndarray, float]]:
    """Spheres that cover a capsule: neighbours are as far apart as its radius."""
    distance = length(rod.end - rod.start)
    count = 1 + math.ceil(distance / rod.radius) if rod.radius > 0 and distance > 0 else 1
    gap = distance / (count - 1) if count > 1 else 0.0
    radius = math.hypot(rod.radius, gap / 2)
    parts = np.linspace(0.0, 1.0, count) if count > 1 else np.array([0.5])
    return [(rod.body, rod.start + part * (rod.end - rod.start), radius) for part in parts]


# -- spheres around triangles -----------------------------------------------------------------------------------------


class _Pieces(dict[int, list[np.ndarray]]):
    """Triangles (k, 3, 3) of the meshes of each body."""

    @once
    def covers(self) -> dict[int, Cover]:
        """What covers them; one for bodies with the same triangles, such as those of two equal arms."""
        bodies = {content: body for body, content in reversed(self._contents.items())}
        made = dict(zip(bodies, _at_once(lambda body: Cover(self[body]), [*bodies.values()]), strict=True))
        return {body: made[content] for body, content in self._contents.items()}

    @once
    def _contents(self) -> dict[int, bytes]:
        """Digests of the triangles of each body, in the order of bodies."""
        found: dict[int, bytes] = {}
        for body in sorted(self):
            content = hashlib.sha256()
            for triangles in self[body]:
                content.update(b"%d" % len(triangles))
                content.update(np.ascontiguousarray(triangles).data)
            found[body] = content.digest()
        return found

    def stored(self, name: bytes, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Numbers that follow from the triangles, from the cache of compiled code where that has them."""
        content = hashlib.sha256(name)
        for body, digest in self._contents.items():
            content.update(b"%d" % body + digest)
        key = cache.key(content.digest())
        stored = cache.load(key)
        if stored is None:
            stored = make().tobytes()
            cache.store(key, stored)
        return np.frombuffer(stored)


def _fitted_once(pieces: _Pieces, total: int) -> tuple[np.ndarray, float]:
    """``_fitted``, stored."""
    numbers = pieces.stored(b"spheres 11 %d" % total, lambda: _fitted(pieces.covers, total))
    return numbers[1:].reshape(-1, 5), float(numbers[0])


def _fitted(covers: dict[int, Cover], total: int) -> np.ndarray:
    """The excess, the least one for which ``total`` spheres are enough, and rows (body, x, y, z, radius)."""
    low, high = _LEAST_EXCESS, max((cover.extent for cover in covers.values()), default=1.0)
    bodies = Counter(covers.values())
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        enough = _are_enough(bodies, middle, total)
        low, high = (low, middle) if enough else (middle, high)
    fitted = _covered(bodies, high)
    for _ in range(_TRIES):
        high *= _THINNER
        thinner = _covered(bodies, high)
        if sum(bodies[cover] * len(found.radius) for cover, found in thinner.items()) > total:
            break
        fitted = thinner
    rows = [
        np.column_stack([np.full(len(found.radius), body), found.centre, found.radius])
        for body, found in ((body, fitted[covers[body]]) for body in sorted(covers))
    ]
    excess = 0.0
    for cover, found in fitted.items():
        excess = excess_of(found.centre, found.radius, cover.triangles, excess)
    return np.concatenate([[excess], *(each.reshape(-1) for each in rows)])


def _covered(kinds: Iterable[Cover], excess: float) -> dict[Cover, Covering]:
    """Spheres of each, with an excess [m]."""
    covers = [*kinds]
    return dict(zip(covers, _at_once(lambda cover: cover.spheres(excess), covers), strict=True))


def _are_enough(bodies: Mapping[Cover, int], excess: float, total: int) -> bool:
    """Whether ``total`` spheres with this excess [m] cover so many bodies of each kind; ends once they do not."""
    left = total
    for cover, count in bodies.items():
        if cover.are_more(excess, left // count):
            return False
        left -= count * cover.count(excess)
    return True


def _divided_once(
    pieces: _Pieces, rows: np.ndarray, numbers: Mapping[int, int], finer: tuple[Place, ...]
) -> np.ndarray:
    """``_divided``, stored."""
    name = b"small spheres 13 %r %r " % (numbers, finer) + np.ascontiguousarray(rows).tobytes()
    return pieces.stored(name, lambda: _divided(pieces.covers, rows, numbers, finer)).reshape(-1, 7).copy()


def _divided(
    covers: dict[int, Cover], rows: np.ndarray, numbers: Mapping[int, int], finer: tuple[Place, ...]
) -> np.ndarray:
    """Rows (number of the sphere, place, x, y, z, radius, whether it is a group) of groups of small spheres, each
    before its small spheres, for what the meshes have in some spheres, with the most small spheres of each."""
    found: list[np.ndarray] = [np.zeros((0, 7))]
    count = 0
    owners: dict[Cover, np.ndarray] = {}
    places: dict[int, tuple[Cover, int, int, tuple[int, ...]]] = {}
    for number, most in numbers.items():
        cover = covers[int(rows[number, 0])]
        mine = rows[rows[:, 0] == rows[number, 0], 1:]
        first = int((rows[:, 0] < rows[number, 0]).sum())
        places[number] = cover, number - first, most, tuple(place for k, place in finer if k == number)
        if cover not in owners:
            owners[cover] = cover.owners(mine)
    parts = [*dict.fromkeys(places.values())]
    small_ones = _at_once(
        lambda part: _small(part[0], part[0].triangles[owners[part[0]] == part[1]], *part[2:]), parts
    )
    made = dict(zip(parts, small_ones, strict=True))
    for number in numbers:
        small = made[places[number]]
        found.append(np.column_stack([np.full(len(small), number), count + np.arange(len(small)), small]))
        count += len(small)
    return np.concatenate(found)


def _at_once(function: Callable[[_Given], _Found], items: Sequence[_Given]) -> list[_Found]:
    """The function of each item, in threads: most of the time is spent in large arrays, without Python's lock."""
    workers = min(threads.wanted(None), len(items))
    if workers < 2:
        return [function(each) for each in items]
    with ThreadPoolExecutor(workers, "linkwise-spheres") as pool:
        return list(pool.map(function, items))


def _small(cover: Cover, triangles: np.ndarray, most: int, finer: tuple[int, ...]) -> np.ndarray:
    """Rows (x, y, z, radius, whether it is a group) of groups, each before its small spheres, for some triangles of a
    body; several groups of finer spheres in place of those with the given numbers. What was found before is kept, as
    spheres are divided again once it is known which groups are to be finer."""
    if not len(triangles):
        return np.zeros((0, 5))
    key = (most, len(triangles), float(triangles[0, 0, 0]), float(triangles.sum()))
    if key not in cover.parts:
        pieces = divided_edges(triangles, FINE_EDGE)
        small = cover.part(pieces, FINE, most)
        groups = groups_of(small.centre, GROUPED)
        owners = [np.isin(small.owner, group) for group in groups]
        cover.parts[key] = [
            (pieces[mine], rows)
            for mine, rows in zip(
                owners, _grouped(cover.grown, [pieces[m] for m in owners], small, groups), strict=True
            )
        ]
    rows: list[np.ndarray] = []
    for number, (own, kept) in enumerate(cover.parts[key]):
        if number in finer:
            pieces, fine = cover.finer(own, FINEST, MOST_FINEST)
            groups = groups_of(fine.centre, GROUPED)
            rows += _grouped(0.0, [pieces[np.isin(fine.owner, some)] for some in groups], fine, groups)
        else:
            rows.append(kept)
    return np.concatenate(rows)


def _grouped(
    grown: float, triangles: list[np.ndarray], small: Covering, groups: list[np.ndarray]
) -> list[np.ndarray]:
    """Rows of each group around its triangles and of its small spheres."""
    found: list[np.ndarray] = []
    for group, (centre, radius) in zip(groups, enclosing_spheres(triangles), strict=True):
        spheres = np.column_stack([small.centre[group], small.radius[group], np.zeros(len(group))])
        found.append(np.concatenate([[[*centre, radius + grown, 1.0]], spheres]))
    return found


def enclosing_sphere(points: np.ndarray, radii: np.ndarray | float = 0.0) -> tuple[np.ndarray, float]:
    """Centre and radius of a small sphere around points or spheres (Bădoiu and Clarkson 2003).

    Args:
        points: [m], shape (..., 3).
        radii: of spheres around the points [m].
    """
    return enclosing_spheres([points], [radii])[0]


def enclosing_spheres(
    points: Sequence[np.ndarray], radii: Sequence[np.ndarray | float] | None = None
) -> list[tuple[np.ndarray, float]]:
    """``enclosing_sphere`` of several sets of points, which takes little longer than one.

    Args:
        points: of each set [m], shapes (..., 3).
        radii: of spheres around the points of each set [m]; by default 0.
    """
    if not len(points):
        return []
    flat = [np.ascontiguousarray(each.reshape(-1, 3).T) for each in points]
    sizes = [
        np.broadcast_to(
            np.asarray(0.0 if radii is None else radii[k], dtype=float).reshape(-1), each.shape[1]
        )
        for k, each in enumerate(flat)
    ]
    steps = [max(1, each.shape[1] // _CENTRED) for each in flat]
    counts = [-(-each.shape[1] // step) for each, step in zip(flat, steps, strict=True)]
    shape = len(flat), max(counts)
    some, around = np.zeros((3, *shape)), np.zeros(shape)
    for k, (each, size, step, count) in enumerate(zip(flat, sizes, steps, counts, strict=True)):
        some[:, k, :count], around[k, :count] = each[:, ::step], size[::step]
        some[:, k, count:], around[k, count:] = each[:, :1], size[0]  # the first one again
    lows = np.array([each.min(axis=1) for each in flat]).reshape(-1, 3)
    centre = (lows + np.array([each.max(axis=1) for each in flat]).reshape(-1, 3)) / 2
    best, least, rows = centre.copy(), np.full(len(flat), np.inf), np.arange(len(flat))
    for k in range(1, _CENTRING):
        far = _farthest(some, around, centre.T)
        farthest = far.argmax(axis=1)
        largest = far[rows, farthest]
        better = largest < least
        best[better], least[better] = centre[better], largest[better]
        centre = centre + (some[:, rows, farthest].T - centre) / (k + 1)
    return [
        (middle, float(_farthest(each, size, middle).max()))
        for middle, each, size in zip(best, flat, sizes, strict=True)
    ]


def _farthest(points: np.ndarray, radii: np.ndarray, centre: np.ndarray) -> np.ndarray:
    x, y, z = points - centre[..., None]
    return np.sqrt(x * x + y * y + z * z) + radii
