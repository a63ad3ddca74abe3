"""The extended Kalman filter: against another implementation, and honest about its errors."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from c_functions import call_c
from linkwise import control, motion
from linkwise.identify import ExtendedKalmanFilter
from linkwise.simulate import simulate

PERIOD, POSITION, TORQUE = 5e-3, 1e-3, 0.4
NAMES = ("joint1.viscous_friction", "link2.m")


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link").with_parameters(
        {"joint1.viscous_friction": 0.4, "joint2.viscous_friction": 0.2, "joint1.rotor_inertia": 0.1}
    )


@pytest.fixture(scope="module")
def filter_of_states(arm):
    return ExtendedKalmanFilter(
        arm, PERIOD, position_noise=POSITION, torque_noise=TORQUE, deviation=(0.02, 0.2)
    )


def simulated(robot, states, samples, rng):
    """(measured positions, commanded torques, final q, final qd) of many runs, with exact small steps.

    The motors make the commanded torques with an error that is constant during a period.
    """
    q, qd = states
    measured, commands = [], []
    for k in range(samples):
        command = robot.gravity_torques(q) + 3.0 * np.sin(0.03 * k + np.arange(2)) - 0.5 * qd
        tau = command + TORQUE * rng.normal(size=q.shape)
        for _ in range(2):
            h = PERIOD / 2
            half = qd + 0.5 * h * robot.forward_dynamics(q, qd, tau)
            qd = qd + h * robot.forward_dynamics(q + 0.5 * h * qd, half, tau)
            q = q + h * half
        measured.append(q + POSITION * rng.normal(size=q.shape))
        commands.append(command)
    return np.stack(measured, axis=-2), np.stack(commands, axis=-2), q, qd


def test_it_is_what_another_implementation_gives(arm):
    """NumPy, finite differences, covariance by Joseph's formula."""
    rng = np.random.default_rng(0)
    known = arm.with_parameters({"link2.m": 1.2})
    q, tau, *_ = simulated(arm, (np.array([0.3, -0.2]), np.zeros(2)), 30, rng)
    found = ExtendedKalmanFilter(
        known,
        PERIOD,
        NAMES,
        position_noise=POSITION,
        torque_noise=TORQUE,
        drift=0.05,
        parameter_deviation=0.5,
    )
    ours = found.over(q, tau, memory=found.memory_of([0.3, -0.2], [0.0, 0.0]))

    accelerate = known.kernel("forward_dynamics", inputs=NAMES)

    def step(x, tau):
        half = x[2:4] + 0.5 * PERIOD * accelerate(x[:2], x[2:4], tau, x[4:5], x[5:])
        last = x[2:4] + PERIOD * accelerate(x[:2] + 0.5 * PERIOD * x[2:4], half, tau, x[4:5], x[5:])
        return np.concatenate([x[:2] + PERIOD * half, last, x[4:]])

    def slopes(function, at, size=1e-6):
        return np.array(
            [(function(at + e) - function(at - e)) / (2 * size) for e in size * np.eye(len(at))]
        ).T

    x, P = np.array([0.3, -0.2, 0.0, 0.0, 0.4, 1.2]), np.diag([0.01, 0.01, 1.0, 1.0, 0.25, 0.25])
    H, R = np.eye(6)[:2], POSITION**2 * np.eye(2)
    for k in range(len(q)):
        F, G = slopes(lambda x, k=k: step(x, tau[k]), x), slopes(lambda u, x=x: step(x, u), tau[k])
        x = step(x, tau[k])
        P = F @ P @ F.T + TORQUE**2 * G @ G.T + np.diag([0, 0, 0, 0, 1, 1]) * 0.05**2 * PERIOD
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
        x = x + K @ (q[k] - H @ x)
        left = np.eye(6) - K @ H
        P = left @ P @ left.T + K @ R @ K.T
        np.testing.assert_allclose(
            np.concatenate([ours.q[k], ours.qd[k], ours.parameters[k]]), x, rtol=1e-6, atol=1e-6
        )
    np.testing.assert_allclose(found.covariance(ours.memory), P, rtol=1e-4, atol=1e-6 * P.max())
    np.testing.assert_allclose(ours.deviations[-1], np.sqrt(np.diag(P)), rtol=1e-5)


@pytest.mark.parametrize("names", [(), NAMES])
def test_its_covariance_is_that_of_its_errors(arm, filter_of_states, names):
    """The normalised squared error of many runs lies where chi-square has 99.8 % of its probability."""
    from scipy.stats import chi2

    runs, rng = 150, np.random.default_rng(7)
    truth = np.array([0.4, 1.0])[: len(names)]
    estimator = filter_of_states
    if names:
        estimator = ExtendedKalmanFilter(
            arm, PERIOD, names, position_noise=POSITION, torque_noise=TORQUE, deviation=(0.02, 0.2),
            parameter_deviation=0.05,
        )  # fmt: skip
    begin = rng.normal(size=(2, runs, 2)) * 0.3
    guess = (begin[0] + 0.02 * rng.normal(size=(runs, 2)), begin[1] + 0.2 * rng.normal(size=(runs, 2)))
    theta = truth + 0.05 * rng.normal(size=(runs, len(names)))
    q, tau, last_q, last_qd = simulated(arm, begin, 120, rng)
    found = estimator.over(q, tau, memory=estimator.memory_of(*guess, theta))
    error = np.concatenate(
        [found.q[:, -1] - last_q, found.qd[:, -1] - last_qd, found.parameters[:, -1] - truth], axis=-1
    )
    nees = np.einsum("ri,rij,rj->r", error, np.linalg.inv(estimator.covariance(found.memory)), error)
    low, high = chi2.ppf([0.001, 0.999], runs * estimator.size)
    assert low < nees.sum() < high
    assert 0.9 < found.consistency[:, 20:].mean() < 1.1


def test_parameters_and_velocities_are_found_from_positions_and_torques(arm):
    rng = np.random.default_rng(3)
    wrong = arm.with_parameters({"joint1.viscous_friction": 0.0, "link2.m": 1.5})
    begin = (np.array([0.2, 0.1]), np.zeros(2))
    q, tau, _, last_qd = simulated(arm, begin, 1500, rng)
    estimator = ExtendedKalmanFilter(arm, PERIOD, NAMES, position_noise=POSITION, torque_noise=TORQUE)
    found = estimator.over(q, tau, memory=estimator.memory_of(*begin, [0.0, 1.5]))
    assert (np.abs(found.parameters[-1] - [0.4, 1.0]) < 4 * found.deviations[-1, 4:]).all()
    assert (found.deviations[-1, 4:] < 0.1).all()
    assert (np.abs(found.qd[-1] - last_qd) < 4 * found.deviations[-1, 2:4]).all()
    assert estimator.labels == NAMES
    fixed = ExtendedKalmanFilter(wrong, PERIOD, position_noise=POSITION, torque_noise=TORQUE)
    assert (
        fixed.over(q, tau).consistency[500:].mean() > 2.0
    )  # a wrong model does not agree with the measurements


def test_friction_that_sticks_is_followed(arm):
    """A move and a rest of the simulated arm, with stiction."""
    robot = arm.with_parameters({"joint1.coulomb_friction": 1.5, "joint2.coulomb_friction": 0.8})
    rng = np.random.default_rng(0)
    law = control.ComputedTorque(robot, control.Gains.from_frequency(8.0))
    found = simulate(robot, law, motion.quintic([0, 0], [1, -1], 0.8), duration=1.6)
    q = found.q[1:] + 1e-4 * rng.normal(size=found.q[1:].shape)
    names = ("joint1.coulomb_friction", "link2.m")
    estimator = ExtendedKalmanFilter(robot, 1e-3, names, torque_noise=0.1)
    seen = estimator.over(q, found.tau[:-1], memory=estimator.memory_of(found.q[0], found.qd[0]))
    assert (np.abs(seen.parameters[-1] - [1.5, 1.0]) < [0.06, 0.01]).all()
    assert 0.9 < seen.consistency[50:].mean() < 1.1
    assert np.abs(seen.qd[-1]).max() < 1e-3


def test_the_step_is_differentiated_by_a_payload_too():
    estimator = ExtendedKalmanFilter(lw.load("two_link"), PERIOD, "payload", frame="tip")
    rng = np.random.default_rng(2)
    payload = [2.0, 0.02, -0.04, 0.2, 0.03, 0.001, 0.0, 0.04, 0.002, 0.02]
    x, tau = np.concatenate([rng.normal(size=4), payload]), 10 * rng.normal(size=2)

    def step(z):
        return np.array(estimator._moved(z[:14].tolist(), z[14:].tolist())[0], dtype=float)

    z, (_, F, noise) = np.concatenate([x, tau]), estimator._moved(x.tolist(), tau.tolist())
    wanted = np.array([(step(z + e) - step(z - e)) / 2e-6 for e in 1e-6 * np.eye(16)]).T
    ours = np.hstack([np.array(F, dtype=float), np.array(noise, dtype=float)])
    np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-6)


def test_velocities_may_be_measured_and_c_has_the_same_bits(arm, filter_of_states, tmp_path):
    rng = np.random.default_rng(5)
    q, tau, *_ = simulated(arm, (np.zeros((1, 2)), np.zeros((1, 2))), 3, rng)
    estimator = ExtendedKalmanFilter(
        arm, PERIOD, ("joint1.viscous_friction",), velocity_noise=0.01, drift=0.1
    )
    kernel, memory = estimator.kernel(), estimator.memory_of(q[0, 0], [0.0, 0.0])
    given = (q[0, 0], np.array([0.1, -0.1]), tau[0, 0], memory)
    wanted = kernel(*given)
    assert abs(wanted[1] - [0.1, -0.1]).max() < 0.02
    for ours, theirs in zip(call_c(kernel, tmp_path, *given), wanted, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    whole = filter_of_states.over(q[0], tau[0])
    states = filter_of_states.kernel()(q[0, 0], tau[0, 0], filter_of_states.initial_memory)
    np.testing.assert_array_equal(states[0], whole.q[0])
    # zeros mean at rest where the first positions were measured
    np.testing.assert_array_equal(whole.q[0], q[0, 0])
    np.testing.assert_array_equal(whole.qd[0], [0.0, 0.0])
    np.testing.assert_allclose(whole.deviations[0, 2:], 0.2)


def test_what_is_refused(arm):
    assert ExtendedKalmanFilter(arm, PERIOD, "base").labels == arm.base_parameters().labels
    with pytest.raises(ValueError, match="70 states are too many for one filter; at most 28 parameters"):
        ExtendedKalmanFilter(lw.load("puma560"), PERIOD, "base")
    with pytest.raises(ValueError, match="period: expected finite numbers above 0"):
        ExtendedKalmanFilter(arm, 0.0)
    with pytest.raises(ValueError, match="qd: give velocities and velocity_noise, or neither"):
        ExtendedKalmanFilter(arm, PERIOD).over(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(lw.ModelError, match="one coordinate each"):
        ExtendedKalmanFilter(lw.load("two_link", base="floating"), PERIOD)
