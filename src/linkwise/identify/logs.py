"""Recordings from files: found columns, checked rows, SI units, joint side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from linkwise.identify import units
from linkwise.identify.columns import find_columns, listed
from linkwise.identify.errors import LogError
from linkwise.identify.layout import Layout
from linkwise.identify.log import Log
from linkwise.identify.tables import Table, read_table
from linkwise.identify.transmission import Transmission
from linkwise.robot import Robot

QUANTITIES = ("time", "position", "velocity", "torque", "current")
Source = str | os.PathLike[str]


def read_log(
    source: Source | Mapping[str, Source],
    robot: Robot,
    layout: Layout | Mapping | Source | None = None,
    *,
    rows: tuple[int, int] | None = None,
    drop_bad_rows: bool = False,
    name: str | None = None,
) -> Log:
    """A recording of this robot from a CSV (or any text), NPZ or Parquet file.

    ``source`` is a file, or a mapping from quantities (time, position, velocity, torque, current) to files with one
    column per joint each. ``layout`` says what the columns mean: a TOML file, its sections as a mapping, or a
    ``Layout``; without it they are found by their names, or taken as t, q, (qd,) tau where there is no header.
    ``rows`` cuts the recording.

    A row that is incomplete, is not a number or goes back in time is an error that names its line;
    ``drop_bad_rows=True`` leaves such rows out (except incomplete ones) and says so in the notes. Numbers that can
    only be degrees, millimetres or milliseconds are an error, unless the layout names their unit.
    """
    layout = _layout(layout)
    files = (
        {key: str(path) for key, path in source.items()}
        if isinstance(source, Mapping)
        else dict(layout.files)
    )
    if files:
        found, origin = _from_several(files, layout, robot)
    else:
        found, origin = _from_one(read_table(source), layout, robot)  # type: ignore[arg-type]
    found, notes = _checked_rows(found, origin, drop_bad_rows)
    log = _joint_side(found, origin, layout, robot, name or Path(origin.path).name)
    cut = rows or layout.rows
    log = log.noted(*notes) if notes else log
    log = log.rows(*cut) if cut else log
    units.check(log, robot, layout, origin.path)
    return log


def _layout(given: Layout | Mapping | Source | None) -> Layout:
    if given is None:
        return Layout()
    if isinstance(given, Layout):
        return given
    return Layout.of(given) if isinstance(given, Mapping) else Layout.read(given)


# -- columns ----------------------------------------------------------------------------------------------------------


def _from_one(table: Table, layout: Layout, robot: Robot) -> tuple[dict[str, np.ndarray], Table]:
    joints = robot.joint_names
    if table.names is None and not layout.columns:
        layout = _by_position(table, layout, robot.dof)
    places = {quantity: find_columns(table, quantity, layout, joints) for quantity in QUANTITIES}
    if "torque" in layout.columns or (places["torque"] and "current" not in layout.columns):
        places["current"] = None
    elif "current" in layout.columns:
        places["torque"] = None
    if places["position"] is None:
        raise LogError(
            f"{table.path}: no columns of positions for {robot.dof} joints{listed(table)}; "
            "name them in the layout (columns.position)"
        )
    if places["torque"] is None and places["current"] is None:
        raise LogError(
            f"{table.path}: no columns of torques or currents for {robot.dof} joints{listed(table)}; "
            "name them in the layout (columns.torque)"
        )
    found = {
        quantity: table.values[:, columns] for quantity, columns in places.items() if columns is not None
    }
    used = [k for columns in places.values() if columns for k in columns]
    order = [k for columns in places.values() if columns for k in columns]
    return found, replace(
        table, values=table.values[:, order], names=tuple(table.column(k) for k in used), groups=None
    )


def _by_position(table: Table, layout: Layout, n: int) -> Layout:
    """Without header and layout: t, q, tau or t, q, qd, tau, the t only where no rate is given."""
    time = {} if layout.rate is not None else {"time": 1}
    first, width = len(time) + 1, table.values.shape[1]
    if width == len(time) + 2 * n:
        return replace(layout, columns={**time, "position": first, "torque": first + n})
    if width == len(time) + 3 * n:
        return replace(
            layout, columns={**time, "position": first, "velocity": first + n, "torque": first + 2 * n}
        )
    raise LogError(
        f"{table.path}: {width} columns without a header; expected {len(time) + 2 * n} (t, q, tau) or "
        f"{len(time) + 3 * n} (t, q, qd, tau) for {n} joints, or a layout that says which is which"
    )


def _from_several(
    files: Mapping[str, str], layout: Layout, robot: Robot
) -> tuple[dict[str, np.ndarray], Table]:
    found: dict[str, np.ndarray] = {}
    first: Table | None = None
    names: list[str] = []
    for quantity, path in files.items():
        if quantity not in QUANTITIES:
            raise LogError(f"files: no quantity {quantity!r}; valid: {', '.join(QUANTITIES)}")
        table = read_table(path)
        count = 1 if quantity == "time" else robot.dof
        columns = list(range(count))
        if quantity in layout.columns:
            columns = find_columns(table, quantity, layout, robot.joint_names) or columns
        elif table.values.shape[1] != count:
            raise LogError(f"{path}: expected {count} columns of {quantity}, got {table.values.shape[1]}")
        if first is not None and len(table.values) != len(first.values):
            raise LogError(f"{path}: {len(table.values)} rows, but {first.path} has {len(first.values)}")
        found[quantity] = table.values[:, columns]
        names += [f"{quantity} {k + 1} of {Path(path).name}" for k in columns]
        first = first or table
    assert first is not None
    together = np.concatenate(list(found.values()), axis=1)
    return found, Table(first.path, together, tuple(names), first.lines)


# -- rows -------------------------------------------------------------------------------------------------------------


def _checked_rows(
    found: dict[str, np.ndarray], origin: Table, drop: bool
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Rows of finite numbers with stamps that go forward; else an error, or fewer rows and a note."""
    good = np.ones(len(origin.values), bool)
    notes = []
    bad = np.argwhere(~np.isfinite(origin.values))
    if len(bad):
        row, column = bad[0]
        if not drop:
            value = origin.values[row, column]
            raise LogError(f"{origin.place(row)}: {_name(origin, column)} is {value}")
        good[bad[:, 0]] = False
        notes.append(f"{len(np.unique(bad[:, 0]))} rows with missing numbers were left out")
    if "time" in found:
        wrong = _not_forward(found["time"][:, 0], good)
        if len(wrong):
            row = wrong[0]
            stamps = found["time"][:, 0]
            before = stamps[np.flatnonzero(good[:row])[-1]]
            if not drop:
                what = "repeats" if stamps[row] == before else "is earlier than"
                raise LogError(
                    f"{origin.place(row)}: the time stamp {stamps[row]:.12g} {what} the one before ({before:.12g})"
                )
            good[wrong] = False
            notes.append(f"{len(wrong)} rows whose time stamps did not go forward were left out")
    if good.sum() < 3:
        raise LogError(f"{origin.path}: {good.sum()} usable rows; expected at least 3")
    return {key: value[good] for key, value in found.items()}, notes


def _name(origin: Table, column: int) -> str:
    return f"column {column + 1}" if origin.names is None else origin.names[column]


def _not_forward(stamps: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Rows whose stamp is not later than all before it."""
    rows = np.flatnonzero(good)
    before = np.maximum.accumulate(stamps[rows])
    return rows[1:][stamps[rows][1:] <= before[:-1]]


# -- joint side -------------------------------------------------------------------------------------------------------


def _joint_side(found: dict[str, np.ndarray], origin: Table, layout: Layout, robot: Robot, name: str) -> Log:
    path, n, notes = origin.path, robot.dof, []
    if "position" not in found:
        raise LogError(f"{path}: no columns of positions; name them in the layout (columns.position)")
    if "torque" not in found and "current" not in found:
        raise LogError(f"{path}: no columns of torques or currents; name them in the layout (columns.torque)")
    if "time" in found:
        t = layout.factor("time") * found["time"][:, 0]
    elif layout.rate is not None:
        t = np.arange(len(found["position"])) / layout.rate
        notes.append(f"no time stamps: {layout.rate:g} samples per second as said")
    else:
        raise LogError(
            f"{path}: no column of time; name it in the layout (columns.time) or give recording.rate"
        )
    effort = "torque" if "torque" in found else "current"
    tau = layout.factor(effort) * found[effort]
    if layout.gains is not None:
        gains = np.asarray(layout.gains, dtype=float)
        if gains.shape != (n,):
            raise LogError(f"{path}: drive.gains: expected {n} numbers, got {gains.size}")
        tau = tau * gains
        notes.append(f"torque = {effort} × gains {', '.join(f'{g:.4g}' for g in gains)}")
    elif effort == "current":
        raise LogError(
            f"{path}: currents need drive.gains, the torque per ampere of each joint, in the layout"
        )
    q = layout.factor("position") * found["position"]
    qd = layout.factor("velocity") * found["velocity"] if "velocity" in found else None
    axes = None
    if layout.reduction is not None or layout.coupling is not None:
        try:
            drive = Transmission.of(
                n, reduction=layout.reduction, coupling=layout.coupling, offset=layout.offset
            )
        except LogError as error:
            raise LogError(f"{path}: drive.{error}") from None
        q, tau = drive.joint_positions(q), drive.joint_torques(tau)
        qd = None if qd is None else drive.joint_velocities(qd)
        axes = drive.coupled_axes()
        notes.append(f"motor-side signals were brought to the joints; {len(axes)} coupled motor axes")
    elif layout.offset is not None:
        if len(layout.offset) != n:
            raise LogError(f"{path}: drive.offset: expected {n} numbers, got {len(layout.offset)}")
        q = q + np.asarray(layout.offset, dtype=float)
    return Log(t, q, tau, qd, name, layout.sensed, axes, tuple(notes))
