"""Which spheres of a robot are compared with each other.

Bodies that a joint connects are not compared, nor fingers. Spheres are thicker than links: where those of two bodies
touch in many random postures, as at a wrist, points of the meshes show which pairs of spheres contain parts that
come near each other in any posture, and at which distance of their centres; only these are compared, by this distance,
unless they touch in nearly all postures. Pairs of bodies of which nothing is compared are listed. Pairs of links can be
left out or compared by name, also by an SRDF file.
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
LOOKED_AT = 384  # of them in which points of the meshes are compared
CLOSE = 0.2  # share of postures in which spheres touch, from which on points are compared
MEETING = (
    0.012  # [m] parts whose points are always farther apart than this do not touch: points are as far apart
)
BETWEEN = 0.01  # [m] added to distances that were found in postures, for those between them
LinkPair = tuple[str, str]


@dataclass(frozen=True)
class BodyPairs:
    """Comparisons of a robot with itself.

    Args:
        compared: for each pair of bodies the pairs of numbers of spheres, shape (k, 2).
        reaches: for each pair of bodies the distances of centres [m] below which its pairs of spheres touch, (k,).
        always: pairs of links that touch by construction; they are not compared.
        never: pairs of links that are close to each other and touched in no posture; they are not compared.
        left_out: pairs of links that are left out by name.
    """

    compared: dict[tuple[int, int], np.ndarray]
    reaches: dict[tuple[int, int], np.ndarray]
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
    reaches: dict[tuple[int, int], np.ndarray] = {}
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
            reach = spheres.radius[pairs].sum(axis=1)
            if key not in wanted and postures.touching(pairs, reach).any(axis=1).mean() >= CLOSE:
                reach = postures.meeting(first, second, pairs)
                pairs, reach = pairs[reach > 0.0], reach[reach > 0.0]
                if not len(pairs):
                    listed["never"].append(names)
                    continue
                rare = postures.touching(pairs, reach).mean(axis=0) < OFTEN
                pairs, reach = pairs[rare], reach[rare]
            if len(pairs):
                compared[key], reaches[key] = pairs, reach
            else:
                listed["always"].append(names)
    return BodyPairs(compared, reaches, **{key: tuple(values) for key, values in listed.items()})


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

    def touching(self, pairs: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """Which spheres are nearer than ``reach`` (pairs,), (postures, pairs)."""
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

    def meeting(self, first: int, second: int, pairs: np.ndarray) -> np.ndarray:
        """Distances of centres [m] below which the parts of the meshes in two spheres may touch, (pairs,); 0 for pairs
        of which they never do. Without points: the sums of radii, 0 for spheres beside each other at a joint."""
        reach = self.spheres.radius[pairs].sum(axis=1)
        mine = [np.flatnonzero(self.spheres.body[self.spheres.owner] == body) for body in (first, second)]
        if not all(len(each) for each in mine):
            return np.where(self._beside(pairs), 0.0, reach)
        touching = self.touching(pairs, reach)
        near = pairs[touching.any(axis=0)]  # the others never touch
        mine = [each[np.isin(self.spheres.owner[each], near)] for each in mine]
        if not all(len(each) for each in mine):
            return np.zeros(len(pairs))
        mine = [each[np.argsort(self.spheres.owner[each], kind="stable")] for each in mine]
        owners = [self.spheres.owner[each] for each in mine]
        starts = [np.flatnonzero(np.diff(each, prepend=-1)) for each in owners]
        looked_at = np.flatnonzero(touching.any(axis=1))[:LOOKED_AT]
        poses = self.poses[looked_at]
        one, two = (
            self._placed(poses, np.full(len(each), body), self.spheres.points[each]).astype(np.float32)
            for each, body in zip(mine, (first, second), strict=True)
        )
        numbers = [each[start] for each, start in zip(owners, starts, strict=True)]
        far = np.zeros((len(self.spheres), len(self.spheres)))
        for a, b, centres in zip(one, two, self.centres[looked_at], strict=True):
            square = np.zeros((len(a), len(b)), np.float32)
            for axis in range(3):
                away = a[:, axis, None] - b[:, axis]
                square += away * away
            rows = np.minimum.reduceat(np.minimum.reduceat(square, starts[0], axis=0), starts[1], axis=1)
            i, k = np.nonzero(rows < MEETING * MEETING)
            i, k = numbers[0][i], numbers[1][k]
            way = centres[i] - centres[k]
            far[i, k] = np.maximum(far[i, k], np.sqrt((way * way).sum(axis=1)))
        found = far[pairs[:, 0], pairs[:, 1]]
        return np.where(found > 0.0, np.minimum(found + BETWEEN, reach), 0.0)


def body_poses_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Rotations and translations of all moving bodies and, last, of the base; shape (states, bodies + 1, 3, 4).

    Args:
        robot: the robot.
        q: positions [rad or m], shape (states, nq).
    """
    base = np.broadcast_to(np.eye(4)[:3], (len(q), 1, 3, 4))
    if (
        not all(joint.turns or joint.type == "prismatic" for joint in robot.moving_joints)
        or robot.nq != robot.dof
    ):
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


def _name(robot: Model, body: int) -> str:
    return robot.base if body == BASE else robot.moving_joints[body].body_link
