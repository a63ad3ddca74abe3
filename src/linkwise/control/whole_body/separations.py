"""Distances of capsules as limits of accelerations: parts of a robot that must not touch each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.algorithms import dense
from linkwise.collision.clearance import Clearance
from linkwise.collision.distance import Segment, nearest_parts
from linkwise.control.whole_body.limits import largest_acceleration
from linkwise.control.whole_body.tasks import State, TaskError
from linkwise.scalar import sqrt

SMALLEST = 1e-12
"""Added to the square of a distance [m²], so that it has a direction where axes cross."""


@dataclass(frozen=True)
class Separation:
    """Two capsules stay apart: their distance d can still stop shrinking before it is ``margin``.

    A second order barrier: d̈ is bounded as the acceleration of a joint near its stop. The gradient of d is that of the
    nearest points; that these move along the capsules only makes d̈ larger, and is left out.

    Args:
        first: frame of the first capsule.
        first_ends: ends of its axis in the frame [m], (2, 3).
        second: frame of the second capsule.
        second_ends: ends of its axis [m], (2, 3).
        radius: sum of both radii [m].
        margin: least distance [m].
        deceleration: with which the distance can stop shrinking [m/s²].
        name: in results; by default those of the frames.
    """

    first: str
    first_ends: Sequence[Sequence[float]]
    second: str
    second_ends: Sequence[Sequence[float]]
    radius: float = field(default=0.0, kw_only=True)
    margin: float = field(default=0.0, kw_only=True)
    deceleration: float = field(default=5.0, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self):
        for what in ("first_ends", "second_ends"):
            ends = np.asarray(getattr(self, what), dtype=float)
            if ends.shape != (2, 3) or not np.isfinite(ends).all():
                raise TaskError(
                    f"{self.label}: {what}: expected (2, 3) numbers [m], got {getattr(self, what)!r}"
                )
            object.__setattr__(self, what, tuple(map(tuple, ends.tolist())))
        for what in ("radius", "margin", "deceleration"):
            value = getattr(self, what)
            if not (math.isfinite(value) and value >= 0.0) or (what == "deceleration" and value == 0.0):
                raise TaskError(f"{self.label}: {what}: expected a positive number, got {value!r}")

    @property
    def label(self) -> str:
        return self.name or f"{self.first} and {self.second}"

    def row(self, state: State, period: float) -> tuple[list[Any], Any]:
        """(gradient of the distance, least value of the gradient times the accelerations), over scalars.

        Args:
            state: positions and velocities.
            period: how long an acceleration lasts [s].
        """
        robot = state.robot
        sides = []
        for frame, ends in ((self.first, self.first_ends), (self.second, self.second_ends)):
            T = robot.pose(state.q, frame)
            arms = [T[:3, :3] @ np.array(end) for end in ends]
            sides.append((frame, T[:3, 3], arms))
        lines = [
            Segment.between(
                tuple(p + arms[0]), tuple(p + arms[1]), float(np.sum(np.subtract(*np.array(ends)) ** 2))
            )
            for (_, p, arms), ends in zip(sides, (self.first_ends, self.second_ends), strict=True)
        ]
        parts = nearest_parts(*lines)
        points, rows, biases = [], [], []
        for (frame, p, arms), part in zip(sides, parts, strict=True):
            arm = [a + part * (b - a) for a, b in zip(*arms, strict=True)]
            J, bias = robot.jacobian(state.q, frame), robot.jacobian_rate(state.q, state.qd, frame)
            turn = J[:3] @ state.qd
            points.append([x + y for x, y in zip(p, arm, strict=True)])
            rows.append([J[3 + a] + dense.cross(J[:3], arm)[a] for a in range(3)])
            inner = dense.cross(turn, dense.cross(turn, arm))
            biases.append([bias[3 + a] + (dense.cross(bias[:3], arm)[a] + inner[a]) for a in range(3)])
        apart = [a - b for a, b in zip(*points, strict=True)]
        length: Any = sqrt(apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + SMALLEST)
        n: list[Any] = [x / length for x in apart]
        gradient: Any = sum(n[a] * (rows[0][a] - rows[1][a]) for a in range(3))
        bias: Any = sum(n[a] * (biases[0][a] - biases[1][a]) for a in range(3))
        rate = gradient @ state.qd
        room = length - (self.radius + self.margin)
        least = -largest_acceleration(room, -rate, math.inf, self.deceleration, period)
        return list(gradient), least - bias


def separations_of(
    clearance: Clearance, *, margin: float = 0.01, deceleration: float = 5.0
) -> list[Separation]:
    """The pairs of capsules that a ``collision.Clearance`` compares, as limits; floors and boxes are left out.

    Args:
        clearance: of the robot.
        margin: least distance [m].
        deceleration: with which distances can stop shrinking [m/s²].
    """
    robot, capsules = clearance.robot, clearance.checks.capsules

    def frame(body: int) -> str:
        return robot.moving_joints[body].child if body >= 0 else robot.base

    found = []
    for i, k in clearance.checks.pairs.tolist():
        a, b = capsules[i], capsules[k]
        found.append(
            Separation(
                frame(a.body), (a.start, a.end), frame(b.body), (b.start, b.end), radius=a.radius + b.radius,
                margin=margin, deceleration=deceleration, name=f"{frame(a.body)} {i} and {frame(b.body)} {k}",
            )
        )  # fmt: skip
    return found
