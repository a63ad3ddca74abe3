"""What an environment is: a robot or scene, a control law, and functions of the user over scalars.

The functions are traced, as those of ``lw.kernel``: arithmetic, the functions of ``lw`` (``lw.where``, ``lw.sin`` …)
and those of this package, no ``if`` on what they are given. Each gets a ``State``; those that draw random numbers also
get a ``Draw``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.algorithms import coupling, kinematics
from linkwise.algorithms.contact import candidates
from linkwise.algorithms.contact.candidates import Candidate
from linkwise.environments.draws import Draw
from linkwise.errors import ArgumentError
from linkwise.model.contacts import candidate_count
from linkwise.model.mechanism import Mechanism, quaternion_rotation
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, maximum, minimum, where
from linkwise.spatial import Vector

Scalars = list[Scalar]
Range = tuple[float, float]


@dataclass(frozen=True)
class PDTargets:
    """Actions are positions of joints: τ = kp (neutral + scale·action − q) − kd q̇, computed at every physics step.

    Each number for all driven joints or one for each. A floating base has no motors: its coordinates are not driven.
    """

    kp: float | Sequence[float]
    """[N·m/rad or N/m]."""
    kd: float | Sequence[float]
    """[N·m·s/rad or N·s/m]."""
    neutral: float | Sequence[float] = 0.0
    """Position at action 0 [rad or m]."""
    scale: float | Sequence[float] = 1.0
    """[rad or m] for an action of 1."""
    limits: float | Sequence[float] | None = None
    """Largest torque [N·m or N]; None: the effort limits of the robot."""
    joints: tuple[str, ...] | None = None
    """Names of the driven joints; None: all with one axis and a motor."""
    clipped: bool = True
    """Whether targets stay in the ranges of the joints."""
    dry_friction: float | Sequence[float] = 0.0
    """Coulomb friction of the drives [N·m or N], a ramp up to ``RAMP`` [rad/s or m/s]: cheaper than sticking."""


@dataclass(frozen=True)
class Torques:
    """Actions are torques: τ = scale·action, within ± scale."""

    scale: float | Sequence[float] = 1.0
    """[N·m or N] for an action of 1."""
    joints: tuple[str, ...] | None = None
    """Names of the driven joints; None: all with one axis and a motor."""


@dataclass(frozen=True)
class Push:
    """Sudden changes of the base's velocity."""

    velocity: float
    """Largest change along x and y of the world [m/s]."""
    period: float
    """Mean time between two [s]."""


@dataclass(frozen=True, eq=False)
class Task:
    """An environment for learning; ``Environment(task, …)`` steps many of them.

    What is in ``inputs``, and every range of ``randomise``, may be changed between steps without compiling
    (``env.inputs``): commands, curricula, weights.
    """

    name: str
    robot: Robot
    """A robot or a scene; with contacts the step in time is that of ``contact_step``."""
    control: PDTargets | Torques
    observe: Callable[[State, Draw], Sequence[Scalar]]
    """Observation after a step and after a reset; noise comes from the ``Draw``."""
    reward: Callable[[State], Scalar | Mapping[str, Scalar]]
    """Reward of a step; named terms are summed, and reported each."""
    terminate: Callable[[State], Any]
    """A condition: the episode ends."""
    reset: Callable[[Draw, Mapping[str, Scalars]], Mapping[str, Sequence[Scalar]]]
    """From random numbers and inputs to {"q": …, "qd": …} and initial values of the memory; others are zero."""
    step: float = 0.004
    """Physics step [s]."""
    substeps: int = 5
    """Physics steps in a policy step."""
    episode_length: int = 1000
    """Policy steps after which an episode is truncated; the input ``episode_length`` changes it."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Numbers that an episode carries from step to step, by name."""
    update: Callable[[State, Draw], Mapping[str, Sequence[Scalar]]] | None = None
    """New values of the memory after a step; the reward sees the old ones, the observation the new ones."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """Run-time inputs with their defaults, numbers or lists."""
    randomise: Mapping[str, Range] = field(default_factory=dict)
    """Ranges from which each episode draws: "contact_friction", "payload" (mass [kg]), "kp" and "kd" (factors),
    "strength" (factor of torques), or a labelled parameter of the robot ("base.m")."""
    payload_frame: str | None = None
    payload_place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where in its frame the payload is [m]."""
    push: Push | None = None
    delay: tuple[int, int] = (0, 0)
    """Fewest and most policy steps by which observations are late; drawn for each episode."""
    accuracy: float | None = 1e-3
    """Of contacts: residual that is asked for; None for the default of ``contact_step``."""
    friction: bool = True
    """Whether joints have the friction of the robot's file."""
    least_reward: float = -math.inf
    """Of a step: a sum of terms below it counts as much as it. At 0 it never pays to end an episode."""
    source: str = ""
    """Where the task was published."""
    initial: np.ndarray | None = None
    """A typical position, for pictures."""

    def __post_init__(self) -> None:
        if self.step <= 0.0 or self.substeps < 1 or self.episode_length < 1:
            raise ArgumentError(
                f"{self.name}: expected a step above 0, at least one substep and one policy step, got "
                f"{self.step}, {self.substeps} and {self.episode_length}"
            )
        low, high = self.delay
        if not 0 <= low <= high:
            raise ArgumentError(f"{self.name}: delay: expected 0 ≤ fewest ≤ most, got {self.delay}")
        known = {*RANDOMISED, *self.robot.parameter_labels}
        for name, (least, most) in self.randomise.items():
            if name not in known:
                raise ArgumentError(
                    f"{self.name}: randomise: no {name!r}; expected {', '.join(RANDOMISED)} or a labelled parameter"
                )
            if not -math.inf < least <= most < math.inf:
                raise ArgumentError(
                    f"{self.name}: randomise {name}: expected low ≤ high, got {least}, {most}"
                )
            if name == "contact_friction" and least < 0.0:
                raise ArgumentError(
                    f"{self.name}: randomise {name}: expected at least 0, got {least}, {most}"
                )
        if "contact_friction" in self.randomise and not candidate_count(self.robot):
            raise ArgumentError(f"{self.name}: randomise contact_friction: {self.robot.name} touches nothing")
        reserved = {"q", "qd"} & {*self.memory}
        if reserved:
            raise ArgumentError(f"{self.name}: memory: {', '.join(sorted(reserved))} is the state itself")

    @property
    def period(self) -> float:
        """Of the policy [s]."""
        return self.step * self.substeps


RANDOMISED = ("contact_friction", "payload", "kp", "kd", "strength")
RAMP = 0.1
"""Speed at which the dry friction of drives is complete [rad/s or m/s]."""


@dataclass(eq=False)
class State:
    """What functions of a task see: one environment, over scalars."""

    robot: Robot
    links: Mechanism
    q: Scalars
    """Positions, nq."""
    qd: Scalars
    """Velocities, n."""
    action: Scalars
    """Of this step; zeros after a reset."""
    torque: Scalars
    """Of the driven joints in the last physics step [N·m or N]."""
    memory: dict[str, Scalars]
    inputs: Mapping[str, Scalars]
    drawn: Mapping[str, Scalar]
    """What this episode drew from ``randomise``."""
    time: Scalar
    """Since the episode began [s]."""
    forces: list[Scalars]
    """Of the contacts in the last physics step [N], three for each candidate, the normal last."""
    slip: list[Scalars]
    """Velocities of the contacts after the last physics step [m/s], the normal last."""
    terminated: Scalar = 0.0
    """1 where the episode ends by ``terminate``; for rewards."""
    touch: Scalars = field(default_factory=list)
    """Impulses of the contacts in the last physics step [N·s]."""
    _poses: Any = None

    @property
    def rotation(self) -> Any:
        """Of the floating base: from its own axes to those of the world."""
        return quaternion_rotation(self.q[3:7])

    @property
    def gravity(self) -> Scalars:
        """The direction of gravity in axes of the floating base: (0, 0, −1) upright. Without gravity that of −z."""
        rows, pull = self.rotation, self.robot.gravity
        size = math.hypot(*pull)
        if pull[2] == -size:
            return [-x for x in rows.row(2)]
        parts = [[g / size * x for x in rows.row(k)] for k, g in enumerate(pull)]
        return [x + y + z for x, y, z in zip(*parts, strict=True)]

    @property
    def base_velocity(self) -> tuple[Scalars, Scalars]:
        """Angular [rad/s] and linear velocity [m/s] of the floating base, in its own axes."""
        return self.qd[:3], self.qd[3:6]

    @property
    def base_velocity_in_world(self) -> tuple[Scalars, Scalars]:
        """The same in axes of the world."""
        turn = self.rotation
        return [*(turn @ Vector(*self.qd[:3]))], [*(turn @ Vector(*self.qd[3:6]))]

    def pose(self, frame: str) -> kinematics.Pose:
        """Where a frame is: ``.position`` [m] and ``.rotation``."""
        if self._poses is None:
            self._poses = kinematics.link_poses(self.links, self._grouped())
        return kinematics.frame_pose(self.links, self._poses, *self.robot.locate(frame))

    def position(self, frame: str) -> Scalars:
        """Of the origin of a frame [m], in axes of the world."""
        return [*self.pose(frame).position]

    def gaps(self) -> Scalars:
        """Distances of the contacts [m]."""
        found: list[Candidate] = candidates.prepared(self.robot)
        from linkwise.model.contacts import ground_of

        height = ground_of(self.robot.contact_parts).height
        return candidates.gaps(self.links, self._grouped(), found, [height] * len(found))

    def _grouped(self) -> list[Any]:
        return coupling.expanded(self.links, self.q, positions=True)


# -- drives -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Drives:
    """A control law prepared for a robot: where in q and q̇ the driven joints are, and numbers for each."""

    law: PDTargets | Torques
    positions: tuple[int, ...]
    coordinates: tuple[int, ...]
    numbers: Mapping[str, np.ndarray]
    lower: np.ndarray
    upper: np.ndarray
    names: tuple[str, ...]

    @classmethod
    def of(cls, robot: Robot, law: PDTargets | Torques) -> Drives:
        places: dict[str, tuple[int, int, Any]] = {}
        position = coordinate = 0
        for joint in robot.coordinate_joints:
            if joint.dof == joint.nq == 1 and joint.name not in robot.passive:
                places[joint.name] = (position, coordinate, joint.limits)
            position, coordinate = position + joint.nq, coordinate + joint.dof
        names = tuple(places) if law.joints is None else tuple(law.joints)
        for name in names:
            if name not in places:
                raise ArgumentError(f"control: {robot.name} has no joint {name!r} with one axis and a motor")
        chosen = [places[name] for name in names]
        fields = ("kp", "kd", "neutral", "scale", "limits", "dry_friction")
        numbers: dict[str, np.ndarray] = {}
        for key in fields:
            own = getattr(law, key, 0.0)
            own = [limits.largest_effort for _, _, limits in chosen] if own is None else own
            value = np.asarray(own, dtype=float)
            if value.shape not in ((), (len(names),)):
                raise ArgumentError(f"control: {key}: expected one number or {len(names)}, got {value.shape}")
            numbers[key] = np.broadcast_to(value, (len(names),))
        return cls(
            law,
            tuple(p for p, _, _ in chosen),
            tuple(c for _, c, _ in chosen),
            numbers,
            np.array([float(limits.lower) for _, _, limits in chosen]),
            np.array([float(limits.upper) for _, _, limits in chosen]),
            names,
        )

    @property
    def count(self) -> int:
        return len(self.names)

    def targets(self, action: Sequence[Scalar]) -> Scalars:
        """What the drives are told for a whole policy step: positions, or torques."""
        scale, neutral = self.numbers["scale"], self.numbers["neutral"]
        if isinstance(self.law, Torques):
            return [clipped(a, -1.0, 1.0) * float(s) for a, s in zip(action, scale, strict=True)]
        wanted: Scalars = [float(n) + float(s) * a for n, s, a in zip(neutral, scale, action, strict=True)]
        if not self.law.clipped:
            return wanted
        return [
            clipped(x, float(a), float(b)) for x, a, b in zip(wanted, self.lower, self.upper, strict=True)
        ]

    def torques(
        self,
        targets: Sequence[Scalar],
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        drawn: Mapping[str, Scalar],
    ) -> Scalars:
        """Torques of the driven joints in a physics step."""
        strength = drawn.get("strength", 1.0)
        if isinstance(self.law, Torques):
            return [strength * x for x in targets]
        found: Scalars = []
        more, damping = drawn.get("kp", 1.0), drawn.get("kd", 1.0)
        for k, target in enumerate(targets):
            rate = qd[self.coordinates[k]]
            kp, kd = float(self.numbers["kp"][k]) * more, float(self.numbers["kd"][k]) * damping
            torque = strength * (kp * (target - q[self.positions[k]]) - kd * rate)
            limit = float(self.numbers["limits"][k])
            found.append(clipped(torque, -limit, limit))
        return found

    def applied(self, torques: Sequence[Scalar], qd: Sequence[Scalar], dof: int) -> Scalars:
        """Torques of all coordinates, with the dry friction of the drives."""
        tau: Scalars = [0.0] * dof
        for torque, at, dry in zip(torques, self.coordinates, self.numbers["dry_friction"], strict=True):
            tau[at] = (
                torque if dry == 0.0 else torque - float(dry) * clipped(qd[at] * (1.0 / RAMP), -1.0, 1.0)
            )
        return tau


def clipped(x: Scalar, low: float, high: float) -> Scalar:
    """x within bounds; a NaN stays one."""
    if low > -math.inf:
        x = where(x < low, low, x)
    return x if high == math.inf else where(x > high, high, x)


def square(values: Sequence[Scalar]) -> Scalar:
    """The sum of the squares."""
    total: Scalar = 0.0
    for value in values:
        total = total + value * value
    return total


__all__ = [
    "Drives",
    "PDTargets",
    "Push",
    "State",
    "Task",
    "Torques",
    "clipped",
    "maximum",
    "minimum",
    "square",
]
