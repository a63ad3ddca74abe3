"""PD control with gravity compensation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.control.controller import Controller, errors
from linkwise.control.gains import Gains, product
from linkwise.robot.robot import Robot

POSITIONS = 256
"""Over which the largest inertia of a joint is looked for."""


class GravityPD(Controller):
    """τ = g(q) − K_p e − K_d ė, with K_p [N·m/rad] and K_d [N·m·s/rad] as torques, not accelerations.

    M. Takegaki, S. Arimoto, 1981: brings any arm to rest at a fixed reference, whatever its inertias.
    """

    units: ClassVar[dict[str, str]] = {
        "kp": "proportional gains [N*m/rad or N/m]",
        "kd": "derivative gains [N*m*s/rad or N*s/m]",
    }

    def __init__(self, robot: Robot, gains: Gains, *, torque_limits=None):
        vectors = gains.vectors(robot.dof)
        super().__init__(robot, {"kp": vectors["kp"], "kd": vectors["kd"]}, torque_limits)

    @classmethod
    def gains_for(cls, robot: Robot, frequency, damping=1.0, q=None) -> Gains:
        """Gains as torques: those of accelerations times the inertia of each joint at ``q``.

        Args:
            robot: the robot.
            frequency: ω [rad/s], one number or (n,).
            damping: ζ, one number or (n,).
            q: the position [rad or m], shape (nq,); None: the geometric mean of the inertias at zero and of the largest
                ones over the robot's range. The first joint of an arm that stands upright at zero has up to a hundred
                times less inertia there than elsewhere: with gains for that it would hardly be damped.
        """
        gains = Gains.from_frequency(frequency, damping)
        inertia = np.diag(robot.mass_matrix(robot.neutral if q is None else q))
        if q is None:
            positions = robot.random(np.random.default_rng(0), POSITIONS)
            most = np.diagonal(robot.mass_matrix(positions), axis1=-2, axis2=-1).max(axis=0)
            inertia = np.sqrt(inertia * np.maximum(most, inertia))
        return Gains(inertia * gains.kp, inertia * gains.kd)

    def control(self, links, gains, q, qd, reference, memory, period):
        e, ed = errors(links, q, qd, reference)
        gravity = coordinates.gravity_torques(links, q)
        spring, damping = product(gains["kp"], e), product(gains["kd"], ed)
        return [g - s - d for g, s, d in zip(gravity, spring, damping, strict=True)], []
