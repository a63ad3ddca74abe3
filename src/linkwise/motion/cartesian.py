"""Straight lines and circular arcs of a frame, as motions of the joints.

A path gives position and rotation at a coordinate s; a timing law gives s over time. ``following`` gives the joint
positions along the path and their derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from linkwise.errors import ShapeError
from linkwise.motion import arguments
from linkwise.motion.arguments import positions
from linkwise.motion.kinematics.following import Branch
from linkwise.motion.kinematics.rotations import rotation_vector, turn_about
from linkwise.motion.polynomial import PiecewisePolynomial, quintic, ramp
from linkwise.motion.trajectory import Moment, Trajectory
from linkwise.robot.robot import Robot


class Path(ABC):
    """Position and rotation of a frame for s from 0 to 1."""

    length: float  # [m]

    @abstractmethod
    def at(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(rotation (..., 3, 3), position (..., 3), its first and second derivative by s)."""

    turning: np.ndarray
    """The rotation vector from the begin to the end, in base axes: dR/ds = turning × R."""


class _Turning(Path):
    """What all paths share: the rotation goes from one to the other by slerp."""

    def __init__(self, first: np.ndarray, last: np.ndarray):
        self.first = first
        self.turning = rotation_vector(last @ first.T)

    def rotation(self, s: np.ndarray) -> np.ndarray:
        return turn_about(s[..., np.newaxis] * self.turning) @ self.first


class _Line(_Turning):
    def __init__(self, start: np.ndarray, end: np.ndarray):
        super().__init__(start[:3, :3], end[:3, :3])
        self.start, self.way = start[:3, 3], end[:3, 3] - start[:3, 3]
        self.length = float(np.linalg.norm(self.way))

    def at(self, s):
        way = np.broadcast_to(self.way, (*s.shape, 3))
        return self.rotation(s), self.start + s[..., np.newaxis] * way, way, np.zeros_like(way)


class _Arc(_Turning):
    def __init__(
        self, centre: np.ndarray, start: np.ndarray, axis: np.ndarray, angle: float, last: np.ndarray
    ):
        super().__init__(start[:3, :3], last)
        axis = axis / np.linalg.norm(axis)
        arm = start[:3, 3] - centre
        self.centre = centre + (arm @ axis) * axis
        self.radius = arm - (arm @ axis) * axis
        self.across = np.cross(axis, self.radius)
        self.angle = angle
        self.length = abs(angle) * float(np.linalg.norm(self.radius))

    def at(self, s):
        c, d = (f(self.angle * s)[..., np.newaxis] for f in (np.cos, np.sin))
        position = self.centre + c * self.radius + d * self.across
        velocity = self.angle * (c * self.across - d * self.radius)
        return self.rotation(s), position, velocity, -(self.angle**2) * (position - self.centre)


class CartesianMove(Trajectory):
    """A path of a frame, traversed by a timing law s(t) of one coordinate from 0 to 1.

    Args:
        robot: the robot.
        path: the path of the frame.
        timing: s(t), from 0 to 1.
        frame: the frame that follows the path; by default the only leaf.
        start: positions that are tried first at the start of the path, shape (n,).
    """

    def __init__(
        self, robot: Robot, path: Path, timing: PiecewisePolynomial, frame: str | None = None, start=None
    ):
        self.robot, self.path, self.timing, self.frame = robot, path, timing, frame
        self.dof, self.begin, self.end = robot.dof, timing.begin, timing.end
        self.branch = Branch(robot, path, frame, start)

    def pose(self, t) -> np.ndarray:
        """The pose of the frame at the times t [s]: (..., 4, 4)."""
        s = self.timing.at(t).q[..., 0]
        return _poses(*self.path.at(s)[:2])

    def corners(self) -> np.ndarray:
        return self.timing.corners()

    def _inside(self, t: np.ndarray) -> Moment:
        s, rate, change = self.timing.at(t)
        q, first, second = self.branch.at(np.clip(s[..., 0], 0.0, 1.0))
        return Moment(q, first * rate, first * change + second * rate * rate)


def line(
    robot: Robot,
    start,
    end,
    *,
    speed: float | None = None,
    duration: float | None = None,
    profile: str = "quintic",
    rotation=None,
    frame: str | None = None,
    q=None,
) -> CartesianMove:
    """A straight line of a frame.

    Args:
        robot: the robot.
        start: pose (4, 4), or point (3,) [m] with a constant ``rotation``.
        end: pose or point; between poses the frame turns evenly (slerp).
        speed: [m/s]; or give ``duration``.
        duration: [s].
        profile: "quintic" (smooth ends; ``speed`` is the mean) or "constant" (constant speed, which jumps at the ends).
        rotation: (3, 3), for example of ``euler_zyz``.
        frame: the frame; by default the only leaf.
        q: joint positions near the start, which choose the branch of the arm.
    """
    arguments.check_robot(robot)
    path = _Line(_pose("start", start, rotation), _pose("end", end, rotation))
    return CartesianMove(robot, path, _timing(path, speed, duration, profile), frame, q)


def arc(
    robot: Robot,
    start,
    *,
    centre: Sequence[float],
    axis: Sequence[float],
    angle: float,
    end_rotation=None,
    speed: float | None = None,
    duration: float | None = None,
    profile: str = "quintic",
    rotation=None,
    frame: str | None = None,
    q=None,
) -> CartesianMove:
    """A circular arc of a frame.

    Args:
        robot: the robot.
        start: pose or point, as for ``line``.
        centre: of the circle [m].
        axis: direction of its axis.
        angle: [rad].
        end_rotation: (3, 3) to which the frame turns evenly (slerp); by default the rotation stays.
        speed: as for ``line``.
        duration: as for ``line``.
        profile: as for ``line``.
        rotation: as for ``line``.
        frame: as for ``line``.
        q: as for ``line``.
    """
    arguments.check_robot(robot)
    first = _pose("start", start, rotation)
    last = first[:3, :3] if end_rotation is None else _rotation("end_rotation", end_rotation)
    direction = positions("axis", axis, 3)
    if not direction.any():
        raise ValueError("axis: expected a direction, got zeros")
    path = _Arc(
        positions("centre", centre, 3), first, direction, arguments.number("angle", angle, unit="rad"), last
    )
    if path.length == 0:
        raise ValueError("arc: the start lies on the axis, or the angle is zero")
    return CartesianMove(robot, path, _timing(path, speed, duration, profile), frame, q)


def _timing(path: Path, speed: float | None, duration: float | None, profile: str) -> PiecewisePolynomial:
    if profile not in ("quintic", "constant"):
        raise ValueError(f"profile: expected 'quintic' or 'constant', got {profile!r}")
    if (speed is None) == (duration is None):
        raise TypeError("give either a speed [m/s] or a duration [s]")
    if duration is None:
        speed = arguments.number("speed", speed, positive=True, unit="m/s")
        if path.length == 0:
            raise ValueError("speed: the frame only turns; give a duration [s] instead")
        duration = path.length / speed
    duration = arguments.duration(duration)
    return (quintic if profile == "quintic" else ramp)([0.0], [1.0], duration)


def _poses(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    T = np.zeros((*position.shape[:-1], 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = rotation, position, 1.0
    return T


def _pose(name: str, value, rotation) -> np.ndarray:
    array = arguments.finite(name, value)
    if array.shape == (4, 4) and rotation is None:
        _rotation(name, array[:3, :3])
        return array
    if array.shape == (3,) and rotation is not None:
        return _poses(_rotation("rotation", rotation), array)
    raise ShapeError(
        f"{name}: expected a pose of shape (4, 4), or a point of shape (3,) and a rotation; got {array.shape}"
    )


def _rotation(name: str, value) -> np.ndarray:
    R = arguments.finite(name, value)
    if R.shape != (3, 3):
        raise ShapeError(f"{name}: expected a rotation matrix of shape (3, 3), got {R.shape}")
    if not np.allclose(R @ R.T, np.eye(3), atol=1e-9) or np.linalg.det(R) < 0:
        raise ValueError(
            f"{name}: expected a rotation matrix, but its columns are not orthonormal and right-handed"
        )
    return R
