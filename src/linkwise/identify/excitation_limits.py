"""Limits of a motion: positions, speeds, accelerations, torques and a box in space.

They are needed twice: as penalties with exact derivatives while a motion is optimised, and as a plain yes or no at
the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.errors import suggest
from linkwise.identify.errors import IdentificationError
from linkwise.robot import Robot

MARGIN = 0.97  # of the limits, while a motion is optimised
UNKNOWN_LIMITS = {"position": np.pi, "velocity": 2.0, "acceleration": 10.0}  # where the robot file has none
POSTURES = 2000  # tried when the middle of the joint ranges breaks a limit


@dataclass(frozen=True)
class Box:
    """Where origins of frames must stay: lower and upper corner [m] in base axes.

    ``frames`` None: those of all moving links.
    """

    lower: Sequence[float] = (-np.inf, -np.inf, -np.inf)
    upper: Sequence[float] = (np.inf, np.inf, np.inf)
    frames: Sequence[str] | None = None


@dataclass(frozen=True)
class MotionLimits:
    """Limits of every joint, each (n,) [rad or m, and their rates; N·m or N]; torques may be infinite."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    torque: np.ndarray

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "velocity", "acceleration", "torque"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))
        for name in ("velocity", "acceleration", "torque"):
            if not (getattr(self, name) > 0).all():
                raise ValueError(
                    f"limits: {name}: expected positive numbers, got {getattr(self, name).tolist()}"
                )
        if not (np.isfinite(self.lower) & np.isfinite(self.upper) & (self.lower < self.upper)).all():
            raise ValueError(
                f"limits: expected finite lower < upper positions, got {self.lower.tolist()} and {self.upper.tolist()}"
            )

    @classmethod
    def of(
        cls, robot: Robot, acceleration: float | Sequence[float] | None = None, share: float = 1.0
    ) -> MotionLimits:
        """Those in the robot file, and usual ones where it has none; ``share`` of speeds, accelerations and torques.

        Args:
            robot: the robot.
            acceleration: limit [rad/s² or m/s²], one number or (n,); by default a usual one.
            share: fraction of speeds, accelerations and torques that may be used.
        """
        joints = robot.coordinate_joints
        reach = UNKNOWN_LIMITS["position"]
        lower = np.array([j.limits.lower if np.isfinite(j.limits.lower) else -reach for j in joints])
        upper = np.array([j.limits.upper if np.isfinite(j.limits.upper) else reach for j in joints])
        unknown = lower >= upper
        lower, upper = np.where(unknown, -reach, lower), np.where(unknown, reach, upper)
        wide = (upper - lower) > 2 * reach  # joints that turn far need not
        middle = np.where(wide, 0.0, (lower + upper) / 2)
        half = np.where(wide, reach, (upper - lower) / 2)
        speed = robot.velocity_limits
        speed = np.where(np.isfinite(speed), speed, UNKNOWN_LIMITS["velocity"])
        given = UNKNOWN_LIMITS["acceleration"] if acceleration is None else acceleration
        most = np.broadcast_to(np.asarray(given, dtype=float), speed.shape)
        effort = robot.effort_limits
        return cls(middle - half, middle + half, share * speed, share * most, share * effort)

    @property
    def middle(self) -> np.ndarray:
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> np.ndarray:
        """Half of the range of positions."""
        return (self.upper - self.lower) / 2


class Bounds:
    """The limits of one robot, evaluated for motions (q, q̇, q̈), each (points, n)."""

    def __init__(self, robot: Robot, limits: MotionLimits, box: Box | None = None):
        if limits.lower.shape != (robot.dof,):
            raise ValueError(f"limits: expected shape ({robot.dof},), got {limits.lower.shape}")
        self.robot, self.limits, self.box = robot, limits, box
        self.frames = () if box is None else tuple(box.frames or [j.child for j in robot.moving_joints])
        for frame in self.frames:
            if frame not in robot.link_names:
                raise ValueError(f"workspace: no frame {frame!r}; {suggest(frame, robot.link_names)}")

    def excess(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> float:
        """How far limits are broken, in parts of them, box walls in m; negative: how much room is left."""
        limits = self.limits
        beyond = [
            float((np.abs(x) / size).max()) - 1.0
            for x, size in (
                (q - limits.middle, limits.half),
                (qd, limits.velocity),
                (qdd, limits.acceleration),
                (self.robot.inverse_dynamics(q, qd, qdd), limits.torque),
            )
        ]
        if self.box is not None:
            for frame in self.frames:
                p = self.robot.pose(q, frame)[:, :3, 3]
                beyond.append(float(np.max([p - self.box.upper, np.asarray(self.box.lower) - p])))
        return max(beyond)

    def keeps(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> bool:
        """Whether a motion keeps every limit."""
        return self.excess(q, qd, qdd) <= 0.0

    def resting(self, seed: int = 0) -> np.ndarray:
        """A posture (n,) that keeps all limits at rest: the middle of the ranges, or one with much room."""
        still = np.zeros((1, self.robot.dof))
        middle = self.limits.middle
        if self.keeps(middle[None], still, still):
            return middle
        rng = np.random.default_rng(seed)
        tried = rng.uniform(self.limits.lower, self.limits.upper, (POSTURES, self.robot.dof))
        room = [self.excess(q[None], still, still) for q in tried]
        best = int(np.argmin(room))
        if room[best] > 0.0:
            raise IdentificationError(
                "excite: no posture keeps all limits at rest: the torque limits do not carry the arm, or the "
                "workspace leaves it no room"
            )
        return tried[best]

    # -- penalties ----------------------------------------------------------------------------------------------------

    def penalty(self, motion: Sequence[np.ndarray], gradients: list[np.ndarray], weight: float) -> float:
        """Mean squares of what is beyond ``MARGIN`` of the limits, times ``weight``; derivatives are added to
        ``gradients``.
        """
        return (
            self._linear(motion, gradients, weight)
            + self._torque(motion, gradients, weight)
            + self._box(motion[0], gradients, weight)
        )

    def _linear(self, motion: Sequence[np.ndarray], gradients: list[np.ndarray], weight: float) -> float:
        limits, total = self.limits, 0.0
        sizes = (limits.half, limits.velocity, limits.acceleration)
        for place, (x, size) in enumerate(zip((motion[0] - limits.middle, *motion[1:]), sizes, strict=True)):
            value, slope = _beyond(x, MARGIN * size)
            total += weight * value
            gradients[place] += weight * slope
        return total

    def _torque(self, motion: Sequence[np.ndarray], gradients: list[np.ndarray], weight: float) -> float:
        if not np.isfinite(self.limits.torque).any():
            return 0.0
        value, slope = _beyond(self.robot.inverse_dynamics(*motion), MARGIN * self.limits.torque)
        if value:
            for place, derivative in enumerate(self.robot.inverse_dynamics_derivatives(*motion)):
                gradients[place] += weight * np.einsum("si,sij->sj", slope, derivative)
        return weight * value

    def _box(self, q: np.ndarray, gradients: list[np.ndarray], weight: float) -> float:
        if self.box is None:
            return 0.0
        inside = 1.0 - MARGIN  # [m] from the walls
        lower = np.asarray(self.box.lower, dtype=float) + inside
        upper = np.asarray(self.box.upper, dtype=float) - inside
        total = 0.0
        for frame in self.frames:
            p = self.robot.pose(q, frame)[:, :3, 3]
            beyond = np.maximum(p - upper, 0.0) - np.maximum(lower - p, 0.0)  # [m], signed
            if beyond.any():
                total += 10 * weight * float((beyond**2).mean())
                J = self.robot.jacobian(q, frame)[:, 3:]
                gradients[0] += np.einsum("si,sij->sj", 10 * weight * 2 * beyond / beyond.size, J)
        return total


def _beyond(x: np.ndarray, size: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean square of what of |x|/size is above one, and its derivative by x."""
    over = np.maximum(np.abs(x) / size - 1.0, 0.0)
    return float((over**2).mean()), 2 * over * np.sign(x) / size / over.size
