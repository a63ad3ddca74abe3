"""Trapezoidal and jerk-limited moves: within their limits, and no slower than those allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise import motion

numbers = st.floats(0.05, 20.0)


@given(way=st.floats(1e-3, 10.0), v=numbers, a=numbers, j=numbers, backward=st.booleans())
def test_jerk_limited_is_within_its_limits_and_reaches_the_end(way, v, a, j, backward):
    end = [-way if backward else way, 0.3 * way]
    move = motion.jerk_limited([0.0, 0.0], end, velocity=v, acceleration=a, jerk=j)
    t = np.linspace(0, move.duration, 1001)
    q, qd, qdd = move._inside(t)
    np.testing.assert_allclose(q[-1], end, rtol=1e-9)
    assert np.abs(qd).max() <= v * (1 + 1e-9)
    assert np.abs(qdd).max() <= a * (1 + 1e-9)
    np.testing.assert_allclose(qd[[0, -1]], 0.0, atol=1e-7 * v)
    np.testing.assert_allclose(qdd[[0, -1]], 0.0, atol=1e-7 * a)
    third = 6 * move.coefficients[:, 3]
    assert np.abs(third).max() <= j * (1 + 1e-9)
    # the quickest: the jerk is always at its limit, or the speed or the acceleration of the leading joint is
    middles = (move.times[1:] + move.times[:-1]) / 2
    _, speed, change = move._inside(middles)
    at_limit = [
        np.isclose(np.abs(x[:, 0]), limit, rtol=1e-6) for x, limit in ((third, j), (change, a), (speed, v))
    ]
    assert np.logical_or.reduce(at_limit).all()


@given(way=st.floats(1e-3, 10.0), v=numbers, a=numbers)
def test_trapezoid_takes_the_time_of_its_formula(way, v, a):
    move = motion.trapezoidal([1.0], [1.0 + way], velocity=v, acceleration=a)
    expected = way / v + v / a if way > v * v / a else 2 * np.sqrt(way / a)
    assert move.duration == pytest.approx(expected, rel=1e-9)
    assert move.at(move.end).q[0] == pytest.approx(1.0 + way, rel=1e-9)


def test_the_slowest_joint_decides_and_all_arrive_together():
    move = motion.trapezoidal([0, 0, 0], [1.0, 2.0, 0.0], velocity=[1.0, 0.5, 1.0], acceleration=5.0)
    alone = motion.trapezoidal([0], [2.0], velocity=0.5, acceleration=5.0)
    assert move.duration == pytest.approx(alone.duration)
    halfway = move.at(move.duration / 3).q
    assert halfway[1] == pytest.approx(2 * halfway[0])
    assert halfway[2] == 0.0


def test_a_given_duration_stretches_and_is_not_shortened():
    move = motion.jerk_limited([0], [1.0], velocity=1, acceleration=5, jerk=50, duration=3.0)
    assert move.duration == pytest.approx(3.0)
    assert move.at(3.0).q[0] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="need at least"):
        motion.jerk_limited([0], [1.0], velocity=1, acceleration=5, jerk=50, duration=0.5)


def test_a_move_to_the_same_place_stands_still():
    move = motion.trapezoidal([0.5, 0.5], [0.5, 0.5], velocity=1, acceleration=1, duration=2.0)
    assert move.duration == 2.0
    assert (move.at([0.0, 1.0, 2.0]).q == 0.5).all()
