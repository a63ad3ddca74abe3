"""The prediction on factors is the prediction."""

from __future__ import annotations

import numpy as np

from linkwise.algorithms import udu_prediction
from linkwise.spatial import RigidInertia, Symmetric, Vector


def test_factors_of_the_predicted_inertia():
    rng = np.random.default_rng(0)
    U, D = np.eye(6) + np.triu(rng.normal(size=(6, 6)), 1), rng.uniform(0.5, 2.0, 6)
    lever, h = rng.normal(size=3), rng.normal(size=3)
    own = RigidInertia(9.0, Vector(*h), Symmetric(5.0, 0.1, 0.2, 6.0, 0.3, 7.0))
    M = np.array(udu_prediction.matrix_of(own))
    np.testing.assert_array_equal(M, M.T)
    np.testing.assert_array_equal(M[:3, 3:], cross(h))
    np.testing.assert_array_equal(M[3:, 3:], 9.0 * np.eye(3))
    new = udu_prediction.predicted(udu_prediction.Factors(U.tolist(), D.tolist()), Vector(*lever), own)
    turned = np.eye(6)
    turned[:3, 3:] = cross(lever)
    wanted = turned @ U @ np.diag(D) @ U.T @ turned.T + M
    np.testing.assert_allclose(np.array(udu_prediction.product(new)), wanted, rtol=1e-10, atol=1e-12)


def cross(v: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
