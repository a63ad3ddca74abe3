"""Which arms have inverse kinematics in closed form: found out from the axes of their joints at the zero position.

With the axes at zero as screws, pose = e₁ e₂ … e₆ pose₀. An arm has a closed form if, read from the base or from the
tool, its axes 4, 5, 6 meet in a point and 2 is parallel to 3 or meets 1; or if 2, 3, 4 are parallel and 5 meets 6. An
arm of seven joints has one if that holds with one joint at any fixed position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import ModelError
from linkwise.motion.kinematics.rotations import turn_about
from linkwise.robot.kernels import made_once
from linkwise.robot.robot import Robot

SAME = 1e-7  # [m, and sines of angles]: what counts as parallel, perpendicular or meeting
AGREES = 1e-9  # [m and rad]: the product of screws and the robot's pose
WRIST_PARALLEL, WRIST_MEETING, THREE_PARALLEL = (
    "wrist, 2 and 3 parallel",
    "wrist, 1 meets 2",
    "2, 3, 4 parallel",
)
_LOCKED = (2, 6, 0, 4, 3, 1, 5)  # order in which joints of seven are tried


@dataclass(frozen=True)
class Arm:
    """An arm with a closed form, at q = 0, in the base frame."""

    kind: str
    axes: np.ndarray  # unit vectors, (6 or 7, 3)
    points: np.ndarray  # one point on each axis, (6 or 7, 3)
    pose: np.ndarray  # of the frame
    coordinates: tuple[int, ...]  # of the robot, one for each axis
    locked: int | None = None  # the axis of seven that stays where it is given
    reversed: bool = False  # read from the tool to the base


def known_arm(robot: Robot, frame: str | None) -> Arm | ModelError:
    """The arm, or why it has no closed form; found out once per robot and frame."""
    return made_once(robot, ("arm", frame), lambda own: _measured(own, frame))


def _measured(robot: Robot, frame: str | None) -> Arm | ModelError:
    try:
        return _arm_of(robot, frame)
    except ModelError as error:
        return error.with_traceback(None)


def _arm_of(robot: Robot, frame: str | None) -> Arm:
    zero = np.zeros(robot.dof)
    pose, J = np.asarray(robot.pose(zero, frame)), np.asarray(robot.jacobian(zero, frame))
    moved = tuple(int(k) for k in np.flatnonzero(np.abs(J).max(axis=0, initial=0.0) > 1e-12))
    turning = all(robot.coordinate_joints[k].revolute for k in moved)
    if len(moved) not in (6, 7) or not turning:
        raise ModelError(
            f"{robot.name}: the closed form is for six or seven turning joints; use inverse_kinematics"
        )
    axes, velocities = J[:3, moved].T, J[3:, moved].T
    points = pose[:3, 3] + np.cross(axes, velocities)  # the point of each axis that is nearest to the frame
    arm = Arm("", axes, points, pose, moved)
    _check_screws(robot, frame, arm)
    for locked in (None,) if len(moved) == 6 else _LOCKED:
        for backwards in (False, True):
            kinds = {kind_of(*chain(arm, locked, angle, backwards)) for angle in (0.37, -1.21)}
            if len(kinds) == 1 and (kind := kinds.pop()) is not None:
                return Arm(kind, axes, points, pose, moved, locked, backwards)
    raise ModelError(
        f"{robot.name}: no closed form (axes 4, 5, 6 through one point with 2 parallel to 3 or meeting 1, of the PUMA"
        " type; or 2, 3, 4 parallel with 5 meeting 6; from either end); use inverse_kinematics"
    )


def _check_screws(robot: Robot, frame: str | None, arm: Arm) -> None:
    """Refuse robots whose pose is not the product of these screws, such as those with coupled joints."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = rng.uniform(-1.0, 1.0, robot.dof)
        R, p = np.eye(3), np.zeros(3)
        for axis, point, k in zip(arm.axes, arm.points, arm.coordinates, strict=True):
            turn = turn_about(q[k] * axis)
            R, p = R @ turn, p + R @ (point - turn @ point)
        expected = np.asarray(robot.pose(q, frame))
        off = max(
            np.abs(R @ arm.pose[:3, :3] - expected[:3, :3]).max(),
            np.abs(p + R @ arm.pose[:3, 3] - expected[:3, 3]).max(),
        )
        if not off <= AGREES:
            raise ModelError(
                f"{robot.name}: the closed form is for a plain chain of joints; use inverse_kinematics"
            )


def chain(arm: Arm, locked: int | None, angle: float, backwards: bool) -> tuple[np.ndarray, np.ndarray]:
    """(axes, points) of six joints, with one of seven at an angle; from the tool, if so."""
    axes, points = arm.axes, arm.points
    if locked is not None:
        turn, centre = turn_about(angle * axes[locked]), points[locked]
        after = slice(locked + 1, None)
        axes = np.concatenate([axes[:locked], axes[after] @ turn.T])
        points = np.concatenate([points[:locked], (points[after] - centre) @ turn.T + centre])
    return (-axes[::-1], points[::-1]) if backwards else (axes, points)


def kind_of(axes: np.ndarray, points: np.ndarray) -> str | None:
    """The closed form of six axes, or None."""
    scale = max(1.0, float(np.abs(points - points.mean(axis=0)).max()))

    def parallel(i: int, j: int) -> bool:
        return bool(np.linalg.norm(np.cross(axes[i], axes[j])) < SAME)

    def meet(i: int, j: int) -> bool:
        normal = np.cross(axes[i], axes[j])
        return bool(not parallel(i, j) and abs(normal @ (points[j] - points[i])) < SAME * scale)

    if not parallel(3, 4) and not parallel(4, 5):
        wrist = meeting_point(points[3:], axes[3:])
        off = np.linalg.norm(np.cross(axes[3:], wrist - points[3:]), axis=-1)
        if off.max() < SAME * scale:
            if parallel(1, 2) and not parallel(0, 1):
                return WRIST_PARALLEL
            if meet(0, 1) and not parallel(1, 2):
                return WRIST_MEETING
    if parallel(1, 2) and parallel(1, 3) and meet(4, 5) and not parallel(0, 1) and not parallel(3, 4):
        return THREE_PARALLEL
    return None


def meeting_point(points: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The point nearest to several lines."""
    across = np.eye(3) - axes[:, :, np.newaxis] * axes[:, np.newaxis, :]
    return np.linalg.solve(across.sum(axis=0), np.einsum("kij,kj->i", across, points))
