"""Torques from the model and the plan alone: open loop, as in Izaguirre's experiments (1992, section 7.2)."""

from __future__ import annotations

from linkwise.algorithms import coordinates
from linkwise.control.controller import Controller
from linkwise.robot.robot import Robot


class FeedForward(Controller):
    """τ = inverse dynamics of the reference, friction included.

    ``gravity="planned"`` takes gravity where the arm should be (nothing is fed back), ``"online"`` where it
    is: "an elementary form of feedback" that keeps gravity from building up errors in slow motions.

    Args:
        robot: the model.
        gravity: "planned" or "online".
        torque_limits: see ``Controller``.
    """

    feedback = False

    def __init__(self, robot: Robot, *, gravity: str = "planned", torque_limits=None):
        if gravity not in ("planned", "online"):
            raise ValueError(f"gravity: expected 'planned' or 'online', got {gravity!r}")
        super().__init__(robot, {}, torque_limits)
        self.gravity = gravity

    def options(self) -> tuple:
        return (self.gravity,)

    def control(self, links, gains, q, qd, reference, memory, period):
        tau = coordinates.inverse_dynamics(links, reference.q, reference.qd, reference.qdd)
        if self.gravity == "online":
            planned, weight = (coordinates.gravity_torques(links, at) for at in (reference.q, q))
            tau = [t - p + w for t, p, w in zip(tau, planned, weight, strict=True)]
        return tau, []
