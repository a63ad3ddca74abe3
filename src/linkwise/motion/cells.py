"""The grid along a path: cells of a parameter σ, and the path's derivatives by σ.

``time_optimal`` needs a parameter whose tangent dq/dσ never vanishes. That of a spline through way-points does not. The
time of a trajectory does where it rests, so σ is the arc length there, ∫ |dq/ds| ds, and

    dq/dσ = t = q′/|q′|,   d²q/dσ² = (q″ − t (t·q″))/|q′|².

In each cell |dq/ds| is a polynomial through its values at eight points, so that s(σ) needs no more of the path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from linkwise.motion.paths import JointPath, Splines
from linkwise.motion.trajectory import Moment

SAMPLES = np.array([0.0, 1 / 3, 2 / 3, 1.0])  # of ρ: where limits of a cell are evaluated
NEAR = 1e-3  # part of a cell: so far from a point without a tangent derivatives are evaluated there
NEWTON = 8  # steps to the parameter at a given distance
VANISHED = 1e-7  # |dq/ds| relative to its largest value: there is no tangent
SHARP = 1e-6  # difference of unit tangents on both sides from which a point is a corner
GRADED = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # where cells beside a point of rest are divided


class Cells(ABC):
    """The cells of one path."""

    lengths: np.ndarray  # h, (cells,)
    stops: (
        np.ndarray
    )  # grid points at which the path has a corner, so that it can only be passed at rest; (cells + 1,)

    @abstractmethod
    def at(self, cell: np.ndarray, rho: np.ndarray) -> Moment:
        """Positions and their first and second derivatives by σ, (..., n), in cells at fractions of their lengths."""

    @abstractmethod
    def divided(self, cell: np.ndarray, share: np.ndarray) -> Cells:
        """The same path with cells divided at shares of their ranges of the path's own parameter."""

    def divided_at(self, cell: np.ndarray, rho: np.ndarray) -> Cells:
        """The same path with cells divided at fractions of their lengths."""
        return self.divided(cell, self.share(cell, rho))

    @abstractmethod
    def share(self, cell: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """The share of a cell's range of the path's own parameter that lies before a fraction of its length."""

    def halved(self, which: np.ndarray) -> Cells:
        """The same path with some cells divided in two."""
        return self.divided(which, np.full(len(which), 0.5))

    @property
    def fractions(self) -> np.ndarray:
        """σ at the grid points, as fractions of the whole."""
        ends = np.concatenate([[0.0], np.cumsum(self.lengths)])
        return ends / ends[-1]

    def samples(self) -> Moment:
        """The path at ``SAMPLES`` of every cell, (cells, samples, n)."""
        shape = len(self.lengths), len(SAMPLES)
        cell = np.broadcast_to(np.arange(shape[0])[:, np.newaxis], shape)
        return self.at(cell, np.broadcast_to(SAMPLES, shape))


class SplineCells(Cells):
    """Cells of a spline through way-points, whose own parameter never stands still."""

    def __init__(self, knots: np.ndarray, coefficients: np.ndarray, nodes: np.ndarray):
        self.knots, self.coefficients, self.nodes = knots, coefficients, nodes
        self.lengths = np.diff(nodes)
        middle = 0.5 * (nodes[1:] + nodes[:-1])
        self.piece = np.clip(np.searchsorted(knots, middle, side="right") - 1, 0, len(knots) - 2)
        self.stops = np.zeros(len(nodes), dtype=bool)

    def at(self, cell: np.ndarray, rho: np.ndarray) -> Moment:
        piece = self.piece[cell]
        local = self.nodes[cell] + rho * self.lengths[cell] - self.knots[piece]
        return cubics(self.coefficients[piece], local[..., np.newaxis])

    def share(self, cell: np.ndarray, rho: np.ndarray) -> np.ndarray:
        return rho

    def divided(self, cell: np.ndarray, share: np.ndarray) -> SplineCells:
        middle = self.nodes[cell] + share * self.lengths[cell]
        return SplineCells(self.knots, self.coefficients, np.sort(np.append(self.nodes, middle)))


def cubics(c: np.ndarray, t: np.ndarray) -> Moment:
    """Cubic polynomials with coefficients (..., 4, n) and their derivatives at t (..., 1)."""
    c0, c1, c2, c3 = (c[..., k, :] for k in range(4))
    bend = c3 * t
    q = ((bend + c2) * t + c1) * t + c0
    bend *= 3.0
    first = (bend + 2.0 * c2) * t + c1
    return Moment(q, first, 2.0 * (bend + c2))


def spline_nodes(splines: Splines, cells: int, grid: np.ndarray | None = None) -> np.ndarray:
    """Grid points of splines, (paths, cells + 1): as many in every piece, all way-points among them.

    ``grid`` gives them as fractions of the whole instead.
    """
    count, m = splines.knots.shape
    if grid is not None:
        return splines.knots[:, -1:] * grid
    each = max(-(-cells // (m - 1)), 4)
    inside = np.arange(each) / each
    nodes = splines.knots[:, :-1, np.newaxis] + np.diff(splines.knots)[..., np.newaxis] * inside
    first, last = nodes[:, 0, 1], splines.knots[:, -1]
    before = nodes[:, -1, -1]
    graded = np.array(GRADED)
    start = splines.knots[:, :1] + (first - splines.knots[:, 0])[:, np.newaxis] * graded
    end = last[:, np.newaxis] - (last - before)[:, np.newaxis] * graded[::-1]
    flat = nodes.reshape(count, -1)
    return np.concatenate([flat[:, :1], start, flat[:, 1:], end, last[:, np.newaxis]], axis=1)


class ArcCells(Cells):
    """Cells of any path by its arc length."""

    def __init__(
        self, path: JointPath, nodes: np.ndarray, breaks: np.ndarray, stops: np.ndarray, orders: np.ndarray
    ):
        """``nodes`` of the path's parameter, (cells + 1,). ``breaks`` marks nodes where derivatives may jump, ``stops``
        those where the tangent does; ``orders`` is how often dq/ds is zero on both sides of a node, (cells + 1, 2).
        """
        self.path, self.nodes, self.breaks, self.stops, self.orders = path, nodes, breaks, stops, orders
        self.span = np.diff(nodes)
        aside = np.minimum(1e-9 * (nodes[-1] - nodes[0]), 1e-3 * self.span)
        self.low = nodes[:-1] + np.where(breaks[:-1], aside, 0.0)
        self.high = nodes[1:] - np.where(breaks[1:], aside, 0.0)
        inside = nodes[:-1, np.newaxis] + self.span[:, np.newaxis] * _POINTS
        speed = np.linalg.norm(path.at(inside).qd, axis=-1) * self.span[:, np.newaxis]
        self.speed = speed @ _TO_POWERS.T  # coefficients of dσ/dξ, ξ in [0, 1] along the cell
        distance = self.speed / np.arange(1, len(_POINTS) + 1)
        self.lengths = distance.sum(axis=1)
        self.distance = distance / self.lengths[:, np.newaxis]
        self.left, self.right = orders[:-1, 1], orders[1:, 0]

    def share(self, cell: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """ξ at which the polynomial of the distance is ρ, by Newton's method."""
        left, right = self.left[cell], self.right[cell]
        xi = np.where(right > 0, 1 - (1 - rho) ** (1 / (right + 1)), rho ** (1 / (left + 1)))
        distance = np.moveaxis(self.distance[cell], -1, 0)
        for _ in range(NEWTON):
            value, rate = np.zeros_like(xi), np.zeros_like(xi)
            for coefficient in distance[::-1]:
                rate = rate * xi + value
                value = value * xi + coefficient
            rate, value = rate * xi + value, value * xi
            with np.errstate(divide="ignore", invalid="ignore"):
                step = (value - rho) / rate
            xi = np.clip(xi - np.where(np.isfinite(step), step, 0.0), 0.0, 1.0)
        return xi

    def at(self, cell: np.ndarray, rho: np.ndarray) -> Moment:
        xi = self.share(cell, rho)
        aside = np.clip(
            xi, np.where(self.left[cell] > 0, NEAR, 0.0), np.where(self.right[cell] > 0, 1 - NEAR, 1.0)
        )
        s = np.clip(self.nodes[cell] + self.span[cell] * aside, self.low[cell], self.high[cell])
        q, first, second = self.path.at(s)
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = np.sqrt((first * first).sum(axis=-1, keepdims=True))
            tangent = first / speed
            bend = (second - tangent * (tangent * second).sum(axis=-1, keepdims=True)) / (speed * speed)
        if (moved := xi != aside).any():
            distance = self.distance[cell[moved]]
            back = (distance * xi[moved, np.newaxis] ** _EXPONENTS).sum(axis=-1)
            back -= (distance * aside[moved, np.newaxis] ** _EXPONENTS).sum(axis=-1)
            q = q.copy()
            q[moved] += tangent[moved] * (back * self.lengths[cell[moved]])[:, np.newaxis]
        return Moment(q, tangent, bend)

    def divided(self, cell: np.ndarray, share: np.ndarray) -> ArcCells:
        middle = self.nodes[cell] + share * self.span[cell]
        nodes = np.append(self.nodes, middle)
        order = np.argsort(nodes, kind="stable")
        plain = np.zeros(len(middle), dtype=bool)
        none = np.zeros((len(middle), 2), dtype=int)
        return ArcCells(
            self.path,
            nodes[order],
            np.append(self.breaks, plain)[order],
            np.append(self.stops, plain)[order],
            np.concatenate([self.orders, none])[order],
        )


_POINTS = 0.5 - 0.5 * np.cos(np.pi * (np.arange(8) + 0.5) / 8)
_TO_POWERS = np.linalg.inv(np.vander(_POINTS, increasing=True))
_EXPONENTS = np.arange(1, 9)
