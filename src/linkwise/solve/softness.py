"""By how much inequalities may be exceeded during steps of ``active_set``, so that its numbers keep their digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.language import dot, empty, span, variable
from linkwise.scalar import Scalar, where
from linkwise.solve.cost_factors import COSTLESS
from linkwise.solve.limited import Rows

SOFT, SOFT_FACETS, SHARED_SOFT = 1e4, 1e5, 1e6
"""Weight of what inequalities are exceeded by, boxes excepted, during the steps; ``limited.STIFF`` afterwards, where
they do not contradict. In units of P's mean diagonal, and of the rows (``softness``). More of it leaves nothing of B's
digits where they contradict: with 10⁶ bounds of arms were missed by up to a percent more than needed, those of robots
on feet by up to six times the least. The second number is for robots on feet: with less, refinements do not converge.
The third one is for unknowns without a box, the same, and not in units of rows."""


def usual_weight(rows: Rows) -> float:
    """Of what inequalities are exceeded by, during the steps.

    Args:
        rows: numbers of unknowns and inequalities.
    """
    return SHARED_SOFT if rows.others else SOFT_FACETS if rows.facets else SOFT


def softness(rows: Rows, P: Any, S: Any, soft: float, soft_boxes: Sequence[tuple[int, int, int]]) -> Any:
    """What inequalities other than boxes are exceeded by for a multiplier of one, in the units of their rows:
    accelerations of a light wrist are many times its torques, and so are forces of feet; rows that are stiffer by many
    digits leave none of B's.

    Args:
        rows: numbers of unknowns and inequalities.
        P: the cost, (N, N), with a mean diagonal of one.
        S: rows of bounds and forces.
        soft: the weight.
        soft_boxes: (first, end, …) of boxes that are exceeded, too.
    """
    if not rows.bounds and not rows.facets:  # boxes alone cannot contradict each other
        return 0.0
    forces, firm = rows.each_force(), rows.firm or 0
    count = rows.bounds - firm + sum(end - first for first, end, _ in soft_boxes) + len(rows.each_facet())
    if rows.others or not count:
        return 1.0 / soft
    N, total = rows.boxes, variable(0.0)
    weights = [sum(c * c for _, c in own) for own in forces]  # without products of different forces
    inverse, sizes = empty(N), empty(N)
    for j in span(N):
        known = P[j, j] > COSTLESS
        inverse[j] = where(known, 1.0 / where(known, P[j, j], 1.0), 0.0)
    for j in span(N, parallel=True):
        own = dot(S[firm : rows.bounds, j], S[firm : rows.bounds, j]) if rows.bounds else 0.0
        for k, weight in enumerate(weights):
            own = own + weight * (S[rows.bounds + k, j] * S[rows.bounds + k, j])
        sizes[j] = inverse[j] * own
    for j in span(N):
        total += sizes[j]
    for start, end, _ in soft_boxes:
        for j in span(start, end):
            total += inverse[j]
    return (1.0 / soft) * larger((1.0 / count) * total.value, 1.0)


def larger(a: Scalar, b: Scalar) -> Scalar:
    """The larger one of two numbers that are not NaN, with one comparison."""
    return where(a > b, a, b)
