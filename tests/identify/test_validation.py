"""The figures by which a model is judged, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from known_arm import RATE, motion

from linkwise.identify import Log, Validation, condition, friction_named, validate
from linkwise.identify.judging.replay import Replay, _step, replay
from linkwise.identify.judging.validation import AT_REST, by_columns
from linkwise.identify.recordings.derivatives import low_pass


@pytest.fixture(scope="module")
def judged():
    t, q, qd, _ = motion(1)
    rng = np.random.default_rng(0)
    measured = np.column_stack([5 * np.sin(t), np.cos(2 * t)])
    predicted = measured + rng.normal(size=measured.shape) * [0.5, 0.2]
    return Validation(Log(t, q, measured), t, qd, measured, predicted, 5.0)


def test_per_joint(judged):
    e = judged.measured - judged.predicted
    np.testing.assert_allclose(judged.rms, np.sqrt((e**2).mean(axis=0)))
    for k in range(2):
        assert judged.relative[k] == pytest.approx(
            100 * np.linalg.norm(e[:, k]) / np.linalg.norm(judged.measured[:, k])
        )
    assert judged.total == pytest.approx(100 * np.linalg.norm(e) / np.linalg.norm(judged.measured))
    np.testing.assert_allclose(judged.explained, 1 - e.var(axis=0) / judged.measured.var(axis=0))


def test_the_table_has_a_row_for_each_joint_from_one_on(judged):
    rows = [line.split() for line in repr(judged).splitlines()[2:]]
    assert [row[0] for row in rows] == ["1", "2"]
    shown = np.array([[float(x) for x in row[1:]] for row in rows])
    np.testing.assert_allclose(
        shown, np.stack([judged.rms, judged.relative, judged.in_band], axis=1), rtol=1e-2
    )


def test_without_joints_that_stand_still(judged):
    for k in range(2):
        moves = np.abs(judged.qd[:, k]) > AT_REST
        assert 0 < moves.sum() < len(moves)
        wanted = 100 * np.linalg.norm(judged.residuals[moves, k]) / np.linalg.norm(judged.measured[moves, k])
        assert judged.moving[k] == pytest.approx(wanted)


def test_within_a_band(judged):
    inside = slice(int(RATE / 5.0), -int(RATE / 5.0))  # the ends, of which a filter knows half, do not count
    e, m = (low_pass(x, RATE, 5.0)[inside] for x in (judged.residuals, judged.measured))
    np.testing.assert_allclose(
        judged.in_band, 100 * np.linalg.norm(e, axis=0) / np.linalg.norm(m, axis=0), rtol=1e-6
    )
    assert judged.total_in_band == pytest.approx(100 * np.linalg.norm(e) / np.linalg.norm(m))
    assert (judged.in_band < 0.5 * judged.relative).all()  # white noise is mostly above 5 Hz


def test_the_true_robot_predicts_its_own_torques(truth, record):
    log = record(3)
    judged = validate(truth, condition(log, cutoff=20.0))
    assert (judged.relative < 2.0).all()  # reversals of Coulomb friction lie between samples
    assert (validate(truth.with_gravity((0.0, 0.0, 0.0)), condition(log, cutoff=20.0)).relative > 20).all()


def test_a_replay_does_not_depend_on_when_the_clock_started(truth, record):
    """Windows are counted from the first sample on, and the torques of the true robot lead through each of them."""
    log = record(3, seconds=5.0)
    runs = []
    for began in (0.0, -3.0, 40.0):
        judged = validate(truth, condition(replace(log, t=log.t + began), cutoff=20.0))
        runs.append(replay(truth, judged, 0.25))
    for run in runs:
        assert run.t[0] == 0.0
        assert run.window == pytest.approx(0.25, rel=0.05)
        assert 4.6 < run.t[-1] < 5.0  # all of it, without the ends
        assert (run.deviation < 0.02 * run.moved).all()
        np.testing.assert_allclose(run.simulated, runs[0].simulated, atol=1e-6)


def test_links_and_friction_by_their_coefficients(arm, truth, record):
    friction = friction_named("coulomb", 2)
    known = dict(zip(truth.parameter_labels, truth.parameters, strict=True))
    names = [f"joint{k + 1}.{term.label}" for k, terms in enumerate(friction) for term in terms]
    coefficients = np.array([known.get(name, 0.0) for name in names])
    links = np.array([known[label] for label in truth.parameter_labels[:20]])
    terms = [(k, term) for k, own in enumerate(friction) for term in own]
    x = np.concatenate([links, coefficients])
    judged = by_columns(arm, x, terms, condition(record(3), cutoff=20.0))
    assert (judged.relative < 2.0).all()
    assert judged.band == 20.0


def test_windows_in_which_a_joint_moves_are_those_above_its_speed_at_rest():
    """Speeds just above and just below the one that counts as rest, for windows of any length."""
    for steps, period in ((5, 0.004), (50, 0.004), (20, 0.2)):
        t = period * np.arange(3 * steps)
        distance = AT_REST * steps * period  # that this speed covers in a window
        ramp = np.linspace(0.0, 1.0, steps)
        recorded = np.concatenate([1.02 * distance * ramp, 0.98 * distance * ramp, np.zeros(steps)])[:, None]
        found = Replay(t, recorded, recorded + 0.5, steps)
        np.testing.assert_allclose(found.moved, [1.02 * distance])
        np.testing.assert_allclose(found.deviation, [0.5])


def test_a_step_of_a_replay_is_of_fourth_order(truth):
    """Torques that change linearly: half the step leaves a sixteenth of the error."""
    rng = np.random.default_rng(3)
    q, qd, first, last = rng.uniform(-1.0, 1.0, (4, 5, truth.dof))

    def end(count):
        at, speed = q, qd
        for k in range(count):
            ends = (first + share * (last - first) for share in (k / count, (k + 1) / count))
            at, speed = _step(truth, at, speed, *ends, 0.1 / count)
        return np.concatenate([at, speed])

    exact, coarse, fine = end(128), end(4), end(8)
    assert 12.0 < np.abs(coarse - exact).max() / np.abs(fine - exact).max() < 20.0
