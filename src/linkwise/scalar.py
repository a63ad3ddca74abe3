"""The abstract scalar: what an algorithm may do with a number.

An algorithm is written once over scalars. They may be Python floats, NumPy arrays (one lane per state) or symbols of
the compiler; beyond ``+ - * /`` and comparisons it uses only the functions of this module. A symbol has methods of
these names (``x.sin()``, ``x.where(...)``), so this module does not depend on the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np


class Symbol(Protocol):
    """A scalar that is not a float: arithmetic with floats and with its own kind, as a symbol of the compiler has it.

    NumPy arrays behave alike (one lane per state), but their type does not say so: code that runs an algorithm on
    arrays passes them as ``Any``.
    """

    def __add__(self, other: Scalar, /) -> Symbol: ...
    def __radd__(self, other: float, /) -> Symbol: ...
    def __sub__(self, other: Scalar, /) -> Symbol: ...
    def __rsub__(self, other: float, /) -> Symbol: ...
    def __mul__(self, other: Scalar, /) -> Symbol: ...
    def __rmul__(self, other: float, /) -> Symbol: ...
    def __truediv__(self, other: Scalar, /) -> Symbol: ...
    def __rtruediv__(self, other: float, /) -> Symbol: ...
    def __neg__(self) -> Symbol: ...
    def __abs__(self) -> Symbol: ...
    def __lt__(self, other: Scalar, /) -> Symbol: ...
    def __le__(self, other: Scalar, /) -> Symbol: ...
    def __gt__(self, other: Scalar, /) -> Symbol: ...
    def __ge__(self, other: Scalar, /) -> Symbol: ...
    def __and__(self, other: Condition, /) -> Symbol: ...
    def __rand__(self, other: bool, /) -> Symbol: ...
    def __or__(self, other: Condition, /) -> Symbol: ...
    def __ror__(self, other: bool, /) -> Symbol: ...
    def __invert__(self) -> Symbol: ...


Scalar: TypeAlias = "float | Symbol"
"""What an algorithm computes with: a float, or anything else with arithmetic."""
Condition: TypeAlias = "bool | Symbol"
"""What a comparison of scalars gives."""

State = TypeVar("State", bound=tuple[Any, ...])
T = TypeVar("T")

current_stage: ContextVar[str] = ContextVar("stage", default="")


@contextmanager
def stage(name: str) -> Generator[None, None, None]:
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
    return _by_method("sin", x)


def cos(x: Scalar) -> Scalar:
    """cos x, x in radians."""
    if isinstance(x, (float, int)):
        return math.cos(x) if math.isfinite(x) else math.nan
    return _by_method("cos", x)


def sqrt(x: Scalar) -> Scalar:
    """Square root of x; NaN for a negative x."""
    if isinstance(x, (float, int)):
        return math.sqrt(x) if x >= 0 else math.nan
    return _by_method("sqrt", x)


def rint(x: Scalar) -> Scalar:
    """The nearest whole number, ties to even."""
    if isinstance(x, (float, int)):
        return float(round(x)) if math.isfinite(x) else x
    return _by_method("rint", x)


def where(condition: Condition, if_true: Scalar, if_false: Scalar) -> Scalar:
    """``if_true`` where the condition holds, else ``if_false``, lane by lane."""
    if isinstance(condition, (bool, np.bool_)):
        return if_true if condition else if_false
    lanes: Any = condition
    if hasattr(lanes, "where"):
        return lanes.where(if_true, if_false)
    return _any(np).where(lanes, if_true, if_false)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y) [rad], in [-π, π]."""
    if isinstance(y, (float, int)) and isinstance(x, (float, int)):
        return math.atan2(y, x)
    above, beside = _any(y), _any(x)
    if hasattr(above, "arctan2"):
        return above.arctan2(beside)
    if hasattr(beside, "arctan2"):
        return beside.arctan2_of(above)
    return np.arctan2(above, beside)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller one; NaN if either is NaN."""
    if _is_number(b):  # one comparison tells all
        return where(b <= a, b, a)
    return where(a < b, a, where(b <= a, b, a + b))


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger one; NaN if either is NaN."""
    if _is_number(b):
        return where(b >= a, b, a)
    return where(a > b, a, where(b >= a, b, a + b))


def clipped(x: Scalar, lower: Scalar, upper: Scalar) -> Scalar:
    """A scalar within two limits; NaN stays NaN."""
    value = _any(x)
    return where(value > upper, upper, where(value < lower, lower, value))


def _is_number(x: Scalar) -> bool:
    """Whether x is a constant that is not NaN."""
    return isinstance(x, (float, int)) and not math.isnan(x)


def summed(terms: Iterable[Scalar]) -> Scalar:
    """The sum in this order; 0 of nothing. Python's own ``sum`` adds floats in another way than compiled code."""
    total: Any = None
    for term in terms:
        total = term if total is None else total + term
    return 0.0 if total is None else total


def all_of(first: Condition, second: Condition) -> Condition:
    """Both conditions hold (``and`` for scalars of any kind)."""
    return first & second


def negated(condition: Condition) -> Condition:
    """The condition does not hold."""
    return not condition if isinstance(condition, (bool, np.bool_)) else ~condition


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1; sign(0) = 0 and sign(NaN) = NaN. Its derivative is 0."""
    value = _any(x)
    if hasattr(value, "sign"):
        return value.sign()
    return where(x > 0, 1.0, where(x < 0, -1.0, x))


def like(value: Scalar, other: Scalar) -> Scalar:
    """``value``, with the derivative of ``other``; zero as the other one makes it a constant for derivatives.

    An iteration is differentiated by one more step of it: with the step x⁺ = N(x, θ) of an iteration that has converged
    as by Newton, ∂N/∂x = 0, and ∂N/∂θ is the derivative of the solution.
    """
    numbers = _any(value)
    return numbers.like(other) if hasattr(numbers, "like") else value


class Deferred:
    """Scalars that are computed when they are needed first: those that only derivatives depend on.

    Args:
        make: gives them; it runs in the context in which it was deferred.
    """

    def __init__(self, make: Callable[[], list[Scalar]]):
        self._context, self._make = copy_context(), make
        self._values: list[Scalar] | None = None

    def __getitem__(self, k: int) -> Scalar:
        if self._values is None:
            self._values = self._context.run(self._make)
        return self._values[k]


def like_all(values: Sequence[Scalar], make: Callable[[], list[Scalar]]) -> list[Scalar]:
    """The values, with the derivatives of those that ``make`` gives; it is called for derivatives alone."""
    others = Deferred(make)
    numbers = [_any(value) for value in values]
    return [x.like_later(others, k) if hasattr(x, "like") else x for k, x in enumerate(numbers)]


def while_loop(
    active: Callable[..., Condition], body: Callable[..., State], state: State, uneven: bool = False
) -> State:
    """Repeat ``state = body(*state)`` as long as ``active(*state)``, lane by lane.

    A lane that is no longer active keeps its state while the others go on, so that no lane depends on its neighbours.
    Where most lanes need few turns and some need many (``uneven``), compiled batches compute these together.
    """
    for value in state:
        if hasattr(value, "while_loop"):
            return value.while_loop(active, body, state, uneven)
    values: Any = state
    going = active(*values)
    while np.any(_any(going)):
        values = tuple(where(going, new, old) for new, old in zip(body(*values), values, strict=True))
        going = active(*values)
    return values


def traced_once(key: tuple[object, ...], values: Sequence[Any], make: Callable[[], T]) -> T:
    """``make()``, or what it gave before for the same key and the same symbols of one trace.

    The nodes would be the same: this saves the time to find that out. ``make`` depends on key and values alone, and
    nothing may change what it gives. Numbers and arrays are computed every time.
    """
    known: dict[Any, T] | None = getattr(values[0], "known_results", None) if values else None
    if known is None or any(type(value) is not type(values[0]) for value in values):
        return make()
    full = (*key, *values)
    if full not in known:
        known[full] = make()
    return known[full]


def _any(value: object) -> Any:
    """A scalar without its type, for what symbols and arrays have and floats do not."""
    return value


def _by_method(name: str, x: Scalar) -> Any:
    """The function of a symbol by its own method, of an array by NumPy."""
    value = _any(x)
    return getattr(value, name)() if hasattr(value, name) else getattr(np, name)(value)
