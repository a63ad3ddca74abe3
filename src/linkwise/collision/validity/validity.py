"""Collisions and clearances of a robot among obstacles, for many configurations at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.collision.body_pairs import BodyPairs, LinkPair, body_pairs, body_poses_of
from linkwise.collision.bounds import Levers
from linkwise.collision.clearance import pose_gradient, position_range
from linkwise.collision.spheres import Spheres, spheres_of
from linkwise.collision.validity.kernel import BoundWorld, ValidityKernel
from linkwise.collision.validity.nearest import nearest
from linkwise.collision.validity.nests import ASKED, BEYOND, LARGEST, Checked, clearance_nest, collision_nest
from linkwise.collision.world import World
from linkwise.core.once import once
from linkwise.core.products import length
from linkwise.errors import ArgumentError, ModelWarning, ShapeError, warn
from linkwise.formats.srdf import read_srdf
from linkwise.geometry.skeleton import BASE, body_name
from linkwise.robot.robot import Robot

TURNS = (100.0, 1e9)  # [rad] between these, angles are the same within a turn; larger ones have few digits


class Clearances(NamedTuple):
    """Smallest signed distances [m]: of moving bodies to the world (..., bodies), of pairs of bodies (..., pairs)."""

    world: np.ndarray
    itself: np.ndarray

    def least(self) -> np.ndarray:
        """The smallest of all, shape (...)."""
        return np.minimum(self.world.min(axis=-1, initial=np.inf), self.itself.min(axis=-1, initial=np.inf))


class Validity:
    """Checks of a robot's configurations: its spheres against a world and against each other.

    Args:
        robot: the robot; joints of one coordinate each.
        spheres: of its links; by default ``spheres_of(robot)``.
        srdf: an SRDF file; pairs of links that it disables are not compared.
        skip: further pairs of names of links that are not compared. Links that are fixed to each other are one body, of
            which all pairs have to be listed; a warning names those that lack.
        compare: pairs that are compared although they touch by construction.
        divided: whether spheres that often touch other links are divided into small ones for comparisons of links with
            each other; False compares the spheres themselves, which is quicker, refuses more, and leaves out pairs
            of spheres that touch in nearly all postures.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        spheres: Spheres | None = None,
        srdf: str | os.PathLike[str] | None = None,
        skip: Iterable[LinkPair] = (),
        compare: Iterable[LinkPair] = (),
        divided: bool = True,
    ):
        if robot.nq != robot.dof:
            raise ArgumentError(
                f"robot: {robot.name} has ball or floating joints, which validity checks do not have"
            )
        if not robot.nq:
            raise ArgumentError(
                f"robot: {robot.name} has no moving joint, so there are no configurations to check"
            )
        self.robot, self.n = robot, robot.nq
        self.spheres = spheres_of(robot) if spheres is None else spheres
        whole = self.spheres if flag("divided", divided) else replace(self.spheres, divide=None)
        listed = [(pair.first, pair.second) for pair in read_srdf(srdf)] if srdf is not None else []
        known = [pair for pair in listed if set(pair) <= set(robot.link_names)]
        skip = [*skip]
        self.pairs: BodyPairs = body_pairs(robot, whole, [*known, *skip], compare)
        self._checked = Checked(robot, self.spheres, self.pairs)
        self._warn()
        self._warn_of_parts(skip)

    def _warn_of_parts(self, skip: Sequence[LinkPair]) -> None:
        """Say which pairs are compared although they were to be left out."""
        listed = {frozenset(pair) for pair in skip}
        for first, second in skip:
            key = sorted(self.robot.carrier(name)[0] for name in (first, second))
            one, two = (self.spheres.links.get(body, ()) for body in key)
            others = [f"{a} and {b}" for a in one for b in two if not {frozenset((a, b))} & listed]
            if (key[0], key[1]) in self.pairs.compared and others:
                warn(
                    f"skip: {first} and {second} are compared all the same, as links that are fixed to them may "
                    f"touch; list these pairs, too, if they cannot: {', '.join(others)}",
                    ModelWarning,
                )

    def _warn(self) -> None:
        """Say what makes the checks worth less than they seem."""
        problems = self.spheres.problems
        if len(problems) > 0:
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            warn(
                f"collisions of {self.robot.name}: not read: {problems[0]}{more}; spheres along the kinematics, which "
                "may be thinner than the links, stand for what is missing (spheres_of(robot, meshes=[folder]))",
                ModelWarning,
            )
        if pairs := self.pairs.unresolved:
            names = ", ".join(f"{one} and {two}" for one, two in pairs[:3])
            more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
            warn(
                f"collisions of {self.robot.name}: spheres of {names}{more} touch in all postures that were tried, "
                "though the meshes do not, so hardly any position is free; if these links cannot touch, leave them "
                "out with skip= or an SRDF file (checks.pairs.unresolved has all their pairs)",
                ModelWarning,
            )

    @once
    def collision_kernel(self) -> ValidityKernel:
        """Whether configurations collide, in single precision."""
        return ValidityKernel(lambda: collision_nest(self._checked), "float32")

    @once
    def clearance_kernel(self) -> ValidityKernel:
        """Smallest distances of bodies and pairs of bodies, in double precision."""
        return ValidityKernel(lambda: clearance_nest(self._checked), "float64")

    def in_collision(
        self, q: Any, world: World | None = None, *, clearance: float = 0.0, threads: int | None = None
    ) -> np.ndarray:
        """Whether the robot touches the world or itself; shape (...). Positions that are not finite collide.

        Args:
            q: positions [rad or m], shape (..., n).
            world: obstacles; by default none.
            clearance: distance [m] below which it counts as touching, also between links; of two links that are
                near each other by construction at most half of the distance that they have in half of random postures.
            threads: number of threads; None: all cores when the batch is worth it.
        """
        rows, shape = self._rows(q)
        margin = Numbers().number("clearance", clearance, least=0.0)
        bound = BoundWorld(_world(world), "float32", margin)
        (collides,) = self.collision_kernel(rows, bound, threads)
        return (collides[:, 0] != 0.0).reshape(shape)[()]

    def clearances(self, q: Any, world: World | None = None, *, threads: int | None = None) -> Clearances:
        """Smallest signed distances of bodies and of pairs of bodies; ``words`` says which. Of positions that are not
        finite, or too large for ``in_collision``, they are NaN.

        Args:
            q: positions [rad or m], shape (..., n).
            world: obstacles; by default none.
            threads: number of threads; None: all cores when the batch is worth it.
        """
        rows, shape = self._rows(q)
        found = self.clearance_kernel(rows, BoundWorld(_world(world), "float64", BEYOND), threads)
        tables = [part[:, : self._sizes[k]].reshape(*shape, self._sizes[k]) for k, part in enumerate(found)]
        unknown = np.asarray(~(np.abs(rows) <= LARGEST).all(axis=1)).reshape(shape)
        if unknown.any():
            for table in tables:
                table[unknown] = np.nan
        return Clearances(tables[0], tables[1] if len(tables) > 1 else np.zeros((*shape, 0)))

    def wanted(self, clearance: float, asked: float = ASKED) -> np.ndarray:
        """What a clearance [m] asks of each number of ``clearances``: less of links that are near by construction.

        Args:
            clearance: distance [m] to obstacles and between links.
            asked: part of the usual distance of two links.
        """
        usual = np.array(list(self.pairs.usual.values()))
        bodies = np.full(max(1, len(self._checked.moving)), clearance)
        return np.concatenate([bodies, np.minimum(clearance, asked * usual)])

    @property
    def _sizes(self) -> tuple[int, int]:
        return len(self._checked.moving), len(self.pairs.compared)

    def distance(self, q: Any, world: World | None = None) -> np.ndarray:
        """The smallest signed distance [m] of the robot to the world and to itself, shape (...).

        Args:
            q: positions [rad or m], shape (..., n).
            world: obstacles; by default none.
        """
        return self.clearances(q, world).least()

    def distance_gradient(self, q: Any, world: World | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The smallest signed distance [m], shape (...), and its gradient by q, shape (..., n); NaN where positions are
        not finite.

        Args:
            q: positions [rad or m], shape (..., n).
            world: obstacles; by default none.
        """
        rows, shape = self._rows(q)
        unknown = np.asarray(~(np.abs(rows) <= LARGEST).all(axis=1))
        rows = np.where(unknown[:, None], 0.0, rows)
        poses = body_poses_of(self.robot, rows)
        near = nearest(self._checked, poses, _world(world))
        by_pose = np.zeros((len(rows), len(self.robot.moving_joints) + 1, 3, 4))
        states = np.arange(len(rows))
        for body, point, sign in zip(near.bodies, near.points, (1.0, -1.0), strict=True):
            share = sign * near.normal[:, :, None] * point[:, None, :]
            np.add.at(by_pose, (states, body), share)
        moving = by_pose[:, :-1].reshape(len(rows), 12 * len(self.robot.moving_joints))
        gradient = np.asarray(pose_gradient(self.robot)(rows, moving)).reshape(len(rows), self.n)
        distance = np.where(unknown, np.nan, near.distance)
        gradient = np.where(unknown[:, None], np.nan, gradient)
        return distance.reshape(shape)[()], gradient.reshape(*shape, self.n)

    @property
    def words(self) -> list[str]:
        """What the numbers of ``clearances`` are: bodies, then pairs of bodies."""
        name = partial(body_name, self.robot)
        pairs = [f"{name(first)} and {name(second)}" for first, second in self.pairs.compared]
        return [*(f"{name(body)} and the world" for body in self._checked.moving), *pairs]

    @once
    def speed_factors(self) -> tuple[np.ndarray, np.ndarray]:
        """F with |ḋ| ≤ F |q̇| for the clearances of bodies (bodies, n) and of pairs (pairs, n), within the joint
        limits, and half a turn or as many metres to each side where there are none; see ``bounds``."""
        return self.speed_factors_between(*position_range(self.robot, None, None))

    def speed_factors_between(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``speed_factors`` between other positions: levers are longer where a joint slides farther.

        Args:
            lower: positions [rad or m], shape (n,).
            upper: positions, shape (n,).
        """
        levers = Levers(self.robot, lower, upper)
        far = {body: self._farthest(body) for body in self.spheres.bodies}
        n = self.robot.dof
        world = [levers.row(body, far[body], set()) for body in self._checked.moving]
        pairs: list[np.ndarray] = []
        for first, second in self.pairs.compared:
            common = set(levers.path(first)) & set(levers.path(second))
            pairs.append(levers.row(first, far[first], common) + levers.row(second, far[second], common))
        return np.array(world).reshape(-1, n), np.array(pairs).reshape(-1, n)

    def _farthest(self, body: int) -> float:
        small = self.pairs.small
        mine = self.spheres.body[small.parent] == body
        groups = [
            small.rows[a:b, :3] for a, b in zip(small.starts[:-1][mine], small.starts[1:][mine], strict=True)
        ]
        points = np.concatenate(
            [self.spheres.centre[self.spheres.body == body], small.groups[mine, :3], *groups]
        )
        return max((length(point) for point in points), default=0.0) if body != BASE else 0.0

    def _rows(self, q: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        try:
            given = np.asarray(q, dtype=float)
        except (TypeError, ValueError):
            raise ArgumentError("q: expected numbers") from None
        if given.shape[-1:] != (self.n,):
            raise ShapeError(f"q: expected shape (..., {self.n}), got {given.shape}")
        rows = given.reshape(-1, self.n)
        size = np.abs(rows)
        whole = (size > TURNS[0]) & (size <= TURNS[1])
        if whole.any():
            rows = rows.copy()
            whole &= self._turning
            rows[whole] %= 2.0 * np.pi
        return rows, given.shape[:-1]

    @once
    def _turning(self) -> np.ndarray:
        """Which coordinates may be changed by whole turns."""
        return whole_turns(self.robot)


def whole_turns(robot: Robot) -> np.ndarray:
    """Which coordinates stand for the same posture after a whole turn (n,): those of joints that turn about an axis and
    that no other joint follows, motors apart."""
    motors = {motor.name for motor in robot.motors}
    relations = zip(robot.moving_joints, robot.followed, strict=True)
    followed = {
        name
        for joint, relation in relations
        if relation is not None and joint.name not in motors
        for name, _ in relation.leaders
    }
    joints = robot.coordinate_joints
    return np.array([j.turns and j.pitch == 0.0 and j.name not in followed for j in joints], dtype=bool)


def _world(world: World | Sequence[Any] | None) -> World:
    if world is None:
        return World()
    return world if isinstance(world, World) else World(world)


def validity_of(robot: Robot) -> Validity:
    """Checks of a robot with the default spheres and pairs; made once for equal robots with the same geometry.

    Args:
        robot: the robot.
    """
    kept: dict[str, Any] = vars(robot)
    if "_validity" not in kept:
        kept["_validity"] = _validity(robot, spheres_of(robot))
    return kept["_validity"]


@lru_cache(maxsize=32)
def _validity(robot: Robot, spheres: Spheres) -> Validity:
    return Validity(robot, spheres=spheres)
