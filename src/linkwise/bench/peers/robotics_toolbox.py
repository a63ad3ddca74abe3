"""robotics-toolbox-python: the robot from its URDF, called one state at a time."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.bench.peers.base import Peer, Refusal
from linkwise.bench.subject import Subject

CALLS = {
    "inverse_dynamics": "rne",
    "forward_dynamics": "accel",
    "mass_matrix": "inertia",
    "gravity_torques": "gravload",
}


def make(subject: Subject) -> Peer:
    """The toolbox with this robot."""
    toolbox: Any = importlib.import_module("roboticstoolbox")
    if subject.urdf is None:
        raise Refusal(subject.refusal)
    try:
        robot = toolbox.Robot.URDF(str(subject.urdf))
    except Exception as error:  # its readers raise many kinds
        raise Refusal(f"does not read the file: {error}") from None
    return RoboticsToolbox(robot, subject)


class RoboticsToolbox(Peer):
    """Torques of one state by ``rne``; ``accel`` and ``inertia`` call it again and again."""

    name = "robotics-toolbox"
    slow = True

    def __init__(self, robot: Any, subject: Subject):
        self.robot = robot
        self.version = importlib.metadata.version("roboticstoolbox-python")
        if robot.n != subject.robot.dof:
            raise Refusal(f"finds {robot.n} joints in the file, not {subject.robot.dof}")
        robot.gravity = np.array(subject.robot.gravity)
        self.order = np.arange(robot.n)

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        return (CALLS[function], getattr(self.robot, CALLS[function])) if function in CALLS else None
