"""How the points of a sole share its wrench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.control.whole_body.limits import UNLIMITED, Support
from linkwise.language import dot, zeros
from linkwise.solve.active_set import ActiveSet
from linkwise.solve.limited import Rows

STEPS = 24
"""Of the programme that finds forces of points for the wrench of a sole."""
SOFT, STIFF = 1e6, 1e12
"""Its weights of forces beyond the pyramids: a wrench on the boundary of the cone leaves forces no room."""


def shared_forces(support: Support, wrench: Sequence[Any]) -> list[Any]:
    """Forces inside the pyramids of a sole's points that make a wrench of its cone, 3k scalars: the smallest ones, as
    squares. A small programme of how the points share it."""
    spread, shares = support.shared
    C = support.pyramid()[0][:-2]
    size, unknowns = shares.shape
    count = size // 3
    rows = Rows(unknowns, 0, (C,) * count, 0, tuple(range(unknowns)))
    raw = [sum((float(v) * w for v, w in zip(row, wrench, strict=True)), start=0.0) for row in spread]
    S, P, p, limits = zeros(size, unknowns), zeros(unknowns, unknowns), zeros(unknowns), zeros(rows.count)
    for i in range(size):
        for j in range(unknowns):
            S[i, j] = float(shares[i, j])
    for i in range(unknowns):
        P[i, i] = 1.0
        limits[i] = UNLIMITED
        limits[unknowns + i] = UNLIMITED
    for number, first, row in rows.each_facet():
        limits[number] = -sum((c * raw[first + a] for a, c in enumerate(row) if c), start=0.0)
    solver = ActiveSet(rows, P, p, S, limits, STEPS, soft=SOFT, stiff=STIFF)
    solver.run(zeros(rows.count))
    return [dot(S[i, :], solver.x, raw[i]) for i in range(size)]
