"""Predictive control: real-time iteration. Every sample improves the plan of the last one by a few iterations.

The plan is shifted by the time since it was made, the iteration starts from the measured state, and the first torques
are applied with the feedback gains that belong to them. A failed iteration leaves the last plan in force, with its
gains, for at most ``oldest`` seconds; then the arm is stopped. Torques are always finite and within their limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import ShapeError
from linkwise.flags import flag
from linkwise.once import once
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.iteration import REPORT
from linkwise.optimal.problem import LOWER, UPPER, Problem
from linkwise.optimal.standard import EFFORT, JOINTS, reaching
from linkwise.robot import Robot
from linkwise.simulate.arguments import whole

PLANNED, KEPT, STOPPED = "planned", "kept", "stopped"
"""Where torques come from: the newest plan, an older one, the stop."""
STOP_RATE = 20.0
"""[1/s] at which velocities decay in the stop."""
STUBBORN = 1.0
"""Regularisation at which a plan that is still refused is tried without any again, in the next sample."""
CLOSED = 0.1
"""Sum of |gaps| below which a plan that could not be improved still belongs to the measured state."""
PENALTY = 1e4
"""Of limits of states and tips: their multipliers stay zero in real-time iteration."""


@dataclass(frozen=True, eq=False)
class TimedPlan:
    """States (horizon + 1, ns), torques (horizon, m) and gains (horizon, m, nx) from a time on [s]."""

    time: float
    states: np.ndarray
    torques: np.ndarray
    gains: np.ndarray


class Predictive:
    """A predictive controller: a function of (t, q, q̇, reference) for ``simulate``, with a memory.

    Args:
        problem: what is optimised; or a robot: the problem of ``standard.reaching`` with ``options``.
        iterations: of the solver in every sample.
        first: iterations of the first plan.
        steps: step sizes that an iteration tries.
        oldest: largest age of a plan [s]; None: half of the horizon.
        follow: whether the reference of ``simulate`` is the target of the joints.
        dtype: "float64" or "float32".
        options: of ``reaching``, for a robot: horizon, step, frequency, tip, frame, torque_limits.
    """

    def __init__(
        self,
        problem: Problem | Robot,
        *,
        iterations: int = 1,
        first: int = 20,
        steps: tuple[float, ...] = (1.0, 0.5, 0.25),
        oldest: float | None = None,
        follow: bool = True,
        dtype: str = "float64",
        **options: Any,
    ):
        self._compensates = isinstance(problem, Robot)
        if isinstance(problem, Robot):
            problem = reaching(problem, **options)
        elif not isinstance(problem, Problem) or options:
            raise ProblemError("problem: expected a Problem, or a robot with the arguments of one")
        if not problem.dynamics.flat:
            raise ProblemError(
                f"{problem.robot.name}: predictive control is for joints with one coordinate each"
            )
        if problem.dynamics.remembers:
            raise ProblemError("problem: costs of differences of torques are not for real-time iteration")
        self.problem, self.robot = problem, problem.robot
        self.iterations, self.first = whole("iterations", iterations, 1), whole("first", first, 1)
        self.steps, self.dtype = tuple(steps), dtype
        horizon = problem.horizon * problem.step
        self.oldest = 0.5 * horizon if oldest is None else arguments.number("oldest", oldest, above=0.0)
        if self.oldest > horizon:
            raise ProblemError(f"oldest: a plan is {horizon:g} s long, got {oldest:g}")
        self.follows = flag("follow", follow) and f"{JOINTS}.target" in problem.parameters
        self._aimed, self._p = problem, problem.p.copy()
        self.reset()

    def __repr__(self) -> str:
        problem = self.problem
        return f"<Predictive of {self.robot.name}: {problem.horizon} steps of {problem.step:g} s>"

    def reset(self) -> None:
        """Forget the plan: before the next motion."""
        self.plan: TimedPlan | None = None
        self.status, self.failures, self.samples = PLANNED, 0, 0
        self.report = dict.fromkeys(REPORT, math.nan)
        self._mu = 0.0
        self._resting: np.ndarray | None = None

    def aim(self, values: Mapping[str, Any]) -> None:
        """Other targets or weights from the next sample on; nothing is compiled again.

        Args:
            values: of run-time parameters by name, see ``Problem.table``.
        """
        self._aimed = self._aimed.with_values(values)
        self._p = self._aimed.p.copy()
        self.follows = self.follows and f"{JOINTS}.target" not in values

    # -- one sample ---------------------------------------------------------------------------------------------------

    def __call__(self, t: float, q: Any, qd: Any, reference: Any = None) -> np.ndarray:
        """Torques [N·m or N], shape (n,).

        Args:
            t: time [s]; it starts anew where it goes back.
            q: measured positions [rad or m], shape (n,).
            qd: measured velocities, shape (n,).
            reference: (q_d, …) of ``simulate``; with ``follow`` the target of the joints.
        """
        q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
        n = self.robot.dof
        if q.shape != (n,) or qd.shape != (n,):
            raise ShapeError(f"q: predictive control is for one robot, expected shape ({n},), got {q.shape}")
        if self.plan is not None and t < self.plan.time:
            self.reset()
        if reference is not None and self.follows:
            self._follow(reference)
        self.samples += 1
        known = bool(np.isfinite(q).all() and np.isfinite(qd).all())
        made = self._improved(t, q, qd) if known else None
        if made is not None:
            self.plan, self.status = made, PLANNED
        else:
            self.failures += 1
            self.status = KEPT
        return self._torques(t, q, qd, known)

    def _follow(self, reference: Any) -> None:
        """Targets along the horizon: the reference, extrapolated by its velocity."""
        target, velocity = (np.asarray(part, dtype=float) for part in reference[:2])
        if target.shape != (self.robot.nq,) or not (
            np.isfinite(target).all() and np.isfinite(velocity).all()
        ):
            return
        ahead = self.problem.step * np.arange(self.problem.horizon + 1.0)[:, np.newaxis]
        self._p[:, self.problem.where(f"{JOINTS}.target")] = target + ahead * velocity
        if f"{JOINTS}.velocity" in self.problem.parameters:
            self._p[:, self.problem.where(f"{JOINTS}.velocity")] = velocity

    def _improved(self, t: float, q: np.ndarray, qd: np.ndarray) -> TimedPlan | None:
        """A new plan for a state; None where there is none that can be used."""
        self._hold_from(q)
        x = np.concatenate([q, qd])
        if self.plan is None or t - self.plan.time > self.oldest:
            states = np.tile(x, (self.problem.horizon + 1, 1))
            torques, turns = np.tile(self._holding(q), (self.problem.horizon, 1)), self.first
        else:
            late = (t - self.plan.time) / self.problem.step
            states, torques = shifted(self.plan.states, late), shifted(self.plan.torques, late)
            turns = self.iterations
        found = None
        for _ in range(turns):
            new_states, new_torques, gains, report = self._iterate(x, states, torques)
            self.report = dict(zip(REPORT, report.tolist(), strict=True))
            if not self._usable(new_states, new_torques, gains):
                more = self.report["regularisation"]
                self._mu = more if more < STUBBORN else 0.0
                continue
            self._mu = self.report["regularisation"]
            # where no step was taken the states that the gains belong to are those of the shifted plan
            states = new_states if self.report["step"] > 0.0 else states
            torques = new_torques
            found = TimedPlan(t, states, torques, gains)
        return found

    def _usable(self, *parts: np.ndarray) -> bool:
        """Whether the last iteration gave a plan: finite, and improved or such that it starts at the measured state."""
        improved = self.report["step"] > 0.0 or self.report["gap"] <= CLOSED
        sound = self.report["sound"] > 0.5 and math.isfinite(self.report["regularisation"])
        return improved and sound and all(np.isfinite(part).all() for part in parts)

    def _iterate(self, x: np.ndarray, states: np.ndarray, torques: np.ndarray) -> tuple[np.ndarray, ...]:
        given = [
            x,
            self._p.ravel(),
            *self._multipliers,
            states.ravel(),
            torques.ravel(),
            np.array([self._mu]),
        ]
        return self.kernel(*(np.asarray(part, self.dtype) for part in given))

    @once
    def kernel(self) -> Any:
        """One iteration in machine code."""
        from linkwise.optimal.iteration import iteration

        return iteration(self.problem, iterations=1, steps=self.steps)

    @once
    def _multipliers(self) -> list[np.ndarray]:
        problem = self.problem
        if not problem.nm:
            return []
        table = np.zeros((problem.horizon + 1, problem.nm))
        table[1:, -2], table[1:, -1] = PENALTY, 1.0 / PENALTY
        return [table.ravel()]

    # -- torques ------------------------------------------------------------------------------------------------------

    def _torques(self, t: float, q: np.ndarray, qd: np.ndarray, known: bool) -> np.ndarray:
        plan, problem = self.plan, self.problem
        if plan is None or t - plan.time > self.oldest:
            self.status = STOPPED
            return self._stopped(q, qd, known)
        at = (t - plan.time) / problem.step
        k = min(int(at), problem.horizon - 1)
        u = plan.torques[k]
        if known:
            self._resting = None
            part = min(at - k, 1.0)
            wanted = (1.0 - part) * plan.states[k] + part * plan.states[k + 1]
            u = u + plan.gains[k] @ (np.concatenate([q, qd]) - wanted)
        return self._within(u)

    def _stopped(self, q: np.ndarray, qd: np.ndarray, known: bool) -> np.ndarray:
        """Bring the arm to rest: gravity torques, and velocities that decay; without sensors gravity torques alone."""
        if known:
            self._resting = q
            n = np.zeros(self.robot.dof)
            torques = np.asarray(self.robot.inverse_dynamics(q, n, -STOP_RATE * qd))
        elif self._resting is not None:
            torques = np.asarray(self.robot.gravity_torques(self._resting))
        elif self.plan is not None:
            torques = np.asarray(self.robot.gravity_torques(self.plan.states[0][: self.robot.nq]))
        else:
            torques = np.zeros(self.robot.dof)
        return self._within(torques[list(self.problem.dynamics.driven)])

    def _holding(self, q: np.ndarray) -> np.ndarray:
        """Torques that hold the arm (m,)."""
        held = np.asarray(self.robot.gravity_torques(q))[list(self.problem.dynamics.driven)]
        return self._within(held)[list(self.problem.dynamics.driven)]

    def _hold_from(self, q: np.ndarray) -> None:
        """Torques count from those that hold the arm where it is."""
        if self._compensates:
            self._p[:, self.problem.where(f"{EFFORT}.target")] = self._holding(q)

    def _within(self, u: np.ndarray) -> np.ndarray:
        """Torques of all joints (n,), within the limits, zero where there is no motor or no number."""
        problem = self.problem
        u = np.where(np.isfinite(u), u, 0.0)
        if problem.boxed:
            u = np.clip(u, self._p[0, problem.where(LOWER)], self._p[0, problem.where(UPPER)])
        found = np.zeros(self.robot.dof)
        found[list(problem.dynamics.driven)] = u
        return found


def shifted(table: np.ndarray, steps: float) -> np.ndarray:
    """Rows some steps later: between two rows interpolated, the last one kept.

    Args:
        table: shape (rows, size).
        steps: how many, not negative.
    """
    last = len(table) - 1
    at = np.minimum(np.arange(len(table)) + steps, float(last))
    low = at.astype(int)
    part = (at - low)[:, np.newaxis]
    return (1.0 - part) * table[low] + part * table[np.minimum(low + 1, last)]
