"""Trajectories: boundary values are met, derivatives are derivatives, shapes follow the times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise import motion

TRAJECTORIES = {
    "quintic": motion.quintic(
        [0.0, 1.0], [1.0, -2.0], 2.0, velocity=([0.1, 0.2], 0.3), acceleration=(0.5, [-1.0, 0.0])
    ),
    "cubic spline": motion.cubic_spline([0.0, 0.7, 1.5, 2.0], [[0, 1], [1, 0], [0.5, -1], [2, 2]]),
    "natural spline": motion.cubic_spline(
        [0.0, 0.7, 1.5, 2.0], [[0, 1], [1, 0], [0.5, -1], [2, 2]], velocity=None
    ),
    "quintic spline": motion.quintic_spline([0.0, 0.7, 1.5, 2.0], [[0, 1], [1, 0], [0.5, -1], [2, 2]]),
    "trapezoidal": motion.trapezoidal([0, 0], [1.0, -0.4], velocity=0.8, acceleration=2.0),
    "jerk limited": motion.jerk_limited([0, 0], [1.0, -0.4], velocity=0.8, acceleration=2.0, jerk=10.0),
    "fourier": motion.FourierSeries([0.1, 0.2], [[0.3, 0.1], [0.0, 0.2]], [[0.1, 0.1], [0.2, 0.0]], 2.0),
    "slowed": motion.slowed(motion.quintic([0.0, 0.0], [1.0, 1.0], 1.0), 2.0),
}


@pytest.mark.parametrize("trajectory", TRAJECTORIES.values(), ids=TRAJECTORIES)
def test_velocity_and_acceleration_are_derivatives(trajectory):
    span = trajectory.corners()
    t = np.setdiff1d(np.linspace(span[0], span[-1], 41)[1:-1] + 1e-3, span)
    h = 1e-5
    before, here, after = (trajectory.at(t + d) for d in (-h, 0.0, h))
    crossed = (np.abs(t[:, np.newaxis] - span) < 2 * h).any(axis=1)
    for value, derivative in ((0, 1), (1, 2)):
        slope = (after[value] - before[value]) / (2 * h)
        np.testing.assert_allclose(slope[~crossed], here[derivative][~crossed], atol=2e-5)


@pytest.mark.parametrize("trajectory", TRAJECTORIES.values(), ids=TRAJECTORIES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 4)])
def test_shapes_follow_the_times(trajectory, shape):
    t = np.random.default_rng(0).uniform(0.0, 1.0, shape)
    found = trajectory.at(t)
    assert all(part.shape == (*shape, 2) for part in found)
    if shape:
        one = trajectory.at(t.ravel()[-1])
        assert all((whole.reshape(-1, 2)[-1] == part).all() for whole, part in zip(found, one, strict=True))


@given(st.integers(0, 2**32 - 1))
def test_quintic_meets_all_its_boundary_conditions(seed):
    rng = np.random.default_rng(seed)
    start, end, v0, v1, a0, a1 = rng.normal(size=(6, 3))
    duration = float(rng.uniform(0.3, 3.0))
    move = motion.quintic(start, end, duration, velocity=(v0, v1), acceleration=(a0, a1), begin=1.5)
    first, last = move._inside(np.array(1.5)), move._inside(np.array(1.5 + duration))
    for found, wanted in zip((*first, *last), (start, v0, a0, end, v1, a1), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9 / min(duration, 1) ** 2)


def test_outside_its_time_a_robot_stands_still():
    move = motion.quintic([0.0], [1.0], 2.0, velocity=(1.0, 1.0))
    before, after = move.at(-1.0), move.at(5.0)
    assert before.q == 0.0
    assert after.q == pytest.approx(1.0)
    assert before.qd == before.qdd == after.qd == after.qdd == 0.0


@pytest.mark.parametrize("make", [motion.cubic_spline, motion.quintic_spline])
def test_splines_pass_their_points_and_are_smooth(make):
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.uniform(0.2, 1.0, 7))
    points = rng.normal(size=(7, 3))
    spline = make(times, points)
    np.testing.assert_allclose(spline.at(times).q, points, atol=1e-12)
    order = {motion.cubic_spline: 2, motion.quintic_spline: 4}[make]
    c = spline.coefficients
    for s, h in enumerate(np.diff(times)[:-1]):
        for derivative in range(order + 1):
            k = np.arange(derivative, c.shape[1])
            falling = np.array([np.prod(np.arange(i - derivative + 1, i + 1)) for i in k], dtype=float)
            left = np.sum((falling * h ** (k - derivative))[:, np.newaxis] * c[s, derivative:], axis=0)
            right = falling[0] * c[s + 1, derivative]
            np.testing.assert_allclose(left, right, atol=1e-8 * max(1.0, np.abs(right).max()))


def test_a_quintic_spline_of_two_points_is_the_quintic():
    spline = motion.quintic_spline([0.0, 2.0], [[0.0], [1.0]])
    np.testing.assert_allclose(
        spline.coefficients, motion.quintic([0.0], [1.0], 2.0).coefficients, atol=1e-14
    )


def test_natural_spline_has_no_acceleration_at_its_ends():
    spline = TRAJECTORIES["natural spline"]
    np.testing.assert_allclose(spline.at([0.0, 2.0]).qdd, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: motion.quintic([0.0, 1.0], [1.0], 2.0), r"end: expected shape \(2,\)"),
        (lambda: motion.quintic([0.0], [1.0], 0.0), "duration: expected a positive time"),
        (lambda: motion.quintic([np.nan], [1.0], 1.0), "start: expected finite"),
        (lambda: motion.cubic_spline([0, 1, 1], [[0], [1], [2]]), r"times\[2\] = 1 is not later"),
        (lambda: motion.cubic_spline([0, 1], [[0], [1], [2]]), "expected shapes"),
        (
            lambda: motion.trapezoidal([0.0], [1.0], velocity=-1, acceleration=1),
            "velocity: expected positive",
        ),
        (lambda: motion.FourierSeries([0.0], [[1.0]], [[1.0]], -2.0), "period: expected a positive"),
        (lambda: motion.FourierSeries([0.0], [[1.0]], [[1.0]], 2.0).sampled(10), "without end"),
        (lambda: motion.quintic([0.0], [1.0], 1.0).sampled(), "either a rate"),
        (
            lambda: motion.PiecewisePolynomial([0, 1], np.zeros((2, 3, 1))),
            r"coefficients: expected shape \(1, order, n\)",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_samples_cover_begin_and_end():
    samples = motion.quintic([0.0], [1.0], 2.0).sampled(rate=100)
    assert samples.t[0] == 0.0
    assert samples.t[-1] == pytest.approx(2.0)
    assert len(samples.t) == 201
