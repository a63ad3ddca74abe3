"""Every algorithm of one function computes the same thing."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import EXACT, algorithms, assert_near, norm, torque_scale, value
from hypothesis import given

import linkwise as lw
from strategies import robots, seeds, states_of

BUNDLED = ["puma560", "stanford", "panda", "iiwa14"]


def check_inverse_dynamics(robot, s, friction=True):
    for wrench in (None, s.wrench):
        call = dict(q=s.q, qd=s.qd, qdd=s.qdd, wrench=wrench, frame=robot.link_names[-1], friction=friction)
        reference = value(robot, "inverse_dynamics", "newton_euler", **call)
        scale = torque_scale(robot, s.q, s.qd, s.qdd, *([] if wrench is None else [wrench]))
        for name in algorithms("inverse_dynamics")[1:]:
            assert_near(value(robot, "inverse_dynamics", name, **call), reference, EXACT, scale, name)


def check_forward_dynamics(robot, s, friction=True):
    """Judged by the residual: ‖ID(q̈) − τ‖ against ‖τ‖ + ‖b‖ + ‖M‖‖q̈‖."""
    for wrench in (None, s.wrench):
        call = dict(wrench=wrench, frame=robot.link_names[-1], friction=friction)
        for name in (*algorithms("forward_dynamics"), *algorithms("iterated_forward_dynamics")):
            function = (
                "forward_dynamics" if name in algorithms("forward_dynamics") else "iterated_forward_dynamics"
            )
            qdd = value(robot, function, name, q=s.q, qd=s.qd, tau=s.tau, **call)
            back = value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=qdd, **call)
            scale = torque_scale(robot, s.q, s.qd, qdd, s.tau)
            assert np.isfinite(qdd).all(), name
            assert (norm(back - s.tau) <= EXACT * scale).all(), (
                f"{name}: {np.max(norm(back - s.tau) / scale):.3g}"
            )


def check_matrices(robot, s):
    n = robot.dof
    M = value(robot, "mass_matrix", "compound_link", q=s.q)
    for name in algorithms("mass_matrix")[1:]:
        assert_near(value(robot, "mass_matrix", name, q=s.q), M, what=name)
    assert np.array_equal(M, np.swapaxes(M, -1, -2))
    assert (np.linalg.eigvalsh(M) > 0).all()
    size = np.linalg.norm(M, axis=(-2, -1))
    for name in algorithms("inverse_mass_matrix"):
        W = value(robot, "inverse_mass_matrix", name, q=s.q)
        assert np.array_equal(W, np.swapaxes(W, -1, -2)), name
        assert_near(
            M @ W, np.broadcast_to(np.eye(n), M.shape), EXACT, size * np.linalg.norm(W, axis=(-2, -1)), name
        )
    g = value(robot, "gravity_torques", "newton_euler", q=s.q)
    assert_near(value(robot, "gravity_torques", "compound_link", q=s.q), g, EXACT, 1.0 + np.max(norm(g)))


@given(robots(), seeds)
def test_inverse_dynamics_of_random_trees(robot, seed):
    check_inverse_dynamics(robot, states_of(robot, seed, 2))


@given(robots(), seeds)
def test_forward_dynamics_of_random_trees(robot, seed):
    check_forward_dynamics(robot, states_of(robot, seed, 2))


@given(robots(), seeds)
def test_matrices_of_random_trees(robot, seed):
    check_matrices(robot, states_of(robot, seed, 2))


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("check", [check_inverse_dynamics, check_forward_dynamics, check_matrices])
def test_bundled_robots(name, check):
    robot = lw.load(name)
    check(robot, states_of(robot, 1, 20))


@given(robots(max_dof=6), seeds)
def test_without_friction(robot, seed):
    s = states_of(robot, seed, 2)
    check_inverse_dynamics(robot, s, friction=False)
    check_forward_dynamics(robot, s, friction=False)


@given(robots(max_dof=6), seeds)
def test_a_batch_is_its_states(robot, seed):
    """On the array path too, no state looks at another."""
    s = states_of(robot, seed, 3)
    for function, last in (("inverse_dynamics", "qdd"), ("forward_dynamics", "tau")):
        for name in algorithms(function):
            batch = value(robot, function, name, q=s.q, qd=s.qd, **{last: getattr(s, last)})
            for k in range(3):
                one = value(robot, function, name, q=s.q[k], qd=s.qd[k], **{last: getattr(s, last)[k]})
                assert_near(one, batch[k], 1e-14, max(1.0, float(norm(batch[k]))) * 100, name)


def test_the_table_of_algorithms_is_the_contracts():
    robot = lw.load("two_link")
    assert robot.algorithms("inverse_dynamics") == (
        "newton_euler",
        "boundary_value",
        "gibbs_appell",
        "compound_link",
    )
    assert set(robot.algorithms("forward_dynamics")) == {
        "kalman",
        "conjugate_gradient",
        "preconditioned_conjugate_gradient",
        "compound_link",
    }
    assert robot.algorithms("forward_dynamics")[0] == "kalman"
    assert robot.algorithms("mass_matrix") == ("compound_link", "covariance", "newton_euler")
    assert robot.algorithms("inverse_mass_matrix") == ("kalman", "compound_link")
