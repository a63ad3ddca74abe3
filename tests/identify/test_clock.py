"""Clocks: steady only within a bound, lost samples, stamps that are used as they are."""

import numpy as np
import pytest

from linkwise.identify import Log, identify
from linkwise.identify.recordings import signals
from linkwise.identify.recordings.clock import BOUND, Clock, _roughness, read_clock
from linkwise.motion import FourierSeries

RATE = 1000.0


def path(seed: int) -> FourierSeries:
    sine, cosine = np.random.default_rng(seed).normal(size=(2, 5, 2)) * 0.6 / np.arange(1, 6)[:, None]
    return FourierSeries(np.zeros(2), sine, cosine, 6.0)


def stalling(robot, seed: int, late: float = 0.3) -> Log:
    """A logger that loses samples, some tens in a row, and stamps others up to ``late`` steps late."""
    rng = np.random.default_rng(seed)
    kept = rng.random(int(8 * RATE)) > 0.005
    for start in np.cumsum(rng.integers(200, 700, size=15)):
        kept[start : start + int(rng.integers(5, 60))] = False
    t = np.flatnonzero(kept) / RATE
    q, qd, qdd = path(seed).at(t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    tau = tau + 0.01 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    stamps = t + rng.uniform(0, late / RATE, len(t))
    return Log(stamps, q + 1e-5 * rng.normal(size=q.shape), tau, name="stalling")


def straight(t: np.ndarray, q: np.ndarray) -> Clock:
    """Stamps on a line, however far they are from it."""
    index = np.arange(len(t))
    slope, start = np.polyfit(index, t - t[0], 1)
    return Clock(t[0] + start + slope * index, True, "straight")


@pytest.mark.filterwarnings("ignore::linkwise.identify.IdentificationWarning")
def test_lost_samples_do_not_make_a_slower_clock(truth, arm, monkeypatch):
    train, test = stalling(truth, 1), stalling(truth, 2)
    wrong = straight(train.t, train.q)
    assert _roughness(wrong.t, train.q) < _roughness(
        train.t, train.q
    )  # smoother than the stamps, and yet wrong:
    assert np.abs(wrong.t - train.t).max() > 0.02
    clock = read_clock(train.t, train.q)
    assert np.abs(clock.t - train.t).max() < BOUND / RATE
    assert clock.step == pytest.approx(1 / RATE, rel=1e-3)
    assert "samples lost: stamps are up to 0.1" in clock.note
    found = identify(arm, train, validation=test, friction="coulomb", lag=0.0)
    assert clock.note in found.signals[0].record
    monkeypatch.setattr(signals, "read_clock", straight)
    before = identify(arm, train, validation=test, friction="coulomb", lag=0.0)
    assert found.validation.total < 3.0
    assert found.validation.total < 0.3 * before.validation.total


def test_a_clock_is_steady_within_the_bound_only():
    steps = np.arange(4000)
    for size, steady in ((0.3, True), (0.7, False)):
        wander = size * np.sin(2 * np.pi * steps / 1500)  # the sum of many late and early stamps
        jitter = np.random.default_rng(0).uniform(-0.05, 0.05, len(steps))
        t = (steps + wander + jitter) / RATE
        clock = read_clock(t, path(3).at(steps / RATE)[0])
        assert clock.regular == steady
        assert ("a steady clock, 1" in clock.note) == steady
        assert f"({clock.deviation * RATE:.2g} steps; 0.5 are allowed) from it" in clock.note
        assert np.abs(clock.t - t).max() == pytest.approx(clock.deviation)
        assert clock.deviation <= BOUND / RATE
        if not steady:  # the jitter is taken off, the rest of the stamps is kept
            assert "whose rate changes slowly" in clock.note
            assert "up to 0.8" in clock.note
            assert clock.deviation < 0.1 / RATE


def test_stamps_of_a_wandering_clock_are_used_as_they_are(truth, arm, monkeypatch):
    """A logger that waits a little longer at times: every sample was taken when its stamp says."""
    t = np.cumsum(1e-3 * (1 + 0.3 * (1 + np.sin(np.arange(7000) / 400))))
    logs = [Log(t, path(seed).at(t)[0], truth.inverse_dynamics(*path(seed).at(t))) for seed in (1, 2)]
    found = identify(arm, logs[0], validation=logs[1], friction="coulomb", lag=0.0)
    assert any("used as they are" in note for note in found.signals[0].record)
    monkeypatch.setattr(signals, "read_clock", straight)
    before = identify(arm, logs[0], validation=logs[1], friction="coulomb", lag=0.0)
    assert found.validation.total < 0.3 * before.validation.total
