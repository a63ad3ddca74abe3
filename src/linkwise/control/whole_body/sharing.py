"""How the points of a sole share its wrench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.control.whole_body.limits import UNLIMITED, Support
from linkwise.language import dot, zeros
from linkwise.solve.active_set import ActiveSet
from linkwise.solve.limited import Rows
from linkwise.solve.steps import run_together

STEPS = 24
"""Of the programme that finds forces of points for the wrench of a sole."""
SOFT, STIFF = 1e6, 1e12
"""Its weights of forces beyond the pyramids: a wrench on the boundary of the cone leaves forces no room."""


def shared_forces(supports: Sequence[Support], wrenches: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Forces inside the pyramids of the points of soles that make a wrench of the cone, 3k scalars for every sole: the
    smallest ones, as squares. A small programme of how the points share it; those of equal soles are solved side by
    side."""
    made = [_programme(support, wrench) for support, wrench in zip(supports, wrenches, strict=True)]
    alike: dict[tuple[int, int], list[ActiveSet]] = {}
    for solver, *_ in made:
        alike.setdefault((solver.rows.unknowns, solver.rows.count), []).append(solver)
    for solvers in alike.values():
        run_together(solvers, [zeros(solver.rows.count) for solver in solvers])
    return [[dot(S[i, :], solver.x, raw[i]) for i in range(len(raw))] for solver, S, raw in made]


def _programme(support: Support, wrench: Sequence[Any]) -> tuple[ActiveSet, Any, list[Any]]:
    """(programme, forces for its unknowns, forces beside these)."""
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
    return ActiveSet(rows, P, p, S, limits, STEPS, soft=SOFT, stiff=STIFF), S, raw
