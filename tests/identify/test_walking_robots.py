"""Robots with a floating base: rows without foot forces, contacts, the whole way."""

from __future__ import annotations

import dataclasses
import json
import types
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from walking_robot import FEET, FIELDS, recording, true_robot, urdf, walker_of

import linkwise as lw
from example_robots import loaded
from linkwise import identify
from linkwise.identify.estimation.estimators import ordinary
from linkwise.identify.estimation.friction import friction_named
from linkwise.identify.walking import pipeline
from linkwise.identify.walking.choosing import (
    PlainBase,
    Rows,
    _by_names,
    decide,
    first_scale,
    fitted,
    lag_profile,
    needed_forces,
)
from linkwise.identify.walking.contacts import feet_of, jacobians, orthonormal, projected
from linkwise.identify.walking.observer import BASE, WalkingObserver, floating_base_of, force_basis
from linkwise.identify.walking.pipeline import choose, widened
from linkwise.identify.walking.states import WalkingSignals

EXACT = 1e-6  # of the largest parameter, to which exact data give it back


@pytest.fixture(scope="module")
def walker(tmp_path_factory) -> lw.Robot:
    return walker_of(tmp_path_factory.mktemp("walker"))


@pytest.fixture(scope="module")
def truth(walker) -> lw.Robot:
    return true_robot(walker)


@pytest.fixture(scope="module")
def runs(truth) -> list[dict]:
    """Two noisy recordings with wrong flags in 5 % of the samples."""
    return [recording(truth, seed=seed, noise=0.005, wrong=0.05, seconds=6.0, rate=200.0) for seed in (1, 2)]


@pytest.fixture(scope="module")
def logs(walker, runs, tmp_path_factory) -> list:
    folder, found = tmp_path_factory.mktemp("runs"), []
    for k, run in enumerate(runs):
        np.savez(folder / f"run{k}.npz", **{key: run[key] for key in FIELDS})
        found.append(identify.read_log(folder / f"run{k}.npz", walker))
    return found


@pytest.fixture(scope="module")
def found(walker, logs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", identify.IdentificationWarning)
        return identify.identify(walker, logs[0], validation=logs[1], cutoff=12.0, friction="smooth")


def random_tree(rng: np.random.Generator) -> lw.Robot:
    """A floating base with limbs of random joints; their ends are feet."""
    from strategies import body, direction, pose

    links, joints = (
        [lw.Link("world"), lw.Link("trunk", body(rng))],
        [lw.Joint("root", "floating", "world", "trunk")],
    )
    for limb in range(3):
        parent = "trunk"
        for k in range(int(rng.integers(1, 4))):
            name = f"{limb}_{k}"
            kind = "revolute" if rng.random() < 0.8 else "prismatic"
            joints.append(lw.Joint(f"j{name}", kind, parent, f"l{name}", pose(rng), axis=direction(rng)))
            links.append(lw.Link(f"l{name}", body(rng)))
            parent = f"l{name}"
        joints.append(lw.Joint(f"f{limb}", "fixed", parent, f"foot{limb}", pose(rng)))
        links.append(lw.Link(f"foot{limb}"))
    return lw.Robot("tree", links, joints)


def exact_observer(robot: lw.Robot, truth: lw.Robot, rng: np.random.Generator, samples: int = 160):
    """Random states, held feet and forces; base accelerations and torques follow. No sample knows the next."""
    feet = feet_of(robot)
    held = rng.random((samples, len(feet) + 1)) < 0.6
    held[:, -1] = False
    q = np.asarray(robot.random(rng, samples))
    q[:, 7:] = rng.uniform(-1, 1, q[:, 7:].shape)
    v = rng.uniform(-2, 2, (samples, robot.dof))
    v[:, 3:6] = 0.0
    a = rng.uniform(-5, 5, (samples, robot.dof))
    up = np.broadcast_to((0.0, 0.0, 1.0), (samples, 3))
    pushes = np.zeros((samples, robot.dof))
    for k, foot in enumerate(feet):
        J = jacobians(robot, foot, q, up) * held[:, k, None, None]
        pushes += (J * rng.uniform(-50, 50, (samples, 1, J.shape[2]))).sum(axis=2)
    M = np.asarray(truth.mass_matrix(q))[:, :BASE, :BASE]
    for _ in range(2):  # base accelerations under which the base needs nothing but the feet
        off = np.asarray(truth.inverse_dynamics(q, v, a))[:, :BASE] - pushes[:, :BASE]
        a[:, :BASE] -= np.linalg.solve(M, off[..., None])[..., 0]
    tau = (np.asarray(truth.inverse_dynamics(q, v, a)) - pushes)[:, BASE:]
    t = np.arange(samples) / 100.0
    log = identify.WalkingLog(t, q[:, 7:], tau, gyro=v[:, :3], accelerometer=a[:, 3:6], name="exact")
    signals = WalkingSignals(
        t, q[:, 7:], v[:, BASE:], a[:, BASE:], tau, 100.0, 20.0, log, (), positions=q, velocities=v,
        accelerations=a, up=up,
    )  # fmt: skip
    return WalkingObserver(robot, [signals], feet, [held], rng.uniform(0.5, 2.0, robot.dof))


def exact_signals(run: dict, tau: np.ndarray, states, rate: float) -> WalkingSignals:
    """Signals with the states of a recording as they were."""
    names = {
        "base_orientation": "base_quat",
        "gyro": "imu_gyro",
        "accelerometer": "imu_acc",
        "contacts": "contacts",
    }
    log = identify.WalkingLog(run["t"], run["q"], tau, **{key: run[name] for key, name in names.items()})
    q, v, a = states
    up = np.broadcast_to((0.0, 0.0, 1.0), (len(q), 3))
    own = {"positions": q, "velocities": v, "accelerations": a, "up": up}
    return WalkingSignals(run["t"], run["q"], v[:, BASE:], a[:, BASE:], tau, rate, 12.0, log, (), **own)


def base_error(robot: lw.Robot, seed: int) -> float:
    """Error of base parameters from exact data, relative to the largest."""
    truth = true_robot(robot, seed)
    observer = exact_observer(robot, truth, np.random.default_rng(seed))
    friction = friction_named("smooth", robot.dof - BASE)
    base = floating_base_of(robot, friction)
    regression = observer.regression(friction)
    x = ordinary(regression.pick(base.columns)).x
    known = dict(zip(truth.parameter_labels, truth.parameters.tolist(), strict=True))
    wanted = base.combination @ np.array([known.get(label, 0.0) for label in regression.labels])
    return float(np.abs(x - wanted).max() / np.abs(wanted).max())


# -- rows without forces ----------------------------------------------------------------------------------------------


def test_exact_data_give_back_the_base_parameters(walker):
    assert base_error(walker, 3) < EXACT


@pytest.mark.parametrize("name", ["solo12", "anymal"])
def test_exact_data_of_known_quadrupeds(name):
    assert base_error(loaded(name), 1) < EXACT


def test_exact_data_of_random_trees():
    rng = np.random.default_rng(5)
    for seed in range(2):
        assert base_error(random_tree(rng), seed) < EXACT


def test_a_foot_that_is_not_held_spoils_the_parameters(walker, truth):
    """So that the tests above can fail: forces of one foot are left in the rows."""
    observer = exact_observer(walker, true_robot(walker, 3), np.random.default_rng(3))
    held = observer.held[0].copy()
    held[:, 0] = False
    wrong = WalkingObserver(walker, observer.signals, observer.feet, [held], observer.scale)
    friction = friction_named("smooth", walker.dof - BASE)
    base = floating_base_of(walker, friction)
    right, spoiled = (each.regression(friction).pick(base.columns) for each in (observer, wrong))
    assert np.abs(right.residuals(ordinary(right).x)).max() < 1e-8
    assert np.abs(spoiled.residuals(ordinary(spoiled).x)).max() > 1.0


def test_the_projection_removes_forces_and_nothing_else(walker):
    rng = np.random.default_rng(0)
    feet, q = feet_of(walker), np.asarray(walker.random(rng, 30))
    up = np.broadcast_to((0.0, 0.0, 1.0), (30, 3))
    held = rng.random((30, 5)) < 0.5
    scale = rng.uniform(0.1, 10.0, walker.dof)
    Q = force_basis(walker, feet, q, up, held, scale)
    for k, foot in enumerate(feet):
        J = jacobians(walker, foot, q, up) * held[:, k, None, None] / scale[:, None]
        assert np.abs(projected(Q, J)).max() < 1e-12 * np.abs(J).max()
    columns = [jacobians(walker, f, q, up) * held[:, k, None, None] for k, f in enumerate(feet)]
    base = np.eye(walker.dof)[:, :BASE] * held[:, -1, None, None]
    stacked = np.concatenate([base, *columns], axis=2) / scale[:, None]
    for k in range(30):  # as many rows are left as the null space has dimensions
        rank = np.linalg.matrix_rank(stacked[k], tol=1e-9)
        assert np.isclose((1.0 - (Q[k] ** 2).sum(axis=1)).sum(), walker.dof - rank)


def test_orthonormal_columns_of_dependent_ones():
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(5, 8, 3))
    Q = orthonormal(np.concatenate([columns, columns[:, :, :2] + columns[:, :, 1:]], axis=2))
    assert np.allclose(np.swapaxes(Q, 1, 2) @ Q, np.diag([1, 1, 1, 0, 0]), atol=1e-12)


def test_points_of_feet(walker):
    q = np.asarray(walker.random(np.random.default_rng(2), 4))
    up = np.broadcast_to((0.0, 0.0, 1.0), (4, 3))
    own, given = feet_of(walker)[0], feet_of(walker, ["FL_shank:0.02,0,-0.22"])[0]
    assert np.allclose(jacobians(walker, own, q, up), jacobians(walker, given, q, up), atol=1e-12)
    round_one = feet_of(walker, ["FL_shank:0.02, 0, -0.22, 0.03"])[0]
    assert round_one == dataclasses.replace(given, radius=0.03)
    assert (given.offset, given.radius) == ((0.02, 0.0, -0.22), 0.0)
    with pytest.raises(identify.IdentificationError, match="no frame 'paw'"):
        feet_of(walker, ["paw"])
    with pytest.raises(identify.IdentificationError, match="expected FRAME or"):
        feet_of(walker, ["FL_foot:1,2"])
    with pytest.raises(identify.IdentificationError, match="its feet are not known"):
        feet_of(lw.load("two_link"))


# -- contacts ---------------------------------------------------------------------------------------------------------


def test_flags_are_in_the_order_of_the_feet_where_a_recording_names_them():
    feet = [SimpleNamespace(name=name) for name in ("FL_foot", "FR_foot", "RL_foot", "RR_foot")]
    flags = np.eye(4, dtype=bool)
    for names, expected in (
        (("rr", "fl", "fr", "rl"), [1, 2, 3, 0]),  # not its own inverse
        (("FL_foot_contact", "RL_foot_contact", "RR_foot_contact", "FR_foot_contact"), [0, 3, 1, 2]),
        (("FL", "FL", "RL", "RR"), [0, 1, 2, 3]),  # named twice: as they are
        (("a", "b", "c", "d"), [0, 1, 2, 3]),
        (("FL", "FR"), [0, 1, 2, 3]),
    ):
        found = _by_names(flags, SimpleNamespace(feet=names), feet)
        np.testing.assert_array_equal(found, flags[:, expected], err_msg=str(names))


def test_wrong_flags_do_not_decide(walker, truth):
    """With 5 % of the flags wrong no touching foot counts as free, and feet in the air do."""
    run = recording(truth, wrong=0.05, rate=200.0)
    q, v, a = np.split(run["states"], np.cumsum([walker.nq, walker.dof])[:2], axis=1)
    signals = exact_signals(run, run["tau"], (q, v, a), 200.0)
    feet, scale = feet_of(walker), np.ones(walker.dof)
    error = np.asarray(truth.inverse_dynamics(q, v, a))
    error[:, BASE:] -= run["tau"]
    error += 0.01 * np.random.default_rng(0).normal(size=error.shape)
    sizes = needed_forces(walker, signals, feet, error, scale)
    touching = run["touching"] > 0
    for flags in (run["contacts"], None, run["contacts"][:, ::-1]):  # recorded, none at all, in another order
        own = dataclasses.replace(signals, log=dataclasses.replace(signals.log, contacts=flags))
        got = decide(walker, own, feet, sizes)
        assert not (touching & ~got.held[:, :-1]).any()
        assert (~got.held[:, :-1])[~touching].mean() > 0.2
        assert not got.held[:, -1].any()
    assert any("columns are those of" in words for words in got.notes)


def test_a_hanging_robot_is_recognised(walker, truth):
    run = recording(truth, hanging=True, seconds=5.0, rate=200.0, noise=0.005)
    log = identify.WalkingLog(
        run["t"], run["q"], run["tau"], run["dq"], base_orientation=run["base_quat"], gyro=run["imu_gyro"],
        accelerometer=run["imu_acc"],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", identify.IdentificationWarning)
        got = identify.identify(walker, log, cutoff=12.0, friction="smooth")
    assert got.held[0][:, -1].all()
    assert not got.held[0][:, :-1].any()
    assert got.validation.total < 3.0
    assert any("the base is held" in words for words in got.signals[0].record)
    assert not got.mass.seen
    assert any("the total mass is not seen" in words for words in got.warnings)


def test_feet_that_never_lift_do_not_show_the_mass(walker, truth):
    """Least squares leave it out and call it certain; the saved mass is near the file's, whatever the robot weighs."""
    run = recording(truth, seconds=5.0, rate=200.0, noise=0.005, carrying=2.0)
    log = identify.WalkingLog(
        run["t"], run["q"], run["tau"], run["dq"], base_orientation=run["base_quat"], gyro=run["imu_gyro"],
        accelerometer=run["imu_acc"], contacts=run["contacts"],
    )  # fmt: skip
    with pytest.warns(identify.IdentificationWarning, match="the total mass is not seen"):
        got = identify.identify(walker, log, cutoff=12.0, friction="smooth", lag=0.0)
    assert not got.mass.seen
    assert got.mass.reach > 100.0 * got.mass.value
    trunk = next(row for row in got.table() if row.label == "trunk.m")
    assert trunk.upper == trunk.deviation == np.inf
    assert got.summary()["total_mass"]["seen"] is False


def test_the_mass_of_a_robot_that_walks_is_known(found, truth):
    weighed = sum(body.mass for body in truth.labelled_bodies())
    assert found.mass.seen
    assert abs(found.mass.value - weighed) < found.mass.reach < 0.05 * weighed
    assert "total mass 10." in found.mass.text


# -- the whole way ----------------------------------------------------------------------------------------------------


def test_identified_from_noise_and_wrong_flags(found, truth):
    known = dict(zip(truth.parameter_labels, truth.parameters.tolist(), strict=True))
    wanted = found.base.combination @ np.array(
        [known.get(label, 0.0) for label in found.fit.regression.labels]
    )
    before = found.base.combination @ found._prior_parameters()
    now = found.base.combination @ found.fit.x
    assert np.linalg.norm(now - wanted) < 0.35 * np.linalg.norm(before - wanted)
    lower, upper = found.estimate.interval()
    assert ((wanted >= lower) & (wanted <= upper)).mean() > 0.8
    assert found.validation.total < 0.6 * found.of_prior[0].total
    assert found.validation.total_in_band < 0.35 * found.of_prior[0].total_in_band
    assert (
        abs(
            sum(b.mass for b in found.robot.labelled_bodies()) / sum(b.mass for b in truth.labelled_bodies())
            - 1
        )
        < 0.02
    )
    assert all(np.linalg.eigvalsh(body.pseudo_inertia)[0] > 0 for body in found.robot.labelled_bodies())
    for joint in found.robot.moving_joints[1:]:
        if joint.name.endswith("knee"):  # hips carry so much that their friction is hardly seen
            assert joint.viscous_friction == pytest.approx(0.1, abs=0.03)


def test_intervals_allow_for_what_moves_with_the_cutoff(found, truth, walker, logs):
    """What every step makes wrong in the same way is in no residual; it depends on the frequencies that are used."""
    known = dict(zip(truth.parameter_labels, truth.parameters.tolist(), strict=True))
    labels = found.fit.regression.labels
    true = found.base.combination @ np.array([known.get(label, 0.0) for label in labels])
    inside = [row.lower <= value <= row.upper for row, value in zip(found.table(), true, strict=True)]
    assert np.mean(inside) > 0.85
    choice = choose(walker, logs[:1], found.feet, None, None, {})
    assert np.median(choice.moved / found.estimate.deviations) > 0.05
    wide = widened(found.estimate, choice)
    assert choice.base.base.labels == found.estimate.labels
    np.testing.assert_allclose(wide.deviations**2, found.estimate.deviations**2 + choice.moved**2, rtol=1e-12)


def test_the_saved_robot_is_the_judged_one(found, tmp_path):
    for name in ("walker.urdf", "walker.toml"):
        found.save(tmp_path / name)
        again = lw.load(tmp_path / name, **({"base": "floating"} if name.endswith("urdf") else {}))
        q, v, a = found.signals[0].states
        before, after = (np.asarray(robot.inverse_dynamics(q, v, a)) for robot in (found.robot, again))
        assert np.abs(before - after).max() < 1e-9 * np.abs(before).max(), name


def test_reports_of_robots_that_walk(found, tmp_path):
    found.write_report(tmp_path / "walker.html")
    page = (tmp_path / "walker.html").read_text()
    assert "base force z" in page
    assert "FL_knee" in page
    assert "base moment x" in str(found)
    plain = json.loads(json.dumps(found.summary(), default=lambda x: np.asarray(x).tolist()))
    assert plain["feet"] == [f"{leg}_foot" for leg in FEET]
    assert len(plain["joints"]) == len(plain["row_errors"]) == found.prior.dof
    assert plain["plain_least_squares"]
    assert "#include" in found.code()
    with pytest.raises(identify.IdentificationError, match="not for a floating base"):
        found.replay()


def test_the_command_identifies_robots_that_walk(runs, tmp_path, capsys):
    from linkwise.cli import main

    (tmp_path / "walker.urdf").write_text(urdf())
    np.savez(tmp_path / "run.npz", **{key: runs[0][key] for key in FIELDS})
    command = ["identify", str(tmp_path / "walker.urdf"), str(tmp_path / "run.npz"), "--base", "floating"]
    command += ["--rows", "1-800", "--split", "0.7", "--cutoff", "12", "--friction", "smooth"]
    assert main([*command, "--out", str(tmp_path / "out.toml")]) == 0
    said = capsys.readouterr().out
    assert 0.0 < float(said.partition("feet are free at ")[2].partition(" %")[0]) < 100.0
    assert "quaternion of the base: x, y, z, w" in said
    assert "total mass 10." in said
    assert (tmp_path / "out.toml").exists()
    assert main(command[:3]) == 2
    assert 'load it with base="floating"' in capsys.readouterr().err


def test_the_lag_of_torques_is_found(walker, truth):
    run = recording(truth, rate=500.0, seconds=5.0)
    late = np.stack([np.interp(run["t"] - 0.006, run["t"], x) for x in run["tau"].T], axis=1)
    q, v, a = np.split(run["states"], np.cumsum([walker.nq, walker.dof])[:2], axis=1)
    signals = exact_signals(run, late, (q, v, a), 500.0)
    feet, base = feet_of(walker), PlainBase(walker)
    rows = [Rows.of(walker, signals, feet, base, 400)]
    held = [np.concatenate([run["touching"] > 0, np.zeros((len(q), 1), bool)], axis=1)]
    _, scale = fitted(rows, held, first_scale(walker, [signals]))
    seconds, deviation, gain = lag_profile(rows, held, scale)
    assert seconds == pytest.approx(0.006, abs=5e-4)
    assert deviation < 5e-4
    assert gain > 0.5


def test_the_deviation_of_a_lag_allows_for_what_moves_with_the_cutoff(monkeypatch):
    """A G1's lag was -1.15 to -2.1 ms by cut-offs, 0.2 ms by stretches."""
    lags = iter([(-1.2e-3, 2e-4, 0.1), (-2.1e-3, 1e-4, 0.1), (-1.5e-3, 1e-4, 0.1)])
    monkeypatch.setattr(pipeline, "lag_profile", lambda *_: next(lags))
    choice = types.SimpleNamespace(scale=None, held=None)
    lag = pipeline._lag(choice, [], [], [[], []])
    assert lag.deviation == pytest.approx(np.hypot(2e-4, 9e-4))
    assert lag.corrected == lag.seconds == -1.2e-3
    assert "-1.2 ± 0.92 ms" in lag.note


def test_samples_that_say_the_same_do_not_outvote_the_prior(walker, logs, monkeypatch):
    """The more samples count like one, the nearer links stay to the file's."""
    short, off = logs[0].between(0.0, 2.5), []
    for many in (1.0, 1e7):
        monkeypatch.setattr("linkwise.identify.walking.pipeline.samples_like_one", lambda *_, many=many: many)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", identify.IdentificationWarning)
            found = identify.identify(walker, short, cutoff=12.0, friction="smooth", lag=0.0)
        bodies = zip(found.robot.labelled_bodies(), walker.labelled_bodies(), strict=True)
        off.append(max(abs(body.mass / before.mass - 1.0) for body, before in bodies))
    assert off[0] > 0.1
    assert off[1] < 0.01
