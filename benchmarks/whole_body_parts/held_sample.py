"""Arms while torques are held for a sample."""

from __future__ import annotations

import numpy as np

import linkwise as lw

PERIOD, PARTS = 0.002, 4
"""Of a sample [s], and into how many parts it is divided."""


def moved(robot: lw.Robot, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(velocities, positions) at the end of every part, torques held; RK4."""
    h, speeds, places = PERIOD / PARTS, [], []
    for _ in range(PARTS):
        a = robot.forward_dynamics(q, qd, tau)
        b = robot.forward_dynamics(q + h / 2 * qd, qd + h / 2 * a, tau)
        c = robot.forward_dynamics(q + h / 2 * qd + h * h / 4 * a, qd + h / 2 * b, tau)
        d = robot.forward_dynamics(q + h * qd + h * h / 2 * b, qd + h * c, tau)
        q, qd = q + h * qd + h * h / 6 * (a + b + c), qd + h / 6 * (a + 2 * b + 2 * c + d)
        speeds.append(qd)
        places.append(q)
    return np.array(speeds), np.array(places)
