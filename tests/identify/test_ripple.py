"""Drive ripple: found where it is, predicted on other motions, kept in files and code; nothing where there is none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import IdentificationWarning, Log, identify
from linkwise.identify.estimation.ripple import Search
from linkwise.joint_laws.ripple import POWERS

TRUE = {
    "joint1.ripple_speed": 1.0,
    "joint1.ripple_1_count": 60.0,
    "joint1.ripple_1_cos_0": 1.2,
    "joint1.ripple_1_sin_1": 0.8,
    "joint1.ripple_2_count": 101.0,
    "joint1.ripple_2_sin_0": 0.6,
    "joint1.ripple_2_cos_2": -0.5,
}


def recorded(robot: lw.Robot, seed: int, seconds: float = 20.0, noise: float = 0.05) -> Log:
    t, q, qd, qdd = motion(seed, seconds=seconds)
    # no period twice: repetitions are one motion
    q, qd, qdd = (x + 0.3 * y for x, y in zip((q, qd, qdd), _slow(t), strict=True))
    tau = robot.inverse_dynamics(q, qd, qdd)
    tau = tau + noise * np.random.default_rng(seed + 100).normal(size=tau.shape)
    return Log(t, q, tau, name=f"run{seed}")


def _slow(t: np.ndarray):
    w = np.array([0.31, 0.47])
    x = np.outer(t, w)
    return np.sin(x), w * np.cos(x), -(w**2) * np.sin(x)


@pytest.fixture(scope="module")
def found(arm, truth):
    rippled = truth.with_parameters(TRUE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        return identify(arm, recorded(rippled, 1), validation=recorded(rippled, 2)), rippled


def test_lines_are_found_and_lower_the_held_out_residual(found):
    result, _ = found
    lines = result.ripple.lines
    assert {(line.joint, line.count) for line in lines[:2]} == {("joint1", 60.0), ("joint1", 101.0)}
    assert all(line.joint == "joint1" for line in lines)
    without = result.robot.with_parameters(
        {label: 0.0 for label in result.robot.parameter_labels if "ripple" in label}
    )
    judged = result.validation
    q, qd, qdd = judged.motion
    before = np.linalg.norm(judged.measured - without.inverse_dynamics(q, qd, qdd), axis=0)
    after = np.linalg.norm(judged.measured - result.robot.inverse_dynamics(q, qd, qdd), axis=0)
    assert after[0] < 0.5 * before[0]
    assert after[1] == pytest.approx(before[1])


def test_ripple_is_the_true_one_along_another_motion(found):
    result, rippled = found
    none = {label: 0.0 for label in rippled.parameter_labels if "ripple" in label}
    _, q, qd, qdd = motion(5)

    def ripple(robot: lw.Robot) -> np.ndarray:
        numbers = {label: 0.0 for label in robot.parameter_labels if "ripple" in label}
        with_, without = robot, robot.with_parameters(numbers)
        return with_.inverse_dynamics(q, qd, qdd) - without.inverse_dynamics(q, qd, qdd)

    assert none
    true = ripple(rippled)
    assert np.linalg.norm(ripple(result.robot) - true) < 0.35 * np.linalg.norm(true)


def test_files_keep_it(found, tmp_path):
    result, _ = found
    _, q, qd, qdd = motion(5)
    for ending in ("toml", "urdf"):
        result.save(tmp_path / f"arm.{ending}")
        loaded = lw.load(tmp_path / f"arm.{ending}")
        np.testing.assert_allclose(
            loaded.inverse_dynamics(q, qd, qdd),
            result.robot.inverse_dynamics(q, qd, qdd),
            rtol=1e-9,
            atol=1e-9,
        )
    assert "ripple" in (tmp_path / "arm.toml").read_text()


def test_nothing_where_there_is_none(arm, truth):
    rng = np.random.default_rng(0)
    t, q, qd, _ = motion(1, seconds=60.0)
    folds = np.arange(len(t)) * 10 // len(t)
    accepted = 0
    for _ in range(8):
        coloured = np.convolve(rng.normal(size=len(t) + 9), np.ones(10) / 10, "valid")
        search = Search(q[:, 0], qd[:, 0], coloured, folds, True)
        search.run()
        accepted += len(search.counts)
    assert accepted == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        plain = identify(arm, recorded(truth, 1))
    assert plain.ripple.lines == ()
    assert not [label for label in plain.robot.parameter_labels if "ripple" in label]


def test_wrong_lines_gain_nothing(found):
    """The lines beside the true ones, fitted in the same way, predict a left-out motion no better."""
    _, rippled = found
    log = recorded(rippled, 1)
    t, q, qd, qdd = motion(1)
    q, qd, qdd = (x + 0.3 * y for x, y in zip((q, qd, qdd), _slow(t), strict=True))
    rest = (
        log.tau[:, 0]
        - rippled.with_parameters(
            {label: 0.0 for label in rippled.parameter_labels if "ripple" in label}
        ).inverse_dynamics(q, qd, qdd)[:, 0]
    )
    search = Search(q[:, 0], qd[:, 0], rest, np.arange(len(t)) * 10 // len(t), True)
    nothing = search._left_out([[] for _ in search.folds]).sum()
    for wrong, right in ((70.0, 60.0), (90.0, 101.0)):
        assert search._left_out([[wrong] for _ in search.folds]).sum() > 0.99 * nothing
        assert search._left_out([[right] for _ in search.folds]).sum() < 0.9 * nothing


def test_lines_do_not_grow_at_speeds_that_were_not_recorded():
    """A joint that goes back slowly: the speed at which it came is not known of the way back."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 40.0, 0.002)
    pace = 1.0 + 0.4 * np.sin(0.7 * t)
    qd = np.where(np.sin(1.3 * t) > 0.0, 1.0, -0.25) * np.abs(np.sin(1.3 * t)) * pace
    q = np.cumsum(qd) * 0.002
    q = q - np.linspace(0.0, q[-1] - q[0], len(q))  # it stays in its range
    noise = 0.05 * rng.normal(size=len(t))

    def ripple(speeds: np.ndarray) -> np.ndarray:
        return 0.2 * np.abs(speeds) * np.exp(-np.abs(speeds))  # does not go on growing

    rest = ripple(qd) * np.cos(60.0 * q) + noise
    search = Search(q, qd, rest, np.arange(len(t)) * 10 // len(t), True)
    search.run()
    assert search.counts[0] == 60.0

    def size(speed: float, **options: float) -> float:
        x = search._solution([60.0], np.ones(len(q), bool), **options).reshape(2, -1)
        w = speed / np.hypot(speed, search.speed)
        return float(np.hypot(*(x @ w ** np.arange(search.first, POWERS))))

    seen = max(size(v) for v in np.linspace(-0.3, 1.3, 33))
    speeds = np.linspace(-3.0, 3.0, 61)
    assert max(size(v) for v in speeds) < 1.3 * seen
    assert max(size(v, beyond=0.0) for v in speeds) > 2.5 * seen  # least squares alone
    for speed in (0.8, 1.0, 1.2):  # where most of the motion is, amplitudes are hardly smaller
        assert size(speed) == pytest.approx(size(speed, beyond=0.0), rel=0.2)
