"""Controllers by name: the way from a name and gains to a controller for studies, the command line and the 3-D page."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.control.controller import Controller
from linkwise.control.feed_forward import FeedForward
from linkwise.control.gains import Gains
from linkwise.control.gravity_pd import GravityPD
from linkwise.control.inverse_dynamics import ComputedTorque, IntegralTracking, PointToPoint, Tracking
from linkwise.control.passive import Passive
from linkwise.control.task_space import (
    CartesianAdmittance,
    CartesianImpedance,
    HandGuiding,
    HybridForceMotion,
    OperationalSpace,
)
from linkwise.control.task_space.law import FREQUENCY
from linkwise.control.whole_body.tracking import WholeBodyTracking
from linkwise.core.upper import upper
from linkwise.errors import ArgumentError, UnknownNameError, suggest
from linkwise.robot.robot import Robot

CONTROLLERS: dict[str, type[Controller]] = {
    "computed_torque": ComputedTorque,
    "tracking": Tracking,
    "integral_tracking": IntegralTracking,
    "point_to_point": PointToPoint,
    "gravity_pd": GravityPD,
    "feed_forward": FeedForward,
    "passive": Passive,
    "cartesian_impedance": CartesianImpedance,
    "operational_space": OperationalSpace,
    "cartesian_admittance": CartesianAdmittance,
    "hybrid_force_motion": HybridForceMotion,
    "hand_guiding": HandGuiding,
    "whole_body_tracking": WholeBodyTracking,
}
CALLED = ("predictive",)
"""Controllers of parts above (``core.upper``) that have a memory of their own: ``simulate`` calls them from Python."""


def named(
    name: str,
    robot: Robot,
    gains: Gains | None = None,
    *,
    frequency: Any = None,
    damping: Any = 1.0,
    torque_limits: Any = None,
    **options: Any,
) -> Any:
    """A controller by its name: a ``Controller``, or ``predictive``, which is called from Python.

    Args:
        name: a key of ``CONTROLLERS``, or one of ``CALLED``.
        robot: the model that the controller uses.
        gains: its gains in its own units: accelerations per error for laws by inverse dynamics, torques per error for
            ``gravity_pd``.
        frequency: instead of gains, a natural frequency [rad/s] that means the same for every law, 10 rad/s where
            neither is given: errors of an exact model decay like ë + 2ζω ė + ω² e = 0 (with integral action, a third
            pole at −ω; for ``gravity_pd``, a decoupled arm with the inertias of ``GravityPD.gains_for``; for
            ``cartesian_impedance`` and the virtual body of ``cartesian_admittance``, a tool with its usual inertia).
        damping: ζ, with ``frequency``.
        torque_limits: [N·m or N], one number or (n,); None: the robot's effort limits, False: none.
        options: further arguments of the law, such as ``gravity="online"`` of ``feed_forward``.

    Raises:
        UnknownNameError: there is no such controller.
        ValueError: gains where the law has none, or both gains and a frequency.
    """
    if name in CALLED and gains is None:
        if np.any(np.asarray(damping, dtype=float) != 1.0):
            raise ArgumentError(f"{name}: it is critically damped, so it takes no damping, got {damping!r}")
        chosen = {"frequency": frequency} if frequency is not None else {}
        limits = True if torque_limits is None else torque_limits
        return upper(name)(robot, torque_limits=limits, **chosen, **options)
    if name not in CONTROLLERS:
        if name in CALLED:
            raise ArgumentError(f"{name}: it takes a frequency, not gains")
        raise UnknownNameError(f"controller: no {name!r}; {suggest(name, (*CONTROLLERS, *CALLED))}")
    law: Any = CONTROLLERS[name]
    if gains is not None and frequency is not None:
        raise ArgumentError(f"{name}: give gains or a frequency, not both")
    if not law.feedback:
        if gains is not None or frequency is not None:
            raise ArgumentError(f"{name}: it has no feedback, so it takes no gains and no frequency")
        return law(robot, torque_limits=torque_limits, **options)
    if gains is None:
        gains = law.gains_for(robot, FREQUENCY if frequency is None else frequency, damping)
    return law.from_gains(robot, gains, torque_limits=torque_limits, **options)
