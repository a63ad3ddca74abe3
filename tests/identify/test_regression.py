"""Columns times parameters are torques; base parameters by rank, beside the rules and beside Pinocchio."""

from dataclasses import replace

import numpy as np
import pytest
from known_arm import TRUE_FRICTION, motion

import linkwise as lw
from linkwise.functions.table import mechanism_of
from linkwise.identify import (
    IdentificationError,
    Log,
    Observer,
    Term,
    base_by_rank,
    condition,
    friction_named,
)
from linkwise.identify.estimation.base import SHARED, base_of, excitation_of
from linkwise.identify.estimation.friction import AxisSignals, column, mean_sign
from linkwise.identify.estimation.rank import independent, random_states, regrouping_order
from linkwise.identify.estimation.regression import Carried, Regression, _triangle, axes_of, axis_names
from linkwise.model.regroup import regrouped
from linkwise.robot.directions import remembered


def as_it_is(log):
    """Signals that no filter touches, for exact comparisons."""
    signals = condition(log, cutoff=0.4 * log.rate, derivatives="differences", decimation=1)
    return replace(signals, cutoff=0.5 * log.rate)


def test_columns_times_true_parameters_are_the_torques(arm, truth, record):
    log = record()
    observer = Observer(arm, [as_it_is(log)])
    regression = observer.regression(friction_named("coulomb", 2))
    known = dict(zip(truth.parameter_labels, truth.parameters, strict=True))
    x = np.array([known.get(label, 0.0) for label in regression.labels])
    signals = observer.signals[0]
    wanted = truth.inverse_dynamics(signals.q, signals.qd, signals.qdd)
    margin = (len(signals) - len(regression)) // 2
    moving = (np.abs(signals.qd) > 0.05).all(axis=1)[
        margin : len(signals) - margin
    ]  # sgn is averaged at reversals
    predicted = (regression.Y @ x)[moving]
    np.testing.assert_allclose(predicted, wanted[margin : len(signals) - margin][moving], atol=1e-9)


def test_compressed_rows_say_the_same_as_all(arm, record):
    observer = Observer(arm, [condition(record(noise=0.01))])
    regression = observer.regression(friction_named("coulomb", 2))
    weights = np.array([0.5, 3.0])
    (W, y), (V, z) = regression.stacked(weights), regression.compressed(weights)
    np.testing.assert_allclose(V.T @ V, W.T @ W, atol=1e-8 * np.abs(W.T @ W).max())
    np.testing.assert_allclose(V.T @ z, W.T @ y, atol=1e-8 * np.abs(W.T @ y).max())
    x = np.random.default_rng(0).normal(size=W.shape[1])
    np.testing.assert_allclose(
        regression.spread(x), np.sqrt((regression.residuals(x) ** 2).mean(axis=0)), rtol=1e-9
    )


def test_several_recordings_stand_below_one_another(arm, record):
    one, two = condition(record(1), cutoff=20.0), condition(record(2), cutoff=20.0)
    friction = friction_named("presliding", 2)
    both = Observer(arm, [one, two]).regression(friction)
    parts = [Observer(arm, [s]).regression(friction) for s in (one, two)]
    np.testing.assert_array_equal(both.Y, np.concatenate([part.Y for part in parts]))
    assert both.edges == (len(parts[0]),)


def test_the_regressor_is_pinocchios(tmp_path):
    pin = pytest.importorskip("pinocchio")
    robot = lw.random_robot(5, 4)
    lw.save(robot, tmp_path / "arm.urdf")
    robot = lw.load(tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    state = model.createData()
    q, qd, qdd = random_states(robot, 20)
    ours = robot.regressor(q, qd, qdd)[..., : 10 * robot.dof]
    # Pinocchio's order is m, h, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
    order = [10 * k + place for k in range(robot.dof) for place in (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)]
    theirs = [pin.computeJointTorqueRegressor(model, state, *x) for x in zip(q, qd, qdd, strict=True)]
    wanted = np.array(theirs)
    np.testing.assert_allclose(ours[..., order], wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("name", "parameters", "base", "links"),
    [("puma260", 78, 52, 36), ("puma560", 84, 58, 36), ("stanford", 78, 49, None)],
)
def test_numbers_of_base_parameters(name, parameters, base, links):
    """78 → 52 is Izaguirre's for the PUMA 260; 36 are the links of a PUMA 560 after Mayeda, Yoshida and Osuka."""
    robot = lw.load(name)
    found = base_by_rank(robot)
    assert (len(robot.parameter_labels), len(found)) == (parameters, base)
    smallest, largest = found.gap
    assert smallest > 1e6 * largest
    assert len(found) == len(robot.base_parameters())
    if links is not None:
        assert len(robot.base_parameters(links_only=True)) == links
    q, qd, qdd = random_states(robot, 30, seed=5)
    Y = robot.regressor(q, qd, qdd)
    np.testing.assert_allclose(Y[..., list(found.columns)] @ found.values, Y @ robot.parameters, atol=1e-8)


@pytest.mark.parametrize("dof", [2, 3, 4])
@pytest.mark.parametrize("lifted", [False, True])
def test_rank_agrees_with_the_symbolic_rules(dof, lifted):
    """What the rules leave of each link; of the first, what turning about a fixed axis shows: I_zz, and h if it is
    lifted.
    """
    robot = lw.general_chain(dof)
    axis = robot.jacobian(np.zeros(dof))[:3, 0]
    robot = robot.with_gravity(9.81 * (np.cross(axis, [0.6, 0.8, 0.0]) if lifted else axis))
    first, *others = (link.inertia for link in regrouped(mechanism_of(robot)))
    left = [sum(abs(value) > 1e-12 for value in (m, *h, *I)) for m, h, I in others]
    assert left == [7] * (dof - 1)
    assert first.mass == 0
    count = 10 * dof
    W = robot.regressor(*random_states(robot, 100))[..., :count].reshape(-1, count)
    assert len(independent(W, robot.parameter_labels[:count])) == sum(left) + (3 if lifted else 1)


def test_the_order_decides_who_stays():
    robot = lw.load("two_link")
    rotors = base_by_rank(robot)
    assert "joint1.rotor_inertia" in rotors.labels  # rotors first: I_zz of link 1 passes to them
    links = base_by_rank(robot, order=list(robot.parameter_labels))
    assert "joint1.rotor_inertia" not in links.labels
    assert len(rotors) == len(links)


def test_no_clear_gap_is_an_error():
    W = np.random.default_rng(0).normal(size=(50, 4))
    W[:, 2] = W[:, 0] + 3e-9 * W[:, 2]  # taken for dependent
    W[:, 3] = W[:, 1] + 3e-8 * W[:, 3]  # taken for independent, though hardly less so
    with pytest.raises(IdentificationError, match="no clear gap"):
        independent(W, ["a", "b", "c", "d"])


def test_base_of_a_regression_keeps_every_torque(arm, record):
    friction = friction_named("rich", 2)
    regression = Observer(arm, [condition(record())]).regression(friction, Carried(np.ones(20)))
    base = base_of(arm, np.eye(2), friction)
    x = np.random.default_rng(0).normal(size=len(regression.labels))
    torque = regression.Y @ x
    reduced = regression.pick(base.columns).Y @ (base.combination @ x)
    np.testing.assert_allclose(reduced, torque, atol=1e-9 * np.abs(torque).max())


@pytest.mark.parametrize("model", ["coulomb", "asymmetric"])
def test_a_weight_on_a_slide_is_no_offset(model):
    """The weight of a link that slides is a constant torque, and so is an offset: one of them stays."""
    slide = lw.random_robot(0, 1, joints="P")
    assert abs(slide.gravity_torques(np.zeros(1))[0]) > 0
    friction = friction_named(model, 1)
    base = base_of(slide, np.eye(1), friction)
    columns = 10 + len(friction[0])
    q, qd, qdd = random_states(slide, 60)
    Y = slide.regressor(q, qd, qdd)[..., :10]
    assert np.linalg.matrix_rank(Y.reshape(-1, 10)) == 1
    assert base.combination.shape == (len(base), columns)
    assert len(base) == len(friction[0])  # m, rotor, viscous and Coulomb: the last offset has passed to m


def test_coupled_axes_have_columns_of_their_own(arm, truth):
    t, q, qd, qdd = motion(1)
    axis = np.array([[0.5, 1.0]])  # a motor that turns with q2 + q1/2
    viscous = 0.7 * (qd @ axis.T) * axis
    log = Log(t, q, truth.inverse_dynamics(q, qd, qdd) + viscous, axes=axis)
    observer = Observer(arm, [as_it_is(log)])
    assert axis_names(arm, axes_of(2, axis))[2] == "+0.5·joint1+joint2".removeprefix("+")
    regression = observer.regression(friction_named("coulomb", 2, 1))
    place = regression.labels.index(f"{observer.names[2]}.viscous_friction")
    signals = observer.signals[0]
    margin = (len(signals) - len(regression)) // 2
    wanted = ((signals.qd @ axis.T) * axis)[margin : len(signals) - margin]
    np.testing.assert_allclose(regression.Y[..., place], wanted, atol=1e-12)


def test_what_can_pass_to_the_parent_link_is_regrouped_last():
    robot = lw.load("two_link")  # axes along z
    every = ("m", "hx", "hy", "hz", "xx", "xy", "xz", "yy", "yz", "zz")
    labels = [f"{name}.{p}" for name in ("a", "b") for p in every]
    own = ("hx", "hy", "xx", "xy", "xz", "yz", "zz")
    passing = ("m", "hz", "yy")
    wanted = [f"{name}.{p}" for group in (own, passing) for name in ("a", "b") for p in group]
    assert regrouping_order([*labels, "a.rotor_inertia"], robot) == ["a.rotor_inertia", *wanted]


def test_the_triangle_of_few_rows_is_square():
    few = np.random.default_rng(0).normal(size=(2, 5))
    assert _triangle(few).shape == (5, 5)
    np.testing.assert_allclose(_triangle(few).T @ _triangle(few), few.T @ few, atol=1e-12)
    assert _triangle(few.T).shape == (2, 2)


def test_coulomb_friction_of_one_direction_acts_in_this_direction_alone():
    qd = np.array([-2.0, 0.0, 0.5])
    np.testing.assert_array_equal(SHARED["forward"](qd, qd), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(SHARED["backward"](qd, qd), [-1.0, 0.0, 0.0])


@pytest.mark.parametrize(("ratio", "mixed"), [(1.5e-3, ()), (0.7e-3, (("a", "b"),))])
def test_columns_that_are_nearly_alike_cannot_be_told_apart(ratio, mixed):
    """``ratio`` is the smallest singular value of the columns, all of length 1, over the largest."""
    cosine = (1 - ratio**2) / (1 + ratio**2)
    a, b, c = np.eye(3)
    columns = [1e3 * a, cosine * a + np.sqrt(1 - cosine**2) * b, c]  # lengths do not count
    regression = Regression(np.stack(columns, axis=1)[:, None], np.ones((3, 1)), tuple("abc"), 3, ())
    found = excitation_of(regression, np.ones(1))
    assert found.mixed == mixed
    assert found.condition == pytest.approx(1 / ratio, rel=1e-6)


def test_presliding_friction_remembers_and_does_not_chatter():
    q = np.concatenate([np.linspace(0, 1, 50), np.full(20, 1.0), np.linspace(1, 0.5, 50)])[:, None]
    wide, narrow = remembered(q, np.array([[0.2], [1e-3]]))[:, :, 0]
    assert narrow[49] == 1.0
    assert narrow[0] == 1.0  # it starts as if the axis had begun to move one sample earlier
    np.testing.assert_allclose(wide[:3], np.array([1, 2, 3]) / 49 / 0.2)
    assert (narrow[50:70] == 1.0).all()  # at rest it stays, whatever sgn of a noisy speed says
    assert narrow[75] == -1.0
    assert wide[71] > 0  # it takes 2δ to turn over
    assert wide[-1] == -1.0
    assert np.abs(wide).max() <= 1.0


def test_mean_sign_knows_when_the_reversal_was():
    t = np.linspace(-1, 1, 21) + 0.025  # the reversal is a quarter of a step before a sample
    sign = mean_sign(t[:, None])[:, 0]
    assert set(sign[np.abs(t) > 0.2]) == {-1.0, 1.0}
    assert sign.sum() * (t[1] - t[0]) == pytest.approx(np.trapezoid(np.sign(t), t), abs=0.1)
    assert 0 < sign[10] < 1
    assert (mean_sign(np.zeros((5, 1))) == 0).all()


@pytest.mark.parametrize(
    "kind", ["load", "saturating", "stribeck", "forward", "backward", "coulomb", "viscous"]
)
@pytest.mark.parametrize("direction", [{}, {"blur": 0.02}, {"width": 1e-4}], ids=["jump", "smooth", "memory"])
def test_friction_does_not_drive(kind, direction):
    """A positive coefficient takes power out, apart from what the bristles give back when they turn over."""
    _, q, qd, qdd = motion(2)
    signals = AxisSignals.of(q, qd, qdd, 3 * np.sin(q), np.eye(2))
    term = Term(kind, speed=0.1, **direction)
    power = column(signals, term) * qd
    assert term.dissipates
    assert power.mean() > 0
    assert power.min() > (-0.2 if direction.get("width") else -0.02) * power.max()


def test_what_axes_carry_is_the_torque_without_friction(arm):
    """Links, rotors and offsets, of a model with every number at random."""
    t, q, qd, qdd = motion(2)
    rng = np.random.default_rng(0)
    robot = arm.with_parameters(TRUE_FRICTION | {f"{name}.rotor_inertia": 0.3 for name in arm.joint_names})
    tau = robot.inverse_dynamics(q, qd, qdd)
    observer = Observer(robot, [condition(Log(t, q, tau, qd), cutoff=20.0)])
    regression = observer.regression(friction_named("coulomb", 2))
    kinds = {term.kind for _, term in regression.terms}
    assert {"coulomb", "viscous", "rotor_inertia"} <= kinds
    known = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    x = np.array([known.get(label, 0.0) for label in regression.labels])
    x[[k for k, label in enumerate(regression.labels) if label.endswith("friction")]] = rng.uniform(1, 2)
    signals = AxisSignals.of(q, qd, qdd, np.zeros_like(q), np.eye(2))
    Y = robot.regressor(q, qd, qdd)[..., : 10 * 2]
    found = Carried.of(regression, x).torques(Y, signals, np.eye(2))
    np.testing.assert_allclose(
        found, robot.inverse_dynamics(q, qd, qdd, friction=False), rtol=1e-9, atol=1e-9
    )


def test_rotor_and_friction_labels_are_the_robots(arm):
    labels = arm.with_parameters(TRUE_FRICTION).parameter_labels
    names = [f"joint1.{term.label}" for term in friction_named("coulomb", 1)[0] if term.kind != "offset"]
    assert set(names) <= set(labels)


def test_friction_turns_over_where_samples_show_it(arm):
    """Torques of Coulomb friction sampled at instants, thinned and filtered, are their column to the last digit."""
    t = np.arange(4000) / 1000.0
    q = np.column_stack([np.sin(5.0 * t), 0.7 * np.cos(7.0 * t + 0.3)])
    qd = np.column_stack([5.0 * np.cos(5.0 * t), -4.9 * np.sin(7.0 * t + 0.3)])
    signals = condition(Log(t, q, np.sign(qd), qd), cutoff=20.0)
    assert signals.step > 1
    regression = Observer(arm, [signals]).regression(friction_named("coulomb", 2))
    x = np.array([float(label.endswith(".coulomb_friction")) for label in regression.labels])
    np.testing.assert_allclose(regression.residuals(x), 0.0, atol=1e-9)
    in_between = replace(signals, speeds=None)  # where the turns really are: not where the torque shows them
    more_exact = Observer(arm, [in_between]).regression(friction_named("coulomb", 2))
    assert np.abs(more_exact.residuals(x)).max() > 1e-3
