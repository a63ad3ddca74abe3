"""The order in which a scan joins its elements: logarithmic depth, and the same order wherever it runs.

A scan over x₀, x₁, … gives each place what all elements before it do to a start. Going up, neighbouring runs are
joined, in place: after the level d the element at i = 2d−1, 4d−1, … stands for the 2d elements that end there. Coming
down, a run is applied to what is known before it: each place is reached once. All pairs of a level are independent.
(R. P. Brent and H. T. Kung, 1982.)
"""

from __future__ import annotations

Level = list[tuple[int, int]]
START = -1  # stands for the start where a pair has no element before it


def joins(count: int) -> list[Level]:
    """Levels of pairs (left, right): right ← left joined with right."""
    levels: list[Level] = []
    d = 1
    while 2 * d <= _used(count):
        levels.append([(i - d, i) for i in range(2 * d - 1, _used(count), 2 * d)])
        d *= 2
    return levels


def applications(count: int) -> list[Level]:
    """Levels of pairs (left, right): what is known after right ← the run that ends there, applied to what is known
    after left."""
    d = 1
    while 2 * d <= _used(count):
        d *= 2
    levels: list[Level] = []
    while d:
        levels.append([(i - d, i) for i in range(d - 1, _used(count), 2 * d)])
        d //= 2
    return levels


def _used(count: int) -> int:
    """Nothing comes after the last element."""
    return max(count - 1, 0)
