"""Which columns of a table hold a quantity: as a layout says, or by the names that are usual."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from linkwise.files.tables import naming, units
from linkwise.files.tables.table import NumberTable, TableError

Columns = str | int | Sequence[str | int]

# Default column names of a quantity, in order of preference; {} is the number of the joint.
KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    "time": ("t", "time", "times", "timestamp", "t_s", "time_s", "stamp"),
    "position": (
        *("q{}", "q_{}", "pos{}", "pos_{}", "position{}", "position_{}", "positions{}"),
        *("q.{joint}", "position.{joint}"),
    ),
    "velocity": (
        *("qd{}", "qd_{}", "dq{}", "dq_{}", "vel{}", "vel_{}", "velocity{}", "velocity_{}", "velocities{}"),
        *("qd.{joint}", "velocity.{joint}"),
    ),
    "acceleration": (
        *("qdd{}", "qdd_{}", "ddq{}", "ddq_{}", "acc{}", "acc_{}", "acceleration{}", "acceleration_{}"),
        *("accelerations{}", "qdd.{joint}", "acceleration.{joint}"),
    ),
    "torque": (
        *("tau{}", "tau_{}", "torque{}", "torque_{}", "torques{}", "effort{}", "effort_{}", "effort{}_Nm"),
        *("tau.{joint}", "torque.{joint}", "effort.{joint}"),
    ),
    "current": ("i{}", "i_{}", "current{}", "current_{}", "currents{}", "current.{joint}"),
}


def find_columns(
    table: NumberTable,
    quantity: str,
    joints: Sequence[str],
    wanted: Columns | None = None,
    topic: str | None = None,
) -> list[int] | None:
    """The columns (from 0) of a quantity: one for time, else one per joint; None where there are none.

    ``wanted`` names them: a name, a pattern such as ``a{}``, numbers from 1, or a list of names and numbers. ``topic``
    is the prefix of the names, where several are there (see ``naming``). Of time there may be two: seconds and
    nanoseconds.
    """
    count = 1 if quantity == "time" else len(joints)
    if wanted is not None:
        return _as_said(table, quantity, wanted, count, joints)
    if quantity == "time":
        found = naming.find_time(table, topic, stamps=True)
    else:
        found = naming.find(table, quantity, joints, topic) if topic is not None or table.texts else None
    if found is not None:
        return found
    for pattern in KNOWN_NAMES[quantity]:
        group = pattern.partition("{")[0]
        if table.groups and len(table.groups.get(group, ())) == count:
            return list(table.groups[group])
        found = _by_pattern(table, pattern, count, joints)
        if found is not None:
            _refuse_others(table, quantity, pattern, count)
            return found
    found = _by_naming(table, quantity, joints, topic)
    if found is not None:
        return found
    for pattern in KNOWN_NAMES[quantity]:
        _refuse_others(table, quantity, pattern, count)
        _refuse_unusable(table, pattern.partition("{")[0])
    return None


def _by_naming(
    table: NumberTable, quantity: str, joints: Sequence[str], topic: str | None
) -> list[int] | None:
    if quantity == "time":
        return naming.find_time(table, topic, stamps=False)
    return naming.find(table, quantity, joints, topic)


def counted_joints(table: NumberTable) -> int:
    """How many joints the table has positions of, by the usual names; 0 where there are none."""
    for pattern in KNOWN_NAMES["position"]:
        there = _numbered(table, pattern)[1]
        if there:
            return there
    return 0


def in_si_units(
    table: NumberTable, quantity: str, columns: Sequence[int], named: Mapping[str, str] | None = None
) -> tuple[np.ndarray, bool]:
    """Columns in SI units, and whether their units were named.

    ``named`` gives units of quantities; a quantity without one has those of the header: of ``q1 [deg]``, or of a row
    of units.
    """
    values = table.values[:, list(columns)]
    if quantity == "time" and len(columns) == 2:  # seconds and nanoseconds
        values = values[:, :1] - _first(values[:, 0]) + 1e-9 * values[:, 1:]
        return values, True
    if named and quantity in named:
        return units.FACTORS[quantity][named[quantity]] * values, True
    found = [_unit(table, k) for k in columns]
    if not any(found):
        return values, False
    known = units.FACTORS[quantity]
    for k, unit in zip(columns, found, strict=True):
        if unit and unit not in known:
            raise TableError(
                f"{table.path}: {table.column(k)}: no unit {unit!r} of {quantity}; valid: {', '.join(known)}"
            )
    return values * [known.get(unit, 1.0) for unit in found], True


def _first(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[0]) if len(finite) else 0.0


def _unit(table: NumberTable, k: int) -> str:
    own = units.split(table.names[k])[1] if table.names is not None else ""
    return own or (units.spelled(table.units[k]) if table.units is not None else "")


def _places(table: NumberTable) -> dict[str, list[int]]:
    """Columns by their names in lower case, with and without units."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(table.names or ()):
        for each in dict.fromkeys((name.lower(), units.split(name)[0].lower())):
            found.setdefault(each, []).append(k)
    return found


def _refuse_unusable(table: NumberTable, name: str) -> None:
    if name in table.unusable:
        raise TableError(f"{table.path}: {name}: {table.unusable[name]}")


def _numbered(table: NumberTable, pattern: str) -> tuple[int, int]:
    """The first number of columns that follow a pattern, and how many there are without a gap."""
    group = pattern.partition("{")[0]
    if "{}" not in pattern:
        return 1, 0
    if table.groups and group in table.groups:
        return 1, len(table.groups[group])
    known = _places(table)
    start = 0 if pattern.format(0).lower() in known else 1
    return start, next(k for k in itertools.count() if pattern.format(k + start).lower() not in known)


def _refuse_others(table: NumberTable, quantity: str, pattern: str, count: int) -> None:
    """More or fewer numbered columns than joints: most likely this is another robot's table."""
    start, there = _numbered(table, pattern)
    if there > 1 and there != count:
        group = pattern.partition("{")[0]
        in_group = table.groups is not None and group in table.groups
        shown = group if in_group else f"{pattern.format(start)} … {pattern.format(start + there - 1)}"
        raise TableError(
            f"{table.path}: {there} columns of {quantity} ({shown}), but the robot has {count} "
            f"joint{'s' if count > 1 else ''}; name those that belong to it in the layout (columns.{quantity})"
        )


def _as_said(
    table: NumberTable, quantity: str, wanted: Columns, count: int, joints: Sequence[str]
) -> list[int]:
    if isinstance(wanted, str):
        _refuse_unusable(table, wanted)
        if table.groups and wanted in table.groups:
            return _counted(table, quantity, list(table.groups[wanted]), count)
        if "{" in wanted:
            found = _by_pattern(table, wanted, count, joints)
            if found is None:
                raise TableError(f"{table.path}: {quantity}: no columns {wanted!r}{table.listed()}")
            return found
        wanted = [wanted]
    elif isinstance(wanted, int):
        wanted = [wanted] if count == 1 else list(range(wanted, wanted + count))
    return _counted(table, quantity, [_index(table, quantity, key) for key in wanted], count)


def _counted(table: NumberTable, quantity: str, found: list[int], count: int) -> list[int]:
    if len(found) != count:
        raise TableError(f"{table.path}: {quantity}: expected {count} columns, got {len(found)}")
    return found


def _index(table: NumberTable, quantity: str, key: str | int) -> int:
    width = table.values.shape[1]
    if isinstance(key, int):
        if not 1 <= key <= width:
            raise TableError(f"{table.path}: {quantity}: no column {key}; the file has columns 1 to {width}")
        return key - 1
    names = table.names or ()
    bare = [units.split(name)[0] for name in names]
    if key not in names and key not in bare:
        raise TableError(f"{table.path}: {quantity}: no column {key!r}{table.listed()}")
    _refuse_twice(table, [key])
    return names.index(key) if key in names else bare.index(key)


def _refuse_twice(table: NumberTable, wanted: Sequence[str]) -> None:
    """Two columns of one name: which one is meant cannot be known."""
    known = _places(table)
    for name in wanted:
        places = known.get(name.lower(), ())
        if len(places) > 1:
            raise TableError(
                f"{table.path}: columns {' and '.join(str(k + 1) for k in places)} are both called {name!r}; "
                "name columns by their numbers in the layout"
            )


def _by_pattern(table: NumberTable, pattern: str, count: int, joints: Sequence[str]) -> list[int] | None:
    known = _places(table)
    for start in (1, 0):
        names = (
            [pattern.format(k + start, joint=joint) for k, joint in enumerate(joints)]
            if count > 1 or "{" in pattern
            else [pattern]
        )
        found = [known.get(name.lower()) for name in names]
        if any(found):
            _refuse_twice(table, names)
        if found and all(found):
            return [places[0] for places in found if places]
    return None
