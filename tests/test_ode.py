"""Robots as differential equations for SciPy."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw

solve_ivp = pytest.importorskip("scipy.integrate").solve_ivp
TIGHT = {"rtol": 1e-9, "atol": 1e-10}


def slopes(ode, t, y, step=1e-6):
    """∂ẏ/∂y by central differences."""
    columns = [(ode(t, y + step * e) - ode(t, y - step * e)) / (2 * step) for e in np.eye(len(y))]
    return np.array(columns).T


def test_energy_is_kept_and_simulations_agree():
    robot = lw.load("two_link")
    ode = robot.as_ode(friction=False)
    y = ode.state([0.3, 0.4])
    found = solve_ivp(ode, (0.0, 1.0), y, method="DOP853", **TIGHT)
    q, qd = ode.split(found.y)
    assert q.shape == qd.shape == (len(found.t), 2)
    energy = robot.kinetic_energy(q, qd) + robot.potential_energy(q)
    assert np.ptp(energy) < 1e-6 * np.abs(energy).max()
    other = lw.simulate.simulate_adaptive(robot, duration=1.0, q=[0.3, 0.4], friction=False, rows=2)
    assert np.allclose(other.q[-1], q[-1], atol=1e-6)
    stiff = solve_ivp(ode, (0.0, 1.0), y, method="Radau", jac=ode.jac, **TIGHT)
    assert stiff.njev > 0
    assert np.allclose(stiff.y[:, -1], found.y[:, -1], atol=1e-6)
    many = solve_ivp(ode, (0.0, 0.2), y, method="Radau", vectorized=True, **TIGHT)
    assert np.allclose(many.y[:, -1], solve_ivp(ode, (0.0, 0.2), y, **TIGHT).y[:, -1], atol=1e-6)


@pytest.mark.parametrize("kind", ["constant", "named", "function", "with derivatives"])
def test_torques_and_jacobian(kind):
    robot = lw.load("puma560")
    spring, damping = 30.0, 4.0
    tau = {
        "constant": np.arange(6.0),
        "named": dict(zip(robot.joint_names, np.arange(6.0), strict=True)),
        "function": lambda t, q, qd: t - spring * q - damping * qd,
        "with derivatives": lambda t, q, qd: t - spring * q - damping * qd,
    }[kind]
    exact = (
        (lambda t, q, qd: (-spring * np.eye(6), -damping * np.eye(6))) if kind == "with derivatives" else None
    )
    ode = robot.as_ode(tau, tau_jacobian=exact)
    q, qd = robot.random(1), np.linspace(0.2, 0.7, 6)
    y = ode.state(q, qd)
    given = np.arange(6.0) if kind in ("constant", "named") else 0.5 - spring * q - damping * qd
    assert np.array_equal(ode(0.5, y), np.r_[qd, robot.forward_dynamics(q, qd, given)])
    J = ode.jac(0.5, y)
    assert np.allclose(J, slopes(ode, 0.5, y), atol=1e-4 * np.abs(J).max())


def test_moving_bases():
    arm = lw.random_robot(3, 2)
    body = lw.Inertia.from_com(2.0, (0.0, 0.0, 0.1), (0.1, 0.2, 0.15))
    links = [replace(link, inertia=body) if link.name == arm.base else link for link in arm.links]
    robot = lw.Robot(arm.name, links, arm.joints).with_base("floating")
    assert robot.nq != robot.dof
    ode = robot.as_ode(friction=False)
    y = ode.state(robot.random(2), np.full(robot.dof, 0.3))
    assert len(y) == robot.nq + robot.dof
    J = ode.jac(0.0, y)
    assert np.allclose(J, slopes(ode, 0.0, y), atol=1e-5 * np.abs(J).max())
    found = solve_ivp(ode, (0.0, 0.3), y, **TIGHT)
    q, qd = ode.split(found.y)
    assert np.allclose(np.linalg.norm(q[:, 3:7], axis=1), 1.0, atol=1e-14)
    energy = robot.kinetic_energy(q, qd) + robot.potential_energy(q)
    assert np.ptp(energy) < 1e-6 * np.abs(energy).max()


def test_what_is_wrong_is_said():
    robot = lw.load("two_link")
    with pytest.raises(lw.ShapeError, match=r"tau: expected shape \(2,\)"):
        robot.as_ode([1.0])
    with pytest.raises(lw.ShapeError, match="tau: expected a function"):
        robot.as_ode(lambda t, q, qd: [1.0])(0.0, np.zeros(4))
    with pytest.raises(lw.ShapeError, match=r"y: expected shape \(4,\)"):
        robot.as_ode()(0.0, np.zeros(5))
    with pytest.raises(lw.ShapeError, match=r"q: expected shape \(2,\)"):
        robot.as_ode().state([1.0])
    held = robot.with_constraints([lw.Point(robot.default_frame(), [0.3, 0.2, 0.5])])
    assert held.as_ode().jac is None
    assert "tau(t, q, qd)" in repr(robot.as_ode(lambda t, q, qd: q))
