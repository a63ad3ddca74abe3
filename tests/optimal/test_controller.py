"""Predictive control: it reaches targets within limits, keeps a plan when an iteration fails, and stops after that."""

from itertools import pairwise

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import named
from linkwise.optimal import Predictive, ProblemError, Smoothness, reaching
from linkwise.optimal.predictive.standard import rest_of
from linkwise.simulate import Plant, Sensors, simulate

LIMITS = np.array([30.0, 8.0])
TARGET = np.array([0.4, -0.5])
OPTIONS = {"horizon": 12, "step": 0.02, "frequency": 10.0, "torque_limits": LIMITS}


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


@pytest.fixture(scope="module")
def controller(robot):
    return Predictive(robot, **OPTIONS)


def moved(robot, controller, reference, seconds=1.2, **options):
    controller.reset()
    return simulate(
        robot, controller, reference, duration=seconds, step=2e-3, control_period=4e-3, q=[0.0, 0.0], qd=[0.0, 0.0],
        torque_limits=LIMITS, **options,
    )  # fmt: skip


def test_it_reaches_a_target_within_the_limits(robot, controller):
    found = moved(robot, controller, TARGET)
    np.testing.assert_allclose(found.q[-1], TARGET, atol=0.02)
    assert np.abs(found.qd[-1]).max() < 0.1
    assert (np.abs(found.tau) <= LIMITS).all()
    assert (controller.status, controller.failures, controller.samples) == ("planned", 0, 300)


def test_far_targets_are_reached_at_the_limits(robot, controller):
    """Plans know the limits: torques stay at them for a while, and the arm does not overshoot much."""
    tight = {"torque.lower": [-18.5, -5.5], "torque.upper": [18.5, 5.5]}
    controller.aim(tight)
    found = moved(robot, controller, np.array([0.9, 0.0]))
    controller.aim({"torque.lower": -LIMITS, "torque.upper": LIMITS})
    assert np.abs(found.tau[:, 0]).max() == pytest.approx(18.5)
    assert (np.abs(found.tau[:, 0]) > 18.4).sum() > 10


def test_the_frequency_is_that_of_the_motion():
    """Far from all limits errors decay like those of a critically damped law of this frequency."""
    one = lw.planar_chain(1)
    law = named("predictive", one, frequency=6.0, torque_limits=False, horizon=40, step=0.02)
    found = simulate(
        one, law, [0.3], duration=0.8, step=2e-3, control_period=4e-3, q=[0.35], qd=[0.0], torque_limits=False
    )
    expected = 0.05 * (1.0 + 6.0 * found.t) * np.exp(-6.0 * found.t)
    assert np.abs(found.q[:, 0] - 0.3 - expected).max() < 0.005


def test_it_follows_a_motion(robot, controller):
    """The reference of ``simulate`` is the target, ahead by its velocity: the arm does not lag behind by a horizon."""
    motion = lw.motion.quintic([0.0, 0.0], [0.8, -0.6], 1.0)
    found = moved(robot, controller, motion, seconds=1.0)
    assert np.abs(found.error).max() < 0.1


def test_a_target_changes_on_the_way(robot, controller):
    controller.reset()
    controller.aim({"joints.target": TARGET})
    q, qd = np.zeros(2), np.zeros(2)
    for k in range(300):
        if k == 150:
            controller.aim({"joints.target": -TARGET})
        tau = controller(k * 4e-3, q, qd)
        for _ in range(2):
            qd = qd + 2e-3 * robot.forward_dynamics(q, qd, tau)
            q = q + 2e-3 * qd
        if k == 149:
            np.testing.assert_allclose(q, TARGET, atol=0.1)
    np.testing.assert_allclose(q, -TARGET, atol=0.1)
    controller.follows = True


def test_failed_iterations_keep_the_plan_then_stop(robot, controller):
    """A sensor that gives no numbers: torques of the last plan, then those that brake and hold; never NaN."""
    controller.reset()
    q, qd = np.array([0.1, 0.2]), np.array([0.3, -0.2])
    controller(0.0, q, qd, (TARGET, np.zeros(2), np.zeros(2)))
    kept = controller(0.004, [np.nan, 0.0], qd)
    assert controller.status == "kept"
    assert controller.reason == "a reading was not believed"
    assert (np.isfinite(kept) & (np.abs(kept) <= LIMITS)).all()
    for k in range(2, 60):
        torques = controller(0.004 * k, [np.nan, 0.0], [np.nan, np.inf])
        assert (np.isfinite(torques) & (np.abs(torques) <= LIMITS)).all()
    assert controller.status == "stopped"
    assert "cannot be" in controller.reason
    controller(0.3, q, qd)
    assert controller.status == "stopped"  # until somebody looks at the sensor
    controller.reset()
    assert np.isfinite(controller(0.31, q, qd)).all()
    assert controller.status == "planned"


def test_each_iteration_begins_with_the_plan_of_the_one_before(robot, monkeypatch):
    """The first one of a sample shifts the plan by its age; the others, and those without a plan, shift nothing."""
    controller = Predictive(robot, **OPTIONS)
    controller.reset()
    controller.aim({"joints.target": TARGET})
    controller.iterations, controller.first = 3, 4
    calls, iterate = [], Predictive._iterate

    def watched(self, x, states, torques, late):
        made = iterate(self, x, states, torques, late)
        calls.append((x, states, torques, late, made))
        return made

    monkeypatch.setattr(Predictive, "_iterate", watched)
    q, qd = np.zeros(2), np.zeros(2)
    for k, turns in enumerate((4, 3, 3)):
        calls.clear()
        controller(0.006 * k, q, qd, TARGET)
        assert len(calls) == turns
        assert calls[0][3] == pytest.approx(0.0 if k == 0 else 0.006 / 0.02)
        for before, after in pairwise(calls):
            assert after[3] == 0.0
            np.testing.assert_array_equal(after[1], before[4][0])
            np.testing.assert_array_equal(after[2], before[4][1])
        np.testing.assert_array_equal(controller.plan.states, calls[-1][4][0])
        np.testing.assert_array_equal(controller.plan.torques, calls[-1][4][1])
        assert controller.plan.time == 0.006 * k
        assert all((call[0] == [*q, *qd]).all() for call in calls)
        q, qd = q + 0.006 * qd, qd + 0.02


def test_a_failed_iteration_of_a_known_state_feeds_back(robot, controller, monkeypatch):
    controller.reset()
    q, qd = np.array([0.1, 0.2]), np.zeros(2)
    controller(0.0, q, qd, (TARGET, np.zeros(2), np.zeros(2)))
    monkeypatch.setattr(Predictive, "_improved", lambda self, *_: None)
    plan, away = controller.plan, np.array([0.001, -0.002])
    near, far = (controller(0.0, plan.states[0][:2] + d, plan.states[0][2:]) for d in (0.0 * away, away))
    expected = np.clip(plan.torques[0] + plan.gains[0][:, :2] @ away, -LIMITS, LIMITS)
    np.testing.assert_allclose(far, expected, rtol=1e-9, atol=1e-12)
    assert (near != far).all()
    falling = controller(1.0, q, np.array([1.0, 0.0]))
    assert (controller.status, controller.reason) == ("stopped", "the plan is too old")
    still = controller(2.0, q, np.zeros(2))
    assert falling[0] < still[0]  # the stop brakes


def test_a_start_without_numbers_gives_no_torque(controller):
    controller.reset()
    np.testing.assert_array_equal(controller(0.0, [np.nan, np.nan], [0.0, 0.0]), 0.0)


def test_references_that_cannot_be_followed_are_said(robot, controller):
    """One that is not a number leaves the target as it is; both kinds were ignored without a word."""
    controller.reset()
    q, rest = np.array([0.1, 0.2]), np.zeros(2)
    controller(0.0, q, rest, (TARGET, rest, rest))
    assert (controller.status, controller.reason) == ("planned", "")
    for wrong in ((TARGET * np.nan, rest), (TARGET, rest * np.nan), (np.array([np.inf, 0.0]), rest)):
        wanted = controller.plan.states
        torques = controller(0.0, q, rest, wrong)
        assert (np.isfinite(torques) & (np.abs(torques) <= LIMITS)).all()
        assert controller.status == "planned"
        assert controller.reason == "the reference is not a number: the target stays what it was"
        np.testing.assert_allclose(controller.plan.states, wanted, atol=0.05)
    controller(0.0, q, rest, (TARGET,))  # at rest
    assert (controller.status, controller.reason) == ("planned", "")
    for wrong in ((np.zeros(3), np.zeros(3)), (TARGET, np.zeros(1)), (0.4, 0.0)):
        with pytest.raises(lw.ShapeError, match="reference: expected"):
            controller(0.0, q, rest, wrong)


def test_noise(robot, controller):
    plant = Plant(robot, sensors=Sensors(position_noise=1e-4, velocity_noise=1e-3))
    found = moved(plant, controller, TARGET, seconds=0.8)
    assert controller.failures == 0
    assert np.abs(found.q[-1] - TARGET).max() < 0.05


def test_the_rest_position_is_allowed():
    robot = lw.load("panda")
    rest = rest_of(robot)
    assert ((robot.limits.lower < rest) & (rest < robot.limits.upper)).all()
    assert reaching(robot, horizon=2, tip=True).p.shape[0] == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"oldest": 9.0}, "oldest: a plan is 0.24 s long"),
        ({"iterations": 0}, "iterations"),
        ({"frequency": 0.0}, "frequency"),
    ],
)
def test_bad_options_are_refused(robot, options, words):
    with pytest.raises(lw.LinkwiseError, match=words):
        Predictive(robot, **{**OPTIONS, **options})


def test_what_does_not_fit_is_refused(robot, controller):
    with pytest.raises(ProblemError, match="a Problem, or a robot"):
        Predictive(reaching(robot, horizon=2), horizon=3)
    problem = lw.optimal.Problem(robot, horizon=2, costs=[Smoothness(of="torque")])
    with pytest.raises(ProblemError, match="differences of torques"):
        Predictive(problem)
    with pytest.raises(lw.ShapeError, match="one robot"):
        controller(0.0, np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="critically damped"):
        named("predictive", robot, frequency=3.0, damping=0.5)
    with pytest.raises(ValueError, match="frequency, not gains"):
        named("predictive", robot, lw.control.Gains.from_frequency(3.0))


def test_plans_that_are_refused_are_not_followed():
    """A shifted plan that no step improves has gaps: the last plan stays in force until it is too old."""
    controller = Predictive(lw.load("two_link"), horizon=8, step=0.02)
    controller(0.0, np.zeros(2), np.zeros(2), (np.array([0.3, 0.2]), np.zeros(2)))
    before = controller.plan

    def refused(x, states, torques, late):
        report = [
            1.0,
            5.0,
            1.0,
            1.0,
            0.0,
            1e-3,
            0.0,
            1.0,
            0.0,
        ]  # cost, gap, gradient, expected, step, …, usable
        return states, torques, before.gains, np.array(report)

    controller._iterate = refused
    for t in (0.01, 0.02):
        controller(t, np.full(2, 0.5), np.zeros(2))
        assert (controller.status, controller.plan) == ("kept", before)
    controller(1.0, np.full(2, 0.5), np.zeros(2))
    assert controller.status == "stopped"
