"""Valera's PUMA hardware as a plant of the real-time loop: converts counts and volts to positions and torques.

With the interface cards of a real arm in place of ``PumaHardware`` this drives a PUMA.
"""

from __future__ import annotations

import numpy as np

from linkwise.realtime.plant import PlantDriver
from linkwise.simulate.puma_hardware import HomedArm


class PumaDriver(PlantDriver):
    """A homed arm, sampled every ``period`` [s]. Velocities are differences of counts through a first-order
    filter with ``cutoff`` [rad/s].

    Args:
        arm: the homed arm.
        period: sample period [s].
        cutoff: of the velocity filter [rad/s].
    """

    def __init__(self, arm: HomedArm, period: float, *, cutoff: float = 100.0):
        self.arm, self.period = arm, period
        self.dof = arm.hardware.robot.dof
        self._share = 1.0 - np.exp(-cutoff * period)
        self._cycle = 0
        self._last, self._speed = arm.positions(), np.zeros(self.dof)

    def read(self, cycle: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        gone = cycle - self._cycle
        if gone > 0:  # advance the simulated hardware; real hardware advances by itself
            self.arm.hardware.advance(gone * self.period)
            self._cycle = cycle
            q = self.arm.positions()
            rate = (q - self._last) / (gone * self.period)
            self._speed = self._speed + self._share * (rate - self._speed)
            self._last = q
        return self._last, self._speed, self.arm.hardware.over_temperature()

    def write(self, tau: np.ndarray) -> None:
        self.arm.write(tau)
