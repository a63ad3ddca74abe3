"""From a recording to the states of a robot with a floating base: positions, velocities and accelerations of all
coordinates, smooth and at a steady rate.

The equation of motion depends on the angular velocity and acceleration of the base and on what an accelerometer at its
origin would show; where the base is and how fast it travels does not matter. So an inertial measurement unit is enough.
Where there are several sources, ``SOURCES`` names how the motion of the base may be read; the caller chooses by what
predicts best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.errors import needed
from linkwise.identify.errors import LogError
from linkwise.identify.recordings.derivatives import Motion
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.identify.walking import rotations
from linkwise.identify.walking.log import BASE_FIELDS, WalkingLog
from linkwise.robot.robot import Robot

SOURCES = {
    "accelerometer": "accelerometer at the origin of the base",
    "accelerometer at imu": "accelerometer where the robot's frame of it is",
    "velocity": "slope of the base's velocity",
    "position": "bend of the base's positions",
}
"""Where the acceleration of the base comes from."""


def _empty_array() -> np.ndarray:
    return np.zeros((0, 0))


@dataclass(frozen=True, repr=False)
class WalkingSignals(Signals):
    """Signals of the joints, with the states of the whole robot: ``positions`` (N, nq), ``velocities`` and
    ``accelerations`` (N, dof), and ``up`` (N, 3), the direction against gravity in the world of ``positions``."""

    positions: np.ndarray = field(default_factory=_empty_array)
    velocities: np.ndarray = field(default_factory=_empty_array)
    accelerations: np.ndarray = field(default_factory=_empty_array)
    up: np.ndarray = field(default_factory=_empty_array)
    source: str = ""

    @property
    def states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions (N, nq), velocities (N, dof) and accelerations (N, dof) of all coordinates."""
        return self.positions, self.velocities, self.accelerations

    def states_at_stamps(self) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(times, states) of every recorded torque, for judging torques as they were recorded."""
        stamps = self.log.t if self.stamps is None else self.stamps
        spline = needed("scipy.interpolate", "identify").CubicSpline
        where = np.clip(stamps - self.lag, self.t[0], self.t[-1])
        q, v, a = (spline(self.t, x, axis=0)(where) for x in self.states)
        return stamps, (q, v, a)


def sources_of(robot: Robot, log: WalkingLog) -> list[str]:
    """Ways in which the acceleration of the base follows from a recording, the most direct one first.

    Args:
        robot: the robot.
        log: its recording.
    """
    found = []
    if log.accelerometer is not None and log.feels:
        found.append("accelerometer")
        if imu_frame(robot) is not None:
            found.append("accelerometer at imu")
    if log.base_orientation is not None:
        found += ["velocity"] if log.base_velocity is not None else []
        found += ["position"] if log.base_position is not None else []
    return found


def imu_frame(robot: Robot) -> str | None:
    """The frame of the robot's measurement unit: fixed to the base, and "imu" is part of its name.

    Args:
        robot: the robot.
    """
    for name in robot.frame_names:
        if "imu" in name.lower() and robot.locate(name)[0] == 0:
            placed = robot.locate(name)[1]
            turned = np.abs(np.asarray(placed.rotation) - np.eye(3)).max() > 1e-9
            if turned or np.abs(np.asarray(placed.translation)).max() > 1e-9:
                return name
    return None


def condition_walking(
    robot: Robot,
    log: WalkingLog,
    source: str,
    *,
    cutoff: float,
    derivatives: str | Callable[..., Motion] = "butterworth",
    decimation: int | None = None,
) -> WalkingSignals:
    """Filtered states of a recording.

    Args:
        robot: the robot.
        log: its recording.
        source: of the base's acceleration, a key of ``SOURCES``.
        cutoff: [Hz].
        derivatives: as for arms.
        decimation: as for arms.
    """
    options = {"cutoff": cutoff, "derivatives": derivatives, "decimation": decimation}
    joints = condition(log, **options)  # type: ignore[arg-type]
    base = _Base(robot, log, joints, options)
    q, v, a, up = base.states(source)
    record = [*joints.record, f"acceleration of the base: {SOURCES[source]}", *base.notes]
    own = {key: getattr(joints, key) for key in Signals.__dataclass_fields__}
    own |= {"record": tuple(record), "positions": q, "velocities": v, "accelerations": a}
    return WalkingSignals(**own, up=up, source=source)


class _Base:
    """The motion of a base at the times of conditioned signals."""

    def __init__(self, robot: Robot, log: WalkingLog, joints: Signals, options: dict):
        self.robot, self.log, self.joints, self.options = robot, log, joints, options
        self.gravity = np.asarray(robot.gravity, dtype=float)
        self.notes: list[str] = []
        given = {key: getattr(log, key) for key in BASE_FIELDS if getattr(log, key) is not None}
        if "base_orientation" in given:
            given["base_orientation"] = rotations.continuous(given["base_orientation"])
        columns = np.concatenate(list(given.values()), axis=1)
        ends = np.cumsum([value.shape[1] for value in given.values()])[:-1]
        smooth = condition(Log(log.t, columns, np.zeros_like(columns), name=log.name), **options)
        if len(smooth.t) != len(joints.t):
            raise LogError(f"{log.name}: the clock of joints and base could not be read alike")
        self.values, self.rates, self.bends = (
            dict(zip(given, np.split(x, ends, axis=1), strict=True))
            for x in (smooth.q, smooth.qd, smooth.qdd)
        )

    def states(self, source: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        joints, count = self.joints, len(self.joints.t)
        spin, spin_rate = self._spin()
        if "base_orientation" in self.values:
            quaternion = self.values["base_orientation"]
            quaternion = quaternion / np.sqrt((quaternion**2).sum(axis=1, keepdims=True))
        else:
            quaternion = np.broadcast_to((0.0, 0.0, 0.0, 1.0), (count, 4))
        R = rotations.matrices(quaternion)
        down = rotations.turned_back(R, np.broadcast_to(self.gravity, (count, 3)))
        felt = self._felt(source, R, spin, spin_rate, down)
        if "base_orientation" in self.values:
            up = np.broadcast_to(-self.gravity, (count, 3))
        else:
            up = np.broadcast_to(felt.mean(axis=0), (count, 3))
        up = up / np.maximum(np.sqrt((up**2).sum(axis=1, keepdims=True)), 1e-300)
        travel = np.zeros((count, 3))  # velocities of the base do not matter: they are left out
        place = self.values.get("base_position", travel)
        q = np.concatenate([place, quaternion, joints.q], axis=1)
        v = np.concatenate([spin, travel, joints.qd], axis=1)
        a = np.concatenate([spin_rate, felt + down, joints.qdd], axis=1)
        return q, v, a, up

    def _spin(self) -> tuple[np.ndarray, np.ndarray]:
        """ω and ω̇ in axes of the base."""
        frame = imu_frame(self.robot)
        for key in ("gyro", "base_angular_velocity"):
            if key in self.values:
                values, rates = self.values[key], self.rates[key]
                if key == "gyro" and frame is not None:
                    turn = np.asarray(self.robot.locate(frame)[1].rotation)
                    values, rates = rotations.turned(turn, values), rotations.turned(turn, rates)
                return self._without_bias(values, rates)
        q, rate, bend = (part["base_orientation"] for part in (self.values, self.rates, self.bends))
        return rotations.angular_velocity(q, rate), rotations.angular_velocity(q, bend)

    def _without_bias(self, values: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A gyroscope without its offset, which orientations show."""
        if "base_orientation" not in self.values:
            return values, rates
        q = self.values["base_orientation"]
        offset = np.median(values - rotations.angular_velocity(q, self.rates["base_orientation"]), axis=0)
        size = float(np.sqrt((offset**2).sum()))
        if size > 1e-6:
            self.notes.append(f"offset of the gyroscope, {size:.2g} rad/s, taken away")
        return values - offset, rates

    def _felt(
        self, source: str, R: np.ndarray, spin: np.ndarray, spin_rate: np.ndarray, down: np.ndarray
    ) -> np.ndarray:
        """What an accelerometer at the origin of the base shows, in its axes."""
        if source == "position":
            return rotations.turned_back(R, self.bends["base_position"]) - down
        if source == "velocity":
            return rotations.turned_back(R, self.rates["base_velocity"]) - down
        felt = self.values["accelerometer"]
        if source == "accelerometer at imu":
            placed = self.robot.locate(imu_frame(self.robot) or "")[1]
            felt = rotations.turned(np.asarray(placed.rotation), felt)
            arm = np.broadcast_to(np.asarray(placed.translation), felt.shape)
            felt = felt - np.cross(spin_rate, arm) - np.cross(spin, np.cross(spin, arm))
        return felt - self._offset(felt, R, down)

    def _offset(self, felt: np.ndarray, R: np.ndarray, down: np.ndarray) -> np.ndarray:
        """Offset of an accelerometer, (3,), where velocities or positions show it."""
        if "base_orientation" not in self.values:
            return np.zeros(3)
        if "base_velocity" in self.values:
            other = rotations.turned_back(R, self.rates["base_velocity"]) - down
        elif "base_position" in self.values:
            other = rotations.turned_back(R, self.bends["base_position"]) - down
        else:
            return np.zeros(3)
        margin = min(int(self.joints.rate / self.joints.cutoff), len(felt) // 10)
        inside = slice(margin, len(felt) - margin)
        offset = (felt[inside] - other[inside]).mean(axis=0)
        self.notes.append(f"offset of the accelerometer, {np.sqrt((offset**2).sum()):.2g} m/s², taken away")
        return offset


def shifted(signals: WalkingSignals, lag: float, note: str = "") -> WalkingSignals:
    """The same with torques that were recorded ``lag`` [s] later than the motion.

    Args:
        signals: torques as they were recorded.
        lag: [s].
        note: for the record.
    """
    record = (*signals.record, note) if note else signals.record
    if not lag:
        return replace(signals, record=record)
    spline = needed("scipy.interpolate", "identify").CubicSpline(signals.t, signals.tau, axis=0)
    at = np.clip(signals.t + lag, signals.t[0], signals.t[-1])
    return replace(signals, tau=spline(at), lag=lag, record=record)


__all__ = ["SOURCES", "WalkingSignals", "condition_walking", "imu_frame", "shifted", "sources_of"]
