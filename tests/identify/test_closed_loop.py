"""DIDIM and CLOE: simulated recordings, so the truth is known; each against the other and against least squares."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import identify
from linkwise.control import GravityPD
from linkwise.identify import IdentificationError, Log, cloe, didim
from linkwise.identify.campaign import true_parameters
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.friction import friction_named
from linkwise.identify.loop.gauss_newton import _linear_model
from linkwise.identify.loop.problem import LoopProblem
from linkwise.identify.loop.simulation import values_of
from linkwise.motion import FourierSeries
from linkwise.simulate import simulate

pytest.importorskip("clarabel")

SECONDS, RATE = 6.0, 200.0
NOISE = 1e-3  # [rad] of the recorded positions: a bad encoder
SURE = 4.5  # standard deviations within which 26 errors are, but for one case in thousands


@pytest.fixture(scope="module")
def reference():
    sine, cosine = np.random.default_rng(1).normal(size=(2, 5, 2)) * 0.5 / np.arange(1, 6)[:, None]
    return FourierSeries(np.zeros(2), sine, cosine, SECONDS)


@pytest.fixture(scope="module")
def controller(arm):
    """A loose one, whose model is the robot as given: the real one is behind its reference."""
    return GravityPD(arm, GravityPD.gains_for(arm, 25.0, q=arm.neutral), torque_limits=False)


@pytest.fixture(scope="module")
def log(truth, reference, controller) -> Log:
    run = simulate(truth, controller, reference, duration=SECONDS, step=1e-3, every=round(1000 / RATE))
    rng = np.random.default_rng(3)
    size = 0.02 * np.sqrt((run.tau**2).mean(axis=0))
    return Log(
        run.t,
        run.q + NOISE * rng.normal(size=run.q.shape),
        run.tau + size * rng.normal(size=run.tau.shape),
        name="noisy",
    )


@pytest.fixture(scope="module")
def known(truth) -> tuple[np.ndarray, np.ndarray]:
    """True base parameters, and the torque that a unit of each causes, roughly: to weigh their errors."""
    base = base_of(truth, np.eye(2), friction_named("coulomb", 2))
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 200, 2))
    size = np.sqrt((truth.regressor(q, qd, qdd) ** 2).mean(axis=(0, 1)))
    sizes = dict(zip(truth.parameter_labels, size, strict=True))
    caused = np.array([sizes.get(label, 1.0) for label in base.labels])
    return base.combination @ true_parameters(truth, base.parameter_labels), caused


@pytest.fixture(scope="module")
def options(reference, controller):
    return {"reference": reference, "controller": controller, "friction": "coulomb", "cutoff": 20.0}


@pytest.fixture(scope="module")
def by_didim(arm, log, options):
    return didim(arm, log, **options)


@pytest.fixture(scope="module")
def by_cloe(arm, log, options):
    return cloe(arm, log, **options)


@pytest.fixture(scope="module")
def plain(arm, log):
    """By least squares along the recorded motion."""
    return identify.identify(arm, log, friction="coulomb", cutoff=20.0)


@pytest.mark.processor
def test_noisy_positions_bias_least_squares_but_not_didim(known, plain, by_didim):
    truth, caused = known
    errors = [np.linalg.norm((each.estimate.x - truth) * caused) for each in (by_didim, plain)]
    assert errors[0] < 0.1 * errors[1]
    assert by_didim.converged
    assert len(by_didim.history) <= 5
    assert (np.abs(by_didim.estimate.x - truth) < SURE * by_didim.estimate.deviations).all()
    assert (np.abs(plain.estimate.x - truth) > SURE * plain.estimate.deviations).any()


@pytest.mark.processor
def test_gauss_newton_finds_the_same_parameters(known, by_didim, by_cloe):
    assert by_cloe.converged
    assert by_cloe.estimate.labels == by_didim.estimate.labels
    spread = by_cloe.estimate.deviations
    assert (np.abs(by_cloe.estimate.x - known[0]) < SURE * spread).all()
    assert (np.abs(by_cloe.estimate.x - by_didim.estimate.x) < spread).all()
    np.testing.assert_allclose(by_cloe.relative, by_didim.relative, rtol=0.05)


def test_what_is_left_is_that_of_the_torques_shown(by_didim, by_cloe):
    for found in (by_didim, by_cloe):
        assert [each.number for each in found.history] == list(range(1, len(found.history) + 1))
        away, size = (np.linalg.norm(x, axis=0) for x in (found.measured - found.simulated, found.measured))
        shown = 100.0 * away / size  # with the noise that filters take away
        assert (found.relative < shown).all()
        assert (found.relative > 0.2 * shown).all()
        assert 0.99 * min(found.relative) < found.history[-1].residual < 1.01 * max(found.relative)


def test_the_robots_need_the_torques_of_the_true_one(truth, arm, by_didim, by_cloe):
    q, qd, qdd = np.random.default_rng(5).uniform(-1, 1, (3, 100, 2))
    wanted = truth.inverse_dynamics(q, qd, qdd)
    before = np.linalg.norm(arm.inverse_dynamics(q, qd, qdd) - wanted)
    for found in (by_didim, by_cloe):
        assert np.linalg.norm(found.robot.inverse_dynamics(q, qd, qdd) - wanted) < 0.05 * before
        assert found.identification.validation.total < 3.0  # 2 % of noise


@pytest.mark.parametrize("factor", [1e-3, 4.0])
def test_didim_comes_from_far_away(arm, log, options, by_didim, factor):
    start = arm.with_parameters(
        {
            label: factor * value
            for label, value in zip(arm.parameter_labels, arm.parameters.tolist(), strict=True)
        }
    )
    found = didim(arm, log, start=start, **options)
    np.testing.assert_allclose(
        found.estimate.x, by_didim.estimate.x, atol=0.1 * by_didim.estimate.deviations.max()
    )
    assert len(found.history) <= 7


def test_a_start_that_is_too_far_away_is_an_error(arm, log, options):
    light = arm.with_parameters(
        {
            label: 1e-4 * value
            for label, value in zip(arm.parameter_labels, arm.parameters.tolist(), strict=True)
        }
    )
    with pytest.raises(IdentificationError, match=r"runs away .* too far away"):
        cloe(arm, log, start=light, **options)


@pytest.mark.processor
def test_the_reference_of_another_motion_is_an_error(arm, log, options):
    other = np.zeros_like(log.q)
    with pytest.raises(IdentificationError, match="not those of the recording"):
        didim(arm, log, **options | {"reference": other})


def test_an_unknown_controller_is_matched_to_the_recorded_tracking(
    arm, log, reference, by_didim, known, plain
):
    found = didim(arm, log, reference=reference, friction="coulomb", cutoff=20.0)
    assert type(found.controller.law).__name__ == "GravityPD"
    assert found.relative.max() < 1.5 * by_didim.relative.max()
    # nothing known but the recording: a stiff controller along the smoothed motion
    alone = didim(arm, log, friction="coulomb", cutoff=20.0)
    truth, caused = known
    errors = [np.linalg.norm((each.estimate.x - truth) * caused) for each in (alone, plain)]
    assert errors[0] < 0.3 * errors[1]


def test_sensitivities_are_those_of_single_simulations(arm, truth, log, reference, controller):
    problem = LoopProblem.of(arm, log, reference, controller, 60.0, 20.0, "coulomb", truth)
    x = problem.start.copy()
    labels = problem.whole.labels
    base = base_of(arm, np.eye(2), problem.friction)
    columns = [base.columns[0], base.columns[-3]]
    slopes = _linear_model(problem, x, columns, problem.recorded.tau).Y
    for place, column in enumerate(columns):
        torques = []
        for h in (1e-4, -1e-4):
            changed = values_of(
                problem.robot_of(x + h * (np.arange(len(labels)) == column)), problem.loops[0].labels
            )
            run = problem.loops[0].run({label: np.array([value]) for label, value in changed.items()})
            torques.append(problem.torques([run]))
        single = (torques[0] - torques[1]) / 2e-4
        np.testing.assert_allclose(slopes[..., place], single, atol=0.02 * np.abs(single).max())


def test_a_reference_goes_on_at_its_last_speed(reference):
    """A trajectory is at rest from its last sample on; the loop runs to the end of the last period."""
    from linkwise.identify.loop.simulation import _longer
    from linkwise.motion import Samples

    t = np.linspace(0.0, 1.0, 11)
    short = Samples(t, *reference.at(t))
    longer = _longer(short)
    np.testing.assert_allclose(longer.t[-3:], [1.0, 1.1, 1.2])
    for k in (1, 2):
        np.testing.assert_allclose(longer.q[10 + k], short.q[-1] + 0.1 * k * short.qd[-1])
        np.testing.assert_array_equal(longer.qd[10 + k], short.qd[-1])
        np.testing.assert_array_equal(longer.qdd[10 + k], 0.0)
    np.testing.assert_array_equal(longer.q[:11], short.q)


def test_what_cannot_be_meant_is_refused(arm, log, controller):
    with pytest.raises(IdentificationError, match="reference: expected a trajectory, or finite positions"):
        didim(arm, log, reference=np.zeros(3))
    with pytest.raises(IdentificationError, match="2 for 1 recordings"):
        didim(arm, log, reference=[log.q, log.q])
    with pytest.raises(IdentificationError, match="controller: expected one of"):
        didim(arm, log, controller="pd")
    with pytest.raises(IdentificationError, match="behind the gears"):
        didim(arm, replace(log, sensed="joint"))
    with pytest.raises(IdentificationError, match="start: its joints"):
        didim(arm, log, start=lw.load("puma560"))


def test_a_recording_with_a_gap_is_simulated_in_parts(arm, log, options):
    keep = np.ones(len(log), dtype=bool)
    keep[500:560] = False
    q = options["reference"].at(log.t)[0]
    cut = replace(log, t=log.t[keep], q=log.q[keep], tau=log.tau[keep])
    found = didim(arm, cut, **options | {"reference": q[keep]})
    assert len(found.identification.signals) == 2
    assert found.relative.max() < 4.0
