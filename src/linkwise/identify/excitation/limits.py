"""Limits of a motion: positions, speeds, accelerations, torques, and what the robot must not touch.

They are needed twice: as penalties with exact derivatives while a motion is optimised, and as a plain yes or no at
the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.collision import Clearance
from linkwise.identify.errors import IdentificationError
from linkwise.robot.robot import Robot

MARGIN = 0.97  # of the limits, while a motion is optimised
UNKNOWN_LIMITS = {"position": np.pi, "velocity": 2.0, "acceleration": 10.0}  # where the robot file has none
POSTURES = 2000  # random ones among which resting postures are chosen
COARSE = 16  # every so many points are looked at first
AHEAD = 0.01  # [m] more than the distance wanted, while a motion is optimised
NEARNESS = 0.05  # [m] a missing distance that counts as one limit
ROOM = 0.2  # [m] a resting posture needs no more distance
APART = 0.3  # part of the range of some joint by which resting postures differ
ADVICE = (
    "lower the clearance, move or drop the floor, change the boxes or the tool, or narrow the ranges of the joints to "
    "where the robot is free"
)


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
    """The limits of one robot, evaluated for motions (q, q̇, q̈), each (points, n).

    ``clearance`` has the distances to the room and between links; None: there is nothing to touch.
    """

    def __init__(self, robot: Robot, limits: MotionLimits, clearance: Clearance | None = None):
        if limits.lower.shape != (robot.dof,):
            raise ValueError(f"limits: expected shape ({robot.dof},), got {limits.lower.shape}")
        self.robot, self.limits, self.clearance = robot, limits, clearance
        self.wanted = 0.0 if clearance is None else clearance.room.clearance

    def excess(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """How far limits are broken at every point (points,), in parts of them; negative: how much room is left."""
        return np.max([size for size, _ in self._shares(q, qd, qdd)], axis=(0, 2)) - 1.0

    def _shares(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> list[tuple[np.ndarray, str]]:
        """What is used of every limit, (points, n) each."""
        limits = self.limits
        torque = self.robot.inverse_dynamics(q, qd, qdd)
        return [
            (np.abs(q - limits.middle) / limits.half, "position"),
            (np.abs(qd) / limits.velocity, "speed"),
            (np.abs(qdd) / limits.acceleration, "acceleration"),
            (np.abs(torque) / limits.torque, "torque"),
        ]

    def least(self, q: np.ndarray) -> np.ndarray:
        """The smallest distance [m] to anything at every point (points,)."""
        return np.full(len(q), np.inf) if self.clearance is None else self.clearance.least(q)

    def keeps(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> bool:
        """Whether a motion keeps every limit; a few points show most violations."""
        few = slice(None, None, COARSE)
        if (self.least(q[few]) < self.wanted).any() or (self.excess(q[few], qd[few], qdd[few]) > 0.0).any():
            return False
        return not ((self.excess(q, qd, qdd) > 0.0).any() or (self.least(q) < self.wanted).any())

    def broken(self, t: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> str:
        """What a motion breaks first of all, in words: what, where and when."""
        found = None if self.clearance is None else self.clearance.contact_and_row(q)
        if found is not None and found[0].distance < self.wanted:
            contact, row = found
            return f"at t = {t[row]:.2f} s {contact} ({100 * self.wanted:g} cm are wanted)"
        shares = self._shares(q, qd, qdd)
        sizes, name = max(shares, key=lambda share: float(share[0].max()))
        row, joint = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
        who = self.robot.joint_names[joint]
        return f"at t = {t[row]:.2f} s {who} needs {100 * sizes[row, joint]:.0f} % of its limit of {name}"

    def resting(self, seed: int = 0, count: int = 1) -> list[np.ndarray]:
        """Postures (n,) that keep all limits at rest: the middle of the ranges if it does, and others with much room,
        the best first; at most ``count``, at least one."""
        middle = self.limits.middle
        rng = np.random.default_rng(seed)
        tried = rng.uniform(self.limits.lower, self.limits.upper, (POSTURES, self.robot.dof))
        tried = np.concatenate([middle[None], tried])
        still = np.zeros_like(tried)
        excess, least = self.excess(tried, still, still), self.least(tried)
        allowed = (excess <= 0.0) & (least >= self.wanted)
        if not allowed.any():
            raise IdentificationError(
                f"excite: no posture keeps all limits at rest: {self._why(tried, excess)}"
            )
        away = np.abs(tried - middle) / self.limits.half
        ample = np.minimum(least / ROOM, 1.0) if self.clearance is not None else 1.0
        score = np.where(allowed, ample - away.mean(axis=1), -np.inf)
        chosen: list[np.ndarray] = []
        if allowed[0] and least[0] >= self.wanted + 0.5 * ROOM:
            chosen.append(middle)
        for k in np.argsort(-score, kind="stable"):
            if len(chosen) >= count or not allowed[k]:
                break
            if all(np.abs((tried[k] - q) / self.limits.half).max() > APART for q in chosen):
                chosen.append(tried[k])
        return chosen

    def _why(self, tried: np.ndarray, excess: np.ndarray) -> str:
        """Why no posture is allowed, in words."""
        if (excess > 0.0).all() or self.clearance is None:
            return "the torque limits do not carry the arm"
        carried = tried[excess <= 0.0]
        contact = self.clearance.contact(carried[[int(np.argmax(self.least(carried)))]])
        return f"in the best of {len(carried)} postures {contact} ({100 * self.wanted:g} cm are wanted); {ADVICE}"

    # -- penalties ----------------------------------------------------------------------------------------------------

    def penalty(self, motion: Sequence[np.ndarray], gradients: list[np.ndarray], weight: float) -> float:
        """Mean squares of what is beyond ``MARGIN`` of the limits of joints, times ``weight``; derivatives are added to
        ``gradients``.
        """
        return self._linear(motion, gradients, weight) + self._torque(motion, gradients, weight)

    def room_penalty(self, q: np.ndarray, weight: float) -> tuple[float, np.ndarray]:
        """The sum, over all that is compared, of mean squares of what is missing to the distance wanted, times
        ``weight``; and its derivative by q (points, n)."""
        if self.clearance is None:
            return 0.0, np.zeros_like(q)
        missing = np.maximum(self.wanted + AHEAD - self.clearance.distances(q), 0.0) / NEARNESS
        value = weight * float((missing**2).sum()) / len(q)
        if not missing.any():
            return value, np.zeros_like(q)
        return value, self.clearance.gradient(q, -2.0 * weight / NEARNESS / len(q) * missing)

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


def _beyond(x: np.ndarray, size: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean square of what of |x|/size is above one, and its derivative by x."""
    over = np.maximum(np.abs(x) / size - 1.0, 0.0)
    return float((over**2).mean()), 2 * over * np.sign(x) / size / over.size
