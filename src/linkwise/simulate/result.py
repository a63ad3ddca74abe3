"""What a simulation gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwise.compiler.arrays import is_foreign
from linkwise.robot import Robot


@dataclass(frozen=True)
class Result:
    """A simulated motion. Rows are moments in time; leading axes are those of the batch.

    All that stands in one row belongs to the same moment: the state at ``t``, what was measured there, and
    the torque that acts from then on.
    """

    robot: Robot
    """The robot that moved (not the controller's model)."""
    t: np.ndarray
    """[s], shape (rows,)."""
    q: np.ndarray
    """[rad or m], shape (..., rows, n)."""
    qd: np.ndarray
    tau: np.ndarray
    """Torques that acted, without friction [N·m or N], shape (..., rows, n)."""
    reference: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    """q_d, q̇_d, q̈_d, each broadcastable to q."""
    final_q: np.ndarray
    """The state at the end, which is one step after the last row at the latest: shape (..., n)."""
    final_qd: np.ndarray
    duration: float
    """[s]"""
    recorded: dict[str, np.ndarray] = field(default_factory=dict)
    """What else was asked for: command, q_measured, qd_measured, memory."""

    @property
    def error(self) -> np.ndarray:
        """q − q_d [rad or m], shape (..., rows, n)."""
        if self.reference is None:
            raise ValueError("this simulation had no reference")
        reference = self.reference[0]
        if is_foreign(self.q):
            from linkwise.gpu.rollout import placed_like

            reference = placed_like(reference, self.q)
        return self.q - reference

    def energy(self) -> np.ndarray:
        """Kinetic and potential energy together [J], shape (..., rows)."""
        return self.robot.kinetic_energy(self.q, self.qd) + self.robot.potential_energy(self.q)
