"""Positions of inverse kinematics that touch nothing: of several that reach a target, the nearest one to the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.collision.clearance import position_range
from linkwise.collision.validity.validity import Validity, whole_turns
from linkwise.collision.world import World

TRIED = 16  # further starts of a target at a time
TIMES = 4  # such tries


@dataclass(frozen=True)
class FreeSpace:
    """What positions must not touch.

    Args:
        validity: checks of the robot.
        world: the obstacles.
        clearance: distance [m] to keep.
    """

    validity: Validity
    world: World
    clearance: float

    def touching(self, q: np.ndarray) -> np.ndarray:
        """Which positions touch something (states,): those that the checks in single precision do not say are free.

        Args:
            q: positions [rad or m], shape (states, n).
        """
        return np.asarray(self.validity.in_collision(q, self.world, clearance=self.clearance))

    def moved_away(
        self,
        problem: Any,
        found: tuple[np.ndarray, np.ndarray],
        first: np.ndarray,
        iterations: int,
        seed: int,
    ) -> np.ndarray:
        """Puts others in place of found positions that touch something, and says which still do (targets,).

        The draws are the same for all targets, so a target's result does not depend on the others.

        Args:
            problem: the targets, as inverse kinematics has them.
            found: positions and their errors, which are changed.
            first: positions of the start, shape (targets, n).
            iterations: most steps from each start.
            seed: of the further starts.
        """
        q, error = found
        touching = self.touching(q)
        reached = problem.arrived(error)
        rng = np.random.default_rng([seed, TRIED])
        lower, upper = position_range(self.validity.robot, None, None)
        for _ in range(TIMES):
            left = np.flatnonzero(touching & reached)
            draws = rng.uniform(lower, upper, (TRIED, len(lower)))
            if not left.size:
                break
            rows = np.repeat(left, TRIED)
            others = problem.subset(rows).solve(np.tile(draws, (len(left), 1)), True, 1, iterations, seed)
            free = problem.arrived(others[1])
            free[free] = ~self.touching(others[0][free])
            others = (self._nearest_turns(others[0], first[rows], problem.lower, problem.upper), others[1])
            away = np.abs(others[0] - first[rows]).max(axis=1)
            order = np.where(free, away, np.inf).reshape(len(left), TRIED)
            best = order.argmin(axis=1) + TRIED * np.arange(len(left))
            good = free[best]
            for kept, candidates in zip(found, others, strict=True):
                kept[left[good]] = candidates[best[good]]
            touching[left[good]] = False
        return touching

    def _nearest_turns(
        self, q: np.ndarray, start: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> np.ndarray:
        """The same postures, each joint by the whole turn that is nearest to the start within the limits."""
        turn = 2.0 * np.pi
        near = q - turn * np.round((q - start) / turn)
        near = np.where(near > upper, near - turn, np.where(near < lower, near + turn, near))
        usable = whole_turns(self.validity.robot) & (near >= lower) & (near <= upper)
        return np.where(usable, near, q)

    def why(self, q: np.ndarray) -> str:
        """What is touched at the first of these positions, in words.

        Args:
            q: positions (states, n).
        """
        clearances = self.validity.clearances(q[0], self.world)
        every = np.concatenate([clearances.world, clearances.itself])
        words = self.validity.words[int(np.argmin(every))]
        more = f"; {len(q) - 1} more targets" if len(q) > 1 else ""
        return (
            f"the target is reached, but none of {TRIED * TIMES} further positions is free: the nearest touch {words} "
            f"({1000 * every.min():.3g} mm){more}"
        )
