"""Inverse kinematics of one target: the search of ``inverse`` without what many targets need.

What does not depend on the target is kept with the robot. The starts are those of the first round of a search over many
targets, and a start ends by the same rules, so that both find the same position. Where none arrives the caller goes on
with the whole search.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.motion.kinematics import starts as starting
from linkwise.motion.kinematics.damped_least_squares import iteration
from linkwise.robot.robot import Robot

PATIENCE = 8  # iterations after which a start that has not halved its cost is left


class SingleTarget:
    """The search for one robot, frame and task."""

    def __init__(
        self,
        robot: Robot,
        frame: str | None,
        task: str,
        limits: tuple[np.ndarray, np.ndarray],
        length: float,
        first: np.ndarray,
        tolerance: float,
    ):
        self.length, self.first, self.tolerance = length, first, tolerance
        self.lower, self.upper = limits
        self.angular = 3 if task == "pose" else 0
        self.weights = np.array([*[length] * self.angular, 1.0, 1.0, 1.0])
        self.iteration = iteration(robot, frame, task)
        self.trust: dict[int, np.ndarray] = {}

    def near(self, library: starting.Library, target: np.ndarray, count: int) -> np.ndarray:
        """The usual start and the positions of the library that are nearest to the target, (count, n)."""
        q = library.nearest_one(target, count)
        q[0] = self.first
        return q

    def search(
        self, q: np.ndarray, target: np.ndarray, iterations: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """(position, error) of the nearest start that arrives; None where none does.

        Args:
            q: starts, (count, n).
            target: a pose row by row without its last row, or a point.
            iterations: most steps from each.
        """
        trust, before, done = np.ones((len(q), 1)), None, 0
        while True:
            steps = min(PATIENCE, iterations - done)
            about = np.array([steps, self.length, 0.01 * self.tolerance])
            q, error, left = self.iteration(q, target, self.lower, self.upper, trust, about)
            done += steps
            scaled = self.weights * error
            cost = np.einsum("ij,ij->i", scaled, scaled)
            k = int(cost.argmin())
            if self.arrived(error[k]):
                return q[k], error[k]
            if done >= iterations:
                return None
            open_ = left > 0.0
            if before is not None:
                open_ &= cost < 0.5 * before
            if not open_.any():
                return None
            q, trust, before = q[open_], left[open_, np.newaxis], cost[open_]

    def arrived(self, error: np.ndarray) -> bool:
        """Whether what is left is within the tolerance."""
        linear, angular = self.sizes(error)
        return linear <= self.tolerance and angular <= self.tolerance

    def sizes(self, error: np.ndarray) -> tuple[float, float]:
        """(distance [m], angle [rad])."""
        parts = error.tolist()
        return math.hypot(*parts[-3:]), math.hypot(*parts[: self.angular]) if self.angular else 0.0


def known_search(robot: Robot, key: tuple[Any, ...], make: Any) -> SingleTarget:
    """The search that is kept with a robot.

    Args:
        robot: the robot.
        key: frame, task, limits and tolerance.
        make: what makes it.
    """
    known: dict[Any, SingleTarget] = vars(robot).setdefault("_searches", {})
    search = known.get(key)
    if search is None:
        if len(known) >= starting.MOST_LIBRARIES:
            known.clear()
        search = known[key] = make()
    return search
