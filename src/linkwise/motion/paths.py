"""Paths of the joints without a time law: positions and their derivatives by a parameter, as ``time_optimal`` uses."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.errors import LinkwiseError, ShapeError
from linkwise.motion import arguments
from linkwise.motion.cartesian import CartesianMove
from linkwise.motion.polynomial import PiecewisePolynomial, ramp
from linkwise.motion.trajectory import Moment, Trajectory
from linkwise.robot import Robot
from linkwise.user import kernel

STENCIL = 2e-3  # distance between the five points from which derivatives of a function of numbers are taken
SAME = 1e-12  # [rad or m]: nearer way-points are one


class JointPath(ABC):
    """Positions of n joints for a parameter from ``begin`` to ``end``."""

    dof: int
    begin: float
    end: float

    @abstractmethod
    def at(self, s: np.ndarray) -> Moment:
        """Positions and their first and second derivatives by the parameter, shape (..., n)."""

    def corners(self) -> np.ndarray:
        """Where a derivative may jump, with both ends, ascending."""
        return np.array([self.begin, self.end])


class TrajectoryPath(JointPath):
    """The path of a trajectory; time is its parameter."""

    def __init__(self, trajectory: Trajectory):
        if isinstance(trajectory, CartesianMove):
            trajectory = _evenly(trajectory)
        self.trajectory, self.dof = trajectory, trajectory.dof
        if math.isfinite(trajectory.begin) and math.isfinite(trajectory.end):
            self.begin, self.end = trajectory.begin, trajectory.end
        elif (period := getattr(trajectory, "period", None)) is not None:
            self.begin, self.end = 0.0, float(period)
        else:
            raise ValueError("path: a motion without end has no shortest time")

    def at(self, s: np.ndarray) -> Moment:
        return self.trajectory.at(s)

    def corners(self) -> np.ndarray:
        inside = self.trajectory.corners()
        inside = inside[(inside > self.begin) & (inside < self.end)]
        return np.concatenate([[self.begin], inside, [self.end]])


def _evenly(move: CartesianMove) -> CartesianMove:
    """The same move with its path coordinate as time, so that its frame does not rest at the ends."""
    even = copy.copy(move)
    even.timing = ramp([0.0], [1.0], 1.0)
    even.begin, even.end = 0.0, 1.0
    return even


class FunctionPath(JointPath):
    """A function of one number from 0 to 1 that gives the positions of all joints.

    It is traced as functions of ``linkwise.kernel`` are, so its derivatives are exact. One that cannot be traced is
    called with numbers; derivatives are then those of the polynomial through five neighbouring values.
    """

    def __init__(self, function: Callable[[Any], Any], dof: int):
        self.function, self.dof = function, dof
        self.begin, self.end = 0.0, 1.0
        self._kernels = None
        try:
            traced = kernel(s=1)(lambda s: {"q": np.asarray(function(s[0]), dtype=object)})
            first = traced.jacobian("s")
            self._kernels = traced, first, first.jacobian("s")
        except LinkwiseError:
            pass
        middle = self.at(np.array([0.5])).q
        if middle.shape != (1, dof):
            raise ShapeError(f"path: the function gives {middle.shape[1:]}, expected {dof} positions")
        if not np.isfinite(middle).all():
            raise ValueError("path: the function gives positions that are not finite numbers at s = 0.5")

    def at(self, s: np.ndarray) -> Moment:
        if self._kernels is not None:
            values = [made(s[..., np.newaxis]) for made in self._kernels]
            return Moment(*(value.reshape(*s.shape, -1) for value in values))
        centre = np.clip(s, 2 * STENCIL, 1 - 2 * STENCIL)
        nodes = centre[..., np.newaxis] + STENCIL * np.arange(-2, 3)
        values = self._called(nodes)
        away = ((s - centre) / STENCIL)[..., np.newaxis]
        weights = _fitted(values)
        first = weights[1] + away * (2 * weights[2] + away * (3 * weights[3] + away * 4 * weights[4]))
        second = 2 * weights[2] + away * (6 * weights[3] + away * 12 * weights[4])
        return Moment(self._called(s), first / STENCIL, second / STENCIL**2)

    def _called(self, s: np.ndarray) -> np.ndarray:
        flat = [arguments.positions("path", self.function(float(value))) for value in s.ravel()]
        return np.array(flat).reshape(*s.shape, -1)


_TO_POWERS = np.linalg.inv(np.vander(np.arange(-2.0, 3.0), increasing=True))


def _fitted(values: np.ndarray) -> list[np.ndarray]:
    """The coefficients of the polynomials through five values each, (..., 5, n), lowest power first."""
    return [np.einsum("k,...kn->...n", row, values) for row in _TO_POWERS]


class Splines:
    """Natural cubic splines through the way-points of many paths; the parameter is the distance between them.

    ``knots`` (paths, m) and ``coefficients`` (paths, m − 1, 4, n), as those of ``PiecewisePolynomial``.
    """

    def __init__(self, points: np.ndarray):
        count, m, n = points.shape
        steps = np.diff(points, axis=1)
        distance = np.sqrt((steps * steps).sum(axis=-1))
        self.knots = np.zeros((count, m))
        np.cumsum(distance, axis=1, out=self.knots[:, 1:])
        slope = steps / distance[..., np.newaxis]
        v = slope[:, [0, -1]] if m == 2 else self._speeds(distance, slope)
        h = distance[..., np.newaxis]
        self.coefficients = np.empty((count, m - 1, 4, n))
        self.coefficients[:, :, 0] = points[:, :-1]
        self.coefficients[:, :, 1] = v[:, :-1]
        self.coefficients[:, :, 2] = (3 * slope - 2 * v[:, :-1] - v[:, 1:]) / h
        self.coefficients[:, :, 3] = (v[:, :-1] + v[:, 1:] - 2 * slope) / h / h

    @staticmethod
    def _speeds(h: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Derivatives at the way-points: equal second derivatives on both sides, zero ones at the ends."""
        count, pieces, n = slope.shape
        A, right = np.zeros((count, pieces + 1, pieces + 1)), np.empty((count, pieces + 1, n))
        inner, weight = np.arange(1, pieces), 1 / h
        A[:, inner, inner - 1], A[:, inner, inner + 1] = weight[:, :-1], weight[:, 1:]
        A[:, inner, inner] = 2 * (weight[:, :-1] + weight[:, 1:])
        right[:, 1:-1] = 3 * (
            slope[:, :-1] * weight[:, :-1, np.newaxis] + slope[:, 1:] * weight[:, 1:, np.newaxis]
        )
        A[:, 0, 0], A[:, 0, 1], A[:, -1, -1], A[:, -1, -2] = 2, 1, 2, 1
        right[:, 0], right[:, -1] = 3 * slope[:, 0], 3 * slope[:, -1]
        return np.linalg.solve(A, right)

    def trajectory(self, k: int) -> PiecewisePolynomial:
        """One of the paths as a motion in which the parameter is time."""
        return PiecewisePolynomial(self.knots[k], self.coefficients[k])


def way_points(value: Any, dof: int, name: str = "path") -> np.ndarray:
    """Checked way-points (m, n), each at another position than the one before."""
    points = arguments.finite(name, value)
    if points.ndim != 2 or points.shape[1] != dof or len(points) < 2:
        raise ShapeError(f"{name}: expected way-points of shape (m, {dof}), m ≥ 2; got {points.shape}")
    moves = np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME
    if not moves.any():
        raise ValueError(f"{name}: all way-points are the same position, so there is no path")
    return points[np.concatenate([[True], moves])]


def joint_path(robot: Robot, path: Any, name: str = "path") -> JointPath:
    """What users give as a path, other than way-points."""
    if isinstance(path, JointPath):
        found = path
    elif isinstance(path, Trajectory):
        found = TrajectoryPath(path)
    elif callable(path):
        found = FunctionPath(path, robot.dof)
    else:
        raise TypeError(
            f"{name}: expected way-points (m, {robot.dof}), a motion or a function of a number from 0 to 1, "
            f"got {type(path).__name__}"
        )
    if found.dof != robot.dof:
        raise ValueError(f"{name}: it has {found.dof} joints, {robot.name} has {robot.dof}")
    return found
