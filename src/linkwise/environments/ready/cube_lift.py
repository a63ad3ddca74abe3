"""A gripper on three slides picks a cube from a table and brings it to a target: MuJoCo Playground's ``PandaPickCube``
(K. Zakka et al., 2025; ``manipulation/franka_emika_panda/pick.py``), rewards and episode, with a gripper in place of
the arm, because the bundled Panda has no hand. Actions are targets of the slides and of the fingers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.control.activations import tanh
from linkwise.environments.draws import Draw
from linkwise.environments.tasks import PDTargets, Scalars, State, Task, square
from linkwise.model import Inertia, Joint, Limits, Link, Transform
from linkwise.model.bodies import Body
from linkwise.model.contacts import Contact, Ground
from linkwise.model.shapes import Shape
from linkwise.robot.loading import Scene
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, maximum, sqrt, where

EDGE, MASS = 0.04, 0.1  # of the cube [m, kg]
RANGE = 0.2  # of the slides and of places [m]


def gripper() -> Robot:
    """Two fingers under a hand that slides along x, y and z."""
    links, joints, parent = [Link("stand")], [], "stand"
    for k, (name, axis) in enumerate((("x_slide", (1, 0, 0)), ("y_slide", (0, 1, 0)), ("hand", (0, 0, 1)))):
        links.append(Link(name, Inertia.from_com(0.5, (0, 0, 0), (1e-3, 1e-3, 1e-3))))
        place = Transform.from_rpy((0.0, 0.0, 0.15 if k == 2 else 0.0))
        ends = Limits(-0.14, 0.4) if k == 2 else Limits(-2 * RANGE, 2 * RANGE)
        joints.append(Joint(f"{name}_joint", "prismatic", parent, name, place, axis, limits=ends))
        parent = name
    for name, side in (("left", -1.0), ("right", 1.0)):
        links.append(Link(name, Inertia.from_com(0.05, (0, 0, 0), (2e-5, 2e-5, 2e-5))))
        place = Transform.from_rpy((0.0, side * 0.05, 0.0))
        axis = (0.0, -side, 0.0)
        joints.append(
            Joint(f"{name}_joint", "prismatic", "hand", name, place, axis, limits=Limits(0.0, 0.05))
        )
    shapes = [
        Shape.capsule(name, 0.008, 0.02, rpy=(0.0, math.pi / 2, 0.0), friction=1.0)
        for name in ("left", "right")
    ]
    return Robot("gripper", links, joints).with_contacts(shapes)


def scene() -> Robot:
    """The gripper, a cube and a table."""
    cube = Body.box((EDGE, EDGE, EDGE), mass=MASS, name="cube", friction=1.0)
    made: Any = Scene(
        [gripper(), cube, Ground(friction=0.8)],
        name="cube_lift",
        contacts=[Contact("left", "cube"), Contact("right", "cube")],
    )
    return made


def _places(state: State) -> tuple[Scalars, Scalars]:
    """(between the fingers, the cube) [m]."""
    hand = [state.q[0], state.q[1], state.q[2] + 0.15]
    return hand, state.q[5:8]


def _observe(state: State, draw: Draw) -> Sequence[Scalar]:
    hand, cube = _places(state)
    away = [a - b for a, b in zip(cube, hand, strict=True)]
    left = [a - b for a, b in zip(state.memory["target"], cube, strict=True)]
    return [*state.q[:5], *state.qd[:5], *away, *left, *state.q[8:12], *state.qd[5:]]


def _reward(state: State) -> Mapping[str, Scalar]:
    hand, cube = _places(state)
    reaching = _distance(hand, cube)
    return {
        "gripper_box": 4.0 * (1.0 - tanh(5.0 * reaching)),
        "box_target": 8.0
        * state.memory["reached"][0]
        * (1.0 - tanh(5.0 * _distance(cube, state.memory["target"]))),
    }


def _update(state: State, draw: Draw) -> Mapping[str, Sequence[Scalar]]:
    near = where(_distance(*_places(state)) < 0.02, 1.0, 0.0)
    return {"reached": [maximum(state.memory["reached"][0], near)]}


def _reset(draw: Draw, inputs: Mapping[str, Scalars]) -> Mapping[str, Sequence[Scalar]]:
    (spread,) = inputs["spread"]
    cube = [spread * draw.noise(RANGE), spread * draw.noise(RANGE), 0.5 * EDGE + 0.0 * spread]
    return {
        "q": [0.0 * spread, 0.0, 0.0, 0.0, 0.0, *cube, 0.0, 0.0, 0.0, 1.0],
        "target": [spread * draw.noise(RANGE), spread * draw.noise(RANGE), draw.uniform(0.2, 0.4)],
    }


def _lost(state: State) -> Any:
    return (square(state.q[5:7]) > 1.0) | (state.q[7] < -0.02)


def _distance(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return sqrt(square([x - y for x, y in zip(a, b, strict=True)]) + 1e-12)


def task() -> Task:
    """Lift a cube to a target."""
    joints = ("x_slide_joint", "y_slide_joint", "hand_joint", "left_joint", "right_joint")
    start = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * EDGE, 0.0, 0.0, 0.0, 1.0]
    return Task(
        "cube_lift",
        scene(),
        PDTargets(
            (1000.0, 1000.0, 1000.0, 300.0, 300.0),
            (60.0, 60.0, 60.0, 6.0, 6.0),
            (0.0, 0.0, 0.05, 0.02, 0.02),
            (0.25, 0.25, 0.2, 0.03, 0.03),
            (100.0, 100.0, 100.0, 10.0, 10.0),
            joints=joints,
        ),
        _observe,
        _reward,
        _lost,
        _reset,
        step=0.005,
        substeps=4,
        episode_length=150,
        memory={"target": 3, "reached": 1},
        update=_update,
        inputs={"spread": 1.0},
        source="MuJoCo Playground, PandaPickCube",
        initial=np.array(start),
    )
