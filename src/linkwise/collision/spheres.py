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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.collision import fit
from linkwise.collision.shapes import SIDES, TAPER, THICKNESS, Reading
from linkwise.compiler.runtime import cache
from linkwise.core.products import length, times
from linkwise.geometry.looks import Visual
from linkwise.geometry.skeleton import Capsule, skeleton
from linkwise.geometry.solids import Mesh, Primitive, cylinder, sphere
from linkwise.model import Model

PER_BODY = 8  # spheres of a moving link, on average
MOST = 512  # of a robot
POINTS = 400  # of the meshes of a link that are kept
ROUNDING = (
    1e-4  # [m] added to every radius: positions in single precision are this exact for robots below 100 m
)
_GROUPED = 400  # triangles of a link by which spheres are chosen; all of them are covered at the end
_LEAST_EXCESS = 1e-3  # [m]
_ROUGH = 4e-3  # [m] depth of grooves and edges that do not make the spheres inside a link smaller
_HALVINGS = 9  # of the range of the excess
_CENTRING = 24  # steps of the search for the centre of an enclosing sphere
_SHOWN = 48  # points of a sphere's surface by which its excess is measured


@dataclass(frozen=True)
class Spheres:
    """Spheres of a robot in the frames of its bodies (see ``Model.carrier``).

    Args:
        body: the body of each sphere, shape (k,), ascending; −1 is the base.
        centre: in the frame of the body [m], shape (k, 3).
        radius: [m], shape (k,).
        excess: largest distance [m] of a sphere's surface from the geometry that it covers, measured at points of it.
        notes: where the geometry came from, in words.
        links: names of the links that have geometry, by body.
        owner: for points of the meshes the number of a sphere that contains each, shape (p,).
        points: in the frame of the body [m], shape (p, 3).
    """

    body: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    excess: float
    notes: tuple[str, ...] = ()
    links: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    owner: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.body)

    def of(self, body: int) -> np.ndarray:
        """Numbers of the spheres of a body."""
        return np.flatnonzero(self.body == body)

    @property
    def bodies(self) -> list[int]:
        """Bodies that have spheres."""
        return [int(body) for body in np.unique(self.body)]

    def bound(self, body: int) -> tuple[np.ndarray, float]:
        """Centre [m] and radius [m] of a sphere around all spheres of a body."""
        mine = self.of(body)
        return enclosing_sphere(self.centre[mine], self.radius[mine])


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
        count: number of spheres of all links together; by default eight for each moving link. Links with more separate
            parts have more.
        margin: added to every radius [m].
        meshes: further folders with meshes.
    """
    given = Numbers()
    number = given.whole("count", count, 1, MOST) if count is not None else None
    extra = given.number("margin", margin, least=0.0)
    return _spheres(robot, number, extra, tuple(os.fspath(each) for each in meshes))


@lru_cache(maxsize=64)
def _spheres(robot: Model, count: int | None, margin: float, meshes: tuple[str, ...]) -> Spheres:
    geometry = _Triangles(robot, meshes)
    bones = [rod for rod in skeleton(robot, THICKNESS, TAPER).capsules if rod.body in geometry.lacking]
    total = PER_BODY * max(1, len(robot.moving_joints)) if count is None else count
    rows, points, excess = _stored(geometry.triangles, min(total, MOST))
    body, centre, radius = rows[:, 0].astype(int), rows[:, 1:4], rows[:, 4]
    round_ones = [*geometry.balls, *(ball for rod in bones for ball in _along(rod))]
    body = np.concatenate([body, np.array([each[0] for each in round_ones], dtype=int)])
    centre = np.concatenate([centre, np.array([each[1] for each in round_ones]).reshape(-1, 3)])
    radius = np.concatenate([radius, np.array([each[2] for each in round_ones], dtype=float)])
    order = np.argsort(body, kind="stable")
    notes = [note.replace("capsules", "spheres") for note in geometry.notes(bones)]
    links = {key: tuple(dict.fromkeys(names)) for key, names in geometry.links.items()}
    size = radius[order] + ROUNDING + margin
    place = np.argsort(order)
    owner = place[points[:, 0].astype(int)]
    return Spheres(body[order], centre[order], size, excess, tuple(notes), links, owner, points[:, 1:])


class _Triangles(Reading):
    """Geometry by body: ``triangles`` (k, 3, 3), and ``balls`` (body, centre, radius) that need no fitting."""

    def __init__(self, robot: Model, meshes: tuple[str, ...]):
        self.triangles: dict[int, list[np.ndarray]] = {}
        self.balls: list[tuple[int, np.ndarray, float]] = []
        self.links: dict[int, list[str]] = {}
        super().__init__(robot, meshes)

    def _add(self, visual: Visual) -> None:
        body, pose = self.robot.carrier(visual.link)
        pose = pose @ visual.pose
        primitive = visual.part.primitive
        self.pieces.setdefault(body, [])
        self.links.setdefault(body, []).append(visual.link)
        if primitive is not None and primitive.kind in ("sphere", "capsule"):
            half = np.array([0.0, 0.0, primitive.sizes[1] / 2 if primitive.kind == "capsule" else 0.0])
            ends = [times(pose.rotation, end) + pose.translation for end in (-half, half)]
            self.balls += _along(Capsule(body, ends[0], ends[1], primitive.sizes[0]))
            return
        mesh = visual.part.mesh if primitive is None else _around(primitive)
        if len(mesh.faces):
            self.triangles.setdefault(body, []).append(mesh.moved(pose).vertices[mesh.faces])


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


def _stored(pieces: dict[int, list[np.ndarray]], total: int) -> tuple[np.ndarray, np.ndarray, float]:
    """``_fitted``, from the cache of compiled code where that has it."""
    content = hashlib.sha256(b"spheres 3 %d" % total)
    for body in sorted(pieces):
        for triangles in pieces[body]:
            content.update(b"%d %d" % (body, len(triangles)))
            content.update(np.ascontiguousarray(triangles).tobytes())
    name = cache.key(content.digest())
    stored = cache.load(name)
    if stored is None:
        rows, points, excess = _fitted(pieces, total)
        stored = np.concatenate([[excess, len(rows)], rows.reshape(-1), points.reshape(-1)]).tobytes()
        cache.store(name, stored)
    numbers = np.frombuffer(stored)
    end = 2 + 5 * int(numbers[1])
    return numbers[2:end].reshape(-1, 5), numbers[end:].reshape(-1, 4), float(numbers[0])


def _fitted(pieces: dict[int, list[np.ndarray]], total: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows (body, x, y, z, radius), points of the meshes (sphere, x, y, z), and the excess: the least one for which
    ``total`` spheres are enough."""
    covers = {body: _Cover(parts) for body, parts in pieces.items()}
    low, high = _LEAST_EXCESS, max((cover.extent for cover in covers.values()), default=1.0)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        enough = sum(cover.count(middle) for cover in covers.values()) <= total
        low, high = (low, middle) if enough else (middle, high)
    rows: list[np.ndarray] = [np.zeros((0, 5))]
    points: list[np.ndarray] = [np.zeros((0, 4))]
    excess, count = 0.0, 0
    for body in sorted(covers):
        centre, radius = covers[body].spheres(high)
        rows.append(np.column_stack([np.full(len(centre), body), centre, radius]))
        few = covers[body].triangles
        few = few[:: max(1, len(few) // POINTS)]
        owner = (_corner_distances(few, centre) - radius).argmin(axis=1)
        points.append(np.column_stack([owner + count, few.mean(axis=1)]))
        count += len(centre)
        excess = max(excess, _excess(centre, radius, covers[body].triangles))
    return np.concatenate(rows), np.concatenate(points), excess


class _Cover:
    """Spheres that cover the triangles of one body and reach beyond them by about a given excess.

    Candidates are spheres inside the solid that touch its surface from within (its medial axis): enlarged by the excess
    they reach no farther beyond the surface. Of these the one that covers most triangles is taken, until all are
    covered.
    """

    def __init__(self, parts: list[np.ndarray]):
        corners = np.concatenate([part.reshape(-1, 3) for part in parts])
        self.extent = float(np.ptp(corners, axis=0).max(initial=0.0)) + 1e-6
        divided = [fit.divided_edges(_outward(part), self.extent / 10) for part in parts]
        self.triangles = np.concatenate(divided)
        few = [part[:: max(1, len(part) // max(40, _GROUPED // len(parts)))] for part in divided]
        self.few = np.concatenate(few)
        found = [_inscribed(part, self.extent) for part in few]
        found.append(_own(self.few))  # so that every triangle is covered by a candidate
        self.centre = np.concatenate([centre for centre, _ in found])
        self.radius = np.concatenate([radius for _, radius in found])
        self.far = _corner_distances(self.few, self.centre)

    def count(self, excess: float) -> int:
        """Spheres that are needed for the triangles that were looked at."""
        return len(self._chosen(self.far <= self.radius + excess))

    def spheres(self, excess: float) -> tuple[np.ndarray, np.ndarray]:
        """Centres and radii of spheres that contain all triangles."""
        chosen = self._chosen(self.far <= self.radius + excess)
        centre, radius = self.centre[chosen], self.radius[chosen]
        parts = np.array_split(self.triangles, max(1, len(self.triangles) // 4000))
        far = np.concatenate([_corner_distances(part, centre) for part in parts])
        owner = (far - radius).argmin(axis=1)
        used = np.unique(owner)
        size = far[np.arange(len(owner)), owner]
        return centre[used], np.array([float(size[owner == k].max()) for k in used])

    @staticmethod
    def _chosen(covers: np.ndarray) -> np.ndarray:
        """Numbers of candidates that together cover what any covers; covers: (triangles, candidates)."""
        left = covers.any(axis=1)
        chosen: list[int] = []
        while left.any():
            best = int(covers[left].sum(axis=0).argmax())
            chosen.append(best)
            left &= ~covers[:, best]
        return np.array(chosen, dtype=int)


def _own(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Spheres about the middles of triangles, through their farthest corners: centres and radii."""
    middle = triangles.mean(axis=1)
    away = triangles - middle[:, None]
    return middle, np.sqrt((away * away).sum(axis=-1)).max(axis=1)


def _outward(triangles: np.ndarray) -> np.ndarray:
    """The same triangles, counter-clockwise from outside: those of mirrored meshes are turned."""
    a, b, c = (triangles[:, k] - triangles[:, 0].mean(axis=0) for k in range(3))
    volume = float((a * np.cross(b, c)).sum())
    return triangles if volume >= 0.0 else triangles[:, ::-1]


def _inscribed(triangles: np.ndarray, extent: float) -> tuple[np.ndarray, np.ndarray]:
    """The largest spheres inside that touch the surface at the middle of each triangle: centres and radii."""
    point = triangles.mean(axis=1)
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    size = np.sqrt((normal * normal).sum(axis=1))
    inward = -normal / np.maximum(size, 1e-300)[:, None]
    others = np.concatenate([point, triangles[:, 0]])
    away = others - point[:, None]
    along = (away * inward[:, None]).sum(axis=-1)
    square = (away * away).sum(axis=-1)
    inside = along > np.maximum(_ROUGH, 1e-3 * np.sqrt(square))
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = np.where(inside, square / (2.0 * along), np.inf).min(axis=1, initial=np.inf)
    radius = np.where(size > 0.0, np.minimum(radius, 0.5 * extent), 0.0)
    return point + radius[:, None] * inward, radius


def _corner_distances(triangles: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Distance of the farthest corner of each triangle to each centre, (triangles, centres)."""
    found = np.zeros((len(triangles), len(centres)))
    for corner in range(3):
        square = np.zeros_like(found)
        for axis in range(3):
            away = triangles[:, corner, axis, None] - centres[:, axis]
            square += away * away
        np.maximum(found, square, out=found)
    return np.sqrt(found)


def enclosing_sphere(points: np.ndarray, radii: np.ndarray | float = 0.0) -> tuple[np.ndarray, float]:
    """Centre and radius of a small sphere around points or spheres (Bădoiu and Clarkson 2003).

    Args:
        points: [m], shape (..., 3).
        radii: of spheres around the points [m].
    """
    flat = points.reshape(-1, 3)
    sizes = np.broadcast_to(np.asarray(radii, dtype=float).reshape(-1), len(flat))
    centre = (flat.min(axis=0) + flat.max(axis=0)) / 2
    best, least = centre, np.inf
    for k in range(1, _CENTRING):
        away = flat - centre
        far = np.sqrt((away * away).sum(axis=1)) + sizes
        farthest = int(far.argmax())
        if far[farthest] < least:
            best, least = centre, float(far[farthest])
        centre = centre + (flat[farthest] - centre) / (k + 1)
    return best, least


def _excess(centre: np.ndarray, radius: np.ndarray, triangles: np.ndarray) -> float:
    """Largest distance of points on the outside of the spheres to corners and centres of the triangles."""
    k = np.arange(_SHOWN) + 0.5
    height, turn = 1.0 - 2.0 * k / _SHOWN, np.pi * (1.0 + 5.0**0.5) * k
    width = np.sqrt(1.0 - height * height)
    directions = np.stack([width * np.cos(turn), width * np.sin(turn), height], axis=-1)
    points = (centre[:, None] + radius[:, None, None] * directions).reshape(-1, 3)
    apart = np.sqrt(((points[:, None] - centre) ** 2).sum(axis=-1))
    outside = points[(apart >= radius - 1e-9).all(axis=1)]
    known = triangles[:: max(1, len(triangles) // 600)]
    surface = np.concatenate([known.reshape(-1, 3), known.mean(axis=1)])
    if not len(outside) or not len(surface):
        return 0.0
    least = [
        np.sqrt(((part[:, None] - surface) ** 2).sum(axis=-1)).min(axis=1)
        for part in np.array_split(outside, 1 + len(outside) // 200)
    ]
    return float(np.concatenate(least).max())
