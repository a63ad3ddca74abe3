"""Inverse kinematics of any arm: its closed form where it has one, else damped least squares from many starts.

Many targets are solved at once, by the kernels that solve one: ``closed_form``, then ``restarts``, from one start after
the other. Targets that are still left have starts side by side, those nearest to the target first, in rounds of growing
size; a target's other starts end with the first one that arrives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.collision.validity.validity import Validity, validity_of
from linkwise.collision.world import World
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import ArgumentError, LinkwiseError, ModelError, ShapeError
from linkwise.model.checks import check_moves, check_outside_loops
from linkwise.motion import arguments
from linkwise.motion.kinematics import starts as starting
from linkwise.motion.kinematics.closed_form import CLOSEST, FAR, SPREAD, has_closed_form, nearest_kernel
from linkwise.motion.kinematics.damped_least_squares import iteration
from linkwise.motion.kinematics.free_space import FreeSpace
from linkwise.motion.kinematics.restarts import PATIENCE, restarted, restarting
from linkwise.motion.kinematics.rotations import check_poses
from linkwise.robot.kernels import made_once
from linkwise.robot.robot import Robot

ROUNDS = (7, 24)  # starts per target of the first rounds after the first start; then all others
RESTARTS = 32  # starts of a target one after the other, before rounds of starts side by side
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
    """Whether both errors are within the tolerance, shape (...); with ``world=`` also whether nothing is touched."""
    robot: Robot = field(repr=False, compare=False)
    """The robot."""
    frame: str | None = None
    """Its frame that was brought to the targets; None: the only leaf."""
    task: str = "pose"
    """"pose" or "position"."""

    @property
    def smallest_singular_value(self) -> np.ndarray:
        """Of the Jacobian (angular part in rad, linear in m), shape (...): next to 0 the arm is singular."""
        J = np.asarray(self.robot.jacobian(self.q, self.frame))
        return np.linalg.svd(J if self.task == "pose" else J[..., 3:, :], compute_uv=False)[..., -1]

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
    closest: bool = False,
    world: World | Iterable[Any] | None = None,
    clearance: float = 0.0,
    validity: Validity | None = None,
) -> Solution:
    """Joint positions that bring a frame to target poses.

    Args:
        robot: the robot.
        target: poses, (..., 4, 4), or points, (..., 3), with ``task="position"``.
        frame: the frame; by default the only leaf.
        start: positions (..., n) that are tried first; then random positions, those nearest to the target
            first, and the closed form where the arm has one.
        task: "pose" or "position".
        limits: whether the result must be within the joint limits.
        starts: number of starting positions.
        iterations: most steps from each.
        tolerance: [m and rad].
        strict: False gives the nearest position found where the target is not reached.
        seed: of the random positions.
        closest: an arm of seven joints with a closed form gets the branch nearest to ``start`` (by the largest
            difference of a joint) over 24 positions of its locked joint; arms of six joints get the nearest.
        world: obstacles, ``linkwise.collision.World`` or a list of them; the result touches neither them nor the robot
            itself. Where the first one does, the nearest one to ``start`` of up to 64 others is taken. An empty list:
            the robot itself.
        clearance: distance [m] to keep to obstacles and between links; with ``world``.
        validity: checks of the robot with other spheres or pairs than the default ones; with ``world``.

    Returns:
        Positions with their errors.

    Raises:
        UnreachableError: a target is not reached; the message has the remaining error. Or all positions collide.
        ModelError: joints that would move are held by a constraint of the robot.
    """
    arguments.check_robot(robot)
    check_moves(robot)
    if task not in ("pose", "position"):
        raise ValueError(f"task: expected 'pose' or 'position', got {task!r}")
    limits, strict, closest = flag("limits", limits), flag("strict", strict), flag("closest", closest)
    starts, iterations = arguments.whole("starts", starts, 1), arguments.whole("iterations", iterations, 1)
    tolerance = arguments.number("tolerance", tolerance, positive=True)
    seed = arguments.whole("seed", seed, 0)
    if robot.nq != robot.dof:
        raise ModelError(f"{robot.name}: inverse kinematics is for joints with one coordinate each")
    check_outside_loops(robot, "inverse kinematics", [frame])
    shape = (4, 4) if task == "pose" else (3,)
    target = _targets(target, task, shape)
    if task == "pose":
        check_poses("target", target)
    batch = target.shape[: target.ndim - len(shape)]
    near = _free_space(robot, world, clearance, validity)
    if not batch and near is None:
        numbers = (starts, iterations, tolerance, seed)
        solution = _one(robot, target, frame, start, task, (limits, closest), numbers)
        if solution is not None:
            return solution
    problem = _Problem(robot, target.reshape(-1, *shape), frame, task, limits, tolerance, closest=closest)
    first = _first_start(robot, start, batch, problem)
    q, error = problem.solve(first, start is not None, starts, iterations, seed)
    reached = problem.arrived(error)
    touching = np.zeros(len(q), dtype=bool)
    if near is not None:
        touching = near.moved_away(problem, (q, error), first, iterations, seed)
    linear, angular = problem.sizes(error)
    converged = reached & ~touching
    if strict and not converged.all():
        if near is not None and reached.all():
            raise UnreachableError(near.why(q[touching]))
        _complain(problem, reached, linear, angular, batch, starts)
    best, short, turned, reached = (
        a.reshape((*batch, *a.shape[1:])) for a in (q, linear, angular, converged)
    )
    return Solution(best, short, turned, reached, robot, frame, task)


def _free_space(
    robot: Robot, world: World | Iterable[Any] | None, clearance: float, validity: Validity | None
) -> FreeSpace | None:
    """Where positions are looked for; None where they may touch anything."""
    distance = arguments.limits("clearance", clearance, 1)[0]
    if world is None:
        if distance > 0.0 or validity is not None:
            raise ArgumentError(
                "clearance, validity: only with world=; an empty list is a world without obstacles"
            )
        return None
    around = world if isinstance(world, World) else World(world)
    return FreeSpace(validity_of(robot) if validity is None else validity, around, float(distance))


def _one(
    robot: Robot,
    target: np.ndarray,
    frame: str | None,
    start: Any,
    task: str,
    flags: tuple[bool, bool],
    numbers: tuple[int, int, float, int],
) -> Solution | None:
    """The solution for one target; None: the whole search is needed.

    Args:
        robot: the robot.
        target: a pose or a point.
        frame: the frame.
        start: the position that is tried first, if any.
        task: "pose" or "position".
        flags: whether joint limits are kept, whether the closest branch is wanted.
        numbers: starts, iterations, tolerance, seed.
    """
    limits, closest = flags
    starts, iterations, tolerance, seed = numbers
    lower, upper, length, draws = _known_of(robot, frame)
    if not limits:
        lower, upper = np.full(lower.size, -np.inf), np.full(lower.size, np.inf)

    if task == "pose" and has_closed_form(robot, frame) and (closest or start is None or robot.dof == 6):
        near = _usual_start(lower, upper) if start is None else arguments.matrices("start", start, lower.size)
        if near.ndim != 1:
            return None
        kernel = nearest_kernel(robot, frame, search=CLOSEST if closest else SPREAD)
        q, error = kernel(target[:3].ravel(), near, lower, upper)
        linear, angular = (float(np.sqrt((part * part).sum())) for part in (error[3:], error[:3]))
        if not (linear <= tolerance and angular <= tolerance):
            return None
        return Solution(q, np.float64(linear), np.float64(angular), np.True_, robot, frame, task)  # type: ignore[arg-type]

    if starts == 1:
        return None
    first = _usual_start(lower, upper) if start is None else arguments.matrices("start", start, lower.size)
    if first.ndim != 1:
        return None
    ranges = (lower, upper, *draws)
    about = (length, 0.01 * tolerance, iterations, min(starts, RESTARTS), seed)
    rows = target[np.newaxis, :3].reshape(1, -1)
    q, error = restarted(restarting(robot, frame, task), first[np.newaxis], rows, ranges, about)
    linear, angular = (math.sqrt(float((part * part).sum())) for part in (error[0, -3:], error[0, :-3]))
    if not (linear <= tolerance and angular <= tolerance):
        return None
    return Solution(q[0], np.float64(linear), np.float64(angular), np.True_, robot, frame, task)  # type: ignore[arg-type]


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
        self,
        robot: Robot,
        targets: np.ndarray,
        frame: str | None,
        task: str,
        limits: bool,
        tolerance: float,
        *,
        closed: bool = True,
        closest: bool = False,
    ):
        self.robot, self.targets, self.frame, self.task = robot, targets, frame, task
        self.limits, self.tolerance = limits, tolerance
        lower, upper, self.length, self.draws = _known_of(robot, frame)
        self.lower = lower if limits else np.full(robot.dof, -np.inf)
        self.upper = upper if limits else np.full(robot.dof, np.inf)
        self.rows = targets if task == "position" else targets[:, :3].reshape(-1, 12)
        self.weights = np.ones(3) if task == "position" else np.array([*[self.length] * 3, 1.0, 1.0, 1.0])
        self.iteration = iteration(robot, frame, task)
        self.closest = closest
        self.closed = closed and task == "pose" and has_closed_form(robot, frame)

    def subset(self, rows: np.ndarray) -> _Problem:
        """The problem of some of the targets, each by the branch or position nearest to its own start."""
        kinds = (self.robot, self.targets[rows], self.frame, self.task, self.limits, self.tolerance)
        return _Problem(*kinds, closed=self.robot.dof == 6)

    def iterated(
        self, q: np.ndarray, rows: np.ndarray, trust: np.ndarray, steps: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q within the limits, error, trust) after at most so many steps, for the targets ``rows``; ``error``:
        (angular, linear) from where the frame is to where it should be, base axes, shape (..., 6 or 3)."""
        about = np.array([steps, self.length, 0.01 * self.tolerance])
        return self.iteration(q, self.rows[rows], self.lower, self.upper, trust, about)

    def sizes(self, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y, z = error.T[-3:]
        linear = np.sqrt(x * x + y * y + z * z)
        if self.task == "position":
            return linear, np.zeros_like(linear)
        x, y, z = error.T[:3]
        return linear, np.sqrt(x * x + y * y + z * z)

    def arrived(self, error: np.ndarray) -> np.ndarray:
        linear, angular = self.sizes(error)
        return (linear <= self.tolerance) & (angular <= self.tolerance)

    def solve(
        self, first: np.ndarray, given: bool, starts: int, iterations: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best q of every target, and its error: the closed form first where the arm has one, then the search.

        An arm of seven joints that has a start is searched from there: the closed form would keep one of its joints.
        """
        if not self.closed or (given and self.robot.dof > 6 and not self.closest):
            return self.search(first, given, starts, iterations, seed)
        best = self.nearest_branches(first, np.arange(len(first)), iterations)
        left = self.left(best)
        if left.size:
            kinds = (self.robot, self.targets[left], self.frame, self.task, self.limits, self.tolerance)
            rest = _Problem(*kinds, closed=False)
            self.keep_better(best, left, rest.search(first[left], given, starts, iterations, seed))
        return best

    def nearest_branches(
        self, near: np.ndarray, rows: np.ndarray, iterations: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(q, error) of the closed form for the targets ``rows``; the few that round-off leaves apart are improved."""
        kernel = nearest_kernel(self.robot, self.frame, search=CLOSEST if self.closest else SPREAD)
        q, error = kernel(self.rows[rows], near, self.lower, self.upper)
        apart = np.flatnonzero(~self.arrived(error) & (error[:, 0] < FAR))
        if apart.size:
            q[apart], error[apart] = self.improved(q[apart], rows[apart], iterations)
        return q, error

    def search(
        self, first: np.ndarray, given: bool, starts: int, iterations: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best q of every target, and its error, by iterations from many starts."""
        if starts == 1:
            best = self.improved(first, np.arange(len(first)), iterations)
        else:
            ranges = (self.lower, self.upper, *self.draws)
            numbers = (self.length, 0.01 * self.tolerance, iterations, min(starts, RESTARTS), seed)
            kernel = restarting(self.robot, self.frame, self.task)
            best = restarted(kernel, first, self.rows, ranges, numbers)
        left, done = self.left(best), 1
        for turn, size in enumerate((*ROUNDS, starts)):
            size = min(size, starts - done)
            if turn == 1 or size < ROUNDS[0]:  # the iteration is faster where it finds a position
                left = self.by_closed_form(best, left, iterations)
            if not left.size or size <= 0:
                break
            library = starting.library(self.robot, self.frame, self.length, max(2048, 2 * starts), seed)
            for rows in np.array_split(left, -(-left.size * size // PAIRS)):
                chosen = library.nearest(self.targets[rows], done, size)
                candidates = self.improved(
                    chosen.reshape(-1, self.robot.dof), np.repeat(rows, size), iterations, leave=True
                )
                cost = self.cost(candidates[1]).reshape(-1, size)
                nearest = size * np.arange(rows.size) + np.argmin(cost, axis=1)
                self.keep_better(best, rows, tuple(part[nearest] for part in candidates))
            done += size
            left = self.left(best)
        if left.size and starts > 1:  # the nearest position found
            self.keep_better(best, left, self.improved(best[0][left], left, iterations))
        return best

    def by_closed_form(
        self, best: tuple[np.ndarray, np.ndarray], left: np.ndarray, iterations: int
    ) -> np.ndarray:
        """The targets that are left after the closed form, where the arm has one."""
        if not left.size or not self.closed:
            return left
        self.keep_better(best, left, self.nearest_branches(best[0][left], left, iterations))
        return self.left(best)

    def left(self, best: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """The targets that are not reached yet."""
        return np.flatnonzero(~self.arrived(best[1]))

    def keep_better(
        self, best: tuple[np.ndarray, np.ndarray], rows: np.ndarray, candidates: tuple[np.ndarray, ...]
    ) -> None:
        """Put the candidates that are nearer to the targets ``rows`` in place of the best."""
        nearer = self.cost(candidates[1]) < self.cost(best[1][rows])
        for kept, candidate in zip(best, candidates, strict=True):
            kept[rows[nearer]] = candidate[nearer]

    def cost(self, error: np.ndarray) -> np.ndarray:
        return np.sum((self.weights * error) ** 2, axis=-1)

    def improved(
        self, q: np.ndarray, rows: np.ndarray, iterations: int, *, leave: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """(q, error) after the iteration, for the targets ``rows``. ``leave``: a start ends when another of its target
        has arrived, or when it has not halved its cost in the last ``PATIENCE`` steps.
        """
        steps = min(PATIENCE, iterations) if leave else iterations
        q, error, trust = self.iterated(q, rows, np.ones((len(q), 1)), steps)
        if not leave:
            return q, error
        going, before = np.arange(len(q)), np.full(len(q), np.inf)
        reached = np.zeros(len(self.targets), dtype=bool)
        for done in range(PATIENCE, iterations, PATIENCE):
            reached[rows[going[self.arrived(error[going])]]] = True
            cost = self.cost(error[going])
            open_ = (trust[going] > 0.0) & ~reached[rows[going]] & (cost < 0.5 * before[going])
            before[going], going = cost, going[open_]
            if not going.size:
                break
            steps = min(PATIENCE, iterations - done)
            stepped = self.iterated(q[going], rows[going], trust[going, np.newaxis], steps)
            q[going], error[going], trust[going] = stepped
        return q, error


def _known_of(
    robot: Robot, frame: str | None
) -> tuple[np.ndarray, np.ndarray, float, tuple[np.ndarray, np.ndarray]]:
    """(lower, upper) limits of the joints, and the length at which an angle counts as a distance: the longest lever of
    a joint at the zero position [m]; and the range of starts. Made once per robot and frame."""

    def make(robot: Robot) -> tuple[np.ndarray, np.ndarray, float, tuple[np.ndarray, np.ndarray]]:
        joints = robot.coordinate_joints
        lower = np.array([joint.limits.lower for joint in joints], dtype=float)
        upper = np.array([joint.limits.upper for joint in joints], dtype=float)
        reach = np.sqrt(np.sum(robot.jacobian(np.zeros(robot.dof), frame)[3:] ** 2, axis=0)).max(initial=0.0)
        return lower, upper, float(reach) if reach > 0 else 1.0, starting.sampling_range(robot)

    return made_once(robot, ("length", frame), make)


def _usual_start(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The middle of the range, and a little more: a stretched arm is singular."""
    limited = np.isfinite(lower) & np.isfinite(upper)
    return np.where(limited, lower, 0.0) / 2 + np.where(limited, upper, 0.0) / 2 + 0.1


def _first_start(robot: Robot, start, batch: tuple[int, ...], problem: _Problem) -> np.ndarray:
    if start is None:
        start = _usual_start(problem.lower, problem.upper)
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
