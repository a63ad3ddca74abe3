"""Operational space: the tool follows a motion exactly, the rest of the joints a posture.

O. Khatib, "A unified approach for motion and force control of robot manipulators: the operational space formulation",
1987. The joints get the accelerations

    q̈ = v + M⁻¹JᵀΛ (a − J̇q̇ − J v),        a = ẍ_d − K_d (ẋ − ẋ_d) − K_p e,        τ = M q̈ + c + g,

where v is the acceleration of the posture and Λ = (J M⁻¹ Jᵀ + E)⁻¹. M⁻¹JᵀΛ is the dynamically consistent inverse of
J: the posture does not accelerate the tool. In a singular position the direction that is lost gets the posture's
acceleration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import dense
from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Reference
from linkwise.control.gains import Gains
from linkwise.control.inverse_dynamics import torques_for, with_friction
from linkwise.control.task_space import law
from linkwise.control.task_space.law import TaskSpaceLaw, Values
from linkwise.control.task_space.matrices import Rows
from linkwise.control.task_space.rotation_error import RotationError
from linkwise.control.task_space.tool import Target, Tool, acceleration_without_torques, product
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar

KP, KD = "kp", "kd"


class OperationalSpace(TaskSpaceLaw):
    """τ = M q̈ + c + g with q̈ = v + M⁻¹JᵀΛ (ẍ_d − K_d (ẋ − ẋ_d) − K_p e − J̇q̇ − J v).

    With an exact model, away from singular positions, the tool's error decays like ë + K_d ė + K_p e = 0 in every
    direction, and v = q̈_d − d ė − k e keeps the joint reference in the null space.

    Args:
        robot: the model that the law uses.
        frame: the tool; None: the only leaf.
        gains: K_p [1/s²] and K_d [1/s], one number or six, rotations first, in the axes of the base; None: those of a
            natural frequency of 10 rad/s, critically damped.
        target: pose (4, 4) that does not move (gain ``target_pose``); None: from the joint reference.
        posture: natural frequency [rad/s] with which the null space keeps the joint reference; 0: only damped.
        posture_damping: of motions in the null space [1/s]; None: critical, at least 2.
        singularities: how strongly the null space keeps away from singular positions [rad/s²].
        friction: whether the model's friction is compensated, as ``ComputedTorque`` does it.
        heaviest: see ``TaskSpaceLaw``. Near a singular position joint accelerations per acceleration of the tool
            grow to about half the root of this.
        torque_limits: see ``Controller``.

    Raises:
        ValueError: an argument cannot be right; the message names it.
    """

    units: ClassVar[dict[str, str]] = TaskSpaceLaw.units | {
        KP: "proportional gains, rotations first [1/s^2]",
        KD: "derivative gains, rotations first [1/s]",
    }

    def __init__(
        self,
        robot: Robot,
        frame: str | None = None,
        gains: Gains | None = None,
        *,
        target: Any = None,
        posture: float = law.POSTURE,
        posture_damping: float | None = None,
        singularities: float = 0.0,
        friction: bool = True,
        heaviest: float = 100.0,
        torque_limits: Any = None,
    ):
        given = Gains.from_frequency(law.FREQUENCY) if gains is None else gains
        check, self.friction = Numbers(), flag("friction", friction)
        numbers = {name: check.each(name, getattr(given, name), 6, least=0.0) for name in (KP, KD)}
        super().__init__(
            robot,
            frame,
            numbers,
            target=target,
            posture=posture,
            posture_damping=posture_damping,
            singularities=singularities,
            heaviest=heaviest,
            torque_limits=torque_limits,
        )

    @classmethod
    def from_gains(cls, robot: Robot, gains: Gains, **options: Any) -> OperationalSpace:
        """From gains.

        Args:
            robot: the model.
            gains: K_p and K_d.
            options: further arguments.
        """
        return cls(robot, gains=gains, **options)

    def options(self) -> tuple[Any, ...]:
        return (*super().options(), self.friction)

    def control(self, links, gains, q, qd, reference, memory, period):
        target = self.target(links, gains, reference)
        return self.follow(links, gains, q, qd, reference, target), []

    def follow(
        self,
        links: Mechanism,
        gains: Values,
        q,
        qd,
        reference: Reference,
        target: Target,
        inertia: Callable[[Tool], Rows] | None = None,
    ) -> list[Scalar]:
        """Torques that bring the tool to a target.

        Args:
            links, gains, q, qd, reference: as for ``control``.
            target: of the tool.
            inertia: of the tool, 6×6; None: ``TaskSpaceLaw.inertia``.
        """
        tool = self.tool(links, q, qd)
        wanted = wanted_acceleration(gains, tool, target)
        bias = acceleration_without_torques(links, q, qd, self.located)
        v = self.posture_of(links, gains, q, qd, reference)
        missing = [a - b - c for a, b, c in zip(wanted, bias, product(tool.J, v), strict=True)]
        force = product((inertia or self.inertia)(tool), missing)
        more = [dense.dot(column, force) for column in dense.transposed(tool.mobile)]
        tau = torques_for(links, q, qd, [a + b for a, b in zip(v, more, strict=True)])
        return with_friction(links, tau, q, qd, reference) if self.friction else tau

    def posture_of(self, links: Mechanism, gains: Values, q, qd, reference: Reference) -> list[Scalar]:
        """v: the acceleration that the posture asks for [rad/s² or m/s²], n scalars.

        Args:
            links, gains, q, qd, reference: as for ``control``.
        """
        spring, damper = self.posture_accelerations(links, gains, q, qd, reference)
        return [a + b + c for a, b, c in zip(reference.qdd, spring, damper, strict=True)]


def wanted_acceleration(gains: Values, tool: Tool, target: Target) -> list[Scalar]:
    """a = ẍ_d − K_d (ẋ − ẋ_d) − K_p e of the tool [rad/s², m/s²], in the axes of the base."""
    turn = RotationError.of(dense.product(tool.R, dense.transposed(target.R))).vector()
    e = [*turn, *(a - b for a, b in zip(tool.p, target.p, strict=True))]
    ed = [a - b for a, b in zip(tool.twist, target.twist, strict=True)]
    return [
        a - kd * y - kp * x
        for a, kd, y, kp, x in zip(target.acceleration, gains[KD], ed, gains[KP], e, strict=True)
    ]


def numbers_of(gains: Gains) -> dict[str, np.ndarray]:
    """K_p and K_d by name, six numbers each."""
    check = Numbers()
    return {name: check.each(name, getattr(gains, name), 6, least=0.0) for name in (KP, KD)}
