"""Sound bounds of a normal form over a box of angles and all |ε| ≤ 1, close to its largest value.

The function is evaluated on a grid of angles. At every point of the grid the largest value over the variables is
found from the monomials: variables that occur in linear terms alone take the better of their two ends, and the signs of
those that are multiplied with each other are enumerated. Between the points a function differs from its multilinear
interpolation by at most Σ_j h_j²/8·B_j, where B_j bounds the second derivative by angle j, and an
interpolation is nowhere larger than at a corner. So the largest value of the grid plus that sum is a bound for the box.

B_j is bounded on the whole torus: there, a trigonometric polynomial of degree d that was evaluated at N equal steps is
nowhere larger than 1/cos(π·d/N) times its largest value at the steps (Ehlich and Zeller 1964, by Riesz' lemma on
|T(θ)| ≥ ‖T‖·cos(d·(θ − θ*))). Harmonics of the less important angles are bounded by the sizes of their coefficients.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.evidence.series import Monomial, Series, up

_MAJOR = 3
"""Angles with a grid of their own in bounds of second derivatives."""
_STEPS = 9
"""Steps of that grid for a turn, times the degree."""
_WORK = 3_000_000
"""Values that are evaluated for such a bound, about."""
_SIGNS = 8
"""Variables whose signs are enumerated at most."""
_SLAB = 1 << 17
"""Points that are evaluated at a time."""
_LATTICE_ROUNDING = 2.0**-36
"""Of sums of a million products, relative to the sum of the sizes of the coefficients: more than rounding can be."""
_SHORT_ROUNDING = 2.0**-17
"""The same of sums of a few hundred products in single precision."""


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
        seconds: time after which no finer grid is begun.
    """
    if not series.parts:
        nowhere = (np.zeros(series.packing.angles), np.zeros(variables))
        return Supremum(-series.error, series.error, 0, nowhere, nowhere)
    end = time.monotonic() + seconds
    used = series.angles()
    turns = upper - lower >= 2 * math.pi
    lower = np.where(turns, 0.0, lower)
    widths = np.where(turns, 2 * math.pi, upper - lower)
    curvatures = np.array([curvature(series, j) for j in used])
    signs = _Variables(list(series.parts), variables)
    table = Lattice(series, used)
    counts = np.ones(len(used), dtype=int)
    best: Supremum | None = None
    goal = max(tolerance, 4.0)
    while best is None or goal > tolerance:
        goal = tolerance if goal <= 4 * tolerance else goal / 4
        spread = _spread(best) or series.norm
        counts = np.maximum(counts, _counts(widths[used], curvatures, goal * spread))
        begin = time.monotonic()
        axes = [
            lower[j] + widths[j] * np.arange(n + (not turns[j])) / n
            for j, n in zip(used, counts, strict=True)
        ]
        between = float(sum((widths[used] / counts) ** 2 / 8 * curvatures))
        found = _on_grid(series, table, signs, axes, up(between, 8))
        best = found if best is None else _better(best, found)
        if time.monotonic() + 8 * (time.monotonic() - begin) > end:
            break
    assert best is not None
    low, high = series.bounds()
    return Supremum(max(best.low, low), min(best.high, high), best.points, best.least, best.most)


def _spread(best: Supremum | None) -> float:
    return 0.0 if best is None else max(abs(best.low), abs(best.high)) / 1.5


def _counts(widths: np.ndarray, curvatures: np.ndarray, allowed: float) -> np.ndarray:
    """Cells along each angle so that the sum of h²/8·B is what is allowed, with as few points as possible."""
    if not len(widths) or allowed <= 0:
        return np.ones(len(widths), dtype=int)
    each = allowed / len(widths)
    return np.maximum(1, np.ceil(widths * np.sqrt(curvatures / (8 * each)))).astype(int)


def _better(a: Supremum, b: Supremum) -> Supremum:
    """The bounds of both; points of the second, which has the finer grid."""
    return Supremum(max(a.low, b.low), min(a.high, b.high), a.points + b.points, b.least, b.most)


def _on_grid(
    series: Series, table: Lattice, signs: _Variables, axes: Sequence[np.ndarray], between: float
) -> Supremum:
    least, most = math.inf, -math.inf
    at_least = at_most = (np.zeros(series.packing.angles), np.zeros(signs.count))
    points = 0
    for places, values in table.values(axes):
        low, high = signs.bounds(values)
        points += len(low)
        k, m = int(np.argmin(low)), int(np.argmax(high))
        if low[k] < least:
            least, at_least = float(low[k]), (table.point(axes, places, k), signs.at(values[:, k], False))
        if high[m] > most:
            most, at_most = float(high[m]), (table.point(axes, places, m), signs.at(values[:, m], True))
    slack = between + series.error + series.norm * _LATTICE_ROUNDING
    return Supremum(least - slack, most + slack, points, at_least, at_most)


def curvature(series: Series, angle: int) -> float:
    """Bound of the absolute second derivative by an angle, for all angles and |ε| ≤ 1."""
    return torus_bound(series.second(angle))


def torus_bound(series: Series) -> float:
    """Bound of the absolute value for all angles and |ε| ≤ 1: closer than the sum of the sizes of the coefficients."""
    if not series.parts:
        return series.error
    sizes = {j: series.second(j).norm for j in series.angles()}
    degree = series.true_degree()
    major = sorted(sizes, key=lambda j: -sizes[j])[:_MAJOR]
    while len(major) > 1 and series.count * math.prod(_STEPS * int(degree[j]) for j in major[1:]) > _WORK:
        major.pop()
    steps = [_STEPS * int(degree[j]) for j in major]
    factor = 1.0
    for j, n in zip(major, steps, strict=True):
        factor /= math.cos(math.pi * int(degree[j]) / n)
    total = np.zeros(math.prod(steps))
    waves = [
        np.exp(2j * np.pi * np.outer(np.arange(n) / n, np.arange(-degree[j], degree[j] + 1)))
        for j, n in zip(major, steps, strict=True)
    ]
    for keys, coefficients in series.parts.values():
        for dense in _by_minor(series, keys, coefficients, major, degree):
            for wave in waves:
                dense = np.tensordot(dense, wave.astype(np.complex64), axes=(1, 1))
            total += np.abs(dense).sum(axis=0).reshape(-1)
    rounding = series.norm * _SHORT_ROUNDING + series.error
    return min(up(factor * float(total.max()), 64) + rounding, series.norm)


def _by_minor(
    series: Series, keys: np.ndarray, coefficients: np.ndarray, major: Sequence[int], degree: np.ndarray
) -> Iterator[np.ndarray]:
    """Coefficients as arrays over the major angles, one for each harmonic of all others, a few hundred at a time.

    Of a harmonic and its conjugate the first stands for both.
    """
    digits = series.packing.digits(keys)
    shape = tuple(2 * int(degree[j]) + 1 for j in major)
    place = np.zeros(len(keys), dtype=np.int64)
    others = keys.copy()
    for j, size in zip(major, shape, strict=True):
        place = place * size + digits[:, j] + degree[j]
        others -= digits[:, j] << (series.packing.bits * j)
    kept = others >= 0
    minor, group = np.unique(others[kept], return_inverse=True)
    dense = np.zeros((len(minor), math.prod(shape)), dtype=np.complex64)
    dense[group.reshape(-1), place[kept]] = coefficients[kept] * np.where(others[kept] > 0, 2.0, 1.0)
    dense = dense.reshape(len(minor), *shape)
    for start in range(0, len(minor), 256):
        yield dense[start : start + 256]


class Lattice:
    """Coefficient functions of all monomials on grids: real arrays over 1, cos θ, sin θ, cos 2θ, … of each angle."""

    def __init__(self, series: Series, used: Sequence[int]):
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
                dense = np.moveaxis(np.tensordot(_to_real(d), dense, axes=(1, axis)), 0, axis)
            parts.append(np.real(dense))
        self.parts = np.array(parts).reshape(len(parts), *shape)

    def values(self, axes: Sequence[np.ndarray]) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        """(part of the grid, values (monomials, points)) for all of the grid."""
        yield from self._contracted(self.parts, axes, (), 0)

    def _contracted(
        self, parts: np.ndarray, axes: Sequence[np.ndarray], places: tuple[slice, ...], done: int
    ) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        left = math.prod(len(a) for a in axes[done:])
        size = math.prod(parts.shape[1 : done + 1]) if done else 1
        if done == len(axes):
            yield places, parts.reshape(len(parts), math.prod(parts.shape[1:]))
            return
        step = max(1, _SLAB * len(axes[done]) // max(1, left * size))
        for start in range(0, len(axes[done]), step):
            some = axes[done][start : start + step]
            basis = _basis(some, self.degrees[done])
            moved = np.moveaxis(np.tensordot(parts, basis, axes=(done + 1, 1)), -1, done + 1)
            yield from self._contracted(moved, axes, (*places, slice(start, start + len(some))), done + 1)

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


def _basis(angles: np.ndarray, degree: int) -> np.ndarray:
    columns = [np.ones_like(angles)]
    for k in range(1, degree + 1):
        columns += [np.cos(k * angles), np.sin(k * angles)]
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
        self.signed = [k for k, m in enumerate(monomials) if k not in special and inside >= _odd(m)]
        self.free = [k for k, m in enumerate(monomials) if k not in special and not inside >= _odd(m)]
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
            signed = self.table.astype(float) @ values[self.signed]
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
            signed = self.table @ values[self.signed]
            found[self.coupled] = self.patterns[int(np.argmax(sign * signed))]
        for k in self.squares:
            for v in set(self.monomials[k]):
                alone = v not in self.coupled
                found[v] = float(sign * values[k] > 0) if alone else found[v]
        return found


def _odd(monomial: Monomial) -> set[int]:
    return {v for v in monomial if monomial.count(v) % 2}


__all__ = ["Lattice", "Supremum", "curvature", "supremum", "torus_bound"]
