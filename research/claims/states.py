"""Random states that all tests share."""

from __future__ import annotations

import numpy as np

from linkwise.robot.loading import load
from linkwise.robot.robot import Robot

ARMS = ("puma560", "stanford", "panda", "iiwa14", "ur10e")  # bundled arms with a full set of parameters
ROUND_OFF = (
    1e-12  # relative: far above a few hundred roundings, far below anything that a wrong formula leaves
)


def arms() -> list[Robot]:
    return [load(name) for name in ARMS]


def states(robot: Robot, count: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, qd, qdd, each (count, n)."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (count, robot.dof))
    qd, qdd = rng.normal(size=(2, count, robot.dof))
    return q, qd, qdd


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, relative to the largest value."""
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
