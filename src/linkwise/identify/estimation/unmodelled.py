"""What neither possible bodies nor friction that brakes explain, where it predicts motions that were left out.

Plain least squares may use bodies that cannot exist and friction that drives, and predict better with them: torques of
cables, springs and sensors have to go somewhere. Here they are a law of their own (``joint_laws.unmodelled``), fitted
to what the physically consistent fit leaves of each joint's torque. Of several sets of its columns the one with the
least error on left-out motions is taken, and none where that error is hardly lower. The square of the speed is not
among the columns: fitted to slow motions, it is far off in a faster one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from linkwise.core.summaries import Summarised
from linkwise.identify.estimation.fitting import Fit
from linkwise.identify.estimation.motions import LeftOut, motions
from linkwise.identify.estimation.regression import Observer
from linkwise.joint_laws.unmodelled import COS_1, COS_2, DRY, SIN_1, SIN_2, SPEED, VISCOUS
from linkwise.robot.robot import Robot
from linkwise.solve import linear

OFFSET = "torque_offset"
CHANGE = 0.02  # [rad/s or m/s] over which the part by direction changes
BY_SPEED = (VISCOUS, DRY)
BY_POSITION = (COS_1, SIN_1)
SETS = (
    BY_SPEED,
    BY_POSITION,
    (*BY_POSITION, COS_2, SIN_2),
    (*BY_SPEED, *BY_POSITION),
    (*BY_SPEED, *BY_POSITION, COS_2, SIN_2),
)
"""Tried for every joint, each with a constant; joints that slide have those without positions."""
WORTH = 0.02  # smallest reduction of the squared error of left-out motions


@dataclass(frozen=True)
class UnmodelledTorque:
    """Of one joint: its coefficients by name, and by how much the joint's residual on left-out motions fell [%]."""

    joint: str
    numbers: Mapping[str, float]
    gain: float

    @property
    def text(self) -> str:
        by = [
            words
            for words, names in (("speed", (VISCOUS, DRY)), ("position", (COS_1, SIN_1)))
            if any(name in self.numbers for name in names)
        ]
        return (
            f"{self.joint}: torque by {' and '.join(by)} that neither possible bodies nor friction that brakes explain "
            f"lowers its residual on left-out motions by {self.gain:.2g} %"
        )


@dataclass(frozen=True, repr=False)
class Unexplained(Summarised):
    """The joints that have such a torque."""

    torques: tuple[UnmodelledTorque, ...] = field(default=())

    def of(self, robot: Robot) -> Robot:
        """The robot with these torques; constants are added to its offsets."""
        joints = {joint.name: joint for joint in robot.moving_joints}
        given: dict[str, float] = {}
        for each in self.torques:
            numbers = dict(each.numbers) | {SPEED: CHANGE}
            numbers[OFFSET] = numbers[OFFSET] + float(joints[each.joint].number(OFFSET))
            given |= {f"{each.joint}.{name}": value for name, value in numbers.items()}
        return robot.with_parameters(given) if given else robot


def find_unmodelled(observer: Observer, fit: Fit) -> Unexplained:
    """Torques of joints that a physically consistent fit does not explain.

    Args:
        observer: the recordings.
        fit: of links and friction.
    """
    rest = fit.regression.residuals(fit.x)
    folds = motions(observer)
    names = tuple(dict.fromkeys(name for chosen in SETS for name in chosen))
    columns = np.concatenate([s.filtered(_columns(s.q, s.qd, names)) for s in observer.signals])
    found = []
    for j, joint in enumerate(observer.robot.coordinate_joints):
        sets = [chosen for chosen in SETS if joint.revolute or not set(BY_POSITION) & set(chosen)]
        trial = LeftOut(columns[:, j], rest[:, j], folds)
        used = [
            [*(names.index(name) for name in chosen), len(names)] for chosen in sets
        ]  # a constant is last
        errors = [float(sum(trial.errors(use))) for use in used]
        nothing = float(trial.nothing.sum())
        best = int(np.argmin(errors))
        if errors[best] < (1.0 - WORTH) * nothing:
            x = trial.solution(used[best])
            numbers = dict(zip((*sets[best], OFFSET), x.tolist(), strict=True))
            gain = 100.0 * (1.0 - float(np.sqrt(errors[best] / nothing)))
            found.append(UnmodelledTorque(joint.name, numbers, gain))
    return Unexplained(tuple(found))


def _columns(q: np.ndarray, qd: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """(N, n, names and a constant)."""
    (sine, cosine), (sine2, cosine2) = linear.sine_and_cosine(q), linear.sine_and_cosine(2.0 * q)
    known = {
        VISCOUS: qd,
        DRY: qd / np.sqrt(qd**2 + CHANGE**2),
        COS_1: cosine,
        SIN_1: sine,
        COS_2: cosine2,
        SIN_2: sine2,
    }
    return np.stack([*(known[name] for name in names), np.ones_like(q)], axis=-1)


__all__ = ["Unexplained", "UnmodelledTorque", "find_unmodelled"]
