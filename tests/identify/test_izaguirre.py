"""Izaguirre's procedure (1992, sections 6 and 7) on a known PUMA 260: 78 → 52 → 23 parameters."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.identify import Regression, base_by_rank, by_contribution, by_statistics, weighted
from linkwise.identify.estimation.rank import random_states

MOMENTS = (
    "m6 x6 y6 z6 a6 b6 c6 d6 e6 f6 x5 y5 a5 c5 d5 e5 f5 x4 y4 a4 c4 d4 e4 f4 x3 y3 a3 d3 e3 f3 x2 y2 d2 e2"
)
LETTERS = {"m": "m", "x": "hx", "y": "hy", "z": "hz", "a": "Ixx", "b": "Iyy", "c": "Izz"}
LETTERS |= {"d": "Ixy", "e": "Iyz", "f": "Ixz"}
TERMS = ("rotor_inertia", "viscous_friction", "coulomb_friction")
JOINTS = [f"joint{k}.{term}" for term in TERMS for k in range(1, 7)]
SIGNIFICANT = ["link6.m", "link6.hz", "link4.hy", "link4.Ixx", "link4.Izz", *JOINTS]


@pytest.fixture(scope="module")
def puma() -> lw.Robot:
    return lw.load("puma260")


@pytest.fixture(scope="module")
def base(puma):
    return base_by_rank(puma, order="rotors first")


def recording(puma, base, noise: float, seed: int = 0) -> Regression:
    """Random states are as good as a motion: what counts are the columns."""
    q, qd, qdd = random_states(puma, 2000, seed)
    tau = puma.inverse_dynamics(q, qd, qdd)
    size = noise * np.sqrt((tau**2).mean(axis=0))
    tau = tau + size * np.random.default_rng(seed).normal(size=tau.shape)
    Y = puma.regressor(q, qd, qdd)[..., list(base.columns)]
    return Regression(Y, tau, base.labels, len(base.labels), ())


def test_78_parameters_of_which_52_are_independent(puma, base):
    assert len(puma.parameters) == 78
    expected = [f"link{name[1]}.{LETTERS[name[0]]}" for name in MOMENTS.split()]
    assert sorted(base.labels) == sorted([*expected, *JOINTS])
    smallest, largest = base.gap
    assert smallest > 1e6 * largest  # he took 1e-10 for zero; the gap is wide


def test_rotor_inertias_first_or_last_keeps_the_count_but_not_the_parameters(puma, base):
    others = [label for label in puma.parameter_labels if not label.endswith("rotor_inertia")]
    last = base_by_rank(puma, order=others)
    assert len(last.labels) == len(base.labels) == 52
    assert "joint1.rotor_inertia" in base.labels
    assert "joint1.rotor_inertia" not in last.labels


def test_23_are_significant_and_the_fit_gives_them_back(puma, base):
    exact = recording(puma, base, noise=0.0)
    found = by_contribution(exact, weighted(exact))
    assert sorted(found.labels) == sorted(SIGNIFICANT)
    known = dict(zip(puma.parameter_labels, puma.parameters.tolist(), strict=True))
    for label, value in zip(found.labels, found.estimate.x, strict=True):
        assert value == pytest.approx(known[label], rel=1e-6)


@pytest.mark.parametrize("rule", [by_contribution, by_statistics])
def test_with_noise_the_refit_is_better_conditioned_and_no_worse(puma, base, rule):
    noisy = recording(puma, base, noise=0.05)
    full = weighted(noisy)
    found = rule(noisy, full)
    assert set(found.labels) >= set(SIGNIFICANT)
    assert len(found.labels) < 33  # five per cent of the zero ones may look like something
    assert found.estimate.condition < full.condition
    places = [full.labels.index(label) for label in SIGNIFICANT]
    again = [found.labels.index(label) for label in SIGNIFICANT]
    ratio = found.estimate.deviations[again] / full.deviations[places]
    assert np.median(ratio) < 1.0
    truth = base.combination @ puma.parameters
    better = np.abs(found.estimate.x[again] - truth[places]) < 5 * found.estimate.deviations[again]
    assert better.all()
