"""Kozłowski's experiment: inverse dynamics along a move of the PUMA 560, then forward dynamics of those torques.

"All joints of the manipulator were moved simultaneously in a time period of 4 second", fifth-order polynomials, zero
initial velocities and accelerations, 300 points; forward dynamics "results in joint accelerations", "exactly the same".
The paper numbers joints from the tip: its joint 6 is the waist.
"""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import assert_near, norm, value

import linkwise as lw

FROM_TIP = [(-150, 150), (-90, 90), (-130, 130), (-240, 70), (-220, 40), (-150, 150)]
DURATION, POINTS = 4.0, 300


def quintic(points=POINTS):
    """(t, q, q̇, q̈): 10 s³ − 15 s⁴ + 6 s⁵ from the lower to the upper end of each range."""
    start, end = np.radians(FROM_TIP[::-1]).T
    t = np.linspace(0.0, DURATION, points)
    s = (t / DURATION)[:, None]
    span = end - start
    q = start + span * (10 * s**3 - 15 * s**4 + 6 * s**5)
    qd = span * (30 * s**2 - 60 * s**3 + 30 * s**4) / DURATION
    qdd = span * (60 * s - 180 * s**2 + 120 * s**3) / DURATION**2
    return t, q, qd, qdd


@pytest.fixture(scope="module")
def puma():
    return lw.load("puma560")


def test_the_move_is_the_papers(puma):
    t, q, qd, qdd = quintic()
    assert q.shape == (300, 6)
    assert_near(np.degrees(q[0]), [-150, -220, -240, -130, -90, -150], 1e-13)
    assert_near(np.degrees(q[-1]), [150, 40, 70, 130, 90, 150], 1e-13)
    for rest in (qd[0], qd[-1], qdd[0], qdd[-1]):
        assert np.max(np.abs(rest)) < 1e-12
    # the derivatives belong to the positions
    step = t[1] - t[0]
    assert_near((q[2:] - q[:-2]) / (2 * step), qd[1:-1], 1e-3, 3.0)
    assert_near((qd[2:] - qd[:-2]) / (2 * step), qdd[1:-1], 1e-3, 3.0)


@pytest.mark.parametrize("friction", [True, False])
def test_forward_dynamics_returns_the_accelerations(puma, friction):
    _, q, qd, qdd = quintic()
    reference = puma.inverse_dynamics(q, qd, qdd, friction=friction)
    condition = np.linalg.cond(puma.mass_matrix(q)).max()
    assert condition < 1e4
    for inverse in puma.algorithms("inverse_dynamics"):
        tau = puma.inverse_dynamics(q, qd, qdd, friction=friction, algorithm=inverse)
        assert_near(tau, reference, 1e-12, 100.0, inverse)
    for forward in puma.algorithms("forward_dynamics"):
        found = puma.forward_dynamics(q, qd, reference, friction=friction, algorithm=forward)
        # conjugate gradients stop at a residual of 1e-12, the others at round-off
        allowed = 1e-9 if "gradient" in forward else 1e-11
        assert_near(found, qdd, allowed, 1.0 + np.max(norm(qdd)), forward)


def test_the_shoulder_works_hardest(puma):
    """Fig. 3 shows joint 5 (from the tip), "because interactive forces and torques are the strongest" there."""
    _, q, qd, qdd = quintic()
    tau = value(puma, "inverse_dynamics", q=q, qd=qd, qdd=qdd, friction=False)
    assert np.argmax(np.max(np.abs(tau), axis=0)) == 1
    c = value(puma, "velocity_torques", q=q, qd=qd)
    assert 10.0 < np.max(np.abs(tau[:, 1])) < 150.0
    assert np.max(np.abs(c[:, 1])) > 1.0


def test_energy_along_the_move(puma):
    """∫ q̇·(τ − friction) dt is the change of T + U; Simpson's rule on a finer grid."""
    t, q, qd, qdd = quintic(points=4001)
    power = np.sum(qd * puma.inverse_dynamics(q, qd, qdd, friction=False), axis=1)
    h = t[1] - t[0]
    work = h / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    energy = puma.kinetic_energy(q, qd) + puma.potential_energy(q)
    assert_near(work, energy[-1] - energy[0], 1e-9, np.ptp(energy))
