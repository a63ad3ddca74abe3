"""Memory of friction is kept only where it explains recorded torques better than its own smooth form.

A memory is right where gears give way before they slide. Where a robot stands, held by brakes or moved by a controller
within an encoder count, the direction that is remembered may be wrong for as long as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.identify.recordings.signals import Signals
from linkwise.joint_laws.direction import DISTANCE
from linkwise.robot.directions import remembers, torques_along
from linkwise.robot.robot import Robot

CLEARLY = 0.8
"""Of the squared error with memory, below which the smooth form explains the torques better. Smaller differences do not
predict: on a UR10e 0.92 at one joint in the recording that was fitted, 1.4 in the one that was left out."""


def useful_memory(robot: Robot, signals: Sequence[Signals]) -> Robot:
    """The robot without the memory of joints whose recorded torques its smooth form explains clearly better.

    Args:
        robot: fitted to the recordings.
        signals: the conditioned recordings.
    """
    if not remembers(robot):
        return robot
    along, smooth = np.zeros(robot.dof), np.zeros(robot.dof)
    for each in signals:
        _, (q, qd, qdd) = each.at_stamps()
        along += ((each.log.tau - torques_along(robot, q, qd, qdd)) ** 2).sum(axis=0)
        smooth += ((each.log.tau - robot.inverse_dynamics(q, qd, qdd)) ** 2).sum(axis=0)
    worse = [
        joint.name
        for joint, with_memory, without in zip(robot.coordinate_joints, along, smooth, strict=True)
        if joint.number(DISTANCE) and without < CLEARLY * with_memory
    ]
    return robot.with_parameters({f"{name}.{DISTANCE}": 0.0 for name in worse}) if worse else robot


__all__ = ["useful_memory"]
