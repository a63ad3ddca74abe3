"""What a whole-body controller keeps: contacts with their cones, torques, and bounds of accelerations under which
joints stay within their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import limits_of_torque
from linkwise.control.whole_body.tasks import TaskError, motors_of
from linkwise.core.once import once
from linkwise.core.products import length, times
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, maximum, minimum, sqrt, where
from linkwise.solve.cones import facets
from linkwise.solve.linear import pseudo_inverse, svd

POSITIONS = 64
"""At random, over which inertias and gravity of joints are taken."""
MOST_FACETS = 64
"""Of a cone of wrenches: with more of them the programme looks at the forces of the points."""
PLANNED = 0.95
"""Share of a deceleration that bounds count on: with all of it a joint that brakes would be too fast at once."""
UNLIMITED = 1e6
"""Torque [N·m or N] and force [N] of what has no limit."""


@dataclass(frozen=True)
class Support:
    """A part of the robot that stands on something: it does not move, and pushes inside its friction pyramid.

    Args:
        frame: a link or a named frame.
        points: where forces act, in the frame [m], shape (k, 3): one for a foot like a ball, the corners of a sole.
        radius: of a foot like a ball [m]: the force acts so far below the point.
        normal: of the ground: in base axes, for three points or more in the axes of the frame.
        friction: coefficient μ.
        largest: normal force of each point [N]; None: none.
        smallest: normal force of each point [N].
        facets: of the pyramid in place of Coulomb's cone, from 3 on.
        inside: whether the pyramid lies inside the cone, so that forces keep the cone; else its facets touch it from
            outside, as in TSID.
        name: in results; by default the frame's.
    """

    frame: str
    points: Sequence[Sequence[float]] = ((0.0, 0.0, 0.0),)
    radius: float = field(default=0.0, kw_only=True)
    normal: Sequence[float] = field(default=(0.0, 0.0, 1.0), kw_only=True)
    friction: float = field(default=0.7, kw_only=True)
    largest: float | None = field(default=None, kw_only=True)
    smallest: float = field(default=0.0, kw_only=True)
    facets: int = field(default=4, kw_only=True)
    inside: bool = field(default=True, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "inside", flag("inside", self.inside))
        if not (math.isfinite(self.friction) and self.friction > 0.0):
            raise TaskError(f"{self.label}: friction: expected a positive number, got {self.friction!r}")
        if self.facets < 3:
            raise TaskError(f"{self.label}: facets: expected 3 or more, got {self.facets!r}")
        points = np.asarray(self.points, dtype=float)
        if points.ndim != 2 or points.shape[1] != 3 or not len(points) or not np.isfinite(points).all():
            raise TaskError(f"{self.label}: points: expected (k, 3) numbers [m], got {self.points!r}")
        if len(points) == 2 and not length(points[1] - points[0]) > 0.0:
            raise TaskError(f"{self.label}: points: expected two that differ, got {self.points!r}")
        if self.largest is not None and not self.largest > self.smallest:
            raise TaskError(
                f"{self.label}: largest: expected more than the smallest force, got {self.largest!r}"
            )
        if not 0.0 <= self.smallest < UNLIMITED:
            raise TaskError(f"{self.label}: smallest: expected a force from 0 on, got {self.smallest!r}")
        if not length(self.normal) > 0.0:
            raise TaskError(f"{self.label}: normal: expected a direction, got {self.normal!r}")

    @property
    def label(self) -> str:
        return self.name or self.frame

    @property
    def sole(self) -> bool:
        """Whether it holds the frame in all six directions: three points or more."""
        return len(self.points) >= 3

    @property
    def rows(self) -> int:
        """Accelerations that are zero: those of the points, or of the frame where three or more points hold it."""
        return 6 if self.sole else 3 * len(self.points)

    @once
    def shared(self) -> tuple[np.ndarray, np.ndarray]:
        """(forces of the points for a wrench, forces that make no wrench): (3k, rows) and (3k, 3k − rows)."""
        size = 3 * len(self.points)
        if not self.sole:
            return np.eye(size), np.zeros((size, 0))
        wrench = wrench_of(self.points, self.radius, self.axes())
        values, V = svd(wrench)
        if values[5] < 1e-9 * values[0]:
            raise TaskError(f"{self.label}: points: expected three that are not on a line")
        return pseudo_inverse(wrench), np.where(np.abs(V[6:].T) < 1e-14, 0.0, V[6:].T)

    @property
    def shares(self) -> np.ndarray:
        """How the points may share a wrench where the programme looks at their forces, (3k, unknowns)."""
        shares = self.shared[1]
        return shares[:, :0] if self.by_wrench else shares

    @property
    def line(self) -> bool:
        """Whether two points hold it: forces along the line between them make no wrench together, and how large they
        are is free. A sole has ``shares`` for that; these here turn with the frame."""
        return len(self.points) == 2

    @property
    def free_shares(self) -> int:
        """Unknowns by which points share a wrench."""
        return 1 if self.line else self.shares.shape[1]

    def along_line(self, R: Any) -> list[Any]:
        """Unit vector between two points along (tangent, tangent, normal).

        Args:
            R: rotation of the frame, (3, 3).
        """
        first, second = (np.asarray(point, dtype=float) for point in self.points)
        way = (second - first) / length(second - first)
        along = [sum(x * float(w) for x, w in zip(row, way, strict=True)) for row in R]
        return [sum(float(c) * x for c, x in zip(axis, along, strict=True)) for axis in self.axes()]

    @once
    def by_wrench(self) -> bool:
        """Whether facets of the wrench stand for the pyramids of all points: for a sole whose points have no limits of
        their own, as long as these are few."""
        unlimited = self.sole and self.largest is None and self.smallest == 0.0
        return unlimited and len(self.cone) <= MOST_FACETS

    @once
    def cone(self) -> np.ndarray:
        """C of C w ≤ 0 for the wrenches w of forces inside the pyramids of the points, (facets, 6), in newtons. For a
        rectangle and four facets these are the 16 inequalities of S. Caron et al., "Stability of surface contacts
        for humanoid robots", 2015."""
        edges = self.pyramid_edges()
        wrenches = times(
            wrench_of(self.points, self.radius, self.axes()), np.kron(np.eye(len(self.points)), edges)
        )
        size = np.sqrt((np.asarray(self.points, dtype=float) ** 2).sum(axis=1).max())
        units = np.array([1.0 / size] * 3 + [1.0] * 3)
        C = facets(wrenches.T * units) * units
        C = C / np.abs(C[:, 3:]).max(axis=1, keepdims=True)
        return np.where(np.abs(C) < 1e-12 / units, 0.0, C)

    def pyramid_edges(self) -> np.ndarray:
        """Edges of the pyramid of one point as columns, (3, facets)."""
        C = self.pyramid()[0][: self.facets]
        edges = np.cross(C, np.roll(C, -1, axis=0))
        return (edges / edges[:, 2:]).T

    def limited(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(C, c) of C f ≤ c for the force of every point, or once for the wrench."""
        return (
            [(self.cone, np.zeros(len(self.cone)))] if self.by_wrench else [self.pyramid()] * len(self.points)
        )

    def axes(self) -> np.ndarray:
        """(tangent, tangent, normal) as rows."""
        n = np.asarray(self.normal, dtype=float)
        n = n / np.sqrt((n * n).sum())
        other = np.array([1.0, 0.0, 0.0]) if abs(n[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
        first = other - n * (n * other).sum()
        first = first / np.sqrt((first * first).sum())
        return np.array([first, np.cross(n, first), n])

    def pyramid(self) -> tuple[np.ndarray, np.ndarray]:
        """(C, c) of C f ≤ c for one point: the facets, the largest and the smallest normal force."""
        angles = 2.0 * math.pi * np.arange(self.facets) / self.facets
        slope = self.friction * (math.cos(math.pi / self.facets) if self.inside else 1.0)
        sides = [[math.cos(a), math.sin(a), -slope] for a in angles]
        rows = np.array([*sides, [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
        rows[np.abs(rows) < 1e-15] = 0.0
        most = UNLIMITED if self.largest is None else self.largest
        return rows, np.array([0.0] * self.facets + [most, -self.smallest])


def wrench_of(points: Sequence[Sequence[float]], radius: float, axes: np.ndarray) -> np.ndarray:
    """Moment and force in the frame's axes at its origin of forces on its points along ``axes``, (6, 3k)."""
    wrench = np.zeros((6, 3 * len(points)))
    for k, point in enumerate(np.asarray(points, dtype=float)):
        for a in range(3):
            wrench[:3, 3 * k + a] = np.cross(point - radius * axes[2], axes[a])
            wrench[3:, 3 * k + a] = axes[a]
    return wrench


@dataclass(frozen=True)
class MotionLimits:
    """Limits of motors and joints.

    Args:
        torque: [N·m or N], one number or (n,); None: the robot's, False: none.
        velocity: [rad/s or m/s], one number or (n,); None: the robot's, False: none.
        position: whether joints stay within the positions that the robot states.
        deceleration: that every joint can reach to stop [rad/s² or m/s²], one number or (n,), of which bounds count on
            95 %; None: half of what its torque limit leaves beside gravity, a fifth of it at least, over its inertia,
            both the worst of random positions; 10 where it has no limit.
        period: how long torques are held [s]; bounds hold at its end.
        ahead: whether bounds count that accelerations change while torques are held; else the acceleration at the
            beginning counts, as in TSID. With supports this one counts, and ``beyond`` of the solution says by how much
            others pass.
    """

    torque: Any = None
    velocity: Any = None
    position: bool = True
    deceleration: Any = None
    period: float = 0.002
    ahead: bool = True

    def __post_init__(self):
        object.__setattr__(self, "position", flag("position", self.position))
        object.__setattr__(self, "ahead", flag("ahead", self.ahead))
        Numbers(TaskError).time("limits: period", self.period)


@dataclass(frozen=True)
class Bounds:
    """Limits of one robot for every motor; velocity and position infinite where there are none."""

    torque: Sequence[Scalar]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    deceleration: Sequence[Scalar]
    period: float
    limited: tuple[int, ...]
    """Motors whose acceleration has bounds, as places in the list of motors."""
    loads: Sequence[tuple[float, float]] | None
    """(inertia, torque of gravity) of every motor, from which decelerations follow; None: these are stated."""
    ahead: bool = True
    """Whether bounds are of the mean acceleration while torques are held."""

    @classmethod
    def of(cls, robot: Robot, limits: MotionLimits) -> Bounds:
        motors = motors_of(robot)
        limit = robot.limits
        torque = np.minimum(limits_of_torque(robot, limits.torque), UNLIMITED)
        velocity = _broadcast(robot, "velocity", limit.velocity, limits.velocity)
        lower, upper = _by_velocity(robot, limit.lower, -np.inf), _by_velocity(robot, limit.upper, np.inf)
        if not limits.position:
            lower, upper = np.full(robot.dof, -np.inf), np.full(robot.dof, np.inf)
        finite = np.isfinite(velocity) | np.isfinite(lower) | np.isfinite(upper)
        limited = tuple(k for k, motor in enumerate(motors) if finite[motor])
        braking = _broadcast(robot, "deceleration", np.zeros(robot.dof), limits.deceleration)
        chosen = [np.asarray(x, dtype=float)[motors] for x in (torque, lower, upper, velocity, braking)]
        loads = _loads(robot, motors) if limits.deceleration is None else None
        made = cls(*chosen, limits.period, limited, loads, limits.ahead)  # type: ignore[call-arg]
        return made.with_torque(made.torque)

    def with_torque(self, torque: Sequence[Scalar]) -> Bounds:
        """The same with other limits of torques, and with the decelerations that follow from these.

        Args:
            torque: of every motor [N·m or N], ``UNLIMITED`` where there is none.
        """
        if self.loads is None:
            return replace(self, torque=torque)
        braking: Any = [_deceleration(t, *load) for t, load in zip(torque, self.loads, strict=True)]
        numbers = isinstance(torque, np.ndarray)
        return replace(self, torque=torque, deceleration=np.array(braking) if numbers else braking)

    def accelerations(self, k: int, q: Scalar, qd: Scalar, planned: float = PLANNED) -> tuple[Scalar, Scalar]:
        """(least, most) acceleration of motor k, after which a share ``planned`` of its deceleration stops it."""
        up, down = (largest_acceleration(*side, planned) for side in self._sides(k, q, qd))
        return -down, up

    def beyond(self, k: int, q: Scalar, qd: Scalar) -> Scalar:
        """How much too fast motor k is to keep its limits by the deceleration that is stated for it [rad/s or m/s]."""
        least = minimum(*(viable_acceleration(*side) for side in self._sides(k, q, qd)))
        return maximum(self.period * (-self._braking(k) - least), 0.0)

    def _braking(self, k: int) -> Scalar:
        """Deceleration of motor k."""
        brake = self.deceleration[k]
        return float(brake) if isinstance(brake, float) else brake

    def _sides(
        self, k: int, q: Scalar, qd: Scalar
    ) -> list[tuple[Scalar | None, Scalar, float, Scalar, float]]:
        """Arguments of ``viable_acceleration`` towards the upper and the lower limit of motor k."""
        low, high = float(self.lower[k]), float(self.upper[k])
        others = (float(self.velocity[k]), self._braking(k), self.period)
        above, below = high - q if math.isfinite(high) else None, q - low if math.isfinite(low) else None
        return [(above, qd, *others), (below, -qd, *others)]


def viable_acceleration(
    room: Scalar | None, rate: Scalar, speed: float, brake: Scalar, period: float
) -> Scalar:
    """The largest acceleration during a period after which a joint can still stop before its limit.

    A. Del Prete, "Joint position and velocity bounds in discrete-time acceleration/torque control of robot arms",
    2018: after the period the speed is at most the limit, and at most what braking stops in the room that is left,
    (q̇ + h a)² ≤ 2 b (room − h q̇ − ½ h² a).

    Args:
        room: distance of the limit [rad or m]; None: there is none.
        rate: velocity towards the limit [rad/s or m/s].
        speed: limit of the velocity, may be infinite.
        brake: b [rad/s² or m/s²].
        period: h [s].
    """
    bounds: list[Scalar] = []
    if math.isfinite(speed):
        bounds.append((1.0 / period) * (speed - rate))
    if room is not None:
        half = rate + 0.5 * brake * period  # of h² a² + 2 half h a + rest = 0
        rest = rate * rate - 2.0 * brake * (room - period * rate)
        square = half * half - rest
        root = sqrt(abs(square))  # below zero nothing stops it in time: the more, the further
        bounds.append((1.0 / period) * (where(square < 0.0, -root, root) - half))
    most = bounds[0] if bounds else UNLIMITED
    for bound in bounds[1:]:
        most = minimum(most, bound)
    return minimum(most, UNLIMITED)


def largest_acceleration(
    room: Scalar | None, rate: Scalar, speed: float, brake: Scalar, period: float, planned: float = PLANNED
) -> Scalar:
    """``viable_acceleration``, but never more braking than b or what makes the joint stand still.

    Args:
        room, rate, speed, brake, period: as there.
        planned: share of b from which the joint can still stop; the rest corrects what was not predicted.
    """
    fullest = minimum(-maximum(brake, (1.0 / period) * rate), -brake)
    return maximum(viable_acceleration(room, rate, speed, planned * brake, period), fullest)


def _loads(robot: Robot, motors: Sequence[int]) -> list[tuple[float, float]]:
    """(inertia, torque of gravity) of every motor, the worst of random positions."""
    positions = np.vstack([robot.neutral, robot.random(np.random.default_rng(0), POSITIONS)])
    inertia = np.diagonal(robot.mass_matrix(positions), axis1=-2, axis2=-1).max(axis=0)
    gravity = np.abs(robot.gravity_torques(positions)).max(axis=0)
    return [(max(float(inertia[k]), 1e-9), float(gravity[k])) for k in motors]


def _deceleration(torque: Scalar, inertia: float, gravity: float) -> Scalar:
    """What a motor can brake by wherever the robot stands, with half of its torque for other joints that move."""
    left = maximum(torque - gravity, 0.2 * torque)
    return where(torque < UNLIMITED, 0.5 * left / inertia, 10.0)


def _broadcast(robot: Robot, what: str, own: np.ndarray, given: Any) -> np.ndarray:
    if given is None:
        return np.array(own, dtype=float)
    if given is False:
        return np.full(robot.dof, np.inf)
    return Numbers(TaskError).each(f"limits: {what}", given, robot.dof, above=0.0, finite=False)


def _by_velocity(robot: Robot, positions: np.ndarray, none: float) -> np.ndarray:
    """Numbers of positions for every velocity coordinate; ball and floating joints have none."""
    return np.array([none if k is None else float(positions[k]) for k in position_of_velocity(robot)])


def position_of_velocity(robot: Robot) -> list[int | None]:
    """For every velocity coordinate its number in q; None for ball and floating joints."""
    found: list[int | None] = []
    at = 0
    for joint in robot.coordinate_joints:
        if joint.free:
            found += [None] * joint.dof
            at += joint.dof + 1
        else:
            found.append(at)
            at += 1
    return found
