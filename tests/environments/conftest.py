"""A small task with everything that an environment can have: contact, random masses, noise, late sensors, pushes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.environments import PDTargets, Push, Task


def observe(state, draw):
    noisy = [x + draw.noise(0.01) for x in (*state.q, *state.qd)]
    return [*noisy, state.memory["last"][0], state.memory["goal"][0], state.time]


def update(state, draw):
    goal = lw.where(draw.chance(0.1) > 0.5, draw.uniform(-1.0, 1.0), state.memory["goal"][0])
    return {"last": state.action, "goal": [goal]}


def reset(draw, inputs):
    (height,) = inputs["height"]
    return {
        "q": [0.0, 0.0, draw.uniform(0.3, 0.3 + height), 0.0, 0.0, 0.0, 1.0, 0.0],
        "goal": [draw.normal()],
    }


def reward(state):
    return {
        "height": state.q[2],
        "effort": -0.01 * state.torque[0] * state.torque[0],
        "end": -state.terminated,
    }


def bouncer(**options) -> Task:
    """A floating body with a sliding foot."""
    links = [
        lw.Link("body", lw.Inertia.from_com(2.0, (0, 0, 0), (0.02, 0.02, 0.02))),
        lw.Link("foot", lw.Inertia.from_com(0.2, (0, 0, 0), (1e-3, 1e-3, 1e-3))),
    ]
    place = lw.Transform.from_rpy((0.0, 0.0, -0.1))
    joints = [
        lw.Joint("slide", "prismatic", "body", "foot", place, (0, 0, 1), limits=lw.Limits(-0.1, 0.1)),
    ]
    robot = lw.Robot("bouncer", links, joints).with_base("floating")
    robot = robot.with_contacts([lw.Contact("foot", radius=0.05, friction=0.8)])
    settings = {
        "step": 0.005,
        "substeps": 3,
        "episode_length": 25,
        "memory": {"last": 1, "goal": 1},
        "update": update,
        "inputs": {"height": 0.1},
        "randomise": {"contact_friction": (0.2, 0.9), "payload": (0.0, 1.0), "kp": (0.5, 1.5)},
        "payload_frame": "body",
        "push": Push(0.5, 0.05),
        "delay": (0, 2),
    }
    control = PDTargets(400.0, 10.0, 0.0, 0.05, 60.0)
    return Task(
        "bouncer",
        robot,
        control,
        observe,
        reward,
        lambda s: s.gravity[2] > -0.8,
        reset,
        **(settings | options),
    )


@pytest.fixture(scope="session")
def task() -> Task:
    return bouncer()


@pytest.fixture(scope="session")
def plain(task) -> Task:
    """The same without contact and random numbers besides those of the begin."""
    nothing = dict.fromkeys(("push",), None)
    return dataclasses.replace(
        task, robot=task.robot.with_contacts([]), randomise={}, delay=(0, 0), **nothing, name="plain"
    )


def actions(count: int, steps: int, size: int = 1) -> np.ndarray:
    return np.random.default_rng(5).uniform(-1.0, 1.0, (count, steps, size)).astype(np.float32)
