"""Velocities from measured positions and applied torques."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import CONTROLLERS, StateObserver, named
from linkwise.errors import LinkwiseError


def test_estimates_converge_to_the_state():
    robot, period, rng = lw.load("two_link"), 1e-3, np.random.default_rng(0)
    kernel = StateObserver(robot, frequency=50.0).kernel(period)
    q, qd = np.array([0.3, -0.4]), np.array([1.0, -2.0])
    estimate = [q.copy(), np.zeros(2)]  # its velocity is wrong
    errors = []
    for _ in range(400):
        tau = rng.uniform(-1, 1, 2)
        estimate = kernel(q, tau, *estimate)
        q, qd = q + period * qd, qd + period * robot.forward_dynamics(q, qd, tau)
        errors.append(np.abs(estimate[1] - qd).max())
    assert errors[0] > 1.0
    assert errors[-1] < 0.01 * errors[0]  # after twenty time constants; the rest is the explicit step
    assert errors[-1] == pytest.approx(0.0, abs=0.01)


def test_the_prediction_is_the_forward_dynamics_of_every_robot():
    """Without an error: random trees, joints that follow others, friction, and constraints with their forces."""
    chain = lw.planar_chain(3)
    q = np.array([0.4, -0.7, 0.5])
    held = chain.with_constraints([lw.Point(chain.default_frame(), chain.pose(q)[:3, 3])])
    coupled = lw.random_robot(3, 4)
    first, second = coupled.joint_names[:2]
    coupled = coupled.with_constraints([lw.Coupling(first, second, -0.6)])
    rng, h = np.random.default_rng(4), 1e-3
    for robot in (coupled, lw.random_robot(8, 5), lw.load("puma560"), held):
        at = q if robot is held else rng.uniform(-1, 1, robot.dof)
        qd, tau = (
            rng.choice([-1, 1], robot.dof) * rng.uniform(0.5, 1, robot.dof),
            rng.uniform(-1, 1, robot.dof),
        )
        new_q, new_qd = StateObserver(robot, 20.0).kernel(h)(at, tau, at, qd)
        np.testing.assert_allclose(new_q, at + h * qd, rtol=0, atol=1e-14)
        expected = robot.forward_dynamics(at, qd, tau)
        most = (
            1e-3 if robot.name == "puma560" else 1e-9
        )  # its dry friction changes direction over a range of speeds
        np.testing.assert_allclose((new_qd - qd) / h, expected, rtol=most, atol=1e-8)


def test_a_joint_that_friction_holds_is_seen_at_rest():
    robot = lw.load("puma560")
    kernel, q = StateObserver(robot).kernel(1e-3), np.array([0.1, 0.4, -0.7, 0.2, 0.5, -0.3])
    friction = [min(joint.coulomb_friction) for joint in robot.coordinate_joints]
    tau = robot.gravity_torques(q) + 0.9 * np.array(friction) * [1, -1, 1, -1, 1, -1]
    estimate = (q, np.zeros(6))
    for _ in range(300):
        estimate = kernel(q, tau, *estimate)
    assert np.abs(estimate[1]).max() < 0.02  # 0.06 and more without friction


def test_joints_with_several_coordinates_are_refused():
    with pytest.raises(LinkwiseError, match="ball or floating"):
        StateObserver(lw.load("two_link", base="floating"))


@pytest.mark.parametrize("name", CONTROLLERS)
def test_every_controller_computes_in_float32(name):
    robot = lw.load("two_link")
    law = named(name, robot, frequency=10.0) if CONTROLLERS[name].feedback else named(name, robot)
    single, double = law.kernel(1e-3, dtype="float32"), law.kernel(1e-3)
    assert single.program().dtype == "float32"
    assert "float " in single.source("c")
    rng = np.random.default_rng(1)
    given = [rng.uniform(-1, 1, size).astype("float32") for _, size in single.inputs]
    found, exact = single(*given), double(*[x.astype(float) for x in given])
    found, exact = (x[0] if isinstance(x, tuple) else x for x in (found, exact))
    assert found.dtype == np.float32
    close = (
        1e-4 if CONTROLLERS[name].has_frame else 1e-5
    )  # laws of a tool solve with the inertia that it feels
    assert np.abs(found - exact).max() <= close * (1 + np.abs(exact).max())


def test_a_payload_is_an_input_of_a_controller():
    """As if the model had it from the start."""
    robot = lw.load("two_link")
    law = named("computed_torque", robot, frequency=10.0)
    rng = np.random.default_rng(2)
    given = rng.uniform(-1, 1, (5, 2))
    mass, center = 1.5, np.array([0.1, 0.02, -0.03])
    loaded = named("computed_torque", robot.with_payload(mass, center), frequency=10.0)
    inertia = mass * (center @ center * np.eye(3) - np.outer(center, center))
    payload = [mass, *(mass * center), *inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]]
    found = law.kernel(1e-3, inputs=("payload",))(*given, payload)
    assert found == pytest.approx(loaded.kernel(1e-3)(*given), rel=1e-12)
