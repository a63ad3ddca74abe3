"""Positions that bring several frames of a robot to targets at once; the base may move."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import ShapeError
from linkwise.model.checks import check_outside_loops
from linkwise.motion import arguments
from linkwise.motion.kinematics.damped_least_squares import Goal
from linkwise.motion.kinematics.inverse import UnreachableError
from linkwise.motion.kinematics.restarts import restarted, restarting_frames
from linkwise.motion.kinematics.rotations import check_poses
from linkwise.robot.robot import Robot


@dataclass(frozen=True, repr=False)
class FramesSolution(Summarised):
    """Positions for targets of several frames, and how good they are; leading axes as those of the targets."""

    q: np.ndarray
    """[rad or m], shape (..., nq)."""
    frames: tuple[str, ...]
    """In the order of the errors."""
    position_error: np.ndarray
    """Distances from the targets [m], shape (..., frames)."""
    rotation_error: np.ndarray
    """Angles to the targets [rad], shape (..., frames); 0 for points."""
    converged: np.ndarray
    """Whether all errors are within the tolerance, shape (...)."""

    def _summary(self) -> Summary:
        reached = f"{int(self.converged.sum())} of {self.converged.size} reached"
        linear = self.position_error.reshape(-1, len(self.frames)).max(axis=0, initial=0.0)
        angular = self.rotation_error.reshape(-1, len(self.frames)).max(axis=0, initial=0.0)
        rows = [[name, linear[k], angular[k]] for k, name in enumerate(self.frames)]
        columns = ("frame", ">largest position error [m]", ">largest rotation error [rad]")
        return Summary(f"Targets of {len(self.frames)} frames: {reached}", columns, rows)


def reach_frames(
    robot: Robot,
    targets: Mapping[str, Any],
    *,
    start: Any = None,
    limits: bool = True,
    starts: int = 32,
    iterations: int = 100,
    tolerance: float = 1e-9,
    strict: bool = True,
    seed: int = 0,
) -> FramesSolution:
    """Positions that bring several frames to their targets at once.

    The iteration starts at ``start`` and stays near it where it can. Further starts draw joints with one coordinate; a
    moving base begins where ``start`` has it.

    Args:
        robot: the robot; its base may move, and joints may have several axes.
        targets: for each frame poses, shape (..., 4, 4), or points [m], shape (..., 3).
        start: positions, shape (..., nq); by default the robot's neutral position, moved into the limits.
        limits: whether the result must be within the joint limits.
        starts: number of starting positions.
        iterations: most steps from each.
        tolerance: [m and rad].
        strict: False gives the last position where a target is not reached.
        seed: of the further starts.

    Raises:
        UnreachableError: targets are not reached; the message says which frame and by how much.
        ModelError: joints that would move are held by a constraint of the robot.
    """
    if not isinstance(robot, Robot):
        raise TypeError(f"robot: expected a Robot, got {type(robot).__name__}")
    limits, strict = flag("limits", limits), flag("strict", strict)
    starts, iterations = arguments.whole("starts", starts, 1), arguments.whole("iterations", iterations, 1)
    tolerance = arguments.number("tolerance", tolerance, positive=True)
    seed = arguments.whole("seed", seed, 0)
    if not isinstance(targets, Mapping) or not targets:
        raise ValueError("targets: expected a dictionary of frames and their poses or points")
    frames, parts, batch = _targets(targets)
    goal = Goal(robot, frames)
    check_outside_loops(robot, "inverse kinematics", list(targets))
    rows = np.concatenate([np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], axis=-1)
    rows = np.ascontiguousarray(rows).reshape(math.prod(batch), -1)
    lower, upper = robot.limits.lower, robot.limits.upper
    if not limits:
        lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    first = (
        np.clip(robot.neutral, lower, upper)
        if start is None
        else arguments.matrices("start", start, robot.nq)
    )
    try:
        first = np.array(np.broadcast_to(first, (*batch, robot.nq))).reshape(-1, robot.nq)
    except ValueError:
        raise ShapeError(
            f"start: expected a shape that broadcasts to {(*batch, robot.nq)}, got {first.shape}"
        ) from None
    ranges = (lower, upper, *_draws(robot, goal, first))
    length = _length(robot, goal, first)
    numbers = (length, 0.01 * tolerance, iterations, starts, seed)
    q, error = restarted(restarting_frames(robot, frames), first, rows, ranges, numbers)
    linear, angular = _errors(goal, error)
    converged = np.asarray((linear <= tolerance).all(axis=1) & (angular <= tolerance).all(axis=1))
    if strict and not converged.all():
        row = int(np.flatnonzero(~converged)[0])
        worst = int(np.argmax(linear[row] + angular[row]))
        raise UnreachableError(
            f"frame {frames[worst][0]} was not brought to its target in {starts} starts; {linear[row, worst]:.3g} m "
            f"and {angular[row, worst]:.3g} rad are left; {int((~converged).sum())} of {len(converged)} not reached"
        )
    names = tuple(str(frame) for frame, _ in frames)
    shaped = [a.reshape(*batch, -1) for a in (q, linear, angular)]
    return FramesSolution(shaped[0], names, shaped[1], shaped[2], converged.reshape(batch))


def _targets(
    targets: Mapping[str, Any],
) -> tuple[tuple[tuple[str | None, str], ...], list[np.ndarray], tuple[int, ...]]:
    """(frames with their tasks, targets as rows, leading axes)."""
    frames: list[tuple[str | None, str]] = []
    parts: list[np.ndarray] = []
    for frame, value in targets.items():
        array = arguments.finite(f"targets[{frame!r}]", value)
        if array.shape[-2:] == (4, 4):
            check_poses(f"targets[{frame!r}]", array)
            frames.append((frame, "pose"))
            parts.append(array[..., :3, :].reshape(*array.shape[:-2], 12))
        elif array.shape[-1:] == (3,):
            frames.append((frame, "position"))
            parts.append(array)
        else:
            raise ShapeError(f"targets[{frame!r}]: expected shape (..., 4, 4) or (..., 3), got {array.shape}")
    try:
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    except ValueError:
        shapes = ", ".join(str(part.shape[:-1]) for part in parts)
        raise ShapeError(f"targets: expected leading axes that broadcast, got {shapes}") from None
    return tuple(frames), parts, batch


def _draws(robot: Robot, goal: Goal, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the range of further starts, (targets, nq): the first start for joints with several axes."""
    low, high = first.copy(), first.copy()
    turns = [joint.revolute for joint in robot.coordinate_joints for _ in range(joint.dof)]
    for place, turning in zip(goal.places, turns, strict=True):
        if place is None:
            continue
        half = np.pi if turning else 1.0
        a, b = robot.limits.lower[place], robot.limits.upper[place]
        low[:, place], high[:, place] = a if np.isfinite(a) else -half, b if np.isfinite(b) else half
    return low, high


def _length(robot: Robot, goal: Goal, first: np.ndarray) -> float:
    """The length at which an angle counts as a distance [m]: the longest lever of a joint."""
    if not len(first):
        return 1.0
    levers = [np.asarray(robot.jacobian(first[0], frame))[3:] for frame, _ in goal.frames]
    reach = max(float(np.sqrt((J * J).sum(axis=0)).max(initial=0.0)) for J in levers)
    return reach if reach > 0.0 else 1.0


def _errors(goal: Goal, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distances, angles) of all frames, (targets, frames)."""
    linear, angular, at = [], [], 0
    for rows in goal.rows:
        part = error[:, at : at + rows]
        linear.append(np.sqrt((part[:, -3:] ** 2).sum(axis=1)))
        angular.append(np.sqrt((part[:, :-3] ** 2).sum(axis=1)))
        at += rows
    return np.stack(linear, axis=1), np.stack(angular, axis=1)
