"""Derivatives of inverse and forward dynamics against Pinocchio and against each other."""

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
