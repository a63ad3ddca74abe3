"""Controllers by name: the same gains whichever way they are made."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.simulate import Plant, Sensors, simulate
from linkwise.study.errors import StudyError
from linkwise.study.schema import StudySettings
from linkwise.study.steps import closed_loop
from linkwise.study.steps.robot_parameters import RobotParameters

FREQUENCY, DAMPING = 10.0, 0.8


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma560")


def in_a_study(robot: lw.Robot, name: str, gains: dict) -> control.Controller:
    entry = {"simulate": name, "duration": 1.0, "reference": {"to": 0.1}}
    if control.CONTROLLERS[name].feedback:
        entry["gains"] = gains
    step = closed_loop.read("run", StudySettings(entry, "run"), robot, RobotParameters(()), 0)
    return step.controller


def on_the_command_line(robot: lw.Robot, name: str) -> control.Controller:
    from linkwise.cli.simulate import _controller

    others = {"kp": None, "kd": None, "ki": None, "gain": ()}
    return _controller(
        robot, name, {"frequency": (FREQUENCY,), "damping": DAMPING, "model_error": 0.0, **others}
    )


@pytest.mark.parametrize("name", control.CONTROLLERS)
def test_equal_gains_by_every_way_in(robot, name):
    feedback = control.CONTROLLERS[name].feedback
    given = {"frequency": FREQUENCY, "damping": DAMPING} if feedback else {}
    expected = control.named(name, robot, **given)
    for found in (in_a_study(robot, name, given), on_the_command_line(robot, name)):
        assert type(found) is type(expected)
        assert found.gains.keys() == expected.gains.keys()
        for gain, values in expected.gains.items():
            np.testing.assert_array_equal(found.gains[gain], values)
        np.testing.assert_array_equal(found.torque_limits, expected.torque_limits)


@pytest.mark.parametrize("name", control.CONTROLLERS)
def test_the_page_takes_the_same(robot, name):
    pytest.importorskip("viser")
    from linkwise.view.tabs.control import controller

    feedback = control.CONTROLLERS[name].feedback
    expected = control.named(name, robot, frequency=FREQUENCY if feedback else None)
    for gain, values in expected.gains.items():
        np.testing.assert_array_equal(controller(name, robot, FREQUENCY).gains[gain], values)


def test_what_a_frequency_means(robot):
    plain = control.named("tracking", robot, frequency=10.0, damping=0.8).gains
    assert plain["kp"].tolist() == [100.0] * 6
    assert plain["kd"].tolist() == [16.0] * 6
    assert control.Tracking.gains_for(robot, 10.0).kd == 20.0  # critically damped
    assert control.IntegralTracking.gains_for(robot, 10.0).kd == 30.0
    assert control.named("tracking", robot).gains["kd"][0] == 20.0  # 10 rad/s where nothing is said
    integral = control.named("integral_tracking", robot, frequency=10.0).gains
    assert integral["ki"].tolist() == [1000.0] * 6
    np.testing.assert_allclose(np.roots([1, *(integral[k][0] for k in ("kd", "kp", "ki"))]), -10.0, rtol=1e-4)
    inertia = np.diag(robot.mass_matrix(np.zeros(6)))
    torque = control.named("gravity_pd", robot, frequency=10.0).gains
    assert (torque["kp"] >= 100.0 * inertia).all()
    assert (
        torque["kp"] < 130.0 * inertia
    ).all()  # lying at zero, the arm has nearly its largest inertias there
    np.testing.assert_allclose(torque["kd"], 0.2 * torque["kp"], rtol=1e-14)
    upright = lw.load("iiwa14")  # at zero its first joint carries next to nothing
    zero = control.GravityPD.gains_for(upright, 10.0, q=upright.neutral).kp
    usual = control.GravityPD.gains_for(upright, 10.0).kp
    stretched = control.GravityPD.gains_for(upright, 10.0, q=np.array([0.0, 1.5, 0, 0, 0, 0, 0])).kp
    assert zero[0] < 0.4 * usual[0] < usual[0] < stretched[0]
    there = control.GravityPD.gains_for(robot, 10.0, q=np.full(6, 0.5))
    np.testing.assert_allclose(there.kp, 100.0 * np.diag(robot.mass_matrix(np.full(6, 0.5))), rtol=1e-14)


def test_torque_gains_stay_stable_where_an_arm_is_light():
    for name in ("two_link", "ur10e"):  # 20 and 47 times lighter somewhere than the usual inertias
        arm = lw.load(name)
        kp = control.named("gravity_pd", arm).gains["kp"]
        M = arm.mass_matrix(arm.random(np.random.default_rng(7), 200))
        fastest = np.linalg.eigvals(
            np.linalg.solve(M, np.broadcast_to(np.diag(kp / 100.0), M.shape))
        ).real.max()
        assert 6.0 < fastest < 11.0  # times as fast as meant
    arm = lw.load("two_link")
    law = control.named("gravity_pd", arm, torque_limits=False)
    values = zip(arm.parameter_labels, arm.parameters, strict=True)
    lighter = {label: 0.7 * v for label, v in values if "friction" not in label and v != 0.0}
    plant = Plant(arm.with_parameters(lighter), sensors=Sensors(velocity="difference", cutoff=400.0))
    for elbow in (0.1, 1.5, 3.0):  # stretched, bent, folded
        goal = np.array([0.3, elbow])
        found = simulate(plant, law, goal, duration=4.0, step=1e-3, delay=2, q=goal + 0.1, warn=False)
        assert np.abs(found.qd[-100:]).max() < 1e-3


def test_explicit_gains_are_the_laws_own(robot):
    gains = control.Gains(3.0, 4.0)
    for name in ("tracking", "gravity_pd"):
        assert control.named(name, robot, gains).gains["kp"].tolist() == [3.0] * 6
        found = in_a_study(robot, name, {"kp": 3.0, "kd": 4.0})
        assert found.gains["kd"].tolist() == [4.0] * 6


def test_options_reach_the_law(robot):
    assert control.named("feed_forward", robot, gravity="online").gravity == "online"
    assert (
        control.named("tracking", robot, frequency=5.0, torque_limits=3.0).torque_limits.tolist() == [3.0] * 6
    )
    assert np.isinf(control.named("passive", robot, torque_limits=3.0).torque_limits).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "trakcing"}, lw.UnknownNameError, "no 'trakcing'; did you mean 'tracking'"),
        ({"name": "passive", "frequency": 1.0}, ValueError, "passive: it has no feedback"),
        (
            {"name": "feed_forward", "gains": control.Gains(1, 1)},
            ValueError,
            "feed_forward: it has no feedback",
        ),
        ({"name": "tracking", "gains": control.Gains(1, 1), "frequency": 1.0}, ValueError, "not both"),
        ({"name": "tracking", "frequency": np.nan}, ValueError, "frequency and damping"),
        (
            {"name": "tracking", "frequency": 5.0, "torque_limits": [1, 2]},
            ValueError,
            "torque_limits: expected one",
        ),
        (
            {"name": "tracking", "frequency": 5.0, "torque_limits": np.nan},
            ValueError,
            "torque_limits: expected pos",
        ),
    ],
)
def test_wrong_arguments_are_named(robot, arguments, error, message):
    with pytest.raises(error, match=message):
        control.named(arguments.pop("name"), robot, **arguments)


def test_a_study_refuses_an_integral_that_the_law_does_not_have(robot):
    assert (
        in_a_study(robot, "integral_tracking", {"frequency": 10.0, "integral": True}).gains["ki"][0] == 1000.0
    )
    with pytest.raises(StudyError, match="tracking has no integral action"):
        in_a_study(robot, "tracking", {"frequency": 10.0, "integral": True})
    with pytest.raises(StudyError, match="integral_tracking has integral action"):
        in_a_study(robot, "integral_tracking", {"frequency": 10.0, "integral": False})


@pytest.mark.parametrize("name", ["kp", "kd", "ki"])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, [1.0, -2.0], "strong", None])
def test_gains_that_cannot_be_are_refused_by_name(robot, name, value):
    with pytest.raises(ValueError, match=f"{name}: expected"):
        control.Gains(**{"kp": 1.0, "kd": 1.0, "ki": 0.0, name: value})
    if isinstance(value, float):
        with pytest.raises(StudyError, match="gains"):
            in_a_study(robot, "tracking", {name: value})


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("predictive", {"frequency": [10.0] * 6}, "frequency: expected one number"),
        ("predictive", {"frame": "nothing"}, "frame"),
        ("hand_guiding", {"frame": "nothing"}, "frame"),
        ("gravity_pd", {"frequency": [1.0, 2.0, 3.0]}, "frequency: expected one number or 6"),
        ("integral_tracking", {"gains": control.Gains(0.0, 0.0, 0.0)}, "gains: unstable"),
        ("passive", {"frequency": 3.0}, "no feedback"),
    ],
)
def test_arguments_that_no_law_can_use_are_named(robot, name, options, said):
    with pytest.raises(lw.LinkwiseError, match=said):
        control.named(name, robot, **options)


def test_an_impedance_takes_one_damping_ratio(robot):
    """A ratio for each axis was replaced by the mean of them."""
    with pytest.raises(lw.LinkwiseError, match="one damping ratio"):
        control.named("cartesian_impedance", robot, damping=[1.0, 1.0, 1.0, 0.3, 0.3, 0.3])
    law = control.named("cartesian_impedance", robot, damping=[0.7] * 6)
    assert law.gains["damping_ratio"].tolist() == [0.7]
