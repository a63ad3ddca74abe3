"""From a robot and a world to a path of way-points: memory and calls of ``tree_search``."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Sequence
from functools import cache as once_per_process
from typing import NamedTuple

import numpy as np

from linkwise.collision.clearance import position_range
from linkwise.collision.validity.kernel import BoundWorld
from linkwise.collision.validity.validity import Validity
from linkwise.collision.world import World
from linkwise.compiler.runtime import arrays, cache, machine
from linkwise.core import forks
from linkwise.motion.planning import operations, tree_search
from linkwise.motion.planning.tree_search import Words

CAPACITY = 8192  # nodes of a tree
MOST_GOALS = 2048  # with which a tree begins
MOST_POINTS = 1024  # way-points of a path
GROUP = 16  # positions that are checked at once
GAP = 0.05  # [m] by which points of the robot move from one checked position to the next, at most
STEP = 1.5  # [rad or m] longest edge of a tree
PASSES = 3  # over the corners of a path
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_ENTRIES = ("plan_tree", "check_path", "shorten_path")


def some_goals(start: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """As many goals as a tree may begin with, in their order: half of them the nearest ones, the others every so many
    of those that are farther away.

    Args:
        start: positions (n,).
        goals: positions (goals, n).
    """
    if len(goals) <= MOST_GOALS:
        return goals
    order = np.argsort(np.abs(goals - start).max(axis=1), kind="stable")
    half = MOST_GOALS // 2
    far = order[half + np.arange(half) * (len(goals) - half) // half]
    return goals[np.sort(np.concatenate([order[:half], far]))]


class Found(NamedTuple):
    """A path (points, n) or None, rounds of the search, and groups of positions that were checked."""

    path: np.ndarray | None
    rounds: int
    groups: int


@once_per_process
def _code() -> machine.Code:
    """The machine code, the same for all robots."""
    names = [name for name, _ in inspect.getmembers(operations, inspect.isfunction)]
    source = inspect.getsource(tree_search)
    text = _text(source, names)
    name = cache.key(b"planning\0" + text.encode())
    stored = cache.load(name)
    if stored is None:
        stored = machine.compile_text(text, optimize=True)
        cache.store(name, stored)
    return machine.load(stored)


def _text(source: str, names: list[str]) -> str:
    from linkwise.compiler.emit import routines, tree_vectors

    return routines.module([(source, vars(tree_search))], _ENTRIES, names) + tree_vectors.MODULE


@once_per_process
def _function(name: str):
    return _FUNCTION(_code().functions[name])


class Search:
    """Searches for one robot in one world; calls of one object must not overlap.

    Args:
        validity: checks of the robot.
        world: the obstacles.
        gap: how far points of the robot move between checked positions [m], at most.
        between: positions (2, n) between which is searched; by default the joint limits.
    """

    def __init__(
        self, validity: Validity, world: World, *, gap: float = GAP, between: np.ndarray | None = None
    ):
        robot = validity.robot
        self.n = n = robot.nq
        self.lower, self.upper = position_range(robot, None, None) if between is None else between
        native = validity.collision_kernel.native()
        self._world = BoundWorld(world, "float32")
        self._positions, self._collides = np.zeros((GROUP, n), np.float32), np.zeros(GROUP, np.float32)
        self._scratch = np.zeros(native.room + 64, np.float32)
        self._trees = [np.empty((CAPACITY // GROUP + 1) * GROUP * n, np.float32) for _ in range(2)]
        self._parents = [np.empty(CAPACITY + 1, np.int64) for _ in range(2)]
        self._path, self._room = np.empty((MOST_POINTS + 2, n), np.float32), np.empty((4, n), np.float32)
        factors = validity.speed_factors_between(self.lower, self.upper)
        per_unit = np.vstack([np.zeros(n), *factors]).max(axis=0)
        self._settings = np.array([STEP, *(per_unit / (GROUP * gap))], np.float32)
        self._bounds = [self.lower.astype(np.float32), (self.upper - self.lower).astype(np.float32)]
        words = [*self._world.numbers, arrays.address(self._positions), n, *self._world.places]
        self._arguments = np.array([*words, arrays.address(self._collides), 1], np.int64)
        self._keep = native
        self._words = np.zeros(32, np.int64)
        self._set("validity", native.address)
        for name, array in (
            ("arguments", self._arguments),
            ("scratch", self._scratch),
            ("positions", self._positions),
            ("collides", self._collides),
            ("settings", self._settings),
            ("lower", self._bounds[0]),
            ("extent", self._bounds[1]),
            ("room", self._room),
            ("path", self._path),
        ):
            self._set(name, arrays.address(array))
        for side in range(2):
            self._set("trees", arrays.address(self._trees[side]), side)
            self._set("parents", arrays.address(self._parents[side]), side)
        self._set("n", n)
        self._set("capacity", CAPACITY)
        self._set("path_room", MOST_POINTS)
        self._functions = {name: _function(name) for name in _ENTRIES}
        self._address = arrays.address(self._words)
        self._lock = forks.lock()

    def _set(self, name: str, value: int, place: int = 0) -> None:
        self._words[getattr(Words, name) // 8 + place] = value

    def _get(self, name: str, place: int = 0) -> int:
        return int(self._words[getattr(Words, name) // 8 + place])

    def is_free(self, path: np.ndarray, clearance: float = 0.0) -> bool:
        """Whether a path of way-points (points, n) is free at the checked positions; its first point is not checked.

        Args:
            path: positions [rad or m].
            clearance: distance [m] that is kept there.
        """
        with self._lock:
            self._world.margin[0] = clearance
            self._use(path)
            return self._functions["check_path"](self._address) < 0

    def _use(self, path: np.ndarray) -> None:
        self._path[: len(path)] = path
        self._set("points", len(path))

    def path(
        self,
        start: np.ndarray,
        goals: np.ndarray,
        *,
        seed: int,
        rounds: int,
        step: float = STEP,
        passes: int = PASSES,
        clearance: float = 0.0,
    ) -> Found:
        """A path of way-points from the start to one of the goals.

        Args:
            start: positions (n,), free of collisions.
            goals: positions (goals, n), free of collisions.
            seed: of the random numbers.
            rounds: of the search, at most.
            step: longest edge of a tree [rad or m].
            passes: over the corners of a path, to cut them off.
            clearance: distance [m] that is kept at the checked positions.
        """
        with self._lock:
            self._world.margin[0] = clearance
            self._settings[0] = step
            self._set("used", 0)
            self._set("groups", 0)
            self._set("seed", (seed * 0x9E3779B97F4A7C15 + 0x1234567) % 2**63)
            self._set("rounds", rounds)
            self._set("passes", passes)
            for goal in goals:
                self._use(np.array([start, goal]))
                if self._functions["check_path"](self._address) < 0:
                    return self._found(self._path[:2].copy())
            for side, roots in enumerate((start[None], goals)):
                self._plant(side, roots)
            if not self._functions["plan_tree"](self._address):
                return self._found(None)
            path = [*self._branch(0)[::-1], *self._branch(1)]
            if len(path) < MOST_POINTS:
                self._use(np.array(path))
                count = self._functions["shorten_path"](self._address)
                path = self._path[:count]
            return self._found(np.array(path))

    def _found(self, path: np.ndarray | None) -> Found:
        exact = None if path is None else path.astype(float)
        return Found(exact, self._get("used"), self._get("groups"))

    def _plant(self, side: int, roots: np.ndarray) -> None:
        tree = self._trees[side].reshape(-1, self.n, GROUP)
        groups = (len(roots) + GROUP - 1) // GROUP
        tree[:groups] = 1e15
        for number, root in enumerate(roots):
            tree[number // GROUP, :, number % GROUP] = root
        self._parents[side][: len(roots)] = -1
        self._set("counts", len(roots), side)

    def _branch(self, side: int) -> Sequence[np.ndarray]:
        """Positions from the node where the trees meet to a root."""
        tree, number = self._trees[side].reshape(-1, self.n, GROUP), self._get("ends", side)
        found: list[np.ndarray] = []
        while number >= 0:
            found.append(tree[number // GROUP, :, number % GROUP].copy())
            number = int(self._parents[side][number])
        return found
