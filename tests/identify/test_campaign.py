"""A simulated campaign closes the circle: intervals hold the truth as often as they say."""

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.identify import Log, Noise, condition, coverage, excite, identify, ordinary, simulated_log
from linkwise.identify.campaign import true_parameters
from linkwise.identify.estimation import clustered
from linkwise.identify.estimation.clustered import clusters, rescaled
from linkwise.identify.estimation.coloured import uncertainty
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.regression import Regression
from linkwise.motion import quintic
from linkwise.simulate import simulate

RUNS = 30


@pytest.fixture(scope="module")
def puma() -> lw.Robot:
    """With rotor inertias, viscous and Coulomb friction in its file."""
    return lw.load("puma260")


@pytest.fixture(scope="module")
def log(puma) -> Log:
    motion = excite(puma, duration=10.0, starts=1, iterations=45)
    return simulated_log(puma, motion.trajectory, motion.duration, rate=500.0)


def test_the_simulated_recording_obeys_the_robot(puma, log):
    assert log.duration == pytest.approx(9.0, abs=0.01)  # rest at both ends is left out
    qd = np.gradient(log.q, log.t, axis=0)
    qdd = np.gradient(qd, log.t, axis=0)
    away = (np.abs(qd) > 0.05).all(axis=1)
    away[:5] = away[-5:] = False
    error = (log.tau - puma.inverse_dynamics(log.q, qd, qdd))[away]
    assert (np.median(np.abs(error), axis=0) < 2e-3 * np.abs(log.tau).max(axis=0)).all()


def test_the_motion_is_followed_under_computed_torque_of_30_radians_per_second(puma):
    move = quintic(np.zeros(6), np.full(6, 0.3), 0.1)
    log = simulated_log(puma, move, 0.1, rest=0.0)
    law = control.ComputedTorque(puma, control.Gains.from_frequency(30.0))
    run = simulate(puma, law, move, duration=0.1, step=2.5e-4, every=4, continuous=True)
    np.testing.assert_array_equal(log.q, run.q)
    np.testing.assert_array_equal(log.tau, run.tau)


def test_noise_is_as_large_as_it_says(log):
    noisy = Noise(position=1e-4, torque=0.1).added(log, np.random.default_rng(0))
    np.testing.assert_allclose((noisy.q - log.q).std(axis=0), 1e-4, rtol=0.05)
    size = np.sqrt((log.tau**2).mean(axis=0))
    np.testing.assert_allclose((noisy.tau - log.tau).std(axis=0), 0.1 * size, rtol=0.05)


@pytest.mark.parametrize("position", [0.0, 1e-5])
def test_intervals_hold_the_truth_as_often_as_they_say(puma, log, position):
    found = coverage(puma, log, noise=Noise(position, 0.05), runs=RUNS)
    assert {label.split(".")[1] for label in found.labels} >= {
        "rotor_inertia",
        "viscous_friction",
        "coulomb_friction",
        "torque_offset",
    }
    # of all cases; single parameters need more runs: benchmarks/campaign.py
    assert 0.92 < found.overall < 0.98
    # the claimed deviations are the real ones, and the bias is small beside them
    assert 0.9 < np.median(found.spread / found.claimed) < 1.1
    assert np.median(np.abs(found.bias) / found.spread) < 0.3
    assert found.share.min() > 0.7  # five standard deviations of a binomial with thirty runs, and a bit


def test_the_cut_off_of_all_copies_is_that_given_or_that_of_the_first_one(truth, record):
    log, noise, used = record(3, seconds=6.0), Noise(1e-4, 0.05), []

    def seen(regression):
        used.append(regression.observer.signals[0].cutoff)
        return ordinary(regression)

    for given in (7.0, None):
        used.clear()
        coverage(truth, log, noise=noise, runs=3, estimator=seen, cutoff=given, seed=4)
        first = condition(noise.added(log, np.random.default_rng(4))).cutoff
        assert used == [given or first] * 3


@pytest.mark.processor
@pytest.mark.parametrize("every", [1, 5])
def test_intervals_hold_where_torques_are_clean(puma, log, every):
    """Reversals of friction between samples must not cost more than the noise, at high and at low sampling rates."""
    sampled = Log(log.t[::every], log.q[::every], log.tau[::every])
    found = coverage(puma, sampled, noise=Noise(1e-5, 0.01), runs=RUNS)
    assert 0.92 < found.overall < 0.98
    assert 0.85 < np.median(found.spread / found.claimed) < 1.1
    # The bias of single parameters depends on how often the motion reverses: over eight motions the largest one was 0.7
    # to 2.1 claimed deviations, and nine of ten parameters had less than 0.9.
    bias = np.abs(found.bias / found.claimed)
    assert np.quantile(bias, 0.9) < 1.0
    assert bias.max() < 3.0


def test_a_claim_that_forgets_the_filters_would_be_caught(puma, log, monkeypatch):
    """The same with the textbook covariance: too sure of itself, since neighbouring samples are not independent.

    Four times as many samples are used as usual, all that there are: they tell nothing more.
    """
    monkeypatch.setattr("linkwise.identify.recordings.signals.COARSE", 12.0)

    def naive(regression):
        ones = np.ones(regression.dof)
        sigma = np.sqrt((regression.residuals(np.linalg.solve(*regression.gram(ones))) ** 2).mean(axis=0))
        gram, right = regression.gram(1.0 / sigma)
        x, covariance = np.linalg.solve(gram, right), np.linalg.inv(gram)
        return Estimate("naive", regression.labels, x, covariance, sigma, ones, 1.0, len(x))

    found = coverage(puma, log, noise=Noise(0.0, 0.05), runs=10, estimator=naive)
    assert found.overall < 0.8
    assert coverage(puma, log, noise=Noise(0.0, 0.05), runs=10).overall > 0.92


def test_covariance_of_coloured_errors():
    """Columns that eat half of the errors' power at low frequencies: known errors, known covariance."""
    rng = np.random.default_rng(0)
    n, p = 400, 20
    t = np.arange(n)
    waves = [f(4 * np.pi * (k + 1) * t / n) for k in range(p // 2) for f in (np.sin, np.cos)]
    Y = np.stack(waves, axis=1)[:, None, :]
    G = np.linalg.inv(Y[:, 0].T @ Y[:, 0])
    kernel = np.array([1.0, 2.0, 3.0, 2.0, 1.0]) / 3
    claimed, free, estimates = [], [], []
    for _ in range(200):
        e = np.convolve(rng.normal(size=n + 4), kernel, "valid")
        x = G @ (Y[:, 0].T @ e)
        regression = Regression(Y, e[:, None], tuple("abcdefghijklmnopqrst"), 0, ())
        covariance, freedom = uncertainty(regression, np.ones(1), x, G)
        claimed.append(np.diag(covariance))
        free.append(freedom)
        estimates.append(x)
    real = np.var(estimates, axis=0)
    assert 0.9 < np.mean(claimed) / real.mean() < 1.1
    # Satterthwaite: the variance of a claimed variance is 2 v²/f
    relative = np.var(claimed, axis=0).mean() / np.mean(claimed) ** 2
    assert 0.5 < relative / (2.0 / np.mean(free)) < 2.0


def test_the_order_of_recordings_does_not_matter():
    """Covariance and degrees of freedom of two recordings of other lengths, one after the other and the other way."""
    rng = np.random.default_rng(1)
    parts = [(rng.normal(size=(n, 2, 4)), np.cumsum(rng.normal(size=(n, 2)), axis=0)) for n in (150, 90, 220)]
    found = []
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        Y, e = (np.concatenate([parts[k][what] for k in order]) for what in (0, 1))
        ends = np.cumsum([len(parts[k][1]) for k in order])
        G = np.linalg.inv(np.einsum("tjp,tjr->pr", Y, Y))
        x = G @ np.einsum("tjp,tj->p", Y, e)
        regression = Regression(Y, e, tuple("abcd"), 0, (), edges=tuple(ends[:-1].tolist()))
        found.append(uncertainty(regression, np.ones(2), x, G))
    for covariance, freedom in found[1:]:
        assert np.allclose(covariance, found[0][0], rtol=1e-9)
        assert np.allclose(freedom, found[0][1], rtol=1e-9)


def test_deviations_are_narrowed_only_where_motions_prove_it(monkeypatch):
    """White errors in ten motions, columns that depend on one another: known deviations, and how much those of motions
    scatter."""
    rng = np.random.default_rng(0)
    n, p = 300, 8
    Y = (rng.normal(size=(n, p)) @ rng.normal(size=(p, p)))[:, None, :]
    G = np.linalg.inv(Y[:, 0].T @ Y[:, 0])
    observer = SimpleNamespace(_motions_of_rows=np.arange(n) * 10 // n)
    real = np.sqrt(np.diag(G))
    squares, free, kept, narrowed = [], [], [], []
    for _ in range(300):
        e = rng.normal(size=n)
        regression = Regression(Y, e[:, None], tuple("abcdefgh"), 0, (), observer=observer)
        x = G @ (Y[:, 0].T @ e)
        found = clusters(regression, np.ones(1), x)
        monkeypatch.setattr(
            clustered, "clusters", lambda *_, found=found: found
        )  # both calls below need it again
        squares.append(np.mean((found.deviations / real) ** 2))
        free.append(found.freedom(np.ones(p, dtype=bool), real))
        for factor, results in ((1.0, kept), (4.0, narrowed)):
            covariance, spare = rescaled(factor * G, np.full(p, 1e3), regression, np.ones(1), x)
            results.append(np.sqrt(covariance[0, 0] / G[0, 0]))
            assert (spare[0] < 1e3) == (covariance[0, 0] < factor * G[0, 0])
    assert np.mean(squares) == pytest.approx(1.0, abs=0.05)
    assert 0.8 < np.var(squares) / (2.0 / np.mean(free)) < 1.25
    assert np.mean(np.array(kept) < 1.0) < 0.08  # one in twenty
    assert np.median(narrowed) == pytest.approx(1.0, abs=0.1)


def test_truth_of_friction_that_differs_by_direction():
    arm = lw.load("puma560")
    joint = arm.moving_joints[0]
    forward, backward = joint.coulomb_friction
    assert forward != backward
    mean, offset = true_parameters(arm, [f"{joint.name}.coulomb_friction", f"{joint.name}.torque_offset"])
    assert mean + offset == pytest.approx(forward)
    assert mean - offset == pytest.approx(backward)


def test_the_whole_circle_through_identify(puma):
    """Excite, simulate with noise, identify from a wrong prior: the robot comes back."""
    motion = excite(puma, duration=10.0, starts=1, iterations=45, seed=1)
    noise, rng = Noise(1e-5, 0.02), np.random.default_rng(5)
    log = noise.added(simulated_log(puma, motion.trajectory, motion.duration, rate=500.0), rng)
    q, qd, qdd = rng.uniform(-1, 1, (3, 200, 6)) * np.array([2.0, 2.0, 4.0])[:, None, None]
    wrong = puma.with_parameters(puma.parameters * rng.uniform(0.7, 1.4, puma.parameters.size))
    found = identify(wrong, log, friction="coulomb")
    tau = puma.inverse_dynamics(q, qd, qdd)

    def error(robot):
        return np.linalg.norm(robot.inverse_dynamics(q, qd, qdd) - tau) / np.linalg.norm(tau)

    assert error(found.robot) < 0.02
    assert error(found.robot) < 0.1 * error(wrong)
    truth = found.base.combination @ true_parameters(puma, found.base.parameter_labels)
    lower, upper = found.estimate.interval()
    assert ((lower <= truth) & (truth <= upper)).mean() > 0.85
