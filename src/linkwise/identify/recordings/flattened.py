"""Files of one quantity with one number per row: sample after sample, or joint after joint, told by which is smooth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwise.files.tables import NumberTable
from linkwise.identify.errors import LogError

SMOOTHER = 3.0  # times that neighbours differ less in the order that is taken


def unflattened(table: NumberTable, joints: int, quantity: str) -> NumberTable:
    """The table with a column for each joint, where that is unambiguous.

    Args:
        table: one column.
        joints: columns that there should be.
        quantity: for messages.
    """
    values = table.values[:, 0]
    how = f"give {quantity} with {joints} columns, one row per sample, or a file in one of both orders"
    if len(values) % joints or len(values) < 2 * joints or table.faults:
        raise LogError(
            f"{table.path}: one number per row: {len(values)} rows are no samples of {joints} joints; {how}"
        )
    by_sample, by_joint = values.reshape(-1, joints), values.reshape(joints, -1).T
    rough = [float(np.abs(np.diff(x, axis=0)).sum()) for x in (by_sample, by_joint)]
    if not max(rough) > SMOOTHER * min(rough):
        raise LogError(
            f"{table.path}: one number per row, and samples after each other are as smooth as joints after each other; "
            f"{how}"
        )
    chosen, words = (
        (by_sample, "sample after sample") if rough[0] < rough[1] else (by_joint, "joint after joint")
    )
    first = np.arange(len(chosen)) * (joints if chosen is by_sample else 1)
    return replace(
        table,
        values=np.ascontiguousarray(chosen),
        names=None,
        lines=None if table.lines is None else table.lines[first],
        units=None,
        groups=None,
        notes=(*table.notes, f"{quantity}: one number per row, read {words}"),
    )
