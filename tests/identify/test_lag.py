"""Torques that were recorded earlier or later than positions: the lag is found, corrected and stated."""

import numpy as np
import pytest
from known_arm import motion

from linkwise.identify import IdentificationWarning, Lag, Log, condition, estimate_lag, identify
from linkwise.identify.estimation.lag import _spread, as_given, lags_of_joints, shifted
from linkwise.identify.estimation.regression import Observer
from linkwise.motion import FourierSeries
from linkwise.robot.directions import torques_along

TOLERANCE = 1.5e-3  # [s]: three standard deviations at 3 % noise, 20 s and two joints
RATE = 500.0


def recording(robot, lag: float, seed: int = 2, noise: float = 0.03, friction: str = "coulomb") -> Log:
    """Positions at their time, torques ``lag`` [s] later, both noisy."""
    if friction == "presliding":
        robot = robot.with_parameters({f"{joint}.presliding_distance": 5e-3 for joint in robot.joint_names})
    rng = np.random.default_rng(seed)
    sine, cosine = rng.normal(size=(2, 5, 2)) * 0.5 / np.arange(1, 6)[:, None]
    path = FourierSeries(np.zeros(2), sine, cosine, 10.0)
    t = np.arange(int(20 * RATE)) / RATE
    tau = torques_along(robot, *path.at(t - lag))
    tau = tau + noise * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return Log(t, path.at(t)[0] + 1e-5 * (noise > 0) * rng.normal(size=tau.shape), tau, name="late")


def estimated(robot, log: Log) -> Lag:
    return estimate_lag(Observer(robot, [condition(log)]))


@pytest.mark.parametrize(
    ("lag", "friction"), [(3.4e-3, "coulomb"), (12e-3, "coulomb"), (-5e-3, "coulomb"), (12e-3, "presliding")]
)
def test_a_lag_is_found_between_samples(truth, arm, lag, friction):
    found = estimated(arm, recording(truth, lag, friction=friction))
    assert found.seconds == pytest.approx(lag, abs=TOLERANCE)
    assert found.corrected == found.seconds
    assert 0 < found.deviation < TOLERANCE
    assert "corrected" in found.note


@pytest.mark.parametrize(("seed", "friction"), [(0, "coulomb"), (2, "coulomb"), (2, "presliding")])
def test_a_recording_without_lag_is_left_as_it_is(truth, arm, seed, friction):
    found = estimated(arm, recording(truth, 0.0, seed=seed, friction=friction))
    assert abs(found.seconds) < TOLERANCE
    assert found.corrected == 0.0
    assert "not corrected: not distinguishable from none" in found.note


def test_a_lag_is_corrected_and_stated(truth, arm):
    train, test = recording(truth, 12e-3, noise=0.005), recording(truth, 12e-3, seed=5, noise=0.005)
    found = identify(arm, train, validation=test, friction="coulomb")
    ignored = identify(arm, train, validation=test, friction="coulomb", lag=0.0)
    assert found.validation.total_in_band < 0.4 * ignored.validation.total_in_band
    assert found.summary()["lag"]["corrected"] == pytest.approx(12e-3, abs=TOLERANCE)
    assert ignored.summary()["lag"] == {"seconds": 0.0, "deviation": None, "corrected": 0.0}
    for said in (found.signals[0].record, *found.summary()["processing"]):
        assert any(note.startswith(("lag of the torques: 11.", "lag of the torques: 12")) for note in said)
    given = identify(arm, train, validation=test, friction="coulomb", lag=12e-3)
    assert given.validation.total == pytest.approx(found.validation.total, rel=0.05)
    assert "lag of the torques: 12 ms as given" in given.signals[0].record


@pytest.mark.parametrize(("lag", "when"), [(0.05, "later"), (-0.06, "earlier")])
def test_a_lag_that_drives_do_not_explain_is_a_warning(truth, arm, lag, when):
    log = recording(truth, lag)
    with pytest.warns(
        IdentificationWarning, match=rf"recorded \d\d(\.\d)? ms {when} than positions.*different clocks"
    ):
        found = identify(arm, log, friction="coulomb")
    assert found.lag.seconds == pytest.approx(lag, abs=TOLERANCE)


def test_files_that_were_joined_half_a_second_apart(truth, arm):
    for lag in (0.5, -0.45):
        found = estimated(arm, recording(truth, lag))
        assert found.corrected == pytest.approx(lag, abs=2 * TOLERANCE)
        assert "files were joined at the wrong place" in found.doubt


def test_the_torque_of_one_joint_of_another_time(truth, arm):
    log = recording(truth, 0.0)
    assert lags_of_joints(Observer(arm, [condition(log)])) == ""
    tau = np.stack([log.tau[:, 0], np.roll(log.tau[:, 1], 50)], axis=1)
    said = lags_of_joints(Observer(arm, [condition(Log(log.t, log.q, tau), cutoff=10.0)]))
    assert said.endswith(": joint2 about 100 ms later")


def test_shifted_torques_are_those_of_the_motion(truth):
    log = recording(truth, 20e-3, noise=0.0)
    signals = shifted(condition(log, cutoff=40.0), as_given(20e-3))
    inside = slice(50, -50)
    expected = truth.inverse_dynamics(signals.q, signals.qd, signals.qdd)
    np.testing.assert_allclose(np.median(np.abs(signals.tau - expected)[inside], axis=0), 0.0, atol=0.02)
    stamps, (q, *_) = signals.at_stamps()
    np.testing.assert_array_equal(stamps, log.t)
    np.testing.assert_allclose(q[50:-50], log.q[40:-60], atol=1e-3)  # 20 ms are ten samples
    assert len(signals.signs(np.eye(2))) == len(signals)


def test_torques_that_this_robot_does_not_cause_have_no_lag(arm):
    t, q, *_ = motion(3)
    found = estimated(arm, Log(t, q, np.random.default_rng(0).normal(size=q.shape)))
    assert found.corrected == 0.0
    short = estimated(arm, Log(t[:100], q[:100], q[:100]))
    assert "not estimated" in short.note


@pytest.mark.parametrize("wrong", [1.5, -1.3, "late", float("nan")])
def test_lags_that_cannot_be_meant(wrong):
    with pytest.raises(ValueError, match=r"lag: expected at most 1 s"):
        as_given(wrong)


def test_the_variance_of_a_sum_is_that_of_its_scores():
    """Of independent scores whose mean is taken away, as at the best lag: n times their variance, without a bias."""
    for count in (2, 3, 7):
        scores = np.random.default_rng(count).normal(size=count)
        assert _spread(scores - scores.mean()) == pytest.approx(count * np.var(scores, ddof=1))
