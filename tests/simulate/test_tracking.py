"""Closed loops: what the controllers of the papers do to errors."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.simulate import Moves, simulate

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


@pytest.fixture(scope="module")
def panda():
    return lw.load("panda")


@pytest.fixture(scope="module")
def valera():
    return lw.load("puma_valera")


def test_with_an_exact_model_the_error_is_the_integrators(panda):
    """RK4's error alone: 16 times smaller with half the step, and round-off at 1 kHz."""
    controller = control.ComputedTorque(panda, control.Gains.from_frequency(10.0))
    move = motion.quintic(HOME, HOME + 0.5, 2.0)
    errors = [
        np.abs(simulate(panda, controller, move, duration=2.0, step=step, continuous=True).error).max()
        for step in (4e-3, 2e-3, 1e-3)
    ]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(16, rel=0.15)
    assert errors[2] < 5e-12


def test_a_sampled_controller_lags_by_half_a_period(panda):
    """Holding a torque for a period costs an error proportional to it."""
    controller = control.ComputedTorque(panda, control.Gains.from_frequency(10.0))
    move = motion.quintic(HOME, HOME + 0.5, 2.0)
    errors = [
        np.abs(simulate(panda, controller, move, duration=2.0, step=1e-3, control_period=period).error).max()
        for period in (4e-3, 2e-3, 1e-3)
    ]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.05)


def wrong(robot: lw.Robot, factor: float) -> lw.Robot:
    """The same robot with all inertial parameters off by a factor."""
    labels = [label for label in robot.parameter_labels if "friction" not in label]
    values = dict(zip(robot.parameter_labels, robot.parameters, strict=True))
    return robot.with_parameters({label: factor * values[label] for label in labels})


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_integral_action_removes_the_steady_error_that_the_others_keep(valera, factor):
    """Valera, section 4: "any error in the robot dynamics estimation can cause a variation in the equilibrium
    point".
    """
    model = wrong(valera, factor)
    end = np.array([0.3, -0.5, 0.4, 0.2, 0.5, 0.1])
    move = motion.quintic(np.zeros(6), end, 1.0)
    plain, integral = (
        control.Gains.from_frequency(8.0, integral=with_integral) for with_integral in (False, True)
    )
    controllers = {
        "point to point": control.PointToPoint(model, plain),
        "tracking": control.Tracking(model, plain),
        "integral": control.IntegralTracking(model, integral),
    }
    left = {}
    for name, controller in controllers.items():
        found = simulate(valera, controller, move, duration=6.0, step=2e-3, q=np.zeros(6), every=10)
        assert np.abs(found.qd[-1]).max() < 1e-4  # at rest
        left[name] = np.abs(found.error[-1]).max()
    # the steady error: K_p M e = the difference in gravity
    M = model.mass_matrix(end)
    expected = np.linalg.solve(M, valera.gravity_torques(end) - model.gravity_torques(end)) / plain.kp
    assert left["tracking"] == pytest.approx(np.abs(expected).max(), rel=0.05)
    assert left["point to point"] == pytest.approx(left["tracking"], rel=1e-2)
    assert left["tracking"] > 5e-3
    assert left["integral"] < 1e-5 * left["tracking"] + 1e-9


def test_integral_action_removes_the_error_of_stiction():
    """Valera's second problem, the dead zone: without an integral a joint stops short and stays there."""
    robot = lw.load("puma560")
    end = np.array([0.4, -0.3, 0.2, 0.3, 0.2, -0.3])
    plain, integral = (
        control.Gains.from_frequency(6.0, integral=with_integral) for with_integral in (False, True)
    )
    short = simulate(
        robot, control.Tracking(robot, plain), end, duration=4.0, q=np.zeros(6), step=2e-3, every=10
    )
    assert np.abs(short.qd[-1]).max() < 1e-4
    assert (np.abs(short.error[-1]) > 1e-3).sum() >= 5
    full = simulate(
        robot,
        control.IntegralTracking(robot, integral),
        end,
        duration=8.0,
        q=np.zeros(6),
        step=2e-3,
        every=10,
    )
    assert np.abs(full.error[-1]).max() < 0.1 * np.abs(short.error[-1]).max()


def test_gravity_pd_brings_any_arm_to_rest(panda):
    kp = np.array([200.0, 200.0, 200.0, 200.0, 20.0, 20.0, 10.0])
    controller = control.GravityPD(panda, control.Gains(kp, kp / 10), torque_limits=False)
    found = simulate(panda, controller, HOME, duration=4.0, q=HOME + 0.3, continuous=True, every=50)
    assert np.abs(found.error[-1]).max() < 1e-4
    energy = panda.kinetic_energy(found.q, found.qd) + 0.5 * found.error**2 @ kp
    assert (np.diff(energy) < 1e-9).all()  # Lyapunov's function of Takegaki and Arimoto


def test_saturated_windup_is_worse_without_anti_windup(panda):
    """A step too large for the motors: the integral must not carry the arm far beyond its target."""

    class Windup(control.IntegralTracking):
        def control(self, links, gains, q, qd, reference, memory, period):
            tau, _ = super().control(links, gains, q, qd, reference, memory, period)
            return tau, [m + period * (a - b) for m, a, b in zip(memory, q, reference.q, strict=True)]

    gains = control.Gains.from_frequency(12.0, integral=True)
    target = HOME + [1.2, 0, 0, 0, 0, 0, 0]
    over = {}
    for law in (control.IntegralTracking, Windup):
        found = simulate(
            panda,
            law(panda, gains, torque_limits=[8.0, 87, 87, 87, 12, 12, 12]),
            target,
            duration=5.0,
            q=HOME,
        )
        over[law] = found.error[:, 0].max()
    assert over[control.IntegralTracking] < 0.5 * over[Windup]


def test_payload_and_model_errors_show(panda):
    loaded = panda.with_payload(2.0, com=(0.0, 0.0, 0.1))
    controller = control.ComputedTorque(panda, control.Gains.from_frequency(15.0))
    move = motion.quintic(HOME, HOME + 0.3, 1.0)
    exact = simulate(panda, controller, move, duration=1.0)
    off = simulate(loaded, controller, move, duration=1.0)
    assert np.abs(off.error).max() > 20 * np.abs(exact.error).max()
    assert off.robot is loaded


def test_moves_inside_the_kernel_are_the_quintics(panda):
    controller = control.ComputedTorque(panda, control.Gains.from_frequency(10.0))
    ends = HOME + np.random.default_rng(0).normal(size=(5, 7)) * 0.2
    durations = np.linspace(0.3, 0.8, 5)
    inside = simulate(panda, controller, Moves(HOME, ends, durations), duration=0.6, every=20)
    table = simulate(
        panda,
        controller,
        [motion.quintic(HOME, e, d) for e, d in zip(ends, durations, strict=True)],
        duration=0.6,
        every=20,
    )
    np.testing.assert_allclose(inside.q, table.q, atol=1e-12)
    np.testing.assert_allclose(inside.reference[2], table.reference[2], atol=1e-10)


def test_feed_forward_follows_an_exact_model_for_a_while(panda):
    frictionless = panda.with_parameters(
        {label: 0.0 for label in panda.parameter_labels if "friction" in label}
    )
    controller = control.FeedForward(frictionless, torque_limits=False)
    move = motion.quintic(HOME, HOME + 0.4, 0.5)
    found = simulate(frictionless, controller, move, duration=0.5, step=5e-4, continuous=True)
    assert np.abs(found.error).max() < 1e-9


def test_the_summary_has_the_numbers_of_the_rows():
    """Largest speeds, torques and errors and root mean squares of errors, over rows and robots."""
    arm = lw.load("puma560")
    law = control.named("computed_torque", arm, frequency=4.0)
    q = np.random.default_rng(5).uniform(-0.3, 0.3, (3, 6))
    found = simulate(arm, law, np.zeros(6), duration=0.3, q=q, every=10, warn=False)
    table = np.array([row[1:] for row in found._summary().rows], dtype=float)
    error = found.error.reshape(-1, 6)
    expected = [np.abs(found.qd), np.abs(found.tau), np.abs(error)]
    expected = [part.reshape(-1, 6).max(axis=0) for part in expected] + [
        np.linalg.norm(error, axis=0) / len(error) ** 0.5
    ]
    np.testing.assert_allclose(table, np.array(expected).T)
