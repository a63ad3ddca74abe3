"""The motions of which recordings consist: parts that can be left out without leaving their like behind.

Where a recording repeats a motion, or two recordings have the same one, all of its repetitions are one motion. Of
what a fitted robot leaves of the torques, columns explain so much as they predict of motions that were left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.errors import needed
from linkwise.identify.estimation.regression import Observer
from linkwise.robot.directions import torques_along
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

BLOCKS = 10  # motions into which recordings are divided
ALIKE = 0.05  # distance of two states, of their spread, up to which they are the same
RIDGE = 1e-3  # of unit columns: over a small range cosine, sine and a constant are nearly the same


def motions(observer: Observer) -> np.ndarray:
    """For every row of a regression the number of its motion, shape (N,), from 0 to ``BLOCKS`` − 1.

    Rows are cut into blocks in the order of time; but a row that passes through a state, positions and velocities, that
    was met before belongs where that was.
    """
    known = observer.__dict__.get("_motions_of_rows")
    if known is not None:
        return known
    states = np.concatenate(
        [np.concatenate([s.filtered(s.q), s.filtered(s.qd)], axis=1) for s in observer.signals]
    )
    scaled = states / np.maximum(states.std(axis=0), 1e-12)
    reach = ALIKE * np.sqrt(
        scaled.shape[1]
    )  # all coordinates of two equal states together may be this far apart
    tree = needed("scipy.spatial", "identify").cKDTree(scaled)
    first = np.array([min(near) for near in tree.query_ball_point(scaled, reach)])
    places = np.unique(first)  # where something new was met
    found = np.searchsorted(places, first) * BLOCKS // len(places)
    observer.__dict__["_motions_of_rows"] = found
    return found


@dataclass(frozen=True)
class Folds:
    """Which motion is left out together with the time of a sample: (times, numbers) of every recording."""

    parts: tuple[tuple[np.ndarray, np.ndarray], ...]
    count: int

    @classmethod
    def of(cls, observer: Observer) -> Folds:
        numbers = motions(observer)
        ends = np.cumsum([len(s.filtered_times) for s in observer.signals])[:-1]
        parts = zip((s.filtered_times for s in observer.signals), np.split(numbers, ends), strict=True)
        return cls(tuple(parts), int(numbers.max()) + 1)

    def at(self, recording: int, times: np.ndarray) -> np.ndarray:
        """The motion at each of these times (N,)."""
        known, numbers = self.parts[recording]
        middle = 0.5 * (known[1:] + known[:-1])
        return numbers[np.searchsorted(middle, times)]


def left_over(
    observer: Observer, robot: Robot, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions, speeds and residual torques, each (N, n), and the number of the motion of every sample (N,).

    Args:
        observer: the recordings.
        robot: fitted to them.
        most: samples of all recordings together, about.
    """
    folds, parts = Folds.of(observer), []
    for k, signals in enumerate(observer.signals):
        t, (q, qd, qdd) = signals.at_stamps()
        rest = signals.log.tau - torques_along(robot, q, qd, qdd)
        keep = slice(None, None, max(1, -(-len(observer.signals) * len(t) // most)))
        parts.append((q[keep], qd[keep], rest[keep], folds.at(k, t[keep])))
    q, qd, rest, motion = (np.concatenate(each) for each in zip(*parts, strict=True))
    return q, qd, rest, motion


class LeftOut:
    """Ridge regression of a residual (N,) by columns (N, p), from sums of products of every motion (N,)."""

    def __init__(self, columns: np.ndarray, rest: np.ndarray, motion: np.ndarray):
        joined = np.column_stack([columns, rest])
        parts = [joined[motion == k] for k in np.unique(motion)]
        self.grams = np.stack([product(each.T, each) for each in parts])
        self.all = range(columns.shape[1])

    @property
    def nothing(self) -> np.ndarray:
        """Squared residual of every motion, (motions,)."""
        return self.grams[:, -1, -1]

    def errors(self, use: Sequence[int] | None = None) -> np.ndarray:
        """Squared error of every motion, predicted by the others, (motions,).

        Args:
            use: numbers of columns; by default all.
        """
        chosen = [*(self.all if use is None else use), -1]
        whole, found = self.grams.sum(axis=0), []
        for gram in self.grams:
            x = np.append(_solution((whole - gram)[np.ix_(chosen, chosen)]), -1.0)
            found.append(linear.dot(x, product(gram[np.ix_(chosen, chosen)], x)))
        return np.array(found)

    def solution(self, use: Sequence[int] | None = None) -> np.ndarray:
        """Coefficients from all motions; ``use`` as for ``errors``."""
        chosen = [*(self.all if use is None else use), -1]
        return _solution(self.grams.sum(axis=0)[np.ix_(chosen, chosen)])


def _solution(gram: np.ndarray) -> np.ndarray:
    """Ridge regression of the last column by the others, from the products of all."""
    G, right = gram[:-1, :-1], gram[:-1, -1]
    size = np.sqrt(np.maximum(np.diag(G), 1e-300))
    return linear.solve(G / (size[:, None] * size) + RIDGE * np.eye(len(G)), right / size) / size
