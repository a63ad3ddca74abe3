"""Cartesian impedance: the tool is a mass on a spring and a damper, whatever the arm does.

N. Hogan, "Impedance control", 1985; A. Albu-Schäffer, C. Ott, U. Frese, G. Hirzinger, "Cartesian impedance control of
redundant robots", 2003. The inertia stays that of the arm (no force sensor is needed), so with the target at rest

    Λ ẍ + (μ + D) ẋ + ∂V/∂x = w_ext,        τ = g + Jᵀ (−∂V/∂x − D ẋ) + (M − JᵀΛJ) (posture).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import coordinates, dense
from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Reference, errors
from linkwise.control.gains import Gains
from linkwise.control.inverse_dynamics import with_friction
from linkwise.control.task_space import law
from linkwise.control.task_space.law import AVOIDANCE, BUDGET, POSTURE_GAIN, FrequencyGains, TaskSpaceLaw
from linkwise.control.task_space.matrices import critical_damping, matrix_given, rows_of, times
from linkwise.control.task_space.posture_account import PostureAccount
from linkwise.control.task_space.rotation_error import RotationError
from linkwise.control.task_space.tool import Target, Tool, null_inertia, spring_inertia, turned
from linkwise.errors import ArgumentError
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar

Rows = list[list[Scalar]]
AXES = ("tool", "base")
CORIOLIS = ("passive", "cancelled")
POSTURE_REACH = 0.1
"""Distance of all joints from the posture whose energy may be given out [rad or m]."""
STIFFNESS, DAMPING, RATIO = "stiffness", "damping", "damping_ratio"


class CartesianImpedance(TaskSpaceLaw):
    """τ = M q̈_d + C q̇_d + g − Jᵀ (∂V/∂x + D (ẋ − ẋ_d)) + (M − JᵀΛJ)(posture).

    It is defined in every position: nothing but the posture needs the task inertia Λ, which is limited (``heaviest``).
    With a target at rest, ``coriolis="passive"`` and an exact model the energy ½ q̇ᵀMq̇ + V grows by no more than
    the work of those who push, plus ``posture_energy`` and twice what the spring of the posture has stored at the
    start: in the null space it is no potential (``posture_account``).

    Args:
        robot: the model that the law uses.
        frame: the tool; None: the only leaf.
        stiffness: K: one number, six (three [N·m/rad], then three [N/m]) or a symmetric 6×6 matrix; None: that of a
            natural frequency of 10 rad/s with the inertia that the tool usually shows, see ``spring_inertia``.
        damping: D: one number, six (three [N·m·s/rad], then three [N·s/m]) or a symmetric 6×6 matrix; None: critical
            damping of K and the task inertia in every position (``damping_ratio`` times).
        damping_ratio: ζ of every mode, with ``damping=None``.
        axes: of K and D: "tool", those of the tool (K at its target, D where it is), or "base".
        target: pose (4, 4) that does not move (gain ``target_pose``); None: from the joint reference.
        posture: natural frequency [rad/s] with which the null space keeps the joint reference; 0: only damped.
        posture_damping: of motions in the null space [1/s]; None: critical, at least 2.
        posture_energy: that the spring of the posture may give out beyond what it has stored [J], until the reference
            moves; None: that of the null space with every joint 0.1 rad or 0.1 m away.
        singularities: how strongly the null space keeps away from singular positions [rad/s²].
        coriolis: "passive", or "cancelled": all velocity torques are compensated, the closed loop is Λ ẍ + D ẋ + K
            x = w without μ, and passivity is lost.
        friction: whether the model's friction is compensated as ``ComputedTorque`` does it.
        heaviest: see ``TaskSpaceLaw``.
        torque_limits: see ``Controller``.

    Raises:
        ValueError: an argument cannot be right; the message names it.
    """

    units: ClassVar[dict[str, str]] = TaskSpaceLaw.units | {
        STIFFNESS: "stiffness, rotations first [N*m/rad and N/m]",
        DAMPING: "damping, rotations first [N*m*s/rad and N*s/m]",
        RATIO: "damping ratio [1]",
    }

    def __init__(
        self,
        robot: Robot,
        frame: str | None = None,
        stiffness: Any = None,
        damping: Any = None,
        *,
        damping_ratio: float = 1.0,
        axes: str = "tool",
        target: Any = None,
        posture: float = law.POSTURE,
        posture_damping: float | None = None,
        posture_energy: float | None = None,
        singularities: float = 0.0,
        coriolis: str = "passive",
        friction: bool = False,
        heaviest: float = 1e5,
        torque_limits: Any = None,
    ):
        check = Numbers()
        for name, value, known in (("axes", axes, AXES), ("coriolis", coriolis, CORIOLIS)):
            if value not in known:
                raise check.error(f"{name}: expected one of {', '.join(known)}, got {value!r}")
        self.axes, self.coriolis, self.friction = axes, coriolis, flag("friction", friction)
        if stiffness is None:
            stiffness = law.FREQUENCY**2 * spring_inertia(robot, frame, axes)
        gains = {STIFFNESS: matrix_given(STIFFNESS, stiffness)}
        if damping is None:
            gains[RATIO] = np.array([check.number(RATIO, damping_ratio, least=0.0)])
        else:
            gains[DAMPING] = matrix_given(DAMPING, damping)
        has_spring = check.number("posture", posture, least=0.0) > 0.0 or singularities > 0.0
        if has_spring:
            if posture_energy is None:
                stored = 0.5 * (POSTURE_REACH * posture) ** 2 * null_inertia(robot, frame)
                posture_energy = float(f"{stored:.2g}") if np.isfinite(stored) and stored > 0.0 else 1.0
            gains[BUDGET] = np.array([check.number(BUDGET, posture_energy, least=0.0)])
        self.memory_size = 0 if not has_spring else 1 if singularities > 0.0 else PostureAccount.size(robot)
        super().__init__(
            robot,
            frame,
            gains,
            target=target,
            posture=posture,
            posture_damping=posture_damping,
            singularities=singularities,
            heaviest=heaviest,
            torque_limits=torque_limits,
        )

    @classmethod
    def from_gains(cls, robot: Robot, gains: Gains, **options: Any) -> CartesianImpedance:
        """From K_p and K_d as stiffness and damping, or from a frequency: ω² times the usual inertia, and ζ.

        Args:
            robot: the model.
            gains: see above.
            options: further arguments.

        Raises:
            ArgumentError: damping ratios differ from axis to axis.
        """
        if isinstance(gains, FrequencyGains):
            kp = np.asarray(gains.kp) * spring_inertia(
                robot, options.get("frame"), options.get("axes", "tool")
            )
            ratio = np.ravel(gains.ratio)
            if (ratio != ratio[0]).any():  # a mode is a mixture of axes
                raise ArgumentError(
                    "damping: modes of an impedance have one damping ratio, not one for each axis; "
                    f"got {ratio.tolist()}"
                )
            return cls(robot, stiffness=kp, damping_ratio=float(ratio[0]), **options)
        return cls(robot, stiffness=gains.kp, damping=gains.kd, **options)

    def options(self) -> tuple[Any, ...]:
        return (*super().options(), self.axes, self.coriolis, self.friction)

    def control(self, links, gains, q, qd, reference, memory, period):
        tool, target = self.tool(links, q, qd), self.target(links, gains, reference)
        wrench = self.wrench(gains, tool, target)
        if self.coriolis == "passive":
            tau = law.passive_model_torques(links, q, qd, reference)
        else:
            tau = coordinates.inverse_dynamics(links, q, qd, reference.qdd, friction=False)
        tau = [a + b for a, b in zip(tau, tool.torques(wrench), strict=True)]
        more, following = self._posture(links, gains, q, qd, reference, memory, period, tool)
        tau = [a + b for a, b in zip(tau, more, strict=True)]
        if self.friction:
            tau = with_friction(links, tau, q, qd, reference)
        return tau, following

    def wrench(self, gains: law.Values, tool: Tool, target: Target) -> list[Scalar]:
        """−∂V/∂x − D (ẋ − ẋ_d): the (moment, force) of spring and damper on the tool [N·m, N], in the axes of the base.

        Args:
            gains: values of the gains by name.
            tool: in its state.
            target: of the tool.
        """
        K, in_tool = rows_of(gains[STIFFNESS]), self.axes == "tool"
        spring = spring_wrench(K, tool.R, tool.p, target.R, target.p, in_tool)
        speed = [a - b for a, b in zip(tool.twist, target.twist, strict=True)]
        if in_tool:
            # the damper turns with the tool: joints near it turn about axes that are fixed there
            back = dense.transposed(tool.R)
            damper = turned(
                tool.R, times(self._damping(gains, K, in_axes(back, tool.mobility)), turned(back, speed))
            )
            spring = turned(target.R, spring)
        else:
            damper = times(self._damping(gains, K, tool.mobility), speed)
        return [-a - b for a, b in zip(spring, damper, strict=True)]

    def _damping(self, gains: law.Values, K: Rows, mobility: Rows) -> Rows:
        """D: the one that is given, or critical damping."""
        return rows_of(gains[DAMPING]) if DAMPING in gains else critical_damping(K, mobility, gains[RATIO][0])

    def _posture(self, links, gains, q, qd, reference, memory, period, tool: Tool):
        """(torques in the null space, the next memory): what the spring gives out is counted, and limited."""
        spring, damper = self.posture_accelerations(links, gains, q, qd, reference)
        inertia = self.inertia(tool)
        if not self.memory_size:
            return law.null_torques(tool, inertia, damper), []
        budget = gains[BUDGET][0]
        if AVOIDANCE in gains:
            share = law.fading(memory[0], budget)
            both = [share * a + b for a, b in zip(spring, damper, strict=True)]
            tau = law.null_torques(tool, inertia, both)
            return tau, [law.energy_used(memory[0], period * law.power(tau, qd), budget)]
        pull, slow = (law.null_torques(tool, inertia, each) for each in (spring, damper))
        e, _ = errors(links, q, qd, reference)
        account = PostureAccount.of(memory, len(q), len(qd))
        e_last, _ = errors(links, q, qd, Reference(account.reference, reference.qd, reference.qdd))
        spring_last = [-(gains[POSTURE_GAIN][0] * x) for x in e_last]
        used = account.used_now(e_last, law.null_torques(tool, inertia, spring_last), e, pull, budget)
        share = law.fading(used, budget)
        tau = [share * a + b for a, b in zip(pull, slow, strict=True)]
        return tau, [used, 1.0, *reference.q, *e, *pull]


def spring_wrench(K: Rows, R: Rows, p: Sequence[Scalar], R_d: Rows, p_d: Sequence[Scalar], in_tool: bool):
    """∂V/∂x of a spring K between two poses, in the axes of K: those of the target, or of the base.

    Args:
        K: 6×6, rotations first.
        R, p: rotation and position of the tool.
        R_d, p_d: of its target.
        in_tool: whether K is in the axes of the target.
    """
    back = dense.transposed(R_d)
    away = [a - b for a, b in zip(p, p_d, strict=True)]
    if in_tool:
        E, x = dense.product(back, R), [dense.dot(row, away) for row in back]
    else:
        E, x = dense.product(R, back), away
    error = RotationError.of(E)
    moment = error.moment([row[:3] for row in K[:3]])
    force = times([row[3:] for row in K[3:]], x)
    between = [row[3:] for row in K[:3]]
    if not all(isinstance(entry, float) and entry == 0.0 for row in between for entry in row):
        moment = [a + b for a, b in zip(moment, error.coupling(times(between, x)), strict=True)]
        force = [a + b for a, b in zip(force, times(dense.transposed(between), error.sine), strict=True)]
    return [*moment, *force]


def in_axes(back: Rows, G: Rows) -> Rows:
    """A symmetric 6×6 matrix of the base's axes in others: each 3×3 block B becomes ``back`` B ``back``ᵀ."""
    blocks = [
        [
            dense.product(
                dense.product(back, [row[3 * j : 3 * j + 3] for row in G[3 * i : 3 * i + 3]]),
                dense.transposed(back),
            )
            for j in range(2)
        ]
        for i in range(2)
    ]
    found = [[*blocks[i][0][k], *blocks[i][1][k]] for i in range(2) for k in range(3)]
    for i in range(6):
        for j in range(i):
            found[i][j] = found[j][i]
    return found
