"""Acrobot: two links hang from a pivot, a motor between them swings them up.

R. Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse coding", 1996, with the
numbers of Gymnasium's ``Acrobot-v1`` (lengths and masses of 1, ± 1 N·m, a reward of −1 a step until the tip is one
length above the pivot, 500 steps of 0.2 s). Torques may have any value in between,
velocities are not cut off, and a policy step is 20 physics steps of 10 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwise.environments.draws import Draw
from linkwise.environments.tasks import Scalars, State, Task, Torques
from linkwise.model import Inertia, Joint, Link, Transform
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, cos, sin


def robot() -> Robot:
    """Two links about y that hang down at 0."""
    links = [Link("pivot")]
    joints = []
    for k, parent in enumerate(("pivot", "upper")):
        name = ("upper", "lower")[k]
        links.append(Link(name, Inertia.from_com(1.0, (0, 0, -0.5), (1.0, 1.0, 1e-3))))
        place = Transform.from_rpy((0.0, 0.0, -1.0 * k))
        joints.append(Joint(("shoulder", "elbow")[k], "continuous", parent, name, place, (0, 1, 0)))
    return Robot("acrobot", links, joints, gravity=(0.0, 0.0, -9.8))


def _observe(state: State, draw: Draw) -> Sequence[Scalar]:
    a, b = state.q
    return [cos(a), sin(a), cos(b), sin(b), *state.qd]


def _above(state: State) -> Any:
    a, b = state.q
    return (-cos(a) - cos(a + b)) > 1.0


def _reset(draw: Draw, inputs: Mapping[str, Scalars]) -> Mapping[str, Sequence[Scalar]]:
    return {
        "q": [draw.uniform(-0.1, 0.1) for _ in range(2)],
        "qd": [draw.uniform(-0.1, 0.1) for _ in range(2)],
    }


def task() -> Task:
    """Acrobot with torques."""
    return Task(
        "acrobot",
        robot(),
        Torques(1.0, joints=("elbow",)),
        _observe,
        lambda state: state.terminated - 1.0,
        _above,
        _reset,
        step=0.01,
        substeps=20,
        episode_length=500,
        friction=False,
        source="Sutton 1996; Gymnasium Acrobot-v1",
    )
