"""The problem of ``physical`` by Newton's method with a barrier: slower than the conic solver, but it does not stall.

With P_k(v) the links' pseudo-inertias in coordinates in which the prior is the unit matrix,

    ½ vᵀQv + cᵀv + γ Σ_k (tr P_k − log det P_k) − μ (Σ_k log det(P_k − ε1) + Σ_j log v_j)

is convex, and finite at the prior, from where Newton's method starts; μ is reduced until it has no effect on the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.solve import linear
from linkwise.solve.linear import product

BARRIERS = 10.0 ** -np.arange(0.0, 9.0)  # μ
STEPS = 200  # of Newton's method for one barrier
DECREASE = 1e-10  # of the objective, expected of the next step, from which a barrier is done with
HALVINGS = 60


@dataclass(frozen=True)
class Interior:
    """One such problem: ``units`` (10, 4, 4) are the pseudo-inertias of a link's ten coordinates."""

    Q: np.ndarray
    c: np.ndarray
    units: np.ndarray
    links: int
    strength: float
    margin: float
    nonnegative: Sequence[int] = ()

    def solve(self) -> np.ndarray:
        """The minimum v (p,)."""
        v = np.zeros(len(self.c))
        unit = np.einsum("aij,ij->a", self.units, np.eye(4))  # the coordinates of the unit matrix: the prior
        v[: 10 * self.links] = np.tile(unit, self.links)
        v[self._walls] = 1.0
        for barrier in BARRIERS:
            v = self._descend(v, float(barrier))
        return v

    @property
    def _walls(self) -> list[int]:
        """What must not be negative and matters: without a column, a barrier alone would drive it to infinity."""
        return [k for k in self.nonnegative if self.Q[k, k] > 0.0]

    def _descend(self, v: np.ndarray, barrier: float) -> np.ndarray:
        value = self.value(v, barrier)
        for _ in range(STEPS):
            gradient, hessian = self._derivatives(v, barrier)
            scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
            scaled = hessian * np.outer(scale, scale) + 1e-14 * np.eye(len(v))
            step = -scale * linear.solve_least_squares(scaled, scale * gradient)
            slope = linear.dot(gradient, step)
            if -slope <= DECREASE * max(1.0, abs(value)) or not np.isfinite(slope):
                break
            length = 1.0
            for _ in range(HALVINGS):
                trial = self.value(v + length * step, barrier)
                if trial <= value + 1e-4 * length * slope:
                    break
                length *= 0.5
            else:
                break  # the objective does not resolve smaller steps
            v, value = v + length * step, trial
        return v

    def value(self, v: np.ndarray, barrier: float) -> float:
        """The objective, infinite outside."""
        P = self._bodies(v)
        inside, inner = _log_det(P), _log_det(P - self.margin * np.eye(4))
        positive = v[self._walls]
        if inside is None or inner is None or (positive <= 0).any():
            return np.inf
        entropy = float(np.trace(P, axis1=1, axis2=2).sum()) - inside
        walls = inner + float(np.log(positive).sum())
        return linear.dot(0.5 * product(self.Q, v) + self.c, v) + self.strength * entropy - barrier * walls

    def _derivatives(self, v: np.ndarray, barrier: float) -> tuple[np.ndarray, np.ndarray]:
        gradient, hessian = product(self.Q, v) + self.c, self.Q.copy()
        P = self._bodies(v)
        trace = np.einsum("aii->a", self.units)
        for matrices, weight in ((P, self.strength), (P - self.margin * np.eye(4), barrier)):
            for k, inverse in enumerate(np.linalg.inv(matrices)):
                own = slice(10 * k, 10 * k + 10)
                turned = inverse @ self.units  # P⁻¹E_a, (10, 4, 4)
                gradient[own] -= weight * np.einsum("aii->a", turned)
                hessian[own, own] += weight * np.einsum("aij,bji->ab", turned, turned)
        gradient[: 10 * self.links] += self.strength * np.tile(trace, self.links)
        walls = self._walls
        gradient[walls] -= barrier / v[walls]
        hessian[walls, walls] += barrier / v[walls] ** 2
        return gradient, hessian

    def _bodies(self, v: np.ndarray) -> np.ndarray:
        return product(v[: 10 * self.links].reshape(-1, 10), self.units.reshape(10, 16)).reshape(-1, 4, 4)


def _log_det(matrices: np.ndarray) -> float | None:
    """Σ log det, or None where one is not positive definite."""
    try:
        triangles = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return None
    return 2.0 * float(np.log(np.diagonal(triangles, axis1=1, axis2=2)).sum())
