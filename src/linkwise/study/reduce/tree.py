"""Combining the parts of a whole in an order that does not depend on when they arrive.

Part k is a leaf of a binary tree over 0 … n − 1; neighbours are merged as soon as both are known, so that few are held
at a time. A part that never comes is left out of the merges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Tree(Generic[T]):
    """Takes ``count`` parts in any order; ``merge(left, right)`` need not be associative."""

    def __init__(self, count: int, merge: Callable[[T, T], T]):
        self._merge = merge
        self._waiting: dict[tuple[int, int], T | None] = {}
        self._sizes = [count]  # of each level, the leaves first
        while self._sizes[-1] > 1:
            self._sizes.append(-(-self._sizes[-1] // 2))

    def add(self, number: int, part: T | None) -> None:
        """A part; None for one that does not exist."""
        level = 0
        while level < len(self._sizes) - 1:
            other = number ^ 1
            if other < self._sizes[level]:
                if (level, other) not in self._waiting:
                    break
                sibling = self._waiting.pop((level, other))
                left, right = (part, sibling) if number < other else (sibling, part)
                part = right if left is None else left if right is None else self._merge(left, right)
            level, number = level + 1, number // 2
        self._waiting[level, number] = part

    @property
    def complete(self) -> bool:
        return (len(self._sizes) - 1, 0) in self._waiting

    def result(self) -> T | None:
        """The whole; None if no part existed."""
        return self._waiting[len(self._sizes) - 1, 0]
