"""How many points are computed at a time and committed together.

All of it follows from the study alone, never from the machine: the last bits of means depend on the chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    most = max(_raw_bytes(plan), failure_bytes(plan))
    while size > least and most * size > KEPT_BYTES:
        size //= 2
    return size


def _raw_bytes(plan: Plan) -> int:
    """Bytes of the raw values of a point."""
    return 8 * sum(plan.quantity(keep.name).size for keep in plan.raws)


def failure_bytes(plan: Plan) -> int:
    """Bytes of a point that fails."""
    return 8 * sum(1 + len(rows) for _, _, _, rows in plan.failures())
