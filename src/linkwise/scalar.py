"""The abstract scalar: what an algorithm may do with a number.

An algorithm is written once over scalars. They may be Python floats, NumPy arrays (one lane per state) or symbols of
the compiler; beyond ``+ - * /`` and comparisons it uses only the functions of this module. A symbol takes part by
having methods of these names (``x.sin()``, ``x.where(...)``), so this module knows no compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

Scalar = Any  # float, numpy.ndarray or a symbol: anything with arithmetic

current_stage: ContextVar[str] = ContextVar("stage", default="")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Name the pass of an algorithm, so that operation counts can be split as the papers' tables are."""
    token = current_stage.set(name)
    try:
        yield
    finally:
        current_stage.reset(token)


def sin(x: Scalar) -> Scalar:
    """sin x, x in radians."""
    if isinstance(x, (float, int)):
        return math.sin(x) if math.isfinite(x) else math.nan
    return x.sin() if hasattr(x, "sin") else np.sin(x)


def cos(x: Scalar) -> Scalar:
    """cos x, x in radians."""
    if isinstance(x, (float, int)):
        return math.cos(x) if math.isfinite(x) else math.nan
    return x.cos() if hasattr(x, "cos") else np.cos(x)


def sqrt(x: Scalar) -> Scalar:
    """Square root of x; NaN for a negative x."""
    if isinstance(x, (float, int)):
        return math.sqrt(x) if x >= 0 else math.nan
    return x.sqrt() if hasattr(x, "sqrt") else np.sqrt(x)


def rint(x: Scalar) -> Scalar:
    """The nearest whole number, ties to even."""
    if isinstance(x, (float, int)):
        return float(round(x)) if math.isfinite(x) else x
    return x.rint() if hasattr(x, "rint") else np.rint(x)


def where(condition: Scalar, if_true: Scalar, if_false: Scalar) -> Scalar:
    """``if_true`` where the condition holds, else ``if_false``, lane by lane."""
    if isinstance(condition, (bool, np.bool_)):
        return if_true if condition else if_false
    if hasattr(condition, "where"):
        return condition.where(if_true, if_false)
    return np.where(condition, if_true, if_false)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y) [rad], in [-π, π]."""
    for value, other, first in ((y, x, True), (x, y, False)):
        if hasattr(value, "arctan2"):
            return value.arctan2(other) if first else value.arctan2_of(other)
    if isinstance(y, (float, int)) and isinstance(x, (float, int)):
        return math.atan2(y, x)
    return np.arctan2(y, x)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller one; NaN if either is NaN."""
    return where(a < b, a, where(b <= a, b, a + b))


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger one; NaN if either is NaN."""
    return where(a > b, a, where(b >= a, b, a + b))


def all_of(first: Scalar, second: Scalar) -> Scalar:
    """Both conditions hold (``and`` for scalars of any kind)."""
    return first & second


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1; sign(0) = 0 and sign(NaN) = NaN. Its derivative is 0."""
    if hasattr(x, "sign"):
        return x.sign()
    return where(x > 0, 1.0, where(x < 0, -1.0, x))


def while_loop(active: Callable[..., Scalar], body: Callable[..., tuple], state: tuple) -> tuple:
    """Repeat ``state = body(*state)`` as long as ``active(*state)``, lane by lane.

    A lane that is no longer active keeps its state while the others go on, so that no lane depends on its neighbours.
    """
    for value in state:
        if hasattr(value, "while_loop"):
            return value.while_loop(active, body, state)
    going = active(*state)
    while np.any(going):
        state = tuple(where(going, new, old) for new, old in zip(body(*state), state, strict=True))
        going = active(*state)
    return state
