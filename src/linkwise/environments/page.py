"""An episode as a page file: one HTML file that plays it, with arrows for the forces of contacts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.environments.arrays import on_host
from linkwise.environments.environment import Rollout
from linkwise.environments.tasks import Task
from linkwise.errors import ArgumentError
from linkwise.robot.robot import Robot


@dataclass(frozen=True)
class Episode:
    """What a page needs of a simulation."""

    robot: Robot
    t: np.ndarray
    q: np.ndarray
    contact_points: np.ndarray
    contact_arrows: np.ndarray


def write_episode(
    task: Task, rollout: Rollout, path: str | os.PathLike[str], *, environment: int = 0
) -> Path:
    """Write the first episode of one environment as an HTML file that needs no network.

    Args:
        task: whose robot is shown.
        rollout: of ``Environment.replay`` or ``Environment.rollout``.
        path: the file to write.
        environment: which one.

    Returns:
        The path.
    """
    from linkwise.view import write_page

    made = first_episode(task, rollout, environment)
    simulated: Any = made
    return write_page(task.robot, path, q=made.q[0], result=simulated)


def first_episode(task: Task, rollout: Rollout, environment: int = 0) -> Episode:
    """Positions and contacts from the first step until the first episode ends, or the rollout.

    Args:
        task: of the rollout.
        rollout: several steps of several environments.
        environment: which one.
    """
    q, ends, impulses = (
        on_host(x)[environment].astype(float) for x in (rollout.q, rollout.ends, rollout.impulse)
    )
    over = np.flatnonzero(ends[:, 0] + ends[:, 1] > 0.5)
    count = int(over[0]) if len(over) else len(q)  # the last row of an episode is the first one of the next
    if count < 1:
        raise ArgumentError(f"rollout: the episode of environment {environment} ended in its first step")
    robot, q = task.robot, q[:count]
    points = arrows = np.zeros((count, 0, 3))
    if robot.contact_names:
        frames = robot.contact_frames(q)
        forces = impulses[:count].reshape(count, -1, 3) / task.step
        points, arrows = frames[..., :3, 3], np.einsum("tcij,tcj->tci", frames[..., :3, :3], forces)
    return Episode(robot, task.period * np.arange(1, count + 1), q, points, arrows)
