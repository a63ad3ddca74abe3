"""What task-space laws share: the tool, its target, the posture in the null space, and gains from a frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import coordinates, dense
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Controller, Reference, errors
from linkwise.control.gains import Gains
from linkwise.control.task_space.avoidance import manipulability_gradient
from linkwise.control.task_space.matrices import heavy_inverse
from linkwise.control.task_space.tool import Target, Tool, pose_given, product, target_of, usual_inertia
from linkwise.errors import LinkwiseError
from linkwise.model.mechanism import Mechanism
from linkwise.robot import diagnose
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, clipped

Rows = list[list[Scalar]]
Values = Mapping[str, Sequence[Scalar]]
FREQUENCY = 10.0
"""Natural frequency where no gains are given [rad/s]."""
POSTURE = 5.0
"""Natural frequency of the posture where none is given [rad/s]."""
FADE = 0.1
"""Last part of an energy budget over which what uses it fades out."""
POSE, POSTURE_GAIN, POSTURE_RATE, BUDGET = (
    "target_pose",
    "posture_stiffness",
    "posture_damping",
    "posture_energy",
)
AVOIDANCE = "singularity_avoidance"


@dataclass(frozen=True)
class FrequencyGains(Gains):
    """Gains per unit of inertia that come from a natural frequency and a damping ratio."""

    ratio: float | np.ndarray = 1.0


class TaskSpaceLaw(Controller):
    """A law whose target is the pose of a frame: a fixed ``target``, or where the joint reference brings the frame.

    Args:
        robot: the model that the law uses.
        frame: the tool; None: the only leaf.
        gains: of the law, by name.
        target: pose (4, 4) that does not move; it is the gain ``target_pose`` (12,), so that it can be varied. None:
            the tool's pose, velocity and acceleration follow from the joint reference.
        posture: natural frequency [rad/s] with which the null space keeps the joint reference; 0: it is only damped.
        posture_damping: of motions in the null space [1/s]; None: critical, at least 2.
        singularities: how strongly the null space keeps away from singular positions [rad/s²], see ``avoidance``.
        heaviest: the tool counts as at most this many times its usual inertia: what keeps the inverse of the task
            inertia finite in singular positions. Its relative error in a direction is the inertia there over that one.
        torque_limits: see ``Controller``.
    """

    has_frame = True
    units: ClassVar[dict[str, str]] = {
        POSE: "target pose, first three rows of its matrix [1 and m]",
        POSTURE_GAIN: "stiffness of the posture in the null space [1/s^2]",
        POSTURE_RATE: "damping of the null space [1/s]",
        BUDGET: "energy that the posture may give out [J]",
        AVOIDANCE: "avoidance of singular positions in the null space [rad/s^2]",
    }

    def __init__(
        self,
        robot: Robot,
        frame: str | None,
        gains: Mapping[str, np.ndarray],
        *,
        target: Any = None,
        posture: float = POSTURE,
        posture_damping: float | None = None,
        singularities: float = 0.0,
        heaviest: float = 1e5,
        torque_limits: Any = None,
    ):
        check = Numbers()
        self.frame = robot.default_frame() if frame is None else frame
        self.located = robot.locate(self.frame)
        if self.located[0] < 0:
            raise LinkwiseError(f"frame: {self.frame!r} does not move; name a frame that does")
        diagnose.always_singular(robot)
        posture = check.number("posture", posture, least=0.0)
        rate = 2.0 * max(posture, 1.0) if posture_damping is None else posture_damping
        gains = dict(gains)
        if target is not None:
            gains[POSE] = pose_given(target)
        gains[POSTURE_GAIN] = np.array([posture * posture])
        gains[POSTURE_RATE] = np.array([check.number("posture_damping", rate, least=0.0)])
        avoids = check.number("singularities", singularities, least=0.0)
        if avoids:
            gains[AVOIDANCE] = np.array([avoids])
        self.heaviest = check.number("heaviest", heaviest, least=1.0)
        self.usual = usual_inertia(robot, self.frame, "base")
        self.least = [float(1.0 / (self.heaviest * x)) for x in self.usual]
        super().__init__(robot, gains, torque_limits)

    @classmethod
    def gains_for(cls, robot: Robot, frequency, damping=1.0) -> Gains:
        """Per unit of inertia: ω² and 2ζω.

        Args:
            robot: the robot.
            frequency: ω [rad/s], one number or six, rotations first.
            damping: ζ, one number or six.
        """
        plain = Gains.from_frequency(frequency, damping)
        for name, value in (("frequency", frequency), ("damping", damping)):
            Numbers().each(name, value, 6)
        return FrequencyGains(plain.kp, plain.kd, 0.0, ratio=damping)

    def options(self) -> tuple[Any, ...]:
        return (self.frame, self.least, sorted((name, len(values)) for name, values in self.gains.items()))

    def tool(self, links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Tool:
        """The tool in a state.

        Args:
            links: those of the model.
            q: positions, nq scalars.
            qd: velocities, n scalars.
        """
        return Tool.at(links, q, qd, self.located)

    def target(self, links: Mechanism, gains: Values, reference: Reference) -> Target:
        """Where the tool should be.

        Args:
            links: those of the model.
            gains: with ``target_pose`` where the target is a pose.
            reference: of the joints.
        """
        return target_of(links, reference, self.located, gains.get(POSE))

    def inertia(self, tool: Tool) -> Rows:
        """(J M⁻¹ Jᵀ + E)⁻¹, 6×6: the task inertia, limited to ``heaviest`` times the usual one."""
        return heavy_inverse(tool.mobility, self.least)

    def posture_accelerations(
        self, links: Mechanism, gains: Values, q: Sequence[Scalar], qd: Sequence[Scalar], reference: Reference
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(spring, damper) of the posture [rad/s² or m/s²], n scalars each, before they are projected.

        Args:
            links, gains, q, qd, reference: as for ``control``.
        """
        e, ed = errors(links, q, qd, reference)
        spring = [-(gains[POSTURE_GAIN][0] * x) for x in e]
        if AVOIDANCE in gains:
            away = manipulability_gradient(links, q, self.located)
            spring = [a + gains[AVOIDANCE][0] * b for a, b in zip(spring, away, strict=True)]
        return spring, [-(gains[POSTURE_RATE][0] * x) for x in ed]


def null_torques(tool: Tool, inertia: Rows, accelerations: Sequence[Scalar]) -> list[Scalar]:
    """(M − JᵀΛJ) v [N·m or N]: torques that move the joints towards v and the tool not at all.

    The matrix is symmetric without negative eigenvalues, for the limited Λ too.
    """
    wanted = product(tool.M, accelerations)
    force = product(inertia, product(tool.J, accelerations))
    return [a - b for a, b in zip(wanted, tool.torques(force), strict=True)]


def fading(used: Scalar, budget: Scalar) -> Scalar:
    """1 as long as there is energy left [J], 0 from where there is none; linear over the last part."""
    return clipped((budget - used) / (FADE * budget + 1e-12), 0.0, 1.0)


def energy_used(used: Scalar, given: Scalar, budget: Scalar) -> Scalar:
    """What was used of a budget [J] after ``given`` more; what is taken back beyond zero is lost."""
    return clipped(used + given, 0.0, budget)


def power(torques: Sequence[Scalar], qd: Sequence[Scalar]) -> Scalar:
    """τᵀ q̇ [W]."""
    return dense.dot(torques, qd)


def passive_model_torques(
    links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar], reference: Reference
) -> list[Scalar]:
    """M q̈_d + C(q, q̇) q̇_d + g: what a motion along the reference needs, with the matrix C of Christoffel symbols.

    The closed loop is M ë + C ė = what a law adds, whose energy cannot grow by itself: Ṁ − 2C is skew. C(q, a) b is a
    quarter of c(a + b) − c(a − b), as the velocity torques c are quadratic.
    """
    resting = all(isinstance(x, float) and x == 0.0 for x in [*reference.qd, *reference.qdd])
    if resting:
        return coordinates.gravity_torques(links, q)
    tau = coordinates.inverse_dynamics(links, q, [0.0] * len(qd), reference.qdd, friction=False)
    sums = [a + b for a, b in zip(qd, reference.qd, strict=True)]
    differences = [a - b for a, b in zip(qd, reference.qd, strict=True)]
    more, less = (coordinates.velocity_torques(links, q, rates) for rates in (sums, differences))
    return [t + 0.25 * (a - b) for t, a, b in zip(tau, more, less, strict=True)]
