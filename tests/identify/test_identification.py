"""From a recording to a robot in one call: what comes out, and that every stage can be replaced."""

import ctypes
import json
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import (
    ESTIMATORS,
    IdentificationWarning,
    Log,
    Observer,
    Stages,
    Term,
    all_estimates,
    base_values,
    by_contribution,
    choose_friction,
    condition,
    fit,
    friction_named,
    identify,
    prior_bodies,
    weighted,
)
from linkwise.identify.estimation.friction import AxisSignals, column
from linkwise.identify.estimation.motions import motions
from linkwise.robot.directions import torques_along


@pytest.fixture(scope="module")
def found(arm, record):
    return identify(arm, [record(1, noise=0.02), record(2, noise=0.02)], validation=record(3, noise=0.02))


@pytest.mark.processor
def test_an_unseen_run_is_predicted(found, truth, record):
    assert (found.validation.relative < 5.0).all()  # two per cent of noise, and reversals
    assert found.validation.log.name == "run3"
    assert (found.of_prior[0].relative > 3 * found.validation.relative).all()
    clean = record(3)
    assert np.linalg.norm(found.validation.predicted - clean.tau) < 0.03 * np.linalg.norm(clean.tau)


def test_the_identified_robot_has_the_drive_of_the_real_one(found, truth):
    for got, true in zip(found.robot.moving_joints, truth.moving_joints, strict=True):
        assert got.viscous_friction == pytest.approx(true.viscous_friction, abs=0.05)
        assert got.coulomb_friction[0] == pytest.approx(true.coulomb_friction[0], abs=0.05)


def test_base_parameters_are_told_with_their_uncertainty(found, truth):
    known = dict(zip(truth.parameter_labels, truth.parameters, strict=True))
    rows = {row.label: row for row in found.table()}
    row = rows["link2.hx"]
    assert row.lower < row.value < row.upper
    assert row.value == pytest.approx(known["link2.hx"], rel=0.02)
    assert row.physical == pytest.approx(row.value, rel=0.02)
    assert row.prior == pytest.approx(known["link2.hx"] / 1.2)
    np.testing.assert_allclose(base_values(found), [row.physical for row in rows.values()])
    assert found.estimate.correlation.shape == 2 * (len(rows),)


def test_everything_is_written_down(found):
    told = json.loads(json.dumps(found.summary(), default=lambda x: x.tolist()))
    assert told["recordings"] == ["run1", "run2"]
    assert any("cut-off" in note for note in told["processing"][0])
    assert told["validation"]["samples"] == 4000
    assert len(told["base_parameters"]) == len(found.base)
    assert told["reduced"]["multiplications"] <= told["reduced"]["multiplications_before"]


def test_files_come_back(found, tmp_path):
    for name in ("arm.toml", "arm.urdf"):
        found.save(tmp_path / name)
        q, qd, qdd = (x[::50] for x in motion(4)[1:])
        wanted = found.robot.inverse_dynamics(q, qd, qdd, friction=False)
        got = lw.load(tmp_path / name).inverse_dynamics(q, qd, qdd, friction=False)
        np.testing.assert_allclose(got, wanted, atol=1e-6 * np.abs(wanted).max())
    found.write_code(tmp_path / "arm.c")
    assert "inverse_dynamics" in (tmp_path / "arm.c").read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_all_estimators_agree_on_a_good_recording(found):
    every = all_estimates(found)
    assert set(every) == set(ESTIMATORS)
    size = np.linalg.norm(
        found.fit.regression.pick(found.base.columns).Y.reshape(-1, len(found.base)), axis=0
    )
    scale = np.linalg.norm(found.fit.regression.tau)
    for name, estimate in every.items():
        difference = np.abs((estimate.x - every["weighted"].x) * size).max() / scale
        assert difference < 0.05, name


@pytest.mark.processor
def test_friction_is_chosen_by_the_recording(arm, truth):
    """Gears with bristles and load friction: those terms are found, and predict where the textbook's do not."""
    t, q, qd, qdd = motion(1)
    rigid = arm.inverse_dynamics(q, qd, qdd)
    signals = AxisSignals.of(q, qd, qdd, rigid, np.eye(2))
    bristles, loaded = Term("coulomb", width=1e-2), Term("load", width=1e-2)
    tau = rigid + 0.8 * column(signals, bristles) + 0.1 * column(signals, loaded) + 0.1 * qd
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    observer, prior = Observer(arm, [condition(Log(t, q, tau), cutoff=20.0)]), prior_bodies(arm)
    chosen = choose_friction(observer, prior)
    plain = fit(observer, friction_named("coulomb", 2), prior)
    for terms in chosen.friction:
        assert {"coulomb", "load"} <= {term.kind for term in terms}
        assert 1e-2 in {term.width for term in terms}
    assert (chosen.regression.spread(chosen.x) < 0.5 * plain.regression.spread(plain.x)).all()


@pytest.mark.processor
def test_no_terms_are_invented(arm, record):
    """Plain Coulomb friction under noise: nothing is found that is not there."""
    observer = Observer(arm, [condition(record(noise=0.05))])
    chosen = choose_friction(observer, prior_bodies(arm))
    for terms in chosen.friction:
        assert len(terms) <= 5  # rotor, viscous, offset, one direction, at most one more


@pytest.mark.parametrize(
    "name", ["viscous", "asymmetric", "smooth", "tanh", "stribeck", "presliding", "rich"]
)
def test_friction_by_name(arm, record, name):
    found = identify(arm, record(noise=0.02), friction=name)
    assert [term.kind for term in found.fit.friction[0]][1:] == [
        term.kind for term in friction_named(name, 1)[0]
    ][1:]


@pytest.mark.parametrize("friction", ["auto", "rich", "stribeck", "asymmetric"])
def test_what_is_kept_is_what_was_judged(arm, record, friction, tmp_path):
    """The robot, its predictions, the saved files and the C code give the same torques; so do the residuals."""
    log = record(noise=0.02)
    found = identify(arm, log, friction=friction)
    assert found.verdict()[0].saved_robot == found.validation.total
    _, (q, qd, qdd) = found.signals[0].at_stamps()
    expected = found.robot.inverse_dynamics(q, qd, qdd)
    np.testing.assert_array_equal(found.predict(q, qd, qdd), expected)
    along = found.predict(q, qd, qdd, in_order=True)
    np.testing.assert_allclose(along, found.validation.predicted, rtol=1e-12, atol=1e-12)
    for ending in ("toml", "urdf"):
        found.save(tmp_path / f"arm.{ending}")
        saved = lw.load(tmp_path / f"arm.{ending}")
        np.testing.assert_allclose(saved.inverse_dynamics(q, qd, qdd), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            torques_along(saved, q, qd, qdd), found.validation.predicted, rtol=1e-12, atol=1e-12
        )
    in_c, in_c_along = _called(found, tmp_path, q, qd, qdd)
    np.testing.assert_allclose(in_c, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(in_c_along, found.validation.predicted, rtol=1e-12, atol=1e-12)


def test_motors_of_several_joints_are_kept(arm, tmp_path):
    """Rotor and friction along q₁ + q₂ belong to the robot that was judged, in files and in C."""
    motor = lw.Motor("both", {"joint1": 1.0, "joint2": 1.0}, 0.1, 0.4, (0.5, 0.5), {"friction_speed": 0.03})
    truth = arm.with_motors([motor])
    t, q, qd, qdd = motion(1)
    tau = truth.inverse_dynamics(q, qd, qdd)
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    found = identify(arm, Log(t, q, tau, axes=np.array([[1.0, 1.0]])))
    (kept,) = found.robot.motors
    assert kept.joints == motor.joints
    assert kept.viscous_friction == pytest.approx(0.4, abs=0.05)
    assert found.validation.total < 2.0
    _, state = found.signals[0].at_stamps()
    for ending in ("toml", "urdf"):
        found.save(tmp_path / f"arm.{ending}")
        saved = lw.load(tmp_path / f"arm.{ending}")
        np.testing.assert_allclose(torques_along(saved, *state), found.validation.predicted, atol=1e-12)
        # a robot that has the motor needs no recording that says so
        again = identify(saved, Log(t, q, tau), friction="smooth")
        assert again.robot.motors[0].joints == motor.joints
    np.testing.assert_allclose(
        _called(found, tmp_path, *state)[1], found.validation.predicted, rtol=1e-12, atol=1e-12
    )


def _called(found, folder, q, qd, qdd) -> tuple[np.ndarray, np.ndarray]:
    """Torques by the generated C code: state by state, and along the motion."""
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    found.write_code(folder / "arm.c")
    library = folder / "arm.so"
    subprocess.run(
        ["gcc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", library, folder / "arm.c", "-lm"], check=True
    )
    code, n = ctypes.CDLL(str(library)), found.robot.dof
    axes = n + len(found.robot.motors)

    def call(name: str, *given: np.ndarray) -> np.ndarray:
        result = np.zeros(axes if name == "next_directions" else n)
        arrays = [np.ascontiguousarray(x, dtype=float) for x in (*given, result)]
        getattr(code, name)(*(x.ctypes.data_as(ctypes.c_void_p) for x in arrays))
        return arrays[-1]

    single = np.array([call("inverse_dynamics", *state) for state in zip(q, qd, qdd, strict=True)])
    if not found.remembers:
        return single, single
    d = call("next_directions", np.zeros(axes), q[1] - q[0], qd[0])
    along = [call("inverse_dynamics_along", q[0], qd[0], qdd[0], d)]
    for k in range(1, len(q)):
        d = call("next_directions", d, q[k] - q[k - 1], qd[k])
        along.append(call("inverse_dynamics_along", q[k], qd[k], qdd[k], d))
    return single, np.array(along)


def test_laws_that_no_gear_has_are_not_chosen(arm, truth):
    """A motor that helps itself, or a gear that would lose most of its load: friction never drives."""
    t, q, qd, qdd = motion(1)
    tau = truth.inverse_dynamics(q, qd, qdd, friction=False) - 0.5 * qd
    observer = Observer(arm, [condition(Log(t, q, tau), cutoff=20.0)])
    found = choose_friction(observer, prior_bodies(arm))
    for (_, term), value in zip(found.regression.terms, found.x[found.regression.links :], strict=True):
        if term.dissipates:
            assert value > -1e-6


def test_a_motion_that_is_repeated_is_one_motion(arm):
    t = np.arange(4000) / 200.0
    again = np.column_stack(
        [np.sin(2 * np.pi * t / 5.0), np.cos(2 * np.pi * t / 2.5)]
    )  # four times the same 5 s
    signals = condition(Log(t, again, again), cutoff=10.0)
    folds = motions(Observer(arm, [signals]))
    assert set(folds) == set(range(10))
    rows = round(5.0 * len(folds) / (signals.filtered(signals.t)[-1] - signals.filtered(signals.t)[0]))
    assert (np.abs(folds[:rows] - folds[rows : 2 * rows]) <= 1).all()
    twice = motions(Observer(arm, [signals, signals]))
    np.testing.assert_array_equal(twice[: len(folds)], twice[len(folds) :])
    other = np.column_stack([np.sin(0.3 * t + 0.05 * t**2), np.cos(0.11 * t**1.5)])
    once = motions(Observer(arm, [condition(Log(t, other, other), cutoff=10.0)]))
    assert (np.diff(once) >= 0).all()


def test_every_stage_can_be_replaced(arm, record):
    called = []

    def noted(name, function):
        def stage(*args, **options):
            called.append(name)
            return function(*args, **options)

        return stage

    stages = Stages(
        condition=noted("condition", partial(condition, derivatives="savitzky_golay")),
        choose_friction=noted("choose", choose_friction),
        fit=noted("fit", fit),
    )
    log = record(noise=0.02)
    found = identify(
        arm,
        log,
        stages=stages,
        estimator=noted("estimator", weighted),
        significance=noted("significance", by_contribution),
    )
    assert {"condition", "choose", "estimator", "significance"} <= set(called)
    assert any("savitzky_golay" in note or "given function" in note for note in found.signals[0].record)
    identify(arm, log, stages=stages, friction="coulomb")
    assert "fit" in called


@pytest.mark.parametrize("derivatives", ["observer", "spline"])
def test_signals_by_options(arm, record, derivatives):
    found = identify(
        arm, record(noise=0.01), derivatives=derivatives, cutoff=25.0, decimation=5, friction="coulomb"
    )
    assert (found.signals[0].cutoff, found.signals[0].thinning) == (25.0, 5)
    assert any(derivatives in note for note in found.signals[0].record)
    assert (found.validation.relative < 10.0).all()


def test_instrumental_variables_by_name(arm, record):
    found = identify(arm, record(noise=0.01), estimator="idim-iv", friction="coulomb")
    assert found.estimate.method == "idim-iv"
    plain = identify(arm, record(noise=0.01), friction="coulomb").estimate
    place = found.base.labels.index("link2.hx")
    assert found.estimate.x[place] == pytest.approx(plain.x[place], rel=0.01)


def test_the_same_recording_gives_the_same_robot(arm, record):
    one, two = (identify(arm, record(noise=0.02)) for _ in range(2))
    np.testing.assert_array_equal(one.fit.x, two.fit.x)
    assert one.fit.friction == two.fit.friction


def test_a_session_sees_tables_and_plots(found):
    from xml.etree import ElementTree

    text = repr(found)
    assert "two_link identified from run1, run2" in text
    assert all(name in text for name in found.prior.joint_names)
    for part in (found, found.validation, found.estimate, found.fit, found.signals[0], found.base):
        assert " at 0x" not in repr(part)
        assert "array(" not in repr(part)
        assert len(ElementTree.fromstring(part._repr_html_()).findall(".//tbody/tr")) >= 2
    for plot in (found.plot(), found.validation.plot()):
        lines = [x for x in ElementTree.fromstring(plot.svg).iter() if x.get("stroke-width") == "1.8"]
        assert len(lines) == 2 * 2  # measured and predicted torques of two joints


def test_what_no_torque_depends_on_has_no_ends(arm, truth):
    """A joint that never moves: least squares leave what it would show out, with a deviation of zero."""
    t, q, qd, qdd = motion(2, seconds=8.0)
    for x in (q, qd, qdd):
        x[:, 1] *= 0.0
    tau = truth.inverse_dynamics(q, qd, qdd)
    tau += 0.01 * np.sqrt((tau**2).mean(axis=0)) * np.random.default_rng(0).normal(size=tau.shape)
    with pytest.warns(IdentificationWarning):
        found = identify(arm, Log(t, q, tau), cutoff=8.0, friction="coulomb")
    known = dict(zip(truth.parameter_labels, truth.parameters.tolist(), strict=True))
    true = found.base.combination @ np.array([known.get(label, 0.0) for label in found.fit.regression.labels])
    rows = {row.label: row for row in found.table()}
    assert rows["joint2.viscous_friction"].upper == rows["joint2.viscous_friction"].deviation == np.inf
    assert np.isfinite(rows["joint1.viscous_friction"].deviation)
    links = [(row, value) for row, value in zip(rows.values(), true, strict=True) if "link" in row.label]
    assert all(row.lower <= value <= row.upper for row, value in links)
