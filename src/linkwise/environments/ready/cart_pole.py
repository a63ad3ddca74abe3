"""Cart-pole: a pole on a cart is kept upright, by forces along the rail.

The task of A. Barto, R. Sutton, C. Anderson, "Neuronlike adaptive elements that can solve difficult learning control
problems", 1983, with the numbers of Gymnasium's ``CartPole-v1`` (masses, length, ± 10 N, ends at 12° and 2.4 m, 500
steps of 20 ms, a reward of 1 a step) but with any force in between, as in ``InvertedPendulum-v5``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from linkwise.environments.draws import Draw
from linkwise.environments.tasks import Scalars, State, Task, Torques
from linkwise.model import Inertia, Joint, Limits, Link, Transform
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar

CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5  # [kg, kg, m]
RAIL, ANGLE = 2.4, math.radians(12.0)


def robot() -> Robot:
    """A cart on a rail along x with a pole that turns about y, upright at 0."""
    inertia = POLE * HALF_LENGTH**2 / 3.0
    links = [
        Link("rail"),
        Link("cart", Inertia.from_com(CART, (0, 0, 0), (1e-3, 1e-3, 1e-3))),
        Link("pole", Inertia.from_com(POLE, (0, 0, HALF_LENGTH), (inertia, inertia, 1e-6))),
    ]
    joints = [
        Joint(
            "slide", "prismatic", "rail", "cart", Transform.identity(), (1, 0, 0), limits=Limits(-5.0, 5.0)
        ),
        Joint("hinge", "continuous", "cart", "pole", Transform.identity(), (0, 1, 0)),
    ]
    return Robot("cart_pole", links, joints)


def _observe(state: State, draw: Draw) -> Sequence[Scalar]:
    return [state.q[0], state.qd[0], state.q[1], state.qd[1]]


def _outside(state: State) -> Scalar:
    return (abs(state.q[0]) > RAIL) | (abs(state.q[1]) > ANGLE)


def _reset(draw: Draw, inputs: Mapping[str, Scalars]) -> Mapping[str, Sequence[Scalar]]:
    (size,) = inputs["start"]
    return {
        "q": [draw.uniform(-size, size) for _ in range(2)],
        "qd": [draw.uniform(-size, size) for _ in range(2)],
    }


def task() -> Task:
    """Cart-pole with forces."""
    return Task(
        "cart_pole",
        robot(),
        Torques(10.0, joints=("slide",)),
        _observe,
        lambda state: 1.0 + 0.0 * state.q[0],
        _outside,
        _reset,
        step=0.02,
        substeps=1,
        episode_length=500,
        inputs={"start": 0.05},
        source="Barto, Sutton, Anderson 1983; Gymnasium CartPole-v1",
    )
