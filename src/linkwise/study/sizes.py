"""How many points are computed at a time and committed together, and what memory that takes.

All of it follows from the study alone, never from the machine: the last bits of means depend on the chunks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.study.exact import MOST_GATHERED
from linkwise.study.keep import STATISTICS
from linkwise.study.steps.base import Step

if TYPE_CHECKING:
    from linkwise.study.plan import Plan

BLOCK = 8192
"""Points that are computed at a time: their columns stay in the second cache."""
CHUNKS = 64
"""A study is cut into about so many chunks at least, if they do not become too small."""
LARGEST_CHUNK = 1 << 20
KEPT_BYTES = 16 << 20
"""Of a chunk's raw arrays, and of its failures if all points failed, at most."""
STEP_BYTES = 64 << 20
"""Of what a step such as a simulation needs for a block, at most."""
LEAST_OF_STEPS = 64
LIBRARIES = 48 << 20
"""What Zarr, Arrow and the allocator keep for themselves."""
_PIECE_COPIES = 6
"""Of a piece of a raw array: filled, compressed, and what the compressor needs; of two chunks."""
_FAILURE_COPIES = 12
"""Of failed points: parts, columns, table, pages, file, of a chunk in the making and of one on its way to the disk."""


def block(later: Sequence[Step]) -> int:
    """Points at a time; fewer where a step needs much memory for each."""
    needed = max((step.bytes_per_point() for step in later), default=0)
    size = BLOCK
    while size > 16 and needed * size > STEP_BYTES:
        size //= 2
    return size


def chunk(plan: Plan) -> int:
    """Points of a chunk: as many as the study says, or what its length and what it keeps suggest."""
    if plan.description.chunk is not None:
        return plan.description.chunk
    heavy = any(step.bytes_per_point() for step in plan.later)
    least = LEAST_OF_STEPS if heavy else BLOCK
    size = least
    while size * CHUNKS < plan.points and size < (BLOCK if heavy else LARGEST_CHUNK):
        size *= 2
    most = max(_raw_bytes(plan), _failure_bytes(plan))
    while size > least and most * size > KEPT_BYTES:
        size //= 2
    return size


def memory(plan: Plan, threads: int) -> int:
    """Bytes that a run with so many threads needs beside the interpreter, whatever the number of samples."""
    from linkwise.study.store import Store

    columns = 8 * (plan.sampler.stride * plan.sampler.rows + plan.stride * plan.rows)
    reductions = sum(reduction.bytes(plan.axes.limit) for reduction in plan.reductions.values())
    steps = max((step.bytes_per_point() for step in plan.later), default=0) * plan.block
    points = min(plan.axes.limit, plan.axes.points)
    raw = _PIECE_COPIES * sum(layout.piece_bytes for layout in Store("", plan).layouts.values())
    failures = _FAILURE_COPIES * points * _failure_bytes(plan)
    own = columns + reductions + steps + raw + failures
    return LIBRARIES + threads * own + _at_grid_points(plan) + _gathered(plan)


def raw(plan: Plan) -> int:
    """Bytes of all raw arrays before they are compressed."""
    found = 0
    for keep in plan.raws:
        points = plan.axes.per_cell if plan.by_sample(keep.name) else plan.axes.points
        found += points * plan.quantity(keep.name).size * (4 if keep.dtype == "float32" else 8)
    return found


def _raw_bytes(plan: Plan) -> int:
    """Of a point."""
    return 8 * sum(plan.quantity(keep.name).size for keep in plan.raws)


def _failure_bytes(plan: Plan) -> int:
    """Of a point that fails."""
    return 8 * sum(1 + len(rows) for _, _, _, rows in plan.failures())


def _at_grid_points(plan: Plan) -> int:
    """Reductions over the samples, held for all combinations of the grids until the end."""
    found = 0
    for keep in plan.description.keeps:
        if keep.by_cell:
            numbers = bool(keep.statistics) * 2 * len(STATISTICS) + 2 * len(keep.quantiles)
            found += 8 * numbers * plan.quantity(keep.name).size * math.prod(n for _, n in plan.axes.grid)
    return found


def _gathered(plan: Plan) -> int:
    """Raw values that are looked at again for exact quantiles: those of a class, and copies to sort them."""
    found = 0
    for keep in plan.description.keeps:
        if keep.raw and keep.quantiles and not keep.by_cell:
            values = min(MOST_GATHERED, plan.axes.points) * len(keep.quantiles)
            found = max(found, 4 * 8 * values * plan.quantity(keep.name).size)
    return found
