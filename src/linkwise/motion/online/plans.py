"""Plans of online moves: phases of constant jerk of many robots, and the motion of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.motion import arguments
from linkwise.motion.online import kernels
from linkwise.motion.online.scalars import PHASES
from linkwise.motion.trajectory import Moment, Trajectory


@dataclass(frozen=True)
class OnlinePlan:
    """Moves of many robots at once; leading axes as those of the states."""

    duration: np.ndarray
    """[s], shape (..., n): of every joint; all the same where joints arrive together."""
    start: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Positions, velocities and accelerations at the start, shape (..., n) each."""
    durations: np.ndarray
    """Of the phases of both tracks [s], shape (..., n, 2, 10)."""
    jerks: np.ndarray
    """Of the phases [rad/s³ or m/s³], shape (..., n, 2, 10)."""
    weight: np.ndarray
    """Of the first track, shape (..., n); the second one has the rest."""
    fault: np.ndarray
    """True where a joint has no move: a number is not finite, a limit is not positive, or the target is beyond a limit;
    shape (..., n)."""

    def at(self, t: Any) -> Moment:
        """The motion at the times t [s], which broadcast with the leading axes: q, qd, qdd, shape (..., n).

        After its end a joint keeps the acceleration of its target.
        """
        time = np.asarray(arguments.numbers("t", t))[..., np.newaxis, np.newaxis]
        q, qd, qdd = (x[..., np.newaxis] for x in self.start)
        flat = (*self.weight.shape, 2 * PHASES)
        given = (self.durations.reshape(flat), self.jerks.reshape(flat), self.weight[..., np.newaxis])
        return Moment(*kernels.state_kernel()(time, q, qd, qdd, *given))


class OnlineMove(Trajectory):
    """The move of one robot.

    Args:
        plan: a plan without leading axes.
    """

    def __init__(self, plan: OnlinePlan):
        self.plan = plan
        self.dof = plan.duration.shape[-1]
        self.begin, self.end = 0.0, float(plan.duration.max(initial=0.0))

    def _inside(self, t: np.ndarray) -> Moment:
        return self.plan.at(t)

    def corners(self) -> np.ndarray:
        switches = np.cumsum(self.plan.durations, axis=-1).ravel()
        return np.unique(np.clip(np.concatenate([switches, [0.0, self.end]]), 0.0, self.end))
