"""Inverse kinematics of any arm: damped least squares from several starts, many targets at once.

T. Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg–Marquardt method", IEEE Trans.
Robotics 27(5), 2011: the damping grows with the error that is left, so that the iteration is stable at
singular and out-of-reach poses and quadratic near a solution. A joint at its limit is left out while the step
pushes it further.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import LinkwiseError, ShapeError
from linkwise.model.checks import check_moves
from linkwise.motion.rotations import check_poses, rotation_vector
from linkwise.robot import Robot

SMALLEST_DAMPING = 1e-12  # of squared lengths [m²]: far below what matters, far above round-off
STALLED = 1e-13  # [rad or m]: a step this short leads nowhere


class UnreachableError(LinkwiseError, ValueError):
    """No joint position reaches a pose; the message states what is left over."""


@dataclass(frozen=True)
class Solution:
    """Joint positions for poses, and how good they are; leading axes as those of the targets."""

    q: np.ndarray
    """[rad or m], shape (..., n)."""
    position_error: np.ndarray
    """Distance from the target [m], shape (...)."""
    rotation_error: np.ndarray
    """Angle to the target [rad], shape (...); 0 where only positions were asked for."""
    converged: np.ndarray
    """Whether both errors are within the tolerance, shape (...)."""
    smallest_singular_value: np.ndarray
    """Of the Jacobian (angular part in rad, linear in m), shape (...): next to 0 the arm is singular."""


def inverse_kinematics(
    robot: Robot,
    target,
    *,
    frame: str | None = None,
    start=None,
    task: str = "pose",
    limits: bool = True,
    starts: int = 16,
    iterations: int = 100,
    tolerance: float = 1e-9,
    strict: bool = True,
    seed: int = 0,
) -> Solution:
    """Joint positions that bring a frame to the target poses, (..., 4, 4), or ``task="position"``: to points,
    (..., 3).

    ``start`` (..., n) is tried first, then random positions within the limits (``starts`` in all); with
    ``limits`` the result lies within the joint limits. ``tolerance`` in m and rad. A target that is not
    reached raises UnreachableError with what is left over; ``strict=False`` gives the nearest position found
    instead.
    """
    check_moves(robot)
    if task not in ("pose", "position"):
        raise ValueError(f"task: expected 'pose' or 'position', got {task!r}")
    shape = (4, 4) if task == "pose" else (3,)
    target = np.asarray(target, dtype=float)
    if target.shape[target.ndim - len(shape) :] != shape:
        raise ShapeError(f"target: expected shape (..., {', '.join(map(str, shape))}), got {target.shape}")
    if not np.isfinite(target).all():
        raise ValueError("target: expected finite numbers")
    if task == "pose":
        check_poses("target", target)
    batch = target.shape[: target.ndim - len(shape)]
    problem = _Problem(robot, target.reshape(-1, *shape), frame, task, limits)
    q, error = problem.solve(_first_start(robot, start, batch, problem), starts, iterations, tolerance, seed)
    linear, angular = problem.sizes(error)
    converged = (linear <= tolerance) & (angular <= tolerance)
    if strict and not converged.all():
        _complain(converged, linear, angular, batch, task)
    singular = np.linalg.svd(problem.jacobian(q), compute_uv=False)[..., -1]
    return Solution(*(a.reshape((*batch, *a.shape[1:])) for a in (q, linear, angular, converged, singular)))


class _Problem:
    """The targets as rows, and what is known of the robot."""

    def __init__(self, robot: Robot, targets: np.ndarray, frame: str | None, task: str, limits: bool):
        self.robot, self.targets, self.frame, self.task = robot, targets, frame, task
        joints = robot.coordinate_joints
        self.lower = np.array([joint.limits.lower if limits else -np.inf for joint in joints])
        self.upper = np.array([joint.limits.upper if limits else np.inf for joint in joints])
        # errors in metres: an angle counts as the way of a point at the arm's length
        reach = np.linalg.norm(robot.jacobian(np.zeros(robot.dof), frame)[3:], axis=0).max()
        self.length = float(reach) if reach > 0 else 1.0

    def residual(self, q: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(angular, linear) from where the frame is to where it should be, base axes, shape (..., 6 or 3)."""
        pose = self.robot.pose(q, self.frame)
        wanted = self.targets[rows]
        if self.task == "position":
            return wanted - pose[:, :3, 3]
        turn = wanted[:, :3, :3] @ np.swapaxes(pose[:, :3, :3], -1, -2)
        return np.concatenate([rotation_vector(turn), wanted[:, :3, 3] - pose[:, :3, 3]], axis=-1)

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        J = self.robot.jacobian(q, self.frame)
        return J[:, 3:] if self.task == "position" else J

    def sizes(self, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        linear = np.linalg.norm(error[:, -3:], axis=-1)
        angular = np.linalg.norm(error[:, :-3], axis=-1) if error.shape[1] == 6 else np.zeros_like(linear)
        return linear, angular

    def weights(self) -> np.ndarray:
        return np.ones(3) if self.task == "position" else np.r_[np.full(3, self.length), np.ones(3)]

    def random(self, count: int, rng: np.random.Generator) -> np.ndarray:
        turns = np.array([joint.revolute for joint in self.robot.coordinate_joints])
        lower = np.where(np.isfinite(self.lower), self.lower, np.where(turns, -np.pi, -1.0))
        upper = np.where(np.isfinite(self.upper), self.upper, np.where(turns, np.pi, 1.0))
        return rng.uniform(lower, upper, (count, self.robot.dof))

    def solve(self, first: np.ndarray, starts: int, iterations: int, tolerance: float, seed: int):
        """The best q and its residual of every target."""
        rng = np.random.default_rng(seed)
        best = self.improved(first, np.arange(len(first)), iterations, tolerance)
        error = self.residual(best)
        for _ in range(starts - 1):
            linear, angular = self.sizes(error)
            left = np.flatnonzero((linear > tolerance) | (angular > tolerance))
            if not left.size:
                break
            candidate = self.improved(self.random(left.size, rng), left, iterations, tolerance)
            found = self.residual(candidate, left)
            better = self.cost(found) < self.cost(error[left])
            best[left[better]], error[left[better]] = candidate[better], found[better]
        return best, error

    def cost(self, error: np.ndarray) -> np.ndarray:
        return np.sum((self.weights() * error) ** 2, axis=-1)

    def improved(self, q: np.ndarray, rows: np.ndarray, iterations: int, tolerance: float) -> np.ndarray:
        """The iteration, for the targets ``rows``; a step that makes things worse is taken back and damped
        more.
        """
        w = self.weights()
        q = np.clip(q, self.lower, self.upper)
        error = self.residual(q, rows)
        cost = self.cost(error)
        trust = np.ones(len(q))
        going = np.arange(len(q))
        for _ in range(iterations):
            linear, angular = self.sizes(error[going])
            going = going[(linear > 0.01 * tolerance) | (angular > 0.01 * tolerance)]
            if not going.size:
                break
            step = self.step(q[going], w * error[going], w, trust[going] * cost[going] + SMALLEST_DAMPING)
            new = np.clip(q[going] + step, self.lower, self.upper)
            found = self.residual(new, rows[going])
            improved = self.cost(found) < cost[going]
            accepted = going[improved]
            q[accepted], error[accepted], cost[accepted] = (
                new[improved],
                found[improved],
                self.cost(found[improved]),
            )
            trust[going] = np.where(improved, np.maximum(trust[going] / 4, 1e-9), trust[going] * 8)
            stalled = ~improved & (np.abs(step).max(axis=-1) < STALLED)
            going = going[~stalled]
        return q

    def step(self, q: np.ndarray, error: np.ndarray, w: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """(JᵀJ + λ)⁻¹ Jᵀ e; a second time without the joints that would be pushed beyond a limit they are
        at.
        """
        J = w[:, np.newaxis] * self.jacobian(q)
        right = np.einsum("bij,bi->bj", J, error)
        held, step = np.zeros(q.shape, dtype=bool), np.zeros(q.shape)
        for _ in range(2):
            free = np.where(held, 0.0, 1.0)
            A = np.einsum("bij,bik->bjk", J, J) * (free[:, :, np.newaxis] * free[:, np.newaxis, :])
            diagonal = np.arange(q.shape[1])
            A[:, diagonal, diagonal] += damping[:, np.newaxis] + (1.0 - free)
            step = np.linalg.solve(A, (free * right)[..., np.newaxis])[..., 0]
            outward = ((q <= self.lower) & (step < 0)) | ((q >= self.upper) & (step > 0))
            if not outward.any():
                break
            held |= outward
        return np.where(held, 0.0, step)


def _first_start(robot: Robot, start, batch: tuple[int, ...], problem: _Problem) -> np.ndarray:
    if start is None:
        limited = np.isfinite(problem.lower) & np.isfinite(problem.upper)
        middle = np.where(limited, problem.lower, 0.0) / 2 + np.where(limited, problem.upper, 0.0) / 2
        start = middle + 0.1  # a stretched arm is singular: lean each joint a little
    array = np.asarray(start, dtype=float)
    if array.shape[-1:] != (robot.dof,):
        raise ShapeError(f"start: expected shape (..., {robot.dof}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("start: expected finite numbers")
    return np.array(np.broadcast_to(array, (*batch, robot.dof))).reshape(-1, robot.dof)


def _complain(converged, linear, angular, batch: tuple[int, ...], task: str) -> None:
    worst = int(np.argmax(np.where(converged, -1.0, linear + angular)))
    place = f" {[int(k) for k in np.unravel_index(worst, batch)]}" if batch else ""
    left = f"{linear[worst]:.3g} m" + ("" if task == "position" else f" and {angular[worst]:.3g} rad")
    others = int((~converged).sum()) - 1
    more = f"; {others} more targets are not reached" if others else ""
    raise UnreachableError(
        f"target{place} is out of reach within the limits: the nearest position found leaves {left}{more}"
    )
