"""What must hold for every mechanical system, on random trees of mixed joints.

Derivatives are exact: the algorithms run on dual numbers, which also shows that they take any scalar with arithmetic.
"""

from __future__ import annotations

import numpy as np
from dual import along, constant, parts, rates
from evaluation import EXACT, algorithms, assert_near, norm, scalars, torque_scale, value
from hypothesis import given, settings

from strategies import robots, seeds, states_of

few = settings(max_examples=20)


def derivative(robot, name, q, direction, algorithm=None, **fixed):
    """The derivative of an output along a direction of q."""
    given = {key: constant(x) for key, x in fixed.items() if key not in ("frame", "friction")}
    options = {key: fixed[key] for key in ("frame", "friction") if key in fixed}
    return np.array(rates(scalars(robot, name, algorithm, q=along(q, direction), **given, **options)))


@given(robots(), seeds)
def test_kinetic_energy_is_that_of_the_mass_matrix(robot, seed):
    s = states_of(robot, seed, 2)
    M = value(robot, "mass_matrix", q=s.q)
    wanted = 0.5 * np.einsum("...i,...ij,...j", s.qd, M, s.qd)
    assert_near(value(robot, "kinetic_energy", q=s.q, qd=s.qd), wanted, EXACT, wanted)


@given(robots(max_dof=8), seeds)
def test_gravity_torques_are_the_gradient_of_the_potential_energy(robot, seed):
    s = states_of(robot, seed)
    gradient = [derivative(robot, "potential_energy", s.q, unit) for unit in np.eye(robot.dof)]
    for name in algorithms("gravity_torques"):
        g = value(robot, "gravity_torques", name, q=s.q)
        assert_near(g, gradient, EXACT, 1.0 + norm(g), name)


@given(robots(max_dof=8), seeds)
def test_rate_of_the_mass_matrix_is_c_plus_c_transposed(robot, seed):
    """Ṁ − 2C is skew, which says Ṁ = C + Cᵀ."""
    s = states_of(robot, seed)
    rate = derivative(robot, "mass_matrix", s.q, s.qd)
    C = value(robot, "coriolis_matrix", q=s.q, qd=s.qd)
    scale = np.linalg.norm(value(robot, "mass_matrix", q=s.q)) * norm(s.qd)
    assert_near(rate, C + C.T, EXACT, scale)
    skew = rate - 2 * C
    assert_near(skew, -skew.T, EXACT, scale)


@given(robots(max_dof=8), seeds)
def test_coriolis_matrix_times_velocity(robot, seed):
    s = states_of(robot, seed)
    C = value(robot, "coriolis_matrix", q=s.q, qd=s.qd)
    c = value(robot, "velocity_torques", q=s.q, qd=s.qd)
    scale = np.linalg.norm(value(robot, "mass_matrix", q=s.q)) * norm(s.qd) ** 2
    assert_near(C @ s.qd, c, EXACT, scale)


@few
@given(robots(max_dof=6), seeds)
def test_christoffel_symbols(robot, seed):
    """D_ijk = ½(∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i), symmetric in j and k, and c = Σ D_ijk q̇_j q̇_k."""
    s = states_of(robot, seed)
    n = robot.dof
    D = value(robot, "christoffel", q=s.q)
    dM = np.stack([derivative(robot, "mass_matrix", s.q, unit) for unit in np.eye(n)], axis=-1)  # ∂M_ij/∂q_k
    wanted = 0.5 * (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0))
    scale = np.linalg.norm(value(robot, "mass_matrix", q=s.q))
    assert_near(D, wanted, EXACT, scale)
    assert_near(D, np.swapaxes(D, 1, 2), EXACT, scale)
    c = value(robot, "velocity_torques", q=s.q, qd=s.qd)
    assert_near(np.einsum("ijk,j,k", D, s.qd, s.qd), c, EXACT, scale * norm(s.qd) ** 2)
    C = value(robot, "coriolis_matrix", q=s.q, qd=s.qd)
    assert_near(D @ s.qd, C, EXACT, scale * norm(s.qd))


@given(robots(), seeds)
def test_torques_are_sums_of_their_parts(robot, seed):
    """ID = M q̈ + c + g + friction, and the bias is c + g."""
    s = states_of(robot, seed, 2)
    M = value(robot, "mass_matrix", q=s.q)
    c = value(robot, "velocity_torques", q=s.q, qd=s.qd)
    g = value(robot, "gravity_torques", q=s.q)
    b = value(robot, "bias_torques", q=s.q, qd=s.qd)
    scale = torque_scale(robot, s.q, s.qd, s.qdd)
    assert_near(b, c + g, EXACT, scale)
    free = np.einsum("...ij,...j", M, s.qdd) + b
    assert_near(
        value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd, friction=False), free, EXACT, scale
    )
    rubbing = np.array(
        [
            [
                joint.viscous_friction * v
                + (joint.coulomb_friction[0] if v > 0 else -joint.coulomb_friction[1])
                for joint, v in zip(robot.moving_joints, row, strict=True)
            ]
            for row in s.qd
        ]
    )
    assert_near(value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd), free + rubbing, EXACT, scale)


@given(robots(friction=True, max_dof=4), seeds)
def test_nothing_rubs_at_rest(robot, seed):
    s = states_of(robot, seed)
    rest = np.zeros(robot.dof)
    with_friction = value(robot, "inverse_dynamics", q=s.q, qd=rest, qdd=s.qdd)
    assert np.array_equal(
        with_friction, value(robot, "inverse_dynamics", q=s.q, qd=rest, qdd=s.qdd, friction=False)
    )


@given(robots(), seeds)
def test_forward_after_inverse(robot, seed):
    """q̈ comes back to what the conditioning of M allows."""
    s = states_of(robot, seed, 2)
    tau = value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd)
    condition = np.linalg.cond(value(robot, "mass_matrix", q=s.q))
    W = np.linalg.norm(value(robot, "inverse_mass_matrix", q=s.q), axis=(-2, -1))
    for name in algorithms("forward_dynamics"):
        qdd = value(robot, "forward_dynamics", name, q=s.q, qd=s.qd, tau=tau)
        assert_near(
            qdd, s.qdd, 1e-13, condition * norm(s.qdd) + W * torque_scale(robot, s.q, s.qd, s.qdd), name
        )


@given(robots(max_dof=8), seeds)
def test_power_balance(robot, seed):
    """d(T + U)/dt = q̇·(τ − friction), along the motion that τ causes."""
    s = states_of(robot, seed)
    qdd = value(robot, "forward_dynamics", q=s.q, qd=s.qd, tau=s.tau)
    rubbing = value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=qdd) - value(
        robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=qdd, friction=False
    )
    moving, speeding = along(s.q, s.qd), along(s.qd, qdd)
    kinetic = rates(scalars(robot, "kinetic_energy", q=moving, qd=speeding))
    potential = rates(scalars(robot, "potential_energy", q=moving))
    M = value(robot, "mass_matrix", q=s.q)
    scale = norm(s.qd) * (torque_scale(robot, s.q, s.qd, qdd, s.tau) + np.linalg.norm(M) * norm(s.qd) ** 2)
    assert_near(kinetic + potential, s.qd @ (s.tau - rubbing), EXACT, scale)


@given(robots(max_dof=8), seeds)
def test_regressor_times_parameters(robot, seed):
    s = states_of(robot, seed, 2)
    s.qd[1, 0] = 0.0  # a joint at rest does not rub
    Y = value(robot, "regressor", q=s.q, qd=s.qd, qdd=s.qdd)
    assert Y.shape == (2, robot.dof, len(robot.parameter_labels))
    tau = value(robot, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd)
    # parameters about distant origins cancel, so the sum of absolute terms is the scale
    scale = np.max(np.abs(Y) @ np.abs(robot.parameters), axis=-1)
    assert_near(Y @ robot.parameters, tau, EXACT, scale)


@few
@given(robots(max_dof=4, friction=True), seeds)
def test_regressor_columns_are_unit_parameters(robot, seed):
    """Each column is the torque of a robot that has this parameter only: the labels mean what they say."""
    s = states_of(robot, seed)
    Y = value(robot, "regressor", q=s.q, qd=s.qd, qdd=s.qdd)
    bare = robot.with_parameters(dict.fromkeys(robot.parameter_labels, 0.0))
    assert_near(value(bare, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd), np.zeros(robot.dof), scale=1.0)
    for k, label in enumerate(robot.parameter_labels):
        lone = bare.with_parameters({label: 1.0})
        tau = value(lone, "inverse_dynamics", q=s.q, qd=s.qd, qdd=s.qdd)
        assert_near(Y[:, k], tau, EXACT, 10.0 + norm(tau), label)


@given(robots(max_dof=8), seeds)
def test_jacobian_is_the_rate_of_the_pose(robot, seed):
    s = states_of(robot, seed)
    for frame in ("tool", robot.link_names[-1]):
        J = value(robot, "jacobian", q=s.q, frame=frame)
        pose = value(robot, "pose", q=s.q, frame=frame)
        rate = derivative(robot, "pose", s.q, s.qd, frame=frame)
        turning = rate[:3, :3] @ pose[:3, :3].T
        velocity = [turning[2, 1], turning[0, 2], turning[1, 0], *rate[:3, 3]]
        scale = 1.0 + np.linalg.norm(J) * norm(s.qd)
        assert_near(turning, -turning.T, EXACT, scale)
        assert_near(J @ s.qd, velocity, EXACT, scale)
        assert_near(value(robot, "velocity", q=s.q, qd=s.qd, frame=frame), velocity, EXACT, scale)
        assert_near(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), 1e-13)
        assert np.array_equal(pose[3], [0, 0, 0, 1])


@given(robots(max_dof=8), seeds)
def test_pose_is_the_product_of_the_files_joints(robot, seed):
    """Nothing of the prepared frames is seen from outside."""
    s = states_of(robot, seed)
    q = dict(zip(robot.joint_names, s.q, strict=True))
    known = {robot.base: np.eye(4)}
    for joint in robot.joints:
        known[joint.child] = known[joint.parent] @ joint.motion(q.get(joint.name, 0.0)).matrix
    for frame in robot.link_names:
        assert_near(value(robot, "pose", q=s.q, frame=frame), known[frame], 1e-13, 3.0, frame)
    [tool] = robot.frames
    assert_near(value(robot, "pose", q=s.q, frame="tool"), known[tool.link] @ tool.pose.matrix, 1e-13, 3.0)


@given(robots(max_dof=8), seeds)
def test_energy_of_the_bodies(robot, seed):
    """Kinetic and potential energy from the poses and velocities of every link, those bolted to others included."""
    s = states_of(robot, seed)
    kinetic, potential = 0.0, 0.0
    for joint, v in zip(robot.moving_joints, s.qd, strict=True):
        kinetic += 0.5 * joint.rotor_inertia * v * v
    for link in robot.links:
        if robot.carrier(link.name)[0] < 0:
            continue
        T = value(robot, "pose", q=s.q, frame=link.name)
        V = value(robot, "velocity", q=s.q, qd=s.qd, frame=link.name)
        R, w, v = T[:3, :3], V[:3], V[3:]
        m, c = link.inertia.mass, R @ link.inertia.com
        I = R @ link.inertia.matrix_about_com @ R.T
        at_com = v + np.cross(w, c)
        kinetic += 0.5 * (m * at_com @ at_com + w @ I @ w)
        potential -= m * np.array(robot.gravity) @ (T[:3, 3] + c)
    assert_near(value(robot, "kinetic_energy", q=s.q, qd=s.qd), kinetic, EXACT, kinetic)
    assert_near(value(robot, "potential_energy", q=s.q), potential, EXACT, 100.0)


@given(robots(max_dof=8), seeds)
def test_a_wrench_acts_on_the_robot_in_the_frames_own_axes(robot, seed):
    """ID(w) − ID(0) = −Jᵀ w, forward dynamics likewise, for every algorithm and any frame."""
    s = states_of(robot, seed)
    for frame in ("tool", "base", robot.link_names[-1]):
        R = value(robot, "pose", q=s.q, frame=frame)[:3, :3]
        in_base_axes = np.concatenate([R @ s.wrench[:3], R @ s.wrench[3:]])
        pushed = value(robot, "jacobian", q=s.q, frame=frame).T @ in_base_axes
        call = dict(q=s.q, qd=s.qd, frame=frame)
        scale = torque_scale(robot, s.q, s.qd, s.qdd, s.wrench) + norm(pushed)
        for name in algorithms("inverse_dynamics"):
            without = value(robot, "inverse_dynamics", name, qdd=s.qdd, **call)
            with_it = value(robot, "inverse_dynamics", name, qdd=s.qdd, wrench=s.wrench, **call)
            assert_near(with_it, without - pushed, EXACT, scale, name)
        for function in ("forward_dynamics", "iterated_forward_dynamics"):
            for name in algorithms(function):
                qdd = value(robot, function, name, tau=s.tau, wrench=s.wrench, **call)
                back = value(robot, "inverse_dynamics", qdd=qdd, **call)
                size = torque_scale(robot, s.q, s.qd, qdd, s.tau, s.wrench) + norm(pushed)
                assert_near(back, s.tau + pushed, EXACT, size, name)


@few
@given(robots(max_dof=6), seeds)
def test_algorithms_run_on_floats_and_on_duals(robot, seed):
    """The same functions, scalar by scalar: values as on arrays, and derivatives that agree with M⁻¹ and each other."""
    s = states_of(robot, seed)
    W = value(robot, "inverse_mass_matrix", q=s.q)
    for name in algorithms("inverse_dynamics"):
        floats = scalars(
            robot, "inverse_dynamics", name, q=s.q.tolist(), qd=s.qd.tolist(), qdd=s.qdd.tolist()
        )
        assert_near(
            floats, value(robot, "inverse_dynamics", name, q=s.q, qd=s.qd, qdd=s.qdd), 1e-14, 1e3, name
        )
    slopes = []
    for name in algorithms("forward_dynamics"):
        duals = scalars(
            robot, "forward_dynamics", name, q=constant(s.q), qd=constant(s.qd), tau=along(s.tau, s.qdd)
        )
        assert_near(rates(duals), W @ s.qdd, 1e-12, np.linalg.norm(W) * norm(s.qdd), name)
        assert_near(
            parts(duals),
            value(robot, "forward_dynamics", name, q=s.q, qd=s.qd, tau=s.tau),
            1e-13,
            1e3 * np.linalg.norm(W),
        )
        moved = scalars(
            robot, "forward_dynamics", name, q=along(s.q, s.qd), qd=constant(s.qd), tau=constant(s.tau)
        )
        slopes.append(np.array(rates(moved)))
    condition = np.linalg.cond(value(robot, "mass_matrix", q=s.q))
    assert_near(
        slopes[0], slopes[1], 1e-12, condition * (1.0 + norm(slopes[1])) * 10, "∂q̈/∂q of two algorithms"
    )
