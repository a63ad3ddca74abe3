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
