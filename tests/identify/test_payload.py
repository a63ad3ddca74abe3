"""Payloads from a loaded and an unloaded run, drive gains from a known payload: simulated, so the truth is known."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from known_arm import motion
from scipy.optimize import least_squares

import linkwise as lw
from linkwise.identify import (
    IdentificationError,
    Log,
    Noise,
    drive_gains,
    excite,
    identify_payload,
    read_log,
    simulated_log,
)
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.payload import _gains
from linkwise.model.inertia import LABELS, Inertia

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
MASS, COM, ABOUT_COM = 1.5, (0.02, -0.01, 0.08), np.diag([0.004, 0.005, 0.003])
GAINS = np.array([10.0, 12.0, 8.0, 9.0, 9.5, 11.0])  # [N·m/A]


@pytest.fixture(scope="module")
def puma() -> lw.Robot:
    return lw.load("puma560")


@pytest.fixture(scope="module")
def runs(puma):
    """(unloaded, loaded), both with noise."""
    motion = excite(puma, duration=10.0, starts=1, iterations=45)
    noise, rng = Noise(1e-5, 0.02), np.random.default_rng(0)
    robots = puma, puma.with_payload(MASS, COM, ABOUT_COM)
    return [noise.added(simulated_log(robot, motion.trajectory, 10.0, rate=500.0), rng) for robot in robots]


def test_a_payload_is_found_within_its_intervals(puma, runs):
    found = identify_payload(puma, *runs, gain_deviation=0.0)
    truth = Inertia.from_com(MASS, COM, ABOUT_COM).parameters
    lower, upper = found.estimate.interval(0.999)
    assert ((lower <= truth) & (truth <= upper)).all()
    assert found.estimate.labels == tuple(f"payload.{label}" for label in LABELS)
    assert found.mass == pytest.approx(MASS, rel=0.01)
    np.testing.assert_allclose(found.com, COM, atol=1e-3)
    assert np.linalg.eigvalsh(found.inertia.matrix_about_com).min() > 0  # a possible body
    # and it is not the prior that says so: the intervals are narrow
    assert found.estimate.deviations[0] < 0.01 * MASS


def test_the_robot_with_the_found_payload_predicts_the_loaded_run(puma, runs):
    found = identify_payload(puma, *runs)
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-1, 1, (3, 100, 6))
    loaded = puma.with_payload(MASS, COM, ABOUT_COM).inverse_dynamics(q, qd, qdd)
    with_found = found.carried_by(puma).inverse_dynamics(q, qd, qdd)
    added = np.linalg.norm(loaded - puma.inverse_dynamics(q, qd, qdd))
    assert np.linalg.norm(loaded - with_found) < 0.02 * added


def test_a_lag_of_the_torques_is_corrected(puma, runs):
    """The loaded recording's torques come 8 ms late, the other one's 5 ms early."""
    late = [
        replace(run, tau=np.stack([np.interp(run.t - lag, run.t, tau) for tau in run.tau.T], axis=1))
        for run, lag in zip(runs, (-5e-3, 8e-3), strict=True)
    ]
    found = identify_payload(puma, *late, gain_deviation=0.0)
    np.testing.assert_allclose([lag.corrected for lag in found.lags], (-5e-3, 8e-3), atol=5e-4)
    assert found.mass == pytest.approx(MASS, rel=0.01)
    np.testing.assert_allclose(found.com, COM, atol=2e-3)
    blind = identify_payload(puma, *late, lag=0.0, gain_deviation=0.0)
    assert blind.estimate.deviations[0] > 3 * found.estimate.deviations[0]
    currents = [replace(run, tau=run.tau / GAINS) for run in late]
    gains = drive_gains(puma, *currents, Inertia.from_com(MASS, COM, ABOUT_COM))
    np.testing.assert_allclose([lag.corrected for lag in gains.lags], (-5e-3, 8e-3), atol=5e-4)
    np.testing.assert_allclose(gains.gains, GAINS, rtol=0.03)


def test_no_payload_is_found_where_there_is_none(puma, runs):
    again = replace(runs[0], tau=runs[0].tau + 0.01 * np.random.default_rng(9).normal(size=runs[0].tau.shape))
    found = identify_payload(puma, runs[0], again)
    assert found.mass < 0.02


def test_drive_gains_from_a_known_payload(puma, runs):
    currents = [replace(run, tau=run.tau / GAINS) for run in runs]
    found = drive_gains(puma, *currents, Inertia.from_com(MASS, COM, ABOUT_COM))
    np.testing.assert_allclose(found.gains, GAINS, rtol=0.03)
    assert (np.abs(found.gains - GAINS) < 4 * found.deviations).all()
    elsewhere = drive_gains(puma, *currents, Inertia.from_com(MASS, COM, ABOUT_COM), start=30.0)
    np.testing.assert_allclose(elsewhere.gains, found.gains, rtol=1e-5)


def test_drive_gains_from_a_load_of_which_only_the_mass_is_known(puma, runs):
    currents = [replace(run, tau=run.tau / GAINS) for run in runs]
    found = drive_gains(puma, *currents, MASS)
    lower, upper = found.interval(0.999)
    assert ((lower <= GAINS) & (upper >= GAINS)).all()
    np.testing.assert_allclose(found.gains, GAINS, rtol=0.05)
    # what else the load is was estimated: the same that a search for the load finds with these gains
    assert found.load is not None
    lower, upper = found.load.interval(0.999)
    truth = np.array(Inertia.from_com(MASS, COM, ABOUT_COM).parameters)[1:]
    assert ((lower <= truth) & (truth <= upper)).all()
    load = identify_payload(puma, *(replace(run, tau=run.tau * found.gains) for run in currents))
    assert load.mass == pytest.approx(MASS, rel=0.01)


def test_every_joint_counts_by_its_own_residuals(arm):
    """One drive is a hundred times noisier: gains are those of SciPy with the weights of the residuals."""
    rng = np.random.default_rng(4)
    truth, size = np.array([0.1, 0.08]), np.array([1.0, 0.01])
    Y, known, x = rng.normal(size=(400, 2, 3)), rng.normal(size=(400, 2)), np.array([1.0, -2.0, 0.5])
    tau = truth * (Y @ x + known) + size * rng.normal(size=(400, 2))
    found = _gains(arm, Regression(Y, tau, ("a", "b", "c"), 0, ()), known, np.full(2, 9.0))

    def residuals(z: np.ndarray) -> np.ndarray:
        return tau - z[3:] * (Y @ z[:3] + known)

    z = np.concatenate([x, truth])
    for _ in range(30):
        weights = 1.0 / np.sqrt((residuals(z) ** 2).mean(axis=0))
        z = least_squares(lambda z, w=weights: (residuals(z) * w).ravel(), z, xtol=1e-14, ftol=1e-14).x
    np.testing.assert_allclose(found.gains, 1.0 / z[3:], rtol=1e-5)
    assert found.gains[1] == pytest.approx(1.0 / truth[1], rel=0.02)


def test_gains_without_a_known_mass_are_refused(puma, runs):
    with pytest.raises(IdentificationError, match="cannot be told apart from masses"):
        drive_gains(puma, *runs, None)
    with pytest.raises(IdentificationError, match="mass of the load: expected a positive number"):
        drive_gains(puma, *runs, 0.0)


def test_gains_from_two_recordings_without_a_load_are_refused(puma, runs):
    again = replace(runs[0], tau=runs[0].tau + 0.01 * np.random.default_rng(9).normal(size=runs[0].tau.shape))
    with pytest.raises(IdentificationError, match=r"do not determine|no convergence"):
        drive_gains(puma, runs[0], again, MASS)


def test_a_table_of_the_load_has_intervals_about_the_centre_of_mass(puma, runs):
    found = identify_payload(puma, *runs)
    rows = found.table(0.999)
    truth = [MASS, *COM, *np.array(ABOUT_COM)[np.triu_indices(3)]]
    assert all(row.lower <= value <= row.upper for row, value in zip(rows, truth, strict=True))
    values = [found.mass, *found.com, *found.inertia.matrix_about_com[np.triu_indices(3)]]
    np.testing.assert_allclose([row.value for row in rows], values, atol=1e-12)
    # the slopes behind the intervals, against draws of the estimate
    drawn = np.random.default_rng(0).multivariate_normal(found.estimate.x, found.estimate.covariance, 4000)
    spread = np.std([h / m for m, h in zip(drawn[:, 0], drawn[:, 1], strict=True)])
    narrow = found.table(0.6827)[1]
    assert (narrow.upper - narrow.lower) / 2 == pytest.approx(spread, rel=0.1)


def test_a_frame_that_does_not_move_cannot_carry(puma, runs):
    with pytest.raises(IdentificationError, match=r"payload: .* does not move"):
        identify_payload(puma, *runs, frame=puma.link_names[0])


@pytest.mark.skipif(not (DATA / "ur10e").is_dir(), reason=f"no recordings in {DATA}")
def test_what_a_real_arm_carried():
    """The recording is called load_2600, which suggests 2.6 kg; see benchmarks/payload.py for more of them."""
    robot = lw.load(DATA / "ur10e" / "ur10e.urdf")
    layout = {
        "columns": {"time": 1, "position": 2, "velocity": 8, "current": 14},
        "drive": {"gains": [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]},
    }
    folder = DATA / "ur10e" / "identification_data"
    names = "ur-20_01_31-unload.csv", "ur-20_01_13-load_2600.csv"
    empty, loaded = (read_log(folder / name, robot, layout) for name in names)
    found = identify_payload(robot, empty, loaded, frame="tool0")
    assert 2.3 < found.mass < 3.0
    assert np.linalg.norm(found.com) < 0.15  # close to the flange


def test_what_slides_shows_a_mass_and_no_centre():
    """Least squares leave the centre out and call it certain; it has no interval."""
    slides = lw.random_robot(7, 3, joints="P")
    runs = []
    for robot, seed in ((slides, 1), (slides.with_payload(0.8, (0.1, 0.0, 0.05)), 2)):
        t, q, qd, qdd = (each[:2000] for each in motion(seed, dof=3))
        tau = robot.inverse_dynamics(q, qd, qdd)
        runs.append(Log(t, q, tau + 0.02 * np.random.default_rng(seed).normal(size=tau.shape)))
    mass, *others = identify_payload(slides, *runs, gain_deviation=0.0).table()
    assert mass.lower < 0.8 < mass.upper < 0.9
    assert mass.lower < mass.value < mass.upper
    assert all((row.lower, row.upper) == (-np.inf, np.inf) for row in others)


def test_intervals_include_the_drive_gains(arm, truth):
    """Currents with gains that are 20 % too large: the mass is 20 % too large, and every interval allows for it."""
    runs = []
    for robot, seed in ((truth, 1), (truth.with_payload(0.8, (0.1, 0.0, 0.0)), 2)):
        t, q, qd, qdd = (each[:2000] for each in motion(seed))
        tau = 1.2 * robot.inverse_dynamics(q, qd, qdd)
        noise = 0.02 * np.random.default_rng(seed).normal(size=tau.shape)
        runs.append(Log(t, q, tau + noise, name=f"run{seed}"))
    found = identify_payload(arm, *runs)
    exact = identify_payload(arm, *runs, gain_deviation=0.0)
    row, narrow = found.table()[0], exact.table()[0]
    assert found.gain_deviation == 0.13
    assert row.lower < 0.8 < row.upper
    assert not narrow.lower < 0.8 < narrow.upper
    lower, upper = found.estimate.interval()
    reach = np.hypot(0.5 * (upper[0] - lower[0]), row.value - row.least_squares)  # around what is saved
    assert (row.value - reach, row.value + reach) == pytest.approx((row.lower, row.upper), rel=1e-9)
    assert lower[1] < 0.08 < upper[1]  # the first moment, too
    centre = found.table()[1]  # a common factor does not move it
    assert centre.upper - centre.lower == pytest.approx(
        exact.table()[1].upper - exact.table()[1].lower, rel=0.05
    )
    few = identify_payload(arm, *runs, gain_deviation=0.02).table()[0]
    assert not few.lower < 0.8 < few.upper
    sensed = [replace(run, sensed="joint") for run in runs]
    assert identify_payload(arm, *sensed).gain_deviation == 0.0
