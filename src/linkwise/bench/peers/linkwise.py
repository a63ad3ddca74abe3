"""Linkwise itself, called as a user calls it: the method looked up on the robot each time, the result a new array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise
from linkwise.bench.peers.base import INPUTS, Peer, States, Task
from linkwise.bench.subject import Subject
from linkwise.robot.robot import Robot

CALLS: dict[str, Callable[..., Callable[[], np.ndarray]]] = {
    "inverse_dynamics": lambda robot, q, qd, qdd: lambda: robot.inverse_dynamics(q, qd, qdd),
    "forward_dynamics": lambda robot, q, qd, tau: lambda: robot.forward_dynamics(q, qd, tau),
    "bias_torques": lambda robot, q, qd: lambda: robot.bias_torques(q, qd),
    "gravity_torques": lambda robot, q: lambda: robot.gravity_torques(q),
    "mass_matrix": lambda robot, q: lambda: robot.mass_matrix(q),
    "inverse_mass_matrix": lambda robot, q: lambda: robot.inverse_mass_matrix(q),
}


def make(subject: Subject) -> Peer:
    """Linkwise with this robot."""
    return Linkwise(subject.robot)


class Linkwise(Peer):
    """The methods of the robot; one thread if the environment variable LINKWISE_THREADS says so."""

    name = "linkwise"
    precisions = ("float64", "float32")

    def __init__(self, robot: Robot):
        self.robot = robot
        self.version = linkwise.__version__
        self.order = np.arange(robot.dof)

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        return function, getattr(self.robot, function)

    def one(self, function: str, states: States) -> Task | None:
        return self._task(function, [values[0] for values in self.inputs(function, states)])

    def batch(self, function: str, states: States) -> Task | None:
        return self._task(function, self.inputs(function, states))

    def _task(self, function: str, given: list[np.ndarray]) -> Task:
        run = CALLS[function](self.robot, *(np.ascontiguousarray(values) for values in given))
        return Task(f"robot.{function}({', '.join(INPUTS[function])})", run, run)
