"""A small network for what a fitted robot leaves of the torques, joint by joint, where it predicts left-out motions.

The hidden layer (``joint_laws.network``) is drawn at random over the positions and speeds of the recordings, from fixed
seeds; the weights behind it follow by least squares with a small ridge (random features, Rahimi and Recht 2008). Of
several draws the one with the least error on left-out motions is taken, and none where that error is not lower by
``WORTH`` and by a standard error between motions. No gradient descent: the result is the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwise.core.summaries import Summarised
from linkwise.identify.estimation.motions import LeftOut, left_over
from linkwise.identify.estimation.regression import Observer
from linkwise.joint_laws.network import NEURONS, inner, weight
from linkwise.robot.robot import Robot

ROWS = 6000  # recorded samples that are used of all recordings together
DRAWS = 12  # hidden layers that are tried for each joint
STEEP = 3.0  # largest slope of a unit over half the range of positions or speeds
WORTH = 0.02  # smallest reduction of the squared error of left-out motions


@dataclass(frozen=True)
class JointNetwork:
    """Of one joint: its numbers by name, and by how much its residual on left-out motions fell [%]."""

    joint: str
    numbers: dict[str, float]
    gain: float

    @property
    def text(self) -> str:
        return f"{self.joint}: lowers its residual on left-out motions by {self.gain:.2g} %"


@dataclass(frozen=True, repr=False)
class ResidualNetwork(Summarised):
    """The joints that have a network."""

    joints: tuple[JointNetwork, ...] = field(default=())

    def of(self, robot: Robot) -> Robot:
        """The robot with these networks."""
        given = {
            f"{each.joint}.{name}": value for each in self.joints for name, value in each.numbers.items()
        }
        return robot.with_parameters(given) if given else robot


def find_network(observer: Observer, robot: Robot) -> ResidualNetwork:
    """Networks of joints for what a robot leaves of the recorded torques.

    Args:
        observer: the recordings.
        robot: fitted to them.
    """
    q, qd, rest, motion = left_over(observer, robot, ROWS)
    found = []
    for j, joint in enumerate(robot.coordinate_joints):
        layers = [Layer.drawn(q[:, j], qd[:, j], seed) for seed in range(DRAWS)]
        trials = [LeftOut(layer.columns(q[:, j], qd[:, j]), rest[:, j], motion) for layer in layers]
        errors = [trial.errors() for trial in trials]
        best = min(range(DRAWS), key=lambda k: float(errors[k].sum()))
        nothing = trials[best].nothing
        if _clearly_less(errors[best], nothing):
            gain = 100.0 * (1.0 - float(np.sqrt(errors[best].sum() / nothing.sum())))
            found.append(JointNetwork(joint.name, layers[best].numbers(trials[best].solution()), gain))
    return ResidualNetwork(tuple(found))


@dataclass(frozen=True)
class Layer:
    """A hidden layer: a, b and d of every unit, each (units,)."""

    a: np.ndarray
    b: np.ndarray
    d: np.ndarray

    @classmethod
    def drawn(cls, q: np.ndarray, qd: np.ndarray, seed: int) -> Layer:
        """At random, with transitions among the positions and speeds of a joint, each (N,)."""
        random = np.random.default_rng(seed)
        slopes = random.uniform(-STEEP, STEEP, (2, NEURONS))
        centres = random.uniform(-1.0, 1.0, (2, NEURONS))
        middle = 0.5 * (float(q.max()) + float(q.min()))
        reach = max(0.5 * float(np.ptp(q)), 1e-9)
        fast = max(float(np.abs(qd).max()), 1e-9)
        a, b = slopes[0] / reach, slopes[1] / fast
        return cls(a, b, -a * (middle + reach * centres[0]) - b * fast * centres[1])

    def columns(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """(N, units)."""
        z = q[:, None] * self.a + qd[:, None] * self.b + self.d
        return z / np.sqrt(1.0 + z * z)

    def numbers(self, x: np.ndarray) -> dict[str, float]:
        """Those of the joint with weights x (units,), by the names of the law."""
        found: dict[str, float] = {}
        for k, (c, *inside) in enumerate(zip(x, self.a, self.b, self.d, strict=True), 1):
            found[weight(k)] = float(c)
            found |= {name: float(value) for name, value in zip(inner(k), inside, strict=True)}
        return found


def _clearly_less(errors: np.ndarray, nothing: np.ndarray) -> bool:
    gain = nothing - errors
    if len(gain) < 2:
        return False
    doubt = float(np.sqrt(len(gain)) * gain.std(ddof=1))
    return float(gain.sum()) > max(WORTH * float(nothing.sum()), doubt)


__all__ = ["JointNetwork", "ResidualNetwork", "find_network"]
