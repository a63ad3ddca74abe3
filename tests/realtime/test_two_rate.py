"""The generated functions of the split: what they compute, what they cost, what stale coefficients do."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.compiler.ir.interpret import run
from linkwise.realtime import TwoRatePrograms, split_error, split_torques


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma260")


@pytest.fixture(scope="module")
def programs(robot):
    return TwoRatePrograms(robot)


def test_fresh_coefficients_give_inverse_dynamics(robot, programs):
    q, qd, q_d, qd_d, qdd_d = np.random.default_rng(0).normal(size=(5, 6))
    kp, kd = np.full(6, 100.0), np.full(6, 20.0)
    D, gravity = run(programs.inertia, q)
    np.testing.assert_allclose(D, robot.mass_matrix(q), atol=1e-13)
    np.testing.assert_allclose(gravity, robot.gravity_torques(q), atol=1e-13)
    (torques,) = run(programs.velocity, q, qd, qd_d)
    reference = np.concatenate([q_d, qd_d, qdd_d])
    (tau,) = run(programs.synchronous, D.ravel(), gravity, torques, q, qd, reference, kp, kd)
    v = qdd_d - kd * (qd - qd_d) - kp * (q - q_d)
    joints = robot.moving_joints
    friction = [
        j.viscous_friction * s + j.coulomb_friction[0] * np.sign(s) for j, s in zip(joints, qd_d, strict=True)
    ]
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, qd, v, friction=False) + friction, rtol=1e-11)


def test_the_split_has_followers_and_motors_of_several_joints():
    arm = lw.load("two_link")
    joints = dict(zip(arm.joint_names, (1.0, -0.5), strict=True))
    robot = arm.with_motors([lw.Motor("both", joints, 0.3, 0.7, (0.5, 0.4))])
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2))
    split = TwoRatePrograms(robot)
    D, gravity = run(split.inertia, q)
    (torques,) = run(split.velocity, q, qd, qd)
    found = np.reshape(D, (2, 2)) @ qdd + gravity + torques
    np.testing.assert_allclose(found, robot.inverse_dynamics(q, qd, qdd), atol=1e-12)


def test_the_tasks_cost_no_more_than_the_papers(programs):
    """PUMA 260 without load: 98/70 for inertias and gravity, 140/110 for velocity torques, six per joint in
    the task.
    """
    inertia, velocity, task = (
        p.operations for p in (programs.inertia, programs.velocity, programs.synchronous)
    )
    assert inertia.multiplications <= 98
    assert inertia.additions <= 70
    assert velocity.multiplications <= 140
    assert velocity.additions <= 110
    # Σ_j D_ij v_j and two sums: six multiplications and seven additions a joint; the feedback adds two and
    # four
    assert task.multiplications == 6 * (6 + 2)
    assert task.additions == 6 * (7 + 4)
    assert task.trigonometric == task.divisions == 0


def test_the_simulated_plant_is_one_step_of_the_robot(robot, programs):
    q, qd, tau = np.random.default_rng(1).normal(size=(3, 6))
    next_q, next_qd = run(programs.plant, q, qd, tau)
    qdd = robot.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(next_qd, qd + 1e-3 * qdd, atol=1e-12)
    np.testing.assert_allclose(next_q, q + 1e-3 * next_qd, atol=1e-15)


def test_a_background_as_fast_as_the_samples_costs_nothing(robot):
    move = motion.quintic(np.zeros(6), np.full(6, 1.0), 1.0)
    t = np.arange(0, 1000) / 1000
    exact = robot.inverse_dynamics(*move.at(t))
    np.testing.assert_allclose(split_torques(robot, move, t, 1e-3), exact, atol=1e-12)


def test_the_error_of_the_split_is_proportional_to_the_period(robot):
    move = motion.quintic(np.zeros(6), np.full(6, np.pi / 2), 1.0)
    errors = [split_error(robot, move, 1 / rate, rate=4000).max() for rate in (800, 400, 200)]
    assert errors[1] / errors[0] == pytest.approx(2, rel=0.25)
    assert errors[2] / errors[1] == pytest.approx(2, rel=0.25)
    late = split_error(robot, move, 1 / 50, latency=1 / 50).max()
    assert late > 1.5 * split_error(robot, move, 1 / 50).max()


def test_errors_of_the_split_are_relative_to_each_joints_largest_torque():
    robot = lw.load("puma560")
    move = motion.quintic(np.zeros(6), np.full(6, 0.4), 1.0)
    samples = move.sampled(200.0)
    exact = robot.inverse_dynamics(samples.q, samples.qd, samples.qdd)
    found = split_torques(robot, move, samples.t, 0.02, latency=0.01)
    assert np.abs(exact).max() > 2.0
    np.testing.assert_allclose(
        split_error(robot, move, 0.02, latency=0.01, rate=200.0) * np.abs(exact).max(axis=0),
        np.abs(found - exact).max(axis=0),
    )
