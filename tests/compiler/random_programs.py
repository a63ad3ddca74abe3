"""Random traced functions, and evaluation of the same functions by plain floats, for the tests of this
folder.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np

from linkwise.compiler.ir.program import Program, trace
from linkwise.scalar import cos, sin, sqrt, where, while_loop

INPUTS = {"x": 3, "y": 2}


def random_function(seed: int, size: int, *, smooth: bool = False) -> Callable:
    """A function of x and y that makes ``size`` random operations; ``smooth`` leaves out what may jump or be
    undefined.
    """

    def function(x, y):
        choose = random.Random(seed)
        values = [*x, *y, 0.5, -1.25, 3.0]
        for _ in range(size):
            a, b, c = (choose.choice(values[-12:] if choose.random() < 0.7 else values) for _ in range(3))
            kind = choose.randrange(10 if smooth else 16)
            if kind < 3:
                new = a * b + c if kind == 0 else a * b - c if kind == 1 else c - a * b
            elif kind < 5:
                new = a + b if kind == 3 else a - b
            elif kind < 7:
                new = a * b
            elif kind == 7:
                new = -a
            elif kind == 8:
                new = sin(a) + cos(a) * b
            elif kind == 9:
                new = a / 3.0
            elif kind == 10:
                new = a if isinstance(b, float) else a / b
            elif kind == 11:
                new = where(a < b, c, a)
            elif kind == 12:
                new = where((a <= b) & (b < c), a, b)
            elif kind == 13:
                new = sqrt(abs(a))
            elif kind == 14:
                new = abs(a - b)
            else:
                new = where(a > 0.0, b, -c)
            values.append(new)
        return values[-6:]

    return function


def atan2(y, x):
    return y.arctan2(x) if hasattr(y, "arctan2") else np.arctan2(y, x)


def every_operation(x, y):
    """Uses every operation that a program may have, with two loops, one of them inside the other."""
    a, b, c = x
    d, e = y

    def smaller(u, v, n):
        _, power = while_loop(lambda k, p: k < 2.0, lambda k, p: (k + 1.0, p * d), (0.0, u))
        return v, where(n < 1.0, -u, power * 0.125), n + 1.0

    first, second, rounds = while_loop(lambda u, v, n: (abs(u) > 0.25) & (n < 5.0), smaller, (a, b, 0.0))
    return [
        a + b, a - b, a * b, a / b, -c, a * b + c, a * b - c, c - a * b, -(a * b) - c,
        sqrt(d), abs(e), sin(a), cos(a), sin(b), cos(c), where(a < b, d, e), where(a <= b, d, -e),
        where((a < b) | ~(c < d), a, b), where((a < b) & (c < d), 1.0, c), first, second, rounds, 3.5, d, -e,
        where(~(d < e), a * b + d * e, a / 3.0), atan2(a, b),
    ]  # fmt: skip


EVERY_OUTPUT = 27


def every_program(dtype: str, **options) -> Program:
    return trace(every_operation, INPUTS, {"out": (EVERY_OUTPUT,)}, name="every", dtype=dtype, **options)


def states(count: int, seed: int, *, special: bool = True) -> list[tuple[np.ndarray, np.ndarray]]:
    """Inputs of many magnitudes; with ``special`` also zeros, infinities, NaNs and subnormal numbers."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(count, 5)) * 10.0 ** rng.uniform(-2, 2, size=(count, 5))
    if special:
        odd = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e-310, 1e308, 1e-45, 1e39, 1.0]
        for row in range(0, count, 3):
            numbers[row, rng.integers(5)] = odd[rng.integers(len(odd))]
    return [(row[:3], row[3:]) for row in numbers]


def same_bits(got: Sequence[float], wanted: Sequence[float]) -> bool:
    """Equal in every bit, where all NaNs count as equal."""
    got, wanted = np.asarray(got, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    unsigned = got.view(np.uint64), wanted.view(np.uint64)
    return bool(np.all((unsigned[0] == unsigned[1]) | (np.isnan(got) & np.isnan(wanted))))
