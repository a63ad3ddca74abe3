"""Numbers under column names, with the place of every row for messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.errors import LinkwiseError

LARGEST = 1e30
"""Numbers beyond this are refused like NaN and infinity: no measurement is that large, and powers of them overflow."""


def one_line(text: str) -> str:
    """A text without line ends and other control characters: names in files may have any."""
    return re.sub("[\\0-\\x1f\\x7f-\\x9f]+", " ", text)


class TableError(LinkwiseError, ValueError):
    """A table of numbers is wrong; the message names the file, the line or row, and the reason, in one line."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


@dataclass(frozen=True)
class NumberTable:
    """Numbers under column names.

    ``values`` (rows, columns). ``names`` is None without a header. ``lines`` (rows,) are line numbers in a text file,
    ``numbers`` (rows,) those of the rows that are left of others;
    ``units`` are those of a row of units under the header, "" where there is none. ``groups`` are the arrays of an NPZ
    file: name and columns; ``unusable`` says of others why they cannot be read as columns.

    ``faults`` are reasons why numbers are NaN, by row and column (from 0), or by row and None where the whole row could
    not be read. ``texts`` are the texts of the first row in columns that hold no numbers. ``commented`` are names in a
    comment above a table without a header. ``notes`` say what was left out. ``titles`` are what columns are called in
    messages where that is not their number and name.
    """

    path: str
    values: np.ndarray
    names: tuple[str, ...] | None
    lines: np.ndarray | None = None
    units: tuple[str, ...] | None = None
    groups: Mapping[str, tuple[int, ...]] | None = None
    unusable: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[tuple[int, int | None], str] = field(default_factory=dict)
    texts: Mapping[int, str] = field(default_factory=dict)
    commented: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    numbers: np.ndarray | None = None
    titles: tuple[str, ...] | None = None

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        if self.lines is not None:
            return f"{self.path}, line {self.lines[row]}"
        return f"{self.path}, row {row + 1 if self.numbers is None else self.numbers[row]}"

    def column(self, k: int) -> str:
        """What a column is called, for messages."""
        if self.titles is not None:
            return self.titles[k]
        return f"column {k + 1}" if self.names is None else f"column {k + 1} ({self.names[k]})"

    def listed(self) -> str:
        """The columns that there are, for messages."""
        if self.names is None:
            return "; the file has no header"
        shown = ", ".join(self.names[:14]) + (", …" if len(self.names) > 14 else "")
        return f"; it has {shown}"

    def rows(self, first: int, last: int) -> NumberTable:
        """Rows ``first`` to ``last``, counted from 1, both included."""
        count = len(self.values)
        if not 1 <= first < last <= count:
            raise TableError(f"{self.path}: rows {first} to {last}: the recording has rows 1 to {count}")
        kept = slice(first - 1, last)
        faults = {(k - first + 1, c): why for (k, c), why in self.faults.items() if first <= k + 1 <= last}
        numbers = np.arange(1, count + 1) if self.numbers is None else self.numbers
        lines = None if self.lines is None else self.lines[kept]
        return replace(
            self,
            values=self.values[kept],
            lines=lines,
            numbers=numbers[kept],
            faults=faults,
            texts=self.texts,
        )

    def fault(self, row: int, column: int) -> str:
        """Why a number is not usable, with its place."""
        reason = self.faults.get((row, column)) or self.faults.get((row, None))
        return (
            reason
            or f"{self.place(row)}: {self.column(column)} is {described(float(self.values[row, column]))}"
        )

    def picked(self, columns: Sequence[int]) -> np.ndarray:
        """Columns (rows, len(columns)), all usable numbers; else TableError for the first that is not."""
        values = self.values[:, list(columns)]
        bad = np.argwhere(~usable(values))
        if len(bad):
            row, k = map(int, bad[0])
            raise TableError(self.fault(row, columns[k]))
        return values


def usable(values: np.ndarray) -> np.ndarray:
    """Which numbers are finite and at most ``LARGEST``."""
    return np.abs(values) <= LARGEST


def described(value: float) -> str:
    """A number that is not usable, for messages."""
    if np.isfinite(value):
        return f"{value:.6g}, which is too large to be meant (more than {LARGEST:g})"
    return f"{value}, not a finite number"
