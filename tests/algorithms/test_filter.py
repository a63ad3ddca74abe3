"""The Kalman filter and smoother inside forward dynamics: what its quantities are, by definition and by statistics."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import EXACT, assert_near, norm, torque_scale, value
from hypothesis import given, settings
from operators import biases_of, operators_of

import linkwise as lw
from strategies import robots, seeds, states_of

few = settings(max_examples=20)


def blocks(matrix, n):
    return np.array([matrix[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] for k in range(n)])


@given(robots(max_dof=6), seeds)
def test_the_operators_of_these_tests_are_right(robot, seed):
    """The dense definition agrees with the recursions of other methods, so it may judge the filter."""
    s = states_of(robot, seed)
    ops = operators_of(robot, s.q)
    M = ops.mass_matrix
    assert_near(M, value(robot, "mass_matrix", q=s.q), EXACT, np.max(np.abs(M)))
    b, n = biases_of(robot, ops, s.qd)
    HP = ops.H @ ops.phi
    costate = ops.phi.T @ (ops.H.T @ s.qdd + n + ops.root)
    tau = HP @ (ops.inertia @ costate + b) + ops.rotor * s.qdd
    ours = value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd, friction=False)
    assert_near(tau, ours, EXACT, torque_scale(robot, s.q, s.qd, s.qdd))


@given(robots(max_dof=6), seeds)
def test_the_filters_quantities(robot, seed):
    """P by its Riccati equation, D = H P Hᵀ + I_a, G = P Hᵀ D⁻¹; innovations, costates and forces by definition."""
    s = states_of(robot, seed)
    n = robot.dof
    found = robot.filter(s.q, s.qd, s.tau, friction=False)
    ops = operators_of(robot, s.q)
    b, bias = biases_of(robot, ops, s.qd)

    P = [block.copy() for block in blocks(ops.inertia, n)]
    z = [b[6 * k : 6 * k + 6].copy() for k in range(n)]
    for k in reversed(range(n)):
        H = ops.H[k, 6 * k : 6 * k + 6]
        D = H @ P[k] @ H + ops.rotor[k]
        G = P[k] @ H / D
        e = s.tau[k] - H @ z[k]
        size = np.max(np.abs(P[k]))
        assert_near(found.inertia[k], P[k], EXACT, size, "P")
        assert_near(found.axis_inertia[k], D, 1e-10, size, "D")
        assert_near(found.gain[k], G, 1e-10, size / D, "G")
        force = norm(z[k]) + abs(s.tau[k]) + size * (norm(bias) + norm(ops.root))
        assert_near(found.state[k], z[k], 1e-10, force * max(1.0, size / D), "z")
        assert_near(found.innovation[k], e, 1e-10, force * max(1.0, size / D), "e")
        if ops.parent[k] >= 0:
            updated = P[k] - np.outer(G, H @ P[k])
            P[ops.parent[k]] += ops.step[k] @ updated @ ops.step[k].T
            z[ops.parent[k]] += ops.step[k] @ (z[k] + G * e + updated @ bias[6 * k : 6 * k + 6])

    M = ops.mass_matrix
    assert_near(np.sum(np.log(found.axis_inertia)), np.linalg.slogdet(M)[1], 1e-10, 10.0, "det M = Π D")
    assert_near(
        found.qdd,
        value(robot, "forward_dynamics", q=s.q, qd=s.qd, tau=s.tau, friction=False),
        1e-13,
        1e3 + norm(found.qdd),
    )
    costate = ops.phi.T @ (ops.H.T @ found.qdd + bias + ops.root)
    assert_near(found.costate.ravel(), costate, EXACT, 1.0 + norm(costate), "λ is the spatial acceleration")
    force = ops.phi @ (ops.inertia @ costate + b)
    smoothed = found.state + np.einsum("kij,kj->ki", found.inertia, found.costate)
    # (9.14): the smoothed state is the force itself, and it meets the measured torques
    scale = torque_scale(robot, s.q, s.qd, found.qdd, s.tau) + norm(force)
    assert_near(smoothed.ravel(), force, EXACT, scale, "x = z + P λ")
    assert_near(ops.H @ smoothed.ravel() + ops.rotor * found.qdd, s.tau, EXACT, scale, "H x = τ")


@given(robots(max_dof=4, friction=True), seeds)
def test_friction_is_taken_from_the_torques_first(robot, seed):
    s = states_of(robot, seed)
    rubbing = value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd) - value(
        robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd, friction=False
    )
    with_it, without = (
        robot.filter(s.q, s.qd, s.tau),
        robot.filter(s.q, s.qd, s.tau - rubbing, friction=False),
    )
    assert_near(with_it.innovation, without.innovation, 1e-12, 1e3)
    assert_near(with_it.qdd, without.qdd, 1e-12, 1e3 + norm(without.qdd))
    ours = robot.acceleration_parts(s.q, s.qd, s.tau)
    other = robot.acceleration_parts(s.q, s.qd, s.tau - rubbing, friction=False)
    assert_near(ours[0], other[0], 1e-12, 1e3 + norm(other[0]))
    assert np.array_equal(ours[1], other[1])
    assert np.array_equal(ours[2], other[2])


@given(robots(max_dof=6), seeds)
def test_the_three_parts_of_the_acceleration(robot, seed):
    """(10.1), (10.2): −M⁻¹ H Φ b and −M⁻¹ H Φ M Φᵀ(n + E λ₀) besides M⁻¹ τ."""
    s = states_of(robot, seed)
    ops = operators_of(robot, s.q)
    b, n = biases_of(robot, ops, s.qd)
    by_torques, by_forces, by_accelerations = robot.acceleration_parts(s.q, s.qd, s.tau, friction=False)
    M = ops.mass_matrix
    HP = ops.H @ ops.phi
    for part, torque in (
        (by_torques, s.tau),
        (by_forces, -HP @ b),
        (by_accelerations, -HP @ ops.inertia @ ops.phi.T @ (n + ops.root)),
    ):
        assert_near(M @ part, torque, EXACT, np.linalg.norm(M) * norm(part) + norm(torque) + 1e-6)
    qdd = value(robot, "forward_dynamics", q=s.q, qd=s.qd, tau=s.tau, friction=False)
    scale = norm(by_torques) + norm(by_forces) + norm(by_accelerations)
    assert_near(by_torques + by_forces + by_accelerations, qdd, EXACT, scale * np.linalg.cond(M) ** 0.5)


def test_parts_that_vanish():
    robot = lw.random_robot(5, 4, tree=True, joints="RRPR", rotor=True)
    s = states_of(robot, 5, 3)
    rest = np.zeros_like(s.q)
    first, second, third = robot.acceleration_parts(s.q, s.qd, rest)
    assert not first.any()
    assert second.any()
    assert third.any()
    first, second, third = robot.acceleration_parts(s.q, rest, s.tau)
    assert not second.any()
    assert_near(
        third,
        -np.einsum("...ij,...j", robot.inverse_mass_matrix(s.q), robot.gravity_torques(s.q)),
        EXACT,
        1e3,
    )
    floating = robot.with_gravity((0, 0, 0))
    assert not floating.acceleration_parts(s.q, rest, s.tau)[2].any()
    assert all(part.shape == (3, 4) for part in (first, second, third))
    one = robot.acceleration_parts(s.q[1], rest[1], s.tau[1])
    assert all(part.shape == (4,) for part in one)


@few
@given(robots(max_dof=5), seeds)
def test_smoothed_covariance(robot, seed):
    """(9.17), (9.18): the covariance of the forces that is left when every torque is known.

    Forces x = Φ w with w of covariance M are Gaussian; conditioning on all τ = H x + noise is linear algebra.
    """
    s = states_of(robot, seed)
    n = robot.dof
    ops = operators_of(robot, s.q)
    prior = ops.phi @ ops.inertia @ ops.phi.T
    with_torques = prior @ ops.H.T
    left = prior - with_torques @ np.linalg.solve(ops.mass_matrix, with_torques.T)
    S = robot.filter(s.q, s.qd, s.tau).smoothed_covariance
    scale = np.max(np.abs(blocks(prior, n)), axis=(1, 2))
    condition = max(1.0, np.linalg.cond(ops.mass_matrix) * 1e-3)
    assert_near(S, blocks(left, n), EXACT * condition, scale)
    for k in range(n):  # a torque measured without noise is known
        if ops.rotor[k] == 0.0:
            H = ops.H[k, 6 * k : 6 * k + 6]
            assert abs(H @ S[k] @ H) <= 1e-10 * condition * scale[k]


SAMPLES = 400_000
SIGMAS = 5.0


@pytest.mark.parametrize(
    ("seed", "tree", "rotor"), [(1, False, False), (2, False, True), (3, True, False), (4, True, True)]
)
def test_inertia_is_the_covariance_of_the_filters_prediction_error(seed, tree, rotor):
    """Rodriguez section 9, by Monte Carlo.

    x_k = Σ φ x_child + w_k with w_k ~ N(0, M_k); the joint measures τ_k = H x_k + v_k with v_k ~ N(0, I_a). The filter
    with the robot's own gains predicts z_k from the torques beyond k. Claimed: cov(x_k − z_k) = P_k, cov(e_k) = D_k,
    the innovations of different joints are uncorrelated, and cov(τ) is the mass matrix.

    An entry c_ij of a sample covariance of N Gaussian samples has the variance (c_ii c_jj + c_ij²)/N. Every entry (less
    than 300 of them) must lie within 5 of these standard deviations, which is about 1 % of P at N = 400 000; the chance
    that a right filter fails is below 300·6e-7, and the random numbers are fixed.
    """
    robot = lw.random_robot(seed, 4, tree=tree, rotor=rotor)
    n = robot.dof
    q = states_of(robot, seed).q
    ops = operators_of(robot, q)
    known = robot.filter(q, np.zeros(n), np.zeros(n))
    rng = np.random.default_rng(seed)

    x = [np.zeros((6, SAMPLES)) for _ in range(n)]
    z = [np.zeros((6, SAMPLES)) for _ in range(n)]
    errors, innovations, torques = [None] * n, np.empty((n, SAMPLES)), np.empty((n, SAMPLES))
    for k in reversed(range(n)):
        M = ops.inertia[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
        values, vectors = np.linalg.eigh(M)
        x[k] += (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.normal(size=(6, SAMPLES))
        H = ops.H[k, 6 * k : 6 * k + 6]
        torques[k] = H @ x[k] + np.sqrt(ops.rotor[k]) * rng.normal(size=SAMPLES)
        errors[k] = x[k] - z[k]
        innovations[k] = torques[k] - H @ z[k]
        if ops.parent[k] >= 0:
            x[ops.parent[k]] += ops.step[k] @ x[k]
            z[ops.parent[k]] += ops.step[k] @ (z[k] + known.gain[k][:, None] * innovations[k])

    def check(samples, wanted, what):
        found = samples @ samples.T / SAMPLES
        size = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / SAMPLES)
        worst = np.max(np.abs(found - wanted) / size)
        assert worst <= SIGMAS, f"{what}: {worst:.1f} standard deviations off"
        # the test is sharp: an inertia three per cent larger would not pass
        assert np.max(np.abs(found - 1.03 * wanted) / size) > SIGMAS

    for k in range(n):
        check(errors[k], known.inertia[k], f"P of joint {k}")
    check(innovations, np.diag(known.axis_inertia), "innovations")
    check(torques, robot.mass_matrix(q), "torques")


def test_the_filter_looks_at_one_state():
    robot = lw.random_robot(0, 3)
    with pytest.raises(ValueError, match=r"one state: expected shape \(3,\), got a batch of shape \(2,\)"):
        robot.filter(np.zeros((2, 3)), np.zeros(3), np.zeros(3))
    with pytest.raises(lw.ShapeError, match=r"qd: expected shape \(\.\.\., 3\), got \(2,\)"):
        robot.filter(np.zeros(3), np.zeros(2), np.zeros(3))
