"""Payloads from a loaded and an unloaded run, drive gains from a known payload: simulated, so the truth is known."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.identify import (
    IdentificationError,
    Noise,
    drive_gains,
    excite,
    identify_payload,
    read_log,
    simulated_log,
)
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
    found = identify_payload(puma, *runs)
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
