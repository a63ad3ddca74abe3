"""Controllers as functions of numbers: what the papers' formulas say, whatever the scalar."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.compiler.ir import interpret

GAINS = control.Gains(kp=100.0, kd=np.array([20.0, 21.0, 22.0, 23.0, 24.0, 25.0]))
PERIOD = 2e-3


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma560")


@pytest.fixture(scope="module")
def state():
    return np.random.default_rng(5).normal(size=(5, 6))  # q, qd, q_d, qd_d, qdd_d


def test_valeras_three_controllers(robot, state):
    q, qd, q_d, qd_d, qdd_d = state
    e, ed, kp, kd = q - q_d, qd - qd_d, 100.0, GAINS.kd

    def exact(v):
        return robot.inverse_dynamics(q, qd, v, friction=False)

    law = control.PointToPoint(robot, GAINS, torque_limits=False).kernel(PERIOD)
    np.testing.assert_allclose(law(*state), exact(-kd * qd - kp * e), rtol=1e-12)
    law = control.Tracking(robot, GAINS, torque_limits=False).kernel(PERIOD)
    np.testing.assert_allclose(law(*state), exact(qdd_d - kd * ed - kp * e), rtol=1e-12)

    integral = np.linspace(-0.1, 0.2, 6)
    gains = control.Gains(100.0, GAINS.kd, 50.0)
    law = control.IntegralTracking(robot, gains, torque_limits=False).kernel(PERIOD)
    tau, following = law(*state, integral)
    np.testing.assert_allclose(tau, exact(qdd_d - kd * ed - kp * e - 50.0 * integral), rtol=1e-12)
    np.testing.assert_allclose(following, integral + PERIOD * e, rtol=1e-14)


def test_gravity_pd(robot, state):
    q, qd, q_d, qd_d, _ = state
    law = control.GravityPD(robot, GAINS, torque_limits=False).kernel(PERIOD)
    expected = robot.gravity_torques(q) - 100.0 * (q - q_d) - GAINS.kd * (qd - qd_d)
    np.testing.assert_allclose(law(*state), expected, rtol=1e-12)


def test_computed_torque_compensates_friction_at_the_planned_speed(robot, state):
    q, qd, q_d, qd_d, qdd_d = state
    v = qdd_d - GAINS.kd * (qd - qd_d) - 100.0 * (q - q_d)
    joints = robot.moving_joints
    viscous = np.array([joint.viscous_friction for joint in joints]) * qd
    coulomb = np.array(
        [
            j.coulomb_friction[0] if s > 0 else -j.coulomb_friction[1]
            for j, s in zip(joints, qd_d, strict=True)
        ]
    )
    law = control.ComputedTorque(robot, GAINS, torque_limits=False).kernel(PERIOD)
    expected = robot.inverse_dynamics(q, qd, v, friction=False) + viscous + coulomb
    np.testing.assert_allclose(law(*state), expected, rtol=1e-12)


@pytest.mark.parametrize("gravity", ["planned", "online"])
def test_feed_forward_takes_gravity_where_it_is_told(robot, state, gravity):
    q, _, q_d, qd_d, qdd_d = state
    law = control.FeedForward(robot, gravity=gravity, torque_limits=False).kernel(PERIOD)
    expected = robot.inverse_dynamics(q_d, qd_d, qdd_d)
    if gravity == "online":
        expected = expected - robot.gravity_torques(q_d) + robot.gravity_torques(q)
    np.testing.assert_allclose(law(*state), expected, rtol=1e-11, atol=1e-11)


def test_saturation_keeps_torques_within_the_limits(robot, state):
    limits = np.array([10.0, 20.0, 5.0, 1.0, 1.0, 0.5])
    law = control.Tracking(robot, GAINS, torque_limits=limits).kernel(PERIOD)
    free = control.Tracking(robot, GAINS, torque_limits=False).kernel(PERIOD)
    np.testing.assert_allclose(law(*state), np.clip(free(*state), -limits, limits))
    assert (np.abs(free(*state)) > limits).any()


def test_the_models_own_effort_limits_are_the_default():
    panda = lw.load("panda")
    assert control.GravityPD(panda, control.Gains(1, 1)).torque_limits[4] == 12.0
    assert np.isinf(control.GravityPD(panda, control.Gains(1, 1), torque_limits=False).torque_limits).all()


def test_a_saturated_integral_does_not_wind_up(robot):
    controller = control.IntegralTracking(
        robot, control.Gains.from_frequency(10.0, integral=True), torque_limits=1.0
    )
    law = controller.kernel(PERIOD)
    zero, far = np.zeros(6), np.full(6, 2.0)
    integral = np.zeros(6)
    # far below the target: every torque is at its upper limit, the error is negative, so nothing accumulates
    tau, following = law(zero - 0.5, zero, far, zero, zero, integral)
    saturated = np.abs(tau) == 1.0
    assert saturated.any()
    pushes_outward = saturated & (tau * (zero - 0.5 - far) < 0)
    assert (following[pushes_outward] == 0.0).all()
    assert (following[~saturated] != 0.0).all()
    # an error that takes the torque back from its limit is integrated, saturated or not
    wound = np.full(6, -1.0)  # left from before: it still pushes forward
    tau, following = law(far + 0.1, zero, far, zero, zero, wound)
    assert (following > wound)[tau >= 0].all()


def test_the_same_law_on_every_scalar(robot, state):
    """Numbers, arrays, the interpreter and machine code agree; the last two to the bit."""
    controller = control.ComputedTorque(robot, GAINS, torque_limits=50.0)
    kernel = controller.kernel(PERIOD)
    compiled = kernel(*state)
    assert (interpret.run(kernel.program(), *state)[0] == compiled).all()
    gains = {name: values.tolist() for name, values in controller.gains.items()}
    reference = control.Reference(*state[2:].tolist())
    tau, _ = controller.limited(controller.links(), gains, *state[:2].tolist(), reference, [], PERIOD)
    np.testing.assert_allclose(tau, compiled, rtol=1e-11)
    batch = np.stack([state, state[::-1] * 0.5])
    np.testing.assert_array_equal(kernel(*np.moveaxis(batch, 1, 0))[0], compiled)


def test_a_controller_is_c_source_for_a_real_one(robot):
    text = control.ComputedTorque(robot, GAINS, torque_limits=False).kernel(PERIOD).source("c")
    assert "void computedtorque(" in text


def test_gains_from_frequency_and_damping_place_the_poles():
    gains = control.Gains.from_frequency(8.0, 0.7)
    np.testing.assert_allclose(
        np.roots([1, gains.kd, gains.kp]), 8.0 * (-0.7 + np.array([1j, -1j]) * np.sqrt(1 - 0.49))
    )
    gains = control.Gains.from_frequency(8.0, 0.7, integral=True)
    roots = np.roots([1, gains.kd, gains.kp, gains.ki])
    np.testing.assert_allclose(np.sort_complex(roots)[0], -8.0)
    assert gains.stable()
    assert not control.Gains(1.0, 1.0, 2.0).stable()


def test_which_gains_are_stable():
    """The roots of s³ + kd s² + kp s + ki, or of s² + kd s + kp."""
    assert control.Gains(0.5, 0.5).stable()
    assert control.Gains(0.5, 0.5).ki == 0.0
    assert control.Gains(0.5, 0.5, 0.1).stable()
    assert not control.Gains(0.5, 0.5, 0.25).stable()  # a pair on the imaginary axis
    assert not control.Gains(0.0, 1.0).stable()
    assert not control.Gains(1.0, 0.0).stable()
    assert not control.Gains(np.array([1.0, 1.0]), 1.0, np.array([0.5, 1.5])).stable()


def test_gains_of_a_frequency_keep_their_shape():
    assert isinstance(control.Gains.from_frequency(3.0).kp, float)
    each = control.Gains.from_frequency([1.0, 2.0], 0.5)
    assert each.kp.tolist() == [1.0, 4.0]
    assert each.kd.tolist() == [1.0, 2.0]
    third = control.Gains.from_frequency(2.0, 0.5, integral=True)
    assert (third.kp, third.kd, third.ki) == (8.0, 4.0, 8.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: control.Gains.from_frequency(-1.0), "frequency and damping"),
        (lambda r: control.Gains.from_frequency(0.0), "frequency and damping"),
        (lambda r: control.Gains.from_frequency([1.0, 0.0]), "frequency and damping"),
        (lambda r: control.Gains.from_frequency(1.0, 0.0), "frequency and damping"),
        (lambda r: control.Gains.from_frequency(1.0, np.inf), "frequency and damping"),
        (
            lambda r: control.GravityPD(r, control.Gains(1.0, 1.0), torque_limits=0.0),
            "torque_limits: expected",
        ),
        (
            lambda r: control.GravityPD(r, control.Gains(1.0, 1.0), torque_limits=[1, 1, 1, 0, 1, 1]),
            "torque_limits",
        ),
        (lambda r: control.Tracking(r, control.Gains(np.ones(3), 1.0)), "kp: expected one number or 6"),
        (lambda r: control.Tracking(r, control.Gains(np.inf, 1.0)), "kp: expected finite"),
        (lambda r: control.IntegralTracking(r, control.Gains(1.0, 1.0, 5.0)), "unstable"),
        (lambda r: control.FeedForward(r, gravity="sometimes"), "gravity: expected"),
        (
            lambda r: control.GravityPD(r, control.Gains(1.0, 1.0), torque_limits=-1.0),
            "torque_limits: expected positive",
        ),
    ],
)
def test_bad_input_is_named(robot, make, message):
    with pytest.raises(ValueError, match=message):
        make(robot)
