"""Recordings from files: found columns, checked rows, SI units, joint side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from linkwise.flags import flag
from linkwise.identify import units
from linkwise.identify.errors import LogError
from linkwise.identify.layout import QUANTITIES, Layout
from linkwise.identify.log import Log
from linkwise.identify.transmission import Transmission
from linkwise.model.coordinates import check_one_axis
from linkwise.robot import Robot
from linkwise.tables import NumberTable, TableError, read
from linkwise.tables.columns import find_columns, in_si_units
from linkwise.tables.table import described, usable
from linkwise.tables.units import FACTORS

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
    """A recording of this robot from a CSV (or other text), NPZ or Parquet file.

    Args:
        source: a file, or a mapping from quantities (time, position, velocity, torque, current) to files with one
            column per joint each.
        robot: the robot that was recorded.
        layout: what the columns mean: a TOML file, its sections as a mapping, or a ``Layout``. Without it they are
            found by their names, or taken as t, q, (qd,) tau where there is no header.
        rows: first and last row to be used.
        drop_bad_rows: whether rows that are not numbers or go back in time are left out and counted in the notes,
            instead of being an error.
        name: of the recording in messages and reports; by default that of the file.

    Raises:
        LogError: a row is incomplete, not a number or goes back in time (the message names its line); or
            numbers can only be degrees, millimetres or milliseconds and the layout names no unit.
    """
    check_one_axis(robot, "identification")
    drop_bad_rows = flag("drop_bad_rows", drop_bad_rows)
    try:
        return _read(source, robot, _layout(layout), rows, drop_bad_rows, name)
    except LogError:
        raise
    except TableError as error:
        raise LogError(str(error)) from None


def _read(
    source: Source | Mapping[str, Source],
    robot: Robot,
    layout: Layout,
    rows: tuple[int, int] | None,
    drop_bad_rows: bool,
    name: str | None,
) -> Log:
    files = (
        {key: str(path) for key, path in source.items()}
        if isinstance(source, Mapping)
        else dict(layout.files)
    )
    if files:
        found, origin, named = _from_several(files, layout, robot)
    else:
        found, origin, named = _from_one(read(source), layout, robot)  # type: ignore[arg-type]
    layout = replace(layout, units=named | dict(layout.units))
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


_Found = tuple[dict[str, np.ndarray], NumberTable, dict[str, str]]
"""Quantities in SI units; the columns that they are from, as they are in the file; units that its header names."""


def _from_one(table: NumberTable, layout: Layout, robot: Robot) -> _Found:
    joints = robot.joint_names
    if table.names is None and not layout.columns:
        layout = _by_position(table, layout, robot.dof)
    places = {
        quantity: find_columns(table, quantity, joints, layout.columns.get(quantity))
        for quantity in QUANTITIES
    }
    if "torque" in layout.columns or (places["torque"] and "current" not in layout.columns):
        places["current"] = None
    elif "current" in layout.columns:
        places["torque"] = None
    if places["position"] is None:
        raise LogError(
            f"{table.path}: no columns of positions for {robot.dof} joints{table.listed()}; "
            "name them in the layout (columns.position)"
        )
    if places["torque"] is None and places["current"] is None:
        raise LogError(
            f"{table.path}: no columns of torques or currents for {robot.dof} joints{table.listed()}; "
            "name them in the layout (columns.torque)"
        )
    found, named = {}, {}
    for quantity, columns in places.items():
        if columns is not None:
            found[quantity] = _scaled(table, quantity, columns, layout, named)
    used = [k for columns in places.values() if columns for k in columns]
    origin = NumberTable(table.path, table.values[:, used], tuple(table.column(k) for k in used), table.lines)
    return found, origin, named


def _scaled(
    table: NumberTable, quantity: str, columns: list[int], layout: Layout, named: dict[str, str]
) -> np.ndarray:
    """Columns in SI units; a unit that the header names is added to ``named``, as the SI unit that they have now."""
    with np.errstate(over="ignore"):  # such numbers are refused with their line
        values, known = in_si_units(table, quantity, columns, layout.units)
    if known and quantity not in layout.units:
        named[quantity] = next(iter(FACTORS[quantity]))
    return values


def _by_position(table: NumberTable, layout: Layout, n: int) -> Layout:
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
        f"{len(time) + 3 * n} (t, q, qd, tau) for {n} joints, or a layout that names them"
    )


def _from_several(files: Mapping[str, str], layout: Layout, robot: Robot) -> _Found:
    found: dict[str, np.ndarray] = {}
    raw: list[np.ndarray] = []
    named: dict[str, str] = {}
    first: NumberTable | None = None
    names: list[str] = []
    for quantity, path in files.items():
        if quantity not in QUANTITIES:
            raise LogError(f"files: no quantity {quantity!r}; valid: {', '.join(QUANTITIES)}")
        table = read(path)
        count = 1 if quantity == "time" else robot.dof
        columns = list(range(count))
        if quantity in layout.columns:
            columns = find_columns(table, quantity, robot.joint_names, layout.columns[quantity]) or columns
        elif table.values.shape[1] != count:
            raise LogError(f"{path}: expected {count} columns of {quantity}, got {table.values.shape[1]}")
        if first is not None and len(table.values) != len(first.values):
            raise LogError(f"{path}: {len(table.values)} rows, but {first.path} has {len(first.values)}")
        raw.append(table.values[:, columns])
        found[quantity] = _scaled(table, quantity, columns, layout, named)
        names += [f"{quantity} {k + 1} of {Path(path).name}" for k in columns]
        first = first or table
    assert first is not None
    return found, NumberTable(first.path, np.concatenate(raw, axis=1), tuple(names), first.lines), named


# -- rows -------------------------------------------------------------------------------------------------------------


def _checked_rows(
    found: dict[str, np.ndarray], origin: NumberTable, drop: bool
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Rows of finite numbers with stamps that go forward; else an error, or fewer rows and a note."""
    good = np.ones(len(origin.values), bool)
    notes = []
    bad = np.argwhere(~usable(origin.values))
    if len(bad):
        row, column = bad[0]
        if not drop:
            value = described(float(origin.values[row, column]))
            raise LogError(f"{origin.place(row)}: {_name(origin, column)} is {value}")
        good[bad[:, 0]] = False
        notes.append(
            f"{len(np.unique(bad[:, 0]))} rows with numbers that are missing or not finite were left out"
        )
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


def _name(origin: NumberTable, column: int) -> str:
    return f"column {column + 1}" if origin.names is None else origin.names[column]


def _not_forward(stamps: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Rows whose stamp is not later than all before it."""
    rows = np.flatnonzero(good)
    before = np.maximum.accumulate(stamps[rows])
    return rows[1:][stamps[rows][1:] <= before[:-1]]


# -- joint side -------------------------------------------------------------------------------------------------------


def _joint_side(
    found: dict[str, np.ndarray], origin: NumberTable, layout: Layout, robot: Robot, name: str
) -> Log:
    path, n, notes = origin.path, robot.dof, []
    if "position" not in found:
        raise LogError(f"{path}: no columns of positions; name them in the layout (columns.position)")
    if "torque" not in found and "current" not in found:
        raise LogError(f"{path}: no columns of torques or currents; name them in the layout (columns.torque)")
    if "time" in found:
        t = found["time"][:, 0]
    elif layout.rate is not None:
        t = np.arange(len(found["position"])) / layout.rate
        notes.append(f"no time stamps: {layout.rate:g} samples per second as given")
    else:
        raise LogError(
            f"{path}: no column of time; name it in the layout (columns.time) or give recording.rate"
        )
    effort = "torque" if "torque" in found else "current"
    tau = found[effort]
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
    q = found["position"]
    qd = found.get("velocity")
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
