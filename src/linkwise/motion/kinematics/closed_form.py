"""Inverse kinematics in closed form for arms of the PUMA type: all eight solutions at once.

Such an arm has six turning joints: 2 and 3 parallel to each other and across 1, and 4, 5, 6 through one
point, each across its neighbour. Whether an arm is of that type is decided by its Jacobian at the zero position, so
any frames and offsets are allowed. With the axes at zero (screws), pose = e^{1} e^{2} … e^{6} pose₀: the wrist's
centre gives joints 1 to 3, the rotation that remains joints 4 to 6 (B. Paden's subproblems; R. Murray, Z. Li, S.
Sastry, 1994, ch. 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import ModelError
from linkwise.motion.arguments import check_robot, matrices
from linkwise.motion.kinematics.rotations import check_poses, turn_about
from linkwise.robot.robot import Robot

SAME = 1e-7  # [m, and sines of angles]: what counts as parallel, perpendicular or meeting


@dataclass(frozen=True)
class _Arm:
    """A PUMA-type arm at q = 0, in the base frame."""

    axes: np.ndarray  # unit vectors, (6, 3)
    points: np.ndarray  # one point on each axis, (6, 3)
    wrist: np.ndarray  # where axes 4, 5, 6 meet
    pose: np.ndarray  # of the frame


def closed_form_inverse_kinematics(robot: Robot, target, *, frame: str | None = None) -> np.ndarray:
    """All joint positions that bring a frame to the poses (..., 4, 4): shape (..., 8, 6), within (−π, π].

    NaN where a solution does not exist. The order is: two for the waist, two for the elbow, two for the
    wrist. In a singular pose (wrist straight, or above the waist) one of infinitely many is given. Another
    arm raises ModelError.

    Args:
        robot: an arm of the PUMA type.
        target: poses, shape (..., 4, 4).
        frame: the frame that is brought there; by default the only leaf.
    """
    check_robot(robot)
    arm = _arm(robot, frame)
    target = matrices("target", target, 4, 4)
    check_poses("target", target)
    batch = target.shape[:-2]
    T = target.reshape(-1, 4, 4)
    solutions = np.full((len(T), 2, 2, 2, 6), np.nan)
    # the wrist's centre, fixed in the frame
    centre = (
        np.einsum("bij,j->bi", T[:, :3, :3], arm.pose[:3, :3].T @ (arm.wrist - arm.pose[:3, 3])) + T[:, :3, 3]
    )
    for i, q1 in enumerate(_waist(arm, centre)):
        unturned = np.einsum("bji,bj->bi", _turn(arm, 0, q1), centre - arm.points[0]) + arm.points[0]
        for j, (q2, q3) in enumerate(_elbow(arm, unturned)):
            first = _turn(arm, 0, q1) @ _turn(arm, 1, q2) @ _turn(arm, 2, q3)
            rest = np.swapaxes(first, -1, -2) @ T[:, :3, :3] @ arm.pose[:3, :3].T
            for k, angles in enumerate(_wrist(arm, rest)):
                solutions[:, i, j, k] = np.stack([q1, q2, q3, *angles], axis=-1)
    solutions = solutions.reshape(len(T), 8, 6)
    incomplete = np.isnan(solutions).any(axis=-1, keepdims=True)
    return np.where(incomplete, np.nan, solutions).reshape(*batch, 8, 6)


def has_closed_form(robot: Robot, frame: str | None) -> bool:
    """Whether the arm is of the PUMA type, with this frame behind its wrist."""
    return not isinstance(_known_arm(robot, frame), ModelError)


def _arm(robot: Robot, frame: str | None) -> _Arm:
    arm = _known_arm(robot, frame)
    if isinstance(arm, ModelError):
        raise arm
    return arm


def _known_arm(robot: Robot, frame: str | None) -> _Arm | ModelError:
    """The arm, or why it has no closed form; found out once per robot and frame."""
    known = vars(robot).setdefault("_arms", {})
    if frame not in known:
        try:
            known[frame] = _measured_arm(robot, frame)
        except ModelError as error:
            known[frame] = error.with_traceback(None)
    return known[frame]


def _measured_arm(robot: Robot, frame: str | None) -> _Arm:
    if robot.dof != 6 or not all(joint.revolute for joint in robot.coordinate_joints):
        raise ModelError(f"{robot.name}: the closed form is for six turning joints; use inverse_kinematics")
    zero = np.zeros(6)
    pose, J = robot.pose(zero, frame), robot.jacobian(zero, frame)
    axes, velocities = J[:3].T, J[3:].T
    if np.linalg.norm(axes, axis=-1).min() < 0.5:
        raise ModelError(f"{robot.name}: the frame is not moved by all six joints; use inverse_kinematics")
    points = pose[:3, 3] + np.cross(axes, velocities)  # the point of each axis that is nearest to the frame
    scale = max(1.0, float(np.abs(points).max()))
    wrist = _meeting_point(points[3:], axes[3:])
    across = [abs(axes[i] @ axes[j]) for i, j in ((0, 1), (3, 4), (4, 5))]
    parallel = np.linalg.norm(np.cross(axes[1], axes[2]))
    off = np.linalg.norm(np.cross(axes[3:], wrist - points[3:]), axis=-1)
    if max(*across, parallel) > SAME or off.max() > SAME * scale:
        raise ModelError(
            f"{robot.name}: not an arm of the PUMA type (axes 2 and 3 parallel and across 1; 4, 5, 6 through "
            "one point, each across its neighbour); use inverse_kinematics"
        )
    return _Arm(axes, points, wrist, pose)


def _meeting_point(points: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The point nearest to several lines."""
    across = np.eye(3) - axes[:, :, np.newaxis] * axes[:, np.newaxis, :]
    return np.linalg.solve(across.sum(axis=0), np.einsum("kij,kj->i", across, points))


def _turn(arm: _Arm, joint: int, angle: np.ndarray) -> np.ndarray:
    return turn_about(angle[:, np.newaxis] * arm.axes[joint])


def _waist(arm: _Arm, centre: np.ndarray) -> list[np.ndarray]:
    """q1: joints 2 and 3 leave the wrist's coordinate along their axes what it is."""
    along, up = arm.axes[1], arm.axes[0]
    wanted = along @ (arm.wrist - arm.points[0])
    v = centre - arm.points[0]
    # along · Rᵀ v = v·along cos q + v·(up × along) sin q
    return _angles(v @ along, v @ np.cross(up, along), np.full(len(v), wanted))


def _elbow(arm: _Arm, centre: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(q2, q3): two bars in the plane across their axes. Axis 3 may run against axis 2."""
    axis = arm.axes[1]
    flat = np.eye(3) - np.outer(axis, axis)
    upper, fore = flat @ (arm.points[2] - arm.points[1]), flat @ (arm.wrist - arm.points[2])
    wanted = (centre - arm.points[1]) @ flat
    # |upper + R(q3) fore|² = |wanted|²
    left = (np.sum(wanted**2, axis=-1) - upper @ upper - fore @ fore) / 2
    one = np.ones(len(centre))
    pairs = []
    sense = float(np.sign(axis @ arm.axes[2]))
    for bend in _angles(upper @ fore * one, upper @ np.cross(axis, fore) * one, left):
        reached = upper + np.einsum("bij,j->bi", turn_about(bend[:, np.newaxis] * axis), fore)
        lift = _angle_between(reached, wanted, axis)
        pairs.append((lift, _wrapped(sense * bend)))
    return pairs


def _wrist(arm: _Arm, rotation: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(q4, q5, q6) with e^{4} e^{5} e^{6} = rotation, the three axes through one point."""
    first, second, third = arm.axes[3:]
    goal = rotation @ third
    # first · e^{5} third fixes q5; e^{4} then turns e^{5} third onto the goal
    one = np.ones(len(rotation))
    normal = np.cross(second, third)
    angles = []
    for q5 in _angles(first @ third * one, first @ normal * one, goal @ first, clip=True):
        bent = np.einsum("bij,j->bi", turn_about(q5[:, np.newaxis] * second), third)
        q4 = _angle_between(bent, goal, first)
        rest = np.swapaxes(turn_about(q5[:, np.newaxis] * second), -1, -2)
        rest = rest @ np.swapaxes(turn_about(q4[:, np.newaxis] * first), -1, -2) @ rotation
        probe = np.broadcast_to(second, goal.shape)
        q6 = _angle_between(probe, np.einsum("bij,bj->bi", rest, probe), third)
        angles.append((q4, q5, q6))
    return angles


def _angles(a: np.ndarray, b: np.ndarray, c: np.ndarray, *, clip: bool = False) -> list[np.ndarray]:
    """Both angles with a cos x + b sin x = c; NaN where there is none (``clip``: the nearest, c is a
    cosine).
    """
    size = np.hypot(a, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = c / size
        ratio = np.where(np.abs(ratio) <= 1 + 1e-9, np.clip(ratio, -1, 1), ratio)
        if clip:
            ratio = np.clip(ratio, -1, 1)
        spread = np.arccos(ratio)
    middle = np.arctan2(b, a)
    return [_wrapped(middle + spread), _wrapped(middle - spread)]


def _angle_between(v: np.ndarray, w: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The turn about the axis that brings v's part across it onto w's."""
    v, w = v - np.outer(v @ axis, axis), w - np.outer(w @ axis, axis)
    return np.arctan2(np.cross(v, w) @ axis, np.sum(v * w, axis=-1))


def _wrapped(angle: np.ndarray) -> np.ndarray:
    return np.pi - np.mod(np.pi - angle, 2 * np.pi)
