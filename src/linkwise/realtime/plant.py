"""Plants of the real-time loop: drivers for hardware in Python, and a simulated plant in C."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.realtime.limits import SettingsError
from linkwise.robot.robot import Robot

READ = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_double),
    ctypes.POINTER(ctypes.c_double),
    ctypes.POINTER(ctypes.c_int32),
)
BRAKE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double))


class PlantDriver(ABC):
    """Base class of drivers for hardware.

    The methods are called from the real-time thread through the interpreter, so they cost some tens of
    microseconds and wait for the interpreter lock; a driver that must not is written in C against
    ``base.c``.
    """

    dof: int

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @abstractmethod
    def read(self, cycle: int) -> tuple[Any, Any, Any]:
        """(q [rad or m], q̇, over-temperature flags), n each. ``cycle`` counts periods, missed ones too. An
        exception means that the plant is lost."""

    @abstractmethod
    def write(self, tau: np.ndarray) -> None:
        """Apply torques [N·m or N], shape (n,). They are finite and within the effort limits. During a stop this may
        be called from another thread."""

    def brake(self) -> bool:
        """Engage the brakes; True once they hold the arm, after which torques go to zero. Must return within
        ``patience``. The default: there are no brakes."""
        return False

    def close(self) -> None:  # noqa: B027  most drivers need none
        """Called once the loop has stopped."""


@dataclass(frozen=True)
class Fault:
    """Fault that a simulated plant shows from a cycle on; tests how the loop stops.

    ``kind``: "nan" (position is NaN), "lost" (no answer), "hot", "jump" (position is off by ``value`` [rad or m]),
    "sleep" (the driver waits for ``value`` [s]), "spin" (the driver uses ``value`` [s] of processor time), "freeze"
    (position and velocity no longer change), "push" (an outside torque of ``value`` [N·m or N] acts on the joint).
    """

    kind: str
    cycle: int
    joint: int = 0
    value: float = 0.0

    KINDS = ("", "nan", "lost", "hot", "jump", "sleep", "spin", "freeze", "push")

    def __post_init__(self):
        if self.kind not in self.KINDS[1:]:
            raise SettingsError(f"kind: expected one of {', '.join(self.KINDS[1:])}, got {self.kind!r}")


class SimulatedPlant:
    """Simulates a robot in C: semi-implicit Euler with friction, one step per period.

    Args:
        robot: may differ from the controller's model.
        q: initial positions [rad or m], shape (n,); None: those of the reference.
        qd: initial velocities, shape (n,); None: those of the reference.
        fault: what goes wrong, and when.
        brakes: whether the arm has brakes, which stop it at once.
    """

    def __init__(self, robot: Robot, *, q=None, qd=None, fault: Fault | None = None, brakes: bool = False):
        self.robot, self.q, self.qd, self.fault = robot, q, qd, fault
        self.brakes = flag("brakes", brakes)
        if fault is not None and not 0 <= fault.joint < robot.dof:
            raise SettingsError(f"fault: joint {fault.joint}, {robot.name} has joints 0 to {robot.dof - 1}")

    def __repr__(self) -> str:
        return f"<SimulatedPlant of {self.robot.name}{'' if self.fault is None else f', {self.fault}'}>"

    def structure(self, start: np.ndarray, speed: np.ndarray) -> ctypes.Structure:
        """State of the plant as a C structure.

        Args:
            start: positions, shape (n,).
            speed: velocities, shape (n,).
        """
        n = self.robot.dof

        class Simulated(ctypes.Structure):
            _fields_ = (
                *((name, ctypes.c_double * n) for name in ("q", "qd", "tau", "frozen_q", "frozen_qd")),
                ("cycle", ctypes.c_int64),
                ("fault_cycle", ctypes.c_int64),
                ("fault", ctypes.c_int32),
                ("fault_joint", ctypes.c_int32),
                ("fault_value", ctypes.c_double),
                *((name, ctypes.c_int32) for name in ("brakes", "braked", "is_frozen")),
            )

        state = Simulated()
        state.brakes = self.brakes
        state.q[:] = np.asarray(start if self.q is None else self.q, dtype=float).tolist()
        state.qd[:] = np.asarray(speed if self.qd is None else self.qd, dtype=float).tolist()
        if self.fault is not None:
            state.fault = Fault.KINDS.index(self.fault.kind)
            state.fault_cycle, state.fault_joint = self.fault.cycle, self.fault.joint
            state.fault_value = self.fault.value
        return state


def callbacks(driver: PlantDriver) -> tuple[Any, Any, Any]:
    """The driver's methods as C functions; an exception or a wrong result counts as a lost plant."""
    n = driver.dof

    def read(_, cycle, q, qd, hot) -> int:
        try:
            positions, speeds, warm = driver.read(cycle)
            for target, values in ((q, positions), (qd, speeds)):
                if len(values) != n:
                    return -2
                for k in range(n):
                    target[k] = float(values[k])
            for k in range(n):
                hot[k] = 1 if warm[k] else 0
        except Exception:
            return -1
        return 0

    def write(_, tau) -> int:
        try:
            driver.write(np.array(tau[:n]))
        except Exception:
            return -1
        return 0

    def brake(_) -> int:
        try:
            return 1 if driver.brake() else 0
        except Exception:
            return 0

    return READ(read), WRITE(write), BRAKE(brake)
