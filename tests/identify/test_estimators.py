"""Every estimator finds the truth, agrees with NumPy and SciPy where these have it, and knows how sure it is."""

from dataclasses import replace

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.errors import UnknownNameError
from linkwise.identify import (
    ESTIMATORS,
    IdentificationError,
    Log,
    Observer,
    condition,
    friction_named,
    ordinary,
    ridge,
    robust,
    total,
    weighted,
)
from linkwise.identify.estimation import clustered
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.estimators import idim_iv
from linkwise.identify.estimation.instrumental import with_instruments
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.estimation.solvers import SOLVERS, solve
from linkwise.identify.estimation.solvers import condition as condition_of

CUTOFF = 20.0


def test_linear_algebra_of_small_matrices_uses_one_thread():
    threads = pytest.importorskip("threadpoolctl")

    def used() -> list[int]:
        return [each["num_threads"] for each in threads.threadpool_info() if each["user_api"] == "blas"]

    with threads.threadpool_limits(2, user_api="blas"):
        before = used()
        with one_thread():
            assert used() == [1] * len(before)
        assert used() == before


def regression_of(arm, log, cutoff: float = CUTOFF):
    """(the regression of a log with independent columns, its base parameters)."""
    friction = friction_named("coulomb", 2)
    base = base_of(arm, np.eye(2), friction)
    whole = Observer(arm, [condition(log, cutoff=cutoff)]).regression(friction)
    return whole.pick(base.columns), base


def true_values(truth, base) -> np.ndarray:
    known = dict(zip(truth.parameter_labels, truth.parameters, strict=True))
    return base.combination @ np.array([known.get(label, 0.0) for label in base.parameter_labels])


@pytest.fixture(scope="module")
def made():
    """A regression of random columns with known parameters and noise that differs from joint to joint."""
    rng = np.random.default_rng(0)
    Y, x = rng.normal(size=(300, 2, 5)) * [1, 10, 0.1, 2, 3], np.array([1.0, -0.2, 3.0, 0.5, 0.0])
    tau = Y @ x + rng.normal(size=(300, 2)) * [0.02, 0.5]
    return Regression(Y, tau, tuple("abcde"), 5, ()), x


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_finds_the_truth(arm, truth, record, name):
    regression, base = regression_of(arm, record(noise=1e-3))
    found = ESTIMATORS[name](regression)
    true = true_values(truth, base)
    size = np.linalg.norm(regression.Y.reshape(-1, len(base)), axis=0)
    assert np.abs((found.x - true) * size).max() < 0.01 * np.linalg.norm(regression.tau)
    assert found.labels == base.labels
    assert found.method == name
    assert found.value(base.labels[0]) == found.x[0]


def test_ordinary_is_numpys(made):
    regression, _ = made
    W, y = regression.stacked()
    wanted = np.linalg.lstsq(W, y, rcond=None)[0]
    for solver in SOLVERS:
        np.testing.assert_allclose(ordinary(regression, solver=solver).x, wanted, rtol=1e-9)


def test_weighted_is_lstsq_with_the_noise_of_each_joint(made):
    regression, x = made
    found = weighted(regression)
    np.testing.assert_allclose(1 / found.weights, [0.02, 0.5], rtol=0.15)
    W, y = regression.stacked(found.weights)
    np.testing.assert_allclose(found.x, np.linalg.lstsq(W, y, rcond=None)[0], rtol=1e-6)
    assert np.linalg.norm(found.x - x) < np.linalg.norm(ordinary(regression).x - x)


def test_robust_is_scipys_huber_and_survives_outliers(made):
    optimize = pytest.importorskip("scipy.optimize")
    regression, x = made
    tau = regression.tau.copy()
    tau[::10] += 50.0
    spoilt = replace(regression, tau=tau)
    found = robust(spoilt)
    W, y = spoilt.stacked(found.weights)
    wanted = optimize.least_squares(lambda p: W @ p - y, weighted(spoilt).x, loss="huber", f_scale=1.345)
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-4)
    assert np.abs(found.x - x).max() < 0.1 < np.abs(weighted(spoilt).x - x).max()


def test_total_allows_for_noise_in_the_columns():
    rng = np.random.default_rng(1)
    x, noise = np.array([1.0, -2.0]), 0.3
    clean = rng.normal(size=(20000, 1, 2))
    Y = clean + noise * rng.normal(size=clean.shape)
    tau = clean @ x + noise * rng.normal(size=(20000, 1))
    regression = Regression(Y, tau, ("a", "b"), 2, ())
    assert np.abs(weighted(regression).x - x).max() > 0.1  # least squares shrink towards zero
    spread = 1.0 / weighted(regression).weights[0]  # residuals of least squares: the unit of ``column_noise``
    found = total(regression, column_noise=spread / np.sqrt(1 + noise**2))
    _, _, Vt = np.linalg.svd(np.column_stack([Y[:, 0], tau[:, 0]]), full_matrices=False)
    textbook = -Vt[-1, :-1] / Vt[-1, -1]
    np.testing.assert_allclose(textbook, x, atol=0.02)
    np.testing.assert_allclose(found.x, textbook, rtol=0.01)


def test_total_bears_columns_that_are_the_same():
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(300, 1, 2))[..., [0, 1, 1]]
    tau = Y @ [1.0, 2.0, 2.0] + 0.1 * rng.normal(size=(300, 1))
    np.testing.assert_allclose(total(Regression(Y, tau, tuple("abc"), 3, ())).x, [1.0, 2.0, 2.0], atol=0.03)


def test_the_strength_of_ridge_regression_is_one_of_four_per_decade():
    """Many columns and noise as large as the signal, so that some strength is better than none."""
    rng = np.random.default_rng(3)
    Y = rng.normal(size=(60, 1, 20))
    regression = Regression(
        Y, Y @ rng.normal(size=20) + 5.0 * rng.normal(size=(60, 1)), tuple("abcdefghijklmnopqrst"), 20, ()
    )
    W, _ = regression.compressed(ridge(regression).weights)
    largest = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)[0] ** 2
    strength = float(ridge(regression).notes[0].split()[1].rstrip(","))
    quarters = 4 * np.log10(strength / largest)
    assert -8 < quarters < -1
    assert quarters == pytest.approx(round(quarters), abs=0.01)


def test_ridge_shrinks_towards_the_prior(made):
    regression, x = made
    np.testing.assert_allclose(ridge(regression, strength=0.0).x, weighted(regression).x, rtol=1e-8)
    np.testing.assert_allclose(ridge(regression, strength=1e12).x, 0.0, atol=1e-8)
    np.testing.assert_allclose(ridge(regression, strength=1e12, prior=x).x, x, atol=1e-8)
    weights = weighted(regression).weights
    W, y = regression.stacked(weights)
    size = np.linalg.norm(W, axis=0)
    normal = np.linalg.solve((W / size).T @ (W / size) + 0.1 * np.eye(5), (W / size).T @ y) / size
    np.testing.assert_allclose(ridge(regression, strength=0.1).x, normal, rtol=1e-8)


@pytest.mark.parametrize("method", SOLVERS)
def test_solvers_agree_and_bear_missing_rank(method):
    rng = np.random.default_rng(0)
    W, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    np.testing.assert_allclose(solve(W, y, method), np.linalg.lstsq(W, y, rcond=None)[0], rtol=1e-9)
    W[:, 5] = W[:, 0] + W[:, 1]
    x = solve(W, y, method)
    assert np.abs(x).max() < 10
    np.testing.assert_allclose(W.T @ (W @ x - y), 0.0, atol=1e-8)
    with pytest.raises(UnknownNameError, match="cholesky"):
        solve(W, y, "cholesky")


def test_covariance_of_white_noise_is_the_textbooks(made):
    regression, _ = made
    found = weighted(regression)
    W, _ = regression.stacked(found.weights)
    textbook = np.linalg.inv(W.T @ W)
    np.testing.assert_allclose(found.deviations, np.sqrt(np.diag(textbook)), rtol=0.15)
    assert np.diag(found.correlation) == pytest.approx(np.ones(5))
    lower, upper = found.interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.959964 * found.deviations, rtol=0.02)


def test_intervals_of_filtered_noise_cover_the_truth(arm, truth):
    """200 runs, noise through the same filter: 95 % intervals cover in 92 to 98 % of all cases."""
    t, q, qd, qdd = motion(1, seconds=10.0)
    clean = truth.inverse_dynamics(q, qd, qdd)
    friction = friction_named("coulomb", 2)
    base = base_of(arm, np.eye(2), friction)
    signals = condition(Log(t, q, clean), cutoff=CUTOFF, decimation=1)
    regression = Observer(arm, [signals]).regression(friction).pick(base.columns)
    true = weighted(regression).x
    exact = regression.Y @ true
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(200):
        noise = signals.filtered(0.5 * rng.normal(size=clean.shape))  # strongly correlated: 20 of 100 Hz pass
        found = weighted(replace(regression, tau=exact + noise))
        lower, upper = found.interval(0.95)
        inside.append((lower < true) & (true < upper))
    assert 0.92 < np.mean(inside) < 0.98


def test_instruments_are_consistent_where_least_squares_are_not():
    """Columns with noise: least squares are biased, instruments (same signal, other noise) are not."""
    rng = np.random.default_rng(0)
    x, signal = np.array([1.0, -0.5, 2.0]), rng.normal(size=(50000, 1, 3))
    Y = signal + 0.5 * rng.normal(size=signal.shape)
    tau = signal @ x + 0.1 * rng.normal(size=(50000, 1))
    regression = Regression(Y, tau, ("a", "b", "c"), 3, ())
    biased = weighted(regression)
    found = with_instruments(regression, signal, biased.weights)
    assert np.abs(biased.x - x).max() > 0.2
    np.testing.assert_allclose(found.x, x, atol=0.02)
    W, V, y = Y[:, 0], signal[:, 0], tau[:, 0]
    np.testing.assert_allclose(found.x, np.linalg.solve(V.T @ W, V.T @ y), rtol=1e-8)
    assert (np.abs(found.x - x) < 4 * found.deviations).all()


@pytest.mark.parametrize(("samples", "freedom"), [(300, 300 - 5 / 2), (6, 6 - 5 / 2), (3, 1.0)])
def test_noise_by_instruments_is_that_of_the_samples_less_the_parameters(made, samples, freedom):
    """Each joint has its share of the parameters: with as many as there are samples, nothing is left to judge by."""
    regression = made[0].rows(np.arange(300) < samples)
    found = with_instruments(regression, regression.Y, np.ones(2))
    left = regression.residuals(found.x)
    np.testing.assert_allclose(found.sigma, np.sqrt((left**2).sum(axis=0) / freedom), rtol=1e-12)


def test_idim_iv_removes_the_bias_of_noisy_positions(arm, truth):
    """Encoder noise and a cut-off that is too high: least squares lose a part of the inertias, instruments do not."""
    t, q, qd, qdd = motion(10)
    noisy = q + 1e-3 * np.random.default_rng(0).normal(size=q.shape)
    regression, base = regression_of(arm, Log(t, noisy, truth.inverse_dynamics(q, qd, qdd)), cutoff=10.0)
    inertias = [base.labels.index(label) for label in ("link2.Izz", "joint1.rotor_inertia")]
    true = true_values(truth, base)[inertias]
    assert (weighted(regression).x[inertias] < 0.9 * true).all()
    found = idim_iv(regression)
    np.testing.assert_allclose(found.x[inertias], true, rtol=0.02)
    assert "converged" in found.notes[0]


def test_idim_iv_needs_a_robot_to_simulate(made):
    with pytest.raises(IdentificationError, match="Observer"):
        idim_iv(made[0])


@pytest.mark.parametrize("angle", [0.1, 1.0, np.pi / 2])
def test_condition_of_two_columns_at_an_angle(angle):
    """Whatever the lengths of the columns: √((1 + cos) / (1 − cos))."""
    W = np.array([[3.0, 0.2 * np.cos(angle)], [0.0, 0.2 * np.sin(angle)]])
    expected = np.sqrt((1 + np.cos(angle)) / (1 - np.cos(angle)))
    assert condition_of(W) == pytest.approx(expected)
    assert condition_of(np.ones((4, 2))) > 1e15
    assert condition_of(np.eye(3)[:, [0, 1, 1]] * [1.0, 1.0, 0.0]) == np.inf


def test_random_states_of_a_joint_whose_range_is_empty():
    from linkwise.identify.estimation.rank import random_states

    arm = lw.load("two_link")
    joints = [replace(arm.joints[0], limits=lw.Limits(0.5, 0.5)), *arm.joints[1:]]
    q, _, _ = random_states(lw.Robot("held", arm.links, joints), 200)
    assert q[:, 0].min() < -0.9
    assert q[:, 0].max() > 0.9


def test_parameters_in_which_no_motion_has_a_share_prove_nothing():
    """Their degrees of freedom are infinite, without a division by zero."""
    nothing = clustered.Clusters(np.zeros(3), np.eye(3), [(np.zeros(3), np.eye(3))] * 6)
    assert nothing.freedom(np.array([True, False, True]), np.ones(2)) == np.inf
    rng = np.random.default_rng(0)
    shares = [(np.full(3, 1.0 / 6.0), np.linalg.qr(rng.normal(size=(3, 3)))[0]) for _ in range(6)]
    equal = clustered.Clusters(np.ones(3), np.eye(3), shares)
    assert 3.0 < equal.freedom(np.ones(3, bool), np.ones(3)) < 18.0


def test_samples_that_repeat_each_other_count_like_one(monkeypatch):
    """The design effect is 1 for independent samples, and the number of copies for samples that are copied."""
    rng, motions, each = np.random.default_rng(0), 40, 15
    Y, tau = rng.normal(size=(motions * each, 2, 3)), rng.normal(size=(motions * each, 2))
    for copies in (1, 4):
        repeated = [np.repeat(x, copies, axis=0) for x in (Y, tau)]
        regression = Regression(*repeated, ("a.m", "b.m", "c.m"), 3, (), (), object())
        numbers = np.repeat(np.arange(motions), each * copies)
        monkeypatch.setattr(clustered, "motions", lambda _, numbers=numbers: numbers)
        x = solve(*regression.stacked())
        found = clustered.clusters(regression, np.ones(2), x)
        assert found.effect == pytest.approx(copies, rel=0.35)
