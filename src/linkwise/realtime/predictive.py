"""Predictive control in the two-rate runtime: plans from a background task, torques with feedback every sample."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.emit import c
from linkwise.compiler.trace.room import in_one_room
from linkwise.control import Gains
from linkwise.optimal.costs import TipTracking
from linkwise.optimal.parameter_table import LOWER, UPPER
from linkwise.optimal.predictive import plans, progress, watching
from linkwise.optimal.predictive.controller import fixed_multipliers
from linkwise.optimal.predictive.guard import FAR, Guard
from linkwise.optimal.predictive.standard import (
    EFFORT,
    FREQUENCY,
    JOINTS,
    TIP,
    reaching,
    rest_of,
    target_distance,
    tip_distance,
)
from linkwise.optimal.problem import Problem
from linkwise.realtime.limits import SettingsError, positive_time, whole
from linkwise.realtime.program import C_FILES, TwoRatePrograms, file_text, static_function
from linkwise.realtime.report import Report
from linkwise.realtime.runtime import TwoRateController, settings_type
from linkwise.robot.robot import Robot

STOP_FREQUENCY = 15.0  # [rad/s] of the gains of the stop sequence


class _Counts(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("iterations", "failed", "late_ours", "late_scheduler")),
        *((name, ctypes.c_double) for name in ("processor_sum", "processor_most", "duration_most", "time")),
    )


@dataclass(frozen=True)
class PlanCounts:
    """What became of the plans of a run; times in s."""

    iterations: int
    failed: int
    """Iterations whose result could not be used: the last plan stayed in force."""
    late_ours: int
    """Iterations that used the processor for more than the period of plans."""
    late_scheduler: int
    """Iterations that were late because their thread was not running."""
    mean_time: float
    """Mean processor time of an iteration."""
    largest_time: float
    """Largest processor time of an iteration."""
    longest: float
    """Longest iteration, waiting for the processor included."""


class PredictivePrograms(TwoRatePrograms):
    """The generated functions: those of the two-rate structure, which stop the arm, and one iteration of the solver.

    Args:
        problem: what is optimised.
        plant: the robot that is simulated.
        period: of the synchronous task [s].
        steps: step sizes that an iteration tries.
        iterations: of the solver for a plan.
        frequency: of the standard problem [rad/s]; None: another problem, whose targets and weights stay as they are.
        speed: limits of speed [rad/s or m/s], (n,); None: those of the robot.
    """

    def __init__(
        self,
        problem: Problem,
        plant: Robot | None = None,
        period: float = 1e-3,
        *,
        steps: Sequence[float] = plans.STEPS,
        iterations: int = 1,
        frequency: float | None = None,
        speed: np.ndarray | None = None,
    ):
        super().__init__(problem.robot, plant, period)
        self.problem, self.steps, self.iterations = problem, tuple(steps), iterations
        self.frequency = frequency
        self.speed = problem.robot.velocity_limits if speed is None else speed
        tips = [cost.frame for cost in problem.costs if isinstance(cost, TipTracking)]
        self.has_tip = frequency is not None and bool(tips)
        self.guard = Guard(
            problem.dynamics, problem.robot, frame=tips[0] if tips else None, of_pose=self.has_tip
        )

    def source(self) -> str:
        """The whole C file."""
        problem = self.problem
        loops = in_one_room(plans.plan_program(problem, self.iterations, self.steps, "float64"))
        (room,) = (array for array in loops.arrays if array.kind == "scratch")
        numbers: dict[str, Any] = {
            "JOINTS": self.dof,
            "HORIZON": problem.horizon,
            "STEP": repr(problem.step),
            "ROW": problem.np,
            "PARAMETERS": (problem.horizon + 1) * problem.np,
            "PLAN_ROOM": room.columns,
            "PLAN_REPORT": len(plans.REPORT),
            "REPORT_MU": plans.REPORT.index("regularisation"),
            "REPORT_USABLE": plans.REPORT.index("usable"),
        }
        numbers |= {"WATCH_MEMORY": watching.Memory(self.dof).size, "FAR": FAR}
        numbers["FREQUENCY"] = 1.0 if self.frequency is None else float(self.frequency)
        places = {"LOWER_AT": LOWER, "UPPER_AT": UPPER} if problem.boxed else {}
        tables = {"target_reach": np.full(self.dof, FAR)}
        kernels = [self.guard.watch, self.guard.command, self.guard.aim, plans.torques_kernel(problem)]
        if self.frequency is not None:
            if f"{EFFORT}.scale" in problem.parameters:
                places |= {"EFFORT_AT": f"{EFFORT}.target", "SCALE_AT": f"{EFFORT}.scale"}
            places["TARGET_AT"] = f"{JOINTS}.target"
            tables["target_reach"] = np.minimum(target_distance(self.speed, self.frequency), FAR)
        if self.has_tip and self.frequency is not None:
            places |= {"TIP_AT": f"{TIP}.position", "TURN_AT": f"{TIP}.orientation"}
            tables["tip_reach"] = tip_distance(problem, self.speed, self.frequency)
            kernels.append(self.guard.tip)
        if self.frequency is not None:
            numbers |= {"PROGRESS_MEMORY": len(progress.MEMORY), "TARGET": 7 if self.has_tip else self.dof}
            kernels.append(self.guard.progress)
        numbers |= {name: problem.where(parameter).start for name, parameter in places.items()}
        for table in fixed_multipliers(problem):
            tables["multipliers"] = table.ravel()
        numbers["MULTIPLIERS"] = "multipliers," if "multipliers" in tables else ""
        parts = ["/* Generated for " + self.model.name.replace("*/", "") + ". */", "#define _GNU_SOURCE"]
        parts += [f"#define {name} {value}" for name, value in numbers.items()]
        parts.append("#include <stdint.h>")
        parts += [static_function(c.source(each), each.name) for each in self.tasks()]
        for kernel in kernels:
            program: Any = kernel.program("float64")
            parts.append(static_function(c.source(program), program.name))
        parts.append(static_function(c.source(loops, function_name="next_plan"), "next_plan"))
        parts += [_c_table(name, values) for name, values in tables.items()]
        names: list[str] = [*C_FILES]
        names.insert(names.index("harness.c"), "predictive.c")
        return "\n".join([*parts, *map(file_text, names)])


def _c_table(name: str, values: np.ndarray) -> str:
    """A constant array in C."""
    numbers = ", ".join(repr(float(value)) for value in values)
    return f"static const double {name}[{len(values)}] = {{{numbers}}};"


class PredictiveController(TwoRateController):
    """Predictive control in C: a plan every ``plan_period`` in the background, torques with feedback every ``period``.

    A late or failed iteration leaves the last plan in force, with its gains; a plan older than ``oldest_plan``, like
    every other fault, leads into the stop sequence of the two-rate runtime. As in ``optimal.Predictive``, limits of
    speed and position are kept, readings that cannot be stop the loop, and what the model misses is estimated.

    Args:
        problem: what is optimised, for joints with one coordinate and a motor each; or a robot: the problem of
            ``linkwise.optimal.reaching`` with ``described``.
        iterations: of the solver for a plan.
        first_iterations: of the first plan, before the loop starts.
        steps: step sizes that an iteration tries.
        plan_period: from one plan to the next [s]; None: ``period``.
        oldest_plan: largest age of a plan [s]; None: half of the horizon.
        period: of the synchronous task [s].
        gains: of the stop sequence; None: critically damped, 15 rad/s.
        options: further arguments of ``TwoRateController``: plant, limits, deadlines, patience, priority, core, stop,
            stop_time, background, oldest.
        described: horizon, step, frequency, tip, frame and torque_limits of ``reaching``, for a robot.

    Raises:
        SettingsError: a setting is invalid or missing.
    """

    _single_columns = ("plan_age",)
    _wait = 0.002

    def __init__(
        self,
        problem: Problem | Robot,
        *,
        iterations: int = 1,
        first_iterations: int = 20,
        steps: Sequence[float] = plans.STEPS,
        plan_period: float | None = None,
        oldest_plan: float | None = None,
        period: float = 1e-3,
        gains: Gains | None = None,
        described: Mapping[str, Any] | None = None,
        **options: Any,
    ):
        given = dict(described or {})
        frequency = float(given.get("frequency", FREQUENCY)) if isinstance(problem, Robot) else None
        if isinstance(problem, Robot):
            problem = reaching(problem, **given)
        if problem.dynamics.remembers or problem.nu != problem.robot.dof:
            raise SettingsError(
                "problem: the real-time loop takes a motor for each joint and no costs of differences of torques"
            )
        limits = {"following": np.inf, **dict(options.pop("limits", None) or {})}
        super().__init__(
            problem.robot,
            Gains.from_frequency(STOP_FREQUENCY) if gains is None else gains,
            period=period,
            limits=limits,
            **options,
        )
        self.problem = problem
        self.plan_period = self.period if plan_period is None else positive_time("plan_period", plan_period)
        length = problem.horizon * problem.step
        self.oldest_plan = 0.5 * length if oldest_plan is None else positive_time("oldest_plan", oldest_plan)
        if self.oldest_plan > length:
            raise SettingsError(f"oldest_plan: a plan is {length:g} s long, got {oldest_plan:g}")
        self.first_iterations = max(1, whole("first_iterations", first_iterations, 0, 10_000))
        self.programs = PredictivePrograms(
            problem,
            self.programs.plant_robot,
            self.period,
            steps=steps,
            iterations=max(1, whole("iterations", iterations, 0, 1000)),
            frequency=frequency,
            speed=self.limits["speed"],
        )
        self._aimed = problem
        self._parameters = np.ascontiguousarray(problem.p, dtype=float).copy()
        self._changes, self._counts = ctypes.c_int32(0), _Counts()

    def __repr__(self) -> str:
        return f"<PredictiveController of {self.model.name}: {self.problem.horizon} steps>"

    def aim(self, values: Mapping[str, Any]) -> None:
        """Other targets or weights, from the next plan on; may be called from another thread while the loop runs.

        Args:
            values: of run-time parameters by name, see ``Problem.table``; finite.
        """
        self._aimed = self._aimed.with_values(values)
        self._changes.value += 1  # odd: being written
        self._parameters[:] = self._aimed.p
        self._changes.value += 1

    def run(  # type: ignore[override]
        self,
        duration: float,
        *,
        q: Any = None,
        changes: Sequence[tuple[float, Mapping[str, Any]]] = (),
        log: str | os.PathLike[str] | None = None,
    ) -> Report:
        """Control for a while, then stop; blocks until the stop sequence is complete. Ctrl-C stops the loop.

        Args:
            duration: [s].
            q: where a simulated plant starts that has no position of its own, shape (n,); by default at rest
                within its range.
            changes: targets that change on the way: (time [s], values of ``aim``), in ascending order; to a few
                milliseconds.
            log: CSV file, written while the loop runs.

        Returns:
            Why the loop ended, with the cycles of the loop and of the stop sequence; ``plans`` has counts of the plans.
        """
        cycles = self._cycles(duration)
        n = self.model.dof
        start = np.asarray(rest_of(self.model) if q is None else q, dtype=float)
        if start.shape != (n,):
            raise SettingsError(f"q: expected shape ({n},), got {start.shape}")
        table = np.zeros((cycles, 3 * n))
        table[:, :n] = start
        waiting = list(changes)
        self._counts = _Counts()

        def meanwhile() -> None:
            while waiting and self._counts.time >= waiting[0][0]:
                self.aim(waiting.pop(0)[1])

        return self._followed(table, cycles, log, meanwhile)

    @property
    def plans(self) -> PlanCounts:
        """Counts of the plans of the last run."""
        found = self._counts
        return PlanCounts(
            found.iterations,
            found.failed,
            found.late_ours,
            found.late_scheduler,
            found.processor_sum / max(1, found.iterations),
            found.processor_most,
            found.duration_most,
        )

    def _settings_type(self) -> type[ctypes.Structure]:
        class Settings(settings_type(self.model.dof)):  # type: ignore[misc]
            _fields_ = (
                ("parameters", ctypes.c_void_p),
                ("changes", ctypes.c_void_p),
                ("plans", ctypes.c_void_p),
                ("plan_period", ctypes.c_double),
                ("oldest_plan", ctypes.c_double),
                ("first_iterations", ctypes.c_int64),
            )

        return Settings

    def _settings(self, code, table, cycles, log):
        settings, keep = super()._settings(code, table, cycles, log)
        settings.parameters = self._parameters.ctypes.data
        settings.changes = ctypes.addressof(self._changes)
        settings.plans = ctypes.addressof(self._counts)
        settings.plan_period, settings.oldest_plan = self.plan_period, self.oldest_plan
        settings.first_iterations = self.first_iterations
        return settings, (*keep, self._parameters, self._changes, self._counts)
