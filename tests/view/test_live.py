"""The robot behind the page."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.view.bars import bars, tint
from linkwise.view.live import Live, ball_radius, home, ranges
from linkwise.view.motions import random_points, to_and_fro
from linkwise.view.parts import ellipsoid
from linkwise.view.player import Recording


def test_the_load_is_that_of_a_payload():
    robot = lw.load("panda")
    live = Live(robot)
    live.load = 2.5
    q = np.random.default_rng(0).uniform(-1, 1, robot.dof)
    np.testing.assert_allclose(live.gravity(q), live.with_load().gravity_torques(q), atol=1e-12)
    qd, qdd = np.random.default_rng(1).normal(size=(2, robot.dof))
    np.testing.assert_allclose(
        live.torques(q, qd, qdd), live.with_load().inverse_dynamics(q, qd, qdd), atol=1e-10
    )


def test_scale_is_the_effort_limit_where_there_is_one():
    np.testing.assert_array_equal(Live(lw.load("panda")).scale[:2], [87.0, 87.0])
    assert (Live(lw.load("puma560")).scale > 0).all()


@pytest.mark.parametrize("name", ["panda", "puma560", "stanford", "two_link"])
def test_motions_stay_within_ranges_and_come_back(name):
    robot = lw.load(name)
    lower, upper = ranges(robot)
    q = home(robot)
    assert ((lower <= q) & (q <= upper)).all()
    for motion in (to_and_fro(robot, q), random_points(robot, q, seed=3)):
        found = motion.at(np.linspace(motion.begin, motion.end, 500))
        np.testing.assert_allclose(found.q[[0, -1]], [q, q], atol=1e-9)
        speeds = np.array([joint.limits.velocity for joint in robot.moving_joints])
        assert (np.abs(found.qd).max(axis=0) <= speeds * (1 + 1e-6)).all()
    swept = to_and_fro(robot, q).at(np.linspace(0, 20, 500)).q
    assert (swept >= lower - 1e-9).all()
    assert (swept <= upper + 1e-9).all()


def test_recording_between_rows():
    recording = Recording(np.array([0.0, 1.0]), np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    q, tau, wanted = recording.at(0.25)
    assert (q[0], tau[0], wanted) == (0.5, 1.0, None)
    assert recording.at(9.0)[0][0] == 2.0


def test_ellipsoid_of_a_solid_one():
    axes = np.array([0.1, 0.2, 0.3])
    mass = 3.0
    squares = axes**2
    moments = mass / 5 * (squares.sum() - squares)
    found, rotation = ellipsoid(lw.Inertia.from_com(mass, (0, 0, 1), moments)) or (None, None)
    np.testing.assert_allclose(sorted(found), axes, rtol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert ellipsoid(lw.Inertia(0.0)) is None
    assert ellipsoid(lw.Inertia.from_com(1.0, (0, 0, 0), (1.0, 1.0, 5.0))) is None  # no such body


def test_bars_escape_names_and_have_a_row_per_joint():
    joint = lw.Joint("<script>alert(1)</script>", "revolute", "a", "b", limits=lw.Limits(effort=10.0))
    text = bars([joint], np.array([-5.0]), np.array([10.0]))
    assert "<script>" not in text
    assert "50%" in text
    assert "−5.00 N·m" in text
    assert text.count("lw-bar") == 2  # the box of all, and one


def test_tint_goes_from_blue_to_red():
    assert tint(0.0)[2] > tint(0.0)[0]
    assert tint(1.0)[0] > tint(1.0)[2]
    assert tint(7.0) == tint(1.0) == tint(float("nan"))
    assert ball_radius(0.0) == 0.0


def test_ranges_are_shown_as_the_file_says_and_never_left():
    """6.2832 rad are 360.0009°, which is no 360.1°."""
    from linkwise.view.dials import dials_of

    for name in lw.robots():
        for dial in dials_of(lw.load(name)):
            low, high = dial.shown
            assert abs(low - dial.lower * dial.unit) <= 0.05 + 1e-9
            assert abs(high - dial.upper * dial.unit) <= 0.05 + 1e-9
            assert dial.lower <= dial.inside(low / dial.unit) <= dial.inside(high / dial.unit) <= dial.upper
    assert dials_of(lw.load("ur10e"))[0].shown == (-360.0, 360.0)
