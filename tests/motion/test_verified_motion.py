"""Verification of time-optimal motions: what exceeds a limit is found, whatever else happens in the same cell."""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.motion.shortest_time import verified

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))

    import motion_limits
    from motion_parts.paths import CLASSES, HARD


def test_a_row_that_jumps_hides_no_row_that_is_exceeded():
    """One row jumps below its limit, so its bound never settles; another one exceeds its limit by little."""

    def values_at(cells, points):
        z = np.linspace(0.0, 1.0, points)
        jump = np.where(z < 0.417, -0.9, 0.9)
        hill = 1.004 - 3.0 * (z - 0.437) ** 2
        return np.broadcast_to(np.stack([jump, hill, -hill], axis=-1), (len(cells), points, 3))

    one = np.ones(3)
    yielded = list(verified.exceeded(values_at, -one, one, one, np.arange(4)))
    found = np.concatenate([peaks.cell for peaks in yielded])
    assert sorted(found) == [0, 1, 2, 3]
    for peaks in yielded:
        assert (peaks.row > 0).all()
        assert peaks.over == pytest.approx(0.004, abs=1e-4)


CASES = {
    "puma560": (15, [78.2, 133.5, 37.9, 4.3, 3.9, 3.2], 5.0),
    "ur10e": (28, [330.0, 330.0, 150.0, 54.0, 54.0, 54.0], [3.14, 3.14, 3.14, 5.0, 5.0, 5.0]),
}
"""Paths of ``benchmarks/motion_limits.py``, with limits of torque [N·m] and velocity [rad/s]."""


@pytest.mark.parametrize("name", CASES)
def test_jerk_is_kept_where_friction_jumps_and_next_to_knots(name):
    """Jerk was 0.6 % and 0.01 % beyond its limit."""
    number, torque, velocity = CASES[name]
    robot = lw.load(name)
    rng = np.random.default_rng([0, number, list(CLASSES | HARD).index("with_jerk_curved")])
    path, more = CLASSES["with_jerk_curved"](robot, rng)
    found = motion.time_optimal(robot, path, torque=torque, velocity=velocity, **more)
    assert isinstance(found, motion.TimeOptimal)
    t = np.linspace(0.0, found.duration, 20_001)
    jerk = np.diff(found.at(t).qdd, axis=0) / t[1]
    assert np.abs(jerk).max() <= more["jerk"] * (1 + 1e-6)


def test_the_sign_of_a_rounded_speed_of_zero_slows_nothing_down():
    """Where a joint turns back at the end of a cell, its speed there is zero but for round-off. Its sign chose the
    direction of friction, and motions became up to 10 % slower than needed."""
    robot = lw.load("puma560")
    _, torque, velocity = CASES["puma560"]
    ratios = []
    for number in (2, 3, 8):
        path, _ = CLASSES["way_points"](robot, np.random.default_rng([0, number, 0]))
        coarse, fine = (
            motion.time_optimal(robot, path, torque=torque, velocity=velocity, cells=cells)
            for cells in (100, 300)
        )
        assert isinstance(coarse, motion.TimeOptimal)
        assert isinstance(fine, motion.TimeOptimal)
        ratios.append(coarse.duration / fine.duration)
        times = np.linspace(1e-6, 1 - 1e-6, 5001) * coarse.duration
        assert (np.abs(robot.inverse_dynamics(*coarse.at(times))) <= np.multiply(torque, 1 + 1e-6)).all()
    assert max(ratios) < 1.02


def test_joints_turn_back_where_round_off_makes_tangents_zero():
    """A tangent that was exactly zero counted as positive, and a division by zero followed."""
    try:
        robot = motion_limits.loaded("xarm7.urdf")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    path, _ = CLASSES["fourier"](robot, np.random.default_rng([3, 12, list(CLASSES).index("fourier")]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = motion.time_optimal(robot, path, torque=1e3, velocity=3.0)
    assert np.isfinite(found.duration)
