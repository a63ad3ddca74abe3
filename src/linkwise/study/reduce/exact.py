"""Exact quantiles of raw values that do not fit into memory: read again chunk by chunk, class by class.

A class of ``sketch`` is known for each quantile. Where it holds few values they are gathered and sorted; where it holds
many (a quantity with few different values), it is divided further by the following bits of its numbers, in one more
pass over the data for all quantiles at a time, three at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.study.reduce import sketch

MOST_GATHERED = 1 << 18
"""Values of a class that are gathered."""
STEP_BITS = 15
"""By which a class is divided; 19 and three times 15 are 64."""


@dataclass(frozen=True)
class Quantile:
    """A quantile: the value at ``place`` among the ``count`` values of an element whose leading bits are ``prefix``."""

    element: int
    prefix: int
    place: int
    count: int
    bits: int = sketch.BITS

    @property
    def small(self) -> bool:
        return self.count <= MOST_GATHERED or self.bits == 64


def quantiles(read: Callable[[], Iterator[np.ndarray]], targets: Sequence[Quantile]) -> list[float]:
    """The values of targets; ``read`` begins a pass over the data: arrays (points, elements)."""
    narrower = list(targets)
    while not all(target.small for target in narrower):
        large = {(t.element, t.prefix, t.bits) for t in narrower if not t.small}
        counts = {group: np.zeros(1 << STEP_BITS, np.int64) for group in large}
        for group, inside in _members(read(), large):
            shift = np.uint64(64 - group[2] - STEP_BITS)
            parts = (inside >> shift) & np.uint64((1 << STEP_BITS) - 1)
            counts[group] += np.bincount(parts.astype(np.intp), minlength=1 << STEP_BITS)
        narrower = [
            t if t.small else _part_of_class(t, counts[t.element, t.prefix, t.bits]) for t in narrower
        ]
    groups = {(t.element, t.prefix, t.bits) for t in narrower if t.bits < 64}
    gathered: dict[tuple[int, int, int], list[np.ndarray]] = {group: [] for group in groups}
    for group, inside in _members(read(), groups) if groups else ():
        gathered[group].append(inside)
    values = {group: np.sort(np.concatenate(parts)) for group, parts in gathered.items()}
    keys = [
        values[t.element, t.prefix, t.bits][t.place] if t.bits < 64 else np.uint64(t.prefix) for t in narrower
    ]
    return [sketch.number(int(key)) for key in keys]


Group = tuple[int, int, int]
"""Element, prefix and its bits."""


def _members(chunks: Iterator[np.ndarray], groups: set[Group]) -> Iterator[tuple[Group, np.ndarray]]:
    """(group, keys of its values in a chunk)."""
    elements = sorted({element for element, _, _ in groups})
    for values in chunks:
        for element in elements:
            column = np.ascontiguousarray(values[:, element])
            keys = sketch.ordered(column[column == column])
            for group in groups:
                if group[0] == element:
                    yield group, keys[keys >> np.uint64(64 - group[2]) == np.uint64(group[1])]


def _part_of_class(target: Quantile, counts: np.ndarray) -> Quantile:
    """The part of a class in which the quantile lies."""
    sums = np.cumsum(counts)
    part = int(np.searchsorted(sums, target.place, side="right"))
    before = int(sums[part] - counts[part])
    return replace(
        target,
        prefix=(target.prefix << STEP_BITS) | part,
        place=target.place - before,
        count=int(counts[part]),
        bits=target.bits + STEP_BITS,
    )
