"""No control: zero or constant torques, to study the arm alone."""

from __future__ import annotations

from typing import ClassVar

from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Controller
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar


class Passive(Controller):
    """τ = 0, whatever the limits.

    Args:
        robot: the robot.
        torque_limits: not used; for the same call as other controllers.
    """

    feedback = False
    saturates = False

    def __init__(self, robot: Robot, *, torque_limits=None):
        super().__init__(robot, {}, torque_limits=False)

    def control(self, links, gains, q, qd, reference, memory, period) -> tuple[list[Scalar], list[Scalar]]:
        return [0.0] * self.robot.dof, []


class ConstantTorque(Controller):
    """τ = torque [N·m or N], one number or (n,).

    Args:
        robot: the robot.
        torque: [N·m or N], one number or (n,).
    """

    feedback = False
    saturates = False

    units: ClassVar[dict[str, str]] = {"torque": "constant torques [N*m or N]"}

    def __init__(self, robot: Robot, torque):
        super().__init__(robot, {"torque": Numbers().each("torque", torque, robot.dof)}, torque_limits=False)

    def control(self, links, gains, q, qd, reference, memory, period):
        return list(gains["torque"]), []

    def saturated(self, tau):
        return list(tau)
