"""Bodies that can exist: pseudo-inertias positive definite, near the prior where torques say nothing, whatever the
solver.
"""

import importlib
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import (
    IdentificationWarning,
    Log,
    Observer,
    condition,
    fit,
    friction_named,
    identify,
    physical,
    prior_bodies,
)
from linkwise.identify.estimation import prior as prior_module
from linkwise.identify.estimation.interior import Interior
from linkwise.identify.estimation.physical import MARGIN, _units, coordinates, divergence, physical_from_gram
from linkwise.identify.estimation.prior import FAR, pseudo_inertias, scale_of
from linkwise.model.inertia import Inertia

pytest.importorskip("clarabel")
WEIGHTS = np.ones(2)


def smallest(links: np.ndarray) -> float:
    """The smallest eigenvalue of all pseudo-inertias."""
    return float(np.linalg.eigvalsh(np.tensordot(links.reshape(-1, 10), pseudo_inertias(), 1)).min())


@pytest.fixture(scope="module")
def regression(arm, record):
    observer = Observer(arm, [condition(record(noise=0.02), cutoff=20.0)])
    return observer.regression(friction_named("coulomb", 2))


def test_links_are_possible_where_least_squares_are_not(arm, regression):
    """Noise makes impossible bodies of light links; the constraint costs next to nothing."""
    noisy = replace(
        regression, tau=regression.tau + 3 * np.random.default_rng(0).normal(size=regression.tau.shape)
    )
    free = np.linalg.lstsq(*noisy.stacked(), rcond=None)[0]
    assert smallest(free[:20]) < 0
    found = physical(noisy, WEIGHTS, prior_bodies(arm))
    assert smallest(found.x[:20]) > 0
    spread = [np.linalg.norm(noisy.residuals(x)) for x in (found.x, free)]
    assert spread[1] <= spread[0] < 1.02 * spread[1]


def test_without_noise_the_true_torques_come_back(arm, truth, record):
    found = identify(arm, record(), friction="coulomb", cutoff=20.0)
    assert (found.validation.relative < 1.0).all()
    _, q, qd, qdd = motion(77)
    wanted = truth.inverse_dynamics(q, qd, qdd, friction=False)
    close = found.robot.inverse_dynamics(q, qd, qdd, friction=False)
    assert np.linalg.norm(close - wanted) < 0.01 * np.linalg.norm(wanted)
    for body in found.robot.labelled_bodies():
        assert not body.violations()


def test_what_torques_leave_open_is_the_priors(arm, regression):
    prior = prior_bodies(arm)
    found = physical(regression, WEIGHTS, prior)
    links = found.x[:20].reshape(2, 10)
    # a planar arm: nothing depends on h_z, I_xz, I_yz, of which the prior has none
    np.testing.assert_allclose(links[:, [3, 6, 8]], prior[:, [3, 6, 8]], atol=1e-4)
    strong = physical(regression, WEIGHTS, prior, strength=1e9)
    np.testing.assert_allclose(strong.x[:20].reshape(2, 10), prior, rtol=1e-2, atol=1e-3)
    assert (strong.divergence < 1e-3).all()
    weaker = physical(regression, WEIGHTS, prior, strength=1e-2)
    assert weaker.divergence.sum() >= found.divergence.sum() - 1e-6


def test_divergence_is_bregmans():
    """Zero at the prior, positive elsewhere, the same in every frame and unit of length."""
    prior = np.array([Inertia.from_com(2.0, (0.1, 0.0, 0.2), (0.02, 0.03, 0.025)).parameters])
    other = np.array([Inertia.from_com(3.0, (0.0, 0.1, 0.1), (0.03, 0.02, 0.03)).parameters])
    assert divergence(prior, prior) == pytest.approx(0.0, abs=1e-9)
    assert divergence(other, prior)[0] > 0
    scale = np.array([1.0, *[100.0] * 3, *[1e4] * 6])  # centimetres
    np.testing.assert_allclose(divergence(other * scale, prior * scale), divergence(other, prior), rtol=1e-9)
    impossible = other.copy()
    impossible[0, 4] = 10.0  # I_xx > I_yy + I_zz
    assert divergence(impossible, prior)[0] == np.inf


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_newtons_method_and_the_conic_solver_agree(arm, regression, scale):
    prior = prior_bodies(arm)
    gram, right = (scale * part for part in regression.gram(WEIGHTS))
    rotors = [20, 24]
    assert [regression.labels[k] for k in rotors] == ["joint1.rotor_inertia", "joint2.rotor_inertia"]
    conic = physical_from_gram(gram, right, prior, nonnegative=rotors)
    T = coordinates(gram, prior)
    problem = Interior(T.T @ gram @ T, -(T.T @ right), _units(), 2, 1.0, MARGIN, rotors)
    v = problem.solve()
    assert smallest((T @ v)[:20]) > 0
    assert (v[rotors] > 0).all()
    reached = problem.value(np.linalg.solve(T, conic.x), 0.0)
    assert problem.value(v, 0.0) <= reached + 1e-6 * abs(reached)


def test_what_causes_no_torque_stays_zero():
    """A barrier alone would drive it to infinity: 1e154, and an overflow, in reduced models without some friction."""
    Q, c = np.diag([0.0] * 10 + [1.0, 0.0]), np.array([0.0] * 10 + [-3.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        v = Interior(Q, c, _units(), 1, 1.0, MARGIN, [10, 11]).solve()
    assert v[10] == pytest.approx(3.0, abs=1e-6)
    assert v[11] == 0.0


def test_negative_rotors_are_refused(arm, regression):
    rotors = [20, 24]
    tau = regression.tau - 2.0 * regression.Y[..., 20]  # a drive that pushes instead of resisting
    found = physical(replace(regression, tau=tau), WEIGHTS, prior_bodies(arm), nonnegative=rotors)
    assert found.x[rotors].min() > -1e-6
    assert physical(replace(regression, tau=tau), WEIGHTS, prior_bodies(arm)).x[20] < 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.02])
def test_no_valid_recording_stops_the_solver(arm, truth, seed, noise):
    """Residuals of almost nothing make the problem steep: the conic solver alone stalls on some of these."""
    t, q, qd, qdd = motion(seed, seconds=10.0, size=0.3 + 0.2 * seed)
    tau = truth.inverse_dynamics(q, qd, qdd)
    tau += noise * np.random.default_rng(seed).normal(size=tau.shape)
    observer = Observer(arm, [condition(Log(t, q, tau))])
    found = fit(observer, friction_named("presliding", 2), prior_bodies(arm))
    assert smallest(found.links) > 0
    assert np.isfinite(found.x).all()


def test_no_prior_at_all_still_gives_possible_links(arm, regression):
    found = physical(regression, WEIGHTS, prior_bodies(arm), strength=0.0)
    assert smallest(found.x[:20]) > 0
    assert np.abs(found.x).max() < 1e4


def test_a_file_without_masses_gets_believable_ones():
    robot = lw.load("two_link")
    bare = robot.with_parameters({label: 0.0 for label in robot.parameter_labels[:20]})
    assert smallest(prior_bodies(bare)) > 0
    thin = robot.with_parameters({f"link1.{name}": 0.0 for name in ("Ixx", "Iyy", "Izz", "hx", "hy", "hz")})
    bodies = prior_bodies(thin)
    assert smallest(bodies) > 0
    assert bodies[0, 0] == robot.labelled_bodies()[0].mass


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e6])
def test_a_prior_of_another_size_is_scaled(arm, record, factor):
    """Torques in unknown units: the prior's shape still helps, its size does not hinder."""
    log = record(noise=0.02)
    other = Log(log.t, log.q, factor * log.tau)
    if factor == 1.0:
        found = identify(arm, other)
    else:
        with pytest.warns(IdentificationWarning, match="times those of the masses"):
            found = identify(arm, other)
    assert (found.validation.relative < 5.0).all()
    assert smallest(found.fit.links) > 0


def test_newtons_method_takes_over(arm, regression, monkeypatch):
    prior = prior_bodies(arm)
    conic = physical(regression, WEIGHTS, prior)
    module = importlib.import_module("linkwise.identify.estimation.physical")
    monkeypatch.setattr(
        module._Problem, "solve", lambda self: (np.full(self.p, np.nan), "InsufficientProgress")
    )
    found = physical(regression, WEIGHTS, prior)
    assert "InsufficientProgress" in found.status
    np.testing.assert_allclose(
        regression.Y @ found.x, regression.Y @ conic.x, atol=1e-4 * np.abs(regression.tau).max()
    )


def test_the_objective_is_infinite_outside():
    """Parameters that must not be negative, and pseudo-inertias whose smallest eigenvalue is under 1e-6."""
    problem = Interior(np.diag([0.0] * 10 + [1.0]), np.zeros(11), _units(), 1, 1.0, MARGIN, [10])

    def value(eigenvalue: float, positive: float) -> float:
        P = np.diag([1.0, 1.0, 1.0, eigenvalue])
        return problem.value(np.r_[np.einsum("aij,ij->a", _units(), P), positive], 0.1)

    assert np.isfinite(value(1.5e-6, 0.5))
    assert value(0.5e-6, 0.5) == np.inf
    assert value(1.5e-6, 0.0) == value(1.5e-6, -0.5) == np.inf


@pytest.mark.parametrize("factor", [1.0, 0.9 * FAR, 1.5 / FAR, 3 * FAR, 0.3 / FAR])
def test_a_prior_of_another_size_than_the_torques_is_scaled(factor):
    rng = np.random.default_rng(0)
    columns, prior = rng.normal(size=(200, 2, 20)), rng.normal(size=(2, 10))
    observer: Any = SimpleNamespace(
        robot=SimpleNamespace(dof=2), link_columns=columns, tau=factor * (columns @ prior.ravel()),
        term_columns=lambda terms, carried=None: rng.normal(size=(200, 2, len(terms))),
    )  # fmt: skip
    wanted = 1.0 if 1 / FAR < factor < FAR else factor
    assert scale_of(observer, prior) == pytest.approx(wanted, rel=1e-9)
    observer.tau = 1e6 * rng.normal(size=(200, 2))  # nothing like the prior: its size is not known
    assert scale_of(observer, prior) == 1.0


@pytest.mark.parametrize("mass", [0.1, 10.0])
def test_a_point_mass_gets_a_size_in_proportion_to_its_mass(mass):
    body = Inertia.from_com(mass, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    robot: Any = None  # not asked where there is a mass
    found = Inertia.from_parameters(prior_module._believable(body, robot, 0, 1.0))
    second = np.linalg.eigvalsh(found.pseudo_inertia[:3, :3])
    np.testing.assert_allclose(second, 1e-4 * mass * prior_module.GUESSED_RADIUS**2)


def test_offsets_that_cannot_be_told_apart_stay_small(arm, regression):
    """Two columns that are the same share their sum by the squares of the sizes that they may have."""
    k = regression.labels.index("joint1.torque_offset")
    twice = replace(
        regression,
        Y=np.concatenate([regression.Y, regression.Y[..., [k]]], axis=2),
        tau=regression.tau + 5.0 * regression.Y[..., k],
        labels=(*regression.labels, "joint1.other"),
        terms=(*regression.terms, regression.terms[k - regression.links]),
    )
    found = physical(twice, WEIGHTS, prior_bodies(arm), small={k: 1.0, len(regression.labels): 3.0})
    assert found.x[-1] / found.x[k] == pytest.approx(9.0, rel=0.02)
    assert found.x[-1] + found.x[k] == pytest.approx(5.0, abs=1.0)
