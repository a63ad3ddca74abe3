"""Filters, derivatives, clocks and the choice of the cut-off."""

import numpy as np
import pytest
from known_arm import RATE, motion

from linkwise.identify import Log, LogError, condition
from linkwise.identify.estimation.friction import AxisSignals
from linkwise.identify.recordings.clock import read_clock
from linkwise.identify.recordings.cutoff import choose_cutoff, motion_band
from linkwise.identify.recordings.derivatives import METHODS, central_difference, low_pass

# How exactly each way gives accelerations of smooth positions without noise, in parts of their rms: a property of the
# method at this rate and cut-off, measured once and doubled.
EXACTNESS = {
    "butterworth": 0.01,
    "differences": 0.01,
    "savitzky_golay": 0.02,
    "spline": 0.05,
    "observer": 0.5,
}
INSIDE = slice(100, -100)


@pytest.mark.parametrize("name", METHODS)
def test_derivatives_of_a_known_motion(name):
    _, q, qd, qdd = motion(3)
    found = METHODS[name](q, None, RATE, 20.0)
    for computed, true in zip(found, (q, qd, qdd), strict=True):
        error = np.linalg.norm((computed - true)[INSIDE]) / np.linalg.norm(true[INSIDE])
        assert error < EXACTNESS[name]


@pytest.mark.parametrize("name", METHODS)
def test_no_way_shifts_signals_in_time(name):
    _, q, _, qdd = motion(3)
    acceleration = METHODS[name](q, None, RATE, 20.0)[2]
    shifts = range(-5, 6)
    likeness = [np.sum(np.roll(acceleration, s, axis=0)[INSIDE] * qdd[INSIDE]) for s in shifts]
    assert shifts[int(np.argmax(likeness))] == 0


def test_central_difference_is_the_papers():
    x = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_allclose(central_difference(x, 50.0)[1:-1], (x[2:] - x[:-2]) * 25.0, rtol=1e-12)


def test_low_pass_keeps_slow_and_removes_fast():
    t = np.arange(2000) / 1000.0
    slow, fast = np.sin(2 * np.pi * 2 * t), np.sin(2 * np.pi * 100 * t)
    smooth = low_pass(slow + fast, 1000.0, 20.0)
    np.testing.assert_allclose(smooth[200:-200], slow[200:-200], atol=1e-3)
    half = low_pass(np.sin(2 * np.pi * 20 * t), 1000.0, 20.0)  # −3 dB, twice
    assert np.abs(half[500:-500]).max() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("noise", [1e-5, 1e-3])
def test_the_cut_off_falls_with_noise_and_stays_above_the_motion(noise):
    _, q, *_ = motion(3)
    noisy = q + noise * np.random.default_rng(0).normal(size=q.shape)
    chosen = choose_cutoff(noisy, RATE)
    assert chosen.motion_band < chosen.frequency < 0.45 * RATE
    worse = choose_cutoff(q + 100 * noise * np.random.default_rng(0).normal(size=q.shape), RATE)
    assert worse.noise_limit < chosen.noise_limit
    assert "Hz" in chosen.note


def test_the_cut_off_is_near_the_best_one():
    _, q, _, qdd = motion(3)
    noisy = q + 1e-4 * np.random.default_rng(0).normal(size=q.shape)

    def error(cutoff: float) -> float:
        return float(np.linalg.norm((METHODS["butterworth"](noisy, None, RATE, cutoff)[2] - qdd)[INSIDE]))

    best = min(error(cutoff) for cutoff in np.geomspace(0.5, 60, 60))
    assert error(choose_cutoff(noisy, RATE).frequency) < 4 * best


def test_a_late_logger_is_not_an_irregular_clock():
    t, q, *_ = motion(3)
    late = t + np.random.default_rng(0).uniform(0, 0.4 / RATE, len(t))
    clock = read_clock(late, q)  # sampled steadily, stamped late
    assert clock.regular
    assert np.ptp(np.diff(clock.t)) < 1e-9
    assert clock.rate == pytest.approx(RATE, rel=1e-3)


def test_samples_that_really_are_irregular_are_resampled():
    even, *_ = motion(3)
    t = even + np.random.default_rng(0).uniform(-0.3, 0.3, len(even)) / RATE
    q = np.column_stack([np.sin(3 * t), np.cos(2 * t)])
    clock = read_clock(t, q)
    assert not clock.regular
    signals = condition(Log(t, q, q), cutoff=20.0)
    np.testing.assert_allclose(signals.qd[INSIDE, 0], 3 * np.cos(3 * signals.t[INSIDE]), atol=0.01)
    assert any("irregular" in note for note in signals.record)
    stamps, (back, *_) = signals.at_stamps()
    np.testing.assert_array_equal(stamps, t)
    np.testing.assert_allclose(back[INSIDE], q[INSIDE], atol=1e-3)


def test_recorded_velocities_are_used_or_not():
    t, q, qd, _ = motion(3)
    log = Log(t, q, q, 1.5 * qd)  # wrong on purpose, to see which ones are used
    used, ignored = (condition(log, cutoff=20.0, use_velocities=use) for use in (True, False))
    np.testing.assert_allclose(used.qd[INSIDE], 1.5 * qd[INSIDE], atol=0.02)
    np.testing.assert_allclose(ignored.qd[INSIDE], qd[INSIDE], atol=0.02)


def test_cut_off_and_decimation_as_given_are_written_down():
    t, q, *_ = motion(3)
    log = Log(t, q, q)
    signals = condition(log, cutoff=10.0, decimation=4, derivatives="observer")
    assert (signals.cutoff, signals.thinning) == (10.0, 4)
    for words in ("10 Hz as given", "observer", "one sample of 4"):
        assert any(words in note for note in signals.record)
    whole, every = signals.filtered(signals.tau), condition(log, cutoff=10.0, decimation=1)
    np.testing.assert_allclose(whole, every.filtered(every.tau)[::4], atol=1e-12)


@pytest.mark.parametrize(("cutoff", "seconds"), [(5.0, 20.0), (20.0, 20.0), (4.0, 1.0)])
def test_one_period_of_the_cut_off_is_left_out_at_both_ends(cutoff, seconds):
    """A tenth of short recordings: a filter knows half of what is around their ends."""
    t, q, *_ = motion(3, seconds=seconds)
    signals = condition(Log(t, q, q), cutoff=cutoff)
    times, left_out, close = signals.filtered_times, min(1.0 / cutoff, 0.1 * seconds), 2.0 / signals.rate
    assert times[0] - t[0] == pytest.approx(left_out, abs=1.01 * close)
    spacing = signals.thinning / signals.rate
    assert -spacing - close < times[-1] - (t[-1] - left_out) <= close
    assert len(times) == len(signals.filtered(signals.tau))
    np.testing.assert_allclose(np.diff(times), spacing, rtol=1e-9)


def test_fast_recordings_are_thinned_without_aliases():
    t = np.arange(20000) / 5000.0
    slow = np.column_stack([np.sin(5 * t)])
    hum = 0.3 * np.sin(2 * np.pi * 1200 * t)[:, None]
    signals = condition(Log(t, slow, slow + hum), cutoff=20.0)
    assert signals.rate < 500
    np.testing.assert_allclose(signals.tau[50:-50], np.sin(5 * signals.t[50:-50])[:, None], atol=5e-3)


@pytest.mark.parametrize(
    "options", [{"cutoff": 0.0}, {"cutoff": -3.0}, {"decimation": 0}, {"decimation": 2.5}]
)
def test_senseless_settings(options):
    t, q, *_ = motion(3)
    with pytest.raises(ValueError, match=next(iter(options))):
        condition(Log(t, q, q), **options)


def test_a_few_samples_are_no_recording():
    t, q, *_ = motion(3)
    with pytest.raises(LogError, match="at least 20"):
        condition(Log(t[:19], q[:19], q[:19]))
    assert len(condition(Log(t[:20], q[:20], q[:20]), cutoff=20.0).q)


@pytest.mark.parametrize("recorded", ["positions", "positions and velocities"])
def test_the_motion_band_is_that_of_the_velocities_without_their_noise(recorded):
    """Two sines of equal velocity amplitude: 99 % of the power lies below the faster one, with the noise taken off."""
    rate, slow, fast = 500.0, 0.5, 4.0
    t = np.arange(0, 40, 1 / rate)[:, None]
    q = np.sin(2 * np.pi * slow * t) / slow + np.sin(2 * np.pi * fast * t) / fast
    q = q + 1e-3 * np.random.default_rng(0).normal(size=q.shape)
    qd = None
    if recorded != "positions":
        qd = 2 * np.pi * (np.cos(2 * np.pi * slow * t) + np.cos(2 * np.pi * fast * t))
    found = choose_cutoff(q, rate, qd)
    assert found.motion_band == pytest.approx(fast, rel=0.06)
    assert fast < found.noise_limit


def test_loads_are_shared_out_to_the_axes_of_a_coupled_drive():
    """Each axis takes the part of the joint torques that its own direction gives back."""
    rng = np.random.default_rng(0)
    q, qd, qdd, load, other = rng.normal(size=(5, 6, 3))
    axes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    signals = AxisSignals.of(q, qd, qdd, load, axes)
    np.testing.assert_allclose(signals.load, np.stack([load[:, 0], (load[:, 1] + load[:, 2]) / 2], axis=1))
    np.testing.assert_allclose(signals.q, np.stack([q[:, 0], q[:, 1] + q[:, 2]], axis=1))
    changed = signals.with_load(other, axes)
    np.testing.assert_allclose(changed.load, np.stack([other[:, 0], (other[:, 1] + other[:, 2]) / 2], axis=1))


@pytest.mark.parametrize("samples", [9, 12, 13])
def test_local_polynomials_of_a_recording_that_is_shorter_than_their_window(samples):
    """The window becomes the largest odd number of samples; a quartic passes through it unchanged."""
    t = np.arange(samples)[:, None] / RATE
    q, qd, qdd = METHODS["savitzky_golay"](t**4 - t, None, RATE, 1.0)
    np.testing.assert_allclose(q, t**4 - t, atol=1e-9)
    np.testing.assert_allclose(qd, 4 * t**3 - 1, atol=1e-6)
    np.testing.assert_allclose(qdd, 12 * t**2, atol=1e-3)


def test_the_band_of_a_motion_does_not_depend_on_its_size():
    f = np.linspace(1.0, 50.0, 50)
    power = np.exp(-f / 5.0)[:, None] * [1.0, 1e-6] + [0.0, 1e-9]
    assert motion_band(f, 1e-6 * power) == pytest.approx(motion_band(f, power))
    assert motion_band(f, power) == pytest.approx(np.mean([motion_band(f, power[:, [k]]) for k in (0, 1)]))
    assert motion_band(f, 0.0 * power) == 1.0


def test_the_observer_follows_a_parabola_without_error():
    """Three poles at one place: with constant acceleration the estimates of one direction have no error left."""
    from linkwise.identify.recordings.derivatives import _observe

    t = np.arange(0.0, 4.0, 1e-3)
    for cutoff in (3.0, 8.0):
        q = np.stack([0.3 + 0.5 * t - 0.7 * t**2, -1.2 * t + 0.4 * t**2], axis=1)
        position, velocity, acceleration = (part[-1] for part in _observe(q, 1e3, cutoff))
        np.testing.assert_allclose(position, q[-1], atol=1e-5)
        np.testing.assert_allclose(velocity, [0.5 - 1.4 * t[-1], -1.2 + 0.8 * t[-1]], atol=1e-4)
        np.testing.assert_allclose(acceleration, [-1.4, 0.8], atol=1e-4)
