"""What a frame keeps along a whole motion: a direction of one of its axes (a cup stays upright), a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.core.products import length, times
from linkwise.errors import ArgumentError
from linkwise.motion import arguments
from linkwise.robot.robot import Robot
from linkwise.solve import linear

ITERATIONS = 20  # of a projection
INNER = 0.2  # part of the tolerance within which a projection ends
_DAMPING = 1e-8
_LONGEST = 0.5  # [rad or m] step of an iteration


@dataclass(frozen=True)
class Keep:
    """A constraint along a motion: an axis of a frame keeps its direction, its origin stays on a plane, or both.

    Args:
        axis: unit vector in the frame; with ``direction``.
        direction: where it points, in base axes.
        tilt: largest angle between both [rad].
        normal: of the plane, in base axes; with ``height``.
        height: of the plane along its normal [m].
        distance: largest distance of the frame's origin from the plane [m].
        frame: the frame; None: the only leaf.
    """

    axis: Any = None
    direction: Any = None
    tilt: float = 0.02
    normal: Any = None
    height: float = 0.0
    distance: float = 1e-3
    frame: str | None = None

    def __post_init__(self) -> None:
        if (self.axis is None) != (self.direction is None):
            raise ArgumentError("constraint: give axis and direction together")
        if self.axis is None and self.normal is None:
            raise ArgumentError("constraint: give axis and direction, or the normal of a plane")
        for name in ("axis", "direction", "normal"):
            value = getattr(self, name)
            if value is not None:
                vector = arguments.finite(name, value)
                if vector.shape != (3,) or length(vector) < 1e-9:
                    raise ArgumentError(f"{name}: expected three numbers, not all 0")
                object.__setattr__(self, name, tuple((vector / length(vector)).tolist()))
        for name in ("tilt", "distance"):
            arguments.number(name, getattr(self, name), positive=True)
        arguments.number("height", self.height)

    def error(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """How far positions are from the constraint, as a part of its tolerance: at most 1 where it is kept; (...).

        Args:
            robot: the robot.
            q: positions [rad or m], shape (..., n).
        """
        pose = np.asarray(robot.pose(q, self.frame))
        found = np.zeros(pose.shape[:-2])
        if self.axis is not None:
            turned, wanted = (pose[..., :3, :3] * self.axis).sum(axis=-1), np.array(self.direction)
            across, along = np.cross(wanted, turned), (turned * wanted).sum(axis=-1)
            angle = np.arctan2(np.sqrt((across * across).sum(axis=-1)), along)
            found = np.maximum(found, angle / self.tilt)
        if self.normal is not None:
            away = (pose[..., :3, 3] * self.normal).sum(axis=-1) - self.height
            found = np.maximum(found, np.abs(away) / self.distance)
        return found

    def projected(
        self, robot: Robot, q: np.ndarray, between: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions near the given ones that keep the constraint, and which do: (states, n), (states,).

        Steps of Gauss and Newton: the smallest changes of the joints that take the residual away.

        Args:
            robot: the robot.
            q: positions [rad or m], shape (states, n).
            between: positions (n,), (n,) between which the result stays; by default the joint limits.
        """
        lower, upper = robot.limits[:2] if between is None else between
        here = np.clip(q, lower, upper)
        for _ in range(ITERATIONS):
            left = np.flatnonzero(~(self.error(robot, here) <= INNER))
            if not len(left):
                break
            residual, slope = self._residual(robot, here[left])
            square = times(slope, np.swapaxes(slope, 1, 2))
            for k, place in enumerate(left.tolist()):
                shift = linear.solve(square[k] + _DAMPING * np.eye(len(square[k])), residual[k])
                step = times(slope[k].T, shift)
                step *= min(1.0, _LONGEST / max(length(step), 1e-12))
                here[place] = np.clip(here[place] - step, lower, upper)
        return here, self.error(robot, here) <= 1.0

    def _residual(self, robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers that are 0 where the constraint is kept (states, m), and their slopes by q (states, m, n)."""
        pose, jacobian = np.asarray(robot.pose(q, self.frame)), np.asarray(robot.jacobian(q, self.frame))
        residuals: list[np.ndarray] = []
        slopes: list[np.ndarray] = []
        if self.axis is not None:
            turned, wanted = (pose[:, :3, :3] * self.axis).sum(axis=-1), np.array(self.direction)
            rate = np.cross(
                jacobian[:, :3], turned[:, :, None], axisa=1, axisb=1, axisc=1
            )  # of the turned axis
            one = np.cross(wanted, np.eye(3)[int(np.argmin(np.abs(wanted)))])
            one /= length(one)
            for across in (one, np.cross(wanted, one)):
                residuals.append((turned * across).sum(axis=-1))
                slopes.append((rate * across[:, None]).sum(axis=1))
            behind = (turned * wanted).sum(axis=-1) < 0.0  # the other way round: turn by more
            residuals[0] = np.where(behind, residuals[0] + np.sign(residuals[0] + 1e-9), residuals[0])
        if self.normal is not None:
            residuals.append((pose[:, :3, 3] * self.normal).sum(axis=-1) - self.height)
            slopes.append((jacobian[:, 3:] * np.array(self.normal)[:, None]).sum(axis=1))
        return np.stack(residuals, axis=1), np.stack(slopes, axis=1)
