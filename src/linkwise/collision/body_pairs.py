"""Which spheres of a robot are compared with each other.

Bodies that a joint connects are not compared, nor fingers. Spheres are thicker than links: where those of two bodies
touch in many random postures, as at a wrist, points of the meshes show which pairs of spheres contain parts that
come near each other in any posture; only these are compared, unless they touch in nearly all postures. Pairs of bodies
of which nothing is compared are listed. Pairs of links can be left out or compared by name, also by an SRDF file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.collision.checks import are_apart
from linkwise.collision.clearance import NEAR, OFTEN, body_poses, position_range
from linkwise.collision.spheres import Spheres
from linkwise.core.products import times
from linkwise.errors import UnknownNameError, suggest
from linkwise.geometry.skeleton import BASE
from linkwise.model import Model
from linkwise.robot.robot import Robot

POSTURES = 1024  # random ones that show what touches
LOOKED_AT = 256  # of them in which points of the meshes are compared
CLOSE = 0.05  # share of postures in which spheres touch, from which on points are compared
MEETING = 0.012  # [m] parts whose points are always farther apart than this do not touch: points are as far apart
LinkPair = tuple[str, str]


@dataclass(frozen=True)
class BodyPairs:
    """Comparisons of a robot with itself.

    Args:
        compared: for each pair of bodies the pairs of numbers of spheres, shape (k, 2).
        always: pairs of links that touch by construction; they are not compared.
        never: pairs of links that are close to each other and touched in no posture; they are not compared.
        left_out: pairs of links that are left out by name.
    """

    compared: dict[tuple[int, int], np.ndarray]
    always: tuple[LinkPair, ...]
    never: tuple[LinkPair, ...]
    left_out: tuple[LinkPair, ...]


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
    above = [robot.carrier(joint.parent)[0] for joint in robot.moving_joints]
    postures = _Postures(robot, spheres)
    compared: dict[tuple[int, int], np.ndarray] = {}
    listed: dict[str, list[LinkPair]] = {"always": [], "never": [], "left_out": []}
    bodies = spheres.bodies
    for place, first in enumerate(bodies):
        for second in bodies[place + 1 :]:
            key, names = (first, second), (_name(robot, first), _name(robot, second))
            if key in skipped:
                listed["left_out"].append(names)
                continue
            if not are_apart(first, second, above) and key not in wanted:
                continue
            pairs = _all_pairs(spheres.of(first), spheres.of(second))
            if key not in wanted:
                share = postures.touching(pairs)
                if share.any(axis=1).mean() >= CLOSE:
                    pairs = pairs[postures.near(first, second, pairs)]
                    if not len(pairs):
                        listed["never"].append(names)
                        continue
                    pairs = pairs[postures.touching(pairs).mean(axis=0) < OFTEN]
            if len(pairs):
                compared[key] = pairs
            else:
                listed["always"].append(names)
    return BodyPairs(compared, **{key: tuple(values) for key, values in listed.items()})


def _all_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)


class _Postures:
    """Spheres and points of the meshes in random postures."""

    def __init__(self, robot: Robot, spheres: Spheres):
        self.spheres = spheres
        lower, upper = position_range(robot, None, None)
        q = np.random.default_rng(0).uniform(lower, upper, (POSTURES, robot.dof))
        self.poses = body_poses_of(robot, q)
        self.centres = self._placed(self.poses, spheres.body, spheres.centre)

    @staticmethod
    def _placed(poses: np.ndarray, body: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Points in base axes, (postures, points, 3)."""
        full = np.concatenate([point, np.ones((len(point), 1))], axis=1)
        return np.stack([(poses[:, body, axis] * full).sum(axis=-1) for axis in range(3)], axis=-1)

    def touching(self, pairs: np.ndarray) -> np.ndarray:
        """Which spheres touch, (postures, pairs)."""
        radius = self.spheres.radius
        reach = radius[pairs[:, 0]] + radius[pairs[:, 1]]
        square = np.zeros((POSTURES, len(pairs)))
        for axis in range(3):
            away = self.centres[:, pairs[:, 0], axis] - self.centres[:, pairs[:, 1], axis]
            square += away * away
        return square < reach * reach

    def _beside(self, pairs: np.ndarray) -> np.ndarray:
        """Which spheres are never farther apart than a part of their radii, as those of rods that meet at a joint."""
        reach = self.spheres.radius[pairs].sum(axis=1)
        way = self.centres[:LOOKED_AT, pairs[:, 0]] - self.centres[:LOOKED_AT, pairs[:, 1]]
        gap = np.sqrt((way * way).sum(axis=-1)) - reach
        return gap.max(axis=0) <= NEAR * reach

    def near(self, first: int, second: int, pairs: np.ndarray) -> np.ndarray:
        """Which pairs of spheres contain parts of the meshes that come near each other; without points, those that are
        not beside each other at a joint."""
        mine = [np.flatnonzero(self.spheres.body[self.spheres.owner] == body) for body in (first, second)]
        if not all(len(each) for each in mine):
            return ~self._beside(pairs)
        mine = [each[np.argsort(self.spheres.owner[each], kind="stable")] for each in mine]
        owners = [self.spheres.owner[each] for each in mine]
        starts = [np.flatnonzero(np.diff(each, prepend=-1)) for each in owners]
        poses = self.poses[:LOOKED_AT]
        one, two = (
            self._placed(poses, np.full(len(each), body), self.spheres.points[each])
            for each, body in zip(mine, (first, second), strict=True)
        )
        least = np.full((len(starts[0]), len(starts[1])), np.inf)
        for a, b in zip(one.astype(np.float32), two.astype(np.float32), strict=True):
            square = np.zeros((len(a), len(b)), np.float32)
            for axis in range(3):
                away = a[:, axis, None] - b[:, axis]
                square += away * away
            rows = np.minimum.reduceat(square, starts[0], axis=0)
            least = np.minimum(least, np.minimum.reduceat(rows, starts[1], axis=1))
        near = {
            (int(owners[0][starts[0][i]]), int(owners[1][starts[1][k]]))
            for i, k in np.argwhere(least < MEETING * MEETING).tolist()
        }
        return np.array([tuple(pair) in near for pair in pairs.tolist()], dtype=bool)


def body_poses_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Rotations and translations of all moving bodies and, last, of the base; shape (states, bodies + 1, 3, 4).

    Args:
        robot: the robot.
        q: positions [rad or m], shape (states, nq).
    """
    base = np.broadcast_to(np.eye(4)[:3], (len(q), 1, 3, 4))
    if not all(joint.turns or joint.type == "prismatic" for joint in robot.moving_joints) or robot.nq != robot.dof:
        return np.concatenate([np.asarray(body_poses(robot)(q)), base], axis=1)
    names = list(robot.joint_names)
    found: list[np.ndarray] = []
    for joint, relation in zip(robot.moving_joints, robot.followed, strict=True):
        leader = joint.name if relation is None else relation.joint
        value = q[:, names.index(leader)]
        if relation is not None:
            value = relation.multiplier * value + relation.offset
        body, pose = robot.carrier(joint.parent)
        origin = pose @ joint.origin
        turn, shift = _moved(np.array(joint.axis), value, joint.turns, joint.pitch)
        if body != BASE:
            turn_above, shift_above = found[body][:, :, :3], found[body][:, :, 3]
        else:
            turn_above, shift_above = base[:, 0, :, :3], base[:, 0, :, 3]
        fixed = times(turn_above, np.broadcast_to(origin.rotation, turn_above.shape))
        place = shift_above + (turn_above * origin.translation).sum(axis=-1) + (fixed * shift[:, None]).sum(axis=-1)
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
    whole = {
        (one, two)
        for one, two in found
        if all((a, b) in listed for a in spheres.links.get(one, ()) for b in spheres.links.get(two, ()))
    }
    return whole


def _name(robot: Model, body: int) -> str:
    return robot.base if body == BASE else robot.moving_joints[body].body_link
