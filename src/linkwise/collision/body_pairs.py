"""Which spheres of a robot are compared with each other.

Bodies that a joint connects are not compared, nor fingers, nor spheres that touch by construction: those that do in
nearly all postures within the joint limits, or that are never farther apart than a part of their radii. Pairs of links
can be left out or compared by name, also by an SRDF file. Pairs that touched in no posture are listed, and compared.
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

POSTURES = 512  # random ones that show what touches
LinkPair = tuple[str, str]


@dataclass(frozen=True)
class BodyPairs:
    """Comparisons of a robot with itself.

    Args:
        compared: for each pair of bodies the pairs of numbers of spheres, shape (k, 2).
        always: pairs of links that touch by construction, of which nothing is compared.
        never: pairs of links that touched in no random posture; they are compared.
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
    distances = _Distances(robot, spheres)
    compared: dict[tuple[int, int], np.ndarray] = {}
    always: list[LinkPair] = []
    never: list[LinkPair] = []
    left_out: list[LinkPair] = []
    bodies = spheres.bodies
    for place, first in enumerate(bodies):
        for second in bodies[place + 1 :]:
            key, names = (first, second), (_name(robot, first), _name(robot, second))
            if key in skipped:
                left_out.append(names)
                continue
            if not are_apart(first, second, above) and key not in wanted:
                continue
            pairs, touching, by_construction = distances.between(first, second)
            if key not in wanted:
                pairs = pairs[~by_construction]
            if not len(pairs):
                always.append(names)
                continue
            compared[key] = pairs
            if not touching:
                never.append(names)
    return BodyPairs(compared, tuple(always), tuple(never), tuple(left_out))


class _Distances:
    """Distances of spheres in random postures."""

    def __init__(self, robot: Robot, spheres: Spheres):
        self.spheres = spheres
        lower, upper = position_range(robot, None, None)
        rng = np.random.default_rng(0)
        q = rng.uniform(lower, upper, (POSTURES, robot.dof)) if robot.nq == robot.dof else robot.random(rng, POSTURES)
        poses = body_poses_of(robot, q)[:, spheres.body]  # BASE is the last one
        points = np.concatenate([spheres.centre, np.ones((len(spheres), 1))], axis=1)
        self.points = (poses * points[:, None]).sum(axis=-1)

    def between(self, first: int, second: int) -> tuple[np.ndarray, bool, np.ndarray]:
        """Pairs of spheres (k, 2), whether any touched, and which of them touch by construction."""
        a, b = self.spheres.of(first), self.spheres.of(second)
        pairs = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
        reach = self.spheres.radius[pairs].sum(axis=1)
        square = np.zeros((len(self.points), len(pairs)))
        for axis in range(3):
            away = self.points[:, pairs[:, 0], axis] - self.points[:, pairs[:, 1], axis]
            square += away * away
        gap = np.sqrt(square) - reach
        touching = gap < 0.0
        near = touching.any(axis=0) & (gap.max(axis=0) <= NEAR * reach)
        by_construction = near | (touching.mean(axis=0) >= OFTEN)
        return pairs, bool(touching[:, ~by_construction].any()), by_construction


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
