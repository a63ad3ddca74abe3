"""Gains as vectors and as full matrices: laws beside their formulas in NumPy, on robots of 1 to 5 joints."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.control.controller import Reference
from linkwise.control.gains import Gains


def gain(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """Numbers of each joint, or a matrix that is not symmetric and whose symmetric part is positive."""
    own = rng.uniform(20.0, 90.0, n)
    twist = rng.normal(size=(n, n))
    return own if kind == "vector" else np.diag(own) + 3.0 * (twist - twist.T)


def times(K: np.ndarray, x: np.ndarray) -> np.ndarray:
    return K @ x if K.ndim == 2 else K * x


@pytest.mark.parametrize("n", range(1, 6))
@pytest.mark.parametrize("kinds", [("vector", "matrix"), ("matrix", "vector"), ("matrix", "matrix")])
def test_laws_are_their_formulas(n, kinds):
    robot, rng = lw.random_robot(70 + n, n, joints="RP"), np.random.default_rng(n)
    kp, kd = (gain(rng, n, kind) for kind in kinds)
    ki = gain(rng, n, kinds[0])
    q, qd, q_d, qd_d, qdd_d, summed = rng.uniform(-1.0, 1.0, (6, n))
    e, ed = q - q_d, qd - qd_d
    M, bias = robot.mass_matrix(q), robot.inverse_dynamics(q, qd, np.zeros(n), friction=False)
    wanted = {
        control.GravityPD: robot.gravity_torques(q) - times(kp, e) - times(kd, ed),
        control.PointToPoint: M @ (-times(kd, qd) - times(kp, e)) + bias,
        control.Tracking: M @ (qdd_d - times(kd, ed) - times(kp, e)) + bias,
        control.IntegralTracking: M @ (qdd_d - times(kd, ed) - times(kp, e) - times(ki, summed)) + bias,
    }
    for kind, torques in wanted.items():
        law = kind(robot, Gains(kp, kd, ki))
        given = {name: values.tolist() for name, values in law.gains.items()}
        reference = Reference(q_d.tolist(), qd_d.tolist(), qdd_d.tolist())
        tau, _ = law.control(
            law.links(), given, q.tolist(), qd.tolist(), reference, summed.tolist()[: law.memory_size], 0.01
        )
        np.testing.assert_allclose(np.array(tau, float), torques, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("n", range(1, 5))
def test_stable_gains_are_those_whose_errors_vanish(n):
    """Beside the roots of det(s³ + K_d s² + K_p s + K_i), whose signs change where K_i is too large."""
    rng = np.random.default_rng(n)
    kp, kd = gain(rng, n, "matrix"), gain(rng, n, "matrix")
    seen = set()
    for part in (0.0, 0.1, 0.9, 1.2, 4.0):
        ki = part * np.diag(np.diagonal(kp) * np.diagonal(kd))
        zero, one = np.zeros((n, n)), np.eye(n)
        system = np.block([[zero, one, zero], [zero, zero, one], [-ki, -kp, -kd]])
        if part == 0.0:
            system = system[n:, n:]
        stable = bool((np.linalg.eigvals(system).real < 0.0).all())
        assert Gains(kp, kd, ki).stable() is stable
        seen.add(stable)
    assert seen == {True, False}
    alone = Gains(np.diagonal(kp).copy(), np.diagonal(kd).copy(), np.full(n, 10.0))
    assert alone.stable()
    assert not Gains(alone.kp, alone.kd, alone.kp * alone.kd * 1.01).stable()


@pytest.mark.parametrize(
    ("gains", "stable"),
    [
        ((1.0, 1.0), True),
        ((0.0, 1.0), False),  # nothing brings it back
        ((1.0, 0.0), False),  # nothing damps it
        ((1.0, 1.0, 0.999), True),
        ((1.0, 1.0, 1.0), False),  # roots on the axis
        (([1.0, 0.0], 1.0), False),
        ((1.0, [1.0, 0.0]), False),
        (([2.0, 1.0], [1.0, 1.0], [1.5, 1.5]), False),  # the second joint alone
    ],
)
def test_gains_at_the_edge_of_stability(gains, stable):
    given = [np.asarray(each, float) if isinstance(each, list) else each for each in gains]
    assert Gains(*given).stable() is stable
