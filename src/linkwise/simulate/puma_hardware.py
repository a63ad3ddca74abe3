"""The hardware of Valera's PC-based controller (2003, section 3), simulated including its cards.

There are four cards between controller and arm: incremental encoders on the motors (200 counts per turn on joints
1 and 2, 250 on the others) with an index pulse once per turn; potentiometers on the joints (0 to 5 V), which give an
absolute but rough position; an over-temperature input per motor; analog outputs of ±10 V to the power amplifiers; two
digital outputs for the tool. After power-up the encoders count from zero wherever the arm stands, so it has to be
homed: the potentiometer gives the motor turn of a joint, the index pulse the position within that turn.

The paper does not state gear ratios and amplifiers; gear ratios are those of the PUMA 560 (Corke and
Armstrong 1994), torques at full voltage its maximum torques (Armstrong, Khatib and Burdick 1986).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.control import GravityPD
from linkwise.errors import LinkwiseError
from linkwise.motion import PiecewisePolynomial, quintic
from linkwise.robot.robot import Robot
from linkwise.simulate.loop import step_kernel

GEAR_RATIOS = (-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686)
COUNTS_PER_TURN = (200, 200, 250, 250, 250, 250)
TORQUE_AT_10_VOLTS = (97.6, 186.4, 89.4, 24.2, 20.1, 21.3)  # [N·m]
VOLTS = 10.0


class HomingError(LinkwiseError, RuntimeError):
    """A joint could not be homed; the message names it."""


@dataclass
class PumaHardware:
    """The arm and its cards. Time advances in ``advance`` only.

    ``q`` is where the arm stands when it is switched on. Potentiometers have ``potentiometer_error`` [rad] of
    noise and a resolution of 12 bits; a motor's temperature follows the square of its torque with
    ``thermal_time`` [s] and is too hot at ``hot`` times the temperature that the full torque would reach in
    the end.
    """

    robot: Robot
    q: np.ndarray
    gear_ratio: np.ndarray = field(default_factory=lambda: np.array(GEAR_RATIOS))
    counts_per_turn: np.ndarray = field(default_factory=lambda: np.array(COUNTS_PER_TURN))
    torque_per_volt: np.ndarray = field(default_factory=lambda: np.array(TORQUE_AT_10_VOLTS) / VOLTS)
    converter_bits: int = 12
    potentiometer_range: float = 2 * np.deg2rad(300.0)
    potentiometer_error: float = 2e-3
    thermal_time: float = 600.0
    hot: float = 0.6
    step: float = 1e-3
    seed: int = 0

    def __post_init__(self):
        self.q = np.array(self.q, dtype=float)
        self.qd = np.zeros_like(self.q)
        self.tau = np.zeros_like(self.q)
        self.temperature = np.zeros_like(self.q)
        self.tool = [False, False]
        self._powered_at = self._absolute_counts()
        self._index = np.full(self.q.shape, np.nan)
        self._random = np.random.Generator(np.random.Philox(self.seed))
        self._advance = step_kernel(self.robot)

    # -- cards
    # ------------------------------------------------------------------------------------------------------

    def counters(self) -> np.ndarray:
        """Encoder counts since power-up, whole numbers, shape (n,)."""
        return self._absolute_counts() - self._powered_at

    def index_latches(self) -> np.ndarray:
        """The counter at each motor's last index pulse; NaN where there was none yet."""
        return self._index.copy()

    def potentiometers(self) -> np.ndarray:
        """Volts between 0 and 5."""
        seen = self.q + self._random.normal(scale=self.potentiometer_error, size=self.q.shape)
        ideal = 2.5 + 5.0 * seen / self.potentiometer_range
        step = 5.0 / 4096
        return np.clip(np.rint(ideal / step) * step, 0.0, 5.0)

    def over_temperature(self) -> np.ndarray:
        return self.temperature > self.hot

    def set_voltages(self, volts) -> None:
        """The analog outputs: limited to ±10 V, in the converter's steps. NaN counts as 0 V."""
        step = 2 * VOLTS / 2**self.converter_bits
        wanted = np.nan_to_num(np.asarray(volts, dtype=float), nan=0.0)
        self.tau = self.torque_per_volt * np.clip(np.rint(wanted / step) * step, -VOLTS, VOLTS - step)

    def set_tool(self, output: int, on: bool) -> None:
        """One of the two digital outputs for the tool."""
        if output not in (0, 1):
            raise ValueError(f"output: there are outputs 0 and 1, got {output!r}")
        self.tool[output] = flag("on", on)

    # -- time
    # -------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass, with the torques as they are."""
        for _ in range(round(seconds / self.step)):
            before = self._absolute_counts()
            q, qd = self._advance(self.q, self.qd, self.tau, np.array([self.step]))
            self.q, self.qd = np.array(q), np.array(qd)
            load = (self.tau / (self.torque_per_volt * VOLTS)) ** 2
            self.temperature += (load - self.temperature) * self.step / self.thermal_time
            self._latch(before, self._absolute_counts())

    def _absolute_counts(self) -> np.ndarray:
        turns = self.gear_ratio * self.q / (2 * np.pi)
        return np.floor(turns * self.counts_per_turn)

    def _latch(self, before: np.ndarray, after: np.ndarray) -> None:
        """An index pulse comes with the count that is a multiple of a turn."""
        turn = self.counts_per_turn
        low, high = np.minimum(before, after), np.maximum(before, after)
        last = np.floor(high / turn) * turn  # the largest multiple not above the higher count
        self._index = np.where(last > low, last - self._powered_at, self._index)


@dataclass
class HomedArm:
    """Joint positions and torques instead of counts and volts: what a controller works with."""

    hardware: PumaHardware
    offset: np.ndarray
    """Absolute counts at power-up, shape (n,)."""

    def positions(self) -> np.ndarray:
        """q [rad], shape (n,): the middle of a count."""
        counts = self.hardware.counters() + self.offset + 0.5
        return 2 * np.pi * counts / (self.hardware.counts_per_turn * self.hardware.gear_ratio)

    def resolution(self) -> np.ndarray:
        """Of a count [rad]."""
        return np.abs(2 * np.pi / (self.hardware.counts_per_turn * self.hardware.gear_ratio))

    def write(self, tau) -> None:
        self.hardware.set_voltages(np.asarray(tau) / self.hardware.torque_per_volt)


def homed(hardware: PumaHardware, model: Robot, *, frequency: float = 12.0, speed: float = 0.2) -> HomedArm:
    """Find out where the arm stands: every joint makes a little more than one motor turn, slowly, and stays
    there.

    The potentiometers, averaged, give the motor turn; the index pulse the count in it.
    """
    volts = np.mean([hardware.potentiometers() for _ in range(64)], axis=0)
    rough = (volts - 2.5) * hardware.potentiometer_range / 5.0
    per_count = 2 * np.pi / (hardware.counts_per_turn * hardware.gear_ratio)
    arm = HomedArm(hardware, np.rint(rough / per_count))
    way = np.abs(2 * np.pi / hardware.gear_ratio) * 1.1
    move = quintic(rough, rough + way, float(way.max() / speed))
    _follow(arm, model, move, frequency)
    latched = hardware.index_latches()
    silent = np.flatnonzero(np.isnan(latched))
    if silent.size:
        raise HomingError(
            f"no index pulse from {model.joint_names[silent[0]]} in more than a turn of its motor"
        )
    # the index lies at a multiple of a turn; the potentiometer gives which
    turn = hardware.counts_per_turn
    multiple = np.rint((latched + arm.offset) / turn) * turn
    uncertainty = np.abs(latched + arm.offset - multiple) / turn
    lost = np.flatnonzero(uncertainty > 0.35)
    if lost.size:
        k = lost[0]
        name, off = model.joint_names[k], uncertainty[k]
        raise HomingError(
            f"{name}: its potentiometer is off by {off:.2f} motor turns, so the turn is not certain"
        )
    return HomedArm(hardware, multiple - latched)


def _follow(
    arm: HomedArm, model: Robot, move: PiecewisePolynomial, frequency: float, period: float = 2e-3
) -> None:
    """Track a slow move from the encoders alone, with enough gain to overcome friction."""
    gains = GravityPD.gains_for(model, 2 * frequency, q=move.at(0.0).q)
    law = GravityPD(model, gains, torque_limits=False).kernel(period)
    last = arm.positions()
    for t in np.arange(0.0, move.duration + 0.3, period):
        q = arm.positions()
        arm.write(law(q, (q - last) / period, *move.at(t)))
        last = q
        arm.hardware.advance(period)
