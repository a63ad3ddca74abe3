"""Checks of the numbers of a problem: what cannot be right is refused by its name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.errors import LinkwiseError


class ProblemError(LinkwiseError, ValueError):
    """A problem cannot be right; the message names the argument, what was expected and what was given."""


_checks = Numbers(ProblemError)
number, whole, each = _checks.number, _checks.whole, _checks.each


def time(name: str, value: Any) -> float:
    """A finite time [s]; quicker than ``number``, for what is called a thousand times a second."""
    try:
        t = float(value)
    except (TypeError, ValueError):
        t = math.nan
    if not math.isfinite(t):
        raise ProblemError(f"{name}: expected a finite time in seconds, got {value!r:.80}")
    return t


def numbers(name: str, value: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Finite numbers of a shape."""
    given = _checks.array(name, value)
    if shape is not None and given.shape != shape:
        raise ProblemError(f"{name}: expected shape {shape}, got {given.shape}")
    return given


def table(name: str, value: Any, size: int, rows: int, *, finite: bool = True) -> np.ndarray:
    """One number for all, (size,), or one row per stage: (rows, size); limits may be infinite, but numbers."""
    found = _checks.array(name, value, finite=finite)
    if found.shape not in ((), (size,), (rows, size)):
        raise ProblemError(f"{name}: expected shape ({size},) or ({rows}, {size}), got {found.shape}")
    return np.array(np.broadcast_to(found, (size,))) if found.ndim < 2 else found


def weights(name: str, value: Any, size: int, rows: int | None = None) -> np.ndarray:
    """One number for all, (size,), or with ``rows`` one row per stage: (rows, size); none of them negative."""
    if rows is None or np.ndim(value) < 2:
        return _checks.each(name, value, size, least=0.0)
    found = table(name, value, size, rows)
    if (found < 0.0).any():
        raise ProblemError(f"{name}: expected weights from 0 on, got {found.min():g}")
    return found


def poses(name: str, value: Any, rows: int, turned: bool) -> tuple[np.ndarray, np.ndarray]:
    """(positions (..., 3), rotations (..., 3, 3)) of poses (4, 4), (rows, 4, 4) or positions (3,), (rows, 3)."""
    found = numbers(name, value)
    if found.shape in ((3,), (rows, 3)) and not turned:
        return found, np.eye(3)
    if found.shape not in ((4, 4), (rows, 4, 4)):
        more = "" if turned else f", (3,) or ({rows}, 3)"
        raise ProblemError(f"{name}: expected shape (4, 4) or ({rows}, 4, 4){more}, got {found.shape}")
    R = found[..., :3, :3]
    wrong = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max()
    if wrong > 1e-6 or (np.linalg.det(R) < 0).any():
        raise ProblemError(f"{name}: its upper left block is no rotation: RᵀR differs from 1 by {wrong:.2g}")
    return found[..., :3, 3], R


def bounds(name: str, lower: Any, upper: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits, infinite where there is none."""
    found = []
    for side, value in (("lower", lower), ("upper", upper)):
        array = _checks.each(f"{name}: {side}", value, size, finite=False)
        if (array == (np.inf if side == "lower" else -np.inf)).any():
            raise ProblemError(f"{name}: {side}: no number is beyond {'+' if side == 'lower' else '-'}inf")
        found.append(array)
    return found[0], found[1]
