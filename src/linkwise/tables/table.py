"""Numbers under column names, with the place of every row for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.errors import LinkwiseError

LARGEST = 1e30
"""Numbers beyond this are refused like NaN and infinity: no measurement is that large, and powers of them overflow."""


class TableError(LinkwiseError, ValueError):
    """A table of numbers is wrong; the message names the file, the line or row, and the reason."""


@dataclass(frozen=True)
class NumberTable:
    """Numbers under column names.

    ``values`` (rows, columns). ``names`` is None without a header. ``lines`` (rows,) are line numbers in a text file;
    ``units`` are those of a row of units under the header, "" where there is none. ``groups`` are the arrays of an NPZ
    file: name and columns; ``unusable`` says of others why they cannot be read as columns.
    """

    path: str
    values: np.ndarray
    names: tuple[str, ...] | None
    lines: np.ndarray | None = None
    units: tuple[str, ...] | None = None
    groups: Mapping[str, tuple[int, ...]] | None = None
    unusable: Mapping[str, str] = field(default_factory=dict)

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"{self.path}, {f'line {self.lines[row]}' if self.lines is not None else f'row {row + 1}'}"

    def column(self, k: int) -> str:
        """What a column is called, for messages."""
        return f"column {k + 1}" if self.names is None else f"column {k + 1} ({self.names[k]})"

    def listed(self) -> str:
        """The columns that there are, for messages."""
        if self.names is None:
            return "; the file has no header"
        shown = ", ".join(self.names[:14]) + (", …" if len(self.names) > 14 else "")
        return f"; it has {shown}"

    def unusable_rows(self) -> np.ndarray:
        """Rows with a number that is not finite or beyond ``LARGEST``."""
        return np.flatnonzero(~usable(self.values).all(axis=1))

    def picked(self, columns: Sequence[int]) -> np.ndarray:
        """Columns (rows, len(columns)), all usable numbers; else TableError for the first that is not."""
        values = self.values[:, list(columns)]
        bad = np.argwhere(~usable(values))
        if len(bad):
            row, k = bad[0]
            raise TableError(
                f"{self.place(row)}: {self.column(columns[k])} is {described(float(values[row, k]))}"
            )
        return values


def usable(values: np.ndarray) -> np.ndarray:
    """Which numbers are finite and at most ``LARGEST``."""
    return np.abs(values) <= LARGEST


def described(value: float) -> str:
    """A number that is not usable, for messages."""
    if np.isfinite(value):
        return f"{value:.6g}, which is too large to be meant (more than {LARGEST:g})"
    return f"{value}, not a finite number"
