"""Between motors and joints: reductions, coupled axes, drive gains.

Motor angles p and joint angles q are related by p = R (q − offset), so velocities by ṗ = R q̇ and torques, because
power is the same on both sides, by τ = Rᵀ τ_motor. A row of R with more than one entry is a coupled motor: its rotor
and its friction belong to an axis of its own, for example q₅ + q₆ in the wrist of a Stäubli TX40.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.identify.errors import LogError
from linkwise.solve import linear
from linkwise.solve.linear import product


@dataclass(frozen=True)
class Transmission:
    """How motors move joints: ``ratio`` is R, shape (n, n); ``offset`` [rad or m], shape (n,)."""

    ratio: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(
        cls,
        dof: int,
        *,
        reduction: Sequence[float] | None = None,
        coupling: Sequence[Sequence[float]] | None = None,
        offset: Sequence[float] | None = None,
    ) -> Transmission:
        """From reductions (motor turns per joint turn), or from the whole matrix R as ``coupling``.

        Args:
            dof: number of joints.
            reduction: motor turns per joint turn, shape (n,).
            coupling: the matrix R, shape (n, n), in place of the reductions.
            offset: joint positions where motor angles are zero [rad or m], shape (n,).
        """
        if coupling is not None:
            ratio = np.asarray(coupling, dtype=float)
        else:
            ratio = np.diag(np.ones(dof) if reduction is None else np.asarray(reduction, dtype=float))
        shift = np.zeros(dof) if offset is None else np.asarray(offset, dtype=float)
        for name, value, shape in (("coupling", ratio, (dof, dof)), ("offset", shift, (dof,))):
            if value.shape != shape:
                raise LogError(f"{name}: expected shape {shape}, got {value.shape}")
        if float(linear.singular_values(ratio)[-1]) <= 1e-12 * float(np.abs(ratio).max()):
            raise LogError("coupling: the matrix is singular: some joint would not be moved by any motor")
        return cls(ratio, shift)

    def joint_positions(self, p: np.ndarray) -> np.ndarray:
        """q from motor angles p, shape (N, n)."""
        return linear.solve(self.ratio, p.T).T + self.offset

    def joint_velocities(self, pd: np.ndarray) -> np.ndarray:
        """q̇ from motor speeds, shape (N, n)."""
        return linear.solve(self.ratio, pd.T).T

    def joint_torques(self, motor: np.ndarray) -> np.ndarray:
        """τ from motor torques, shape (N, n)."""
        return product(motor, self.ratio)

    def coupled_axes(self) -> np.ndarray:
        """Axes that motors turn and no joint does alone, shape (k, n): speeds are axes @ q̇, joint torques axesᵀ f."""
        rows = [
            row / row[k] for k, row in enumerate(self.ratio) if np.count_nonzero(row) > 1 and row[k] != 0.0
        ]
        return np.array(rows).reshape(len(rows), len(self.ratio))
