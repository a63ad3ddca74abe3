"""Time-optimal motions with limited jerk.

The passes of reachability analysis have no jerk: accelerations jump. With a limit of jerk the path is first run through
by a smooth motion r(ξ), ξ in [0, 1], with zero velocity and acceleration at both ends. The time law ξ(t) is then
optimised. With y = ξ̇²:

    q̇ = r′ √y,   q̈ = ½ r′ y′ + r″ y,   q⃛ = √y (½ r′ y″ + 3/2 r″ y′ + r‴ y),   T = ∫ dξ/√y

y is a quadratic spline, so jerk is finite everywhere. T is convex in y, velocity and torque limits are linear, and jerk
is limited by ±(½ r′ y″ + 3/2 r″ y′ + r‴ y) ≤ J/√y. An interior-point method starts at a slow motion, which keeps all
limits, and takes steps only to motions that keep them at samples; its result is checked on a finer grid and made slower
as a whole where that is needed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from linkwise.motion.arguments import check_keeps_constraints
from linkwise.motion.shortest_time.cells import SAMPLES, Cells
from linkwise.motion.shortest_time.optimal_motion import InfeasiblePathError, TimeOptimal
from linkwise.motion.shortest_time.path_limits import CREEP, Limits, Strips
from linkwise.motion.shortest_time.verified import exceeded, limit_rows, slower_part, value_rows
from linkwise.motion.trajectory import Moment

SHRINK = 0.2  # of the weight of the barrier, from one round to the next
ROUNDS = 13
STEPS = 8  # of Newton's method in a round
KEPT = 1e-5  # of every limit: a margin
ASIDE = 1e-6  # of an interval between points at which jerk jumps: where its ends are evaluated
SPARE = 3e-6  # of squares of speeds: how much slower motions become than limits need
REPAIRS = 60


class Smooth:
    """A stretch of a path between two points of rest, run through by r(ξ)."""

    def __init__(self, cells: Cells, first: int, last: int):
        """Cells ``first`` … ``last`` − 1 of a path."""
        self.cells, self.first = cells, first
        self.ends = np.concatenate([[0.0], np.cumsum(cells.lengths[first:last])])

    def at(self, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """r and its first three derivatives, (..., n)."""
        length = self.ends[-1]
        sigma = length * xi**3 * (10 - 15 * xi + 6 * xi**2)
        one, two, three = (
            length * part[..., np.newaxis]
            for part in (
                30 * (xi * (1 - xi)) ** 2,
                60 * xi * (1 - xi) * (1 - 2 * xi),
                60 * (1 - 6 * xi * (1 - xi)),
            )
        )
        cell = np.clip(np.searchsorted(self.ends, sigma, side="right") - 1, 0, len(self.ends) - 2)
        h = self.cells.lengths[self.first + cell]
        rho = np.clip((sigma - self.ends[cell]) / h, 0.0, 1.0)
        q, tangent, bend = self.cells.at(self.first + cell, rho)
        step = np.clip(
            0.1 * np.minimum(rho, 1 - rho), 1e-5, 1e-3
        )  # derivatives grow towards vanishing tangents
        edge = 2 * step + self.cells.edges[self.first + cell]
        near = np.clip(rho, edge, 1 - edge)
        before, after = (self.cells.at(self.first + cell, near + side * step).qdd for side in (-1, 1))
        third = (after - before) / (2 * step * h)[..., np.newaxis]
        return (
            q,
            tangent * one,
            tangent * two + bend * one**2,
            tangent * three + 3 * bend * one * two + third * one**3,
        )


class _Law:
    """y(ξ) as a quadratic spline: values and derivatives at points of all cells, linear in its coefficients."""

    def __init__(self, count: int, points: np.ndarray):
        self.count, self.width = count, 1 / count
        t = points[:, np.newaxis]
        # the three splines that are not zero in a cell, at the points
        self.value = np.concatenate([0.5 * (1 - t) ** 2, 0.5 + t * (1 - t), 0.5 * t**2], axis=1)
        self.slope = np.concatenate([t - 1, 1 - 2 * t, t], axis=1) * count
        self.bend = np.broadcast_to(np.array([1.0, -2.0, 1.0]) * count**2, self.value.shape)
        self.columns = np.arange(count)[:, np.newaxis] + np.arange(3)

    def of(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """y, y′ and y″, (cells, points)."""
        local = c[self.columns]
        return local @ self.value.T, local @ self.slope.T, local @ self.bend.T


class _Barrier:
    """The problem of one stretch: limits at samples, as multiples of themselves."""

    def __init__(self, limits: Limits, jerk: np.ndarray, smooth: Smooth, count: int):
        self.limits, self.jerk, self.law = limits, jerk, _Law(count, SAMPLES)
        xi = (np.arange(count)[:, np.newaxis] + SAMPLES) / count
        q, self.one, self.two, self.three = smooth.at(xi)
        rests = np.zeros((1, count + 1), dtype=bool)
        rests[:, 0] = rests[:, -1] = True
        moment = Moment(*(part[np.newaxis] for part in (q, self.one, self.two)))
        self.strips = Strips(limits, moment, np.full((1, count), 1 / count), rests, 1)
        self.low = self.high = np.zeros(0)
        self.rub(np.full((count, len(SAMPLES)), CREEP))

    def rub(self, y: np.ndarray) -> None:
        """Friction is that at these y from now on; where a joint turns back in a cell, that of both directions."""
        low, high = self.strips.allowed(np.zeros((1, len(y), 1)), y[np.newaxis])
        low, high = (np.broadcast_to(limit, self.strips.c.shape)[0] for limit in (low, high))
        margin, c = KEPT * self.strips.scale, self.strips.c[0]
        self.low = low.max(axis=1, keepdims=True) + margin - c
        self.high = high.min(axis=1, keepdims=True) - margin - c

    def slacks(self, y: np.ndarray, slope: np.ndarray, bend: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """(slack, derivatives by y, y′, y″) of each kind of limit, (cells, points, rows)."""
        one = (1 - KEPT) * np.ones((*y.shape, 1))
        y, slope, bend = (part[..., np.newaxis] for part in (y, slope, bend))
        speeds = self.strips.speeds[0][..., np.newaxis]
        zero = np.zeros_like(speeds)
        kinds = [(one - speeds * y, -speeds, zero, zero)]
        a, b, scale = 0.5 * self.strips.a[0], self.strips.b[0], self.strips.scale
        value, none = a * slope + b * y, np.zeros_like(a)
        kinds.append(((self.high - value) / scale, -b / scale, -a / scale, none))
        kinds.append(((value - self.low) / scale, b / scale, a / scale, none))
        joints = np.flatnonzero(np.isfinite(self.jerk))
        one, two, three = (
            part[..., joints] / self.jerk[joints] for part in (0.5 * self.one, 1.5 * self.two, self.three)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            room = (1 - KEPT) / np.sqrt(y)
        rate = one * bend + two * slope + three * y
        for side in (-1.0, 1.0):
            kinds.append((room + side * rate, -0.5 * room / y + side * three, side * two, side * one))
        return [tuple(np.where(np.isfinite(self._wide(k)), part, default)
                      for part, default in zip(each, (1.0, 0.0, 0.0, 0.0), strict=True))
                for k, each in enumerate(kinds)]  # fmt: skip

    def _wide(self, kind: int) -> np.ndarray:
        """The limits of a kind, infinite where there is none."""
        return {1: self.high, 2: self.low}.get(kind, np.zeros(1))

    def start(self) -> np.ndarray:
        """Coefficients of a slow motion at constant ξ̇ that keeps all limits."""
        shape = self.low.shape[:2]
        y = 1e6
        while y > 1e-12:
            self.rub(np.full(shape, y))
            if all(
                (slack > 0).all()
                for slack, *_ in self.slacks(np.full(shape, y), np.zeros(shape), np.zeros(shape))
            ):
                return np.full(self.law.count + 2, 0.5 * y)
            y *= 0.6
        self.rub(np.full(shape, CREEP))
        beyond = np.maximum(-self.high, self.low)[..., : self.limits.torques.size]
        joint = int(self.limits.torques[np.unravel_index(np.argmax(beyond), beyond.shape)[2]])
        name = self.limits.robot.joint_names[joint]
        raise InfeasiblePathError(
            f"with jerk= a path must be possible at any low speed, but {name} is {beyond.max():.4g} beyond its torque "
            "limit when it holds still",
            None, name, "torque", float(self.limits.torque[1][joint]),
        )  # fmt: skip

    def cost(self, c: np.ndarray, weight: float) -> float:
        """The time and the barrier; infinite outside of the limits."""
        y, slope, bend = self.law.of(c)
        if not (y > 0).all():
            return np.inf
        total = float((1 / np.sqrt(y)).sum())
        for slack, *_ in self.slacks(y, slope, bend):
            if not (slack > 0).all():
                return np.inf
            total -= weight * float(np.log(slack).sum())
        return total

    def newton(self, c: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and step; second derivatives that would not be convex are left out."""
        law = self.law
        y, slope, bend = law.of(c)
        power = y**-1.5
        gradient = [-0.5 * power, np.zeros_like(y), np.zeros_like(y)]
        second = {(0, 0): 0.75 * power / y}
        for slack, *rates in self.slacks(y, slope, bend):
            for i, one in enumerate(rates):
                gradient[i] = gradient[i] - weight * (one / slack).sum(axis=-1)
                for j, two in enumerate(rates[: i + 1]):
                    second[i, j] = second.get((i, j), 0.0) + weight * (one * two / slack**2).sum(axis=-1)
        bases = (law.value, law.slope, law.bend)
        g, blocks = np.zeros(len(c)), np.zeros((law.count, 3, 3))
        for i in range(3):
            np.add.at(g, law.columns, gradient[i] @ bases[i])
            for j in range(i + 1):
                part = np.einsum("kp,pa,pb->kab", second[i, j], bases[i], bases[j])
                blocks += part if i == j else part + np.swapaxes(part, 1, 2)
        bands = [np.zeros(len(c) - k) for k in range(3)]
        for a in range(3):
            for b in range(a, 3):
                np.add.at(bands[b - a], law.columns[:, a], blocks[:, a, b])
        diagonal, beside, beyond = (band.tolist() for band in bands)
        return g, -np.array(_banded(diagonal, beside, beyond, g.tolist()))


def _banded(
    diagonal: list[float], beside: list[float], beyond: list[float], right: list[float]
) -> list[float]:
    """The solution of equations with a positive definite matrix of five diagonals, by its L D Lᵀ factors."""
    n = len(diagonal)
    d, one, two, x = [0.0] * n, [0.0] * n, [0.0] * n, list(right)
    for k in range(n):
        d[k] = diagonal[k] * (1 + 1e-12)
        if k >= 1:
            d[k] -= one[k - 1] * one[k - 1] * d[k - 1]
            x[k] -= one[k - 1] * x[k - 1]
        if k >= 2:
            d[k] -= two[k - 2] * two[k - 2] * d[k - 2]
            x[k] -= two[k - 2] * x[k - 2]
        if k + 1 < n:
            one[k] = (beside[k] - (one[k - 1] * two[k - 1] * d[k - 1] if k >= 1 else 0.0)) / d[k]
        if k + 2 < n:
            two[k] = beyond[k] / d[k]
    for k in reversed(range(n)):
        x[k] /= d[k]
        if k + 1 < n:
            x[k] -= one[k] * x[k + 1]
        if k + 2 < n:
            x[k] -= two[k] * x[k + 2]
    return x


def _optimised(barrier: _Barrier) -> np.ndarray:
    """Coefficients of y for the shortest time."""
    c = barrier.start()
    weight = barrier.cost(c, 0.0) / barrier.low.size
    for _ in range(ROUNDS):
        if barrier.limits.rubs:
            barrier.rub(barrier.law.of(c)[0])
            while not np.isfinite(barrier.cost(c, weight)):
                c = 0.9 * c
        for _ in range(STEPS):
            gradient, step = barrier.newton(c, weight)
            before, size = barrier.cost(c, weight), 1.0
            while (
                barrier.cost(c + size * step, weight) > before + 0.1 * size * float(gradient @ step)
                and size > 1e-6
            ):
                size *= 0.5
            if size <= 1e-6:
                break
            c = c + size * step
            if -float(gradient @ step) < 1e-6 * before:
                break
        weight *= SHRINK
    return c


class JerkLimited(TimeOptimal):
    """A motion along a path under limits of jerk too; ``time_optimal`` makes it.

    Args:
        limits: the other limits that it keeps.
        cells: the grid along the path.
        jerk: limits [rad/s³ or m/s³], shape (n,).
        count: number of cells of the time law.
    """

    def __init__(self, limits: Limits, cells: Cells, jerk: np.ndarray, count: int):
        self.limits, self.cells, self.jerk_limits = limits, cells, jerk
        self.robot, self.dof = limits.robot, limits.robot.dof
        check_keeps_constraints(self.robot, cells.samples()[0], "path")
        stops = np.flatnonzero(cells.stops | _bends(cells))
        edges = np.unique(np.concatenate([[0], stops, [len(cells.lengths)]]))
        self.stretches = [Smooth(cells, int(a), int(b)) for a, b in pairwise(edges)]
        self.laws = [_optimised(_Barrier(limits, jerk, smooth, count)) for smooth in self.stretches]
        self.count, self.begin = count, 0.0
        self._slow_down()

    def _slow_down(self) -> None:
        """Times of the grid points, after stretches became slower as a whole until limits hold between samples."""
        for _ in range(REPAIRS):
            times = [np.zeros(1)]
            for c in self.laws:
                times.append(times[-1][-1] + np.cumsum(_spent(c[:-2], c[1:-1], c[2:], 1.0)) / self.count)
            self.grid = np.concatenate(times)
            self.end = float(self.grid[-1])
            factors = self._too_fast()
            if not (factors > 1).any():
                return
            self.laws = [
                c / (1 + 1.02 * (factor - 1) + SPARE) if factor > 1 else c
                for c, factor in zip(self.laws, factors, strict=True)
            ]
        raise InfeasiblePathError(
            f"the limits of {self.robot.name} were not kept along the path; is its curvature not continuous?"
        )

    def _too_fast(self) -> np.ndarray:
        """About the factors by which squares of speeds are too large, (stretches,); 1 where all limits are kept.

        Jerk is smooth between grid points of the time law and of the path: each interval between them is a cell of
        ``verified.exceeded``.
        """
        ends = self.corners()
        long = np.diff(ends) > 1e-9 * self.end / self.count
        first, span = ends[:-1][long], np.diff(ends)[long]
        joints = np.flatnonzero(np.isfinite(self.jerk_limits))
        low, high, scale = limit_rows(self.limits)
        low, high, scale = (
            np.concatenate([part, side * self.jerk_limits[joints]])
            for part, side in ((low, -1.0), (high, 1.0), (scale, 1.0))
        )
        q = np.zeros((0, 0, 0))

        def values_at(cell: np.ndarray, points: int) -> np.ndarray:
            nonlocal q
            inside = np.linspace(ASIDE, 1 - ASIDE, points)
            q, qd, qdd, jerk = self._derivatives(first[cell, np.newaxis] + span[cell, np.newaxis] * inside)
            return np.concatenate(
                [value_rows(self.limits, Moment(q, qd, qdd), 1), jerk[..., joints]], axis=-1
            )

        factors, begins = np.ones(len(self.stretches)), self.grid[:: self.count][:-1]
        for peaks in exceeded(values_at, low, high, scale, np.arange(len(first))):
            jerks = peaks.row >= len(low) - joints.size
            row = np.where(jerks, 0, peaks.row)
            part = slower_part(self.limits, q[peaks.local, peaks.place], row, peaks.value, peaks.over)
            needed = np.where(jerks, (1 + peaks.over) ** (2 / 3), 1 / np.maximum(1 - part, 0.05))
            stretch = np.searchsorted(begins, first[peaks.cell], side="right") - 1
            np.maximum.at(factors, stretch, needed)
        return factors

    def corners(self) -> np.ndarray:
        """The times of grid points of the time law and of the path: jerk jumps there."""
        passed = [self._passed(k) for k in range(len(self.stretches))]
        return np.unique(np.clip(np.concatenate([self.grid, *passed]), 0.0, self.end))

    def _passed(self, k: int) -> np.ndarray:
        """Times at which stretch ``k`` passes grid points of its path: third derivatives jump there."""
        ends = self.stretches[k].ends
        xi = _smooth_inverse(ends[1:-1] / ends[-1])
        cell = np.minimum((xi * self.count).astype(int), self.count - 1)
        rho = xi * self.count - cell
        c = self.laws[k]
        spent = _spent(c[cell], c[cell + 1], c[cell + 2], rho) / self.count
        return self.grid[k * self.count + cell] + spent

    def _inside(self, t: np.ndarray) -> Moment:
        return Moment(*self._derivatives(t)[:3])

    def jerk(self, t) -> np.ndarray:
        """q⃛ at the times t [s], (..., n)."""
        t = np.asarray(t, dtype=float)
        return self._derivatives(np.clip(t, self.begin, self.end))[3]

    def _derivatives(self, t: np.ndarray) -> list[np.ndarray]:
        """q and its first three derivatives by time."""
        flat = np.atleast_1d(t).ravel()
        place = np.clip(np.searchsorted(self.grid, flat, side="right") - 1, 0, len(self.grid) - 2)
        values = [np.empty((len(flat), self.dof)) for _ in range(4)]
        for k, (smooth, c) in enumerate(zip(self.stretches, self.laws, strict=True)):
            mine = place // self.count == k
            if mine.any():
                local = place[mine] % self.count
                rho, (y, slope, bend) = self._solved(c, local, flat[mine] - self.grid[place[mine]])
                r, one, two, three = smooth.at((local + rho) / self.count)
                root = np.sqrt(y)
                values[0][mine] = r
                values[1][mine] = one * root
                values[2][mine] = 0.5 * one * slope + two * y
                values[3][mine] = root * (0.5 * one * bend + 1.5 * two * slope + three * y)
        return [part.reshape(*np.shape(t), self.dof) for part in values]

    def _solved(self, c: np.ndarray, cell: np.ndarray, time: np.ndarray):
        """Where in their cells times after the beginning are, by Newton's method; and y, y′ and y″ there."""
        first, middle, last = local = c[cell], c[cell + 1], c[cell + 2]
        rho = np.clip(time * self.count * np.sqrt(_quadratic(*local, 0.5)), 0.0, 1.0)
        for _ in range(6):
            late = _spent(*local, rho) / self.count - time
            rho = np.clip(rho - late * self.count * np.sqrt(_quadratic(*local, rho)), 0.0, 1.0)
        slope = self.count * ((rho - 1) * first + (1 - 2 * rho) * middle + rho * last)
        bend = self.count**2 * (first - 2 * middle + last)
        return rho, tuple(part[:, np.newaxis] for part in (_quadratic(*local, rho), slope, bend))

    def usage(self, t) -> dict[str, np.ndarray]:
        """As that of ``TimeOptimal``, with "jerk", (..., n)."""
        return super().usage(t) | {"jerk": np.abs(self.jerk(t)) / self.jerk_limits}


def _smooth_inverse(value: np.ndarray) -> np.ndarray:
    """ξ at which ξ³ (10 − 15 ξ + 6 ξ²) has these values between 0 and 1, by Newton's method between bounds."""
    low, high = np.zeros_like(value), np.ones_like(value)
    xi = np.full_like(value, 0.5)
    for _ in range(60):
        off = xi**3 * (10 - 15 * xi + 6 * xi * xi) - value
        low, high = np.where(off < 0, xi, low), np.where(off > 0, xi, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            following = xi - off / (30 * (xi * (1 - xi)) ** 2)
        xi = np.where((following > low) & (following < high), following, 0.5 * (low + high))
    return xi


def _quadratic(first, middle, last, rho):
    """A piece of the spline with these coefficients."""
    return 0.5 * (1 - rho) ** 2 * first + (0.5 + rho * (1 - rho)) * middle + 0.5 * rho**2 * last


def _spent(first, middle, last, rho):
    """∫ dρ/√y from 0 to ρ: y is a quadratic, so (2/√A) artanh(√A ρ/(√y(0) + √y(ρ))) with its leading coefficient A."""
    chord = rho / (
        np.sqrt(_quadratic(first, middle, last, 0.0)) + np.sqrt(_quadratic(first, middle, last, rho))
    )
    leading = 0.5 * first - middle + 0.5 * last
    z = np.sqrt(np.abs(leading)) * chord
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(leading > 0, np.arctanh(np.minimum(z, 1 - 1e-16)), np.arctan(z)) / z
    return 2 * chord * np.where(z > 1e-8, ratio, 1.0)


def _bends(cells: Cells) -> np.ndarray:
    """Grid points where the curvature jumps, (cells + 1,): with finite jerk they are passed at rest."""
    bend = cells.samples().qdd
    jump = np.abs(bend[1:, 0] - bend[:-1, -1]).max(axis=-1)
    inside = np.abs(bend[:, 1:] - bend[:, :-1]).max(axis=(1, 2))
    bends = np.zeros(len(cells.lengths) + 1, dtype=bool)
    bends[1:-1] = jump > 1e-6 * np.abs(bend).max() + 1e-3 * np.minimum(inside[1:], inside[:-1]) + 1e-9
    return bends
