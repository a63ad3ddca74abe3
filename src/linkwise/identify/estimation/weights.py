"""Weights of the joints from the size of their residuals: iterated weighted least squares."""

from __future__ import annotations

import numpy as np

from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.solvers import solve


def iterated_weights(
    regression: Regression, solver: str = "qr", iterations: int = 20
) -> tuple[np.ndarray, np.ndarray]:
    """(parameters (p,), weights of the joints (n,)) of weighted least squares, without their uncertainty."""
    weights = 1.0 / positive(np.sqrt((regression.tau**2).mean(axis=0)))
    for _ in range(iterations):
        x = solve(*regression.compressed(weights), solver)
        before, weights = weights, 1.0 / positive(regression.spread(x))
        if np.allclose(weights, before, rtol=1e-4):
            break
    return solve(*regression.compressed(weights), solver), weights


def positive(size: np.ndarray) -> np.ndarray:
    """Standard deviations, never zero."""
    return np.maximum(size, 1e-12 * max(float(size.max()), 1e-300))
