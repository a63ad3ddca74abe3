"""Integrators: their measured order, what they do to energy, and agreement with an adaptive one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.algorithms.coordinates import position_rates
from linkwise.functions.table import mechanism_of
from linkwise.simulate import simulate, simulate_adaptive
from linkwise.simulate.adaptive import _smoothed_friction
from linkwise.simulate.integrators import INTEGRATORS, Manifold, rk4, rk4_in_a_loop, semi_implicit_euler

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


def without_friction(robot: lw.Robot) -> lw.Robot:
    return robot.with_parameters({label: 0.0 for label in robot.parameter_labels if "friction" in label})


@pytest.fixture(scope="module")
def panda():
    return without_friction(lw.load("panda"))


def orders(errors, steps):
    return np.diff(np.log(errors)) / np.diff(np.log(steps))


@pytest.mark.parametrize(("name", "order"), [("rk4", 4), ("semi_implicit_euler", 1)])
def test_measured_order_on_a_falling_arm(panda, name, order):
    assert set(INTEGRATORS) == {"rk4", "semi_implicit_euler"}, (
        "a new integrator needs its order measured here"
    )
    steps = np.array([4e-3, 2e-3, 1e-3])
    exact = simulate_adaptive(panda, duration=0.4, q=HOME, rows=2)
    errors = []
    for step in steps:
        found = simulate(panda, control.Passive(panda), duration=0.4, step=step, integrator=name, q=HOME)
        errors.append(
            np.abs(found.final_q - exact.final_q).max() + np.abs(found.final_qd - exact.final_qd).max()
        )
    assert orders(errors, steps) == pytest.approx(order, abs=0.15)


def test_measured_order_on_a_pendulum_by_hand():
    """The integrators alone, on ẍ = −x, against the cosine."""
    for name, order in (("rk4", 4), ("semi_implicit_euler", 1)):
        errors, steps = [], np.array([0.1, 0.05, 0.025])
        for h in steps:
            q, qd = [1.0], [0.0]
            for _ in range(round(2.0 / h)):
                q, qd = INTEGRATORS[name](lambda at, q, qd: [-q[0]], q, qd, h)
            errors.append(abs(q[0] - np.cos(2.0)))
        assert orders(errors, steps) == pytest.approx(order, abs=0.2)


def test_a_continuous_controller_keeps_the_order(panda):
    """The reference is read in the middle of a step, too: with the controller in the integrator order 4
    stays.
    """
    controller = control.Tracking(panda, control.Gains.from_frequency(5.0), torque_limits=False)
    move = motion.quintic(HOME, HOME + 0.4, 0.5)
    start = HOME + 0.05
    exact = simulate_adaptive(panda, controller, move, duration=0.4, q=start, rows=2)
    steps = np.array([8e-3, 4e-3, 2e-3])
    errors = [
        np.abs(
            simulate(panda, controller, move, duration=0.4, step=h, continuous=True, q=start).final_q
            - exact.final_q
        ).max()
        for h in steps
    ]
    assert orders(errors, steps) == pytest.approx(4, abs=0.3)


def test_energy_of_a_falling_panda_hardly_drifts(panda):
    """RK4 at 1 kHz, a minute; relative to the largest kinetic energy."""
    found = simulate(panda, control.Passive(panda), duration=60.0, step=1e-3, q=HOME, every=20)
    energy = found.energy()
    largest = panda.kinetic_energy(found.q, found.qd).max()
    assert np.abs(energy - energy[0]).max() < 2.5e-6 * largest
    assert largest > 10.0  # it does fall


def test_semi_implicit_euler_keeps_the_energy_of_a_pendulum_bounded():
    """Where the inertia is constant it is symplectic: no drift, however long; explicit Euler would gain
    energy.
    """
    pendulum = lw.planar_chain(1)
    found = simulate(
        pendulum,
        control.Passive(pendulum),
        duration=100.0,
        step=5e-3,
        integrator="semi_implicit_euler",
        q=[0.7],
    )
    energy = found.energy()
    first, last = (np.ptp(part) for part in np.array_split(energy, 10)[::9])
    assert last == pytest.approx(first, rel=1e-2)


def test_the_adaptive_integrator_agrees_and_follows_its_tolerance(panda):
    fine = simulate_adaptive(panda, duration=0.3, q=HOME, rtol=1e-12, atol=1e-13)
    fixed = simulate(panda, control.Passive(panda), duration=0.3, step=2.5e-4, q=HOME)
    np.testing.assert_allclose(fixed.final_q, fine.final_q, atol=1e-9)
    errors = []
    for tolerance in (1e-4, 1e-7, 1e-10):
        loose = simulate_adaptive(panda, duration=0.3, q=HOME, method="RK45", rtol=tolerance, atol=tolerance)
        errors.append(np.abs(loose.final_q - fine.final_q).max())
    assert errors[0] > errors[1] > errors[2]
    assert fine.q.shape == (201, 7)


def test_the_adaptive_integrator_with_friction_and_integral_action():
    robot = lw.load("puma560")
    controller = control.IntegralTracking(
        robot, control.Gains.from_frequency(10.0, integral=True), torque_limits=False
    )
    move = motion.quintic(np.zeros(6), np.full(6, 0.3), 0.4)
    smooth = simulate_adaptive(
        robot, controller, move, duration=0.3, smoothing=1e-2, rtol=1e-7, atol=1e-9, rows=31
    )
    fixed = simulate(robot, controller, move, duration=0.3, step=1e-4, continuous=True, every=100)
    # the smoothed sign of slow speeds is the difference
    np.testing.assert_allclose(smooth.q[10:30], fixed.q[10:], atol=2e-3)
    assert np.abs(smooth.error).max() > 1e-4


def test_the_adaptive_integrator_integrates_the_memory_of_a_controller():
    robot = lw.load("two_link")
    gains = control.Gains.from_frequency(4.0, integral=True)
    controller = control.IntegralTracking(robot, gains, torque_limits=False)
    options = {"duration": 0.8, "q": [0.2, -0.1]}  # two_link has no friction
    smooth = simulate_adaptive(robot, controller, np.zeros(2), rows=2, **options)
    fixed = simulate(robot, controller, np.zeros(2), step=1e-3, continuous=True, **options)
    np.testing.assert_allclose(smooth.final_q, fixed.final_q, atol=1e-3)
    assert np.abs(fixed.final_q).max() > 0.02


def test_with_dry_friction_the_order_is_kept_between_events():
    """Joints that slide in one direction all the time; judged by SciPy, whose law never changes its sign here."""
    from scipy.integrate import solve_ivp

    robot = lw.load("two_link")
    robot = robot.with_parameters({f"{name}.coulomb_friction": 0.4 for name in robot.joint_names})
    q, qd = np.array([-1.2, -0.4]), np.array([3.0, -3.0])
    exact = solve_ivp(
        lambda t, y: np.concatenate([y[2:], robot.forward_dynamics(y[:2], y[2:], np.zeros(2))]),
        (0, 0.1), np.concatenate([q, qd]), method="DOP853", rtol=1e-13, atol=1e-14,
    ).y  # fmt: skip
    assert (np.abs(exact[2:]) > 0.1).all()
    assert (np.sign(exact[2:]) == np.sign(exact[2:, :1])).all()
    errors, steps = [], np.array([2e-2, 1e-2, 5e-3])
    for step in steps:
        found = simulate(robot, control.Passive(robot), duration=0.1, step=step, q=q, qd=qd)
        errors.append(np.abs([*found.final_q, *found.final_qd] - exact[:, -1]).max())
    assert orders(errors, steps) == pytest.approx(4, abs=0.3)


@pytest.mark.parametrize("name", ["two_link", "puma560"])
def test_the_order_is_kept_while_friction_holds_a_joint_and_others_move(name):
    """It was one: friction of the beginning of a step held the joint for all of it. Judged by SciPy with the joint
    locked."""
    from scipy.integrate import solve_ivp

    whole = lw.load(name)
    first = whole.joint_names[0]
    whole = whole.with_parameters({f"{each}.coulomb_friction": 0.0 for each in whole.joint_names})
    whole = whole.with_parameters({f"{first}.coulomb_friction": 1e3})
    q, qd = np.linspace(-1.2, 0.4, whole.dof), np.linspace(0.0, 3.0, whole.dof)
    rest = whole.lock({first: q[0]})
    n, none = rest.dof, np.zeros(rest.dof)
    exact = solve_ivp(
        lambda t, y: np.concatenate([y[n:], rest.forward_dynamics(y[:n], y[n:], none)]),
        (0, 0.2), np.concatenate([q[1:], qd[1:]]), method="DOP853", rtol=1e-13, atol=1e-14,
    ).y[:, -1]  # fmt: skip
    errors, steps = [], np.array([2e-2, 1e-2, 5e-3])
    for step in steps:
        found = simulate(whole, control.Passive(whole), duration=0.2, step=step, q=q, qd=qd, warn=False)
        assert found.final_q[0] == q[0]
        assert (found.qd[:, 0] == 0.0).all()
        errors.append(np.abs([*found.final_q[1:], *found.final_qd[1:]] - exact).max())
    assert orders(errors, steps) == pytest.approx(4, abs=0.4)


def test_with_dry_friction_errors_shrink_with_the_step_whatever_joints_do():
    """Random motions of an arm whose joints stop, are held while the other moves, and turn back; some only slide."""
    robot = lw.load("two_link").with_gravity((0.0, 0.0, 0.0))
    friction = zip(robot.joint_names, (6.0, 2.0), strict=True)
    robot = robot.with_parameters({f"{name}.coulomb_friction": value for name, value in friction})
    rng = np.random.default_rng(2)
    q, qd = rng.uniform(-1, 1, (60, 2)), rng.uniform(-2, 2, (60, 2))

    def moved(step):
        return simulate(robot, control.Passive(robot), duration=0.5, step=step, q=q, qd=qd)

    fine = moved(2.0**-15)
    errors = [np.abs(moved(step).final_q - fine.final_q).max(axis=1) for step in (2.0**-6, 2.0**-10)]
    slides = (fine.qd * qd[:, np.newaxis] > 0.0).all(axis=(1, 2))
    assert slides.any()
    assert (errors[0][slides] / errors[1][slides] > 16**3.5).all()
    assert errors[0][~slides].max() / errors[1][~slides].max() > 8  # 16 at first order
    assert errors[1].max() < 5e-3


def test_measured_order_of_turning_bodies_by_hand():
    """Positions of a floating robot beside SciPy's integration of their rates; stages in a loop are the same steps."""
    from scipy.integrate import solve_ivp

    robot = lw.load("two_link", base="floating")
    links, nq, n = mechanism_of(robot), robot.nq, robot.dof
    space, mixing = Manifold(links), np.random.default_rng(1).normal(size=(2, n, n))
    q0, v0 = robot.neutral, np.linspace(-2.0, 3.0, n)

    def acceleration(at, q, qd):
        v = np.array(qd, dtype=float)
        return list(mixing[0] @ np.sin(v) + mixing[1] @ np.resize(np.array(q, dtype=float), n))

    def rate(t, y):
        q, v = y[:nq].tolist(), y[nq:].tolist()
        return np.concatenate([position_rates(links, q, v), acceleration(0.0, q, v)])

    end = solve_ivp(rate, (0.0, 0.2), np.concatenate([q0, v0]), method="DOP853", rtol=1e-11, atol=1e-11).y[
        :, -1
    ]
    steps = np.array([0.02, 0.01, 0.005])
    for method, order in ((rk4, 4), (semi_implicit_euler, 1)):
        errors = []
        for h in steps:
            q, qd = q0.tolist(), v0.tolist()
            for _ in range(round(0.2 / h)):
                q, qd = method(acceleration, q, qd, h, space)
            errors.append(np.abs(np.concatenate([q, qd]) - end).max())
        assert orders(errors, steps) == pytest.approx(order, abs=0.3), method.__name__
    plain, looped = (
        each(acceleration, q0.tolist(), v0.tolist(), 0.1, space) for each in (rk4, rk4_in_a_loop)
    )
    np.testing.assert_allclose(np.concatenate(looped), np.concatenate(plain), rtol=1e-14, atol=1e-14)


def test_smoothed_friction_of_fast_joints_is_that_of_the_dynamics():
    """Friction that differs by direction, friction by load and viscous friction, in all directions of motion."""
    arm, rng = lw.load("two_link"), np.random.default_rng(3)
    joints = [
        replace(joint, coulomb_friction=(1.5, 4.0), viscous_friction=0.6) if joint.moves else joint
        for joint in arm.joints
    ]
    robot = lw.Robot("rubbing", arm.links, joints, gravity=arm.gravity)
    robot = robot.with_parameters({f"{name}.load_friction": 0.2 for name in robot.joint_names})
    links = mechanism_of(robot)
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        q, tau, qd = rng.normal(size=2), 10.0 * rng.normal(size=2), np.array(signs) * rng.uniform(0.5, 2.0, 2)
        rubbed = _smoothed_friction(links, q, qd, tau, 1e-3)
        found = robot.forward_dynamics(q, qd, tau - rubbed, friction=False)
        np.testing.assert_allclose(found, robot.forward_dynamics(q, qd, tau), rtol=1e-9)
        slow = _smoothed_friction(links, q, 1e-9 * qd, tau, 1e-3)
        assert np.abs(slow).max() < 1e-3
