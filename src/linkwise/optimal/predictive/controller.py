"""Predictive control: real-time iteration. Every sample improves the plan of the last one by a few iterations.

The plan is shifted by the time since it was made, the iteration starts from the measured state, and the first torques
are applied with the feedback gains that belong to them. A failed iteration leaves the last plan in force, with its
gains, for at most ``oldest`` seconds; then the arm is stopped. ``watching`` decides which readings are believed and
what the model misses, ``guard`` keeps limits of speed and position and brakes. Torques are always finite and within
their limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core.once import once
from linkwise.errors import ShapeError, UnknownNameError
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError, whole
from linkwise.optimal.parameter_table import LOWER, UPPER
from linkwise.optimal.predictive import plans, watching
from linkwise.optimal.predictive.guard import FAR, Bounds, Guard, finite_torques
from linkwise.optimal.predictive.progress import NOT_MOVING, WANDERING, Progress
from linkwise.optimal.predictive.standard import (
    CRUISE,
    EFFORT,
    FREQUENCY,
    JOINTS,
    TIP,
    reaching,
    target_distance,
    tip_distance,
)
from linkwise.optimal.problem import Problem
from linkwise.robot.robot import Robot

PLANNED, KEPT, STOPPED, NOT_CONVERGING = "planned", "kept", "stopped", "not converging"
"""Where torques come from: the newest plan, an older one, the stop, the stop because the target is not approached."""
PENALTY = 1e4
"""Of limits of states and tips: their multipliers stay zero in real-time iteration."""
REASONS = {
    watching.IMPLAUSIBLE: "readings of {joint} cannot be: they are not where the torques lead",
    watching.STILL: "the position of {joint} does not change though the torques should move it: "
    "its encoder is frozen, or the joint is blocked, or has more friction than the model",
}
"""Why the sensors stop the arm."""


@dataclass(frozen=True, eq=False)
class TimedPlan:
    """States (horizon + 1, ns), torques (horizon, m) and gains (horizon, m, nx) from a time on [s]."""

    time: float
    states: np.ndarray
    torques: np.ndarray
    gains: np.ndarray


class Predictive:
    """A predictive controller: a function of (t, q, q̇, reference) for ``simulate``, with a memory.

    ``status`` says where the torques of the last sample came from, ``reason`` why they are not those of a new plan.

    Args:
        problem: what is optimised; or a robot: the problem of ``standard.reaching`` with ``options``.
        iterations: of the solver in every sample.
        first: iterations of the first plan.
        steps: step sizes that an iteration tries.
        oldest: largest age of a plan [s]; None: half of the horizon.
        follow: whether the reference of ``simulate`` is the target of the joints.
        position_limits: True: the robot's; False: none; or (lower, upper) [rad or m], each one number or (n,).
        velocity_limits: True: the robot's; False: none; or one number or (n,) [rad/s or m/s].
        dtype: "float64" or "float32".
        options: of ``reaching``, for a robot: horizon, step, frequency, tip, frame, torque_limits.
    """

    def __init__(
        self,
        problem: Problem | Robot,
        *,
        iterations: int = 1,
        first: int = 20,
        steps: tuple[float, ...] = plans.STEPS,
        oldest: float | None = None,
        follow: bool = True,
        position_limits: Any = True,
        velocity_limits: Any = True,
        dtype: str = "float64",
        **options: Any,
    ):
        self._standard = isinstance(problem, Robot)
        self._frequency = 1.0
        if isinstance(problem, Robot):
            self._frequency = arguments.number("frequency", options.get("frequency", FREQUENCY), above=0.0)
            problem = reaching(problem, **options)
        elif not isinstance(problem, Problem) or options:
            raise ProblemError("problem: expected a Problem, or a robot with the arguments of one")
        if not problem.dynamics.flat:
            raise ProblemError(
                f"{problem.robot.name}: predictive control is for joints with one coordinate each"
            )
        if problem.dynamics.remembers:
            raise ProblemError("problem: costs of differences of torques are not for real-time iteration")
        if problem.dynamics.timed or problem.dynamics.through:
            raise ProblemError("problem: predictive control is for steps of one duration, without contacts")
        self.problem, self.robot = problem, problem.robot
        self.iterations, self.first = whole("iterations", iterations, 1), whole("first", first, 1)
        if dtype not in ("float64", "float32"):
            raise UnknownNameError(f"dtype: expected float64 or float32, got {dtype!r}")
        self.steps, self.dtype = tuple(steps), dtype
        horizon = problem.horizon * problem.step
        self.oldest = 0.5 * horizon if oldest is None else arguments.number("oldest", oldest, above=0.0)
        if self.oldest > horizon:
            raise ProblemError(f"oldest: a plan is {horizon:g} s long, got {oldest:g}")
        self.follows = flag("follow", follow) and f"{JOINTS}.target" in problem.parameters
        self.bounds = Bounds.of(self.robot, position_limits, velocity_limits)
        self.tip = self._standard and f"{TIP}.position" in problem.parameters
        self.guard = Guard(problem.dynamics, self.robot, frame=options.get("frame"), of_pose=self.tip)
        self._limits = self.bounds.numbers()
        self._reach = np.minimum(target_distance(self.bounds.speed, self._frequency), 1e9)
        self._tip_reach = tip_distance(problem, self.bounds.speed, self._frequency) if self.tip else None
        self._far = np.full(problem.nu, FAR)
        self._aimed, self._p = problem, problem.p.copy()
        self._goals = self._targets(problem.p)
        self.reset()

    def __repr__(self) -> str:
        problem = self.problem
        return f"<Predictive of {self.robot.name}: {problem.horizon} steps of {problem.step:g} s>"

    def reset(self) -> None:
        """Forget the plan and every fault: before the next motion."""
        self.plan: TimedPlan | None = None
        self.status, self.reason, self.failures, self.samples = PLANNED, "", 0, 0
        self.settled = False
        self.report = dict.fromkeys(plans.REPORT, math.nan)
        self.progress = Progress()
        self._mu, self._short, self._weak, self._unheard = 0.0, "", "", ""
        n = self.robot.dof
        self._memory = np.zeros(watching.Memory(n).size)
        self._caused = np.zeros(n)
        self._time: float | None = None
        self._period = 0.0
        self.disturbance = np.zeros(n)

    def aim(self, values: Mapping[str, Any]) -> None:
        """Other targets or weights from the next sample on; nothing is compiled again.

        Args:
            values: of run-time parameters by name, see ``Problem.table``.
        """
        self._aimed = self._aimed.with_values(values)
        self._p = self._aimed.p.copy()
        self._goals = self._targets(self._p)
        self.follows = self.follows and f"{JOINTS}.target" not in values
        self.progress = Progress()

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
        t, n = arguments.time("t", t), self.robot.dof
        if q.shape != (n,) or qd.shape != (n,):
            raise ShapeError(f"q: predictive control is for one robot, expected shape ({n},), got {q.shape}")
        if self._time is not None and t < self._time:
            self.reset()
        if reference is not None and self.follows:
            self._follow(reference)
        self.samples += 1
        since = 0.0 if self._time is None else t - self._time
        self._period, self._time = since if since > 0.0 else self._period or self.problem.step, t
        state, self._modelled, disturbance, fault, self._memory = self.guard.watch(
            q, qd, self._caused, np.array([since]), self._limits["speed"], self._memory
        )
        code, joint, doubted, known = fault.tolist()
        self.disturbance = disturbance
        if known < 0.5:
            self.status, self.reason = STOPPED, "no state has been measured yet"
            self.failures += 1
            return np.zeros(n)
        stop = self._judged(since, state, code, joint)
        made = None
        if not stop:
            made = self._improved(t, state, disturbance) if doubted < 0.5 else None
            if made is not None:
                self.plan, self.status, self.reason = made, PLANNED, self._unheard
            else:
                self.failures += 1
                self.status = KEPT
                self.reason = "a reading was not believed" if doubted > 0.5 else "no better plan was found"
                if self._short.startswith("at rest"):
                    self.reason = f"{self._short}: {self.reason}"
        return self._commanded(t, state, stop)

    def _judged(self, since: float, state: np.ndarray, code: float, joint: float) -> bool:
        """Whether the arm is to be stopped, and why."""
        if code > 0.5:
            name = self.robot.joint_names[int(joint)] if joint >= 0.0 else "all joints"
            self.status, self.reason = STOPPED, REASONS[code].format(joint=name)
            return True
        if not self._standard:
            return False
        if self.tip:
            target = [self._pose_on_the_way(state)[2]]
        else:
            target = [self._goals[0], self._limits["lowest"], self._limits["highest"]]
        way = self.progress
        (verdict, arrived, way.distance), way.memory = self.guard.progress(
            state, np.array([since]), self._limits["speed"], *target, way.memory
        )
        self.settled = way.arrived = bool(arrived > 0.5)
        if verdict == WANDERING:
            self.status = NOT_CONVERGING
            self.reason = f"the arm moves, and the target is not approached: {self._words()}"
            return True
        self._short = f"at rest, {self._words()}" if verdict == NOT_MOVING else self._outside()
        return False

    def _words(self) -> str:
        return f"{self.progress.distance:.3g} {'m or rad' if self.tip else 'rad or m'} are left"

    def _outside(self) -> str:
        """By how much the joints' target is outside of their range, in words."""
        goal = self._goals[0]
        beyond = np.maximum(goal - self._limits["highest"], self._limits["lowest"] - goal)
        if self.tip or not (beyond > 0.0).any():
            return ""
        k = int(np.argmax(beyond))
        return f"the target of {self.robot.joint_names[k]} is {beyond[k]:.3g} outside of its range"

    def _too_weak(self, hold: np.ndarray, least: np.ndarray, most: np.ndarray) -> str:
        """Which motor cannot hold the arm where it is, with the masses that the disturbance stands for, in words."""
        over = np.flatnonzero((hold <= least) | (hold >= most))
        if not over.size:
            return ""
        k = int(over[0])
        low, high = self._torque_limits()
        name = self.robot.joint_names[self.problem.dynamics.driven[k]]
        limit = high[k] if hold[k] >= most[k] else low[k]
        return f"the motor of {name} cannot hold the arm here: that takes more than its limit of {limit:.3g}"

    def _targets(self, p: np.ndarray) -> np.ndarray:
        """The joints' targets along the horizon, (rows, n)."""
        name = f"{JOINTS}.target"
        return p[:, self.problem.where(name)].copy() if name in self.problem.parameters else np.zeros((1, 0))

    def _follow(self, reference: Any) -> None:
        """Targets along the horizon: the reference, extrapolated by its velocity, at most as fast as the joints are.

        A reference that is not a number leaves the target as it is, and ``reason`` says so.
        """
        target, *more = (np.asarray(part, dtype=float) for part in reference[:2])
        velocity = more[0] if more else np.zeros(target.shape)
        if target.shape != (self.robot.nq,) or velocity.shape != target.shape:
            raise ShapeError(
                f"reference: expected (q_d, …) of shape ({self.robot.nq},), got {target.shape} and {velocity.shape}"
            )
        self._unheard = ""
        if not (np.isfinite(target).all() and np.isfinite(velocity).all()):
            self._unheard = "the reference is not a number: the target stays what it was"
            return
        most = CRUISE * self._limits["speed"]
        velocity = np.clip(velocity, -most, most)
        ahead = self.problem.step * np.arange(self.problem.horizon + 1.0)[:, np.newaxis]
        goals = target + ahead * velocity
        if goals.shape != self._goals.shape or (goals != self._goals).any():
            self.progress = Progress()
        self._goals = goals
        self._p[:, self.problem.where(f"{JOINTS}.target")] = goals
        if f"{JOINTS}.velocity" in self.problem.parameters:
            self._p[:, self.problem.where(f"{JOINTS}.velocity")] = velocity

    def _improved(self, t: float, x: np.ndarray, disturbance: np.ndarray) -> TimedPlan | None:
        """A new plan for a state; None where there is none that can be used."""
        self._set_numbers(x, disturbance)
        if self.plan is None or t - self.plan.time > self.oldest:
            states = np.tile(x, (self.problem.horizon + 1, 1))
            torques, turns, late = np.tile(self._held, (self.problem.horizon, 1)), self.first, 0.0
        else:
            late = (t - self.plan.time) / self.problem.step
            states, torques, turns = self.plan.states, self.plan.torques, self.iterations
        newest = None
        for _ in range(turns):
            new_states, new_torques, gains, report = self._iterate(x, states, torques, late)
            self.report = dict(zip(plans.REPORT, report.tolist(), strict=True))
            self._mu = self.report["regularisation"]
            if self.report["usable"] > 0.5:
                newest = TimedPlan(t, new_states, new_torques, gains)
                states, torques, late = new_states, new_torques, 0.0
        return newest

    def _iterate(
        self, x: np.ndarray, states: np.ndarray, torques: np.ndarray, late: float
    ) -> tuple[np.ndarray, ...]:
        given = [
            x,
            self._p.ravel(),
            *self._multipliers,
            states.ravel(),
            torques.ravel(),
            np.array([late]),
            np.array([self._mu]),
        ]
        return self.kernel(*(np.asarray(part, self.dtype) for part in given))

    @once
    def kernel(self) -> Any:
        """From one plan to the next in machine code."""
        return plans.plan_kernel(self.problem, steps=self.steps)

    @once
    def _feedback(self) -> Any:
        """Torques of a plan."""
        return plans.torques_kernel(self.problem)

    @once
    def _multipliers(self) -> list[np.ndarray]:
        return [table.ravel() for table in fixed_multipliers(self.problem)]

    # -- numbers of the problem ---------------------------------------------------------------------------------------

    def _torque_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) limits of the motors' torques, finite, (m,)."""
        problem = self.problem
        if not problem.boxed:
            return finite_torques(np.full(problem.nu, -np.inf)), finite_torques(np.full(problem.nu, np.inf))
        p = self._aimed.p[0]
        return finite_torques(p[problem.where(LOWER)]), finite_torques(p[problem.where(UPPER)])

    def _set_numbers(self, x: np.ndarray, disturbance: np.ndarray) -> None:
        """Numbers of the problem for the state that the arm is in: targets nearby, weights, limits of torques."""
        problem, where = self.problem, self.problem.where
        low, high = self._torque_limits()
        goals = self._goals[0] if self._goals.size else x[: self.robot.nq]
        near, hold, scale, least, most = self.guard.aim(
            x, goals, disturbance, self._reach, low, high, self._limits["lowest"], self._limits["highest"],
            np.array([self._frequency]),
        )  # fmt: skip
        self._held = hold
        self._weak = self._too_weak(hold, least, most)
        if problem.boxed:
            self._p[:, where(LOWER)], self._p[:, where(UPPER)] = least, most
        if not self._standard:
            return
        if f"{EFFORT}.scale" in problem.parameters:
            self._p[:, where(f"{EFFORT}.target")] = hold
            self._p[:, where(f"{EFFORT}.scale")] = scale
        self._p[:, where(f"{JOINTS}.target")] = near + (self._goals - self._goals[0])
        if self.tip:
            position, orientation, _ = self._pose_on_the_way(x)
            self._p[:, where(f"{TIP}.position")] = position
            self._p[:, where(f"{TIP}.orientation")] = orientation

    def _pose_on_the_way(self, x: np.ndarray) -> Any:
        p, where = self._aimed.p[0], self.problem.where
        return self.guard.tip(x, p[where(f"{TIP}.position")], p[where(f"{TIP}.orientation")], self._tip_reach)

    # -- torques ------------------------------------------------------------------------------------------------------

    def _commanded(self, t: float, x: np.ndarray, stop: bool) -> np.ndarray:
        plan, problem = self.plan, self.problem
        if not stop and (plan is None or t - plan.time > self.oldest):
            self.status, stop = STOPPED, True
            self.reason = "no plan was found" if plan is None else "the plan is too old"
        u = np.zeros(problem.nu)
        if not stop and plan is not None:
            at = (t - plan.time) / problem.step
            k = min(int(at), problem.horizon - 1)
            near, far = plan.states[k : k + 2]
            u, _ = self._feedback(
                x,
                near,
                far,
                np.array([at - k]),
                plan.torques[k],
                plan.gains[k].ravel(),
                -self._far,
                self._far,
            )
            if self.status == PLANNED and self._standard:
                self.reason = self._unheard or self._short or self._weak
        low, high = self._torque_limits()
        tau, self._caused, action = self.guard.command(
            x, self._modelled, u, self.disturbance, np.array([float(stop)]), np.array([self._period]), low, high,
            *self._limits.values(),
        )  # fmt: skip
        self.action = float(action[0])
        found = np.zeros(self.robot.dof)
        found[list(problem.dynamics.driven)] = tau
        return found


def fixed_multipliers(problem: Problem) -> list[np.ndarray]:
    """The table of multipliers (horizon + 1, nm) of real-time iteration, where there are limits: penalties alone.

    Args:
        problem: what is optimised.
    """
    if not problem.nm:
        return []
    table = np.zeros((problem.horizon + 1, problem.nm))
    table[1:, -2], table[1:, -1] = PENALTY, 1.0 / PENALTY
    return [table]
