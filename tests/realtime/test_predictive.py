"""Predictive control in the two-rate runtime: plans in the background, faults, targets that change. In real time."""

import shutil

import numpy as np
import pytest

import linkwise as lw
from linkwise.optimal.predictive import progress
from linkwise.realtime import Fault, PredictiveController, SettingsError, SimulatedPlant

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)
LIMITS = np.array([40.0, 15.0])
TARGET = np.array([0.3, -0.2])


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


def made(robot, **options):
    described = {"horizon": 10, "step": 0.02, "frequency": 12.0, "torque_limits": LIMITS}
    options = {"limits": {"effort": LIMITS}, "stop_time": 0.02, "deadlines": 0, **options}
    return PredictiveController(robot, described=described, **options)


def test_it_reaches_targets_that_change_on_the_way(robot):
    controller = made(robot)
    controller.aim({"joints.target": TARGET})
    report = controller.run(1.2, changes=[(0.6, {"joints.target": -TARGET})])
    assert report.finished, report.reason
    cycles = report.cycles
    middle = report.q[np.searchsorted(cycles, 550)]
    np.testing.assert_allclose(middle, TARGET, atol=0.06)
    np.testing.assert_allclose(report.q[-1], -TARGET, atol=0.06)
    assert (np.abs(report.tau) <= LIMITS).all()
    plans = controller.plans
    assert plans.failed == 0
    assert plans.iterations > 100
    assert 0.0 < plans.mean_time <= plans.largest_time
    assert report.plan_age.max() < controller.oldest_plan


def test_the_first_torques_are_those_of_the_python_controller(robot):
    """The same iterations from the same start: u + K (x − x_plan) at the time of the first cycle."""
    controller = made(robot, first_iterations=20)
    controller.aim({"joints.target": TARGET})
    report = controller.run(0.01)
    python = lw.optimal.Predictive(
        robot, horizon=10, step=0.02, frequency=12.0, torque_limits=LIMITS, first=20, steps=(1.0, 0.5, 0.25)
    )
    python.aim({"joints.target": TARGET})
    python(0.0, np.zeros(2), np.zeros(2))
    plan, part = python.plan, report.plan_age[0] / 0.02
    x = np.concatenate([report.q[0], report.qd[0]])
    wanted = (1 - part) * plan.states[0] + part * plan.states[1]
    np.testing.assert_allclose(
        report.tau[0], plan.torques[0] + plan.gains[0] @ (x - wanted), rtol=1e-6, atol=1e-6
    )


def test_old_plans_stop_the_arm(robot):
    """Plans that come far too rarely: the last one serves for a while, then the stop sequence takes over."""
    controller = made(robot, plan_period=5.0, oldest_plan=0.05)
    controller.aim({"joints.target": TARGET})
    report = controller.run(0.5)
    assert report.reason.startswith("the plan was 0.05")
    assert 30 <= report.cycle <= 60
    assert len(report.stop_rows) > 5
    assert np.isfinite(report.stop_tau).all()


def test_a_sensor_without_numbers_stops_the_arm(robot):
    plant = SimulatedPlant(robot, fault=Fault("nan", 20, 1))
    controller = made(robot, plant=plant)
    report = controller.run(0.2)
    assert "gave nan" in report.reason
    assert np.isfinite(report.tau).all()
    assert np.isfinite(report.stop_tau).all()


def test_targets_without_numbers_are_refused(robot):
    controller = made(robot)
    with pytest.raises(lw.LinkwiseError, match=r"joints\.target: expected finite numbers"):
        controller.aim({"joints.target": [np.nan, 0.0]})
    controller._parameters[:] = np.nan  # as a caller in C might
    assert controller.run(0.05).reason.startswith("no plan was found at the start")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"plan_period": 0.0}, "plan_period"),
        ({"oldest_plan": 9.0}, r"oldest_plan: a plan is 0\.2 s long"),
        ({"first_iterations": -1}, "first_iterations"),
    ],
)
def test_bad_settings_are_refused(robot, options, words):
    with pytest.raises(SettingsError, match=words):
        made(robot, **options)


def test_problems_that_do_not_fit_are_refused(robot):
    problem = lw.optimal.Problem(robot, horizon=2, costs=[lw.optimal.Smoothness(of="torque")])
    with pytest.raises(SettingsError, match="differences of torques"):
        PredictiveController(problem)


def test_speed_limits_are_kept_whatever_the_target_is(robot):
    """Limits of the plan (penalties) and of the guard; the target is far outside of the range of speeds."""
    described = {"horizon": 6, "step": 0.02, "frequency": 12.0, "torque_limits": LIMITS}
    described["limits"] = [lw.optimal.StateLimits(position=False, velocity=0.8)]
    limits = {"effort": LIMITS, "speed": 1.0}
    controller = PredictiveController(
        robot, described=described, limits=limits, stop_time=0.02, deadlines=0, period=4e-3
    )
    controller.aim({"joints.target": [30.0, -30.0]})
    report = controller.run(0.6)
    assert report.finished, report.reason
    assert 0.5 < np.abs(report.qd).max() <= 1.0


def test_a_frozen_encoder_stops_the_arm(robot):
    plant = SimulatedPlant(robot, fault=Fault("freeze", 100, 0))
    controller = made(robot, plant=plant)
    controller.aim({"joints.target": [2.0, -1.0]})
    report = controller.run(1.0)
    assert "did not change" in report.reason
    assert report.cycle < 200


def test_an_arm_that_does_not_approach_its_target_stops(robot, monkeypatch):
    """Where nothing counts as progress every motion is one of those."""
    for name, value in (("PATIENCE", 0.05), ("NEARER", 0.0), ("NEARER_BY", 100.0)):
        monkeypatch.setattr(progress, name, value)
    controller = made(robot)
    controller.aim({"joints.target": [2.0, -1.0]})
    report = controller.run(1.0)
    assert "the target was not approached" in report.reason
    assert 45 <= report.cycle < 300
