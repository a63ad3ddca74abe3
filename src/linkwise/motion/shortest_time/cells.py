"""The grid along a path: cells of a parameter σ, and the path's derivatives by σ.

``time_optimal`` needs a parameter whose tangent dq/dσ neither vanishes nor turns quickly. That of a spline through
way-points is one. The time of a trajectory is none where it rests, and arc length is none where a path almost turns
back: its curvature has spikes there. So dσ/ds = w is the speed |dq/ds| next to points of rest, and at least a part of
the mean speed between them:

    dq/dσ = q′/w,   d²q/dσ² = (q″ − q′ w′/w)/w².

In each cell w is a polynomial with the values and slopes at the ends of the cell, so q(σ) and its derivatives fit
together exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.core.once import once
from linkwise.motion.polynomial import PiecewisePolynomial
from linkwise.motion.shortest_time.paths import JointPath, Splines
from linkwise.motion.trajectory import Moment

SAMPLES = np.array([0.0, 1 / 3, 2 / 3, 1.0])  # of ρ: where limits of a cell are evaluated
# the least η at which derivatives are evaluated beside a tangent that vanishes with order 0, 1, …
NEAR = np.array([0, 1e-4, 1e-3, 0.02, 0.05, 0.08, 0.1])
NEWTON = 40  # most steps to the parameter at a given distance
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
    @abstractmethod
    def along(self) -> JointPath | PiecewisePolynomial:
        """The path."""

    @property
    def resting(self) -> np.ndarray:
        """Cells at one of whose ends the tangent vanishes."""
        return np.zeros(0, dtype=int)

    def beside_rest(self, cell: np.ndarray, points: int) -> np.ndarray:
        """ρ of points of such cells, (cells, points), closer and closer to the end at which the tangent vanishes."""
        return np.zeros((len(cell), points))

    def with_stops(self, nodes: np.ndarray) -> Cells:
        """The same path that rests at these grid points, too."""
        return self

    @property
    def edges(self) -> np.ndarray:
        """Shares of cells next to their ends in which third derivatives are not those of the path, (cells,)."""
        return np.zeros(len(self.lengths))

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
        self.lengths = nodes[1:] - nodes[:-1]

    @once
    def piece(self) -> np.ndarray:
        """The piece of the spline in which each cell is."""
        middle = 0.5 * (self.nodes[1:] + self.nodes[:-1])
        return np.clip(np.searchsorted(self.knots, middle, side="right") - 1, 0, len(self.knots) - 2)

    @once
    def stops(self) -> np.ndarray:  # type: ignore[override]
        return np.zeros(len(self.nodes), dtype=bool)

    def at(self, cell: np.ndarray, rho: np.ndarray) -> Moment:
        piece = self.piece[cell]
        local = self.nodes[cell] + rho * self.lengths[cell] - self.knots[piece]
        return cubics(self.coefficients[piece], local[..., np.newaxis])

    @property
    def along(self) -> PiecewisePolynomial:
        return PiecewisePolynomial(self.knots, self.coefficients)

    def share(self, cell: np.ndarray, rho: np.ndarray) -> np.ndarray:
        return rho

    def divided(self, cell: np.ndarray, share: np.ndarray) -> SplineCells:
        middle = self.nodes[cell] + share * self.lengths[cell]
        return SplineCells(self.knots, self.coefficients, np.sort(np.append(self.nodes, middle)))


def cubics(c: np.ndarray, t: np.ndarray) -> Moment:
    """Cubic polynomials with coefficients (..., 4, n) and their derivatives at t (..., 1)."""
    return Moment(*cubic([c[..., k, :] for k in range(4)], t))


def cubic(c: Any, t: Any) -> tuple[Any, Any, Any]:
    """c₀ + c₁ t + c₂ t² + c₃ t³ and its derivatives, of arrays or scalars."""
    c0, c1, c2, c3 = c
    bend = c3 * t
    q = ((bend + c2) * t + c1) * t + c0
    bend = 3.0 * bend
    first = (bend + 2.0 * c2) * t + c1
    return q, first, 2.0 * (bend + c2)


def spline_blocks(
    points: np.ndarray, size: int, cells: int, grid: np.ndarray | None = None
) -> Iterator[tuple[Splines, np.ndarray]]:
    """Splines through way-points (paths, m, n), ``size`` paths at a time, and their grid points of ``spline_nodes``."""
    for start in range(0, len(points), size):
        splines = Splines(points[start : start + size])
        yield splines, spline_nodes(splines, cells, grid)


def spline_nodes(splines: Splines, cells: int, grid: np.ndarray | None = None) -> np.ndarray:
    """Grid points of splines, (paths, cells + 1): as many in every piece, all way-points among them.

    ``grid`` gives them as fractions of the whole instead; way-points are added.
    """
    count, m = splines.knots.shape
    if grid is not None:
        return _with_knots(splines.knots, splines.knots[:, -1:] * grid)
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


def _with_knots(knots: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Grid points (paths, points) and all inner knots (paths, m), each once.

    Points that are next to a knot move onto it. Paths with fewer points than others get more of them.
    """
    rows = []
    for own, points in zip(knots, nodes, strict=True):
        apart = np.abs(points[:, np.newaxis] - own).min(axis=1) > 1e-9 * own[-1]
        rows.append(np.sort(np.concatenate([points[apart], own])))
    most = max(len(row) for row in rows)
    for k, row in enumerate(rows):
        while len(row) < most:
            longest = int(np.argmax(np.diff(row)))
            row = np.insert(row, longest + 1, 0.5 * (row[longest] + row[longest + 1]))
        rows[k] = row
    return np.array(rows)


class PathCells(Cells):
    """Cells of any path; dσ/ds = w is a polynomial in each of them."""

    def __init__(
        self,
        path: JointPath,
        nodes: np.ndarray,
        kinds: Kinds,
        weight: np.ndarray,
        distance: tuple[np.ndarray, np.ndarray],
    ):
        """``nodes`` of the path's parameter s, (cells + 1,), with their ``kinds``.

        ``weight``: coefficients of P = dσ/dη, lowest power first, (cells, powers). η from 0 to 1 is the share of a
        cell's range of s, from its beginning, or from its end where the tangent vanishes there. ``distance``: values of
        s and arc lengths there, for fractions of the path.
        """
        self.path, self.nodes, self.kinds, self.distance = path, nodes, kinds, distance
        self.weight, self.stops = weight, kinds.stops
        self.span = np.diff(nodes)
        self.low, self.high = kinds.inside(nodes)
        self.mirrored, self.order = kinds.mirrored, kinds.order
        self.near = nearest(self.order)
        powers = self.weight / np.arange(1, self.weight.shape[1] + 1)
        self.lengths = powers.sum(axis=1)
        self.way = powers / self.lengths[:, np.newaxis]  # coefficients of ρ/η

    @property
    def fractions(self) -> np.ndarray:
        """Distances of the grid points along the path, as fractions of the whole."""
        s, length = self.distance
        return np.interp(self.nodes, s, length) / length[-1]

    def share(self, cell: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """ξ, the share of the cell's range of s that lies before ρ."""
        eta = self._eta(cell, rho)
        return np.where(self.mirrored[cell], 1 - eta, eta)

    def _eta(self, cell: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """η at which the polynomial of the distance is ρ, by Newton's method between bounds."""
        mirrored = self.mirrored[cell]
        wanted = np.where(mirrored, 1 - rho, rho) if mirrored.any() else rho
        order = self.order[cell]
        eta = wanted ** (1 / (order + 1)) if order.any() else np.array(wanted)
        way = np.moveaxis(self.way[cell], -1, 0)
        low, high = np.zeros_like(eta), np.ones_like(eta)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(NEWTON):
                value, rate = np.zeros_like(eta), np.zeros_like(eta)
                for coefficient in way[::-1]:
                    rate = rate * eta + value
                    value = value * eta + coefficient
                rate, value = rate * eta + value, value * eta - wanted
                low, high = np.where(value < 0, eta, low), np.where(value > 0, eta, high)
                following = eta - value / rate
                following = np.where((following >= low) & (following <= high), following, 0.5 * (low + high))
                following = np.where(value == 0, eta, following)
                done = np.abs(following - eta).max(initial=0.0) < 1e-14
                eta = following
                if done:
                    break
        return eta

    def _weight_at(self, cell: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P and dP/dη."""
        value, rate = np.zeros_like(eta), np.zeros_like(eta)
        for coefficient in np.moveaxis(self.weight[cell], -1, 0)[::-1]:
            rate = rate * eta + value
            value = value * eta + coefficient
        return value, rate

    def at(self, cell: np.ndarray, rho: np.ndarray) -> Moment:
        eta = self._eta(cell, rho)
        aside = np.maximum(eta, self.near[cell])
        weight, rise = (part[..., np.newaxis] for part in self._weight_at(cell, aside))
        mirrored, span = self.mirrored[cell], self.span[cell]
        s = self.nodes[cell] + span * np.where(mirrored, 1 - aside, aside)
        inside = np.clip(s, self.low[cell], self.high[cell])
        q, first, second = self.path.at(inside)
        if (s != inside).any():
            beyond = (s - inside)[..., np.newaxis]
            q, first = q + first * beyond, first + second * beyond
        span = np.where(mirrored, -span, span)[..., np.newaxis]  # ds/dη
        tangent = first * (span / weight)
        bend = (second * (span * span) - first * (span * rise / weight)) / (weight * weight)
        if (moved := eta != aside).any():  # a straight line next to a point without a tangent
            before, after = (self._distance_at(cell[moved], part[moved]) for part in (aside, eta))
            q, bend = q.copy(), bend.copy()
            q[moved] += tangent[moved] * (after - before)[:, np.newaxis]
            bend[moved] = 0.0
        sign = np.where(mirrored, -1.0, 1.0)[..., np.newaxis]
        return Moment(q, tangent * sign, bend)

    @property
    def along(self) -> JointPath:
        return self.path

    @property
    def edges(self) -> np.ndarray:
        return np.maximum(self.low - self.nodes[:-1], self.nodes[1:] - self.high) / self.span

    @property
    def resting(self) -> np.ndarray:
        return np.flatnonzero(self.order)

    def beside_rest(self, cell: np.ndarray, points: int) -> np.ndarray:
        eta = self.near[cell, np.newaxis] ** np.linspace(0.0, 1.0, points)
        way = np.zeros_like(eta)
        for coefficient in self.way[cell].T[::-1]:
            way = (way + coefficient[:, np.newaxis]) * eta
        return np.where(self.mirrored[cell, np.newaxis], 1 - way, way)

    def with_stops(self, nodes: np.ndarray) -> PathCells:
        stops = self.kinds.stops.copy()
        stops[nodes] = True
        kinds = Kinds(self.kinds.breaks, stops, self.kinds.orders)
        return PathCells(self.path, self.nodes, kinds, self.weight, self.distance)

    def _distance_at(self, cell: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """σ from the beginning of η on."""
        powers = np.arange(1, self.way.shape[1] + 1)
        return self.lengths[cell] * (self.way[cell] * eta[:, np.newaxis] ** powers).sum(axis=-1)

    def divided(self, cell: np.ndarray, share: np.ndarray) -> PathCells:
        where = self.nodes[cell] + share * self.span[cell]
        order = np.argsort(where, kind="stable")
        cell, where = cell[order], where[order]
        nodes, kinds = np.insert(self.nodes, cell + 1, where), self.kinds.with_plain(cell + 1)
        old = np.searchsorted(self.nodes, nodes[:-1], side="right") - 1
        # η of the old cells at the ends at which η of the new ones is 0 and 1
        ends = np.where(kinds.mirrored, [nodes[1:], nodes[:-1]], [nodes[:-1], nodes[1:]])
        first, last = (ends - self.nodes[old]) / self.span[old]
        first, last = np.where(self.mirrored[old], (1 - first, 1 - last), (first, last))
        weight = _composed(self.weight[old], first, last - first) * np.abs(last - first)[:, np.newaxis]
        same = kinds.order > 0
        weight[same] = np.where(np.arange(weight.shape[1]) < kinds.order[same, np.newaxis], 0.0, weight[same])
        return PathCells(self.path, nodes, kinds, weight, self.distance)


def _composed(coefficients: np.ndarray, start: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Coefficients of polynomials p(start + scale·x), by Horner's rule on polynomials."""
    composed = np.zeros_like(coefficients)
    for column in coefficients.T[::-1]:
        ahead = composed * scale[:, np.newaxis]
        composed = composed * start[:, np.newaxis]
        composed[:, 1:] += ahead[:, :-1]
        composed[:, 0] += column
    return composed


def nearest(order: np.ndarray) -> np.ndarray:
    """The least η at which derivatives are evaluated where the tangent vanishes with these orders."""
    return NEAR[order]


@dataclass(frozen=True)
class Kinds:
    """What grid points are, (cells + 1,) each."""

    breaks: np.ndarray
    """Derivatives may jump."""
    stops: np.ndarray
    """The tangent jumps, so that the path can only be passed at rest."""
    orders: np.ndarray
    """How often dq/ds is zero on both sides, (cells + 1, 2)."""

    @property
    def mirrored(self) -> np.ndarray:
        """Cells at whose end the tangent vanishes."""
        return self.orders[1:, 0] > 0

    @property
    def order(self) -> np.ndarray:
        """How often it vanishes; a cell has at most one such end."""
        return self.orders[:-1, 1] + self.orders[1:, 0]

    def inside(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of cells at which the path is evaluated, (cells,) each: a little inside where derivatives jump."""
        aside = np.minimum(1e-9 * (nodes[-1] - nodes[0]), 1e-3 * np.diff(nodes))
        left, right = (
            self.breaks[:-1] & (self.orders[:-1, 1] == 0),
            self.breaks[1:] & (self.orders[1:, 0] == 0),
        )
        return nodes[:-1] + aside * left, nodes[1:] - aside * right

    def with_plain(self, at: np.ndarray) -> Kinds:
        """The same with points of no kind before these."""
        return Kinds(*(np.insert(each, at, 0, axis=0) for each in (self.breaks, self.stops, self.orders)))
