"""Findings have a margin: what is said of a model or a recording is more than noise would make of it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, Validation, condition, identify
from linkwise.identify.judging.diagnosis import diagnose
from linkwise.identify.judging.ratios import error_ratio
from linkwise.identify.judging.screening import Screen, Weighing, thinned

NOISE = 0.03  # of each torque


def judged(log: Log, qd: np.ndarray, residuals: np.ndarray) -> Validation:
    return Validation(log, log.t, qd, log.tau, log.tau - residuals, 5.0)


@pytest.fixture(scope="module")
def arms() -> dict[str, tuple[lw.Robot, Log]]:
    """Two robots of three joints, heavier than their files say and with friction, that move for 10 s."""
    found = {}
    locked = {
        "puma560": {"wrist_roll": 0.0, "wrist_bend": 0.3, "flange": 0.0},
        "ur10e": {f"wrist_{k}_joint": 0.4 for k in (1, 2, 3)},
    }
    for name in locked:
        robot = lw.load(name).lock(locked[name])
        n = robot.dof
        factors = 1.0 + 0.2 * np.random.default_rng(3).uniform(size=n)
        values = zip(robot.parameter_labels[: 10 * n], robot.parameters, strict=False)
        links = {label: float(factors[k // 10] * value) for k, (label, value) in enumerate(values)}
        t, q, qd, qdd = motion(5, dof=n, seconds=10.0, size=0.5)
        heavier = robot.with_parameters(links)
        carried = np.sqrt((heavier.inverse_dynamics(q, qd, qdd) ** 2).mean(axis=0))
        friction = {
            f"{joint}.{kind}": float(0.1 * size)
            for joint, size in zip(robot.joint_names, carried, strict=True)
            for kind in ("viscous_friction", "coulomb_friction")
        }
        tau = heavier.with_parameters(friction).inverse_dynamics(q, qd, qdd)
        noise = NOISE * np.sqrt((tau**2).mean(axis=0)) * np.random.default_rng(1).normal(size=tau.shape)
        found[name] = robot, Log(t, q, tau + noise, name=name)
    return found


def said(robot: lw.Robot, log: Log) -> tuple[str, ...]:
    words = diagnose(robot, [condition(log, cutoff=10.0)])
    return (*words.causes, *words.remarks)


# -- two models --------------------------------------------------------------------------------------------------------


def test_a_ratio_of_errors_covers_the_true_one():
    """Residuals that stay the same for a while, as those of a model do: two standard errors hold 95 % of the ratios."""
    rng, held, ratios = np.random.default_rng(0), 0, []
    t, q, qd, _ = motion(1)
    log = Log(t, q, np.ones_like(q))
    for _ in range(200):
        blocks = rng.normal(size=(2, 300, 2)).repeat(len(t) // 300 + 1, axis=1)[:, : len(t)]
        ratio = error_ratio(*(judged(log, qd, size * e) for size, e in zip((1.0, 1.25), blocks, strict=True)))
        held += abs(ratio.value - 0.8) < 2.0 * ratio.deviation
        ratios.append(ratio.value)
    assert np.median(ratios) == pytest.approx(0.8, rel=0.02)
    assert 180 <= held <= 199


def test_equal_models_are_not_called_worse():
    """0.581 beside 0.573 is no verdict; the same ratio in every block and twice the error are."""
    rng = np.random.default_rng(1)
    t, q, qd, _ = motion(1)
    log, e = Log(t, q, np.ones_like(q)), rng.normal(size=q.shape)
    other = rng.normal(size=q.shape)
    assert not error_ratio(judged(log, qd, 0.581 * other), judged(log, qd, 0.573 * e)).clear
    assert not error_ratio(judged(log, qd, 1.014 * e), judged(log, qd, e)).clear
    assert error_ratio(judged(log, qd, 1.05 * e), judged(log, qd, e)).clear
    assert error_ratio(judged(log, qd, 2.0 * other), judged(log, qd, e)).clear
    # all of the difference in one block: no other motion says so
    one = e.copy()
    one[: len(t) // 30] *= 4.0
    assert not error_ratio(judged(log, qd, one), judged(log, qd, e)).clear


def test_parts_are_compared_apart():
    t, q, qd, _ = motion(1)
    log, e = Log(t, q, np.ones_like(q)), np.random.default_rng(2).normal(size=q.shape)
    which = np.zeros(q.shape, dtype=bool)
    which[::3] = True
    worse = np.where(which, 3.0, 1.0) * e
    assert error_ratio(judged(log, qd, worse), judged(log, qd, e), which).value == pytest.approx(3.0)
    assert error_ratio(judged(log, qd, worse), judged(log, qd, e), ~which).value == pytest.approx(1.0)
    nothing = error_ratio(judged(log, qd, worse), judged(log, qd, e), np.zeros_like(which))
    assert not nothing.clear
    assert nothing.blocks == 0


# -- weight ------------------------------------------------------------------------------------------------------------


def test_torques_without_weight_are_named(arms):
    """Compensated with the true robot's gravity, and with that of the file, which is lighter."""
    for name, (robot, log) in arms.items():
        assert said(robot, log) == (), name
        true_gravity = identify_quietly(robot, log).robot.gravity_torques(log.q)
        for gravity in (true_gravity, robot.gravity_torques(log.q)):
            words = said(robot, replace(log, tau=log.tau - gravity))
            assert len(words) == 1, (name, words)
            assert "compensated for gravity" in words[0], (name, words)


def test_torques_from_which_too_much_weight_was_taken_are_named(arms):
    """By a model that is heavier than the robot: what is left points upwards, which gravity does not."""
    for (name, (robot, log)), factor in zip(arms.items(), (1.4, 1.5), strict=True):
        words = said(robot, replace(log, tau=log.tau - factor * robot.gravity_torques(log.q)))
        assert len(words) == 1, (name, words)
        assert "compensated for gravity" in words[0], (name, words)


def test_weight_is_missing_only_beyond_its_margins():
    """Inertia three standard errors above nothing and within twice and half of the file's; weight below half by two."""
    down = np.array([0.0, 0.0, -1.0])

    def weightless(inertial=1.0, gravity=1.0, inertial_deviation=0.1, gravity_deviation=0.1):
        return Weighing(inertial, gravity * down, inertial_deviation, gravity_deviation).weightless

    half = 0.5 * 9.80665
    assert weightless()
    assert weightless(inertial_deviation=0.99 / 3.0)
    assert not weightless(inertial_deviation=1.01 / 3.0)
    assert weightless(gravity=half - 0.3, gravity_deviation=0.149)
    assert not weightless(gravity=half - 0.3, gravity_deviation=0.151)
    assert weightless(inertial=0.8, gravity=0.79 * half - 0.2)
    assert not weightless(inertial=0.8, gravity=0.81 * half - 0.2)
    assert not weightless(gravity=9.8)
    # a joint that carries its weight as the file says: the others are disturbed
    assert Weighing(1.0, down, 0.1, 0.1, np.array([0.0, -2.0, 0.49])).weightless
    assert not Weighing(1.0, down, 0.1, 0.1, np.array([0.0, 0.51, 0.0])).weightless
    assert not Weighing(0.6, down, 0.1, 0.1, np.array([0.0, 0.31, 0.0])).weightless


def test_gravity_is_weighed(arms):
    """By the file's masses the measured torques have about gravity times what the robot is heavier, wherever it is."""
    for robot, log in arms.values():
        for gravity in ((0.0, 0.0, -9.81), (9.81, 0.0, 0.0)):
            wall = robot.with_gravity(gravity)
            change = wall.gravity_torques(log.q) - robot.gravity_torques(log.q)
            signals = condition(replace(log, tau=log.tau + change), cutoff=10.0)
            screen = Screen(robot)
            weighing = screen.weighed(thinned([signals], np.asarray(robot.gravity, dtype=float)))
            assert not weighing.weightless
            assert np.linalg.norm(weighing.gravity - gravity) < 0.35 * 9.81
            assert 0.7 < weighing.inertial < 1.6
            if gravity[2]:
                assert weighing.by_joint[0] == 0.0
                assert 0.95 < weighing.by_joint[1] < 1.25


def test_light_joints_do_not_say_that_torques_have_weight(arms):
    """The wrist of a file may be a guess: there, ten times its weight may be left by a compensation."""
    robot, log = arms["puma560"]
    screen = Screen(robot)
    recording = thinned([condition(log, cutoff=10.0)], np.asarray(robot.gravity, dtype=float))
    inertia = np.zeros_like(recording.tau)
    sizes = np.array([0.0, 1.0, 0.29]) * np.sqrt(2.0)
    weight = np.sin(recording.q) * sizes / 9.81
    columns = np.stack([inertia + 1e-9 * recording.qdd, inertia, inertia, -weight], axis=-1)
    heavy = replace(recording, tau=9.81 * weight * np.array([1.0, 0.1, 10.0]))
    assert screen._weights_of_joints(heavy, columns) == pytest.approx([0.0, 0.1, 0.0], abs=0.02)


def identify_quietly(robot: lw.Robot, log: Log, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        return identify(robot, log, friction="coulomb", **options)


# -- short recordings and constants ------------------------------------------------------------------------------------


def test_short_recordings_of_the_right_robot_are_not_of_another_one(arms):
    for name, (robot, log) in arms.items():
        for begin, end in ((0.0, 0.6), (2.0, 3.0), (4.0, 6.0), (3.0, 7.0)):
            assert said(robot, log.between(begin, end)) == (), (name, begin, end)


def test_torques_of_another_motion_are_still_named(arms):
    """Nothing explains them, and ten seconds are enough to say so."""
    robot, log = arms["puma560"]
    words = said(robot, replace(log, tau=np.roll(log.tau, len(log) // 4, axis=0)))
    assert "of another robot" in "; ".join(words)


def test_constants_of_torques_are_named_beyond_the_margin(arms):
    for name, (robot, log) in arms.items():
        joint = robot.joint_names[1]
        size = float(np.sqrt((log.tau[:, 1] ** 2).mean()))
        for share in (0.05, 0.6)[name == "ur10e" :]:
            tau = log.tau.copy()
            tau[:, 1] += share * size
            words = [
                each for each in identify_quietly(robot, replace(log, tau=tau)).warnings if "constant" in each
            ]
            assert len(words) == (share > 0.25), (name, share, words)
            if words:
                assert f"{joint} " in words[0]


def test_friction_of_a_frictionless_arm_drives_nothing(arms):
    """Least squares find a small friction of either sign where there is none."""
    robot, _ = arms["puma560"]
    t, q, qd, qdd = motion(5, dof=robot.dof, seconds=10.0, size=0.5)
    for seed in range(2):
        tau = robot.inverse_dynamics(q, qd, qdd)
        tau = tau + 0.1 * np.abs(tau).max(axis=0) * np.random.default_rng(seed).normal(size=tau.shape)
        words = identify_quietly(robot, Log(t, q, tau, name="clean")).warnings
        assert not any("have to drive" in each for each in words), words
