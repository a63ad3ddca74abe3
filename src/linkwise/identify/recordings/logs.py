"""Recordings from files: found columns, checked rows, SI units, joint side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.files.tables import NumberTable, TableError, read
from linkwise.files.tables.columns import find_columns, in_si_units
from linkwise.files.tables.naming import has_joint, is_planned, left_out, plain
from linkwise.files.tables.units import FACTORS
from linkwise.identify.errors import LogError
from linkwise.identify.recordings import units
from linkwise.identify.recordings.flattened import unflattened
from linkwise.identify.recordings.layout import BASE_QUANTITIES, QUANTITIES, Layout
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.rows import checked_rows
from linkwise.identify.recordings.transmission import Transmission
from linkwise.identify.walking.columns import BaseColumns, base_columns, refuse_moving_base
from linkwise.identify.walking.conventions import Readings
from linkwise.identify.walking.log import WalkingLog, is_floating, joints_alone
from linkwise.model.coordinates import check_one_axis
from linkwise.robot.robot import Robot

SAME_RATE = 1.5  # a factor between a rate that is given and that of time stamps, of which some may be lost

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
    """A recording of this robot from a file: CSV or other text, NPZ, Parquet, MATLAB, HDF5, Excel or a rosbag.

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

    Returns:
        The recording; a ``WalkingLog`` for a robot with a floating base.

    Raises:
        LogError: a row is incomplete, not a number or goes back in time (the message names its line); or
            numbers can only be degrees, millimetres or milliseconds and the layout names no unit.
    """
    whole, robot = robot, joints_alone(robot) if is_floating(robot) else robot
    check_one_axis(robot, "identification")
    drop_bad_rows = flag("drop_bad_rows", drop_bad_rows)
    try:
        return _read(source, robot, _layout(layout), rows, drop_bad_rows, name, whole is not robot)
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
    floating: bool,
) -> Log:
    files = (
        {key: str(path) for key, path in source.items()}
        if isinstance(source, Mapping)
        else dict(layout.files)
    )
    cut, base = rows or layout.rows, BaseColumns()
    if files:
        found, origin, named = _from_several(files, layout, robot, cut)
    else:
        table = _table(source, cut, robot.joint_names, layout.topic)  # type: ignore[arg-type]
        if floating:
            wanted = {key: value for key, value in layout.columns.items() if key in BASE_QUANTITIES}
            table, base = base_columns(table, robot.dof, wanted)
        else:
            refuse_moving_base(table, robot.dof, robot.name)
        found, origin, named = _from_one(table, layout, robot, base)
    layout = replace(layout, units=named | dict(layout.units))
    found, notes = checked_rows(found, origin, drop_bad_rows)
    log = _joint_side(found, origin, layout, robot, name or Path(origin.path).name)
    log = log.noted(*notes)
    units.check(log, robot, layout, origin.path)
    return _with_base(log, found, base, robot, origin.path) if floating else log


def _with_base(
    log: Log, found: Mapping[str, np.ndarray], base: BaseColumns, robot: Robot, path: str
) -> WalkingLog:
    """The recording with what it has of the base and of the feet, in the conventions of ``WalkingLog``."""
    given = {quantity: found[quantity] for quantity in base.places}
    readings = Readings(path, log.t, given, np.asarray(robot.gravity, dtype=float), base.named)
    try:
        return WalkingLog(**vars(log), **readings.decide(), feet=base.feet).noted(*readings.notes)  # type: ignore
    except LogError as error:
        of_base = [key for key in given if key not in ("contacts", "foot_forces")]
        seen = f"; found: {', '.join(of_base)}" if of_base else "; no columns of a base were found"
        raise LogError(f"{error}{seen if 'does not follow' in str(error) else ''}") from None


def _table(
    source: Source, rows: tuple[int, int] | None, joints: Sequence[str] = (), topic: str | None = None
) -> NumberTable:
    """The rows that are used of a table: what is wrong with others does not matter."""
    return _cut(read(source, tolerant=True, joints=joints, topic=topic), rows)


def _cut(table: NumberTable, rows: tuple[int, int] | None) -> NumberTable:
    if rows is None:
        return table
    note = f"rows {rows[0]} to {rows[1]} of {len(table.values)}"
    return replace(table.rows(*rows), notes=(*table.notes, note))


def _layout(given: Layout | Mapping | Source | None) -> Layout:
    if given is None:
        return Layout()
    if isinstance(given, Layout):
        return given
    return Layout.of(given) if isinstance(given, Mapping) else Layout.read(given)


# -- columns ----------------------------------------------------------------------------------------------------------


_Found = tuple[dict[str, np.ndarray], NumberTable, dict[str, str]]
"""Quantities in SI units; the columns that they are from, as they are in the file; units that its header names."""


def _from_one(table: NumberTable, layout: Layout, robot: Robot, base: BaseColumns) -> _Found:
    joints = robot.joint_names
    alone = table.groups is not None and len(table.groups) == 1 and table.values.shape[1] > 2
    if (table.names is None or alone) and not layout.columns:
        table, layout = _without_header(table, layout, robot)
    places = {
        quantity: find_columns(table, quantity, joints, layout.columns.get(quantity), layout.topic)
        for quantity in QUANTITIES
    }
    notes = list(table.notes)
    _choose_effort(table, layout, places, notes)
    if places["position"] is None:
        raise LogError(
            f"{table.path}: no columns of positions for {_lacking(table, joints)}{table.listed()}; "
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
            found[quantity] = _in_si_units(table, quantity, columns, layout, named)
    notes.append(left_out(table, places["position"], joints))
    found |= {quantity: table.values[:, columns] for quantity, columns in base.places.items()}
    return found, _columns_in_use(table, places | dict(base.places), tuple(filter(None, notes))), named


def _lacking(table: NumberTable, joints: Sequence[str]) -> str:
    """The joints of which a table has no positions: by name where it has those of others, else their number."""
    without = [joint for joint in joints if not has_joint(table, "position", joint)]
    if len(without) == len(joints):
        return f"{len(joints)} joints"
    still = " ".join(f"--lock {joint}=POSITION" for joint in without)
    return f"{', '.join(without)} ({still} where it did not move)"


def _columns_in_use(
    table: NumberTable, places: Mapping[str, list[int] | None], notes: tuple[str, ...] = ()
) -> NumberTable:
    """The columns that are used, called by their place in the file."""
    used = [k for columns in places.values() if columns for k in columns]
    faults = {
        (row, None if k is None else used.index(k)): why
        for (row, k), why in table.faults.items()
        if k is None or k in used
    }
    return replace(
        table,
        values=table.values[:, used],
        titles=tuple(table.column(k) for k in used),
        names=None,
        faults=faults,
        notes=notes,
        units=None,
        groups=None,
    )


def _choose_effort(
    table: NumberTable, layout: Layout, places: dict[str, list[int] | None], notes: list[str]
) -> None:
    """Torques or currents, where a table has both: as the layout says, else what was measured."""
    torque, current = places["torque"], places["current"]
    computed = bool(torque and table.names and is_planned(plain(table.names[torque[0]])))
    if "torque" in layout.columns or (torque and "current" not in layout.columns):
        places["current"] = None
        if computed and "torque" not in layout.columns:
            if current and layout.gains is not None:
                places["current"], places["torque"] = current, None
                return
            notes.append(
                f"torques are {table.names[torque[0]]} …, which a controller computed and nobody measured"  # type: ignore[index]
                + ("; with drive.gains in the layout, currents are used" if current else "")
            )
    elif "current" in layout.columns:
        places["torque"] = None


def _without_header(table: NumberTable, layout: Layout, robot: Robot) -> tuple[NumberTable, Layout]:
    """By names in a comment above the numbers, if they are known, else by position."""
    if table.commented is not None:
        named = replace(table, names=table.commented)
        try:
            if find_columns(named, "position", robot.joint_names, topic=layout.topic):
                return named, layout
        except TableError:
            pass
    return table, _by_position(table, layout, robot.dof)


def _in_si_units(
    table: NumberTable, quantity: str, columns: list[int], layout: Layout, named: dict[str, str]
) -> np.ndarray:
    """Columns in SI units; a unit that the header names is added to ``named``, as the SI unit that they have now."""
    with np.errstate(over="ignore"):  # such numbers are refused with their line
        values, known = in_si_units(table, quantity, columns, layout.units)
    if known and quantity not in layout.units:
        named[quantity] = next(iter(FACTORS[quantity]))
    if quantity == "time" and not known and _since_1970(values):
        named[quantity] = "s"
        return 1e-9 * (values - values[0])
    return values


def _since_1970(stamps: np.ndarray) -> bool:
    """Whether stamps are nanoseconds of this century: ROS and many loggers count them since 1970."""
    known = stamps[np.isfinite(stamps)]
    return bool(len(known)) and 9.4e17 < float(np.median(known)) < 4.1e18


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
        f"{len(time) + 3 * n} (t, q, qd, tau) for {n} joints, or a layout that names them{_one_each(width, n)}"
    )


def _one_each(width: int, n: int) -> str:
    """What to do with a file that has one quantity alone."""
    if width not in (1, n):
        return ""
    files = '{ time = "t.txt", position = "q.txt", torque = "tau.txt" }'
    return f"; one quantity per file: give parts.toml with [recording] and files = {files} as the recording"


def _from_several(
    files: Mapping[str, str], layout: Layout, robot: Robot, rows: tuple[int, int] | None
) -> _Found:
    found: dict[str, np.ndarray] = {}
    parts: list[NumberTable] = []
    named: dict[str, str] = {}
    for quantity, path in files.items():
        if quantity not in QUANTITIES:
            raise LogError(f"files: no quantity {quantity!r}; valid: {', '.join(QUANTITIES)}")
        count = 1 if quantity == "time" else robot.dof
        table = _table(path, None)
        if count > 1 and table.values.shape[1] == 1 and quantity not in layout.columns:
            table = unflattened(table, count, quantity)
        table = _cut(table, rows)
        columns = list(range(count))
        if quantity in layout.columns:
            columns = find_columns(table, quantity, robot.joint_names, layout.columns[quantity]) or columns
        elif table.values.shape[1] != count:
            raise LogError(f"{path}: expected {count} columns of {quantity}, got {table.values.shape[1]}")
        if parts and len(table.values) != len(parts[0].values):
            raise LogError(
                f"{path}: {len(table.values)} rows, but {parts[0].path} has {len(parts[0].values)}"
            )
        found[quantity] = _in_si_units(table, quantity, columns, layout, named)
        titles = tuple(f"{quantity} {k + 1} of {Path(path).name}" for k in columns)
        parts.append(replace(_columns_in_use(table, {quantity: columns}, table.notes), titles=titles))
    return found, _side_by_side(parts), named


def _side_by_side(parts: list[NumberTable]) -> NumberTable:
    """The columns of several tables as one, with the lines of the first."""
    faults: dict[tuple[int, int | None], str] = {}
    width = 0
    for part in parts:
        for (row, column), why in part.faults.items():
            faults.setdefault((row, None if column is None else column + width), why)
        width += part.values.shape[1]
    return replace(
        parts[0],
        values=np.concatenate([part.values for part in parts], axis=1),
        titles=tuple(title for part in parts for title in part.titles or ()),
        faults=faults,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


# -- joint side -------------------------------------------------------------------------------------------------------


def _check_rate(t: np.ndarray, layout: Layout, path: str) -> None:
    """Refuse a rate that stamps contradict: one of them is wrong, and either would go unnoticed."""
    if layout.rate is None or len(t) < 2:
        return
    step = float(np.nanmedian(np.diff(t)))
    if not 1.0 / SAME_RATE < step * layout.rate < SAME_RATE:
        raise LogError(
            f"{path}: recording.rate is {layout.rate:g} per second, but the column of time has a sample every "
            f"{step:g} s; leave out one of them, or say the unit of the stamps (units.time)"
        )


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
        _check_rate(t, layout, path)
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
