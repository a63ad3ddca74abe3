"""Iterations with restarts as a compiled loop: every target goes on by itself, from one start after the other.

A start ends as in ``damped_least_squares``, or when it has not halved its cost in ``PATIENCE`` steps. The next one is
drawn from the range of the joints by a counter: the sequence of M. Roberts, "The unreasonable effectiveness of
quasirandom sequences" (2018), the same for every target. Targets that have arrived are taken out of the call
every few steps.
"""

from __future__ import annotations

import functools

import numpy as np

from linkwise.algorithms import dense
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.motion.kinematics import damped_least_squares as steps_of
from linkwise.motion.kinematics.damped_least_squares import Goal, Scalars, is_larger, tried
from linkwise.robot.kernels import made_once
from linkwise.robot.robot import Robot
from linkwise.scalar import Condition, Scalar, clipped, rint, where, while_loop

PATIENCE = 8  # iterations after which a start that has not halved its cost is left
TOGETHER = 16.0  # iterations of a call, after which targets that have arrived are taken out
LONGEST = 4096.0  # iterations of a call, whatever numbers are given
STATE = 5  # trust, steps since the last check, cost then, number of the start, steps of the start


def restarting(robot: Robot, frame: str | None, task: str) -> Kernel:
    """The kernel (q, target, lower, upper, low, high, progress, about) -> (q, error, progress), made once per robot.

    ``low`` and ``high``: range of the starts; ``progress``: see ``STATE``, ``fresh_state`` at first; ``about``: (most
    steps of the call, length at which an angle counts [m], error that is enough [m and rad], most steps of a start,
    most starts, place in the sequence).
    """
    return restarting_frames(robot, ((frame, task),))


def restarting_frames(robot: Robot, frames: tuple[tuple[str | None, str], ...]) -> Kernel:
    """``restarting`` for several frames at once, each with "pose" or "position"; the base may move."""

    def make(robot: Robot) -> Kernel:
        goal, n = Goal(robot, frames), robot.nq
        sizes = {"q": n, "target": sum(goal.sizes), **dict.fromkeys(("lower", "upper", "low", "high"), n)}
        sizes |= {"progress": STATE, "about": 6}
        shapes = {"q": (n,), "error": (sum(goal.rows),), "progress": (STATE,)}
        function, content = functools.partial(_searched, goal), (robot.content(), frames, "restarts")
        return traced_kernel("inverse_kinematics_restarts", function, sizes, shapes, "float64", content)

    return made_once(robot, ("restarting", frames), make)


def fresh_state(count: int) -> np.ndarray:
    """The state of targets that begin."""
    return np.tile([1.0, 0.0, np.inf, 0.0, 0.0], (count, 1))


def _searched(
    goal: Goal,
    q: Scalars,
    target: Scalars,
    lower: Scalars,
    upper: Scalars,
    low: Scalars,
    high: Scalars,
    progress: Scalars,
    about: Scalars,
) -> tuple[Scalars, Scalars, Scalars]:
    n, (most, length, enough, longest, starts, place) = len(q), about
    weights = goal.weights(length)

    def error_at(position: Scalars) -> Scalars:
        return goal.error_at(position, target)

    def body(count: Scalar, *values: Scalar) -> tuple[Scalar, ...]:
        t, turns, before, number, done, *rest = values
        here, error = rest[:n], rest[n:]
        scaled = [w * e for w, e in zip(weights, error, strict=True)]
        cost = dense.dot(scaled, scaled)
        new, stalled = tried(goal, here, scaled, weights, t, (lower, upper))
        fails = t <= 0.0
        number = where(fails, number + 1.0, number)
        drawn = [
            a + (b - a) * _share(number, place, j, n) for j, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        new = [where(fails, a, b) for a, b in zip(drawn, new, strict=True)]
        error_there = error_at(new)
        scaled = [w * e for w, e in zip(weights, error_there, strict=True)]
        cost_there = dense.dot(scaled, scaled)
        better = fails | (cost_there < cost)
        kept = [where(better, a, b) for a, b in zip([*new, *error_there], rest, strict=True)]
        cost = where(better, cost_there, cost)
        worse = where(stalled, 0.0, 8.0 * t)
        trust = where(fails, 1.0, where(better, steps_of.relaxed(t), worse))
        turns, done = where(fails, 0.0, turns + 1.0), where(fails, 0.0, done + 1.0)
        before = where(fails, np.inf, before)
        check = turns >= float(PATIENCE)
        slow = check & (cost >= 0.5 * before)
        trust = where(slow | (done >= longest), 0.0, trust)
        before, turns = where(check, cost, before), where(check, 0.0, turns)
        return count + 1.0, trust, turns, before, number, done, *kept

    def active(count: Scalar, *values: Scalar) -> Condition:
        more = (values[0] > 0.0) | (values[3] + 1.5 < starts)
        return (count < most) & (count < LONGEST) & more & is_larger(list(values[STATE + n :]), enough)

    start = [clipped(x, a, b) for x, a, b in zip(q, lower, upper, strict=True)]
    _, *end = while_loop(active, body, (0.0 * most, *progress, *start, *error_at(start)))
    return end[STATE : STATE + n], end[STATE + n :], end[:STATE]


def _share(number: Scalar, place: Scalar, joint: int, joints: int) -> Scalar:
    """The draw of a joint for a number of a start, between 0 and 1."""
    root = 2.0
    for _ in range(60):  # the positive root of x^(n + 1) = x + 1
        root = (1.0 + root) ** (1.0 / (joints + 1))
    x = place + number * ((1.0 / root) ** (joint + 1) % 1.0)
    return x - rint(x) + 0.5


def restarted(
    kernel: Kernel,
    q: np.ndarray,
    rows: np.ndarray,
    ranges: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    numbers: tuple[float, float, int, int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """(q, error) of every target, from one start after the other until it arrives.

    Args:
        kernel: ``restarting``.
        q: first starts, (targets, n).
        rows: the targets as the kernel takes them, (targets, 12 or 3).
        ranges: lower and upper limits, low and high ends of the starts; (n,), or (targets, n).
        numbers: length at which an angle counts, error that is enough, steps of a start, starts, seed.
    """
    length, enough, iterations, starts, seed = numbers
    about = np.array([TOGETHER, length, enough, iterations, starts, (seed * 0.7548776662466927) % 1.0])
    q, error, state = kernel(q, rows, *ranges, fresh_state(len(q)), about)
    open_ = np.flatnonzero(_goes_on(error, state, enough, starts))
    while open_.size:
        own = [x if x.ndim == 1 else x[open_] for x in ranges]
        stepped = kernel(q[open_], rows[open_], *own, state[open_], about)
        q[open_], error[open_], state[open_] = stepped
        open_ = open_[_goes_on(stepped[1], stepped[2], enough, starts)]
    return q, error


def _goes_on(error: np.ndarray, state: np.ndarray, enough: float, starts: int) -> np.ndarray:
    squares = error * error
    far = (squares[:, 0::3] + squares[:, 1::3] + squares[:, 2::3] > enough * enough).any(axis=1)
    return far & ((state[:, 0] > 0.0) | (state[:, 3] + 1.5 < starts))
