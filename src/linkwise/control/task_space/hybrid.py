"""Force in some directions of a task frame, motion in the others.

M. Raibert and J. Craig, 1981, in the operational space of O. Khatib, 1987. With the selection S (1: force, 0:
motion) in the axes A of the task frame, P_f = A S Aᵀ and P_m = 1 − P_f:

    τ = M v + c + g + Jᵀ (Λ (P_m a − J̇q̇ − J v) + P_f f),
    f = f_d + k (f_d − f_e) + k_i ∫ (f_d − f_e) dt − d ẋ,

where f_e is the force that the tool exerts: the wrench that it feels, with the sign changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import dense
from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.control.bounds import or_zero
from linkwise.control.gains import Gains
from linkwise.control.inverse_dynamics import torques_for, with_friction
from linkwise.control.task_space.felt import WRENCH, FeltWrench
from linkwise.control.task_space.operational_space import OperationalSpace, wanted_acceleration
from linkwise.control.task_space.tool import Tool, acceleration_without_torques, product, turned
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, clipped

SELECTION, FORCE, FORCE_GAIN, RATE, FORCE_DAMPING, AXES = (
    "selection",
    "force_target",
    "force_gain",
    "force_rate",
    "force_damping",
    "task_axes",
)
SETTLING = 40.0
"""Damping in directions of force where none is given, per usual inertia [1/s]."""


class HybridForceMotion(OperationalSpace):
    """Force along the selected directions of a task frame, motion along the others.

    The integral of a direction is limited to the force target, so a tool that touches nothing approaches with at most
    (2 + k) f_d / d and does not speed up. In contact with an environment of the stiffness k_e, with the time τ from
    force to torque and the inertia m, it is stable for d > k_e k τ + k_i m: a proportional gain needs a soft
    contact.

    Args:
        robot: the model that the law uses.
        frame: the tool; None: the only leaf.
        selection: six numbers, rotations first: 1 for directions of force, 0 for motion.
        force_target: (moment, force) that the tool exerts along those directions [N·m, N], six numbers in task axes.
        task_axes: rotation (3, 3) of the task frame in the axes of the base; None: those of the base.
        gains: of the motion, see ``OperationalSpace``.
        force_gain: k, one number or six.
        force_rate: k_i [1/s], one number or six.
        force_damping: d [N·m·s/rad and N·s/m], one number or six; None: 40/s times the usual inertia.
        force: where the wrench comes from: "observer" or "input", see ``FeltWrench``.
        observer_gain: [1/s], one number or (n,).
        delay: control periods from a measurement to the torque that follows from it, for the observer.
        run_time_selection: whether selection and axes are settings, for tasks that switch from motion to force; else
            they are constants of kernels, and what is not selected is not computed.
        options: further arguments of ``OperationalSpace``.
    """

    units: ClassVar[dict[str, str]] = OperationalSpace.units | {
        SELECTION: "1 for directions of force, 0 for motion [1]",
        FORCE: "moment and force that the tool exerts, in task axes [N*m and N]",
        FORCE_GAIN: "proportional gain of force [1]",
        RATE: "integral gain of force [1/s]",
        FORCE_DAMPING: "damping in directions of force [N*m*s/rad and N*s/m]",
        AXES: "rotation of the task frame, row by row [1]",
        WRENCH: "moment and force on the tool in its axes [N*m and N]",
    }

    def __init__(
        self,
        robot: Robot,
        frame: str | None = None,
        selection: Any = 0.0,
        force_target: Any = 0.0,
        *,
        task_axes: Any = None,
        gains: Gains | None = None,
        force_gain: Any = 0.0,
        force_rate: Any = 5.0,
        force_damping: Any = None,
        force: str = "observer",
        observer_gain: Any = 50.0,
        delay: int = 0,
        run_time_selection: bool = False,
        **options: Any,
    ):
        super().__init__(robot, frame, gains, **options)
        self.structure = () if flag("run_time_selection", run_time_selection) else (SELECTION, AXES)
        check = Numbers()
        chosen = check.each(SELECTION, selection, 6, least=0.0)
        if (chosen > 1.0).any():
            raise check.error(f"selection: expected numbers from 0 to 1, got {selection!r}")
        axes = check.array(AXES, np.eye(3) if task_axes is None else task_axes)
        if axes.shape != (3, 3) or np.abs(axes @ axes.T - np.eye(3)).max() > 1e-6:
            raise check.error("task_axes: expected a rotation, 3×3")
        damping = SETTLING * self.usual if force_damping is None else force_damping
        self.felt = FeltWrench(robot, self.frame, force, observer_gain, delay)
        self.gains |= {
            SELECTION: chosen,
            FORCE: check.each(FORCE, force_target, 6),
            FORCE_GAIN: check.each(FORCE_GAIN, force_gain, 6, least=0.0),
            RATE: check.each(RATE, force_rate, 6, least=0.0),
            FORCE_DAMPING: check.each(FORCE_DAMPING, damping, 6, least=0.0),
            AXES: axes.ravel(),
            **self.felt.numbers(),
        }
        self.signals = (WRENCH,) if force == "input" else ()
        self.memory_size = 6 + self.felt.memory_size

    def options(self) -> tuple[Any, ...]:
        return (*super().options(), self.felt.options())

    def control(self, links, gains, q, qd, reference, memory, period):
        sums, rest = memory[:6], memory[6:]
        wrench, watched = self.felt.felt(links, gains, q, qd, rest, period)
        tool, target = self.tool(links, q, qd), self.target(links, gains, reference)
        A = [list(gains[AXES][3 * i : 3 * i + 3]) for i in range(3)]
        back = dense.transposed(A)
        exerted = [-x for x in turned(back, turned(tool.R, wrench))]
        force, following = self._force(gains, exerted, turned(back, tool.twist), sums, period)
        a = turned(back, wanted_acceleration(gains, tool, target))
        motion = turned(A, [(1.0 - s) * x for s, x in zip(gains[SELECTION], a, strict=True)])
        tau = self._torques(links, gains, q, qd, reference, tool, motion, turned(A, force))
        return tau, [*following, *self.felt.remembered(watched, self.saturated(tau))]

    def _force(self, gains, exerted, twist, sums: Sequence[Scalar], period: Scalar):
        """(P_f f in task axes, the next integrals)."""
        force: list[Scalar] = []
        following: list[Scalar] = []
        for k, s in enumerate(gains[SELECTION]):
            if SELECTION in self.structure and s == 0.0:  # motion for ever: no integral
                force.append(0.0)
                following.append(0.0)
                continue
            wanted = gains[FORCE][k]
            error = wanted - exerted[k]
            most = abs(wanted)
            total = clipped(sums[k] + period * (gains[RATE][k] * s * error), -most, most)
            pushed = wanted + gains[FORCE_GAIN][k] * error + total - gains[FORCE_DAMPING][k] * twist[k]
            force.append(s * pushed)
            following.append(or_zero(total))
        return force, following

    def _torques(self, links, gains, q, qd, reference, tool: Tool, motion, force) -> list[Scalar]:
        bias = acceleration_without_torques(links, q, qd, self.located)
        v = self.posture_of(links, gains, q, qd, reference)
        missing = [a - b - c for a, b, c in zip(motion, bias, product(tool.J, v), strict=True)]
        wrench = [a + b for a, b in zip(product(self.inertia(tool), missing), force, strict=True)]
        tau = torques_for(links, q, qd, v)
        tau = [a + b for a, b in zip(tau, tool.torques(wrench), strict=True)]
        return with_friction(links, tau, q, qd, reference) if self.friction else tau
