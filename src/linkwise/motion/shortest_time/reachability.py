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
STEEP = 5.0  # r times 2 Δ: x at the end of a cell falls by more than four times its rise at the beginning
TURNS = 8.0  # of the search for an x before strips are steep
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
    *,
    even: bool = False,
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
        even: as for ``controllable``.
    """
    count, cells, samples, rows = a.shape
    backward, forward = _kernels(samples, rows, even)
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
def _kernels(samples: int, rows: int, even: bool) -> tuple[RolloutKernel, RolloutKernel]:
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
            f"{name} {samples} {rows} {even}".encode(),
        )

    backward = partial(_backward, even)
    return made("controllable", back, backward), made("fastest_reachable", ahead, _forward)


class CellStrips(NamedTuple):
    """low ≤ u + r·x ≤ high of a cell, for the limits at its samples."""

    r: Sequence[Scalar]
    low: Sequence[Scalar]
    high: Sequence[Scalar]


def strips_of(
    samples: int, rows: Sequence[Sequence[Scalar]], speeds: Sequence[Scalar], twice: Scalar
) -> CellStrips:
    """The strips of a cell.

    Args:
        samples: of a cell.
        rows: a, b, low and high of low ≤ a·u + b·x ≤ high, for all limits of the first sample, then of the next.
        speeds: of limits speeds·x ≤ 1, at the samples.
        twice: 2 Δ.
    """
    size = len(rows[0])
    r, lowest, highest = [], [], []
    for k, (a, b, low, high) in enumerate(zip(*rows, strict=True)):
        ahead = twice * (k // (size // samples) / (samples - 1))
        whole = a + ahead * b  # x grows by ahead·u up to the sample
        least_size = 1e-8 * (abs_of(a) + twice * abs_of(b)) + 1e-20
        inverse = 1.0 / where(abs_of(whole) < least_size, least_size, whole)
        one, other = low * inverse, high * inverse
        r.append(b * inverse)
        lowest.append(where(inverse < 0.0, other, one))
        highest.append(where(inverse < 0.0, one, other))
    for k in range(1, samples - 1):  # at the ends of cells the greatest x holds
        ahead = 1.0 / (twice * (k / (samples - 1)))
        r.append(ahead)
        highest.append(ahead / (speeds[k] + 1e-30))
        lowest.append(-1e30 / twice)
    return CellStrips(r, lowest, highest)


class _Cell:
    """The strips of a cell, with the one that leads into the next interval."""

    def __init__(self, strips: CellStrips, twice: Scalar, least: Scalar, greatest: Scalar):
        self.twice, half = twice, 1.0 / twice
        self.r = [half, *strips.r]
        self.low, self.high = [half * least, *strips.low], [half * greatest, *strips.high]

    def width(self, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """How wide the interval of u is at x, with an allowance for round-off, as width, w and f of width = w − f·x."""
        (high, top, falls), (low, bottom, rises) = self.highest(x), self.lowest(x)
        allowance = ROUND_OFF * (abs_of(high) + abs_of(low) + abs_of(top) + abs_of(bottom))
        return high - low + allowance, top - bottom, falls - rises

    def highest(self, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The greatest u at x, and high and r of the strip that bounds it."""
        return _first(self.r, self.high, x, lambda a, b: a < b)

    def lowest(self, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The least u at x, and low and r of the strip that bounds it."""
        return _first(self.r, self.low, x, lambda a, b: b < a)

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

    def before_steep(self, x: Scalar, low: Scalar) -> Scalar:
        """x, or a smaller one where the greatest x at the end of the cell falls much more than x rises.

        Strips do that with a small |a|, as beside points where joints turn back. Beyond, one grid point is fast and the
        next one slow, which takes longer.
        """
        gentle = [r * self.twice <= STEEP for r in self.r]

        def active(count: Scalar, x: Scalar, top: Scalar, falls: Scalar) -> Any:
            return all_of(all_of(falls * self.twice > STEEP, count < TURNS), x > low)

        def body(count: Scalar, x: Scalar, top: Scalar, falls: Scalar) -> tuple[Scalar, ...]:
            some = [where(other, high, 1e30) for other, high in zip(gentle, self.high, strict=True)]
            r = [where(other, each, 0.0) for other, each in zip(gentle, self.r, strict=True)]
            _, upper, rises = _first(r, some, x, lambda a, b: a < b)
            following = (top - upper) / (falls - rises)
            following = where(following < low, low, where(following > x, x, following))
            return (count + 1.0, following, *self.highest(following)[1:])

        return while_loop(active, body, (0.0 * x, x, *self.highest(x)[1:]))[1]


def _first(
    r: Sequence[Scalar], bounds: Sequence[Scalar], x: Scalar, before: Any
) -> tuple[Scalar, Scalar, Scalar]:
    """u = bound − r·x that is ``before`` all others, its bound and its r; in pairs, so that few wait for another."""
    left: list[tuple[Any, Any, Any]] = [
        (bound - each * x, bound, each) for bound, each in zip(bounds, r, strict=True)
    ]
    while len(left) > 1:
        pairs = zip(left[::2], left[1::2], strict=False)
        chosen = [tuple(where(before(b[0], a[0]), q, p) for p, q in zip(a, b, strict=True)) for a, b in pairs]
        left = [*chosen, *left[len(left) - len(left) % 2 :]]  # type: ignore[list-item]
    return left[0]


def excess_of(
    samples: int,
    rows: Sequence[Sequence[Scalar]],
    speeds: Sequence[Scalar],
    twice: Scalar,
    x: Scalar,
    u: Scalar,
) -> tuple[Scalar, list[Scalar], Scalar]:
    """What is beyond limits between the samples of a cell, by parabolas through three neighbours: the part by which x
    and u must be smaller; by how much each row exceeds its limits, negative where it does not; the greatest speeds·x.

    Args:
        samples: of a cell.
        rows: as for ``strips_of``.
        speeds: likewise.
        twice: likewise.
        x: at the beginning of the cell.
        u: in the cell.
    """
    size = len(rows[0]) // samples
    at = [x + u * (twice * (k / (samples - 1))) for k in range(samples)]
    fast = _peak([speed * each - 1.0 for speed, each in zip(speeds, at, strict=True)])
    worst, beyond = _part(fast, [1.0] * samples), []
    for row in range(size):
        a, b, low, high = ([part[k * size + row] for k in range(samples)] for part in rows)
        value = [a[k] * u + b[k] * at[k] for k in range(samples)]
        peaks = [
            _peak([side * (v - l) for v, l in zip(value, bound, strict=True)])
            for bound, side in ((high, 1.0), (low, -1.0))
        ]
        worst = larger(worst, larger(_part(peaks[0], high), _part(peaks[1], [-l for l in low])))
        beyond.append(larger(*peaks))
    return worst, beyond, fast + 1.0


def _part(over: Scalar, bound: Sequence[Scalar]) -> Scalar:
    """over/(over + bound): the part by which a value that is ``over`` its bound must be smaller; 0 where it is not, 1
    where no speed helps."""
    slack = bound[0]
    for each in bound[1:]:
        slack = where(each < slack, each, slack)
    return where(over > 0.0, where(slack > 0.0, over / (over + where(slack > 0.0, slack, 1.0)), 1.0), 0.0)


def _peak(over: list[Scalar]) -> Scalar:
    """The highest possible value between samples."""
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
    return worst


def controllable(
    strips: CellStrips, twice: Scalar, most: Scalar, least: Scalar, greatest: Scalar, *, even: bool = False
) -> list[Scalar]:
    """The least and the greatest x at the beginning of a cell from which the interval at its end can be reached.

    Args:
        strips: of the cell.
        twice: 2 Δ.
        most: greatest x at its beginning.
        least: of the interval at its end.
        greatest: likewise.
        even: leave out the greatest ones after which the speed falls steeply: not all of the interval, and faster.
    """
    cell = _Cell(strips, twice, least, greatest)
    high, width = cell.outermost(most, -1.0)
    low, _ = cell.outermost(0.0 * high, 1.0)
    exists = all_of(width >= 0.0, high >= 0.0)
    if even:
        high = cell.before_steep(high, low)
    high = where(exists, high, EMPTY[1])
    return [where(exists, where(low < high, low, high), EMPTY[0]), high]


def fastest_reachable(
    strips: CellStrips, twice: Scalar, x: Scalar, least: Scalar, greatest: Scalar
) -> Scalar:
    """The greatest x at the end of a cell, from that at its beginning; other arguments as for ``controllable``."""
    u, _, _ = _Cell(strips, twice, least, greatest).highest(x)
    following = x + u * twice
    return where(following > greatest, greatest, where(following < least, least, following))


def _parts(samples: int, cell: Sequence[Scalar]) -> tuple[list[Sequence[Scalar]], Sequence[Scalar]]:
    """Rows and speeds of a row of the table in ``passes``."""
    size = (len(cell) - samples - 2) // 4
    return [cell[k * size : (k + 1) * size] for k in range(4)], cell[-samples - 2 : -2]


def _backward(even: bool, samples: int, cell: Sequence[Scalar], interval: Sequence[Scalar]) -> dict[str, Any]:
    twice, most = cell[-2:]
    strips = strips_of(samples, *_parts(samples, cell), twice)
    reached = controllable(strips, twice, most, *interval, even=even)
    return {"next_interval": reached, "reached": reached}


def _forward(
    samples: int, cell: Sequence[Scalar], reach: Sequence[Scalar], x: Sequence[Scalar]
) -> dict[str, Any]:
    (rows, speeds), twice = _parts(samples, cell), cell[-2]
    following = fastest_reachable(strips_of(samples, rows, speeds, twice), twice, x[0], *reach)
    excess, _, _ = excess_of(samples, rows, speeds, twice, x[0], (following - x[0]) / twice)
    return {"next_x": [following], "reached": [following, excess]}


def abs_of(x: Scalar) -> Scalar:
    return where(x < 0.0, -x, x)


def larger(a: Scalar, b: Scalar) -> Scalar:
    return where(a < b, b, a)
