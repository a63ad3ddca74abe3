"""What is given to motions: numbers that cannot be right are refused by name, extremes give numbers or an error."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion

ROBOT = lw.load("two_link")
MOVE = motion.quintic([0.0, 0.0], [1.0, 1.0], 1.0)
POINTS = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]]
GOOD = {
    "hold": {"position": [0.0, 0.0], "duration": 1.0},
    "quintic": {"start": [0.0, 0.0], "end": [1.0, 1.0], "duration": 1.0, "begin": 0.0},
    "ramp": {"start": [0.0, 0.0], "end": [1.0, 1.0], "duration": 1.0, "begin": 0.0},
    "trapezoidal": {"start": [0.0, 0.0], "end": [1.0, 1.0], "velocity": 1.0, "acceleration": 1.0, "duration": 9.0},
    "jerk_limited": {
        "start": [0.0, 0.0], "end": [1.0, 1.0], "velocity": 1.0, "acceleration": 1.0, "jerk": 1.0, "duration": 9.0,
    },
    "cubic_spline": {"times": [0.0, 1.0, 2.0], "points": POINTS, "velocity": (0.0, 0.0)},
    "quintic_spline": {
        "times": [0.0, 1.0, 2.0], "points": POINTS, "velocity": (0.0, 0.0), "acceleration": (0.0, 0.0),
    },
    "FourierSeries": {"centre": [0.0, 0.0], "sine": [[1.0, 1.0]], "cosine": [[0.0, 0.0]], "period": 1.0},
    "PiecewisePolynomial": {"times": [0.0, 1.0], "coefficients": np.zeros((1, 2, 2))},
    "slowed": {"trajectory": MOVE, "factor": 2.0},
    "fastest": {"trajectory": MOVE, "robot": ROBOT, "torque": 1000.0},
    "check": {"trajectory": MOVE, "robot": ROBOT, "acceleration": 10.0, "points": 5},
}  # fmt: skip
ARGUMENTS = [(name, argument) for name, given in GOOD.items() for argument in given]
SCALARS = [0.0, -1.0, 1e-300, -1e-300, 5e-324, 1e300, 1e308, np.inf, -np.inf, np.nan, 10**400]
KINDS = [
    *(None, "x", 1j, True, [], [[]], {}, object(), np.zeros((0, 2)), np.zeros((2, 2, 2)), [1.0, [2.0]]),
    *(np.array([1j, 2]), np.array(["a", "b"]), np.array([None, 1.0], object), np.array([True, False])),
    *(np.array([1, 2]), np.array([1.0, 2.0], np.float16), np.ma.masked_array([1.0, 2.0], mask=[0, 1])),
    *([1e300, -1e300], [1e308, -1e308], [1e-300, 0.0], [5e-324, 0.0], [np.nan, 0.0], [np.inf, 0.0]),
]


def test_what_is_good_is_good():
    for name, given in GOOD.items():
        getattr(motion, name)(**given)


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_extremes_give_numbers_or_an_error(name, argument):
    function = getattr(motion, name)
    for value in (*SCALARS, *KINDS):
        try:
            found = function(**{**GOOD[name], argument: value})
        except (lw.LinkwiseError, ValueError, TypeError):
            continue
        if isinstance(found, motion.Trajectory) and np.isfinite(found.duration):
            for t in (found.begin, 0.5 * found.begin + 0.5 * found.end, found.end):
                assert all(np.isfinite(part).all() for part in found.at(t)), value


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
@pytest.mark.parametrize("bad", [np.nan, np.ma.masked_array([1.0, 2.0], mask=[0, 1]), 1j, "x"])
def test_what_is_no_number_is_named(name, argument, bad):
    """By the argument's own name, or as what is no motion and no robot."""
    with pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
        getattr(motion, name)(**{**GOOD[name], argument: bad})


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    ("name", "argument"), [(n, a) for n, a in ARGUMENTS if a in ("duration", "period", "factor")]
)
def test_times_are_positive_and_end(name, argument, bad):
    with pytest.raises(ValueError, match=f"{argument}: expected a positive"):
        getattr(motion, name)(**{**GOOD[name], argument: bad})


@pytest.mark.parametrize("bad", [-1.0, np.nan, [1.0, -1.0]])
@pytest.mark.parametrize(("name", "argument"), [("fastest", "torque"), ("check", "acceleration")])
def test_limits_are_not_negative(name, argument, bad):
    with pytest.raises(ValueError, match=f"{argument}: expected limits that are not negative"):
        getattr(motion, name)(**{**GOOD[name], argument: bad})


def test_a_limit_may_be_infinite():
    assert motion.check(MOVE, ROBOT, acceleration=np.inf, torque=False) == motion.check(
        MOVE, ROBOT, torque=False
    )


@pytest.mark.parametrize("way", [1e-280, 1e-100, 1e-9, 1.0, 1e6])
def test_moves_of_any_length_arrive(way):
    """Limits are scaled by the way, which must not leave the range of numbers."""
    for move in (
        motion.trapezoidal([0.0, 0.0], [way, 0.3 * way], velocity=1.0, acceleration=2.0),
        motion.jerk_limited([0.0, 0.0], [way, 0.3 * way], velocity=1.0, acceleration=2.0, jerk=3.0),
    ):
        q, qd, qdd = move.at(move.end)
        np.testing.assert_allclose(q, [way, 0.3 * way], rtol=1e-9)
        assert np.abs(move.at(np.linspace(0, move.end, 101)).qd).max() <= 1.0 + 1e-9
        assert np.abs(qd).max() <= 1e-6
        assert np.isfinite(qdd).all()


def test_a_way_below_all_numbers_is_none():
    for end in (5e-324, 1e-300):
        move = motion.jerk_limited([0.0], [end], velocity=1.0, acceleration=1.0, jerk=1.0)
        assert move.duration == 1.0
        assert move.at(0.5).q[0] == 0.0


def test_ramps_that_would_be_lost_are_an_error():
    """A way of 1e14 rad at 1 rad/s: the second in which the joint speeds up is nothing beside the rest."""
    with pytest.raises(ValueError, match="too little is left to speed up"):
        motion.trapezoidal([0.0], [1e14], velocity=1.0, acceleration=1.0)
    with pytest.raises(ValueError, match="beyond the range of numbers"):
        motion.trapezoidal([-1e308], [1e308], velocity=1.0, acceleration=1.0)


@pytest.mark.parametrize("points", [0, -1, 2.5, True, "x", np.nan])
def test_points_are_counted(points):
    with pytest.raises(ValueError, match="points: expected a whole number"):
        MOVE.sampled(points=points)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.inf, np.nan])
def test_rates_are_positive(rate):
    with pytest.raises(ValueError, match="rate: expected a positive number"):
        MOVE.sampled(rate)


@pytest.mark.parametrize(
    "function", [motion.turn_about, motion.rotation_vector, motion.euler_zyz, motion.zyz_angles]
)
def test_rotations_have_their_shape(function):
    name = next(iter(inspect.signature(function).parameters))
    for bad in (0.0, [], [[]], [0.0, 1.0], np.eye(2), np.zeros((3, 2))):
        with pytest.raises(lw.ShapeError, match=rf"{name}: expected shape \(\.\.\., 3"):
            function(bad)


@pytest.mark.parametrize("function", [motion.inverse_kinematics, motion.closed_form_inverse_kinematics])
def test_a_robot_is_a_robot(function):
    with pytest.raises(TypeError, match="robot: expected a Robot, got float"):
        function(1.0, np.eye(4))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1j, "x", np.ma.masked_array(np.eye(4), mask=np.eye(4))])
def test_targets_are_poses(bad):
    target = bad if isinstance(bad, np.ndarray) else np.array([[bad] * 4] * 4)
    for function in (motion.inverse_kinematics, motion.closed_form_inverse_kinematics):
        with pytest.raises((ValueError, TypeError), match="target: "):
            function(lw.load("puma560"), target)
