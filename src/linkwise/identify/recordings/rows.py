"""Which rows of a recording can be used: finite numbers, stamps that go forward."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from linkwise.files.tables import NumberTable
from linkwise.files.tables.table import usable
from linkwise.identify.errors import LogError
from linkwise.identify.recordings.log import SHORTEST

FAR = 1e5  # usual steps between stamps that cannot belong to one recording
ADVICE = "; --drop-bad-rows (drop_bad_rows=True) leaves such rows out"


def checked_rows(
    found: dict[str, np.ndarray], origin: NumberTable, drop: bool
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Rows of finite numbers with stamps that go forward; else an error, or fewer rows and a note.

    Args:
        found: quantities in SI units, as many rows each.
        origin: the columns that they are from.
        drop: whether rows that cannot be used are left out.
    """
    good: np.ndarray = np.all(usable(origin.values), axis=1)
    notes = list(origin.notes)
    if not good.all():
        row = int(np.argmin(good))
        if not drop:
            column = int(np.argmin(usable(origin.values[row])))
            raise LogError(f"{origin.fault(row, column)}{ADVICE}")
        notes += _notes_on_rows(origin, good)
    if "time" in found:
        stamps = found["time"][:, 0]
        rows = np.flatnonzero(good)
        steps = np.diff(stamps[rows])
        if (steps <= 0).any() and not drop:
            row, before = rows[1:][steps <= 0][0], stamps[rows[:-1][steps <= 0][0]]
            what = "repeats" if stamps[row] == before else "is earlier than"
            raise LogError(
                f"{origin.place(int(row))}: the time stamp {stamps[row]:.12g} {what} the one before "
                f"({before:.12g}){ADVICE}"
            )
        kept = rows[forward(stamps[rows])] if drop else rows
        if len(kept) < len(rows):
            notes.append(
                f"{_rows(len(rows) - len(kept))} whose time stamps did not go forward or were far off left out"
            )
        good = np.zeros(len(good), bool)
        good[kept] = True
    if good.sum() < 3:
        raise LogError(f"{origin.path}: {_rows(int(good.sum()))} usable; expected at least 3")
    return {key: value[good] for key, value in found.items()}, notes


def _rows(count: int) -> str:
    return f"{count} row{'s' if count != 1 else ''}"


def _notes_on_rows(origin: NumberTable, good: np.ndarray) -> list[str]:
    """Notes that count rows which cannot be used, by their reason."""
    broken = {row for row, column in origin.faults if column is None}
    missing = int((~good).sum()) - len(broken)
    notes = [f"{_rows(len(broken))} with more or fewer cells than others left out"] if broken else []
    return (
        notes + [f"{_rows(missing)} with numbers that are missing or not finite left out"]
        if missing
        else notes
    )


def forward(stamps: np.ndarray) -> np.ndarray:
    """The most rows whose stamps increase, shape (kept,), without a few that are far from all others."""
    if not len(stamps):
        return np.zeros(0, int)
    kept = np.arange(len(stamps)) if (np.diff(stamps) > 0).all() else _longest_increasing(stamps)
    steps = np.diff(stamps[kept])
    if not len(steps):
        return kept
    far = np.flatnonzero(steps > FAR * float(np.median(steps))) + 1
    parts = np.split(kept, far)
    large = [part for part in parts if len(part) >= min(SHORTEST, max(map(len, parts)))]
    return np.concatenate(large)


def _longest_increasing(stamps: np.ndarray) -> np.ndarray:
    """Places of a longest strictly increasing subsequence (patience sorting)."""
    ends: list[float] = []  # the smallest last stamp of an increasing sequence of each length
    places: list[int] = []  # where these are
    before = np.full(len(stamps), -1)
    for k, stamp in enumerate(stamps.tolist()):
        length = bisect_left(ends, stamp)
        before[k] = places[length - 1] if length else -1
        if length == len(ends):
            ends.append(stamp)
            places.append(k)
        elif stamp < ends[length]:  # of two equal stamps the first is kept
            ends[length], places[length] = stamp, k
    found = np.empty(len(ends), int)
    k = places[-1]
    for place in range(len(ends) - 1, -1, -1):
        found[place], k = k, before[k]
    return found
