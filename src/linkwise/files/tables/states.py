"""States of a robot from a table: t, q, qd, qdd, tau."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from linkwise.files.tables.columns import find_columns, in_si_units
from linkwise.files.tables.reader import read
from linkwise.files.tables.table import NumberTable, TableError

QUANTITIES = {"q": "position", "qd": "velocity", "qdd": "acceleration", "tau": "torque"}


def read_states(
    source: str | os.PathLike[str],
    quantities: Sequence[str],
    joints: Sequence[str],
    positions: Sequence[str] | None = None,
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """(t [s] or None, {quantity: (rows, n)}) in SI units, all numbers usable.

    Args:
        source: a file, or ``-`` for standard input; see ``read``.
        quantities: those that must be there, of q, qd, qdd, tau. With a header they are found by the usual names
            (``q1``, ``q.JOINT``, ``pos_1``, …) in any order; without one they are in this order, after an optional t.
        joints: names of the joints, or of the numbers of q̇ where a joint has several.
        positions: names of the numbers of q, where they are others.
    """
    table = read(source)
    names_of = {short: joints for short in quantities} | ({} if positions is None else {"q": positions})
    if table.names is None:
        table = _with_names(table, {short: len(names_of[short]) for short in quantities})
    places = {"time": find_columns(table, "time", joints)}
    for short in quantities:
        quantity = QUANTITIES[short]
        names = names_of[short]
        columns = find_columns(table, quantity, names)
        if columns is None:
            what = "joints" if list(names) == list(joints) else "coordinates"
            raise TableError(
                f"{table.path}: no columns of {quantity} for {len(names)} {what} "
                f"({short}1 …, or {short}.{names[0]} …){table.listed()}"
            )
        places[short] = columns
    found: dict[str, np.ndarray] = {}
    for short, columns in places.items():
        if columns is not None:
            table.picked(columns)
            found[short] = in_si_units(table, QUANTITIES.get(short, "time"), columns)[0]
    time = found.pop("time", None)
    return (None if time is None else time[:, 0]), found


def _with_names(table: NumberTable, sizes: Mapping[str, int]) -> NumberTable:
    """Names for columns in the usual order."""
    names = [f"{quantity}{k}" for quantity, n in sizes.items() for k in range(1, n + 1)]
    width = table.values.shape[1]
    if width == len(names) + 1:
        names.insert(0, "t")
    if width != len(names):
        order = ", ".join(f"{quantity}1 … {quantity}{n}" for quantity, n in sizes.items())
        raise TableError(
            f"{table.path}: expected {len(names)} columns ({order}), or {len(names) + 1} with t first; got {width}"
        )
    return replace(table, names=tuple(names))
