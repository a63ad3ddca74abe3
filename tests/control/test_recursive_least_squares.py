"""Recursive least squares: equal to least squares of all samples, bounded without excitation, following changes."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from c_functions import call_c
from linkwise.algorithms import coordinates
from linkwise.algorithms.ud_factors import UD, packed_size
from linkwise.compiler.ir import interpret
from linkwise.compiler.trace import rolled
from linkwise.control.chosen_parameters import Chosen
from linkwise.functions.table import mechanism_of
from linkwise.identify import RecursiveLeastSquares
from linkwise.model.inertia import Inertia

NOISE = np.array([0.2, 0.1])


@pytest.fixture(scope="module")
def arm():
    robot = lw.load("two_link")
    numbers = {"rotor_inertia": (0.1, 0.05), "viscous_friction": (0.5, 0.3), "coulomb_friction": (0.8, 0.4)}
    return robot.with_parameters(
        {
            f"{joint}.{name}": value
            for name, values in numbers.items()
            for joint, value in zip(robot.joint_names, values, strict=True)
        }
    )


@pytest.fixture(scope="module")
def recording(arm):
    """(q, qd, qdd, tau), samples of random motions with noise on the torques."""
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.normal(size=(3, 400, 2))
    return q, qd, qdd, arm.inverse_dynamics(q, qd, qdd) + NOISE * rng.normal(size=(400, 2))


def columns_of(arm, recording):
    base = arm.base_parameters()
    W = arm.regressor(*recording[:3])[..., list(base.columns)]
    return W / NOISE[:, None], recording[3] / NOISE, base.values


def test_without_forgetting_it_is_least_squares(arm, recording):
    estimator = RecursiveLeastSquares(arm, noise=NOISE, deviation=1e6, start=np.zeros(11))
    found = estimator.over(*recording)
    W, y, values = columns_of(arm, recording)
    rows = W.reshape(-1, len(values))
    wanted, *_ = np.linalg.lstsq(rows, y.ravel(), rcond=None)
    np.testing.assert_allclose(found.parameters[-1], wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    covariance = np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(found.deviations[-1], np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert (np.abs(found.parameters[-1] - values) < 4.5 * found.deviations[-1]).all()
    # the residual of a sample is what was not expected before it
    before = (
        recording[3][7]
        - arm.regressor(*(x[7] for x in recording[:3]))[:, list(arm.base_parameters().columns)]
        @ found.parameters[6]
    )
    np.testing.assert_allclose(found.residual[7], before, atol=1e-9)


def test_forgetting_is_least_squares_with_weights_that_fade(arm, recording):
    forgetting = 0.97
    estimator = RecursiveLeastSquares(arm, noise=NOISE, deviation=3.0, bound=1e9, forgetting=forgetting)
    found = estimator.over(*recording)
    W, y, start = columns_of(arm, recording)
    weights = forgetting ** np.arange(399, -1, -1.0)
    information = np.einsum("t,tij,tik->jk", weights, W, W) + forgetting**400 * np.eye(len(start)) / 9.0
    right = np.einsum("t,tij,ti->j", weights, W, y) + forgetting**400 * start / 9.0
    np.testing.assert_allclose(
        found.parameters[-1], np.linalg.solve(information, right), rtol=1e-8, atol=1e-8
    )
    covariance = np.linalg.inv(information)
    np.testing.assert_allclose(found.deviations[-1], np.sqrt(np.diag(covariance)), rtol=1e-8)


def test_without_excitation_no_deviation_passes_its_bound_and_what_moves_is_still_followed(arm):
    """Only the second joint moves, for ten thousand samples; then its friction changes."""
    rng = np.random.default_rng(4)
    bound = np.linspace(2.0, 3.0, 11)
    estimator = RecursiveLeastSquares(arm, noise=NOISE, deviation=1.0, bound=bound, forgetting=0.98)
    q, qd, qdd = rng.normal(size=(3, 10_000, 2)) * [0.0, 1.0]
    rubbing = arm.with_parameters({"joint2.viscous_friction": 1.3})
    noise = NOISE * rng.normal(size=q.shape)
    tau = np.where(
        np.arange(10_000)[:, None] < 9000,
        arm.inverse_dynamics(q, qd, qdd),
        rubbing.inverse_dynamics(q, qd, qdd),
    )
    found = estimator.over(q, qd, qdd, tau + noise)
    assert (found.deviations <= bound * (1 + 1e-9)).all()
    assert (found.deviations > 0).all()
    assert (found.deviations[-1] > 0.99 * bound).any()
    place = estimator.labels.index("joint2.viscous_friction")
    assert abs(found.parameters[8999, place] - 0.3) < 0.1
    assert abs(found.parameters[-1, place] - 1.3) < 0.1
    assert np.isfinite(found.parameters).all()


def test_factors_that_are_scaled_are_those_of_the_scaled_covariance():
    rng = np.random.default_rng(0)
    factors = UD.unpacked(rng.uniform(0.5, 2.0, packed_size(4)).tolist(), 4)
    scale = [1.0, 2.0, 0.5, 3.0]

    def product(factors):
        U = np.eye(4)
        for j in range(4):
            U[:j, j] = factors.U[j * (j - 1) // 2 :][:j]
        return U @ np.diag(factors.D.astype(float)) @ U.T

    P = product(factors)
    np.testing.assert_allclose(factors.variances().astype(float), np.diag(P), rtol=1e-12)
    factors.scale(scale, [1.0 / s for s in scale])
    np.testing.assert_allclose(product(factors), np.diag(scale) @ P @ np.diag(scale), rtol=1e-12)
    assert UD.unpacked(factors.packed(), 4).packed() == factors.packed()


@pytest.mark.parametrize(("name", "frame"), [("ur10e", None), ("two_link", "tip"), ("random", None)])
def test_the_columns_of_a_load_are_its_torques(name, frame):
    robot = lw.random_robot(0, 4) if name == "random" else lw.load(name)
    rng = np.random.default_rng(6)
    state = rng.normal(size=(3, robot.dof))
    com, inertia = (
        [0.02, -0.03, 0.1],
        np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.02]]),
    )
    body = Inertia.from_com(2.0, com, inertia)
    chosen = Chosen(robot, "payload", frame)
    found = np.array(chosen.columns(*state.tolist()), dtype=float) @ body.parameters
    loaded = robot.with_payload(2.0, com, inertia, frame)
    wanted = coordinates.inverse_dynamics(mechanism_of(loaded), *state.tolist())
    np.testing.assert_allclose(found + chosen.known(*state.tolist()), wanted, atol=1e-10)


def test_a_load_that_is_picked_up_is_followed():
    robot = lw.load("puma560")
    com, inertia = [0.02, -0.03, 0.1], np.diag([0.02, 0.03, 0.01])
    loaded = robot.with_payload(2.0, com, inertia)
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-1.5, 1.5, (3, 1200, 6))
    empty = np.arange(1200)[:, None] < 600
    tau = np.where(empty, robot.inverse_dynamics(q, qd, qdd), loaded.inverse_dynamics(q, qd, qdd))
    estimator = RecursiveLeastSquares(robot, "payload", noise=0.3, forgetting=0.98)
    found = estimator.over(q, qd, qdd, tau + 0.3 * rng.normal(size=tau.shape))
    assert found.parameters.shape == (1200, 10)
    assert estimator.labels[:2] == ("payload.m", "payload.hx")
    wanted = [2.0, 0.04, -0.06, 0.2]
    assert (np.abs(found.parameters[599, :4]) < 5 * found.deviations[599, :4]).all()
    assert (np.abs(found.parameters[-1, :4] - wanted) < 5 * found.deviations[-1, :4]).all()
    assert abs(found.parameters[-1, 0] - 2.0) < 0.1


def test_one_sample_batches_and_c_agree(arm, recording, tmp_path):
    estimator = RecursiveLeastSquares(
        arm, ("link2.m", "joint1.coulomb_friction"), forgetting=0.9, noise=NOISE
    )
    kernel = estimator.kernel()
    whole = estimator.over(*recording)
    memory = estimator.initial_memory
    for k in range(3):
        parameters, _, _, memory = kernel(*(x[k] for x in recording), memory)
    np.testing.assert_array_equal(parameters, whole.parameters[2])
    for ours, wanted in zip(
        call_c(kernel, tmp_path, *(x[3] for x in recording), memory),
        kernel(*(x[3] for x in recording), memory),
        strict=True,
    ):
        assert ours.tobytes() == wanted.tobytes()
    many = estimator.over(*(np.stack([x, x[::-1]]) for x in recording))
    np.testing.assert_array_equal(many.parameters[0], whole.parameters)
    assert abs(whole.parameters[-1] - [1.0, 0.8]).max() < 0.3
    later = estimator.over(
        *(x[200:] for x in recording), memory=estimator.over(*(x[:200] for x in recording)).memory
    )
    np.testing.assert_array_equal(later.parameters[-1], whole.parameters[-1])


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_loops_over_many_parameters_do_the_same(arm, recording, tmp_path, monkeypatch, forgetting):
    estimator = RecursiveLeastSquares(arm, noise=NOISE, forgetting=forgetting, deviation=2.0, bound=2.5)
    few = [x[:40] for x in recording]
    wanted = estimator.over(*few)
    straight = estimator.kernel().operations
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    estimator = RecursiveLeastSquares(arm, noise=NOISE, forgetting=forgetting, deviation=2.0, bound=2.6)
    found, kernel = estimator.over(*few), estimator.kernel()
    for name in ("parameters", "deviations", "residual", "memory"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-12)
    given = (*(x[40] for x in recording), found.memory)
    compiled = kernel(*given)
    memory = dict(zip((name for name, _ in kernel.inputs), given, strict=True))
    memory |= {name: np.empty(shape) for name, shape in kernel.outputs}
    interpret.run_nest(kernel.program(), memory)
    for (name, _), ours, in_c in zip(kernel.outputs, compiled, call_c(kernel, tmp_path, *given), strict=True):
        assert ours.tobytes() == memory[name].tobytes() == in_c.tobytes()
    assert "fma(" not in kernel.source("c", fma=False).split("*/")[-1]
    assert "__global__" in kernel.source("cuda")
    assert (
        straight.total <= kernel.operations.total < 1.5 * straight.total
    )  # zeros of rows are multiplied, too
    assert estimator.over(*(x[:0] for x in few)).parameters.shape == (0, 11)


def test_all_base_parameters_of_an_arm():
    """Six joints, 58 parameters: compiled as loops."""
    robot, rng = lw.load("puma560"), np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, 150, 6))
    tau = robot.inverse_dynamics(q, qd, qdd) + 0.1 * rng.normal(size=(150, 6))
    found = RecursiveLeastSquares(robot, noise=0.1, deviation=1e6).over(q, qd, qdd, tau)
    W = robot.regressor(q, qd, qdd)[..., list(robot.base_parameters().columns)]
    wanted, *_ = np.linalg.lstsq(W.reshape(-1, 58), tau.ravel(), rcond=None)
    np.testing.assert_allclose(found.parameters[-1], wanted, atol=1e-9 * np.abs(wanted).max())


def test_what_is_refused(arm):
    with pytest.raises(lw.UnknownNameError, match=r"no 'link2\.mass'; did you mean"):
        RecursiveLeastSquares(arm, ("link2.mass",))
    with pytest.raises(lw.UnknownNameError, match="valid: base, payload, friction, or a list of labels"):
        RecursiveLeastSquares(arm, "links")
    with pytest.raises(ValueError, match=r"forgetting: expected a number from 0\.5 to 1"):
        RecursiveLeastSquares(arm, forgetting=1.1)
    with pytest.raises(ValueError, match="bound: expected at least the deviation"):
        RecursiveLeastSquares(arm, bound=1.0)
    with pytest.raises(lw.LinkwiseError, match="not linear in its parameters"):
        RecursiveLeastSquares(arm.with_parameters({"joint1.load_friction": 0.1}))
    with pytest.raises(ValueError, match=r"q: expected shape \(\.\.\., samples, 2\)"):
        RecursiveLeastSquares(arm).over(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2))


def test_friction_that_warms_up_is_followed_and_never_drives(arm):
    """Viscous friction falls by 30 % while the robot works; bodies stay, so each estimate is a possible robot."""
    rng = np.random.default_rng(5)
    q, qd, qdd = rng.normal(size=(3, 3000, 2))
    cold = RecursiveLeastSquares(arm, "friction", noise=NOISE, forgetting=0.995, deviation=0.3)
    assert set(cold.labels) == {
        f"joint{k}.{name}_friction" for k in (1, 2) for name in ("viscous", "coulomb")
    }
    warmth = np.linspace(0.0, 1.0, 3000)[:, None]
    change = -0.3 * warmth * np.array([0.5, 0.3]) * qd
    tau = arm.inverse_dynamics(q, qd, qdd) + change + NOISE * rng.normal(size=q.shape)
    found = cold.over(q, qd, qdd, tau)
    last = dict(zip(cold.labels, found.parameters[-1], strict=True))
    assert last["joint1.viscous_friction"] == pytest.approx(0.35, abs=0.06)
    assert last["joint2.viscous_friction"] == pytest.approx(0.21, abs=0.03)
    adapted = arm.with_parameters(last)
    wrong, right = (
        np.abs(tau[-500:] - robot.inverse_dynamics(q[-500:], qd[-500:], qdd[-500:])).mean()
        for robot in (arm, adapted)
    )
    assert right < 0.95 * wrong
    driven = cold.over(q, qd, qdd, -tau)
    assert (driven.parameters >= 0.0).all()
    free = RecursiveLeastSquares(
        arm, "friction", noise=NOISE, forgetting=0.995, deviation=0.3, lowest=-np.inf
    )
    assert (free.over(q, qd, qdd, -tau).parameters < -0.1).any()
    with pytest.raises(ValueError, match="lowest: expected one number or 4"):
        RecursiveLeastSquares(arm, "friction", lowest=[0.0, 1.0])
