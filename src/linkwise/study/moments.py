"""Count, mean, squared deviations and extremes of columns, in machine code and in an order that never changes.

See ``compiler.emit.reductions`` for the order of the sums. An extreme comes with the first place where it was found.
"""

from __future__ import annotations

import numpy as np

from linkwise.compiler.emit import reductions
from linkwise.study.native import Native, compiled

LEAF = ("count", "mean", "deviations")


def no_extremes(columns: int) -> np.ndarray:
    """What the extremes are before the first block, shape (columns, 4)."""
    return np.tile([np.inf, -1.0, -np.inf, -1.0], (columns, 1))


def reducer(columns: int, stride: int) -> Native:
    """The function for so many columns, ``stride`` numbers apart. It overwrites what lies behind ``count``."""
    return compiled(reductions.moments(columns, stride))
