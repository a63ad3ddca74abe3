"""The Python front of the real-time loop."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from linkwise.control import Gains
from linkwise.motion import Trajectory
from linkwise.realtime.build import library
from linkwise.realtime.plant import READ, WRITE, PlantDriver, SimulatedPlant, bounds, callbacks
from linkwise.realtime.program import TwoRatePrograms, numbers_for_timing
from linkwise.realtime.report import TIMING, Report
from linkwise.robot import Robot

_one_at_a_time = threading.Lock()
_lost: list[object] = []  # what threads that never came back from a driver may still use


class TwoRateController:
    """Izaguirre's two-rate controller in C: a synchronous task every ``period`` [s], and two background
    tasks.

    ``model`` is the robot the controller knows. ``background`` [s], one number or (inertia, velocity), is how
    often the coefficients are computed. The loop stops, with torques at zero, when a number is not finite,
    the plant is lost, a motor is too hot, a position or speed limit is crossed, ``deadlines`` deadlines in a
    row are missed, the coefficients are older than ``oldest`` [s], or no cycle comes to its end for
    ``patience`` [s]. ``limits`` replaces limits of the model: lower, upper, speed, effort, (n,) each.
    ``priority`` of SCHED_FIFO, where the system allows it; 0: do not ask.
    """

    def __init__(
        self,
        model: Robot,
        gains: Gains,
        *,
        period: float = 1e-3,
        background: float | tuple[float, float] = 0.02,
        plant: PlantDriver | SimulatedPlant | None = None,
        limits: Mapping[str, object] | None = None,
        deadlines: int = 10,
        oldest: float | None = None,
        patience: float = 0.5,
        priority: int = 80,
    ):
        if not (math.isfinite(period) and period > 0):
            raise ValueError(f"period: expected a positive time in seconds, got {period!r}")
        self.model, self.period = model, period
        self.plant = SimulatedPlant(model) if plant is None else plant
        dof = self.plant.robot.dof if isinstance(self.plant, SimulatedPlant) else self.plant.dof
        if dof != model.dof:
            raise ValueError(f"plant: it has {dof} joints, {model.name} has {model.dof}")
        self.gains = gains.vectors(model.dof)
        both = background if isinstance(background, tuple) else (background, background)
        self.background = tuple(float(b) for b in both)
        if not all(math.isfinite(b) and b > 0 for b in self.background):
            raise ValueError(f"background: expected positive times in seconds, got {background!r}")
        self.limits = bounds(model)
        for name, values in dict(limits or {}).items():
            if name not in self.limits:
                raise ValueError(f"limits: expected {', '.join(self.limits)}, got {name!r}")
            self.limits[name] = np.broadcast_to(np.asarray(values, dtype=float), (model.dof,)).tolist()
        self.deadlines, self.patience, self.priority = deadlines, patience, priority
        self.oldest = 10 * max(self.background) if oldest is None else oldest
        simulated = self.plant.robot if isinstance(self.plant, SimulatedPlant) else model
        self.programs = TwoRatePrograms(model, simulated, period)

    def run(
        self, reference: Trajectory, duration: float, *, log: str | os.PathLike[str] | None = None
    ) -> Report:
        """Follow the reference for ``duration`` [s]; the report says how it went. Blocks; Ctrl-C stops the
        loop safely.

        ``log``: a CSV file that grows while the loop runs, so that it is there whatever happens.
        """
        n = self.model.dof
        if reference.dof != n:
            raise ValueError(f"reference: expected a trajectory of {n} joints, got one of {reference.dof}")
        cycles = round(duration / self.period)
        if cycles < 1:
            raise ValueError(f"duration: expected at least one period of {self.period:g} s, got {duration!r}")
        table = np.concatenate(reference.at(np.arange(cycles) * self.period), axis=-1)
        code = library(self.programs.source())
        settings, keep = self._settings(code, table, cycles, log)
        rows = np.zeros((cycles, len(TIMING) + 3 * n))
        result, ask = _Outcome(), ctypes.c_int32(0)

        def work() -> None:
            code.run(
                ctypes.byref(settings),
                ctypes.byref(result),
                ctypes.c_void_p(rows.ctypes.data),
                ctypes.byref(ask),
            )

        with _one_at_a_time:
            thread = threading.Thread(target=work, name="linkwise-realtime")
            thread.start()
            try:
                while thread.is_alive():
                    thread.join(0.05)
            except BaseException:
                ask.value = 1
                thread.join()
                raise
        if result.hung:
            _lost.append(
                (settings, keep, rows, result, ask)
            )  # a thread that may still wake up refers to them
        elif isinstance(self.plant, PlantDriver):
            self.plant.close()
        report = Report(
            self.model, self.period, result.reason, result.joint, result.value, result.cycle,
            rows[: result.rows].copy(), result.fifo_error, result.lock_error, None if log is None else os.fspath(log),
        )  # fmt: skip
        if log is not None:
            if result.log_error:
                raise OSError(result.log_error, os.strerror(result.log_error), os.fspath(log))
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"# {report.reason}\n")
        return report

    def time_synchronous(self, count: int = 20000, calls: int = 64) -> np.ndarray:
        """Seconds that one synchronous task takes, shape (count,): each the mean of ``calls`` calls in a
        row.
        """
        code = library(self.programs.source())
        numbers, found = numbers_for_timing(self.programs), np.empty(count)
        code.time_synchronous(
            ctypes.c_void_p(numbers.ctypes.data),
            ctypes.c_void_p(found.ctypes.data),
            ctypes.c_int64(count),
            ctypes.c_int64(calls),
        )
        return found

    # -- what C sees
    # ------------------------------------------------------------------------------------------------

    def _settings(
        self, code: ctypes.CDLL, table: np.ndarray, cycles: int, log
    ) -> tuple[ctypes.Structure, tuple]:
        n = self.model.dof
        settings = _settings_type(n)()
        settings.period = self.period
        settings.inertia_period, settings.velocity_period = self.background
        settings.cycles = settings.reference_rows = cycles
        settings.reference = table.ctypes.data
        for name, values in (*self.limits.items(), ("kp", self.gains["kp"]), ("kd", self.gains["kd"])):
            getattr(settings, name)[:] = list(map(float, values))
        settings.oldest, settings.patience = self.oldest, self.patience
        settings.deadlines, settings.priority = self.deadlines, self.priority
        if isinstance(self.plant, SimulatedPlant):
            state = self.plant.structure(table[0, :n], table[0, n : 2 * n])
            functions = tuple(
                kind((name, code)) for kind, name in ((READ, "simulated_read"), (WRITE, "simulated_write"))
            )
            settings.plant = ctypes.addressof(state)
        else:
            state, functions = None, callbacks(self.plant)
        settings.read, settings.write = functions
        path = None if log is None else os.fsencode(log)
        if path is not None:
            names = [*TIMING, *(f"{name}{k}" for name in ("q", "qd", "tau") for k in range(1, n + 1))]
            Path(os.fsdecode(path)).write_text(",".join(names) + "\n", encoding="utf-8")
        settings.log = path
        return settings, (table, state, functions, path)


class _Outcome(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int32)
            for name in ("reason", "joint", "fifo_error", "lock_error", "log_error", "hung")
        ),
        ("cycle", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        ("value", ctypes.c_double),
    )


def _settings_type(n: int) -> type[ctypes.Structure]:
    class Settings(ctypes.Structure):
        _fields_ = (
            *((name, ctypes.c_double) for name in ("period", "inertia_period", "velocity_period")),
            ("cycles", ctypes.c_int64),
            ("reference", ctypes.c_void_p),
            ("reference_rows", ctypes.c_int64),
            *((name, ctypes.c_double * n) for name in ("kp", "kd", "lower", "upper", "speed", "effort")),
            ("oldest", ctypes.c_double),
            ("patience", ctypes.c_double),
            ("deadlines", ctypes.c_int32),
            ("priority", ctypes.c_int32),
            ("read", READ),
            ("write", WRITE),
            ("plant", ctypes.c_void_p),
            ("log", ctypes.c_char_p),
        )

    return Settings
