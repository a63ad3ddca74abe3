"""The errors of two models on one recording, compared with a margin.

Samples of one motion or one rest are no independent witnesses. So the recording is cut into blocks, the ratio of both
errors is computed without each block in turn, and what these ratios differ by gives its standard error (the jackknife
of Quenouille and Tukey).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.identify.judging.validation import Validation

BLOCKS = 30  # of a recording
CLEAR = 1.02  # ratio of two errors up to which they are called equal
SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Ratio:
    """Error of one model by that of another, ``value``, and its standard error; ``blocks`` that it is known from."""

    value: float
    deviation: float
    blocks: int

    @property
    def clear(self) -> bool:
        """Whether the first model is worse by more than 2 % and by more than two standard errors."""
        return self.value > CLEAR and self.value - SURE * self.deviation > 1.0


def error_ratio(one: Validation, other: Validation, which: np.ndarray | None = None) -> Ratio:
    """Compare two models on the same recording.

    Args:
        one: judges the first model.
        other: judges the second.
        which: samples of every joint that count, (N, n) of bool; by default all.
    """
    mine, theirs = (_squares(each.residuals, which) for each in (one, other))
    known = (mine > 0.0) | (theirs > 0.0)
    mine, theirs, count = mine[known], theirs[known], int(known.sum())
    if not theirs.sum() > 0.0:
        return Ratio(float("nan"), float("inf"), count)
    value = float(np.sqrt(mine.sum() / theirs.sum()))
    left = theirs.sum() - theirs
    if count < 2 or not (left > 0.0).all():
        return Ratio(value, float("inf"), count)
    without = np.sqrt((mine.sum() - mine) / left)
    spread = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    return Ratio(value, spread, count)


def _squares(residuals: np.ndarray, which: np.ndarray | None) -> np.ndarray:
    """Sums of squares of every block."""
    squares = residuals**2 if which is None else np.where(which, residuals**2, 0.0)
    block = np.arange(len(squares)) * BLOCKS // len(squares)
    return np.bincount(block, squares.sum(axis=1), BLOCKS)


__all__ = ["Ratio", "error_ratio"]
