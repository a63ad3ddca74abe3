"""Paths on which a constraint is kept: trees grow by short steps that are projected onto it (Berenson and others 2009).

The way-points lie on the constraint; the path between them is checked at more points, and where it leaves the tolerance
further way-points are projected in between.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from linkwise.motion.planning.constraint import Keep
from linkwise.motion.planning.search import Found, Search
from linkwise.robot.robot import Robot

STEP = 0.15  # [rad or m] between way-points
LEAST_PROGRESS = 0.25  # part of a step by which a tree has to come nearer
CUTS = 40  # tries of shortcuts
MOST_NODES = 4000
MOST_ROUNDS = 2000


class _Tree:
    def __init__(self, roots: np.ndarray):
        self.nodes = np.empty((MOST_NODES + 1, roots.shape[1]))
        self.nodes[: len(roots)] = roots
        self.parents = [-1] * len(roots)

    def __len__(self) -> int:
        return len(self.parents)

    def nearest(self, q: np.ndarray) -> int:
        away = self.nodes[: len(self)] - q
        return int((away * away).sum(axis=1).argmin())

    def add(self, q: np.ndarray, parent: int) -> int:
        self.nodes[len(self)] = q
        self.parents.append(parent)
        return len(self) - 1

    def branch(self, number: int) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        while number >= 0:
            found.append(self.nodes[number])
            number = self.parents[number]
        return found


class ConstrainedSearch:
    """Searches for one robot in one world under a constraint.

    Args:
        robot: the robot.
        search: its checks of edges.
        constraint: what is kept.
        clearance: distance [m] that is kept at checked positions.
    """

    def __init__(self, robot: Robot, search: Search, constraint: Keep, clearance: float):
        self.robot, self.search, self.constraint, self.clearance = robot, search, constraint, clearance
        self._between = search.lower, search.upper

    def path(self, start: np.ndarray, goals: np.ndarray, *, seed: int, rounds: int) -> Found:
        """Way-points on the constraint from the start to one of the goals.

        Args:
            start: positions (n,), free of collisions.
            goals: positions (goals, n), free of collisions.
            seed: of the random numbers.
            rounds: of the search, at most; no more than ``MOST_ROUNDS``.
        """
        rng = np.random.default_rng(seed)
        trees = [_Tree(start[None]), _Tree(goals)]
        used = 0
        while used < min(rounds, MOST_ROUNDS) and max(map(len, trees)) < MOST_NODES:
            side = 0 if len(trees[0]) <= len(trees[1]) else 1
            target = rng.uniform(self.search.lower, self.search.upper)
            if used == 0:  # first the straight way
                target = goals[0]
            used += 1
            one, _ = self._grow(trees[side], target)
            other, reached = self._grow(trees[1 - side], trees[side].nodes[one])
            if reached:
                ends = [one, other] if side == 0 else [other, one]
                path = [*trees[0].branch(ends[0])[::-1], *trees[1].branch(ends[1])]
                return Found(self._shortened(np.array(path), rng), used, 0)
        return Found(None, used, 0)

    def _grow(self, tree: _Tree, target: np.ndarray) -> tuple[int, bool]:
        """Grow a tree towards a position: its nearest node, and whether that is there."""
        number = tree.nearest(target)
        while len(tree) < MOST_NODES:
            here = tree.nodes[number]
            left = _distance(here, target)
            if left <= STEP:
                return number, self._is_free(here, target)
            there, kept = self.constraint.projected(
                self.robot, (here + (target - here) * (STEP / left))[None], self._between
            )
            nearer = left - _distance(there[0], target)
            if not kept[0] or nearer < LEAST_PROGRESS * STEP or not self._is_free(here, there[0]):
                return number, False
            number = tree.add(there[0], number)
        return number, False

    def _is_free(self, here: np.ndarray, there: np.ndarray) -> bool:
        return _distance(here, there) <= 2.0 * STEP and self.search.is_free(
            np.array([here, there]), self.clearance
        )

    def _shortened(self, path: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Replace parts of the path by projected straight lines where these are free and shorter."""
        for _ in range(CUTS):
            if len(path) < 3:
                break
            first, last = np.sort(rng.choice(len(path), 2, replace=False)).tolist()
            count = max(1, int(np.ceil(_distance(path[first], path[last]) / STEP)))
            if last - first < 2 or count >= last - first + 1:
                continue
            part = np.linspace(0.0, 1.0, count + 1)[1:-1, None]
            between, kept = self.constraint.projected(
                self.robot, path[first] + part * (path[last] - path[first]), self._between
            )
            line = np.vstack([path[first], between, path[last]])
            if _size(line) < _size(path[first : last + 1]) and kept.all() and self._all_free(line):
                path = np.vstack([path[:first], line, path[last + 1 :]])
        return path

    def _all_free(self, path: np.ndarray) -> bool:
        return all(self._is_free(a, b) for a, b in pairwise(path))


def finer(
    robot: Robot, constraint: Keep, path: np.ndarray, between: tuple[np.ndarray, np.ndarray]
) -> np.ndarray | None:
    """The path with projected way-points between all of its way-points; None where a projection fails.

    Args:
        robot: the robot.
        constraint: what is kept.
        path: way-points (m, n).
        between: positions (n,), (n,) between which the path stays.
    """
    middles, kept = constraint.projected(robot, 0.5 * (path[:-1] + path[1:]), between)
    if not kept.all():
        return None
    found = np.empty((2 * len(path) - 1, path.shape[1]))
    found[::2], found[1::2] = path, middles
    return found


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    way = b - a
    return float(np.sqrt((way * way).sum()))


def _size(path: np.ndarray) -> float:
    way = np.diff(path, axis=0)
    return float(np.sqrt((way * way).sum(axis=1)).sum())
