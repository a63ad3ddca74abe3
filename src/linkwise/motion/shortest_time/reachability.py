"""The two passes of reachability analysis along a path, as compiled loops over its cells.

With x = ṡ² and u = s̈ constant in a cell of length Δ, every limit of a joint at a sample of the cell, low ≤ a·u + b·(x +
2·ρ·Δ·u) ≤ high, is a strip in u and the x at the beginning of the cell: low ≤ u + r·x ≤ high. A pass
backward from the end gives the interval K of x at each grid point from which the end can be reached; a pass forward
from the start then takes the greatest u that stays within the strips and leads into the next interval (Pham and Pham,
"A New Approach to Time-Optimal Path Parameterization Based on Reachability Analysis", IEEE Trans. Robotics 34, 2018).

The linear programs have two variables. For a given x the strips leave an interval of u whose width is a concave,
piecewise linear function of x. The largest x with a width of at least zero is found by Newton's method from the right:
each step goes to the root of the line that is active, which is never left of the solution, so it ends after
finitely many steps. A lane of the machine code is a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from linkwise.compiler.rollout import Feed, Interface, RolloutKernel, trace_rollout
from linkwise.scalar import Scalar, all_of, where, while_loop

STEPS = 200.0  # of Newton's method: far more than strips that cross, so that a NaN ends
ROUND_OFF = 2e-14  # relative to the bounds of u
PARABOLA = (
    0.065  # times the third difference: how far a cubic through four samples is from parabolas through three
)
FASTEST = 1e18  # [1/s²]: x where no limit of a speed is given
EMPTY = (1.0, -1.0)  # an interval that contains nothing


def passes(
    a: np.ndarray,
    b: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    speeds: np.ndarray,
    lengths: np.ndarray,
    most: np.ndarray,
    ends: np.ndarray,
    threads: int | None = None,
) -> Found:
    """x along paths in the shortest time.

    Args:
        a: of limits low ≤ a·u + b·x ≤ high at samples of each cell, (paths, cells, samples, rows).
        b: likewise.
        low: likewise.
        high: likewise.
        speeds: of limits speeds·x ≤ 1 at the samples, (paths, cells, samples).
        lengths: Δ of the cells, (paths, cells).
        most: greatest x at the grid points, (paths, cells + 1).
        ends: x at the start and at the end, (paths, 2).
        threads: number of threads.
    """
    count, cells, samples, rows = a.shape
    backward, forward = _kernels(samples, rows)
    each = samples * rows
    table = np.empty((count, cells, 4 * each + samples + 2))
    for k, part in enumerate((a, b, low, high)):
        table[..., k * each : (k + 1) * each] = part.reshape(count, cells, each)
    table[..., -samples - 2 : -2] = speeds
    table[..., -2] = 2 * lengths
    np.minimum(most[:, :-1], FASTEST, out=table[..., -1])
    reach = np.empty((count, cells + 1, 2))
    reach[:, -1] = ends[:, 1:]
    reach[:, -1][ends[:, 1] > most[:, -1] * (1 + 1e-9)] = EMPTY
    given = {"cell": table[:, ::-1].reshape(count, -1), "interval": reach[:, -1]}
    reach[:, -2::-1] = backward(given, steps=cells, threads=threads)[1]["reached"]
    x = np.empty((count, cells + 1))
    x[:, 0] = ends[:, 0]
    given = {"cell": table.reshape(count, -1), "reach": reach[:, 1:].reshape(count, -1), "x": x[:, :1]}
    written = forward(given, steps=cells, threads=threads)[1]["reached"]
    x[:, 1:] = written[..., 0]
    return Found(x, reach[..., 0], reach[..., 1], written[..., 1])


class Found(NamedTuple):
    """Speeds along paths."""

    x: np.ndarray
    """At the grid points, (paths, cells + 1)."""
    least: np.ndarray
    """The least x from which the end can be reached, (paths, cells + 1)."""
    greatest: np.ndarray
    """The greatest one; below the least where nothing can, and at all points before."""
    excess: np.ndarray
    """The part by which x and u must be smaller so that limits also hold between the samples, (paths, cells)."""


@lru_cache(maxsize=64)
def _kernels(samples: int, rows: int) -> tuple[RolloutKernel, RolloutKernel]:
    """The passes for this number of limits."""
    size = 4 * samples * rows + samples + 2
    cell = Feed(size, size, shared=False)
    back = Interface({"interval": 2}, {}, {"cell": cell}, {"reached": (2,)})
    ahead = Interface({"x": 1}, {}, {"cell": cell, "reach": Feed(2, 2, shared=False)}, {"reached": (2,)})

    def made(name: str, interface: Interface, step: Any) -> RolloutKernel:
        return RolloutKernel(
            name,
            interface,
            lambda dtype: trace_rollout(partial(step, samples), interface, name=name, dtype=dtype),
            f"{name} {samples} {rows}".encode(),
        )

    return made("controllable", back, _backward), made("fastest_reachable", ahead, _forward)


class _Cell:
    """The strips of a cell, with the one that leads into the next interval."""

    def __init__(self, samples: int, values: Sequence[Scalar], least: Scalar, greatest: Scalar):
        size = (len(values) - samples - 2) // 4
        self.values = [values[k * size : (k + 1) * size] for k in range(4)]
        self.speeds = values[-samples - 2 : -2]
        self.twice, self.most = values[-2:]  # 2 Δ, and the greatest x
        self.samples = samples
        half = 1.0 / self.twice
        self.r, self.low, self.high = [half], [half * least], [half * greatest]
        for k, (a, b, low, high) in enumerate(zip(*self.values, strict=True)):
            ahead = self.twice * (k // (size // samples) / (samples - 1))
            whole = a + ahead * b  # x grows by ahead·u up to the sample
            least_size = 1e-8 * (abs_of(a) + self.twice * abs_of(b)) + 1e-20
            inverse = 1.0 / where(abs_of(whole) < least_size, least_size, whole)
            one, other = low * inverse, high * inverse
            self.r.append(b * inverse)
            self.low.append(where(inverse < 0.0, other, one))
            self.high.append(where(inverse < 0.0, one, other))
        for k in range(1, samples - 1):  # at the ends of cells ``most`` holds
            speed, ahead = self.speeds[k], 1.0 / (self.twice * (k / (samples - 1)))
            self.r.append(ahead)
            self.high.append(ahead / (speed + 1e-30))
            self.low.append(-1e30 * half)

    def excess(self, x: Scalar, u: Scalar) -> Scalar:
        """The part by which x and u must be smaller between the samples: parabolas through three neighbours."""
        size = len(self.values[0]) // self.samples
        at = [x + u * (self.twice * (k / (self.samples - 1))) for k in range(self.samples)]
        squares = [speed * each for speed, each in zip(self.speeds, at, strict=True)]
        worst = _beyond(squares, [1.0] * self.samples)
        for row in range(size):
            a, b, low, high = ([part[k * size + row] for k in range(self.samples)] for part in self.values)
            value = [a[k] * u + b[k] * at[k] for k in range(self.samples)]
            for bound, side in ((high, 1.0), (low, -1.0)):
                worst = larger(worst, _beyond([side * v for v in value], [side * l for l in bound]))
        return worst

    def width(self, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """How wide the interval of u is at x, with an allowance for round-off, as width, w and f of width = w − f·x."""
        (high, top, falls), (low, bottom, rises) = self.highest(x), self.lowest(x)
        allowance = ROUND_OFF * (abs_of(high) + abs_of(low) + abs_of(top) + abs_of(bottom))
        return high - low + allowance, top - bottom, falls - rises

    def highest(self, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The greatest u at x, and high and r of the strip that bounds it."""
        best, top, slope = self.high[0] - self.r[0] * x, self.high[0], self.r[0]
        for high, r in zip(self.high[1:], self.r[1:], strict=True):
            u = high - r * x
            lower = u < best
            best, top, slope = where(lower, u, best), where(lower, high, top), where(lower, r, slope)
        return best, top, slope

    def lowest(self, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The least u at x, and low and r of the strip that bounds it."""
        best, bottom, slope = self.low[0] - self.r[0] * x, self.low[0], self.r[0]
        for low, r in zip(self.low[1:], self.r[1:], strict=True):
            u = low - r * x
            higher = u > best
            best, bottom, slope = where(higher, u, best), where(higher, low, bottom), where(higher, r, slope)
        return best, bottom, slope

    def outermost(self, start: Scalar, direction: float) -> tuple[Scalar, Scalar]:
        """The first x from ``start`` on at which the width is not negative, and the width there.

        ``direction``: −1.0 searches towards smaller x, 1.0 towards greater ones. The search ends where the width would
        not grow.
        """

        def active(count: Scalar, x: Scalar, width: Scalar, gap: Scalar, falls: Scalar) -> Any:
            return all_of(all_of(width < 0.0, direction * falls < 0.0), all_of(count < STEPS, x >= 0.0))

        def body(count: Scalar, x: Scalar, width: Scalar, gap: Scalar, falls: Scalar) -> tuple[Scalar, ...]:
            following = gap / falls
            return (count + 1.0, following, *self.width(following))

        state = (0.0 * start, start, *self.width(start))
        _, x, width, _, _ = while_loop(active, body, state)
        return x, width


def _beyond(value: list[Scalar], bound: list[Scalar]) -> Scalar:
    """(value − bound)/value at the highest possible peak of value − bound; 0 without one, 1 where no speed helps."""
    over = [v - l for v, l in zip(value, bound, strict=True)]
    worst = over[0]
    for each in over[1:]:
        worst = larger(worst, each)
    for before, here, after in zip(over, over[1:], over[2:], strict=False):
        slope, bend = 0.5 * (after - before), before - 2.0 * here + after
        inside = all_of(bend < 0.0, abs_of(slope) < -bend)
        top = here - 0.5 * slope * slope / where(inside, bend, -1.0)
        worst = larger(worst, where(inside, top, here))
    if len(over) == 4:  # the largest distance between the parabolas and a cubic through all samples
        worst = worst + PARABOLA * abs_of(over[0] - over[3] + 3.0 * (over[2] - over[1]))
    slack = bound[0]
    for each in bound[1:]:
        slack = where(each < slack, each, slack)
    return where(worst > 0.0, where(slack > 0.0, worst / (worst + where(slack > 0.0, slack, 1.0)), 1.0), 0.0)


def _backward(samples: int, cell: Sequence[Scalar], interval: Sequence[Scalar]) -> dict[str, Any]:
    strips = _Cell(samples, cell, interval[0], interval[1])
    high, width = strips.outermost(strips.most, -1.0)
    low, _ = strips.outermost(0.0 * high, 1.0)
    exists = all_of(width >= 0.0, high >= 0.0)
    high = where(exists, high, EMPTY[1])
    low = where(exists, where(low < high, low, high), EMPTY[0])
    return {"next_interval": [low, high], "reached": [low, high]}


def _forward(
    samples: int, cell: Sequence[Scalar], reach: Sequence[Scalar], x: Sequence[Scalar]
) -> dict[str, Any]:
    strips = _Cell(samples, cell, reach[0], reach[1])
    u, _, _ = strips.highest(x[0])
    following = x[0] + u * strips.twice
    following = where(following > reach[1], reach[1], where(following < reach[0], reach[0], following))
    excess = strips.excess(x[0], (following - x[0]) / strips.twice)
    return {"next_x": [following], "reached": [following, excess]}


def abs_of(x: Scalar) -> Scalar:
    return where(x < 0.0, -x, x)


def larger(a: Scalar, b: Scalar) -> Scalar:
    return where(a < b, b, a)
