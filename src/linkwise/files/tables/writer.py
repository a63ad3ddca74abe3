"""Tables as text, with all digits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.files.tables.table import TableError


def finite(columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The columns, if all of their numbers are finite; else an error that names the first one that is not.

    Raises:
        TableError: with the row, counted from 1, and the column.
    """
    wrong = {name: np.flatnonzero(~np.isfinite(values)) for name, values in columns.items()}
    rows = [(int(found[0]), name) for name, found in wrong.items() if found.size]
    if rows:
        row, name = min(rows, key=lambda each: each[0])
        count = len({int(each) for found in wrong.values() for each in found})
        more = f" ({count} rows in all)" if count > 1 else ""
        raise TableError(
            f"row {row + 1}: {name} is not finite ({columns[name][row]}){more}: "
            "a position, speed or torque there is too large, or the robot cannot move like that"
        )
    return columns


def render(columns: Mapping[str, np.ndarray]) -> str:
    """Named columns as comma-separated text; every bit of a number is kept.

    Raises:
        TableError: a number is not finite.
    """
    finite(columns)
    lines = [",".join(columns)]
    lines += [",".join(map(repr, row)) for row in np.column_stack(list(columns.values())).tolist()]
    return "\n".join(lines) + "\n"


def numbered(quantity: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Columns ``quantity1``, ``quantity2``, … of an array of shape (rows, n)."""
    return {f"{quantity}{k}": column for k, column in enumerate(values.T, 1)}
