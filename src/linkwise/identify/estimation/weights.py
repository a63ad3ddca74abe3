"""Weights of the joints from the size of their residuals: iterated weighted least squares."""

from __future__ import annotations

import numpy as np

from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.solvers import solve
from linkwise.solve import linear
from linkwise.solve.linear import product

PASSES = 3  # in which the weights of ``solved`` are renewed
RIDGE = 1e-9  # of columns of unit length
FINEST = 3e-3  # relative residual under which differences do not count


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


def solved(G: np.ndarray, ridge: float = RIDGE, finest: float = FINEST) -> tuple[np.ndarray, np.ndarray]:
    """(relative residual of every joint, parameters) of weighted least squares, from products of the columns alone.

    Args:
        G: AᵀA of each joint's [columns, torque] in units of its torque, (n, p + 1, p + 1).
        ridge: of columns of unit length.
        finest: relative residual under which a joint's weight does not grow.
    """
    p = G.shape[1] - 1
    weights = np.ones(len(G))
    relative, x = weights, np.zeros(p)
    for _ in range(PASSES):
        S = combined(weights, G)
        length = np.sqrt(np.maximum(np.diag(S)[:p], 1e-300))
        unit = S[:p, :p] / length / length[:, None]
        x = linear.solve(unit + ridge * np.eye(p), S[:p, p] / length) / length
        z = np.append(x, -1.0)
        relative = np.sqrt(np.maximum(product(product(G, z), z), 1e-18))
        weights = 1.0 / np.maximum(relative, finest) ** 2
    return relative, x


def combined(factors: np.ndarray, arrays: np.ndarray) -> np.ndarray:
    """Σ_k factors[k] · arrays[k], added in this order."""
    total = factors[0] * arrays[0]
    for factor, array in zip(factors[1:], arrays[1:], strict=True):
        total = total + factor * array
    return total
