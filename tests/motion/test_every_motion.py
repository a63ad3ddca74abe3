"""What holds for motions of every class: derivatives are those of the positions, and time-optimal motions keep limits.

The paths are those of ``benchmarks/motion_limits.py``, which has more of them and takes torques from Pinocchio.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import motion_limits
    from motion_parts.paths import CLASSES, HARD

KINDS = CLASSES | HARD
BY_THEMSELVES = (
    "clamped", "natural", "quintic_spline", "quintic", "nonic", "trapezoidal", "jerk_limited", "ramp", "fourier",
    "slowed", "samples", "again",
)  # fmt: skip
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def robots():
    """All bundled robots, arms of example-robot-data, one with a payload."""
    names = [*lw.robots(), "ur5_robot.urdf", "kinova.urdf", "xarm7.urdf"]
    made = []
    for name in names:
        try:
            made.append(motion_limits.loaded(name))
        except StopIteration:  # example-robot-data is not installed
            continue
    return [*made, lw.load("panda").with_payload(2.0, (0.05, -0.03, 0.1))]


ROBOTS = robots()


def differs(trajectory: motion.Trajectory) -> tuple[float, float]:
    """How far q̇ and q̈ are from the derivatives of q and q̇: their integrals beside differences, relative to the largest.

    Between corners and, of Cartesian moves, between the points at which the resolution of redundancy changes.
    """
    begin, end, corners = trajectory.begin, trajectory.end, [0.0]
    if np.isfinite(end):
        corners = np.clip(trajectory.corners(), begin, end)
    else:
        begin, end = 0.0, getattr(trajectory, "period", 1.0)
    if isinstance(trajectory, motion.CartesianMove):
        fine = np.linspace(begin, end, 200_001)
        corners = np.interp(trajectory.branch.s, trajectory.timing.at(fine).q[:, 0], fine)
    corners = np.unique(np.concatenate([[begin, end], corners]))
    corners = corners[np.concatenate([[True], np.diff(corners) > 1e-8 * (end - begin)])]
    parts = max(-(-200 // (len(corners) - 1)), 3)
    edges = np.append(np.linspace(corners[:-1], corners[1:], parts, endpoint=False, axis=1), end)
    tiny = 1e-9 * (end - begin)
    first, last = edges[:-1] + tiny, edges[1:] - tiny
    span = (last - first)[:, np.newaxis]
    inside = trajectory.at(first[:, np.newaxis] + span * (0.5 * NODES + 0.5))
    a, b = trajectory.at(first), trajectory.at(last)
    speed = np.minimum(np.abs(a.qd).max(axis=1), np.abs(b.qd).max(axis=1))
    smooth = (
        speed > 0.02 * np.abs(inside.qd).max()
    )  # beside points of rest an integral of sixteen points is not exact
    found = []
    for before, after, rate in ((a.q, b.q, inside.qd), (a.qd, b.qd, inside.qdd)):
        off = np.abs(after - before - 0.5 * span * np.einsum("k,mkn->mn", WEIGHTS, rate))
        scale = np.abs(rate).max() * span + 1e-7 * np.abs(before).max()  # round-off of the difference
        found.append(float((off / scale)[smooth].max()))
    jump = trajectory.at(edges[1:-1] - tiny).q - trajectory.at(edges[1:-1] + tiny).q
    assert np.abs(jump).max() <= 4 * tiny * np.abs(inside.qd).max() + 1e-12, "positions jump"
    return found[0], found[1]


def test_derivatives_are_those_of_the_positions():
    """Every class of motion; redundant Cartesian moves on all robots, whose q̇ were 9 % off once."""
    worst = {}
    for k, robot in enumerate(ROBOTS):
        rng = np.random.default_rng(k)
        moves = {name: CLASSES[name](robot, rng)[0] for name in ("line", "arc")}
        if k % 4 == 1:  # the panda and three others
            moves |= {name: make(robot, rng)[0] for name, make in CLASSES.items() if name in BY_THEMSELVES}
            judge = motion_limits.Judge(robot)
            for name in ("clamped", "quintic", "fourier", "with_grid", "with_jerk_curved", "line"):
                path, more = KINDS[name](robot, rng)
                if path is None:
                    continue
                moves[f"along {name}"] = motion.time_optimal(
                    robot, path, torque=3 * judge.torque, velocity=judge.velocity, **more
                )
            moves["pieces"] = motion.pieces(moves["clamped"].stretched(1.3))
            moves["pieces of a move"] = motion.pieces(moves["line"]) if moves["line"] else None
        worst |= {(robot.name, name): differs(move) for name, move in moves.items() if move is not None}
    assert {key: value for key, value in worst.items() if max(value) > 1e-8} == {}
    assert len(worst) > 2 * len(ROBOTS)


def test_a_function_that_cannot_be_traced_is_a_curve_through_its_values():
    """Its derivatives were those of other polynomials than its positions."""
    robot = lw.load("two_link")
    found = motion.time_optimal(
        robot, lambda s: [float(np.sin(3 * float(s))), float(s) ** 2], torque=500.0, velocity=3.0
    )
    assert isinstance(found, motion.TimeOptimal)
    assert max(differs(found)) < 1e-8
    with pytest.raises(ValueError, match=r"jumps or changes too quickly near s = 0\.4"):
        motion.time_optimal(robot, lambda s: [float(float(s) > 0.4), float(s)], torque=500.0, velocity=3.0)


# -- limits -----------------------------------------------------------------------------------------------------------


def test_time_optimal_motions_keep_their_limits_along_every_kind_of_path():
    """A limit is kept at 20 001 times and at both sides of every grid point, or there is an error that says why."""
    judges = [motion_limits.Judge(robot) for robot in ROBOTS[1::5]]
    beyond, errors, count = {}, {}, 0
    for k, (name, make) in enumerate(KINDS.items()):
        for turn in range(2):
            judge = judges[(k + turn) % len(judges)]
            path, more = make(judge.robot, np.random.default_rng([turn, k]))
            if path is None:
                continue
            count += 1
            try:
                found = motion.time_optimal(
                    judge.robot, path, torque=judge.torque, velocity=judge.velocity, **more
                )
            except motion.LimitError as error:
                errors[name, judge.robot.name, turn] = str(error)
                continue
            assert isinstance(found, motion.TimeOptimal)
            used = judge.used(found, more)
            if not used <= 1 + 1e-6 or not np.isfinite(found.duration):
                beyond[name, judge.robot.name, turn] = used
    assert beyond == {}
    assert len(errors) <= count // 10, errors
