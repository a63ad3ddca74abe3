"""Value, gradient and Hessian of costs by changes of the state and the torques, over symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.compiler.ir.derivative import jacobian
from linkwise.compiler.ir.graph import Node
from linkwise.optimal.costs import Point, Terms
from linkwise.scalar import Scalar, where

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows


@dataclass(frozen=True, eq=False)
class Quadratic:
    """value + gradient·δ + ½ δᵀ hessian δ; entries that are always zero are the number 0."""

    value: Scalar
    gradient: list[Scalar]
    hessian: Rows

    @classmethod
    def zero(cls, size: int) -> Quadratic:
        return cls(0.0, [0.0] * size, [[0.0] * size for _ in range(size)])

    def plus(self, other: Quadratic) -> Quadratic:
        pairs = zip(self.hessian, other.hessian, strict=True)
        return Quadratic(
            _sum(self.value, other.value),
            [_sum(a, b) for a, b in zip(self.gradient, other.gradient, strict=True)],
            [[_sum(a, b) for a, b in zip(*rows, strict=True)] for rows in pairs],
        )


def least_squares(
    point: Point,
    terms: Terms,
    scale: Any,
    multipliers: Sequence[Scalar] | None = None,
    barrier: bool = False,
) -> Quadratic:
    """½ scale Σ w r² with the Hessian of Gauss and Newton; with multipliers the penalties of limits r ≤ 0.

    A scale that is a duration h which is chosen is part of the residuals, √h r: they change with h by r/(2h) more.
    """
    slopes = _slopes(point, terms.residuals) if terms.slopes is None else _cut(point, terms.slopes)
    d = point.dynamics
    if d.timed and scale is d.step and point.u is not None:
        before, begins = d.nx - 1, d.begins
        for row, r in zip(slopes, terms.residuals, strict=True):
            more = r / (2.0 * scale)
            row[before], row[-1] = _sum(row[before], (1.0 - begins) * more), _sum(row[-1], begins * more)
    if multipliers is None:
        weights = [_times(scale, w) for w in terms.weights]
        value: Scalar = 0.0
        for w, r in zip(weights, terms.residuals, strict=True):
            value = _sum(value, 0.5 * (w * (r * r)))
        pulls = [w * r for w, r in zip(weights, terms.residuals, strict=True)]
    else:
        value = penalty(terms.residuals, multipliers, barrier)
        pulls, weights = _pulls(terms.residuals, multipliers, barrier)
    size = len(slopes[0]) if slopes else 0
    gradient: list[Scalar] = [0.0] * size
    hessian: Rows = [[0.0] * size for _ in range(size)]
    for pull, w, row in zip(pulls, weights, slopes, strict=True):
        used = [k for k in range(size) if not _is_zero(row[k])]
        for i in used:
            gradient[i] = _sum(gradient[i], _times(row[i], pull))
            scaled = _times(row[i], w)
            for j in used:
                if j <= i:
                    hessian[i][j] = _sum(hessian[i][j], _times(row[j], scaled))
    for i in range(size):
        for j in range(i):
            hessian[j][i] = hessian[i][j]
    return Quadratic(value, gradient, hessian)


def by_forces(point: Point, terms: Terms) -> Terms:
    """The same residuals with their slopes by the forces of contacts, which are symbols."""
    forces: list[Any] = list(point.forces)
    graph = forces[0].graph
    rows = jacobian([graph.lift(r) for r in terms.residuals], forces)
    return Terms(terms.residuals, terms.weights, [list(row) for row in rows])


def convex_curvature(point: Point, terms: Terms, multipliers: Sequence[Scalar], barrier: bool) -> Quadratic:
    """What the Hessian of limits of forces has beyond that of Gauss and Newton: Σ pull ∇²c, for convex functions c
    never negative."""
    forces: list[Any] = list(point.forces)
    graph, size = forces[0].graph, len(forces)
    hessian: Rows = [[0.0] * size for _ in range(size)]
    pulls, _ = _pulls(terms.residuals, multipliers, barrier)
    for pull, row in zip(pulls, terms.slopes or (), strict=True):
        used = [k for k in range(size) if not _is_zero(row[k])]
        curved = jacobian([graph.lift(row[k]) for k in used], [forces[k] for k in used])
        for i, line in zip(used, curved, strict=True):
            for j, second in zip(used, line, strict=True):
                if not _is_zero(second):
                    hessian[i][j] = _sum(hessian[i][j], pull * second)
    return Quadratic(0.0, [0.0] * size, hessian)


def penalty(limits: Sequence[Scalar], multipliers: Sequence[Scalar], barrier: bool) -> Scalar:
    """What limits add to a cost: ``walled`` for each, or ``penalised``; ``multipliers`` end with μ and 1/μ."""
    if not barrier:
        return penalised(limits, multipliers)
    total: Scalar = 0.0
    for c, multiplier in zip(limits, multipliers[:-2], strict=True):
        total = _sum(total, walled(c, multiplier, *multipliers[-2:])[0])
    return total


def _pulls(
    limits: Sequence[Scalar], multipliers: Sequence[Scalar], barrier: bool
) -> tuple[list[Scalar], list[Scalar]]:
    """Slopes and curvatures of ``penalty`` by each limit."""
    mu, pulls, weights = multipliers[-2], [], []
    for c, multiplier in zip(limits, multipliers[:-2], strict=True):
        if barrier:
            _, pull, weight = walled(c, multiplier, *multipliers[-2:])
        else:
            force = multiplier + mu * c
            pull, weight = where(force > 0.0, force, 0.0 * force), where(force > 0.0, mu, 0.0 * mu)
        pulls.append(pull)
        weights.append(weight)
    return pulls, weights


def penalised(limits: Sequence[Scalar], multipliers: Sequence[Scalar]) -> Scalar:
    """Σ (max(0, λ + μ c)² − λ²)/2μ; ``multipliers`` end with μ and 1/μ, both 0 where limits do not count."""
    mu, inverse = multipliers[-2:]
    total: Scalar = 0.0
    for c, multiplier in zip(limits, multipliers[:-2], strict=True):
        force = multiplier + mu * c
        inside = -0.5 * inverse * (multiplier * multiplier)
        total = _sum(total, where(force > 0.0, c * (multiplier + 0.5 * mu * c), inside))
    return total


def walled(c: Any, multiplier: Any, mu: Any, inverse: Any) -> tuple[Any, Any, Any]:
    """Value, slope and curvature of (λ/μ) φ(μ c): a parabola near and beyond the limit c ≤ 0, a hyperbola inside.

    φ(t) = t + t²/2 from t = −1/2 on and 1/(1 − 2t) − 7/8 below; φ, φ' and φ'' are continuous, φ(0) = 0 and φ'(0) = 1
    (A. Ben-Tal and M. Zibulevsky, "Penalty/barrier multiplier methods for convex programming problems", 1997).

    Args:
        c: the limit's function.
        multiplier: λ ≥ 0; 0 where the limit does not count.
        mu: μ; distances below 1/(2μ) count as near.
        inverse: 1/μ.
    """
    t = mu * c
    near = t > -0.5
    q = 1.0 / (0.5 - where(near, -0.5, t))
    value = where(near, t + 0.5 * (t * t), 0.5 * q - 0.875)
    slope = where(near, 1.0 + t, 0.5 * (q * q))
    curvature = where(near, 1.0 + 0.0 * t, q * (q * q))
    return inverse * (multiplier * value), multiplier * slope, (multiplier * mu) * curvature


def exact(point: Point, value: Scalar, scale: Any) -> Quadratic:
    """A cost of any form with its exact Hessian, along changes of the state."""
    value = _times(scale, value)
    (gradient,) = _slopes(point, [value])
    rows = _slopes(point, gradient)
    size = len(gradient)
    # along the velocities of orientations the order of two derivatives matters: the Hessian is their mean
    hessian = [[_half(rows[i][j], rows[j][i]) for j in range(size)] for i in range(size)]
    return Quadratic(value, gradient, hessian)


def _slopes(point: Point, values: Sequence[Scalar]) -> Rows:
    """∂values/∂(δx, u) by the graph."""
    d = point.dynamics
    inputs: list[Any] = [*point.x, *(point.u or ())]
    graph = inputs[0].graph
    rows: Rows = [
        [0.0 if node is graph.zero else node for node in row]
        for row in jacobian([graph.lift(value) for value in values], inputs)
    ]
    nq = d.nq
    by_q = (
        d.along_velocities(point.q, [row[:nq] for row in rows]) if not d.flat else [row[:nq] for row in rows]
    )
    return [[*own, *row[nq:]] for own, row in zip(by_q, rows, strict=True)]


def _cut(point: Point, slopes: Rows) -> Rows:
    """The columns of the state alone, at the end of the horizon."""
    return slopes if point.u is not None else [list(row[: point.dynamics.nx]) for row in slopes]


def _is_zero(value: Scalar) -> bool:
    if isinstance(value, Node):
        return value is value.graph.zero
    return isinstance(value, (int, float)) and value == 0.0


def _sum(a: Scalar, b: Scalar) -> Scalar:
    return b if _is_zero(a) else a if _is_zero(b) else a + b


def _times(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, float) and a == 1.0:
        return b
    return a * b


def _half(a: Scalar, b: Scalar) -> Scalar:
    return a if a is b else 0.5 * (a + b)
