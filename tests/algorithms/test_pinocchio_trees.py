"""Agreement with an independent engine, built link by link from the same model (no file in between)."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import assert_near, norm, torque_scale, value
from hypothesis import given

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot, Transform
from strategies import robots, seeds, states_of

pin = pytest.importorskip("pinocchio")

CLOSE = 1e-10


def engine_of(robot):
    """Pinocchio's model: one joint per moving joint (their order is ours), each with all that is bolted to it."""
    model = pin.Model()
    model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    for k, joint in enumerate(robot.moving_joints):
        parent, place = robot.carrier(joint.parent)
        at = place @ joint.origin
        kind = pin.JointModelRevoluteUnaligned if joint.revolute else pin.JointModelPrismaticUnaligned
        number = model.addJoint(
            parent + 1, kind(np.array(joint.axis)), pin.SE3(at.rotation, at.translation), joint.name
        )
        assert number == k + 1
    for link in robot.links:
        number, place = robot.carrier(link.name)
        inertia = pin.Inertia(link.inertia.mass, link.inertia.com, link.inertia.matrix_about_com)
        if number >= 0:
            model.appendBodyToJoint(number + 1, inertia, pin.SE3(place.rotation, place.translation))
    model.armature = np.array([joint.rotor_inertia for joint in robot.moving_joints])
    return model, model.createData()


def compare(robot, s):
    model, data = engine_of(robot)
    q, qd = s.q, s.qd
    M = np.array(pin.crba(model, data, q))
    M = np.triu(M) + np.triu(M, 1).T
    assert_near(value(robot, "mass_matrix", q=q), M, CLOSE, np.max(np.abs(M)), "mass matrix")
    scale = torque_scale(robot, q, qd, s.qdd)
    tau = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=s.qdd, friction=False)
    assert_near(tau, pin.rnea(model, data, q, qd, s.qdd), CLOSE, scale, "inverse dynamics")
    assert_near(
        value(robot, "gravity_torques", q=q),
        pin.computeGeneralizedGravity(model, data, q),
        CLOSE,
        scale,
        "gravity",
    )
    C = np.array(pin.computeCoriolisMatrix(model, data, q, qd))
    assert_near(value(robot, "coriolis_matrix", q=q, qd=qd), C, CLOSE, np.linalg.norm(M) * norm(qd), "C")

    # the accelerations of an ill-conditioned robot are judged by what they need: M q̈
    qdd = value(robot, "forward_dynamics", q=q, qd=qd, tau=s.tau, friction=False)
    theirs = np.array(pin.aba(model, data, q, qd, s.tau))
    assert_near(
        M @ qdd, M @ theirs, CLOSE, norm(s.tau) + scale + np.linalg.norm(M) * norm(theirs), "forward dynamics"
    )
    W = np.array(pin.computeMinverse(model, data, q))
    W = np.triu(W) + np.triu(W, 1).T
    ours = value(robot, "inverse_mass_matrix", q=q)
    assert_near(ours, W, CLOSE, np.linalg.norm(W) * max(1.0, 1e-4 * np.linalg.cond(M)), "inverse mass matrix")

    rotors = 0.5 * model.armature @ qd**2  # Pinocchio 4.1 counts those of prismatic joints only
    model.armature = np.zeros(robot.dof)
    kinetic = pin.computeKineticEnergy(model, data, q, qd) + rotors
    assert_near(value(robot, "kinetic_energy", q=q, qd=qd), kinetic, CLOSE, kinetic, "kinetic energy")
    potential = pin.computePotentialEnergy(model, data, q)
    assert_near(value(robot, "potential_energy", q=q), potential, CLOSE, 100.0, "potential energy")

    pin.computeJointJacobians(model, data, q)
    for k, joint in enumerate(robot.moving_joints):
        pose = value(robot, "pose", q=q, frame=joint.child)
        assert_near(pose, data.oMi[k + 1].homogeneous, CLOSE, 3.0, joint.child)
        J = pin.getJointJacobian(model, data, k + 1, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).reshape(6, -1)
        ours = value(robot, "jacobian", q=q, frame=joint.child)
        assert_near(ours, np.vstack([J[3:], J[:3]]), CLOSE, 10.0, joint.child)


@given(robots(), seeds)
def test_random_trees(robot, seed):
    compare(robot, states_of(robot, seed))


@pytest.mark.parametrize("name", ["puma560", "stanford", "panda", "iiwa14", "ur10e"])
def test_bundled_robots(name):
    robot = lw.load(name)
    for seed in range(3):
        compare(robot, states_of(robot, seed))


@given(robots(max_dof=5), seeds)
def test_regressor(robot, seed):
    """Pinocchio orders a body's parameters m, mc, Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    s = states_of(robot, seed)
    model, data = engine_of(robot)
    theirs = np.array(pin.computeJointTorqueRegressor(model, data, s.q, s.qd, s.qdd)).reshape(robot.dof, -1)
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # of ours, where theirs stand
    n = robot.dof
    ours = value(robot, "regressor", q=s.q, qd=s.qd, qdd=s.qdd)[:, : 10 * n].reshape(n, n, 10)
    assert_near(ours[..., order].reshape(n, 10 * n), theirs, CLOSE, 1.0 + np.max(np.abs(theirs)))


@pytest.mark.parametrize("tilt", [0.0, 2.6e-10, 1e-9, 1e-7, 2.7e-6, 3.7e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("turned", [False, True])
def test_nearly_parallel_axes_lose_no_digits(tilt, turned):
    """Files write 3.14159 and 1.5708: axes parallel to six digits only, whose common normal lies far away."""
    rng = np.random.default_rng(7)
    A = Transform.from_rpy((0, 0, 0), (1.0, 0.7, 0.3)).rotation if turned else np.eye(3)
    links, joints = [Link("base")], []
    for k in range(1, 6):
        rpy = (
            tilt * rng.uniform(0.9, 1),
            tilt * rng.uniform(0.9, 1) + (np.pi if k == 3 else 0),
            rng.uniform(-3, 3),
        )
        step = Transform(A @ Transform.from_rpy((0, 0, 0), rpy).rotation @ A.T, rng.uniform(-0.4, 0.4, 3))
        x, y, z = A[:, 2].tolist()
        parent = links[-1 if k != 5 else -3].name  # the last one branches off
        joints.append(Joint(f"joint{k}", "revolute", parent, f"link{k}", step, axis=(x, y, z)))
        links.append(Link(f"link{k}", Inertia.from_com(1.0 + k, rng.uniform(-0.2, 0.2, 3), (0.1, 0.2, 0.15))))
    robot = Robot("nearly_parallel", links, joints)
    compare(robot, states_of(robot, 1))
    s = states_of(robot, 1)
    model, data = engine_of(robot)
    theirs = pin.rnea(model, data, s.q, s.qd, s.qdd)
    scale = torque_scale(robot, s.q, s.qd, s.qdd)
    for name in robot.algorithms("inverse_dynamics"):
        ours = value(robot, "inverse_dynamics", name, q=s.q, qd=s.qd, qdd=s.qdd)
        assert_near(ours, theirs, 1e-13, scale, name)
