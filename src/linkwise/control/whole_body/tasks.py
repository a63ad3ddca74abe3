"""What a whole-body controller is asked for: rows J q̈ = wanted − J̇ q̇ for one state, over scalars.

A task has a weight, gains k_p and k_d, which are inputs of the compiled controller, and a level. Its error decays like
ë + k_d ė + k_p e = 0 where it is met. Tasks of one level are weighed against each other; a level is kept before the
next one counts at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.errors import LinkwiseError, ModelError
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, atan2, sqrt, where


class TaskError(LinkwiseError, ValueError):
    """A task or a limit that makes no sense."""


@dataclass(frozen=True)
class State:
    """What tasks are computed from: arrays of symbols or numbers."""

    robot: Robot
    q: np.ndarray
    qd: np.ndarray


@dataclass(frozen=True)
class Target:
    """Values and rates that a task aims at."""

    value: Any
    rate: Any
    acceleration: Any


@dataclass(frozen=True)
class Task:
    """A task.

    Args:
        weight: of the squared errors of acceleration, against other tasks of its level.
        frequency: natural frequency ω of its error [rad/s]: k_p = ω², k_d = 2ω.
        level: 1, 2, …: tasks of a level are met as well as those of the levels before allow.
        name: of the task in results; by default what it is about.
    """

    weight: float = field(default=1.0, kw_only=True)
    frequency: float = field(default=10.0, kw_only=True)
    level: int = field(default=1, kw_only=True)
    name: str = field(default="", kw_only=True)
    kind: ClassVar[str] = ""
    posture: ClassVar[bool] = False
    """Whether its rows are those of the motors, in their order: then no Jacobian is needed."""

    def __post_init__(self):
        for what in ("weight", "frequency"):
            value = getattr(self, what)
            if not np.isfinite(value) or value < 0.0 or (what == "weight" and value == 0.0):
                raise TaskError(f"{self.label}: {what}: expected a positive number, got {value!r}")
        Numbers(TaskError).whole(f"{self.label}: level", self.level, 1)

    @property
    def label(self) -> str:
        return self.name or self.kind

    @property
    def gains(self) -> tuple[float, float, float]:
        """(weight, k_p, k_d), the defaults of the controller's input ``gains``."""
        return self.weight, self.frequency**2, 2.0 * self.frequency

    def size(self, robot: Robot) -> int:
        """Number of rows."""
        return 3

    def target_sizes(self, robot: Robot) -> tuple[int, int, int]:
        """Numbers of the target: value, rate, acceleration."""
        n = self.size(robot)
        return n, n, n

    def reference(self, state: State, qdd: Any) -> Target:
        """What the task would aim at if the robot moved like the state, such as that of a trajectory of joints.

        Args:
            state: positions and velocities.
            qdd: accelerations, n scalars.
        """
        raise NotImplementedError

    def rows(self, state: State, target: Target, kp: Scalar, kd: Scalar) -> tuple[Any, list[Any]]:
        """(J, what J q̈ should be), the Jacobian as an array (rows, n).

        Args:
            state: positions and velocities.
            target: what is aimed at.
            kp: gain of the error [1/s²].
            kd: gain of its rate [1/s].
        """
        raise NotImplementedError


def _wanted(accelerations: Any, errors: Any, rates: Any, bias: Any, kp: Scalar, kd: Scalar) -> list[Any]:
    """a_d − k_p e − k_d ė − J̇ q̇, with e = value − target."""
    return [a - kp * e - kd * r - b for a, e, r, b in zip(accelerations, errors, rates, bias, strict=True)]


@dataclass(frozen=True)
class PointTask(Task):
    """The origin of a frame follows a point of the base [m].

    Args:
        frame: a link or a named frame.
    """

    frame: str
    kind: ClassVar[str] = "point"

    @property
    def label(self) -> str:
        return self.name or self.frame

    def reference(self, state, qdd):
        r, J = state.robot, state.robot.jacobian(state.q, self.frame)[3:]
        bias = r.jacobian_rate(state.q, state.qd, self.frame)[3:]
        return Target(r.pose(state.q, self.frame)[:3, 3], J @ state.qd, J @ qdd + bias)

    def rows(self, state, target, kp, kd):
        r = state.robot
        J = r.jacobian(state.q, self.frame)[3:]
        e = r.pose(state.q, self.frame)[:3, 3] - vector(target.value)
        rate = J @ state.qd - vector(target.rate)
        bias = r.jacobian_rate(state.q, state.qd, self.frame)[3:]
        return J, _wanted(target.acceleration, e, rate, bias, kp, kd)


@dataclass(frozen=True)
class PoseTask(Task):
    """A frame follows a pose of the base: turns first, then the origin.

    The target is a position [m] and a quaternion (x, y, z, w); rates and accelerations are (ω, v) and (ω̇, v̇) in
    base axes. The error of orientation is the rotation vector of R R_dᵀ, whose length is the angle up to 180°.

    Args:
        frame: a link or a named frame.
        parts: "both" or "turn" (the first three) of the six rows.
    """

    frame: str
    parts: str = "both"
    kind: ClassVar[str] = "pose"

    def __post_init__(self):
        super().__post_init__()
        if self.parts not in ("both", "turn"):
            raise TaskError(
                f"{self.label}: parts: expected 'both' or 'turn', got {self.parts!r}; PointTask takes the origin"
            )

    @property
    def label(self) -> str:
        return self.name or self.frame

    def size(self, robot):
        return 6 if self.parts == "both" else 3

    def target_sizes(self, robot):
        return (7, 6, 6) if self.parts == "both" else (4, 3, 3)

    def reference(self, state, qdd):
        r, count = state.robot, self.size(state.robot)
        T = r.pose(state.q, self.frame)
        J = r.jacobian(state.q, self.frame)[:count]
        bias = r.jacobian_rate(state.q, state.qd, self.frame)[:count]
        quaternion = quaternion_of(T[:3, :3])
        value = [*T[:3, 3], *quaternion] if count == 6 else quaternion
        return Target(value, J @ state.qd, J @ qdd + bias)

    def rows(self, state, target, kp, kd):
        r, count = state.robot, self.size(state.robot)
        T = r.pose(state.q, self.frame)
        J = r.jacobian(state.q, self.frame)[:count]
        value = list(target.value)
        e = turn_error(T[:3, :3], value[-4:])
        if count == 6:
            e = [*e, *(a - b for a, b in zip(T[:3, 3], value[:3], strict=True))]
        rate = J @ state.qd - vector(target.rate)
        bias = r.jacobian_rate(state.q, state.qd, self.frame)[:count]
        return J, _wanted(target.acceleration, e, rate, bias, kp, kd)


@dataclass(frozen=True)
class CenterOfMassTask(Task):
    """The centre of mass of the robot follows a point of the base [m]."""

    kind: ClassVar[str] = "center of mass"

    def reference(self, state, qdd):
        r, J = state.robot, state.robot.com_jacobian(state.q)
        return Target(r.center_of_mass(state.q), J @ state.qd, J @ qdd + _com_bias(state))

    def rows(self, state, target, kp, kd):
        r = state.robot
        J = r.com_jacobian(state.q)
        e = r.center_of_mass(state.q) - vector(target.value)
        rate = J @ state.qd - vector(target.rate)
        return J, _wanted(target.acceleration, e, rate, _com_bias(state), kp, kd)


def _com_bias(state: State) -> Any:
    mass = sum(body.mass for body in state.robot.bodies())
    return state.robot.centroidal_bias(state.q, state.qd)[3:] / mass


@dataclass(frozen=True)
class AngularMomentumTask(Task):
    """The angular momentum about the centre of mass [kg·m²/s] follows a value; only k_p is used: ḣ + k_p h = …"""

    frequency: float = field(default=3.0, kw_only=True)
    kind: ClassVar[str] = "angular momentum"

    @property
    def gains(self):
        return self.weight, self.frequency, 0.0

    def target_sizes(self, robot):
        return 3, 3, 0

    def reference(self, state, qdd):
        r = state.robot
        A = r.centroidal_matrix(state.q)[:3]
        bias = r.centroidal_bias(state.q, state.qd)[:3]
        return Target(A @ state.qd, A @ qdd + bias, ())

    def rows(self, state, target, kp, kd):
        r = state.robot
        A = r.centroidal_matrix(state.q)[:3]
        bias = r.centroidal_bias(state.q, state.qd)[:3]
        errors = zip(A @ state.qd, target.value, target.rate, bias, strict=True)
        return A, [rate - kp * (h - wanted) - b for h, wanted, rate, b in errors]


@dataclass(frozen=True)
class PostureTask(Task):
    """The joints with motors follow positions, velocities and accelerations of joints."""

    weight: float = field(default=0.01, kw_only=True)
    kind: ClassVar[str] = "posture"
    posture: ClassVar[bool] = True

    def size(self, robot):
        return len(motors_of(robot))

    def target_sizes(self, robot):
        return robot.nq, robot.dof, robot.dof

    def reference(self, state, qdd):
        return Target(state.q, state.qd, qdd)

    def rows(self, state, target, kp, kd):
        e = [-x for x in state.robot.difference(state.q, vector(target.value))]
        rate = state.qd - vector(target.rate)
        wanted = _wanted(target.acceleration, e, rate, [0.0] * len(e), kp, kd)
        return None, [wanted[k] for k in motors_of(state.robot)]


@dataclass(frozen=True)
class ForceTask(Task):
    """The forces of a support are near given ones [N], (tangent, tangent, normal) for each of its points; of a
    support with three or more points its wrench (moment, force) at the frame's origin in its axes [N·m, N]. How two
    points of a support press against each other along the line between them is not counted.

    Args:
        contact: name of one of the supports; None: all of them, which are alike then.
    """

    contact: str | None = None
    weight: float = field(default=1e-5, kw_only=True)
    kind: ClassVar[str] = "force"

    @property
    def label(self) -> str:
        return self.name or (f"force of {self.contact}" if self.contact else "forces")


def motors_of(robot: Robot) -> list[int]:
    """Velocity coordinates with a motor: not those of floating and of passive joints."""
    joints = robot.coordinate_joints
    names = [joint for joint in joints for _ in range(joint.dof)]
    return [
        k for k, joint in enumerate(names) if joint.type != "floating" and joint.name not in robot.passive
    ]


def checked_tasks(robot: Robot, tasks: Sequence[Task]) -> list[Task]:
    """The tasks with names that differ.

    Raises:
        TaskError: there are none, or something else than tasks.
    """
    named: dict[str, Task] = {}
    for task in tasks:
        if not isinstance(task, Task):
            raise TaskError(f"tasks: expected tasks such as PoseTask('tool'), got {task!r}")
        if isinstance(task, (PoseTask, PointTask)):
            robot.locate(task.frame)
        if isinstance(task, (CenterOfMassTask, AngularMomentumTask)) and not robot.dof:
            raise ModelError(f"{robot.name}: no joint moves")
        label, number = task.label, 2
        while label in named:
            label, number = f"{task.label} {number}", number + 1
        named[label] = replace(task, name=label)
    if not named:
        raise TaskError("tasks: expected at least one")
    return list(named.values())


def vector(values: Sequence[Any]) -> np.ndarray:
    """Numbers or symbols as an array that methods of robots take."""
    return np.array(values, float if all(isinstance(x, (int, float)) for x in values) else object)


# -- orientations -----------------------------------------------------------------------------------------------------


def quaternion_of(R: Any) -> list[Any]:
    """(x, y, z, w) of a rotation matrix of any scalars: of four formulas the one with the largest square."""
    squares = [
        1.0 + R[0, 0] - R[1, 1] - R[2, 2],
        1.0 - R[0, 0] + R[1, 1] - R[2, 2],
        1.0 - R[0, 0] - R[1, 1] + R[2, 2],
        1.0 + R[0, 0] + R[1, 1] + R[2, 2],
    ]
    ab, ac, bc = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    a, b, c = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    rows = [[squares[0], ab, ac, a], [ab, squares[1], bc, b], [ac, bc, squares[2], c], [a, b, c, squares[3]]]
    best, most = rows[3], squares[3]
    for row, square in zip(rows[:3], squares[:3], strict=True):
        larger = square > most
        best = [where(larger, x, y) for x, y in zip(row, best, strict=True)]
        most = where(larger, square, most)
    half = 0.5 / sqrt(most)
    return [half * x for x in best]


def turn_error(R: Any, quaternion: Sequence[Any]) -> list[Any]:
    """The rotation vector of R R_dᵀ [rad], up to π long; R_d is given by a quaternion of any length."""
    x, y, z, w = quaternion_of(R)
    a, b, c, d = quaternion
    # q ⊗ conj(q_d)
    vector = [
        d * x - w * a - (y * c - z * b),
        d * y - w * b - (z * a - x * c),
        d * z - w * c - (x * b - y * a),
    ]
    real = w * d + x * a + y * b + z * c
    turned = where(real < 0.0, -1.0, 1.0)
    sine = sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])
    size = sqrt(a * a + b * b + c * c + d * d)
    small = sine < 1e-8 * size
    # 2 atan2(sin, cos) / sin; 2/cos where both are small
    ratio = where(small, 2.0 / size, 2.0 * atan2(sine, turned * real) / where(small, 1.0, sine))
    return [turned * ratio * v for v in vector]
