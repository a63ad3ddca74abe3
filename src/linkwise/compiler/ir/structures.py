"""Nested values and the scalars in them, and how the scalars of arrays are shared out among rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeGuard


def is_sequence(value: Any) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    return isinstance(value, (tuple, list))


def leaves(value: Any) -> list[Any]:
    """The scalars of nested tuples, lists and dataclasses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, f.name) for f in dataclasses.fields(value)]
    if is_sequence(value):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def rebuilt(template: Any, scalars: Sequence[Any]) -> Any:
    """The same structure as the template with other scalars."""
    supply = iter(scalars)

    def build(part: Any) -> Any:
        if dataclasses.is_dataclass(part) and not isinstance(part, type):
            return type(part)(*(build(getattr(part, f.name)) for f in dataclasses.fields(part)))
        if is_sequence(part):
            return type(part)(build(p) for p in part)
        return next(supply)

    return build(template)


def aligned(template: Any, value: Any) -> Iterator[int]:
    """For every scalar of the template: how many the value has in its place."""
    if dataclasses.is_dataclass(template) and not isinstance(template, type):
        for f in dataclasses.fields(template):
            yield from aligned(getattr(template, f.name), getattr(value, f.name))
    elif is_sequence(template):
        for inner, part in zip(template, value, strict=True):
            yield from aligned(inner, part)
    else:
        yield len(leaves(value))


@dataclass(frozen=True)
class Rows:
    """How the scalars of inputs and outputs are shared out among rows: one each, or more for rows of some kinds."""

    starts: tuple[int, ...]  # the first scalar of each row
    total: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Rows:
        *starts, total = accumulate(sizes, initial=0)
        return cls(tuple(starts), total)

    @property
    def plain(self) -> bool:
        """Whether each row has one scalar."""
        return self.starts == tuple(range(self.total))
