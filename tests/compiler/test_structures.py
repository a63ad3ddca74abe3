"""Nested values and their scalars; rows of several scalars."""

import random
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.ir.structures import Rows, aligned, leaves, rebuilt


@dataclass(frozen=True)
class Pair:
    first: Any
    second: Any


def nested(rng: random.Random, depth: int) -> tuple[Any, list[float]]:
    """A random value of tuples, lists and dataclasses, and its scalars in order."""
    if depth == 0 or rng.random() < 0.3:
        number = rng.random()
        return number, [number]
    kind = rng.choice((tuple, list, Pair))
    parts = [nested(rng, depth - 1) for _ in range(2 if kind is Pair else rng.randint(0, 3))]
    value = Pair(*(part for part, _ in parts)) if kind is Pair else kind(part for part, _ in parts)
    return value, [number for _, numbers in parts for number in numbers]


def test_scalars_of_nested_values_are_found_and_put_back():
    for seed in range(200):
        value, numbers = nested(random.Random(seed), 3)
        assert leaves(value) == numbers
        others = [2.0 * number for number in numbers]
        changed = rebuilt(value, others)
        assert leaves(changed) == others
        assert rebuilt(changed, numbers) == value
        assert type(changed) is type(value)
        assert list(aligned(value, rebuilt(value, [(x, [x, Pair(x, x)]) for x in numbers]))) == [4] * len(
            numbers
        )


def test_places_of_rows():
    """Rows are plain where each has one scalar, also the last one."""
    rng = random.Random(0)
    for sizes in [[], [1], [2], [1, 1], [1, 3], [1, 1, 2], [2, 1], [0, 1]] + [
        [rng.choice((1, 1, 1, 2)) for _ in range(rng.randint(1, 5))] for _ in range(50)
    ]:
        rows = Rows.of(sizes)
        assert list(rows.starts) == [sum(sizes[:k]) for k in range(len(sizes))]
        assert rows.total == sum(sizes)
        assert rows.plain == all(size == 1 for size in sizes), sizes
