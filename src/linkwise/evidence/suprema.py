"""Sound bounds of a normal form over a box of angles and all |ε| ≤ 1, close to its largest value.

The function is evaluated on a grid of angles. At every point of the grid the largest value over the variables is
found from the monomials: variables that occur in linear terms alone take the better of their two ends, and the signs of
those that are multiplied with each other are enumerated. Between the points a function differs from its multilinear
interpolation by at most Σ_j h_j²/8·B_j, where B_j bounds the second derivative by angle j in the box, and an
interpolation is nowhere larger than at a corner. So the largest value of the grid plus that sum is a bound for the box.

B_j is found in the same way: the largest second derivative on a coarse grid, plus Σ_k h_k²/8·C_jk. C_jk bounds the
fourth derivative by the angles j and k, twice each: the sum of the sizes of its coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.evidence.series import Monomial, Series, up

_COARSE = 30_000
"""Points of the grid for second derivatives, at most."""
_TYPICAL = 0.25
"""A sum of sizes of coefficients is about four times the largest value: it only decides where the grid is finer."""
_SECONDS = 2.0
"""For a finer grid of one of the many values whose sizes bound rounding errors."""
_OPERATIONS = 1e9
"""Of a second, about. Bounds must not depend on how fast a machine is."""
_SIGNS = 8
"""Variables whose signs are enumerated at most."""
_SLAB = 1 << 15
"""Points that are evaluated at a time."""
_HUGE = 1e200
"""Functions that may be larger are bounded by the sum of the sizes of their coefficients."""
_FAR = 100.0
"""Angles beyond it [rad] are not evaluated."""
_UNITS = {np.float64: 2.0**-53, np.float32: 2.0**-24}
_OF_BASIS = 2.0**-36
"""Rounding of sines and cosines of multiples of angles, of points of the grid, and of real coefficients: more than it
can be."""


@dataclass(frozen=True)
class Supremum:
    """Bounds of one function.

    Args:
        low: lower bound.
        high: upper bound.
        points: evaluated.
        least: angles and variables where the value is close to its smallest.
        most: the same of its largest.
    """

    low: float
    high: float
    points: int
    least: tuple[np.ndarray, np.ndarray]
    most: tuple[np.ndarray, np.ndarray]

    @property
    def size(self) -> float:
        """Bound of the absolute value."""
        return max(abs(self.low), abs(self.high))


class Region:
    """A box of angles; an angle with a whole turn has no ends.

    Args:
        lower: lower bounds [rad].
        upper: upper bounds [rad].
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray):
        # multiples of large angles are rounded too much: they count as a whole turn
        self.turns = (upper - lower >= 2 * math.pi) | (np.maximum(np.abs(lower), np.abs(upper)) > _FAR)
        self.lower = np.where(self.turns, 0.0, lower)
        self.widths = np.where(self.turns, 2 * math.pi, upper - lower)

    def points(self, angle: int, cells: int) -> np.ndarray:
        """Ends of equal cells of one angle [rad]."""
        count = cells + (not self.turns[angle])
        return self.lower[angle] + self.widths[angle] * np.arange(count) / cells


def supremum(
    series: Series,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    variables: int,
    tolerance: float = 0.1,
    seconds: float = 60.0,
) -> Supremum:
    """Bounds of a function over a box.

    Args:
        series: the function.
        lower: lower bounds of the angles [rad].
        upper: upper bounds [rad].
        variables: the number of variables; all have |ε| ≤ 1.
        tolerance: what the bounds may add to the largest value, as a part of it.
        seconds: for a finer grid, about; bounds are wider if they do not last.
    """
    low, high = series.bounds()
    if not series.parts or not series.norm < _HUGE:
        nowhere = (np.zeros(series.packing.angles), np.zeros(variables))
        return Supremum(low, high, 0, nowhere, nowhere)
    grid = _Grid(series, Region(lower, upper), variables)
    best = _bounded(grid, tolerance, seconds * _OPERATIONS)
    return Supremum(max(best.low, low), min(best.high, high), best.points, best.least, best.most)


def _bounded(grid: _Grid, tolerance: float, most: float) -> Supremum:
    """Bounds from a coarse grid, and from a finer one of at most so many operations if they are not close."""
    coarse = grid.coarse_cells(tolerance)
    curvatures = grid.curvatures(coarse)
    best = grid.bounds(coarse, curvatures)
    between = grid.between(coarse, curvatures)
    wanted = max(tolerance * (best.size - between), 1e-300)
    if between <= wanted:
        return best
    fine = grid.bounds(grid.cells(curvatures, wanted, max(best.points, most / grid.cost)), curvatures)
    low, high = max(best.low, fine.low), min(best.high, fine.high)
    return Supremum(low, high, best.points + fine.points, fine.least, fine.most)


def largest(series: Series, region: Region, variables: int, tolerance: float) -> float:
    """Bound of the absolute value over a box.

    Args:
        series: the function.
        region: the box of the angles.
        variables: the number of variables; all have |ε| ≤ 1.
        tolerance: what the bound may add to the largest value, as a part of it.
    """
    if not series.parts or series.count == 1:
        return series.norm
    if not series.norm < _HUGE:
        return series.norm
    real = np.float32 if 1e-20 < series.norm < 1e20 else np.float64
    grid = _Grid(series, region, variables, real)
    return min(_bounded(grid, tolerance, _SECONDS * _OPERATIONS).size, series.norm)


def curvatures(series: Series, region: Region, variables: int) -> np.ndarray:
    """Bounds of the absolute second derivatives by every angle, over a box.

    Args:
        series: the function.
        region: the box of the angles.
        variables: the number of variables; all have |ε| ≤ 1.
    """
    grid = _Grid(series, region, variables)
    found = np.zeros(series.packing.angles)
    found[grid.used] = grid.curvatures(grid.coarse_cells(0.3))
    return found


class _Grid:
    """One function on grids over one box."""

    def __init__(self, series: Series, region: Region, variables: int, real: Any = np.float64):
        self.series, self.region = series, region
        self.used = series.angles()
        self.widths = region.widths[self.used]
        self.signs = _Variables(list(series.parts), variables)
        self.table = Lattice(series, self.used, real)
        # Relative to the sum of the sizes of the coefficients. A value is a sum over monomials of nested sums over
        # harmonics of each angle; |cos θ| + |sin θ| ≤ √2 for each of them.
        terms = sum(2 * d + 1 for d in self.table.degrees) + len(series.parts) + 16
        self.rounding = (_UNITS[real] * terms + _OF_BASIS) * 2.0 ** (len(self.used) / 2)
        # sums of |c|·k_j² and of |c|·k_j²·k_k²
        count = len(self.used)
        self.second, self.fourth = np.zeros(count), np.zeros((count, count))
        for keys, coefficients in series.parts.values():
            squares = series.packing.digits(keys)[:, self.used].astype(float) ** 2
            sizes = np.abs(coefficients)
            self.second += product(sizes[None], squares)[0]
            self.fourth += product((squares * sizes[:, None]).T, squares)
        slack = 1.0 + 1e-9  # more than rounding of these sums
        self.second *= slack
        self.fourth *= slack

    @property
    def cost(self) -> float:
        """Operations for one point, about."""
        return 10.0 * len(self.signs.monomials) + self.signs.table.size

    def _steps(self, cells: np.ndarray) -> np.ndarray:
        """h²/8 of every angle, rounded up."""
        return (self.widths / cells) ** 2 / 8 * (1.0 + 1e-12)

    def _fourth_along(self, steps: np.ndarray) -> np.ndarray:
        return (self.fourth * steps).sum(axis=1)

    def coarse_cells(self, tolerance: float) -> np.ndarray:
        """Cells along each angle for which the bound of what is between points is small, as far as points last."""
        cells = np.ones(len(self.used), dtype=int)
        allowed = tolerance * _TYPICAL * self.series.norm
        steps = self._steps(cells)
        while len(cells) and np.prod(cells + 1.0) < _COARSE:
            # what one angle adds: its second derivative, and its part in the bounds of all of them
            parts = steps * (_TYPICAL * self.second + 2 * self._fourth_along(steps))
            if (steps * (_TYPICAL * self.second + self._fourth_along(steps))).sum() <= allowed:
                break
            gains = parts * (1 - (cells / (cells + 1.0)) ** 2) / np.log((cells + 2.0) / (cells + 1.0))
            cells[int(np.argmax(gains))] += 1
            steps = self._steps(cells)
        return cells

    def cells(self, curvatures: np.ndarray, allowed: float, most: float) -> np.ndarray:
        """Cells along each angle so that what is between points is at most what is allowed, with few points."""
        cells = np.ones(len(self.used), dtype=int)
        while len(cells) and np.prod(cells + 1.0) < most:
            parts = self._steps(cells) * curvatures
            if parts.sum() <= allowed:
                break
            gains = parts * (1 - (cells / (cells + 1.0)) ** 2) / np.log((cells + 2.0) / (cells + 1.0))
            cells[int(np.argmax(gains))] += 1
        return cells

    def between(self, cells: np.ndarray, curvatures: np.ndarray) -> float:
        """Bound of the distance from the interpolation of the corners."""
        return up(float((self._steps(cells) * curvatures).sum()), 16)

    def curvatures(self, cells: np.ndarray) -> np.ndarray:
        """Bounds of the absolute second derivatives by every angle, from a grid."""
        axes = [self.region.points(j, n) for j, n in zip(self.used, cells, strict=True)]
        beyond = self._fourth_along(self._steps(cells)) + self.second * self.rounding
        found = np.zeros(len(self.used))
        for k in range(len(self.used)):
            for _, values in self.table.values(axes, twice=k):
                low, high = self.signs.bounds(values)
                found[k] = max(found[k], float(high.max()), -float(low.min()))
        return np.minimum(found + beyond, self.second) * (1.0 + 1e-12)

    def bounds(self, cells: np.ndarray, curvatures: np.ndarray) -> Supremum:
        """Bounds from one grid."""
        axes = [self.region.points(j, n) for j, n in zip(self.used, cells, strict=True)]
        least, most = math.inf, -math.inf
        at_least = at_most = (np.zeros(self.series.packing.angles), np.zeros(self.signs.count))
        points = 0
        for places, values in self.table.values(axes):
            low, high = self.signs.bounds(values)
            points += len(low)
            k, m = int(np.argmin(low)), int(np.argmax(high))
            if low[k] < least:
                least = float(low[k])
                at_least = (self.table.point(axes, places, k), self.signs.at(values[:, k], False))
            if high[m] > most:
                most = float(high[m])
                at_most = (self.table.point(axes, places, m), self.signs.at(values[:, m], True))
        slack = self.between(cells, curvatures) + self.series.error + self.series.norm * self.rounding
        return Supremum(least - slack, most + slack, points, at_least, at_most)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b by NumPy's own loops, as bounds are found by several threads at once.

    OpenBLAS 0.3.34, which NumPy 2.5.2 brings, gives wrong products and destroys memory when many threads use it.
    """
    return np.einsum("ij,jk->ik", a, b)


class Lattice:
    """Coefficient functions of all monomials on grids: real arrays over 1, cos θ, sin θ, cos 2θ, … of each angle."""

    def __init__(self, series: Series, used: Sequence[int], real: Any = np.float64):
        self.used, self.angles = list(used), series.packing.angles
        degree = series.true_degree()
        self.degrees = [int(degree[j]) for j in used]
        shape = tuple(2 * d + 1 for d in self.degrees)
        parts = []
        for keys, coefficients in series.parts.values():
            digits = series.packing.digits(keys)
            dense = np.zeros(shape, dtype=complex)
            places = tuple(digits[:, j] + d for j, d in zip(used, self.degrees, strict=True))
            dense[places] = coefficients if self.used else coefficients[0]
            for axis, d in enumerate(self.degrees):
                turned = np.einsum("ij,j...->i...", _to_real(d), np.moveaxis(dense, axis, 0))
                dense = np.moveaxis(turned, 0, axis)
            parts.append(np.real(dense))
        self.monomials = len(parts)
        self.parts = np.stack(parts, axis=-1).astype(real) if parts else np.zeros((*shape, 0), dtype=real)

    def values(
        self, axes: Sequence[np.ndarray], *, twice: int | None = None
    ) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        """(part of the grid, values (monomials, points)) for all of the grid.

        Args:
            axes: points of every angle [rad].
            twice: number of the angle by which the functions are derived twice; None: not derived.
        """
        bases = [
            _basis(a, d, k == twice).astype(self.parts.dtype)
            for k, (a, d) in enumerate(zip(axes, self.degrees, strict=True))
        ]
        yield from self._contracted(self.parts, bases, (), 0)

    def _contracted(
        self, parts: np.ndarray, bases: Sequence[np.ndarray], places: tuple[slice, ...], done: int
    ) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        """The first axis is summed over, and the points of its angle become the last one: each step is one product of
        two matrices, and at the end the axes are monomials and points."""
        ready = math.prod(p.stop - p.start for p in places)
        if done == len(bases):
            yield places, parts.reshape(self.monomials, ready)
            return
        left = math.prod(len(b) for b in bases[done + 1 :])
        step = max(1, _SLAB // (ready * left))
        own = parts.reshape(bases[done].shape[1], parts.size // bases[done].shape[1]).T
        for start in range(0, len(bases[done]), step):
            some = bases[done][start : start + step]
            place = slice(start, start + len(some))
            yield from self._contracted(product(own, some.T), bases, (*places, place), done + 1)

    def point(self, axes: Sequence[np.ndarray], places: tuple[slice, ...], number: int) -> np.ndarray:
        """The angles of one point of a part of the grid."""
        parts = [a[p] for a, p in zip(axes, places, strict=True)]
        found = np.zeros(self.angles)
        if parts:
            where = np.unravel_index(number, tuple(len(p) for p in parts))
            for j, p, k in zip(self.used, parts, where, strict=True):
                found[j] = p[k]
        return found


def _to_real(degree: int) -> np.ndarray:
    """From coefficients of exp(i k θ), k = −d … d, to those of 1, cos θ, sin θ, cos 2θ, …"""
    matrix = np.zeros((2 * degree + 1, 2 * degree + 1), dtype=complex)
    matrix[0, degree] = 1
    for k in range(1, degree + 1):
        matrix[2 * k - 1, degree + k] = matrix[2 * k - 1, degree - k] = 1
        matrix[2 * k, degree + k], matrix[2 * k, degree - k] = 1j, -1j
    return matrix


def _basis(angles: np.ndarray, degree: int, twice: bool) -> np.ndarray:
    """1, cos θ, sin θ, cos 2θ, …, or their second derivatives."""
    columns = [np.zeros_like(angles) if twice else np.ones_like(angles)]
    for k in range(1, degree + 1):
        factor = -float(k * k) if twice else 1.0
        columns += [factor * np.cos(k * angles), factor * np.sin(k * angles)]
    return np.stack(columns, axis=1)


class _Variables:
    """Bounds over |ε| ≤ 1 of polynomials with these monomials, from their coefficients."""

    def __init__(self, monomials: Sequence[Monomial], count: int):
        self.count = count
        mixed = [set(m) for m in monomials if len(set(m)) > 1]
        uses: dict[int, int] = {}
        for found in mixed:
            for v in found:
                uses[v] = uses.get(v, 0) + 1
        self.coupled = sorted(sorted(uses, key=lambda v: -uses[v])[:_SIGNS])
        inside = set(self.coupled)
        self.constant = [k for k, m in enumerate(monomials) if m == ()]
        self.squares = [k for k, m in enumerate(monomials) if m and all(m.count(v) % 2 == 0 for v in m)]
        special = {*self.constant, *self.squares}
        # a function that is linear in each variable is largest at ends; a power times others need not be
        ends = [inside >= set(m) and len(set(m)) == len(m) for m in monomials]
        self.signed = [k for k in range(len(monomials)) if k not in special and ends[k]]
        self.free = [k for k in range(len(monomials)) if k not in special and not ends[k]]
        if not mixed:
            self.free, self.signed = self.free + self.signed, []
        self.monomials = list(monomials)
        patterns = np.array(
            [
                [1 - 2 * ((p >> b) & 1) for b in range(len(self.coupled))]
                for p in range(1 << len(self.coupled))
            ]
        )
        self.patterns = patterns.reshape(1 << len(self.coupled), len(self.coupled))
        where = {v: b for b, v in enumerate(self.coupled)}
        products = [np.prod([self.patterns[:, where[v]] for v in monomials[k]], axis=0) for k in self.signed]
        # a pattern and its opposite give the same products of two: only different rows are tried
        table = np.array(products).T.reshape(len(self.patterns), len(self.signed))
        self.table, first = np.unique(table, axis=0, return_index=True)
        self.patterns = self.patterns[first]

    def bounds(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds for every point, of coefficients (monomials, points)."""
        base = values[self.constant].sum(axis=0)
        free = np.abs(values[self.free]).sum(axis=0)
        low = base - free + np.minimum(values[self.squares], 0.0).sum(axis=0)
        high = base + free + np.maximum(values[self.squares], 0.0).sum(axis=0)
        if self.signed:
            signed = product(self.table.astype(values.dtype), values[self.signed])
            low, high = low + signed.min(axis=0), high + signed.max(axis=0)
        return low, high

    def at(self, values: np.ndarray, largest: bool) -> np.ndarray:
        """Variables that give about the bound, for the coefficients of one point."""
        found = np.zeros(self.count)
        sign = 1.0 if largest else -1.0
        for k in self.free:
            for v in _odd(self.monomials[k]):
                found[v] = sign * (1.0 if values[k] >= 0 else -1.0)
        if self.signed:
            signed = product(self.table, values[self.signed][:, None])[:, 0]
            found[self.coupled] = self.patterns[int(np.argmax(sign * signed))]
        for k in self.squares:
            for v in set(self.monomials[k]):
                alone = v not in self.coupled
                found[v] = float(sign * values[k] > 0) if alone else found[v]
        return found


def _odd(monomial: Monomial) -> set[int]:
    return {v for v in monomial if monomial.count(v) % 2}


__all__ = ["Lattice", "Region", "Supremum", "curvatures", "largest", "supremum"]
