"""Which parameters matter, by either rule, and what the reduced model costs."""

import numpy as np
import pytest

from linkwise.identify import by_contribution, by_statistics, identify, weighted
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.significance import contributions


@pytest.fixture(scope="module")
def made():
    """Two joints; column c causes half a per cent of the second joint's largest torque, d nothing, e 5 % of the
    first's.
    """
    rng = np.random.default_rng(0)
    Y = rng.uniform(-1, 1, size=(500, 2, 5))
    Y[:, 0, 2] = Y[:, 1, 4] = 0.0
    x = np.array([3.0, -2.0, 0.0, 0.0, 0.0])
    largest = np.abs(Y @ x).max(axis=0)
    x[2], x[4] = 0.005 * largest[1], 0.05 * largest[0]
    tau = Y @ x + 1e-4 * rng.normal(size=(500, 2))
    return Regression(Y, tau, tuple("abcde"), 5, ()), x


def test_contribution_is_izaguirres_one_per_cent(made):
    regression, _ = made
    found = by_contribution(regression, weighted(regression))
    assert found.labels == ("a", "b", "e")
    assert found.contributions[2] == pytest.approx(0.005, rel=0.1)
    # the fit is renewed with what is left
    wanted = weighted(regression.pick(found.kept))
    np.testing.assert_allclose(found.estimate.x, wanted.x)
    assert by_contribution(regression, weighted(regression), threshold=0.004).labels == ("a", "b", "c", "e")


def test_contributions_are_the_largest_of_any_joint(made):
    regression, x = made
    share = np.abs(regression.Y * x) / np.abs(regression.tau).max(axis=0)[:, None]
    np.testing.assert_allclose(contributions(regression, x), share.max(axis=(0, 1)))


def test_statistics_keep_the_small_but_certain(made):
    regression, _ = made
    found = by_statistics(regression, weighted(regression))
    assert found.labels == ("a", "b", "c", "e")  # c is small, but sixty deviations from zero; d is none


def test_statistics_drop_what_noise_hides():
    rng = np.random.default_rng(1)
    dropped = 0
    for _ in range(20):
        Y = rng.normal(size=(200, 1, 6))
        tau = Y[..., :2] @ [1.0, 1.0] + rng.normal(size=(200, 1))
        regression = Regression(Y, tau, tuple("abcdef"), 6, ())
        kept = by_statistics(regression, weighted(regression)).labels
        assert kept[:2] == ("a", "b")
        dropped += 6 - len(kept)
    assert dropped > 0.8 * 80


def test_correlated_samples_count_as_fewer():
    """Columns and noise that change slowly: as many parameters without an effect are dropped as of white noise."""
    rng = np.random.default_rng(2)
    dropped = 0
    for _ in range(8):
        slow = rng.normal(size=(1500, 7))
        for k in range(1, 1500):
            slow[k] += 0.95 * slow[k - 1]
        Y = slow[:, None, :6]
        tau = Y[..., :2] @ [1.0, 1.0] + slow[:, 6:]
        regression = Regression(Y, tau, tuple("abcdef"), 6, ())
        kept = by_statistics(regression, weighted(regression)).labels
        assert kept[:2] == ("a", "b")
        dropped += 6 - len(kept)
    assert dropped > 0.7 * 32, dropped


def test_the_reduced_model_is_cheaper_and_nearly_as_good(arm, record):
    found = identify(arm, record(noise=0.02))
    reduced = found.reduction
    assert len(reduced.significance.kept) < reduced.base_count
    before, after = reduced.operations_before, reduced.operations
    assert after.multiplications + after.additions < before.multiplications + before.additions
    assert (reduced.relative < reduced.relative_before + 1.0).all()
    assert reduced.significance.condition_before >= reduced.significance.estimate.condition
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, size=(3, 50, 2))
    close, whole = (robot.inverse_dynamics(q, qd, qdd) for robot in (reduced.robot, found.robot))
    assert np.linalg.norm(close - whole) < 0.1 * np.linalg.norm(whole)
    assert "inverse_dynamics" in found.code()


def test_both_rules_by_name(arm, record):
    for name in ("contribution", "statistics"):
        assert (
            identify(
                arm, record(noise=0.02), significance=name, friction="coulomb"
            ).reduction.significance.rule
            == name
        )
