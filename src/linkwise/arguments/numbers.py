"""Numbers that users give: what cannot be right is refused by its name, in the same words everywhere.

A part of the package has an error of its own; ``Numbers`` raises that one.
"""

from __future__ import annotations

import math
import operator
import reprlib
from typing import Any

import numpy as np

from linkwise.errors import ArgumentError


class Numbers:
    """Checks that raise one kind of error."""

    def __init__(self, error: type[ValueError] = ArgumentError):
        self.error = error

    def array(
        self,
        name: str,
        value: Any,
        *,
        least: float = -math.inf,
        above: float = -math.inf,
        finite: bool = True,
    ) -> np.ndarray:
        """Finite numbers of any shape, from ``least`` on or beyond ``above``; or also infinite ones."""
        try:
            given = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise self.error(f"{name}: expected numbers, got {reprlib.repr(value)}") from None
        inside = (given >= least) & ((given > above) | (above == -math.inf))
        wrong = np.argwhere(~(inside & (np.isfinite(given) if finite else ~np.isnan(given))))
        if len(wrong):
            place = wrong[0].tolist()
            what = f"{given[tuple(place)]:g} at {place}" if place else f"{given:g}"
            bound = f" from {least:g} on" if least > -math.inf else ""
            bound = f" above {above:g}" if above > -math.inf else bound
            kind = "finite numbers" if finite else "numbers"
            raise self.error(f"{name}: expected {kind}{bound}, got {what}")
        return given

    def number(self, name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
        """One finite number, from ``least`` on or beyond ``above``."""
        given = self.array(name, value, least=least, above=above)
        if given.shape != ():
            raise self.error(f"{name}: expected one number, got {shown(given)}")
        return float(given)

    def each(self, name: str, value: Any, count: int, **bounds: Any) -> np.ndarray:
        """One number for all, or one for each of ``count``; shape (count,)."""
        given = self.array(name, value, **bounds)
        if given.shape not in ((), (count,)):
            raise self.error(f"{name}: expected one number or {count}, got shape {given.shape}")
        return np.array(np.broadcast_to(given, (count,)))

    def time(self, name: str, value: Any) -> float:
        """A finite time above zero [s]."""
        try:
            seconds = math.nan if np.ndim(value) else float(value)
        except (TypeError, ValueError):
            seconds = math.nan
        if not 0.0 < seconds < math.inf:
            raise self.error(f"{name}: expected a positive time in seconds, got {value!r}")
        return seconds

    def whole(self, name: str, value: Any, least: int = 0, most: int | None = None) -> int:
        """A whole number from ``least`` to ``most``. True and False are none."""
        try:
            given = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
        except TypeError:
            given = None
        if given is None or given < least or (most is not None and given > most):
            range_ = f"from {least} on" if most is None else f"from {least} to {most}"
            raise self.error(f"{name}: expected a whole number {range_}, got {reprlib.repr(value)}")
        return given


def shown(values: np.ndarray) -> str:
    """An array in a few words."""
    text = np.array2string(values, threshold=8, separator=", ")
    return text if len(text) <= 80 else text[:77] + "…"
