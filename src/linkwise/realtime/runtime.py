"""Python interface of the real-time loop."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from linkwise.control import Gains, MomentumObserver
from linkwise.model.coordinates import check_motors
from linkwise.motion import Trajectory
from linkwise.realtime.build import library
from linkwise.realtime.limits import SettingsError, joint_limits, positive_time, stop_duration, whole
from linkwise.realtime.plant import BRAKE, READ, WRITE, PlantDriver, SimulatedPlant, callbacks
from linkwise.realtime.program import TwoRatePrograms, numbers_for_timing
from linkwise.realtime.report import TIMING, Report
from linkwise.robot.robot import Robot

STOP_MODES = ("hold", "ramp", "brake")
MOST_CYCLES = 50_000_000
_JOINT_SETTINGS = ("kp", "kd", "lower", "upper", "speed", "effort", "following", "frozen")
_one_at_a_time = threading.Lock()
_lost: list[object] = []  # memory that a thread stuck inside a driver may still use


class TwoRateController:
    """Izaguirre's two-rate controller in C: a synchronous task every ``period``, and two background tasks.

    Faults and the normal end lead into a stop sequence; docs/realtime.md has the table.

    Args:
        model: the robot that the controller uses.
        gains: feedback gains.
        period: of the synchronous task [s].
        background: periods of the background tasks [s]; one number or (inertia, velocity).
        plant: a driver, or a simulated plant; None: simulates the model.
        limits: replace those of the model: "lower", "upper", "speed", "effort", "following" (largest distance from
            the reference), "frozen" (motion of the reference during which an unchanged position counts as a frozen
            encoder); one number or (n,) each. Drivers need limits of speed and effort, here or in the model.
        deadlines: missed deadlines in a row that stop the loop; 0: never.
        oldest: largest age of the coefficients [s]; None: ten background periods.
        patience: time without a completed cycle after which the watchdog stops the robot [s].
        priority: of SCHED_FIFO where the system allows it; 0: normal priority.
        core: number of the core on which the synchronous task runs, for example an isolated one; None: any.
        stop: "hold" (decelerate, hold against gravity, then brake), "ramp" (the same torques scaled down to zero) or
            "brake" (brake at once).
        stop_time: duration of the stop sequence [s].
        observer: a ``control.MomentumObserver``: a contact of any joint stops the loop; None: nothing watches for
            contacts.

    Raises:
        SettingsError: a setting is invalid or missing.
    """

    def __repr__(self) -> str:
        return f"<TwoRateController of {self.model.name}>"

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
        core: int | None = None,
        stop: str = "hold",
        stop_time: float = 0.5,
        observer: MomentumObserver | None = None,
    ):
        self.model, self.period = model, positive_time("period", period)
        self.plant = SimulatedPlant(model) if plant is None else plant
        simulated = isinstance(self.plant, SimulatedPlant)
        dof = self.plant.robot.dof if isinstance(self.plant, SimulatedPlant) else self.plant.dof
        if dof != model.dof:
            raise SettingsError(f"plant: it has {dof} joints, {model.name} has {model.dof}")
        if model.dof < 1:
            raise SettingsError(f"model: {model.name} has no joints to control")
        check_motors(model, "the real-time loop")
        self.gains = gains.vectors(model.dof)
        for name in ("kp", "kd"):
            if not all(math.isfinite(gain) and gain >= 0 for gain in self.gains[name]):
                raise SettingsError(f"gains: {name} must be finite and not negative, got {self.gains[name]}")
        both = background if isinstance(background, tuple) else (background, background)
        if len(both) != 2:
            raise SettingsError(f"background: expected one time or two, got {background!r}")
        self.background = tuple(positive_time("background", each) for each in both)
        self.limits = joint_limits(model, limits, simulated=simulated)
        self.deadlines = whole("deadlines", deadlines, 0, 2**31 - 1)
        self.priority = whole("priority", priority, 0, 99)
        self.core = None if core is None else whole("core", core, 0, 1023)
        self.oldest = 10 * max(self.background) if oldest is None else positive_time("oldest", oldest)
        self.patience = positive_time("patience", patience)
        if stop not in STOP_MODES:
            raise SettingsError(f"stop: expected one of {', '.join(STOP_MODES)}, got {stop!r}")
        if stop == "brake" and not _has_brakes(self.plant):
            raise SettingsError(
                "stop: 'brake' needs a plant with brakes (PlantDriver.brake, SimulatedPlant(brakes=True))"
            )
        self.stop, self.stop_time = stop, stop_duration(stop_time)
        if observer is not None and observer.robot.dof != model.dof:
            raise SettingsError(
                f"observer: its model has {observer.robot.dof} joints, {model.name} has {model.dof}"
            )
        self.observer = observer
        self.programs = TwoRatePrograms(
            model,
            self.plant.robot if isinstance(self.plant, SimulatedPlant) else model,
            self.period,
            observer,
        )

    def run(
        self, reference: Trajectory, duration: float, *, log: str | os.PathLike[str] | None = None
    ) -> Report:
        """Follow the reference, then stop; blocks until the stop sequence is complete. Ctrl-C stops the loop.

        Args:
            reference: a trajectory of all joints.
            duration: how long to follow it [s].
            log: CSV file, written while the loop runs, so that it is complete up to any fault.

        Returns:
            Why the loop ended, with the cycles of the loop and of the stop sequence.
        """
        n = self.model.dof
        if reference.dof != n:
            raise SettingsError(f"reference: expected a trajectory of {n} joints, got one of {reference.dof}")
        cycles = self._cycles(duration)
        table = np.ascontiguousarray(np.concatenate(reference.at(np.arange(cycles) * self.period), axis=-1))
        return self._followed(table, cycles, log)

    def _followed(
        self,
        table: np.ndarray,
        cycles: int,
        log: str | os.PathLike[str] | None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Report:
        """Run the loop with these rows of q_d, q̇_d and q̈_d; ``meanwhile`` is called every few milliseconds."""
        n = self.model.dof
        code = library(self.programs.source())
        settings, keep = self._settings(code, table, cycles, log)
        code.rows_needed.restype = ctypes.c_int64
        # at least one row, so that invalid settings reach the checks in C
        width = len(TIMING) + len(self._columns) * n + len(self._single_columns)
        rows = np.zeros((max(1, code.rows_needed(ctypes.byref(settings))), width))
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
                    meanwhile()
                    thread.join(self._wait)
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
            rows[result.stop_first : result.stop_first + result.stop_rows].copy(), bool(result.braked), result.setting,
            result.core_error,
        )  # fmt: skip
        if log is not None:
            if result.log_error:
                raise OSError(result.log_error, os.strerror(result.log_error), os.fspath(log))
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"# {report.reason}\n")
        return report

    def time_synchronous(self, count: int = 20000, calls: int = 64) -> np.ndarray:
        """Durations of the synchronous task [s], shape (count,); each is the mean of ``calls`` successive calls.

        Args:
            count: number of durations.
            calls: number of calls in each.
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

    _wait = 0.05  # [s] from one call of ``meanwhile`` to the next
    _single_columns: tuple[str, ...] = ()  # what a cycle records besides, one number each

    @property
    def _columns(self) -> tuple[str, ...]:
        """What a cycle records of every joint."""
        return ("q", "qd", "tau") if self.observer is None else ("q", "qd", "tau", "external")

    def _cycles(self, duration: float) -> int:
        if not (math.isfinite(duration) and duration / self.period >= 0.5):
            raise SettingsError(
                f"duration: expected at least one period of {self.period:g} s, got {duration!r}"
            )
        cycles = max(1, round(duration / self.period))
        if cycles > MOST_CYCLES:
            raise SettingsError(
                f"duration: {duration:g} s are {cycles} periods of {self.period:g} s, "
                f"the report has room for {MOST_CYCLES}"
            )
        return cycles

    # -- structures of the C code ---------------------------------------------------------------------------

    def _settings_type(self) -> type[ctypes.Structure]:
        return settings_type(self.model.dof)

    def _settings(
        self, code: ctypes.CDLL, table: np.ndarray, cycles: int, log
    ) -> tuple[ctypes.Structure, tuple]:
        n = self.model.dof
        settings = self._settings_type()()
        settings.period = self.period
        settings.inertia_period, settings.velocity_period = self.background
        settings.cycles = settings.reference_rows = cycles
        settings.reference = table.ctypes.data
        for name, values in (*self.limits.items(), ("kp", self.gains["kp"]), ("kd", self.gains["kd"])):
            getattr(settings, name)[:] = list(map(float, values))
        settings.oldest, settings.patience, settings.stop_time = self.oldest, self.patience, self.stop_time
        settings.deadlines, settings.priority = self.deadlines, self.priority
        settings.stop_mode = STOP_MODES.index(self.stop)
        settings.core = 0 if self.core is None else self.core + 1
        if isinstance(self.plant, SimulatedPlant):
            state = self.plant.structure(table[0, :n], table[0, n : 2 * n])
            names = ((READ, "simulated_read"), (WRITE, "simulated_write"), (BRAKE, "simulated_brake"))
            functions = tuple(kind((name, code)) for kind, name in names)
            settings.plant = ctypes.addressof(state)
        else:
            state, functions = None, callbacks(self.plant)
        settings.read, settings.write, settings.brake = functions
        path = None if log is None else os.fsencode(log)
        if path is not None:
            names = [*TIMING, *(f"{name}{k}" for name in self._columns for k in range(1, n + 1))]
            names += self._single_columns
            Path(os.fsdecode(path)).write_text(",".join(names) + "\n", encoding="utf-8")
        settings.log = path
        return settings, (table, state, functions, path)


def _has_brakes(plant: PlantDriver | SimulatedPlant) -> bool:
    if isinstance(plant, SimulatedPlant):
        return plant.brakes
    return type(plant).brake is not PlantDriver.brake


class _Outcome(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int32)
            for name in (
                *("reason", "joint", "fifo_error", "lock_error", "log_error", "hung", "braked", "core_error"),
                "setting",
            )
        ),
        *((name, ctypes.c_int64) for name in ("cycle", "rows", "stop_first", "stop_rows")),
        ("value", ctypes.c_double),
    )


def settings_type(n: int) -> type[ctypes.Structure]:
    """The structure ``settings`` of types.h for n joints."""

    class Settings(ctypes.Structure):
        _fields_ = (
            *((name, ctypes.c_double) for name in ("period", "inertia_period", "velocity_period")),
            ("cycles", ctypes.c_int64),
            ("reference", ctypes.c_void_p),
            ("reference_rows", ctypes.c_int64),
            *((name, ctypes.c_double * n) for name in _JOINT_SETTINGS),
            *((name, ctypes.c_double) for name in ("oldest", "patience", "stop_time")),
            *((name, ctypes.c_int32) for name in ("deadlines", "priority", "stop_mode", "core")),
            ("read", READ),
            ("write", WRITE),
            ("brake", BRAKE),
            ("plant", ctypes.c_void_p),
            ("log", ctypes.c_char_p),
        )

    return Settings
