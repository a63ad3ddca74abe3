"""The backward sweep with NumPy's matrices, for stages too large to be written out; the formulas are ``riccati``'s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.optimal import riccati

if TYPE_CHECKING:
    from linkwise.optimal.code import Code


def array_sweep(
    code: Code, stages: Sequence[np.ndarray], end: Sequence[np.ndarray], mu: float, box: Any
) -> dict[str, np.ndarray]:
    """As ``Code.sweep``."""
    problem = code.problem
    nx, nu, N = problem.nx, problem.nu, len(stages[0])
    slopes, gradient, hessian, gap, _ = stages
    F, H = _full_slopes(code, slopes), unpacked(hessian, nx + nu)
    V, v = unpacked(end[1], nx), end[0]
    k, K = np.zeros((N, nu)), np.zeros((N, nu, nx))
    gradients, hessians, gains = np.zeros((N, nx)), np.zeros((N, nx, nx)), np.ones((N, 3))
    for t in range(N):
        ahead = v + V @ gap[t]
        V = V + mu * np.eye(nx)
        q, Q = gradient[t] + F[t].T @ ahead, H[t] + F[t].T @ (V @ F[t])
        Quu, Qux = Q[nx:, nx:] + mu * np.eye(nu), Q[nx:, :nx]
        low, high = (None, None) if not problem.boxed else (box[0][t], box[1][t])
        step, free, sound = _minimum(Quu, q[nx:], low, high)
        gain = np.zeros((nu, nx))
        if free.any():
            try:
                gain[free] = -np.linalg.solve(Quu[np.ix_(free, free)], Qux[free])
            except np.linalg.LinAlgError:
                sound = False
        v = q[:nx] + Qux.T @ step + gain.T @ (q[nx:] + Quu @ step)
        V = Q[:nx, :nx] + Qux.T @ gain
        V = 0.5 * (V + V.T)
        k[t], K[t], gradients[t], hessians[t] = step, gain, v, V
        gains[t] = step @ q[nx:], step @ Quu @ step, float(sound)
    half = np.tril_indices(nx)
    found = {
        "k": k,
        "K": K,
        "value_gradient": gradients,
        "value_hessian": hessians[:, half[0], half[1]],
        "gain": gains,
    }
    return {name: array[::-1] for name, array in found.items()}


def unpacked(packed: np.ndarray, n: int) -> np.ndarray:
    """Symmetric matrices (..., n, n) of their lower halves."""
    found = np.empty((*packed.shape[:-1], n, n))
    rows, columns = np.tril_indices(n)
    found[..., rows, columns] = packed
    found[..., columns, rows] = packed
    return found


def _full_slopes(code: Code, slopes: np.ndarray) -> np.ndarray:
    """(A, B) side by side, (stages, nx, nx + nu)."""
    if not code.compact:
        return slopes
    h, n = code.problem.step, slopes.shape[1]
    above = h * slopes
    above[:, range(n), range(n)] += 1.0
    return np.concatenate([above, slopes], axis=1)


def _minimum(Q: np.ndarray, q: np.ndarray, low: np.ndarray | None, high: np.ndarray | None):
    """(step, torques that are free, whether Q is positive definite): see ``riccati.box_minimum``."""
    try:
        np.linalg.cholesky(Q)
    except np.linalg.LinAlgError:
        return np.zeros_like(q), np.zeros(len(q), bool), False
    if low is None or high is None:
        return -np.linalg.solve(Q, q), np.ones(len(q), bool), True
    u = np.clip(np.zeros_like(q), low, high)
    free = np.ones(len(q), bool)
    for _ in range(riccati.BOX_STEPS):
        gradient = q + Q @ u
        free = ~(((u <= low) & (gradient > 0)) | ((u >= high) & (gradient < 0)))
        step = np.zeros_like(q)
        if free.any():
            step[free] = -np.linalg.solve(Q[np.ix_(free, free)], gradient[free])
        trials = [np.clip(u + length * step, low, high) - u for length in riccati.SHORTER]
        best = min(trials, key=lambda change: change @ (gradient + 0.5 * (Q @ change)))
        if (np.abs(best) <= 1e-15 * (np.abs(u) + np.abs(u + best))).all():
            break
        u = u + best
    return u, free, True
