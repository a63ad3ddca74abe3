"""PD control with gravity compensation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Controller, errors
from linkwise.control.gains import Gains, not_too_fast, product
from linkwise.robot.robot import Robot

POSITIONS = 256
"""Over which the largest and the least inertia of a joint are looked for."""
LIGHTEST = 9.0
"""No motion is damped more than so many times as fast as meant, in any position. A motion with 1/k of the inertia that
its gains are for is damped k times as fast, and delays of d make it unstable from about 2ζω k d = 1 on: 5 ms in all
(sampling, filters, torques that come late) and k = 10 at ω = 10 rad/s.
"""
IMMOVABLE = 1e-9
"""Eigenvalues of the scaled mass matrix below this are motions without inertia."""


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
                ones over the robot's range, made smaller where a delay would make the arm unstable in some position
                (``LIGHTEST``). The first joint of an arm that stands upright has up to a hundred times less inertia
                there than elsewhere: no constant gains suit both. Where the inertia is k times that of the gains, an
                error takes up to ωt = 6 + 4k to fall to 5 %.
        """
        gains = Gains.from_frequency(frequency, damping)
        for name, value in (("frequency", frequency), ("damping", damping)):
            Numbers().each(name, value, robot.dof)
        inertia = np.diag(robot.mass_matrix(robot.neutral if q is None else q))
        if q is None:
            positions = robot.random(np.random.default_rng(0), POSITIONS)
            M = np.asarray(robot.mass_matrix(positions))
            most = np.diagonal(M, axis1=-2, axis2=-1).max(axis=0)
            inertia = np.sqrt(inertia * np.maximum(most, inertia))
            inertia = not_too_fast(inertia, inverses(M), LIGHTEST)
        return Gains(inertia * gains.kp, inertia * gains.kd)

    def control(self, links, gains, q, qd, reference, memory, period):
        e, ed = errors(links, q, qd, reference)
        gravity = coordinates.gravity_torques(links, q)
        spring = product(gains["kp"], [-x for x in e])
        damping = product(gains["kd"], [-x for x in ed])
        return [g + (s + d) for g, s, d in zip(gravity, spring, damping, strict=True)], []


def inverses(M: np.ndarray) -> np.ndarray:
    """Of mass matrices (positions, n, n), without the motions that have no inertia."""
    size = np.diagonal(M, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(size > 0.0, size, 1.0))
    both = scale[:, :, None] * scale[:, None, :]
    eigenvalues, vectors = np.linalg.eigh(M / both)
    slow = np.where(eigenvalues > IMMOVABLE, 1.0 / np.maximum(eigenvalues, IMMOVABLE), 0.0)
    return (vectors * slow[:, None, :]) @ np.swapaxes(vectors, -1, -2) / both
