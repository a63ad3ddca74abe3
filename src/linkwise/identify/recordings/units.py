"""Unit mistakes: numbers that cannot be radians, metres, seconds or newton metres, but would fit another unit."""

from __future__ import annotations

import math

import numpy as np

from linkwise.core.products import length as vector_length
from linkwise.identify.errors import LogError
from linkwise.identify.recordings.layout import Layout
from linkwise.identify.recordings.log import Log
from linkwise.robot.robot import Robot
from linkwise.solve import linear

SLACK = 1.1  # of the limits in a robot file
MANY_TURNS = 4 * math.pi  # [rad] of a joint without limits: an arm's cables do not allow more
ALIKE, SURELY = (
    0.7,
    0.95,
)  # correlation of velocities with slopes of positions: perhaps the same, surely the same
NEAREST = 2e-5  # [s] no joint is recorded more often


def check(log: Log, robot: Robot, layout: Layout, path: str) -> None:
    """Raise an error that names the quantity and the unit it seems to have; silent where the layout names the unit."""
    if "position" not in layout.units:
        _positions(log, robot, path)
    if "time" not in layout.units and layout.rate is None:
        check_stamps(log, path)
    if log.qd is not None and "velocity" not in layout.units:
        _velocities(log, log.qd, robot, path)
    if "torque" not in layout.units and "current" not in layout.units and layout.gains is None:
        _torques(log, robot, path)


def _positions(log: Log, robot: Robot, path: str) -> None:
    for joint, q in zip(robot.coordinate_joints, log.q.T, strict=True):
        reach = float(np.abs(q).max())
        lower, upper = joint.limits.lower, joint.limits.upper
        factor, unit = (math.pi / 180, "deg") if joint.revolute else (1e-3, "mm")
        bound = max(abs(lower), abs(upper))
        if not math.isfinite(bound) or joint.type == "continuous":
            bound = MANY_TURNS if joint.revolute else math.inf
        if (
            reach > max(SLACK * bound, 2 * math.pi if joint.revolute else 0.0)
            and reach * factor <= SLACK * bound
        ):
            raise LogError(
                f"{path}: positions of {joint.name} reach {reach:.4g}: too far for "
                f"{'rad' if joint.revolute else 'm'}, they look like {unit} "
                f'(say so in the layout: units.position = "{unit}")'
            )


def check_stamps(log: Log, path: str) -> None:
    """Raise an error where time stamps cannot be seconds.

    Args:
        log: the recording.
        path: its name in messages.
    """
    step = float(np.median(np.diff(log.t)))
    if step < NEAREST:
        raise LogError(
            f"{path}: time stamps are {step:.3g} s apart, {1 / step:.3g} samples a second: too near for seconds; time "
            "stamps have another unit (say so in the layout: units.time), or the given rate is another one"
        )
    for unit, factor in (("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if step > 0.5 and 1e-5 <= step * factor <= 0.1:
            raise LogError(
                f"{path}: time stamps are {step:.4g} apart: too far for seconds, they look like {unit} "
                f'(say so in the layout: units.time = "{unit}")'
            )


def _velocities(log: Log, qd: np.ndarray, robot: Robot, path: str) -> None:
    """Recorded velocities against the slopes of the positions."""
    slope = np.gradient(log.q, log.t, axis=0)
    for k, joint in enumerate(robot.coordinate_joints):
        moved = vector_length(slope[:, k])
        if moved == 0.0 or np.ptp(log.q[:, k]) < 1e-2:
            continue
        ratio = vector_length(qd[:, k]) / moved
        likeness = linear.dot(qd[:, k], slope[:, k]) / max(ratio * moved**2, 1e-300)
        if abs(likeness) < ALIKE:
            _refuse_exchanged_joints(qd[:, k], slope, k, robot, path)
            continue
        if likeness < 0:
            raise LogError(
                f"{path}: velocities of {joint.name} have the opposite sign of the slope of its positions"
            )
        units = (
            (("deg/s", 180 / math.pi), ("rpm", 60 / (2 * math.pi))) if joint.revolute else (("mm/s", 1e3),)
        )
        for unit, factor in units:
            if abs(math.log(ratio / factor)) < 0.2:
                raise LogError(
                    f"{path}: velocities of {joint.name} are {ratio:.3g} times the slope of its positions: they look "
                    f'like {unit} (say so in the layout: units.velocity = "{unit}"), '
                    "or the positions are not in SI units"
                )
        if joint.revolute and abs(math.log(ratio * 180 / math.pi)) < 0.2:
            raise LogError(
                f"{path}: positions of {joint.name} change {1 / ratio:.3g} times as fast as its velocities say: "
                'they look like deg (say so in the layout: units.position = "deg")'
            )


def _refuse_exchanged_joints(qd: np.ndarray, slope: np.ndarray, k: int, robot: Robot, path: str) -> None:
    """Raise where velocities recorded for joint k are the slopes of another joint's positions."""
    sizes = np.maximum(np.linalg.norm(slope, axis=0) * np.linalg.norm(qd), 1e-300)
    likeness = qd @ slope / sizes
    other = int(np.argmax(likeness))
    if likeness[other] > SURELY:
        names = robot.joint_names
        raise LogError(
            f"{path}: velocities of {names[k]} follow the positions of {names[other]}: columns are in another order"
        )


def _torques(log: Log, robot: Robot, path: str) -> None:
    """Measured torques against gravity in the robot file, where it has masses."""
    gravity = robot.gravity_torques(log.q[:: max(1, len(log) // 200)])
    expected = np.sqrt((gravity**2).mean(axis=0))
    largest = int(np.argmax(expected))
    if expected[largest] < 1.0:
        return
    ratio = float(np.sqrt((log.tau[:, largest] ** 2).mean())) / float(expected[largest])
    if 300.0 < ratio < 3000.0:
        raise LogError(
            f"{path}: torques of {robot.joint_names[largest]} are {ratio:.3g} times the weight in the robot file: they "
            'look like N·mm (say so in the layout: units.torque = "Nmm")'
        )
