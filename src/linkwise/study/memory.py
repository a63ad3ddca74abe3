"""What memory a study takes. It follows from the study and the number of threads, never from the number of samples."""

from __future__ import annotations

import math

from linkwise.study.plan import Plan
from linkwise.study.reduce.exact import MOST_GATHERED
from linkwise.study.reduce.keep import STATISTICS
from linkwise.study.sizes import failure_bytes
from linkwise.study.store.folder import Store

LIBRARIES = 48 << 20
"""What Zarr, Arrow and the allocator keep for themselves."""
_PIECE_COPIES = 6
"""Of a piece of a raw array: filled, compressed, and what the compressor needs; of two chunks."""
_FAILURE_COPIES = 12
"""Of failed points: parts, columns, table, pages, file, of a chunk being computed and of one being written."""


def needed(plan: Plan, threads: int) -> int:
    """Bytes that a run with so many threads needs beside the interpreter, whatever the number of samples."""
    columns = 8 * (plan.sampler.stride * plan.sampler.rows + plan.stride * plan.rows)
    reductions = sum(reduction.bytes(plan.axes.limit) for reduction in plan.reductions.values())
    steps = max((step.bytes_per_point() for step in plan.later), default=0) * plan.block
    points = min(plan.axes.limit, plan.axes.points)
    raw = _PIECE_COPIES * sum(layout.piece_bytes for layout in Store("", plan).layouts.values())
    failures = _FAILURE_COPIES * points * failure_bytes(plan)
    own = columns + reductions + steps + raw + failures
    return LIBRARIES + threads * own + _at_grid_points(plan) + _gathered_values(plan)


def of_raw_arrays(plan: Plan) -> int:
    """Bytes of all raw arrays before they are compressed."""
    total = 0
    for keep in plan.raws:
        points = plan.axes.per_cell if plan.by_sample(keep.name) else plan.axes.points
        total += points * plan.quantity(keep.name).size * (4 if keep.dtype == "float32" else 8)
    return total


def _at_grid_points(plan: Plan) -> int:
    """Reductions over the samples, held for all combinations of the grids until the end."""
    total = 0
    for keep in plan.description.keeps:
        if keep.by_cell:
            numbers = bool(keep.statistics) * 2 * len(STATISTICS) + 2 * len(keep.quantiles)
            total += 8 * numbers * plan.quantity(keep.name).size * math.prod(n for _, n in plan.axes.grid)
    return total


def _gathered_values(plan: Plan) -> int:
    """Raw values that are read again for exact quantiles: those of a class, and copies to sort them."""
    total = 0
    for keep in plan.description.keeps:
        if keep.raw and keep.quantiles and not keep.by_cell:
            values = min(MOST_GATHERED, plan.axes.points) * len(keep.quantiles)
            total = max(total, 4 * 8 * values * plan.quantity(keep.name).size)
    return total
