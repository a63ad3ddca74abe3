"""Derivatives of inverse and forward dynamics against Pinocchio and against each other."""

import dataclasses

import numpy as np
import pytest

import linkwise as lw

ALGORITHMS = ("newton_euler", "boundary_value", "gibbs_appell", "compound_link", "recursion")


def states(n, count=4, seed=0):
    return np.random.default_rng(seed).normal(size=(3, count, n))


def test_every_algorithm_has_the_same_derivatives():
    q, qd, qdd = states(4)
    for tree in (False, True):  # of the tree most links are on the base
        robot = lw.random_robot(3, 4, tree=tree, joints="RP")
        reference = robot.inverse_dynamics_derivatives(q, qd, qdd)
        for algorithm in ALGORITHMS[1:] if tree else ("recursion", "compound_link"):
            matrices = robot.inverse_dynamics_derivatives(q, qd, qdd, algorithm=algorithm)
            for a, b in zip(matrices, reference, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * (1.0 + np.abs(b).max()))
    tau = robot.inverse_dynamics(q, qd, qdd)
    reference = robot.forward_dynamics_derivatives(q, qd, tau)
    for algorithm in ("compound_link", "conjugate_gradient", "preconditioned_conjugate_gradient"):
        found = robot.forward_dynamics_derivatives(q, qd, tau, algorithm=algorithm)
        for a, b in zip(found, reference, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())


@pytest.mark.parametrize("name", ["panda", "stanford"])
def test_against_differences(name):
    robot = lw.load(name)
    n = robot.dof
    q, qd, x = states(n, 2)
    step = 1e-6
    for method, derivatives in (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives(q, qd, x)),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives(q, qd, x)),
    ):
        for k, found in enumerate(derivatives):
            ahead, behind = [], []
            for e in np.eye(n):
                moved = [q, qd, x]
                moved[k] = moved[k] + step * e
                ahead.append(method(*moved))
                moved = [q, qd, x]
                moved[k] = moved[k] - step * e
                behind.append(method(*moved))
            expected = (np.stack(ahead, -1) - np.stack(behind, -1)) / (2 * step)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=2e-8 * np.abs(expected).max())


def along_velocities(robot, function, q, step=1e-6):
    """The derivative of a function of q along velocity coordinates, by central differences."""
    ahead = [function(robot.integrate(q, step * e)) for e in np.eye(robot.dof)]
    behind = [function(robot.integrate(q, -step * e)) for e in np.eye(robot.dof)]
    return (np.stack(ahead, -1) - np.stack(behind, -1)) / (2 * step)


@pytest.mark.parametrize("turn", [1e-5, 1.0, 3.0])
def test_springs_of_ball_joints(turn):
    """A spring pulls along the rotation vector, which does not change by the joint's rates alone."""
    links = [
        lw.Link("base"),
        lw.Link("arm", lw.Inertia.from_com(1.3, (0.1, 0.05, 0.02), np.diag([2e-2, 3e-2, 4e-2]))),
    ]
    links.append(lw.Link("hand", lw.Inertia.from_com(0.4, (0.0, 0.1, 0.2), np.diag([2e-3, 3e-3, 4e-3]))))
    joints = [
        lw.Joint("shoulder", "ball", "base", "arm", terms={"stiffness": 5.0}),
        lw.Joint("elbow", "revolute", "arm", "hand", axis=(0, 1, 0), terms={"stiffness": 2.0}),
    ]
    robot = lw.Robot("sprung", links, joints)
    rng = np.random.default_rng(4)
    axis = turn * np.array([0.6, -0.48, 0.64])
    q = robot.integrate([0.0, 0.0, 0.0, 1.0, 0.0], np.r_[axis, 0.3])
    qd, x = rng.normal(size=(2, robot.dof))
    for method, (found, *_) in (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives(q, qd, x)),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives(q, qd, x)),
    ):
        expected = along_velocities(robot, lambda at, method=method: method(at, qd, x), q)
        np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_coupled_joints_with_friction_by_load():
    """Derivatives by the graph, for torques of leaders alone."""
    robot = lw.random_robot(5, 4, joints="RRRR")
    joints = list(robot.joints)
    places = [k for k, joint in enumerate(joints) if joint.moves]
    joints[places[2]] = dataclasses.replace(
        joints[places[2]], mimic=lw.Mimic(joints[places[0]].name, -0.7, 0.2)
    )
    robot = lw.Robot("coupled", robot.links, joints)
    robot = robot.with_parameters({f"{joints[places[1]].name}.load_friction": 0.1})
    q, qd, x = np.random.default_rng(2).normal(size=(3, robot.dof))
    step = 1e-6
    for method, derivatives in (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives(q, qd, x)),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives(q, qd, x)),
    ):
        for k, found in enumerate(derivatives):
            moved = [np.array([q, qd, x]) + step * np.eye(3)[k][:, None] * e for e in np.eye(robot.dof)]
            back = [np.array([q, qd, x]) - step * np.eye(3)[k][:, None] * e for e in np.eye(robot.dof)]
            expected = np.stack([method(*a) - method(*b) for a, b in zip(moved, back, strict=True)], -1) / (
                2 * step
            )
            np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_against_pinocchio():
    pin = pytest.importorskip("pinocchio")
    robot = lw.load("panda")
    model = pin.Model()
    parents = {-1: 0}
    for k, joint in enumerate(robot.moving_joints):
        body, pose = robot.carrier(joint.parent)
        placed = pose @ joint.origin
        parents[k] = model.addJoint(
            parents[body],
            pin.JointModelRevoluteUnaligned(np.array(joint.axis)),
            pin.SE3(placed.rotation, placed.translation),
            joint.name,
        )
        inertia = robot.bodies()[k]
        model.appendBodyToJoint(
            parents[k], pin.Inertia(inertia.mass, inertia.com, inertia.matrix_about_com), pin.SE3.Identity()
        )
    model.gravity.linear = np.array(robot.gravity)
    data = model.createData()
    q, qd, x = states(7)
    inverse = robot.inverse_dynamics_derivatives(q, qd, x, friction=False)
    forward = robot.forward_dynamics_derivatives(q, qd, x, friction=False)
    for k in range(len(q)):
        expected = pin.computeRNEADerivatives(model, data, q[k], qd[k], x[k])
        for a, b in zip(inverse[:2], expected[:2], strict=True):
            np.testing.assert_allclose(a[k], b, atol=1e-9 * np.abs(b).max())
        pin.computeABADerivatives(model, data, q[k], qd[k], x[k])
        for a, b in zip(forward, (data.ddq_dq, data.ddq_dv, data.Minv), strict=True):
            np.testing.assert_allclose(a[k], b, atol=1e-9 * np.abs(b).max())


def test_large_robots_use_the_recursion_on_arrays():
    robot = lw.random_robot(1, 20, tree=True)
    q, qd, qdd = states(20, 2)
    by_q, by_qd, by_qdd = robot.inverse_dynamics_derivatives(q, qd, qdd)
    np.testing.assert_allclose(by_qdd, robot.mass_matrix(q), rtol=1e-12, atol=1e-12)
    step = 1e-6
    direction = np.random.default_rng(2).normal(size=20)
    for found, moved in ((by_q, (direction, 0)), (by_qd, (0, direction))):
        ahead = robot.inverse_dynamics(q + step * moved[0], qd + step * moved[1], qdd)
        behind = robot.inverse_dynamics(q - step * moved[0], qd - step * moved[1], qdd)
        expected = (ahead - behind) / (2 * step)
        np.testing.assert_allclose(found @ direction, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
