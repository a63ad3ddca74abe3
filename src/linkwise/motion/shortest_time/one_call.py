"""The shortest time along a spline through way-points as one call of compiled code, from rest to rest.

    for each cell and sample (independent of each other): path, torque coefficients, speeds (``path_limits``)
    for each cell (independent): its strips
    for each cell from the last one: from where its end can be reached; then from the first one: the fastest speed
    for each cell and nine points of it (independent): the torques of the motion itself, and whether limits are exceeded

The two passes are those of ``reachability``; with friction they are repeated until the time settles. Lanes of vectors
are cells. A motion counts only if no cell exceeds a limit or is unclear; others, and other kinds of paths and limits,
are left to ``optimal_timing.Problem``.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.algorithms import coordinates, drag, joint_terms
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.functions.table import mechanism_of
from linkwise.language import empty, needed, span, straight, variable
from linkwise.model.contacts import tendons_of
from linkwise.motion.shortest_time import reachability as reach
from linkwise.motion.shortest_time import speed_guess
from linkwise.motion.shortest_time.cells import SAMPLES, cubic
from linkwise.motion.shortest_time.path_limits import CREEP, RISE, TURNING
from linkwise.motion.shortest_time.turning import spline_turning_points
from linkwise.motion.shortest_time.verified import ASIDE, POINTS, ROUGH, SPREAD, UNCLEAR, evenly
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, all_of, sqrt, where

if TYPE_CHECKING:
    from linkwise.motion.shortest_time.path_limits import Limits

NAME = "shortest_time"
ROOM = 16  # cells of a program are a multiple of this: paths with a few more or less share it
MOST_CELLS = 2048  # of a program
LARGEST = 12  # joints: equations of motion that are written out
SLOWEST = 1e-100  # [rad/s or m/s]: joints with a smaller limit must stand still
KEPT = 3e-6  # of every limit: the margin from the start
SLOWER = 2e-3  # the part by which squares of speeds are reduced as a whole at most
ROUNDS = 10  # of passes, each with larger margins where limits were exceeded
SETTLING = 5  # more passes, for friction that depends on the speed
SETTLED = (
    1e-2  # relative change of the time after which friction is that of the solution: the next is its square
)
SLOWINGS = 4  # motions with friction that are slower as a whole
FOUND, SLOWED, BEYOND, REPORT = 0, 1, 2, 3


class LimitedJoints(NamedTuple):
    """Joints with limits, by which programs differ."""

    torques: tuple[int, ...]
    accelerations: tuple[int, ...]
    speeds: tuple[int, ...]
    friction: bool


class OneCall:
    """What the program does with one path of at most ``size`` cells.

    Columns of ``cells``: the path's parameter at the beginning of a cell, counted from the knot before it; the length;
    1, or 0 for cells that are not there; 1 where the path is at rest at the beginning, and at the end; tangents below
    which a joint turns back.
    """

    def __init__(self, robot: Robot, rows: LimitedJoints, size: int, given: dict[str, Any]):
        self.links = mechanism_of(robot, base_parameters=True)
        self.n, self.rows, self.size, self.given = robot.dof, rows, size, given
        samples, count = len(SAMPLES), len(rows.torques) + len(rows.accelerations)
        self.count, self.checked = count, count + len(rows.speeds)
        self.shares, self.times = empty(samples, 1), empty(POINTS[0], 1)
        for table, values in ((self.shares, SAMPLES), (self.times, np.linspace(ASIDE, 1 - ASIDE, POINTS[0]))):
            for k, value in enumerate(values):
                table[k, 0] = float(value)
        self.a, self.b, self.hold = (empty(size, samples, count) for _ in range(3))
        self.q, self.tangents = (empty(size, samples, self.n) for _ in range(2))
        self.strips = [empty(size, samples * count + samples - 2) for _ in range(3)]
        self.speeds, self.most = empty(size, samples), empty(size, 1)
        self.margins, self.over, self.fast = empty(size, count), empty(size, count), empty(size, 1)
        self.reach, self.x = empty(size + 1, 2), empty(size + 1, 1)
        self.rise, self.cap = empty(size, 1), empty(size, 1)
        self.excess, self.beyond = empty(size, 1), empty(size, 1)
        self.values = empty(size, POINTS[0], self.checked)
        self.worst, self.part, self.duration = (variable(0.0) for _ in range(3))
        self.slower, self.sloping, self.still = variable(1.0), variable(0.0), variable(-1.0)
        self.turns, self.going = variable(0.0), variable(-1.0)

    def run(self) -> dict[str, Any]:
        """Speeds at the grid points and what is known of them."""
        self._sample()
        if self.rows.friction:
            self._guess()
        for _ in span(ROUNDS + (SETTLING if self.rows.friction else 0)):
            for _ in needed(self.still):
                self._bound()
                self._pass()
                self._settle()
                for _ in needed(self.going):
                    self._exceeded()
                    self._keep_margins()
        self._slow()
        if self.rows.friction:  # it changes with the speed
            self.still.value = -1.0
            for _ in span(SLOWINGS):
                for _ in needed(self.still):
                    self._exceeded()
                    self._slow()
                    self.still.value = where(self.part.value > 0.0, -1.0, 1.0)
        self._verify()
        report = empty(REPORT)
        least, greatest = self.reach[0, 0], self.reach[0, 1]
        report[FOUND] = where(all_of(least <= 0.0, greatest >= 0.0), 1.0, 0.0)
        report[SLOWED], report[BEYOND] = 1.0 - self.slower.value, self.worst.value
        return {"x": self.x, "report": report, "beyond": self.beyond}

    # -- limits at the samples

    def _sample(self) -> None:
        scale = self._split(self.given["limits"])[3]
        for k in span(self.size, parallel=True):
            for j in range(self.count):
                self.margins[k, j] = KEPT * scale[j]
        for k in span(self.size, parallel=True):
            for s in span(len(SAMPLES)):
                parts = (self.a, self.b, self.hold, self.q, self.tangents)
                writes = [*(part[k, s] for part in parts), self.speeds[k, s : s + 1]]
                straight(self._sampled, [*self._cell(k), self.shares[s]], writes)
        straight(_greatest, [self.speeds[0]], [self.most[0]])
        for k in span(1, self.size, parallel=True):
            straight(_greatest, [self.speeds[k], self.speeds[k - 1]], [self.most[k]])

    def _cell(self, k: Any) -> list[Any]:
        return [self.given["coefficients"][k], self.given["cells"][k], self.given["limits"]]

    def _sampled(self, c: Any, cell: Any, limits: Any, share: Any) -> list[list[Scalar]]:
        """a, b and c of the rows, positions and tangents, and the greatest 1/x of speeds."""
        q, first, second = self._path(c, cell[0] + share[0] * cell[1])
        rows, inverse = self.rows, self._split(limits)[2]
        a: list[Scalar] = []
        b: list[Scalar] = []
        hold: list[Scalar] = []
        if rows.torques:
            rest: list[Scalar] = [0.0] * self.n
            gravity = coordinates.gravity_torques(self.links, q)
            along = coordinates.inverse_dynamics(self.links, q, rest, first, friction=False)
            across = coordinates.inverse_dynamics(self.links, q, first, second, friction=False)
            a = [along[j] - gravity[j] for j in rows.torques]
            b = [across[j] - gravity[j] for j in rows.torques]
            hold = [gravity[j] for j in rows.torques]
        a += [first[j] for j in rows.accelerations]
        b += [second[j] for j in rows.accelerations]
        hold += [0.0] * len(rows.accelerations)
        fastest = 0.0 * q[0]
        for j, each in zip(rows.speeds, inverse, strict=True):
            ratio = first[j] * each
            fastest = reach.larger(fastest, ratio * ratio)
        return [a, b, hold, q, first, [fastest]]

    def _path(self, c: Any, t: Scalar) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        n = self.n
        parts = zip(*(c[k * n : (k + 1) * n] for k in range(4)), strict=True)
        q, first, second = zip(*(cubic(each, t) for each in parts), strict=True)
        return list(q), list(first), list(second)

    def _split(self, limits: Any) -> list[Any]:
        """Lowest and highest values of the rows, inverse velocity limits, and sizes of the rows."""
        ends = np.cumsum([0, self.count, self.count, len(self.rows.speeds), self.count])
        return [limits[first:last] for first, last in itertools.pairwise(ends)]

    def _bound(self) -> None:
        """Strips of all cells; friction is that at ``x``, and changes with it."""
        for k in span(self.size, parallel=True):
            reads = [*self._reads(k), self.margins[k], self.sloping]
            straight(self._bounded, reads, [part[k] for part in self.strips])

    def _reads(self, k: Any) -> list[Any]:
        """What ``_rows`` needs."""
        parts = (self.a, self.b, self.hold, self.q, self.tangents, self.speeds)
        return [*(part[k] for part in parts), *self._cell(k)[1:], self.x[k], self.x[k + 1]]

    def _bounded(self, *given: Any) -> list[list[Scalar]]:
        *reads, margins, (sloping,) = given
        rows, speeds, twice = self._rows(*reads, sloping)
        a, b, low, high = rows
        low = [l + margins[k % self.count] for k, l in enumerate(low)]
        high = [h - margins[k % self.count] for k, h in enumerate(high)]
        speeds = [(1.0 + KEPT) * speed for speed in speeds]
        return [list(part) for part in reach.strips_of(len(SAMPLES), (a, b, low, high), speeds, twice)]

    def _rows(self, *given: Any) -> tuple[list[list[Scalar]], Any, Scalar]:
        """a, b, low and high of a cell, without margins; speeds; 2 Δ. ``sloping`` is None inside of cells."""
        a, b, hold, q, tangents, speeds, cell, limits, x, following, sloping = given
        low, high, _, _ = self._split(limits)
        samples, count = len(SAMPLES), self.count
        lowest = [low[k % count] - hold[k] for k in range(samples * count)]
        highest = [high[k % count] - hold[k] for k in range(samples * count)]
        b = list(b)
        for s, share in enumerate(SAMPLES if self.rows.friction else ()):
            inside = x[0] + (following[0] - x[0]) * float(share)
            inside = where(inside > CREEP, inside, CREEP)
            least, greatest = self._friction(q, tangents, cell, inside, s, rest=sloping is not None)
            for k in range(len(self.rows.torques)):
                at = s * count + k
                lowest[at], highest[at] = lowest[at] - least[k], highest[at] - greatest[k]
            if sloping is None:
                continue
            more, _ = self._friction(q, tangents, cell, inside * (1.0 + RISE), s, rest=True)
            for k in range(len(self.rows.torques)):
                at = s * count + k
                rise = sloping * (more[k] - least[k]) * (1.0 / RISE)
                b[at] = b[at] + rise / inside
                lowest[at], highest[at] = lowest[at] + rise, highest[at] + rise
        return [list(a), b, lowest, highest], speeds, 2.0 * cell[1]

    def _friction(
        self, q: Any, tangents: Any, cell: Any, x: Scalar, s: int, *, rest: bool
    ) -> tuple[list[Scalar], list[Scalar]]:
        """As ``path_limits.Strips.friction``, at a sample of a cell."""
        n, slow, ends = self.n, cell[5], {0: cell[3], len(SAMPLES) - 1: cell[4]}
        first = tangents[s * n : (s + 1) * n]
        turns = [reach.abs_of(t) < slow for t in first]
        middle = [tangents[n + j] + tangents[2 * n + j] for j in range(n)]
        along = [where(m > 0.0, slow, where(m < 0.0, -slow, 0.0)) for m in middle]
        speed = sqrt(x)
        qd = [where(back, inner, t) * speed for back, inner, t in zip(turns, along, first, strict=True)]
        rubbing = coordinates.friction(self.links, q[s * n : (s + 1) * n], qd)
        least, greatest = [], []
        for j in self.rows.torques:
            still = where(ends[s] > 0.5, 0.0, rubbing[j]) if rest and s in ends else rubbing[j]
            either = all_of(turns[j], reach.abs_of(middle[j]) < 2.0 * slow)
            other = where(either, -rubbing[j], still)
            least.append(where(rubbing[j] < other, rubbing[j], other))
            greatest.append(reach.larger(rubbing[j], other))
        return least, greatest

    def _guess(self) -> None:
        """Squares of the speed at which friction is counted in the first pass, see ``speed_guess``."""
        cells = self.given["cells"]
        for k in span(self.size, parallel=True):
            reads = [self.a[k], self.b[k], self.hold[k], self.given["limits"], cells[k], self.most[k]]
            straight(self._left_at_rest, reads, [self.rise[k], self.cap[k]])
        self.x[0, 0] = self.x[self.size, 0] = 0.0
        for k in span(self.size):
            straight(speed_guess.risen, [self.x[k], self.rise[k], self.cap[k]], [self.x[k + 1]])
        self.x[self.size, 0] = 0.0
        for k in span(self.size - 1, -1, -1):
            straight(speed_guess.fallen, [self.x[k], self.x[k + 1], self.rise[k], cells[k]], [self.x[k]])
        self.sloping.value = 1.0

    def _left_at_rest(
        self, a: Any, b: Any, hold: Any, limits: Any, cell: Any, most: Any
    ) -> list[list[Scalar]]:
        low, high, _, _ = self._split(limits)
        rooms = [(high[k % self.count] - c, c - low[k % self.count]) for k, c in enumerate(hold)]
        return speed_guess.left_at_rest(a, b, rooms, cell, most)

    # -- the passes

    def _pass(self) -> None:
        cells = self.given["cells"]
        self.reach[self.size, 0] = self.reach[self.size, 1] = 0.0
        for k in span(self.size - 1, -1, -1):
            reads = [*(part[k] for part in self.strips), cells[k], self.most[k], self.reach[k + 1]]
            straight(_backward, reads, [self.reach[k]])
        self.x[0, 0] = 0.0
        for k in span(self.size):
            reads = [*(part[k] for part in self.strips), cells[k], self.reach[k + 1], self.x[k]]
            straight(_forward, reads, [self.x[k + 1]])

    def _settle(self) -> None:
        """Whether friction is that of the solution: the time is that of the pass before."""
        self.still.value = 1.0
        if not self.rows.friction:
            return
        before, now = variable(self.duration.value), self.duration
        now.value = 0.0
        for k in span(self.size):
            straight(_time, [self.given["cells"][k], self.x[k], self.x[k + 1], now], [now])
        settled = reach.abs_of(now.value - before.value) < SETTLED * now.value
        self.still.value = where(settled, 1.0, where(self.turns.value < SETTLING, -1.0, 1.0))
        self.going.value = -self.still.value  # friction that is not that of the solution decides nothing
        self.turns += 1.0
        self.sloping.value = 1.0

    def _exceeded(self) -> None:
        """The part by which x must be smaller so that no limit is exceeded inside of a cell."""
        for k in span(self.size, parallel=True):
            straight(self._excess, self._reads(k), [self.excess[k], self.over[k], self.fast[k]])
        self.part.value = 0.0
        for k in span(self.size):
            self.part.value = reach.larger(self.part.value, self.excess[k, 0])

    def _excess(self, *given: Any) -> list[list[Scalar]]:
        """That part of a cell, by how much each row is beyond its limits, and the square of the speed likewise."""
        rows, speeds, twice = self._rows(*given, None)
        cell, (x,), (following,) = given[6], *given[8:10]
        there, u = cell[2] > 0.5, (following - x) / twice
        part, over, fast = reach.excess_of(len(SAMPLES), rows, speeds, twice, x, u)
        return [
            [where(there, part, 0.0)],
            [where(there, each, 0.0) for each in over],
            [where(there, fast, 0.0)],
        ]

    def _keep_margins(self) -> None:
        """Larger margins where limits do not hold inside of cells; else the passes end."""
        more = variable(where(self.part.value > SLOWER, 1.0, -1.0))  # 1: margins grow
        for k in span(self.size, parallel=True):
            reads = [self.over[k], self.margins[k], self.given["limits"], more]
            straight(self._margins, reads, [self.margins[k]])
        for k in span(1, self.size, parallel=True):
            straight(_slower_most, [self.fast[k], self.fast[k - 1], more, self.most[k]], [self.most[k]])
        self.still.value = where(more.value > 0.0, -1.0, self.still.value)

    def _margins(self, over: Any, margins: Any, limits: Any, more: Any) -> list[list[Scalar]]:
        scale = self._split(limits)[3]
        grows = [all_of(each > 0.0, more[0] > 0.0) for each in over]
        added = [1.1 * (each + KEPT * size) for each, size in zip(over, scale, strict=True)]
        parts = zip(grows, margins, added, strict=True)
        return [[where(grow, margin + more_, margin) for grow, margin, more_ in parts]]

    def _slow(self) -> None:
        """Slower as a whole."""
        part = self.part.value
        slower = variable(1.0 - where(part > 0.0, 1.1 * part + 1e-7, 0.0))
        for k in span(self.size + 1):
            self.x[k, 0] = self.x[k, 0] * slower.value
        self.slower *= slower.value

    # -- the check

    def _verify(self) -> None:
        for k in span(self.size, parallel=True):
            for s in span(POINTS[0]):
                reads = [*self._cell(k)[:2], self.x[k], self.x[k + 1], self.times[s]]
                straight(self._values_at, reads, [self.values[k, s]])
        for k in span(self.size, parallel=True):
            straight(self._judged, [self.values[k], *self._cell(k)[1:]], [self.beyond[k]])
        for k in span(self.size):
            self.worst.value = reach.larger(self.worst.value, self.beyond[k, 0])

    def _values_at(self, c: Any, cell: Any, x: Any, following: Any, z: Any) -> list[list[Scalar]]:
        """Torques, accelerations and velocities at a share of a cell's time."""
        rho = evenly(x[0], following[0], z[0])
        q, tangent, bend = self._path(c, cell[0] + rho * cell[1])
        rise = following[0] - x[0]
        inside = reach.larger(x[0] + rise * rho, 0.0 * rho)
        speed, u = sqrt(inside), rise / (2.0 * cell[1])
        qd = [t * speed for t in tangent]
        qdd = [t * u + b * inside for t, b in zip(tangent, bend, strict=True)]
        rows, tau = self.rows, []
        if rows.torques:
            tau = coordinates.inverse_dynamics(self.links, q, qd, qdd, friction=rows.friction)
        chosen = ((tau, rows.torques), (qdd, rows.accelerations), (qd, rows.speeds))
        return [[values[j] for values, joints in chosen for j in joints]]

    def _judged(self, values: Any, cell: Any, limits: Any) -> list[list[Scalar]]:
        """By how much the worst row exceeds its limit, relative to its size; 1 where points are too few to tell."""
        low, high, inverse, scale = self._split(limits)
        worst = 0.0 * values[0]
        for j in range(self.checked):
            row = [values[s * self.checked + j] for s in range(POINTS[0])]
            if j < self.count:
                factor = 1.0 / scale[j]
                least, most = low[j] * factor, high[j] * factor
            else:  # velocities in units of their limits
                factor, least, most = inverse[j - self.count], -1.0, 1.0
            worst = reach.larger(worst, judged_row([value * factor for value in row], least, most))
        return [[where(cell[2] > 0.5, worst, 0.0)]]


def _greatest(*speeds: Any) -> list[list[Scalar]]:
    """The greatest x at the beginning of a cell, of 1/x at samples of the cell and of the one before."""
    fastest = speeds[0][0]
    for before in speeds[1:]:
        fastest = reach.larger(fastest, before[-1])
    known = fastest * reach.FASTEST > 1.0
    return [[where(known, (1.0 - KEPT) / where(known, fastest, 1.0), reach.FASTEST)]]


def _backward(r: Any, low: Any, high: Any, cell: Any, most: Any, end: Any) -> list[list[Scalar]]:
    found = reach.controllable(reach.CellStrips(r, low, high), 2.0 * cell[1], most[0], *end, even=True)
    return [[where(cell[2] > 0.5, new, old) for new, old in zip(found, end, strict=True)]]


def _forward(r: Any, low: Any, high: Any, cell: Any, end: Any, x: Any) -> list[list[Scalar]]:
    following = reach.fastest_reachable(reach.CellStrips(r, low, high), 2.0 * cell[1], x[0], *end)
    return [[where(cell[2] > 0.5, following, x[0])]]


def _slower_most(fast: Any, before: Any, more: Any, most: Any) -> list[list[Scalar]]:
    """The greatest x at a grid point where squares of speeds are beyond their limits in a cell beside it."""
    for each in (fast[0], before[0]):
        beyond = all_of(each > 1.0, more[0] > 0.0)
        most = [most[0] / where(beyond, 1.0 + 1.1 * (each - 1.0 + KEPT), 1.0)]
    return [list(most)]


def _time(cell: Any, x: Any, following: Any, total: Any) -> list[list[Scalar]]:
    """The time up to the end of a cell."""
    first, last = (sqrt(where(each > CREEP, each, CREEP)) for each in (x[0], following[0]))
    return [[total[0] + where(cell[2] > 0.5, 2.0 * cell[1] / (first + last), 0.0)]]


def judged_row(row: Sequence[Scalar], low: Scalar, high: Scalar) -> Scalar:
    """As ``verified.exceeded`` at its first points: how far values go beyond limits, all in units of the limit's size;
    1 where points are too few to tell."""
    greatest = least = row[0]
    for value in row[1:]:
        greatest, least = reach.larger(greatest, value), where(value < least, value, least)
    spread = SPREAD * (greatest - least)
    w = row[::2]
    between = [0.5625 * (w[k] + w[k + 1]) - 0.0625 * (w[k - 1] + w[k + 2]) for k in range(1, len(w) - 2)]
    ends = [
        0.3125 * p[0] + 0.9375 * p[1] - 0.3125 * p[2] + 0.0625 * p[3] for p in (w[:4], w[: -5 : -1])
    ]  # fmt: skip
    between = [ends[0], *between, ends[1]]
    odd = [reach.abs_of(value - middle) for value, middle in zip(row[1::2], between, strict=True)]
    worst = 0.0 * greatest
    for side, limit, near in ((1.0, high, greatest), (-1.0, low, -least)):
        bound = _bound([side * (value - limit) for value in row], odd)
        worst = reach.larger(worst, where(near + spread > side * limit, bound, 0.0))
    roughest = odd[0]
    for each in odd[1:]:
        roughest = reach.larger(roughest, each)
    return where(roughest > UNCLEAR, 1.0, worst)


def _bound(over: Sequence[Scalar], odd: Sequence[Scalar]) -> Scalar:
    """As ``verified.bound``."""
    tops, bends = [], []
    for before, here, after in zip(over, over[1:], over[2:], strict=False):
        slope, bend = 0.5 * (after - before), before - 2.0 * here + after
        inside = all_of(bend < 0.0, reach.abs_of(slope) < -bend)
        top = where(inside, here - 0.5 * slope * slope / where(inside, bend, -1.0), here)
        tops.append(reach.larger(top, reach.larger(before, after)))
        bends.append(bend)
    worst = tops[0] - 1.0
    for k, (one, other) in enumerate(itertools.pairwise(bends)):
        off = reach.PARABOLA * reach.abs_of(other - one)
        worst = reach.larger(worst, reach.larger(tops[k], tops[k + 1]) + off)
    for k, rough in enumerate(odd):
        worst = where(rough > ROUGH, reach.larger(worst, tops[2 * k] + rough), worst)
    return worst


@lru_cache(maxsize=64)
def program_of(robot: Robot, rows: LimitedJoints, size: int) -> Kernel:
    """The program for paths of at most ``size`` cells."""
    count = len(rows.torques) + len(rows.accelerations)
    shapes = {
        "coefficients": (size, 4 * robot.dof), "cells": (size, 6), "limits": (3 * count + len(rows.speeds),)
    }  # fmt: skip

    def function(**given: Any) -> dict[str, Any]:
        return OneCall(robot, rows, size, given).run()

    def build(dtype: Any) -> Any:
        return TracedFunction(function, shapes, NAME, loops=True).program(dtype)

    sizes = {key: math.prod(shape) for key, shape in shapes.items()}
    key = hashlib.sha256(repr((robot.content(), rows, size)).encode()).digest()
    outputs = {"x": (size + 1, 1), "report": (REPORT,), "beyond": (size, 1)}
    kernel = Kernel(NAME, sizes.items(), outputs.items(), "float64", build, key)
    kernel.one_by_one = True
    return kernel


# -- calls ------------------------------------------------------------------------------------------------------------


class Fastest(NamedTuple):
    """A motion along a spline."""

    nodes: np.ndarray
    """Grid points, (cells + 1,)."""
    x: np.ndarray
    """Squares of the speed there."""
    unclear: np.ndarray
    """Cells in which nine points do not show that limits are kept."""


def rows_of(limits: Limits) -> LimitedJoints | None:
    """The rows of a program that knows these limits; None where there is no such program."""
    robot, links = limits.robot, mechanism_of(limits.robot)
    if (
        robot.dof > LARGEST
        or robot.constraints
        or tendons_of(robot.contact_parts)
        or np.isfinite(limits.tip_speed)
        or (limits.rubs and (joint_terms.has_load_friction(links) or drag.present(links)))
        or (limits.velocity < SLOWEST).any()
    ):
        return None
    speeds = np.flatnonzero(np.isfinite(limits.velocity))
    torques, accelerations, speeds = (
        tuple(each.tolist()) for each in (limits.torques, limits.accelerations, speeds)
    )
    return LimitedJoints(torques, accelerations, speeds, limits.rubs)


def fastest(
    limits: Limits,
    rows: LimitedJoints,
    knots: np.ndarray,
    coefficients: np.ndarray,
    nodes: np.ndarray,
    threads: int | None,
) -> list[Fastest | None]:
    """Motions from rest to rest along splines; None where another grid or margins are needed.

    Args:
        limits: with a program.
        rows: what ``rows_of`` gives for them.
        knots: of the paths, as those of ``Splines``.
        coefficients: likewise.
        nodes: grid points (paths, cells + 1); where joints have dry friction, points where they turn back are added.
        threads: number of threads.
    """
    if limits.turns:
        nodes = spline_turning_points(knots, coefficients, nodes)
    cells = np.isfinite(nodes).sum(axis=1) - 1
    size = ROOM * -(-int(cells.max()) // ROOM)
    if size > MOST_CELLS:
        return [None] * len(nodes)
    x, report, beyond = program_of(limits.robot, rows, size)(
        *_tables(knots, coefficients, nodes, cells, size), _limit_values(limits, rows), threads=threads
    )
    most = 1.2 * SLOWER * (SLOWINGS if rows.friction else 1)
    good = (report[:, FOUND] > 0.5) & (report[:, SLOWED] <= most)
    good &= (x[:, 1:, 0] > 0).sum(axis=1) >= cells - 1  # no cell is never left
    return [
        Fastest(nodes[k, : count + 1], x[k, : count + 1, 0], np.flatnonzero(beyond[k, :count, 0]))
        if good[k]
        else None
        for k, count in enumerate(cells)
    ]


def _limit_values(limits: Limits, rows: LimitedJoints) -> np.ndarray:
    joints, own = list(rows.torques), limits.acceleration[list(rows.accelerations)]
    low, high = limits.torque
    parts = (
        low[joints],
        -own,
        high[joints],
        own,
        1 / limits.velocity[list(rows.speeds)],
        limits.torque_scale,
    )
    return np.concatenate([*parts, np.maximum(own, 1e-9)])


def _tables(
    knots: np.ndarray, coefficients: np.ndarray, nodes: np.ndarray, cells: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """``coefficients`` and ``cells`` of a program, (paths, numbers) each."""
    paths, given = nodes.shape[0], min(nodes.shape[1] - 1, size)
    first, last = nodes[:, :given], nodes[:, 1 : given + 1]
    middle = 0.5 * (first + last)  # NaN for cells that are not there: in the first piece
    piece = (middle[..., np.newaxis] >= knots[:, np.newaxis, 1:-1]).sum(axis=-1)
    row = np.arange(paths)[:, np.newaxis]
    there = np.arange(given) < cells[:, np.newaxis]
    powers = np.zeros((paths, size, 4, coefficients.shape[-1]))
    powers[:, :given] = coefficients[row, piece]
    table = np.zeros((paths, size, 6))
    table[..., 1] = 1.0
    np.copyto(table[:, :given, 0], first - knots[row, piece], where=there)
    np.copyto(table[:, :given, 1], last - first, where=there)
    table[:, :given, 2] = there
    table[:, 0, 3] = table[row[:, 0], cells - 1, 4] = 1.0
    table[..., 5] = TURNING * np.abs(coefficients[:, :, 1]).max(axis=(1, 2))[:, np.newaxis]
    return powers.reshape(paths, -1), table.reshape(paths, -1)
