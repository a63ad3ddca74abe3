"""Tables as text, with all digits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def render(columns: Mapping[str, np.ndarray]) -> str:
    """Named columns as comma-separated text; every bit of a number is kept."""
    lines = [",".join(columns)]
    lines += [",".join(map(repr, row)) for row in np.column_stack(list(columns.values())).tolist()]
    return "\n".join(lines) + "\n"


def numbered(quantity: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Columns ``quantity1``, ``quantity2``, … of an array of shape (rows, n)."""
    return {f"{quantity}{k}": column for k, column in enumerate(values.T, 1)}
