"""What the solver gives back: the motion, its gains, and what is not met, by name and size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.core.upper import upper

if TYPE_CHECKING:
    from linkwise.optimal.problem import Problem
    from linkwise.report import Plot


@dataclass(frozen=True)
class Violated:
    """A limit that the motion does not keep, at its worst."""

    what: str
    size: float
    """How far beyond the limit."""
    unit: str
    stage: int
    time: float
    """[s]."""

    def __str__(self) -> str:
        where = f"at {self.time:.3f} s (stage {self.stage})" if self.stage else "by the start itself"
        return f"{self.what} is exceeded by {self.size:.3g} {self.unit}, {where}"


@dataclass(frozen=True)
class Missed:
    """How far the last state is from a target."""

    cost: str
    size: float
    unit: str
    unreachable: float = 0.0
    """At least so far beyond the reach of the robot [m]; 0 where that is not known."""

    def __str__(self) -> str:
        text = f"{self.cost} ends {self.size:.3g} {self.unit} from its target"
        if self.unreachable:
            text += f", which is at least {self.unreachable:.3g} m out of reach"
        return text


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Summarised):
    """A motion that a problem asks for."""

    problem: Problem
    q: np.ndarray
    """Positions [rad or m], (horizon + 1, nq)."""
    qd: np.ndarray
    """Velocities [rad/s or m/s], (horizon + 1, n)."""
    tau: np.ndarray
    """Torques of the motors [N·m or N], (horizon, m): each acts for one step."""
    gains: np.ndarray
    """K (horizon, m, nx): u = τ + K (x ⊟ (q, q̇)) is the best reaction to small disturbances."""
    cost: float
    converged: bool
    """Whether no better motion is nearby, gaps are closed and all limits are kept."""
    iterations: int
    gap: float
    """The largest gap between a state and where the dynamics lead from the one before."""
    violations: tuple[Violated, ...]
    missed: tuple[Missed, ...]
    message: str
    costs: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """After every iteration."""
    regularisation: float = 0.0
    multipliers: np.ndarray | None = None
    """Of the limits, (horizon + 1, nm), to start the next solution from."""
    optimality: float = float("nan")
    """Largest |∂cost/∂u| of a torque that is not at its limit, limits of states included by their multipliers."""
    violation: float = 0.0
    """Largest amount by which a limit of states, tips or forces is exceeded; limits of torques are kept exactly."""
    durations: np.ndarray | None = None
    """Of the steps [s], (horizon,), where they are chosen."""

    @property
    def t(self) -> np.ndarray:
        """Times of the states [s], (horizon + 1,)."""
        if self.durations is not None:
            return np.concatenate([[0.0], np.cumsum(self.durations)])
        return self.problem.step * np.arange(self.problem.horizon + 1)

    @property
    def controls(self) -> np.ndarray:
        """Torques, and durations where they are chosen, to start another solution from: (horizon, m) or (horizon,
        m + 1)."""
        return self.tau if self.durations is None else np.hstack([self.tau, self.durations[:, None]])

    @property
    def states(self) -> np.ndarray:
        """(q, q̇) and the torques before where they are part of the state, (horizon + 1, ns)."""
        d = self.problem.dynamics
        before = self.problem.x0[None, d.nq + d.dof :]
        if d.remembers or d.timed:
            rows = np.vstack([before, self.controls[:, (0 if d.remembers else d.motors) :]])
            return np.hstack([self.q, self.qd, rows])
        return np.hstack([self.q, self.qd])

    def plot(self) -> Plot:
        """Positions, velocities and torques over time."""
        d = self.problem.dynamics
        tau = np.zeros((len(self.tau), d.dof))
        tau[:, list(d.driven)] = self.tau
        return upper("report").simulation_plot(
            self.problem.robot, self.t[:-1], self.q[:-1], self.qd[:-1], tau, None
        )

    def _summary(self) -> Summary:
        rows = [
            ["cost", f"{self.cost:.8g}"],
            ["iterations", self.iterations],
            ["largest gap", f"{self.gap:.2g}"],
            ["largest torque", f"{np.abs(self.tau).max():.4g}"],
        ]
        rows += [["not kept", str(violation)] for violation in self.violations]
        rows += [["target", str(missed)] for missed in self.missed]
        title = "Solution: converged" if self.converged else "Solution: not converged"
        return Summary(title, ("", ""), rows, [self.message])
