"""Inverse kinematics of any arm: damped least squares from many starts, many targets at once.

T. Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg–Marquardt method", IEEE Trans.
Robotics 27(5), 2011: the damping grows with the error that is left, so that the iteration is stable at
singular and out-of-reach poses and quadratic near a solution. A joint at its limit is left out while the step
pushes it further. Starts run side by side, in rounds of growing size; a target's other starts end with the
first one that arrives. Arms of the PUMA type start from their closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import LinkwiseError, ModelError, ShapeError
from linkwise.flags import flag
from linkwise.model.checks import check_moves
from linkwise.motion import arguments
from linkwise.motion import starts as starting
from linkwise.motion.rotations import check_poses, rotation_vector
from linkwise.robot import Robot
from linkwise.summaries import Summarised, Summary

SMALLEST_DAMPING = 1e-12  # of squared lengths [m²]: far below what matters, far above round-off
STALLED = 1e-13  # [rad or m]: a step this short makes no progress
ROUNDS = (7, 24)  # starts per target of the first rounds after the first start; then all others
PATIENCE = 8  # iterations after which a start that has not halved its cost is left
PAIRS = 20_000  # targets times starts that run side by side: bounds the memory


class UnreachableError(LinkwiseError, ValueError):
    """No joint position was found for a pose; the message states what is left over."""


@dataclass(frozen=True, repr=False)
class Solution(Summarised):
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

    def _summary(self) -> Summary:
        batch, n = self.converged.shape, self.q.shape[-1]
        q, linear, angular = self.q.reshape(-1, n), self.position_error.ravel(), self.rotation_error.ravel()
        rows = [
            [k, found, linear[k], angular[k], *q[k]]
            for k, found in enumerate(self.converged.ravel().tolist())
        ]
        errors = (">position error [m]", ">rotation error [rad]")
        reached = f"{int(self.converged.sum())} of {len(rows)} targets reached" if batch else "one target"
        columns = ("target", "reached", *errors, *(f">q{j + 1}" for j in range(n)))
        return Summary(f"Solution of inverse kinematics: {reached}", columns, rows)


def inverse_kinematics(
    robot: Robot,
    target,
    *,
    frame: str | None = None,
    start=None,
    task: str = "pose",
    limits: bool = True,
    starts: int = 128,
    iterations: int = 100,
    tolerance: float = 1e-9,
    strict: bool = True,
    seed: int = 0,
) -> Solution:
    """Joint positions that bring a frame to target poses.

    Args:
        robot: the robot.
        target: poses, (..., 4, 4), or points, (..., 3), with ``task="position"``.
        frame: the frame; by default the only leaf.
        start: positions (..., n) that are tried first; then the closed form where the arm has one, then random
            positions, those nearest to the target first.
        task: "pose" or "position".
        limits: whether the result must be within the joint limits.
        starts: number of starting positions.
        iterations: most steps from each.
        tolerance: [m and rad].
        strict: False gives the nearest position found where the target is not reached.
        seed: of the random positions.

    Returns:
        Positions with their errors.

    Raises:
        UnreachableError: a target is not reached; the message has the remaining error.
    """
    arguments.check_robot(robot)
    check_moves(robot)
    if task not in ("pose", "position"):
        raise ValueError(f"task: expected 'pose' or 'position', got {task!r}")
    limits, strict = flag("limits", limits), flag("strict", strict)
    starts, iterations = arguments.whole("starts", starts, 1), arguments.whole("iterations", iterations, 1)
    tolerance = arguments.number("tolerance", tolerance, positive=True)
    seed = arguments.whole("seed", seed, 0)
    if robot.nq != robot.dof:
        raise ModelError(f"{robot.name}: inverse kinematics is for joints with one coordinate each")
    shape = (4, 4) if task == "pose" else (3,)
    target = _targets(target, task, shape)
    if task == "pose":
        check_poses("target", target)
    batch = target.shape[: target.ndim - len(shape)]
    problem = _Problem(robot, target.reshape(-1, *shape), frame, task, limits, tolerance)
    first = _first_start(robot, start, batch, problem)
    q = problem.solve(first, start is not None, starts, iterations, seed)
    error = problem.residual(q)
    linear, angular = problem.sizes(error)
    converged = (linear <= tolerance) & (angular <= tolerance)
    if strict and not converged.all():
        _complain(problem, converged, linear, angular, batch, starts)
    singular = np.linalg.svd(problem.jacobian(q), compute_uv=False)[..., -1]
    return Solution(*(a.reshape((*batch, *a.shape[1:])) for a in (q, linear, angular, converged, singular)))


def _targets(target: Any, task: str, shape: tuple[int, ...]) -> np.ndarray:
    """The targets, checked; points or poses that belong to the other task say so."""
    try:
        return arguments.matrices("target", target, *shape)
    except ShapeError as error:
        given = np.shape(target)
        other = {(3,): "position", (4, 4): "pose"}.get(given[-1:] if given[-1:] == (3,) else given[-2:])
        if other is not None and other != task:
            what = "a point" if other == "position" else "a pose"
            raise ShapeError(f"{error}; for {what} give task={other!r}") from None
        raise ShapeError(
            f"{error}; a pose is a 4×4 matrix as robot.pose(q) gives it, a point has three numbers and task='position'"
        ) from None


class _Problem:
    """The targets as rows, and what is known of the robot."""

    def __init__(
        self, robot: Robot, targets: np.ndarray, frame: str | None, task: str, limits: bool, tolerance: float
    ):
        self.robot, self.targets, self.frame, self.task = robot, targets, frame, task
        self.limits, self.tolerance = limits, tolerance
        joints = robot.coordinate_joints
        self.lower = np.array([joint.limits.lower if limits else -np.inf for joint in joints])
        self.upper = np.array([joint.limits.upper if limits else np.inf for joint in joints])
        # errors in metres: an angle counts as the path of a point at the arm's length
        levers = np.linalg.norm(robot.jacobian(np.zeros(robot.dof), frame)[3:], axis=0)
        reach = levers.max(initial=0.0)
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

    def arrived(self, error: np.ndarray) -> np.ndarray:
        linear, angular = self.sizes(error)
        return (linear <= self.tolerance) & (angular <= self.tolerance)

    def solve(self, first: np.ndarray, given: bool, starts: int, iterations: int, seed: int) -> np.ndarray:
        """The best q of every target."""
        if not len(first):
            return first
        best = first.copy()
        if given or starts == 1:
            best = self.improved(first, np.arange(len(first)), iterations, leave=starts > 1)
        left = self.left(best)
        if left.size and self.task == "pose":
            known = starting.by_closed_form(
                self.robot, self.targets[left], self.frame, best[left], self.limits
            )
            if known is not None:
                found = ~np.isnan(known).any(axis=-1)
                self.keep_better(best, left[found], self.improved(known[found], left[found], iterations))
                left = self.left(best)
        library = None
        done = 1 if given else 0
        for size in (*ROUNDS, starts):
            size = min(size, starts - done)
            if not left.size or size <= 0:
                break
            if library is None:
                library = starting.Library(self.robot, self.frame, self.length, max(2048, 2 * starts), seed)
            for rows in np.array_split(left, -(-left.size * size // PAIRS)):
                chosen = library.nearest(self.targets[rows], done, size)
                if done == 0:
                    chosen[:, 0] = first[rows]
                pairs = np.repeat(rows, size)
                candidates = self.improved(chosen.reshape(-1, self.robot.dof), pairs, iterations, leave=True)
                cost = self.cost(self.residual(candidates, pairs)).reshape(-1, size)
                nearest = size * np.arange(rows.size) + np.argmin(cost, axis=1)
                self.keep_better(best, rows, candidates[nearest])
            done += size
            left = self.left(best)
        if left.size and starts > 1:  # the nearest position found
            self.keep_better(best, left, self.improved(best[left], left, iterations))
        return best

    def left(self, q: np.ndarray) -> np.ndarray:
        """The targets that are not reached yet."""
        return np.flatnonzero(~self.arrived(self.residual(q)))

    def keep_better(self, best: np.ndarray, rows: np.ndarray, candidates: np.ndarray) -> None:
        """Put the candidates that are nearer to the targets ``rows``, within the limits, in place of the best."""
        if not rows.size:
            return
        old = np.clip(best[rows], self.lower, self.upper)
        nearer = self.cost(self.residual(candidates, rows)) < self.cost(self.residual(old, rows))
        best[rows] = np.where(nearer[:, np.newaxis], candidates, old)

    def cost(self, error: np.ndarray) -> np.ndarray:
        return np.sum((self.weights() * error) ** 2, axis=-1)

    def improved(
        self, q: np.ndarray, rows: np.ndarray, iterations: int, *, leave: bool = False
    ) -> np.ndarray:
        """The iteration, for the targets ``rows``; a step that increases the error is undone and damped more.
        ``leave``: a start ends when another of its target has arrived, or when it makes no progress.
        """
        w = self.weights()
        q = np.clip(q, self.lower, self.upper)
        error = self.residual(q, rows)
        cost = self.cost(error)
        trust = np.ones(len(q))
        going = np.arange(len(q))
        before = cost.copy()
        reached = np.zeros(len(self.targets), dtype=bool)
        for count in range(1, iterations + 1):
            linear, angular = self.sizes(error[going])
            enough = 0.01 * self.tolerance
            open_ = (linear > enough) | (angular > enough)
            if leave:
                reached[rows[going[~open_]]] = True
                open_ &= ~reached[rows[going]]
            going = going[open_]
            if leave and count % PATIENCE == 0:
                going = going[cost[going] < 0.5 * before[going]]
                before[going] = cost[going]
            if not going.size:
                break
            step = self.step(q[going], w * error[going], w, trust[going] * cost[going] + SMALLEST_DAMPING)
            new = np.clip(q[going] + step, self.lower, self.upper)
            found = self.residual(new, rows[going])
            new_cost = self.cost(found)
            improved = new_cost < cost[going]
            accepted = going[improved]
            q[accepted], error[accepted], cost[accepted] = new[improved], found[improved], new_cost[improved]
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
    array = arguments.matrices("start", start, robot.dof)
    try:
        rows = np.broadcast_to(array, (*batch, robot.dof))
    except ValueError:
        raise ShapeError(
            f"start: expected a shape that broadcasts to {(*batch, robot.dof)}, got {array.shape}"
        ) from None
    return np.array(rows).reshape(math.prod(batch), robot.dof)


def _complain(problem: _Problem, converged, linear, angular, batch: tuple[int, ...], starts: int) -> None:
    worst = int(np.argmax(np.where(converged, -1.0, linear + angular)))
    place = f" {[int(k) for k in np.unravel_index(worst, batch)]}" if batch else ""
    left = f"{linear[worst]:.3g} m" + ("" if problem.task == "position" else f" and {angular[worst]:.3g} rad")
    others = int((~converged).sum()) - 1
    more = f"; {others} more targets are not reached" if others else ""
    target = problem.targets[worst]
    centre, reach = starting.reach(problem.robot, problem.frame, problem.limits)
    distance = float(np.linalg.norm((target if problem.task == "position" else target[:3, 3]) - centre))
    if distance > reach * (1 + 1e-9) + problem.tolerance:
        said = f"is out of reach: {distance:.4g} m from the first joint, and the links reach {reach:.4g} m"
    else:
        within = " within the limits" if problem.limits else ""
        said = f"was not found{within} in {starts} start{'' if starts == 1 else 's'}"
    raise UnreachableError(f"target{place} {said}; the nearest position found leaves {left}{more}")
