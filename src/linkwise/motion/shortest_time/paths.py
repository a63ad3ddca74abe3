"""Paths of the joints without a time law: positions and their derivatives by a parameter, as ``time_optimal`` uses."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.errors import LinkwiseError, ShapeError
from linkwise.motion import arguments
from linkwise.motion.cartesian import CartesianMove
from linkwise.motion.polynomial import PiecewisePolynomial, ramp
from linkwise.motion.splines import through_samples
from linkwise.motion.trajectory import Moment, Samples, Trajectory
from linkwise.robot.robot import Robot
from linkwise.robot.user import kernel

CALLED = 501  # values of a function that cannot be traced
JUMPS = 1e-3  # of its range: how far it may be from the curve through them
SAME = 1e-12  # [rad or m]: nearer way-points are one


class JointPath(ABC):
    """Positions of n joints for a parameter from ``begin`` to ``end``."""

    dof: int
    begin: float
    end: float
    dense = False  # whether derivatives may change quickly between points that ``corners`` does not name

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
        if isinstance(self.trajectory, CartesianMove) and self.trajectory.branch.redundant:
            inside = self.trajectory.branch.s  # where third derivatives jump
        inside = inside[(inside > self.begin) & (inside < self.end)]
        return np.concatenate([[self.begin], inside, [self.end]])


def _evenly(move: CartesianMove) -> CartesianMove:
    """The same move with its path coordinate as time, so that its frame does not rest at the ends."""
    even = copy.copy(move)
    even.timing = ramp([0.0], [1.0], 1.0)
    even.begin, even.end = 0.0, 1.0
    return even


class FunctionPath(JointPath):
    """A function of one number from 0 to 1 that gives the positions of all joints, with exact derivatives.

    Args:
        kernels: the function as ``linkwise.kernel`` traces it, and its first and second derivatives.
        dof: number of joints.
    """

    dense = True

    def __init__(self, kernels: Sequence[Any], dof: int):
        self.kernels, self.dof = kernels, dof
        self.begin, self.end = 0.0, 1.0

    def at(self, s: np.ndarray) -> Moment:
        values = [made(s[..., np.newaxis]) for made in self.kernels]
        return Moment(*(value.reshape(*s.shape, -1) for value in values))


def function_path(function: Callable[[Any], Any], dof: int) -> JointPath:
    """The path of a function of one number from 0 to 1 that gives the positions of all joints.

    It is traced as functions of ``linkwise.kernel`` are. One that cannot be traced is called with 501 numbers; the path
    then goes through these positions, with the derivatives of polynomials through five neighbours.
    """
    try:
        traced = kernel(s=1)(lambda s: {"q": np.asarray(function(s[0]), dtype=object)})
        first = traced.jacobian("s")
        path: JointPath = FunctionPath((traced, first, first.jacobian("s")), dof)
    except LinkwiseError:
        path = TrajectoryPath(_through_values(function))
    middle = path.at(np.array([0.5])).q
    if middle.shape != (1, dof):
        raise ShapeError(f"path: the function gives {middle.shape[1:]}, expected {dof} positions")
    if not np.isfinite(middle).all():
        raise ValueError("path: the function gives positions that are not finite numbers at s = 0.5")
    return path


def _through_values(function: Callable[[Any], Any]) -> PiecewisePolynomial:
    """Quintic pieces through values of a function that cannot be traced."""
    s = np.linspace(0.0, 1.0, CALLED)
    values = np.array([arguments.positions("path", function(float(one))) for one in s])
    centre = np.clip(np.arange(CALLED), 2, CALLED - 3)
    powers = np.einsum("pk,mkn->pmn", _TO_POWERS, values[centre[:, np.newaxis] + np.arange(-2, 3)])
    away = (np.arange(CALLED) - centre)[:, np.newaxis]
    first = powers[1] + away * (2 * powers[2] + away * (3 * powers[3] + away * 4 * powers[4]))
    second = 2 * powers[2] + away * (6 * powers[3] + away * 12 * powers[4])
    h = s[1]
    pieces = through_samples(Samples(s, values, first / h, second / h**2))
    between = 0.5 * (s[1:] + s[:-1])
    off = np.abs(
        pieces.at(between).q - [arguments.positions("path", function(float(one))) for one in between]
    )
    worst = np.unravel_index(np.argmax(off), off.shape)
    if not off[worst] <= JUMPS * np.ptp(values, axis=0).max():
        raise ValueError(
            f"path: the function jumps or changes too quickly near s = {between[worst[0]]:.4g}: joint {worst[1] + 1} "
            f"is {off[worst]:.3g} away from a smooth curve through {CALLED} of its positions"
        )
    return pieces


_TO_POWERS = np.linalg.inv(np.vander(np.arange(-2.0, 3.0), increasing=True))


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
    while isinstance(path, Trajectory) and path.along is not path:
        path = path.along
    if isinstance(path, JointPath):
        checked = path
    elif isinstance(path, Trajectory):
        checked = TrajectoryPath(path)
    elif callable(path):
        checked = function_path(path, robot.dof)
    else:
        raise TypeError(
            f"{name}: expected way-points (m, {robot.dof}), a motion or a function of a number from 0 to 1, "
            f"got {type(path).__name__}"
        )
    if checked.dof != robot.dof:
        raise ValueError(f"{name}: it has {checked.dof} joints, {robot.name} has {robot.dof}")
    return checked
