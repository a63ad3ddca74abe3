"""Accelerations and forces of frames that the ground holds (``optimal.touching``) on plain numbers, beside NumPy."""

import numpy as np
import pytest

from linkwise.optimal.touching import Touching


@pytest.mark.parametrize("flags", [(1, 1, 1), (1, 0, 1), (0, 1, 0), (0, 0, 0)])
def test_accelerations_forces_and_their_derivatives(flags):
    rng = np.random.default_rng(2)
    W, J = rng.normal(size=(5, 6)), rng.normal(size=(3, 5))
    M, net, rates, held = W @ W.T, rng.normal(size=5), rng.normal(size=3), np.array(flags) > 0
    arrays = [np.array(np.asarray(x, float).tolist(), object) for x in (M, net, J, rates, flags)]
    system = Touching(*arrays)
    # M q̈ − Jᵀ f = net and J q̈ = −γ in the rows that are held; other forces are zero
    A = J[held]
    whole = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    inverse = np.linalg.inv(whole)
    expected = inverse @ np.concatenate([net, -rates[held]])
    force = np.zeros(3)
    force[held] = expected[5:]
    np.testing.assert_allclose(system.qdd.astype(float), expected[:5], atol=1e-9)
    np.testing.assert_allclose(np.where(held, system.force.astype(float), 0.0), force, atol=1e-9)
    rows, columns = np.zeros((8, 8)), np.concatenate([np.arange(5), 5 + np.flatnonzero(held)])
    rows[np.ix_(columns, columns)] = inverse
    P, Q = system.inverses(forces=True)
    np.testing.assert_allclose(P.astype(float), rows[:5], atol=1e-9)
    np.testing.assert_allclose(Q.astype(float), rows[5:], atol=1e-9)
    assert system.inverses()[1] is None
