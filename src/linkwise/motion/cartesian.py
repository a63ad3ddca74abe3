"""Straight lines and circular arcs of a frame, as motions of the joints.

A path gives position and rotation at a coordinate s; a timing law gives s over time. Joint positions are
found along a grid, each from the one before, so that the arm stays on one branch; at other times the nearest
grid point starts the same iteration. Velocities and accelerations follow from the Jacobian, exactly for the
position found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from linkwise.errors import LinkwiseError, ShapeError
from linkwise.motion import arguments
from linkwise.motion.arguments import positions
from linkwise.motion.inverse import UnreachableError, inverse_kinematics
from linkwise.motion.polynomial import PiecewisePolynomial, quintic, ramp
from linkwise.motion.rotations import rotation_vector, turn_about
from linkwise.motion.trajectory import Moment, Trajectory
from linkwise.robot import Robot

GRID_POINTS = 201
SINGULAR = 1e-4  # smallest singular value of the Jacobian at which a path counts as singular
JUMP = 0.5  # [rad or m] between neighbouring grid points: the arm has changed its branch


class SingularPathError(LinkwiseError, ArithmeticError):
    """A Cartesian path passes a singular configuration; the message states where."""


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
        self.grid = np.linspace(0.0, 1.0, GRID_POINTS)
        self.grid_q = self._follow(start)

    def pose(self, t) -> np.ndarray:
        """The pose of the frame at the times t [s]: (..., 4, 4)."""
        s = self.timing.at(t).q[..., 0]
        return _poses(*self.path.at(s)[:2])

    def corners(self) -> np.ndarray:
        return self.timing.corners()

    def _follow(self, start) -> np.ndarray:
        """Joint positions along the grid, each from the one before."""
        poses = _poses(*self.path.at(self.grid)[:2])
        found = []
        q, several = start, 16
        for s, pose in zip(self.grid, poses, strict=True):
            try:
                solution = inverse_kinematics(self.robot, pose, frame=self.frame, start=q, starts=several)
            except UnreachableError as error:
                raise UnreachableError(f"no joint positions for {s:.0%} of the way: {error}") from None
            if solution.smallest_singular_value < SINGULAR:
                raise SingularPathError(
                    f"the path is singular at {s:.0%} of its way (smallest singular value "
                    f"{float(solution.smallest_singular_value):.2g}): joint speeds would be without bounds"
                )
            if found and np.abs(solution.q - found[-1]).max() > JUMP:
                raise SingularPathError(f"the joints would have to jump at {s:.0%} of the way")
            found.append(solution.q)
            q, several = solution.q if len(found) < 2 else 2 * found[-1] - found[-2], 1
        return np.array(found)

    def _inside(self, t: np.ndarray) -> Moment:
        s, rate, change = (value[..., 0] for value in self.timing.at(t))
        s = np.clip(s, 0.0, 1.0)
        rotation, position, first, second = self.path.at(s)
        guess = np.stack([np.interp(s, self.grid, column) for column in self.grid_q.T], axis=-1)
        q = inverse_kinematics(
            self.robot, _poses(rotation, position), frame=self.frame, start=guess, starts=1
        ).q
        turning = np.broadcast_to(self.path.turning, (*s.shape, 3))
        velocity = rate[..., np.newaxis] * np.concatenate([turning, first], axis=-1)
        J = self.robot.jacobian(q, self.frame)
        qd = _solve(J, velocity)
        bend = np.concatenate([np.zeros_like(turning), second], axis=-1)
        acceleration = change[..., np.newaxis] * np.concatenate([turning, first], axis=-1)
        acceleration += rate[..., np.newaxis] ** 2 * bend
        qdd = _solve(J, acceleration - bias_acceleration(J, qd))
        return Moment(q, qd, qdd)


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


def bias_acceleration(J: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """J̇ q̇ of a Jacobian (..., 6, n) in base axes, whose joints come parents first: what a frame accelerates
    with when the joints do not. Joint k turns the axes of the joints beyond it: ∂J_i/∂q_k = ω_k × J_i for k ≤
    i."""
    w, v = (np.swapaxes(part, -1, -2) for part in (J[..., :3, :], J[..., 3:, :]))  # (..., n, 3)
    rates = qd[..., np.newaxis]
    wd, vd = w * rates, v * rates
    before = np.cumsum(wd, axis=-2)  # Σ_{k ≤ i} ω_k q̇_k
    beyond = np.cumsum(vd[..., ::-1, :], axis=-2)[..., ::-1, :] - vd  # Σ_{k > i} v_k q̇_k
    angular = np.cross(before, wd).sum(axis=-2)
    linear = (np.cross(before, vd) + np.cross(wd, beyond)).sum(axis=-2)
    return np.concatenate([angular, linear], axis=-1)


def _solve(J: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The joint rates for a velocity; the smallest ones where the arm has more than six joints."""
    if J.shape[-1] == 6:
        return np.linalg.solve(J, right[..., np.newaxis])[..., 0]
    return (np.linalg.pinv(J) @ right[..., np.newaxis])[..., 0]


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
