"""One start of inverse kinematics as a compiled loop: damped least squares over scalars.

T. Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg–Marquardt method", IEEE Trans. Robotics 27(5),
2011. With the weighted error e and the weighted Jacobian J of a frame a step is

    Δq = (Jᵀ J + λ)⁻¹ Jᵀ e = Jᵀ (J Jᵀ + λ)⁻¹ e        λ = t eᵀe + 1e-12

The damping λ grows with the error that is left, so that the iteration is stable at singular and out-of-reach poses and
quadratic near a solution. The trust t falls where a step makes the error smaller; a step that does not is undone, and t
grows. A joint at its limit is left out while the step pushes it further.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import dense
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.robot.kernels import made_once
from linkwise.robot.robot import Robot
from linkwise.scalar import Condition, Scalar, atan2, clipped, maximum, sqrt, where, while_loop

SMALLEST_DAMPING = 1e-12  # of squared lengths [m²]: far below what matters, far above round-off
STALLED = 1e-13  # [rad or m]: a step this short makes no progress
LEAST_TRUST = 1e-9

Scalars = list[Scalar]


class Goal:
    """What is brought to targets: frames of a robot, each with a pose or a point.

    Args:
        robot: the robot; its base may move.
        frames: names (None: the only leaf), each with "pose" or "position".
    """

    def __init__(self, robot: Robot, frames: Sequence[tuple[str | None, str]]):
        self.robot, self.frames = robot, tuple(frames)
        self.sizes = [12 if task == "pose" else 3 for _, task in self.frames]
        self.rows = [6 if task == "pose" else 3 for _, task in self.frames]
        self.places: list[int | None] = []
        """Of the position that belongs to each velocity; None for joints with several axes."""
        at = 0
        for joint in robot.coordinate_joints:
            self.places += [at] if joint.nq == joint.dof == 1 else [None] * joint.dof
            at += joint.nq
        self.single = robot.nq == robot.dof and None not in self.places

    def weights(self, length: Scalar) -> Scalars:
        """Of the rows of the errors, with the length at which an angle counts."""
        return [w for rows in self.rows for w in ([length] * (rows - 3) + [1.0] * 3)]

    def error_at(self, q: Sequence[Scalar], target: Scalars) -> Scalars:
        """Errors of all frames, one after the other."""
        position, error, at = np.array(q, dtype=object), [], 0
        for (frame, _), size in zip(self.frames, self.sizes, strict=True):
            error += residual(self.robot.pose(position, frame), target[at : at + size])
            at += size
        return error

    def jacobian(self, q: Sequence[Scalar]) -> list[Any]:
        """Rows of all frames."""
        position = np.array(q, dtype=object)
        rows: list[Any] = []
        for (frame, _), count in zip(self.frames, self.rows, strict=True):
            rows += list(self.robot.jacobian(position, frame)[-count:])
        return rows

    def moved(self, q: Scalars, step: Scalars, lower: Scalars, upper: Scalars) -> Scalars:
        """The position after a step, within the limits."""
        if self.single:
            return [clipped(x + s, a, b) for x, s, a, b in zip(q, step, lower, upper, strict=True)]
        new = list(self.robot.integrate(np.array(q, dtype=object), np.array(step, dtype=object)))
        for place in self.places:
            if place is not None:
                new[place] = clipped(new[place], lower[place], upper[place])
        return new


def iteration(robot: Robot, frame: str | None, task: str) -> Kernel:
    """The kernel (q, target, lower, upper, trust, about) -> (q, error, trust), made once per robot.

    ``target``: a pose row by row without its last row, or a point; ``about``: (largest number of steps, length at which
    an angle counts [m], error that is enough [m and rad]). ``error``: angular then linear, or linear, in base axes,
    from where the frame is to the target. ``trust`` is 1 to begin with, and 0 once the iteration has ended.
    """

    def make(robot: Robot) -> Kernel:
        n, rows = robot.dof, 6 if task == "pose" else 3
        sizes = {
            "q": n,
            "target": 2 * rows if task == "pose" else 3,
            "lower": n,
            "upper": n,
            "trust": 1,
            "about": 3,
        }
        shapes = {"q": (n,), "error": (rows,), "trust": ()}
        function, content = functools.partial(_iterated, robot, frame), (robot.content(), frame, task)
        return traced_kernel("inverse_kinematics", function, sizes, shapes, "float64", content)

    return made_once(robot, ("iteration", frame, task), make)


def _iterated(
    robot: Robot,
    frame: str | None,
    q: Scalars,
    target: Scalars,
    lower: Scalars,
    upper: Scalars,
    trust: Scalars,
    about: Scalars,
) -> tuple[Scalars, Scalars, Scalar]:
    n, (most, length, enough) = len(q), about
    goal = Goal(robot, [(frame, "pose" if len(target) == 12 else "position")])
    weights = goal.weights(length)

    def error_at(position: Sequence[Scalar]) -> Scalars:
        return goal.error_at(position, target)

    def body(count: Scalar, t: Scalar, *state: Scalar) -> tuple[Scalar, ...]:
        here, error = list(state[:n]), [w * e for w, e in zip(weights, state[n:], strict=True)]
        cost = dense.dot(error, error)
        new, stalled = tried(goal, here, error, weights, t, (lower, upper))
        error_there = error_at(new)
        scaled = [w * e for w, e in zip(weights, error_there, strict=True)]
        better = dense.dot(scaled, scaled) < cost
        kept = [where(better, a, b) for a, b in zip([*new, *error_there], state, strict=True)]
        return count + 1.0, where(better, relaxed(t), where(stalled, 0.0, 8.0 * t)), *kept

    def active(count: Scalar, t: Scalar, *state: Scalar) -> Condition:
        return (count < most) & (t > 0.0) & is_larger(list(state[n:]), enough)

    start = [clipped(x, a, b) for x, a, b in zip(q, lower, upper, strict=True)]
    _, t, *end = while_loop(active, body, (0.0 * most, trust[0], *start, *error_at(start)))
    return end[:n], end[n:], where(is_larger(end[n:], enough), t, 0.0)


def relaxed(trust: Scalar) -> Scalar:
    """The trust after a step that makes the error smaller."""
    return maximum(trust / 4.0, LEAST_TRUST)


def tried(
    goal: Goal,
    here: Scalars,
    error: Scalars,
    weights: Sequence[Scalar],
    trust: Scalar,
    limits: tuple[Scalars, Scalars],
) -> tuple[Scalars, Condition]:
    """(position after a step within the limits, whether the step is too short to make progress).

    Args:
        goal: the frames.
        here: the position.
        error: weighted, from the frames to their targets.
        weights: of the rows of the Jacobian.
        trust: how much the error damps the step.
        limits: of the positions.
    """
    lower, upper = limits
    J = goal.jacobian(here)
    weighted = [[w * entry for entry in row] for w, row in zip(weights, J, strict=True)]
    damping = trust * dense.dot(error, error) + SMALLEST_DAMPING
    step = _step(weighted, error, damping, [1.0] * len(goal.places))
    free: Scalars = []
    for place, s in zip(goal.places, step, strict=True):
        if place is None:
            free.append(1.0)
            continue
        x, a, b = here[place], lower[place], upper[place]
        free.append(where(((x <= a) & (s < 0.0)) | ((x >= b) & (s > 0.0)), 0.0, 1.0))
    step = _step(weighted, error, damping, free)
    return goal.moved(here, step, lower, upper), _all([abs(s) < STALLED for s in step])


def _step(J: list[Scalars], error: Scalars, damping: Scalar, free: Sequence[Scalar]) -> Scalars:
    """(Jᵀ J + λ)⁻¹ Jᵀ e without the joints that are not free; the smaller one of the two matrices is factorised."""
    columns = [[f * row[j] for row in J] for j, f in enumerate(free)]
    rows = dense.transposed(columns)
    small = columns if len(columns) < len(rows) else rows
    S = dense.symmetric_product(small, small)
    for i, row in enumerate(S):
        row[i] = row[i] + damping
    L, inverse = dense.factorised(S, floor=0.0)
    if small is columns:
        return dense.solved(L, inverse, [dense.dot(column, error) for column in columns])
    multipliers = dense.solved(L, inverse, error)
    return [dense.dot(column, multipliers) for column in columns]


def residual(pose: Any, target: Scalars) -> Scalars:
    """(angular, linear) from where the frame is to where it should be, base axes."""
    if len(target) == 3:
        return [wanted - pose[i][3] for i, wanted in enumerate(target)]
    wanted = [target[4 * i : 4 * i + 3] for i in range(3)]
    turn = [[dense.dot(wanted[i], list(pose[j][:3])) for j in range(3)] for i in range(3)]
    return [*rotation_vector(turn), *(target[4 * i + 3] - pose[i][3] for i in range(3))]


def rotation_vector(R: list[Scalars]) -> Scalars:
    """The rotation vector, at most π long, of a rotation matrix, by the largest component of its quaternion."""
    trace_ = R[0][0] + R[1][1] + R[2][2]
    best: Scalar = trace_
    quaternion: Scalars = [1.0 + trace_, R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1]]
    skew = quaternion[1:]
    for i in range(3):
        square = 2.0 * R[i][i] - trace_
        row = [skew[i], *((1.0 + square) if j == i else R[i][j] + R[j][i] for j in range(3))]
        larger = square > best
        quaternion = [where(larger, a, b) for a, b in zip(row, quaternion, strict=True)]
        best = where(larger, square, best)
    w, *vector = quaternion
    length = sqrt(dense.dot(vector, vector))
    flip = where(w < 0.0, -1.0, 1.0)
    turned = 2.0 * atan2(length, flip * w)  # the length of the quaternion does not matter
    scale = where(length > 1e-12 * abs(w), turned / where(length > 0.0, length, 1.0), 2.0 / abs(w))
    return [flip * scale * x for x in vector]


def is_larger(error: Scalars, enough: Scalar) -> Condition:
    """Whether the linear or the angular part of a frame is longer than that."""
    square = enough * enough
    parts = [dense.dot(error[k : k + 3], error[k : k + 3]) > square for k in range(0, len(error), 3)]
    any_: Any = parts[0]
    for part in parts[1:]:
        any_ = any_ | part
    return any_


def _all(conditions: Sequence[Condition]) -> Condition:
    first, *others = conditions
    for other in others:
        first = first & other
    return first
