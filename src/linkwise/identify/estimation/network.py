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
from linkwise.identify.estimation.choices import Folds
from linkwise.identify.estimation.regression import Observer
from linkwise.joint_laws.network import NEURONS, inner, weight
from linkwise.robot.directions import torques_along
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

ROWS = 6000  # recorded samples that are used of all recordings together
DRAWS = 12  # hidden layers that are tried for each joint
STEEP = 3.0  # largest slope of a unit over half the range of positions or speeds
RIDGE = 1e-3  # of unit columns
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
    folds, parts = Folds.of(observer), []
    for k, signals in enumerate(observer.signals):
        t, (q, qd, qdd) = signals.at_stamps()
        rest = signals.log.tau - torques_along(robot, q, qd, qdd)
        keep = slice(None, None, max(1, -(-len(observer.signals) * len(t) // ROWS)))
        parts.append((q[keep], qd[keep], rest[keep], folds.at(k, t[keep])))
    q, qd, rest, motion = (np.concatenate(each) for each in zip(*parts, strict=True))
    found = []
    for j, joint in enumerate(robot.coordinate_joints):
        best: tuple[float, Layer, np.ndarray] | None = None
        for seed in range(DRAWS):
            layer = Layer.drawn(q[:, j], qd[:, j], seed)
            errors = _errors(layer.columns(q[:, j], qd[:, j]), rest[:, j], motion)
            if best is None or errors.sum() < best[0]:
                best = float(errors.sum()), layer, errors
        assert best is not None
        nothing = np.array([(rest[motion == k, j] ** 2).sum() for k in np.unique(motion)])
        if _clearly_less(best[2], nothing):
            x = _coefficients(best[1].columns(q[:, j], qd[:, j]), rest[:, j])
            gain = 100.0 * (1.0 - float(np.sqrt(best[0] / nothing.sum())))
            found.append(JointNetwork(joint.name, best[1].numbers(x), gain))
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


def _errors(columns: np.ndarray, rest: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """Squared error of every motion, predicted by the others, (motions,)."""
    joined = np.column_stack([columns, rest])
    parts = [joined[motion == k] for k in np.unique(motion)]
    grams = np.stack([product(each.T, each) for each in parts])
    whole, found = grams.sum(axis=0), []
    for gram in grams:
        x = np.append(_solution(whole - gram), -1.0)
        found.append(linear.dot(x, product(gram, x)))
    return np.array(found)


def _coefficients(columns: np.ndarray, rest: np.ndarray) -> np.ndarray:
    joined = np.column_stack([columns, rest])
    return _solution(product(joined.T, joined))


def _solution(gram: np.ndarray) -> np.ndarray:
    """Ridge regression of the last column by the others, from the products of all."""
    G, right = gram[:-1, :-1], gram[:-1, -1]
    size = np.sqrt(np.maximum(np.diag(G), 1e-300))
    return linear.solve(G / (size[:, None] * size) + RIDGE * np.eye(len(G)), right / size) / size


def _clearly_less(errors: np.ndarray, nothing: np.ndarray) -> bool:
    gain = nothing - errors
    if len(gain) < 2:
        return False
    doubt = float(np.sqrt(len(gain)) * gain.std(ddof=1))
    return float(gain.sum()) > max(WORTH * float(nothing.sum()), doubt)


__all__ = ["JointNetwork", "ResidualNetwork", "find_network"]
