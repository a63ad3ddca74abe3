"""Ball, floating and helical joints: every algorithm, against Pinocchio, and positions on their manifold."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import assert_near, value

from linkwise import Joint, Link, ModelError, Robot
from linkwise.algorithms import coordinates
from linkwise.functions.table import Setting
from strategies import body, direction, pose

pin = pytest.importorskip("pinocchio")

CLOSE = 1e-11
KINDS = ("floating", "ball", "helical", "revolute", "prismatic")


def random_robot(seed: int, size: int = 6) -> Robot:
    """A tree in which every kind of joint may stand anywhere."""
    rng = np.random.default_rng(seed)
    links, joints = [Link("base")], []
    for k in range(size):
        kind = "floating" if k == 0 and seed % 2 else str(rng.choice(KINDS))
        parent = links[int(rng.integers(0, len(links)))].name
        pitch = float(rng.uniform(-0.3, 0.3)) if kind == "helical" else 0.0
        joints.append(
            Joint(f"joint{k}", kind, parent, f"link{k}", pose(rng), axis=direction(rng), pitch=pitch,
                  rotor_inertia=float(rng.uniform(0, 0.2)) if rng.random() < 0.5 else 0.0)
        )  # fmt: skip
        links.append(Link(f"link{k}", body(rng)))
    return Robot(f"free_{seed}", links, joints, gravity=rng.normal(size=3) * 6)


def engine_of(robot: Robot):
    """Pinocchio's model, and the order of its velocities: it has linear before angular ones."""
    model = pin.Model()
    model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    order, armature = [], []
    for joint in robot.moving_joints:
        parent, place = robot.carrier(joint.parent)
        at = place @ joint.origin
        axis = np.array(joint.axis)
        kind = {
            "floating": lambda: pin.JointModelFreeFlyer(),
            "ball": lambda: pin.JointModelSpherical(),
            "helical": lambda axis=axis, pitch=joint.pitch: pin.JointModelHelicalUnaligned(axis, pitch),
            "revolute": lambda axis=axis: pin.JointModelRevoluteUnaligned(axis),
            "prismatic": lambda axis=axis: pin.JointModelPrismaticUnaligned(axis),
        }[joint.type]()
        model.addJoint(parent + 1, kind, pin.SE3(at.rotation, at.translation), joint.name)
        first = len(order)
        own = [3, 4, 5, 0, 1, 2] if joint.type == "floating" else range(joint.dof)
        order += [first + k for k in own]
        armature += [joint.rotor_inertia] * joint.dof
    for link in robot.links:
        number, place = robot.carrier(link.name)
        inertia = pin.Inertia(link.inertia.mass, link.inertia.com, link.inertia.matrix_about_com)
        if number >= 0:
            model.appendBodyToJoint(number + 1, inertia, pin.SE3(place.rotation, place.translation))
    model.armature = np.array(armature)
    return model, model.createData(), np.array(order)


def state(robot: Robot, seed: int):
    rng = np.random.default_rng(seed)
    q = robot.random(rng)
    return q, *rng.normal(size=(3, robot.dof))


def theirs(vector: np.ndarray, order: np.ndarray) -> np.ndarray:
    """One of our velocity vectors in Pinocchio's order."""
    out = np.empty_like(vector)
    out[order] = vector
    return out


@pytest.mark.parametrize("seed", range(12))
def test_every_algorithm_agrees_with_pinocchio(seed):
    robot = random_robot(seed)
    model, data, order = engine_of(robot)
    q, qd, qdd, _ = state(robot, seed)
    tau = pin.rnea(model, data, q, theirs(qd, order), theirs(qdd, order))[order]
    size = np.abs(tau).max()
    for name in robot.algorithms("inverse_dynamics"):
        ours = value(robot, "inverse_dynamics", name, q=q, qd=qd, qdd=qdd)
        assert_near(ours, tau, CLOSE, size, f"inverse dynamics, {name}")
    M = np.array(pin.crba(model, data, q))
    M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(order, order)]
    for name in robot.algorithms("mass_matrix"):
        assert_near(value(robot, "mass_matrix", name, q=q), M, CLOSE, np.abs(M).max(), f"mass matrix, {name}")
    for name in ("kalman", "compound_link"):
        found = value(robot, "forward_dynamics", name, q=q, qd=qd, tau=tau)
        assert_near(M @ found, M @ qdd, 1e-9, size + np.linalg.norm(M) * np.linalg.norm(qdd), name)
        inverse = value(robot, "inverse_mass_matrix", name, q=q)
        assert_near(inverse @ M, np.eye(robot.dof), 1e-9, np.linalg.cond(M), f"inverse, {name}")
    for name in robot.algorithms("iterated_forward_dynamics"):
        found = value(robot, "iterated_forward_dynamics", name, q=q, qd=qd, tau=tau)
        assert_near(M @ found, M @ qdd, 1e-8, size + np.linalg.norm(M) * np.linalg.norm(qdd), name)
    gravity = pin.computeGeneralizedGravity(model, data, q)[order]
    for name in robot.algorithms("gravity_torques"):
        assert_near(value(robot, "gravity_torques", name, q=q), gravity, CLOSE, size, f"gravity, {name}")


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_are_taken_along_the_velocity_coordinates(seed):
    robot = random_robot(seed, size=4)
    model, data, order = engine_of(robot)
    q, qd, qdd, _ = state(robot, seed)
    pin.computeRNEADerivatives(model, data, q, theirs(qd, order), theirs(qdd, order))
    by_q, by_qd = data.dtau_dq[np.ix_(order, order)], data.dtau_dv[np.ix_(order, order)]
    ours = robot.inverse_dynamics_derivatives(q, qd, qdd, algorithm="recursion", friction=False)
    assert_near(ours[0], by_q, CLOSE, np.abs(by_q).max() + 1, "by q")
    assert_near(ours[1], by_qd, CLOSE, np.abs(by_qd).max() + 1, "by qd")
    compiled = robot.inverse_dynamics_derivatives(q, qd, qdd)
    assert_near(compiled[0], by_q, CLOSE, np.abs(by_q).max() + 1, "compiled, by q")
    assert_near(compiled[1], by_qd, CLOSE, np.abs(by_qd).max() + 1, "compiled, by qd")


@pytest.mark.parametrize("seed", range(8))
def test_coriolis_matrix_regressor_and_energies(seed):
    robot = random_robot(seed)
    model, data, order = engine_of(robot)
    q, qd, qdd, _ = state(robot, seed)
    C = value(robot, "coriolis_matrix", q=q, qd=qd)
    for name in robot.algorithms("velocity_torques"):
        torques = value(robot, "velocity_torques", name, q=q, qd=qd)
        assert_near(C @ qd, torques, CLOSE, np.abs(torques).max() + 1, name)
    step = 1e-5
    M = [value(robot, "mass_matrix", q=robot.integrate(q, sign * step * qd)) for sign in (1, -1)]
    skew = (M[0] - M[1]) / (2 * step) - 2 * C
    assert_near(skew, -skew.T, 1e-7, np.abs(C).max() + 1, "Ṁ − 2C")
    tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)
    Y = value(robot, "regressor", q=q, qd=qd, qdd=qdd)
    assert_near(Y @ robot.parameters, tau, CLOSE, np.abs(tau).max(), "regressor")
    rotors = 0.5 * np.array(model.armature) @ theirs(qd, order) ** 2
    model.armature = np.zeros(robot.dof)
    kinetic = pin.computeKineticEnergy(model, data, q, theirs(qd, order)) + rotors
    assert_near(value(robot, "kinetic_energy", q=q, qd=qd), kinetic, CLOSE, kinetic, "kinetic energy")
    potential = pin.computePotentialEnergy(model, data, q)
    assert_near(value(robot, "potential_energy", q=q), potential, CLOSE, 100.0, "potential energy")


@pytest.mark.parametrize("seed", range(6))
def test_centroidal_quantities_and_frames(seed):
    robot = random_robot(seed)
    model, data, order = engine_of(robot)
    q, qd, _, _ = state(robot, seed)
    v = theirs(qd, order)
    angular_first = [3, 4, 5, 0, 1, 2]
    pin.ccrba(model, data, q, v)
    A = np.array(data.Ag)[angular_first][:, order]
    scale = np.abs(A).max()
    assert_near(value(robot, "centroidal_matrix", q=q), A, CLOSE, scale, "matrix")
    assert_near(value(robot, "centroidal_momentum", q=q, qd=qd), A @ qd, CLOSE, scale, "momentum")
    pin.dccrba(model, data, q, v)
    rate = (np.array(data.dAg) @ v)[angular_first]
    assert_near(value(robot, "centroidal_bias", q=q, qd=qd), rate, CLOSE, np.abs(rate).max() + 1, "bias")
    centre = np.array(pin.centerOfMass(model, data, q))
    assert_near(value(robot, "center_of_mass", q=q), centre, CLOSE, 1.0, "centre of mass")
    J = np.array(pin.jacobianCenterOfMass(model, data, q))[:, order]
    assert_near(value(robot, "com_jacobian", q=q), J, CLOSE, 1.0, "its Jacobian")
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.dof))
    pin.computeJointJacobians(model, data, q)
    local = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for k, joint in enumerate(robot.moving_joints):
        J = pin.getJointJacobian(model, data, k + 1, local)[angular_first][:, order]
        ours = value(robot, "jacobian", q=q, frame=joint.child)
        assert_near(ours, J, CLOSE, 10.0, joint.child)
        assert_near(value(robot, "velocity", q=q, qd=qd, frame=joint.child), J @ qd, CLOSE, 10.0, joint.child)
        rate = pin.getClassicalAcceleration(model, data, k + 1, local).vector[angular_first]
        assert_near(
            value(robot, "jacobian_rate", q=q, qd=qd, frame=joint.child), rate, CLOSE, 10.0, joint.child
        )
        mobility = ours @ np.linalg.solve(value(robot, "mass_matrix", q=q), ours.T)
        if np.linalg.matrix_rank(mobility, tol=1e-6) == 6:
            inertia = value(robot, "task_inertia", q=q, frame=joint.child)
            assert_near(inertia @ mobility, np.eye(6), 1e-7, np.linalg.cond(mobility), joint.child)
            inverse = value(robot, "consistent_inverse", q=q, frame=joint.child)
            assert_near(ours @ inverse, np.eye(6), 1e-7, np.linalg.cond(mobility), joint.child)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 0.05, 0.5, 1.5])
def test_steps_and_differences(size):
    robot = random_robot(1)
    model, _, order = engine_of(robot)
    q, qd, *_ = state(robot, 3)
    step = size * qd
    moved = robot.integrate(q, step)
    ours, their = (
        robot.pose(moved, "link0"),
        robot.pose(pin.integrate(model, q, theirs(step, order)), "link0"),
    )
    assert_near(ours, their, CLOSE, 2.0, "pose after a step")
    expected = pin.difference(model, q, np.array(robot.normalize(moved)))[order]
    assert_near(robot.difference(q, moved), expected, CLOSE, 2.0, "difference")
    assert_near(robot.integrate(q, robot.difference(q, moved)), moved, CLOSE, 2.0, "there and back")


def test_any_quaternion_but_zero_means_its_rotation():
    robot = random_robot(3)
    q, qd, qdd, _ = state(robot, 5)
    longer, at = q.copy(), 0
    for joint in robot.moving_joints:
        if joint.free:
            longer[at + joint.nq - 4 : at + joint.nq] *= -3.7
        at += joint.nq
    assert np.abs(longer - q).max() > 0.1
    ours, same = (value(robot, "inverse_dynamics", q=each, qd=qd, qdd=qdd) for each in (longer, q))
    assert_near(ours, same, CLOSE, np.abs(same).max(), "torques")
    assert_near(np.abs(robot.normalize(longer)), np.abs(q), CLOSE, 1.0, "normalised")


def test_kernels_have_the_bits_of_the_interpreter_for_one_state_and_for_many():
    robot = random_robot(1, size=4)
    rng = np.random.default_rng(0)
    q, qd, tau = robot.random(rng, 37), *rng.normal(size=(2, 37, robot.dof))
    kernel = robot.kernel("forward_dynamics")
    many = kernel(q, qd, tau)
    assert many.shape == (37, robot.dof)
    for k in (0, 5, 36):
        assert np.array_equal(kernel(q[k], qd[k], tau[k]), many[k])


def test_christoffel_symbols_do_not_exist_for_quasi_velocities():
    robot = random_robot(1, size=3)
    with pytest.raises(ModelError, match="the rates of no coordinates; use coriolis_matrix"):
        robot.christoffel(robot.neutral)


def test_rates_of_steps_are_those_of_differences():
    """While the robot goes on at q̇ from where a step has led; what is left is of the fourth order in the step."""
    h = 1e-6
    for seed in (1, 2, 3):
        robot = random_robot(seed)
        q, qd, direction, _ = state(robot, 4)
        links = Setting(robot).links()
        for size, left in ((0.02, 1e-7), (0.2, 2e-4)):
            step = size * direction / np.abs(direction).max()
            there = np.asarray(robot.integrate(q, step))
            after, before = (
                np.asarray(robot.difference(q, robot.integrate(there, s * h * qd))) for s in (1, -1)
            )
            rates = np.array(coordinates.step_rates(links, step.tolist(), qd.tolist()), float)
            assert np.abs(rates - (after - before) / (2.0 * h)).max() < left * (1.0 + np.abs(qd).max())
