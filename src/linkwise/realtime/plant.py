"""What the real-time loop drives: real hardware behind one Python class, or a simulated plant in C."""

from __future__ import annotations

import ctypes
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.robot import Robot

READ = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_double),
    ctypes.POINTER(ctypes.c_double),
    ctypes.POINTER(ctypes.c_int32),
)
WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double))


class PlantDriver(ABC):
    """A driver for real hardware: subclass it, and the runtime drives your arm.

    The methods are called from the real-time thread through the interpreter, so they cost some tens of
    microseconds and wait for the interpreter lock; a driver that must not is written in C against
    ``harness.c``.
    """

    dof: int

    @abstractmethod
    def read(self, cycle: int) -> tuple[Any, Any, Any]:
        """(q [rad or m], q̇, over-temperature flags), n each. ``cycle`` counts periods, missed ones too. An
        exception means that the plant is lost."""

    @abstractmethod
    def write(self, tau: np.ndarray) -> None:
        """Apply torques [N·m or N], shape (n,). Called with zeros when the loop stops, from any thread."""

    def close(self) -> None:  # noqa: B027  most drivers need none
        """Called once the loop has stopped."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong in a simulated plant from a cycle on: a test of the way the loop stops.

    ``kind``: "nan" (a position), "lost", "hot", "jump" (a position, by ``value`` [rad]), "sleep" (the driver
    waits for ``value`` [s]), "spin" (the task itself takes ``value`` [s] of processor time).
    """

    kind: str
    cycle: int
    joint: int = 0
    value: float = 0.0

    KINDS = ("", "nan", "lost", "hot", "jump", "sleep", "spin")

    def __post_init__(self):
        if self.kind not in self.KINDS[1:]:
            raise ValueError(f"kind: expected one of {', '.join(self.KINDS[1:])}, got {self.kind!r}")


class SimulatedPlant:
    """The robot itself in C: semi-implicit Euler with its friction, one step per period.

    ``robot`` may differ from the controller's model; ``q`` and ``qd`` (n,) is where it starts (default: on
    the reference).
    """

    def __init__(self, robot: Robot, *, q=None, qd=None, fault: Fault | None = None):
        self.robot, self.q, self.qd, self.fault = robot, q, qd, fault

    def structure(self, start: np.ndarray, speed: np.ndarray) -> ctypes.Structure:
        """The state as the C code has it."""
        n = self.robot.dof

        class Simulated(ctypes.Structure):
            _fields_ = (
                *((name, ctypes.c_double * n) for name in ("q", "qd", "tau")),
                ("cycle", ctypes.c_int64),
                ("fault_cycle", ctypes.c_int64),
                ("fault", ctypes.c_int32),
                ("fault_joint", ctypes.c_int32),
                ("fault_value", ctypes.c_double),
            )

        state = Simulated()
        state.q[:] = np.asarray(start if self.q is None else self.q, dtype=float).tolist()
        state.qd[:] = np.asarray(speed if self.qd is None else self.qd, dtype=float).tolist()
        if self.fault is not None:
            state.fault = Fault.KINDS.index(self.fault.kind)
            state.fault_cycle, state.fault_joint = self.fault.cycle, self.fault.joint
            state.fault_value = self.fault.value
        return state


def callbacks(driver: PlantDriver) -> tuple[Any, Any]:
    """The driver's methods as C functions; whatever they raise or give wrongly counts as a lost plant."""
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

    return READ(read), WRITE(write)


def bounds(robot: Robot) -> dict[str, list[float]]:
    """Position, speed and effort limits of a robot; where it has none, infinity."""
    limits = [joint.limits for joint in robot.moving_joints]
    return {
        "lower": [limit.lower for limit in limits],
        "upper": [limit.upper for limit in limits],
        "speed": [limit.velocity for limit in limits],
        "effort": [limit.effort if limit.effort > 0 else math.inf for limit in limits],
    }
