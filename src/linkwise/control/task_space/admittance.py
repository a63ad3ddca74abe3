"""Cartesian admittance: a force moves the target, and an inner law follows it.

A virtual body hangs on a spring and a damper at the target; the wrench that the tool feels acts on it:

    m ν̇ + d ν + ∂V/∂x = w,        x_c = target ⊕ x.

``OperationalSpace`` follows x_c with its velocity and acceleration. The virtual body is integrated with the damper
taken at the end of the step, so it is stable for every d and for natural frequencies up to 2 over the period.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import dense
from linkwise.arguments.numbers import Numbers
from linkwise.control.bounds import or_zero
from linkwise.control.gains import Gains
from linkwise.control.momentum_observer import GAIN
from linkwise.control.task_space import law
from linkwise.control.task_space.felt import WRENCH, FeltWrench
from linkwise.control.task_space.impedance import spring_wrench
from linkwise.control.task_space.law import FrequencyGains
from linkwise.control.task_space.matrices import diagonal, not_heavier
from linkwise.control.task_space.operational_space import OperationalSpace
from linkwise.control.task_space.tool import Target, Tool, pose_and_jacobian, turned, usual_inertia
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, maximum, minimum, sqrt

Rows = list[list[Scalar]]
INERTIA, DAMPING, STIFFNESS = "virtual_inertia", "virtual_damping", "virtual_stiffness"
BODY = 13
"""Scalars of the virtual body: offset (3), turn as a quaternion less 1 (4), twist (6)."""
FASTER = 3.0
"""Natural frequency of the inner law over that of the virtual body."""


class CartesianAdmittance(OperationalSpace):
    """The target of the tool gives way to the wrench on it: m ν̇ + d ν + ∂V/∂x = w, and an inner law follows.

    Against ``CartesianImpedance`` the inertia can be chosen, and friction of the joints is overcome by the inner
    law; but it needs a wrench, and hard contacts need a large virtual inertia and damping: with a wall of the
    stiffness k the tool rings unless d is about 2 √(m k), or the contact itself damps.

    Args:
        robot: the model that the law uses.
        frame: the tool; None: the only leaf.
        stiffness: of the virtual body's spring, one number or six (three [N·m/rad], three [N/m]), in the axes of
            the base; None: that of 10 rad/s.
        damping: [N·m·s/rad and N·s/m], one number or six; None: critical.
        inertia: [kg·m² and kg], one number or six; None: the tool's usual inertia.
        gains: of the inner law, see ``OperationalSpace``; None: critically damped with three times the frequency of the
            virtual body's default, 30 rad/s.
        force: where the wrench comes from: "observer" (errors of the model count as wrenches) or "input", see
            ``FeltWrench``.
        observer_gain: [1/s], one number or (n,).
        delay: control periods from a measurement to the torque that follows from it, for the observer.
        options: further arguments of ``OperationalSpace``.
    """

    units: ClassVar[dict[str, str]] = OperationalSpace.units | {
        INERTIA: "virtual inertia, rotations first [kg*m^2 and kg]",
        DAMPING: "virtual damping, rotations first [N*m*s/rad and N*s/m]",
        STIFFNESS: "virtual stiffness, rotations first [N*m/rad and N/m]",
        WRENCH: "moment and force on the tool in its axes [N*m and N]",
    }

    def __init__(
        self,
        robot: Robot,
        frame: str | None = None,
        stiffness: Any = None,
        damping: Any = None,
        inertia: Any = None,
        *,
        gains: Gains | None = None,
        force: str = "observer",
        observer_gain: Any = 50.0,
        delay: int = 0,
        **options: Any,
    ):
        inner = Gains.from_frequency(FASTER * law.FREQUENCY) if gains is None else gains
        super().__init__(robot, frame, inner, **options)
        check = Numbers()
        m = check.each("inertia", self.usual if inertia is None else inertia, 6, above=0.0)
        k = check.each("stiffness", law.FREQUENCY**2 * m if stiffness is None else stiffness, 6, least=0.0)
        d = check.each("damping", 2.0 * np.sqrt(m * k) if damping is None else damping, 6, least=0.0)
        self.felt = FeltWrench(robot, self.frame, force, observer_gain, delay)
        self.gains |= {INERTIA: m, DAMPING: d, STIFFNESS: k, **self.felt.numbers()}
        self.signals = (WRENCH,) if force == "input" else ()
        self.memory_size = BODY + self.felt.memory_size

    @classmethod
    def from_gains(cls, robot: Robot, gains: Gains, **options: Any) -> CartesianAdmittance:
        """From a frequency and a damping ratio of the virtual body, or K_p and K_d as its stiffness and damping.

        Args:
            robot: the model.
            gains: see above.
            options: further arguments.
        """
        if not isinstance(gains, FrequencyGains):
            return cls(robot, stiffness=gains.kp, damping=gains.kd, **options)
        usual, w = (
            usual_inertia(robot, options.get("frame"), "base"),
            np.sqrt(np.asarray(gains.kp, dtype=float)),
        )
        inner = Gains.from_frequency(FASTER * w)
        return cls(robot, stiffness=gains.kp * usual, damping=gains.kd * usual, gains=inner, **options)

    def options(self) -> tuple[Any, ...]:
        return (*super().options(), self.felt.options())

    def control(self, links, gains, q, qd, reference, memory, period):
        body, rest = memory[:BODY], memory[BODY:]
        wrench, watched = self.felt.felt(links, gains, q, qd, rest, period)
        R, _, _ = pose_and_jacobian(links, q, self.located)
        target = self.target(links, gains, reference)
        moved, following = self._moved(gains, target, turned(R, wrench), body, period)
        tau = self.follow(links, gains, q, qd, reference, moved, self._counted(gains, period))
        return tau, [*following, *self.felt.remembered(watched, self.saturated(tau))]

    def _counted(self, gains, period: Scalar) -> Callable[[Tool], Rows] | None:
        """The tool's inertia for the inner law: without a sensor limited so that the loop stays stable where something
        holds the joints, as brakes do. The observer then sees what the law itself sends as a wrench, and the virtual
        body accelerates with the ratio of the tool's inertia to its own: of that Kh reaches the next sample, so the
        ratio may be 1/(Kh)."""
        if self.felt.observer is None:
            return None
        fastest = gains[GAIN][0]
        for gain in gains[GAIN][1:]:
            fastest = maximum(fastest, gain)
        share = 0.5 * minimum((1.0 + self.felt.delay) * (period * fastest), 1.0)
        return lambda tool: not_heavier(tool.mobility, gains[INERTIA], share)

    def _moved(self, gains, target: Target, wrench, body: Sequence[Scalar], period: Scalar):
        """(the target of the inner law, the next state of the virtual body)."""
        offset, turn, twist = body[:3], [body[3] + 1.0, *body[4:7]], body[7:]
        E = rotation_of(turn)
        R = dense.product(E, target.R)
        p = [a + b for a, b in zip(target.p, offset, strict=True)]
        spring = spring_wrench(diagonal(gains[STIFFNESS]), R, p, target.R, target.p, False)
        new = [
            (m * v + period * (w - s)) / (m + period * d)
            for m, v, w, s, d in zip(gains[INERTIA], twist, wrench, spring, gains[DAMPING], strict=True)
        ]
        rates = [(a - b) / period for a, b in zip(new, twist, strict=True)]
        offset = [a + period * v for a, v in zip(offset, new[3:], strict=True)]
        turn = turned_further(turn, [period * w for w in new[:3]])
        moved = Target(
            dense.product(rotation_of(turn), target.R),
            [a + b for a, b in zip(target.p, offset, strict=True)],
            [a + b for a, b in zip(target.twist, new, strict=True)],
            [a + b for a, b in zip(target.acceleration, rates, strict=True)],
        )
        return moved, [or_zero(x) for x in (*offset, turn[0] - 1.0, *turn[1:], *new)]


def rotation_of(turn: Sequence[Scalar]) -> Rows:
    """The rotation matrix of a unit quaternion (real part first)."""
    w, x, y, z = turn
    return [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]


def turned_further(turn: Sequence[Scalar], step: Sequence[Scalar]) -> list[Scalar]:
    """A unit quaternion after a small turn about the axes of the base [rad], to third order in the turn."""
    w, x, y, z = turn
    a, b, c = (0.5 * s for s in step)
    new = [
        w - a * x - b * y - c * z,
        x + a * w + b * z - c * y,
        y + b * w + c * x - a * z,
        z + c * w + a * y - b * x,
    ]
    size = 1.0 / sqrt(dense.dot(new, new))
    return [size * part for part in new]
