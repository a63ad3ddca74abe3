"""A law together with what touches the tool, as one controller: the whole scene runs in one kernel.

The environment acts in every stage of the integrator (``simulate(..., continuous=True)``). The law is sampled: its
torque of one step acts from the next step on, and is held for ``hold`` steps. All numbers are gains, so the lanes
of a batch are different scenes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.algorithms import dense
from linkwise.control import Controller
from linkwise.control.task_space.felt import WRENCH
from linkwise.control.task_space.tool import pose_and_jacobian, product
from linkwise.scalar import cos, where

TIME, WORK, POWER, COUNT, FIXED = 0, 1, 2, 3, 4
"""Places in the memory: time [s], work of the environment [J], its power [W], steps since the last sample."""


class Touched(Controller):
    """A law whose tool is pulled by a person and held back by a wall.

    Gains: ``wall`` (normal, offset [m], stiffness [N/m], damping [N·s/m]), ``pull`` and ``pull_rate`` (the wrench
        on the tool in
    the axes of the base is pull · cos(rate · t)), ``pull_end`` [s], ``hold`` (steps).

    Args:
        law: the law.
        frame: the tool.
    """

    def __init__(self, law: Controller, frame: str):
        robot = law.robot
        outside = {
            "wall": np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
            "pull": np.zeros(6),
            "pull_rate": np.zeros(6),
            "pull_end": np.array([1e9]),
            "hold": np.ones(1),
        }
        super().__init__(robot, {**law.gains, **outside}, torque_limits=False)
        self.law, self.located = law, robot.locate(frame)
        self.memory_size = FIXED + robot.dof + law.memory_size

    def control(self, links, gains, q, qd, reference, memory, period):
        n = self.robot.dof
        time, work, power, count = memory[:FIXED]
        held, inner = memory[FIXED : FIXED + n], memory[FIXED + n :]
        R, p, J = pose_and_jacobian(links, q, self.located)
        twist = product(J, qd)
        wrench = self.outside(gains, p, twist, time)
        felt = {}
        if self.law.signals:
            back = dense.transposed(R)
            felt[WRENCH] = [dense.dot(row, part) for part in (wrench[:3], wrench[3:]) for row in back]
        span = period * gains["hold"][0]
        tau, following = self.law.limited(links, {**gains, **felt}, q, qd, reference, inner, span)
        sample: Any = count < 0.5
        kept = [where(sample, a, b) for a, b in zip(tau, held, strict=True)]
        inner = [where(sample, a, b) for a, b in zip(following, inner, strict=True)]
        last: Any = count + 1.5 > gains["hold"][0]
        now = dense.dot(wrench, twist)
        clock = [time + period, work + 0.5 * period * (power + now), now, where(last, 0.0, count + 1.0)]
        pushed = [dense.dot(column, wrench) for column in dense.transposed(J)]
        return [a + b for a, b in zip(held, pushed, strict=True)], [*clock, *kept, *inner]

    @staticmethod
    def outside(gains, p, twist, time) -> list[Any]:
        """The wrench on the tool [N·m, N] in the axes of the base."""
        *normal, offset, stiffness, damping = gains["wall"]
        depth = offset - dense.dot(normal, p)
        speed = dense.dot(normal, twist[3:])
        force = stiffness * depth - damping * speed
        force = where(depth > 0.0, where(force > 0.0, force, 0.0), 0.0)
        pulling = time < gains["pull_end"][0]
        wrench = [
            where(pulling, a * cos(w * time), 0.0)
            for a, w in zip(gains["pull"], gains["pull_rate"], strict=True)
        ]
        return [*wrench[:3], *(a + force * b for a, b in zip(wrench[3:], normal, strict=True))]
