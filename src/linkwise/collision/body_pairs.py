"""Which spheres of a robot are compared with each other.

Bodies that a joint connects are not compared, nor fingers. Spheres are thicker than links: those that touch spheres of
another body in some of the random postures, as at a wrist, are divided into small ones, which reach beyond the meshes
by millimetres. Two spheres touch where small spheres of both do. Pairs of small spheres that touch in nearly all
postures touch by construction and are not compared; pairs of bodies of which nothing is compared are listed. Pairs of
links can be left out or compared by name, also by an SRDF file.

Links that are near each other by construction cannot keep a distance: ``BodyPairs.usual`` is the distance that a pair
of bodies has in half of the postures, and no more than a part of it is asked of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from linkwise.collision.checks import are_apart
from linkwise.collision.clearance import NEAR, OFTEN, body_poses, position_range
from linkwise.collision.cover import BLOCK, blocks
from linkwise.collision.spheres import FINE, Place, SmallSpheres, Spheres
from linkwise.collision.touching import Surface, relative, touching
from linkwise.core.once import once
from linkwise.core.products import times
from linkwise.errors import UnknownNameError, suggest
from linkwise.geometry.skeleton import BASE, body_name
from linkwise.model import Model
from linkwise.robot.robot import Robot

POSTURES = 1024  # random ones that show what touches
LOOKED_AT = 256  # of them in which small spheres are compared
USUAL = 32  # postures by which usual distances are found
FIRST = 64  # of these; the rest only where some pair of groups touches often in them
CLOSE = 0.2  # share of postures in which undivided spheres touch, from which on they may be beside each other
FAR_APART = 0.1  # [m] usual distances are not looked at above this
MOST_DIVIDED = 160  # spheres, those that touch most often
SLACK = 1e-4  # [m] rounding of distances in single precision
MUCH = 0.2  # share of postures in which a sphere touches another body, from which on it is divided into more
MOST_MUCH = 24  # such spheres
SOME = 0.002  # share of postures in which a sphere touches another body, from which on it is divided
REFINED = 0.1  # share of postures in which small spheres of two bodies touch though meshes may be apart, from which on
SHALLOW = (
    3.0 * FINE
)  # [m] and they may where small spheres are no deeper in each other; groups are divided further
RARELY = 0.05  # share of postures in which groups touch, from which on they may be divided further
MOST_FINER = 48  # groups, those that touch most often
TRIED = 14  # random postures in which meshes are compared
TRIES = (0, 4, 16)  # of these, with the middle and zero; the first ones show most pairs that can be apart
LinkPair = tuple[str, str]


@dataclass(frozen=True)
class BodyPairs:
    """Comparisons of a robot with itself.

    Args:
        compared: for each pair of bodies the pairs of numbers of spheres, shape (k, 2).
        small: small spheres of the spheres that are divided.
        usual: for each pair of bodies the median of its distance [m] in postures, at most ``FAR_APART``.
        apart: pairs of numbers of groups of small spheres that touch by construction; they are not compared.
        always: pairs of links that touch by construction; they are not compared. Links that are fixed to each other are
            one body: such lists have all pairs of links of two bodies.
        left_out: pairs of links that are left out by name.
        partly: pairs of links that touch by construction in some parts, of which these parts are not compared.
        unresolved: pairs of links whose spheres touch in all of some postures though meshes can be apart. They are
            compared, so hardly any configuration is free.
        seen_only: such pairs of which one has visual geometry alone, in a file that has collision geometry of other
            links. They are not compared, as the file does not ask for it.
        connected: pairs of links that a joint connects, and of fingers; they are not compared.
        never: pairs of links that touch in none of the random postures. They are compared, as that proves nothing;
            ``skip=pairs.never`` leaves them out.
    """

    compared: dict[tuple[int, int], np.ndarray]
    usual: dict[tuple[int, int], float]
    small: SmallSpheres
    apart: frozenset[tuple[int, int]]
    always: tuple[LinkPair, ...]
    left_out: tuple[LinkPair, ...]
    connected: tuple[LinkPair, ...] = ()
    never: tuple[LinkPair, ...] = ()
    partly: tuple[LinkPair, ...] = ()
    unresolved: tuple[LinkPair, ...] = ()
    seen_only: tuple[LinkPair, ...] = ()

    def of(self, sphere: int) -> range:
        """Numbers of the groups of small spheres of a sphere; none where it is not divided.

        Args:
            sphere: its number.
        """
        return self._groups.get(sphere, range(0))

    @once
    def _groups(self) -> dict[int, range]:
        """Numbers of the groups of each sphere that is divided."""
        parents, starts, counts = np.unique(self.small.parent, return_index=True, return_counts=True)
        rows = zip(parents.tolist(), starts.tolist(), counts.tolist(), strict=True)
        return {parent: range(start, start + count) for parent, start, count in rows}


def body_pairs(
    robot: Robot,
    spheres: Spheres,
    skip: Iterable[LinkPair] = (),
    compare: Iterable[LinkPair] = (),
) -> BodyPairs:
    """What is compared.

    Args:
        robot: the robot.
        spheres: of its links.
        skip: pairs of links that are not compared.
        compare: pairs of links that are compared although they touch by construction.
    """
    skipped = _bodies(robot, spheres, skip, all_of=True)
    wanted = _bodies(robot, spheres, compare, all_of=False)
    postures = _Postures(robot, spheres)
    near = _Near(robot, postures, skipped, wanted)
    small = _NONE if spheres.divide is None else spheres.divide(near.often, near.much)
    postures.place_small(small)
    apart_ones = [
        key
        for key, (_, share) in near.candidates.items()
        if key in wanted or (share is not None and (share.max() < OFTEN or not postures.by_construction(key)))
    ]
    finer = postures.finer_groups(BodyPairs({}, {}, small, frozenset(), (), ()), near.candidates, apart_ones)
    if finer and spheres.divide is not None:
        small = spheres.divide(near.often, near.much, finer)
        postures.place_small(small)
    divided = np.zeros(len(spheres), bool)
    divided[small.parent] = True
    compared: dict[tuple[int, int], np.ndarray] = {}
    apart: set[tuple[int, int]] = set()
    pairs_so_far = BodyPairs({}, {}, small, frozenset(), (), ())
    listed = {**near.listed, "always": [], "partly": []}
    for key, (pairs, share) in near.candidates.items():
        kept, left_out = np.ones(len(pairs), bool), set[tuple[int, int]]()
        if share is not None and share.max() >= CLOSE and postures.drops(key) and key not in wanted:
            kept, left_out = _kept(postures, pairs_so_far, pairs, share, divided)
        if kept.any():
            compared[key] = pairs[kept]
            apart |= left_out
            if left_out or not kept.all():
                listed["partly"] += near.names(key)
        else:
            listed["always"] += near.names(key)
    found = BodyPairs(
        compared, {}, small, frozenset(apart), **{name: tuple(pairs) for name, pairs in listed.items()}
    )
    return _with_usual(robot, found, postures, wanted)


class _Near:
    """Pairs of bodies that may be compared: ``candidates``, their pairs of spheres and how often these touch;
    ``listed``, the others by reason; ``often``, spheres that touch so often that they are divided; ``much``, those of
    them that touch in many postures."""

    def __init__(
        self,
        robot: Robot,
        postures: _Postures,
        skipped: set[tuple[int, int]],
        wanted: set[tuple[int, int]],
    ):
        self.robot, self.spheres = robot, postures.spheres
        self.listed: dict[str, list[LinkPair]] = {"left_out": [], "connected": [], "never": []}
        self.candidates: dict[tuple[int, int], tuple[np.ndarray, np.ndarray | None]] = {}
        shares = np.zeros(
            len(postures.spheres)
        )  # how often each sphere touches another body, the most of all
        close: set[int] = set()  # spheres that touch very often those of bodies that can be apart
        above = [robot.carrier(joint.parent)[0] for joint in robot.moving_joints]
        bodies = postures.spheres.bodies
        for place, first in enumerate(bodies):
            near = postures.near_bounds(first, bodies[place + 1 :])
            for number, second in enumerate(bodies[place + 1 :]):
                key = (first, second)
                if key in skipped or not (are_apart(first, second, above) or key in wanted):
                    self.listed["left_out" if key in skipped else "connected"] += self.names(key)
                    continue
                pairs = _all_pairs(postures.bodies[first], postures.bodies[second])
                share = postures.touching(first, second, near[number])
                self.candidates[key] = (pairs, share)
                if share is None:
                    self.listed["never"] += self.names(key)
                    continue
                np.maximum.at(shares, pairs, share[:, None])
                if share.max() >= OFTEN and (key in wanted or not postures.by_construction(key)):
                    close.update(pairs[share >= SOME].ravel().tolist())
        often = [int(k) for k in np.argsort(-shares, kind="stable")[:MOST_DIVIDED] if shares[k] >= SOME]
        self.often = tuple(sorted({*often, *close}))
        self.much = frozenset(k for k in often[:MOST_MUCH] if shares[k] >= MUCH)

    def names(self, key: tuple[int, int]) -> list[LinkPair]:
        """All pairs of the links of two bodies."""
        return _link_pairs(self.robot, self.spheres, key)


def _kept(
    postures: _Postures, so_far: BodyPairs, pairs: np.ndarray, share: np.ndarray, divided: np.ndarray
) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """Which pairs of spheres of two bodies that touch by construction are compared, and of these the pairs of groups
    that are not."""
    kept, apart = np.ones(len(pairs), bool), set[tuple[int, int]]()
    plain = ~divided[pairs].any(axis=1)
    kept[plain & (share >= OFTEN)] = False
    if plain.any():
        kept[np.flatnonzero(plain)[postures.beside(pairs[plain])]] = False
    for k in np.flatnonzero(~plain & (share >= OFTEN)).tolist():
        first, second = pairs[k].tolist()
        touch = postures.touching_groups(so_far, first, second)
        kept[k] = len(touch) < touch.size
        apart.update(touch if kept[k] else ())
    return kept, apart


def _with_usual(
    robot: Robot, pairs: BodyPairs, postures: _Postures, wanted: set[tuple[int, int]]
) -> BodyPairs:
    """With usual distances, and without the bodies that overlap in all postures by one part or another."""
    compared, usual, always = dict(pairs.compared), dict.fromkeys(pairs.compared, FAR_APART), [*pairs.always]
    unresolved: list[LinkPair] = []
    seen_only: list[LinkPair] = []
    for key in postures.not_far(list(compared)):
        usual[key], most, overlap = postures.usual_distance(pairs, key)
        if overlap and key not in wanted and postures.by_construction(key):
            always += _link_pairs(robot, postures.spheres, key)
            del compared[key], usual[key]
        elif most < 0.0 and key not in wanted and not postures.spheres.seen_only.isdisjoint(key):
            seen_only += _link_pairs(robot, postures.spheres, key)
            del compared[key], usual[key]
        elif most < 0.0 and key not in wanted:
            unresolved += _link_pairs(robot, postures.spheres, key)
    partly = tuple(pair for pair in pairs.partly if pair not in [*always, *seen_only])
    return replace(
        pairs,
        compared=compared,
        usual=usual,
        always=tuple(always),
        partly=partly,
        unresolved=tuple(unresolved),
        seen_only=tuple(seen_only),
    )


def _all_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    found = np.empty((len(first), len(second), 2), int)
    found[:, :, 0], found[:, :, 1] = first[:, None], second
    return found.reshape(-1, 2)


class _Postures:
    """Spheres in random postures: centres (3, spheres, postures) in base axes and single precision."""

    def __init__(self, robot: Robot, spheres: Spheres):
        self.spheres = spheres
        lower, upper = position_range(robot, None, None)
        q = np.random.default_rng(0).uniform(lower, upper, (POSTURES, robot.dof))
        self.poses = body_poses_of(robot, q).transpose(1, 2, 3, 0)
        self.centres = self._placed(spheres.body, spheres.centre, POSTURES)
        self.bodies = {body: spheres.of(body) for body in spheres.bodies}
        self.small: np.ndarray = np.zeros((3, 0, LOOKED_AT), np.float32)
        middles = np.array([spheres.bound(body)[0] for body in self.bodies]).reshape(-1, 3)
        self._bounds = self._placed(np.array([*self.bodies], int), middles, POSTURES)
        self._sizes = np.array([spheres.bound(body)[1] for body in self.bodies])
        self._places = {body: k for k, body in enumerate(self.bodies)}
        self.known: dict[tuple[int, int], bool] = {}  # pairs of bodies that touch by construction, or not
        self._surfaces: dict[int, Surface] = {}
        usual = np.vstack([0.5 * (lower + upper), np.clip(0.0, lower, upper)])
        self._shown = np.concatenate([body_poses_of(robot, usual), self.poses.transpose(3, 0, 1, 2)])

    def _placed(self, body: np.ndarray, point: np.ndarray, count: int) -> np.ndarray:
        """Points of bodies in the first postures, (3, points, count)."""
        found = np.zeros((3, len(point), count), np.float32)
        for each in dict.fromkeys(body.tolist()):
            mine = np.flatnonzero(body == each)
            x, y, z = point[mine].T[:, :, None]
            for axis, (a, b, c, d) in enumerate(self.poses[each, :, :, :count]):
                found[axis, mine] = a * x + b * y + c * z + d
        return found

    def place_small(self, small: SmallSpheres) -> None:
        """Small spheres in the postures in which they are looked at."""
        parent = np.repeat(small.parent, np.diff(small.starts))
        self.small = self._placed(self.spheres.body[parent], small.rows[:, :3], LOOKED_AT)

    def _bound_gaps(self, first: np.ndarray, second: np.ndarray, count: int) -> np.ndarray:
        """Distances [m] of the spheres around bodies, given by places, in the first postures (pairs, count)."""
        gaps = _squares(self._bounds[:, first, :count], self._bounds[:, second, :count])
        np.sqrt(gaps, out=gaps)
        gaps -= (self._sizes[first] + self._sizes[second]).astype(np.float32)[:, None]
        return gaps

    def near_bounds(self, first: int, seconds: Sequence[int]) -> np.ndarray:
        """In which postures the sphere around a body may touch those around others (others, postures)."""
        places = np.array([self._places[body] for body in seconds], int)
        found = np.zeros((len(places), POSTURES), bool)
        for some in blocks(len(places), POSTURES):
            mine = np.array([self._places[first]])
            found[some] = self._bound_gaps(mine, places[some], POSTURES) < SLACK
        return found

    def not_far(self, keys: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pairs of bodies whose usual distance may be below ``FAR_APART``, by the spheres around them."""
        places = [np.array([self._places[key[k]] for key in keys], int) for k in (0, 1)]
        gaps = np.sort(self._bound_gaps(places[0], places[1], USUAL), axis=1)
        return [keys[k] for k in np.flatnonzero(gaps[:, USUAL // 2 - 1] - SLACK < FAR_APART).tolist()]

    def touching(self, first: int, second: int, near: np.ndarray) -> np.ndarray | None:
        """In which share of the postures spheres of two bodies touch, for all pairs, those of the second running
        first; None where none touch. ``near``: in which their bounds do."""
        (which,) = np.nonzero(near)
        if not len(which):
            return None
        mine, theirs = self.bodies[first], self.bodies[second]
        radius = self.spheres.radius
        reach = (radius[mine][:, None] + radius[theirs]).astype(np.float32)[:, :, None]
        count = np.zeros((len(mine), len(theirs)), int)
        for some in blocks(len(which), reach.size):
            one, two = (self.centres[:, k[0] : k[-1] + 1, which[some]] for k in (mine, theirs))
            count += (_squares(one[:, :, None], two[:, None]) < reach * reach).sum(axis=-1)
        return count.reshape(-1) / POSTURES if count.any() else None

    def by_construction(self, key: tuple[int, int]) -> bool:
        """Whether the meshes of two bodies touch in the middle of the joint limits, at zero, and in those of the random
        postures in which their spheres are least deep in each other; of bodies without meshes it is not known, and
        taken for granted."""
        if key not in self.known:
            one, two = (self._surface(body) for body in key)
            if not (len(one) and len(two)):
                self.known[key] = True
                return True
            chosen = np.concatenate([[0, 1], 2 + self._least_deep(key)[:TRIED]])
            poses = relative(self._shown[chosen, key[0]], self._shown[chosen, key[1]])
            self.known[key] = all(touching(one, two, poses[a:b]).all() for a, b in pairwise(TRIES))
        return self.known[key]

    def drops(self, key: tuple[int, int]) -> bool:
        """Whether spheres of two bodies that touch in nearly all postures need not be compared."""
        return self.known.get(key, not all(len(self._surface(body)) for body in key))

    def _least_deep(self, key: tuple[int, int]) -> np.ndarray:
        """Numbers of postures, those first in which the spheres of two bodies are farthest apart."""
        one, two = (self.bodies[body] for body in key)
        reach = (self.spheres.radius[one][:, None] + self.spheres.radius[two]).astype(np.float32)
        gap = np.full(POSTURES, np.inf)
        for some in blocks(POSTURES, reach.size):
            first, second = (self.centres[:, k[0] : k[-1] + 1, some] for k in (one, two))
            gaps = np.sqrt(_squares(first[:, :, None], second[:, None])) - reach[:, :, None]
            gap[some] = gaps.min(axis=(0, 1))
        return np.argsort(-gap, kind="stable")

    def _surface(self, body: int) -> Surface:
        if body not in self._surfaces:
            self._surfaces[body] = Surface(self.spheres.surfaces.get(body, []))
        return self._surfaces[body]

    def finer_groups(
        self,
        pairs: BodyPairs,
        candidates: Mapping[tuple[int, int], tuple[np.ndarray, np.ndarray | None]],
        keys: Iterable[tuple[int, int]],
    ) -> frozenset[Place]:
        """Groups of small spheres, by sphere and place in it, of pairs of bodies that can be apart though small spheres
        touch in many postures; those that touch most often."""
        shares: dict[Place, float] = {}
        for key in keys:
            numbers, share = candidates[key]
            near = np.flatnonzero(share >= RARELY) if share is not None else np.zeros(0, int)
            least = np.zeros(FIRST)
            touching_ones: list[tuple[Place, np.ndarray]] = []
            for first, second in numbers[near].tolist():
                which = self._touch(first, second)
                if not len(which):
                    continue
                gap, names = self._group_gaps(pairs, first, second, which)
                least[which] = np.minimum(least[which], gap.min(axis=(0, 1)))
                hits = np.zeros((*gap.shape[:2], FIRST), bool)
                hits[:, :, which] = gap < 0.0
                for side, sphere in enumerate((first, second)):
                    start = pairs.of(sphere).start
                    rows = zip(names[side], np.asarray(hits.any(axis=1 - side)), strict=True)
                    touching_ones += [((sphere, group - start), row) for group, row in rows if group >= 0]
            perhaps = (least < 0.0) & (least > -SHALLOW)  # meshes may be apart
            if perhaps.mean() >= REFINED:
                for place, row in touching_ones:
                    part = float((row & perhaps).mean())
                    if part >= RARELY:
                        shares[place] = max(part, shares.get(place, 0.0))
        return frozenset(sorted(shares, key=lambda place: (-shares[place], place))[:MOST_FINER])

    def _touch(self, first: int, second: int) -> np.ndarray:
        """Numbers of the first postures in which two spheres touch; small spheres of both are only compared there."""
        reach = np.float32(self.spheres.radius[first] + self.spheres.radius[second])
        one, two = (self.centres[:, k, :FIRST] for k in (first, second))
        return np.flatnonzero(_squares(one, two) < reach * reach)

    def beside(self, pairs: np.ndarray) -> np.ndarray:
        """Which spheres are never farther apart than a part of their radii, as those of rods that meet at a joint."""
        reach = (1.0 + NEAR) * self.spheres.radius[pairs].sum(axis=1)
        near, start = np.arange(len(pairs)), 0
        while start < POSTURES and len(near):  # few are left after some postures
            stop = start + max(1, BLOCK // len(near))
            one, two = (self.centres[:, pairs[near, k], start:stop] for k in (0, 1))
            near, start = near[np.sqrt(_squares(one, two).max(axis=1)) <= reach[near]], stop
        found = np.zeros(len(pairs), bool)
        found[near] = True
        return found

    def touching_groups(self, pairs: BodyPairs, first: int, second: int) -> SmallPairs:
        """Pairs of groups of small spheres of two spheres that touch in nearly all postures; a sphere that is not
        divided is its own group, with a number below 0."""
        gap, numbers = self._group_gaps(pairs, first, second, np.arange(FIRST))
        hits = (gap < 0.0).sum(axis=-1)
        if (hits + LOOKED_AT - FIRST >= OFTEN * LOOKED_AT).any():  # else none can touch often enough
            gap, numbers = self._group_gaps(pairs, first, second, np.arange(FIRST, LOOKED_AT))
            hits += (gap < 0.0).sum(axis=-1)
        often = hits >= OFTEN * LOOKED_AT
        return SmallPairs(
            ((numbers[0][i], numbers[1][k]) for i, k in np.argwhere(often).tolist()), often.size
        )

    def _group_gaps(
        self, pairs: BodyPairs, first: int, second: int, which: np.ndarray
    ) -> tuple[np.ndarray, list[list[int]]]:
        """Distances [m] of groups of small spheres in some postures (groups, groups, postures), and their numbers."""
        numbers, placed, radii, starts = [], [], [], []
        for sphere in (first, second):
            groups = pairs.of(sphere)
            edges = pairs.small.starts[groups.start : groups.stop + 1]
            mine = slice(edges[0], edges[-1]) if groups else slice(sphere, sphere + 1)
            numbers.append(list(groups) or [-1 - sphere])
            starts.append(edges[:-1] - edges[0] if groups else np.zeros(1, int))
            radii.append(pairs.small.rows[mine, 3] if groups else self.spheres.radius[mine])
            placed.append((self.small if groups else self.centres)[:, mine][:, :, which])
        gap = np.zeros((len(numbers[0]), len(numbers[1]), len(which)))
        reach = (radii[0][:, None] + radii[1]).astype(np.float32)[:, :, None]
        for some in blocks(len(which), reach.size):
            gaps = _squares(placed[0][:, :, None, some], placed[1][:, None, :, some])
            np.sqrt(gaps, out=gaps)
            gaps -= reach
            gap[:, :, some] = np.minimum.reduceat(np.minimum.reduceat(gaps, starts[0]), starts[1], axis=1)
        return gap, numbers

    def usual_distance(self, found: BodyPairs, key: tuple[int, int]) -> tuple[float, float, bool]:
        """The median and the largest of the distance [m] of two bodies, at most ``FAR_APART``, and whether they overlap
        in all postures by more than spheres reach beyond meshes, so that the meshes may touch there, too."""
        pairs, count = found.compared[key], USUAL
        reach = self.spheres.radius[pairs].sum(axis=1)
        deep = np.zeros(count, bool)
        beyond = np.where(np.isin(pairs, found.small.parent), FINE, self.spheres.excess).sum(axis=1)
        one, two = (self.centres[:, pairs[:, k], :count] for k in (0, 1))
        gaps = np.sqrt(_squares(one, two)) - reach[:, None]
        least = np.minimum(gaps.min(axis=0), FAR_APART)
        if _median(least) < FAR_APART:
            least = np.full(count, FAR_APART)
            nearest = gaps.min(axis=1)
            for k in np.argsort(nearest).tolist():
                if nearest[k] >= least.max():  # and so are all that follow
                    break
                first, second = pairs[k].tolist()
                rows = np.flatnonzero(gaps[k] < least)
                if not len(rows):
                    continue
                gap = gaps[k, rows]
                if found.of(first) or found.of(second):
                    groups, numbers = self._group_gaps(found, first, second, rows)
                    for i, one in enumerate(numbers[0]):
                        for j, two in enumerate(numbers[1]):
                            if (one, two) in found.apart:
                                groups[i, j] = np.inf
                    gap = np.maximum(gap, groups.min(axis=(0, 1)))
                deep[rows] |= gap < -beyond[k]
                least[rows] = np.minimum(least[rows], gap)
        return max(0.0, _median(least)), float(least.max()), bool(deep.all())


def _squares(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Squares of distances of points (3, ...), broadcast together."""
    x, y, z = (a - b for a, b in zip(one, two, strict=True))
    x *= x
    for away in (y, z):
        away *= away
        x += away
    return x


def _median(values: np.ndarray) -> float:
    """The median of an even number of values."""
    half = len(values) // 2
    ordered = np.sort(values)
    return float((ordered[half - 1] + ordered[half]) / 2)


class SmallPairs(list[tuple[int, int]]):
    """Pairs of numbers of groups; ``size``: how many pairs there are of which these are some."""

    def __init__(self, pairs: Iterable[tuple[int, int]], size: int):
        super().__init__(pairs)
        self.size = size


_NONE = SmallSpheres(np.zeros(0, int), np.zeros((0, 4)), np.zeros(1, int), np.zeros((0, 4)))


def body_poses_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Rotations and translations of all moving bodies and, last, of the base; shape (states, bodies + 1, 3, 4).

    Args:
        robot: the robot.
        q: positions [rad or m], shape (states, nq).
    """
    base = np.broadcast_to(np.eye(4)[:3], (len(q), 1, 3, 4))
    if not all(joint.turns or joint.slides for joint in robot.moving_joints) or robot.nq != robot.dof:
        return np.concatenate([np.asarray(body_poses(robot)(q)), base], axis=1)
    names = list(robot.joint_names)
    found: list[np.ndarray] = []
    for joint, relation in zip(robot.moving_joints, robot.followed, strict=True):
        value = q[:, names.index(joint.name)] if relation is None else np.full(len(q), relation.offset)
        for leader, factor in relation.leaders if relation is not None else ():
            value = value + factor * q[:, names.index(leader)]
        body, pose = robot.carrier(joint.parent)
        origin = pose @ joint.origin
        turn, shift = _moved(np.array(joint.axis), value, joint.turns, joint.pitch)
        if body != BASE:
            turn_above, shift_above = found[body][:, :, :3], found[body][:, :, 3]
        else:
            turn_above, shift_above = base[:, 0, :, :3], base[:, 0, :, 3]
        fixed = times(turn_above, np.broadcast_to(origin.rotation, turn_above.shape))
        place = (
            shift_above
            + (turn_above * origin.translation).sum(axis=-1)
            + (fixed * shift[:, None]).sum(axis=-1)
        )
        found.append(np.concatenate([times(fixed, turn), place[:, :, None]], axis=2))
    return np.concatenate([np.stack(found, axis=1), base], axis=1) if found else base


def _moved(axis: np.ndarray, value: np.ndarray, turns: bool, pitch: float) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (states, 3, 3) and translations (states, 3) of a joint."""
    slide = value if not turns else pitch * value
    shift = slide[:, None] * axis
    if not turns:
        return np.broadcast_to(np.eye(3), (len(value), 3, 3)), shift
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, cosine = np.sin(value)[:, None, None], np.cos(value)[:, None, None]
    return np.eye(3) + sine * cross + (1.0 - cosine) * times(cross, cross), shift


def _bodies(
    robot: Model, spheres: Spheres, pairs: Iterable[LinkPair], *, all_of: bool
) -> set[tuple[int, int]]:
    """Pairs of bodies of which all pairs of links with geometry, or any, are listed."""
    listed: set[tuple[str, str]] = set()
    found: set[tuple[int, int]] = set()
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) < 2:
            raise UnknownNameError(f"pairs of links: expected two names, got {pair!r}")
        first, second = pair[0], pair[1]
        for name in (first, second):
            if name not in robot.link_names:
                raise UnknownNameError(f"pairs of links: no link {name!r}; {suggest(name, robot.link_names)}")
        listed |= {(first, second), (second, first)}
        one, two = sorted((robot.carrier(first)[0], robot.carrier(second)[0]))
        found.add((one, two))
    if not all_of:
        return found
    return {
        (one, two)
        for one, two in found
        if all((a, b) in listed for a in spheres.links.get(one, ()) for b in spheres.links.get(two, ()))
    }


def _link_pairs(robot: Model, spheres: Spheres, key: tuple[int, int]) -> list[LinkPair]:
    """Pairs of the links of two bodies that have geometry; of a body without any its own link."""
    one, two = (spheres.links.get(body) or (body_name(robot, body),) for body in key)
    return list(product(one, two))
