"""A Panda moves its flange to points in front of it: Isaac Lab's ``Isaac-Reach-Franka-v0`` (M. Mittal et al., "Orbit: a
unified simulation framework for interactive robot learning environments", 2023), positions without orientations.

The arm's own controller compensates gravity, so there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linkwise.control.activations import tanh
from linkwise.environments.draws import Draw
from linkwise.environments.tasks import PDTargets, Scalars, State, Task, square
from linkwise.robot.loading import load
from linkwise.scalar import Scalar, sqrt

POSTURE = (0.0, -0.569, 0.0, -2.810, 0.0, 3.037, 0.741)
FLANGE = "panda_link8"
TARGETS = ((0.35, 0.65), (-0.2, 0.2), (0.15, 0.5))
"""Ranges of x, y, z [m]; the input ``targets`` changes them."""


def _distance(state: State) -> Scalar:
    away = [a - b for a, b in zip(state.memory["target"], state.position(FLANGE), strict=True)]
    return sqrt(square(away) + 1e-12)


def _observe(state: State, draw: Draw) -> Sequence[Scalar]:
    (noise,) = state.inputs["noise"]
    away = [x - p + noise * draw.noise(0.01) for x, p in zip(state.q, POSTURE, strict=True)]
    rates = [v + noise * draw.noise(0.01) for v in state.qd]
    return [*away, *rates, *state.memory["target"], *state.memory["last"]]


def _reward(state: State) -> Mapping[str, Scalar]:
    distance = _distance(state)
    change = [a - b for a, b in zip(state.action, state.memory["last"], strict=True)]
    return {
        "distance": -0.2 * distance,
        "close": 0.1 * (1.0 - tanh(10.0 * distance)),
        "action_rate": -1e-4 * square(change),
        "joint_velocity": -1e-4 * square(state.qd),
    }


def _update(state: State, draw: Draw) -> Mapping[str, Sequence[Scalar]]:
    return {"last": state.action}


def _reset(draw: Draw, inputs: Mapping[str, Scalars]) -> Mapping[str, Sequence[Scalar]]:
    ends = inputs["targets"]
    return {
        "q": [p * draw.uniform(0.5, 1.5) if p else draw.uniform(-0.1, 0.1) for p in POSTURE],
        "target": [draw.uniform(ends[2 * k], ends[2 * k + 1]) for k in range(3)],
    }


def task() -> Task:
    """Reach with the flange of the bundled Panda."""
    robot = load("panda").with_gravity((0.0, 0.0, 0.0))
    return Task(
        "panda_reach",
        robot,
        PDTargets(80.0, 4.0, POSTURE, 0.5, limits=(87.0,) * 4 + (12.0,) * 3),
        _observe,
        _reward,
        lambda state: state.q[0] > 1e3,
        _reset,
        step=1.0 / 120.0,
        substeps=4,
        episode_length=120,
        memory={"target": 3, "last": 7},
        update=_update,
        inputs={"targets": np.ravel(TARGETS), "noise": 1.0},
        friction=False,
        source="Isaac Lab, Isaac-Reach-Franka-v0",
        initial=np.array(POSTURE),
    )
