"""Which columns of a table hold a quantity: as a layout says, or by the names that are usual."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from linkwise.identify.errors import LogError
from linkwise.identify.layout import KNOWN_NAMES, Columns, Layout
from linkwise.identify.tables import Table


def find_columns(table: Table, quantity: str, layout: Layout, joints: Sequence[str]) -> list[int] | None:
    """The columns (from 0) of a quantity: one for time, else one per joint; None where there are none."""
    count = 1 if quantity == "time" else len(joints)
    wanted = layout.columns.get(quantity)
    if wanted is not None:
        return _as_said(table, quantity, wanted, count, joints)
    for pattern in KNOWN_NAMES[quantity]:
        group = pattern.partition("{")[0]
        if table.groups and len(table.groups.get(group, ())) == count:
            return list(table.groups[group])
        found = _by_pattern(table, pattern, count, joints)
        if found is not None:
            _refuse_others(table, quantity, pattern, count)
            return found
    for pattern in KNOWN_NAMES[quantity]:
        _refuse_others(table, quantity, pattern, count)
        _refuse_unusable(table, pattern.partition("{")[0])
    return None


def _refuse_unusable(table: Table, name: str) -> None:
    if name in table.unusable:
        raise LogError(f"{table.path}: {name}: {table.unusable[name]}")


def _refuse_others(table: Table, quantity: str, pattern: str, count: int) -> None:
    """More or fewer numbered columns than joints: most likely this is another robot's recording."""
    group = pattern.partition("{")[0]
    if "{}" not in pattern:
        return
    if table.groups and group in table.groups:
        there, shown = len(table.groups[group]), group
    else:
        known = {name.lower() for name in table.names or ()}
        start = 0 if pattern.format(0).lower() in known else 1
        there = next(k for k in itertools.count() if pattern.format(k + start).lower() not in known)
        shown = f"{pattern.format(start)} … {pattern.format(start + there - 1)}"
    if there > 1 and there != count:
        raise LogError(
            f"{table.path}: {there} columns of {quantity} ({shown}), but the robot has {count} "
            f"joint{'s' if count > 1 else ''}; name those that belong to it in the layout (columns.{quantity})"
        )


def _as_said(table: Table, quantity: str, wanted: Columns, count: int, joints: Sequence[str]) -> list[int]:
    if isinstance(wanted, str):
        _refuse_unusable(table, wanted)
        if table.groups and wanted in table.groups:
            return _counted(table, quantity, list(table.groups[wanted]), count)
        if "{" in wanted:
            found = _by_pattern(table, wanted, count, joints)
            if found is None:
                raise LogError(f"{table.path}: {quantity}: no columns {wanted!r}{listed(table)}")
            return found
        wanted = [wanted]
    elif isinstance(wanted, int):
        wanted = [wanted] if count == 1 else list(range(wanted, wanted + count))
    return _counted(table, quantity, [_index(table, quantity, key) for key in wanted], count)


def _counted(table: Table, quantity: str, found: list[int], count: int) -> list[int]:
    if len(found) != count:
        raise LogError(f"{table.path}: {quantity}: expected {count} columns, got {len(found)}")
    return found


def _index(table: Table, quantity: str, key: str | int) -> int:
    width = table.values.shape[1]
    if isinstance(key, int):
        if not 1 <= key <= width:
            raise LogError(f"{table.path}: {quantity}: no column {key}; the file has columns 1 to {width}")
        return key - 1
    if table.names is None or key not in table.names:
        raise LogError(f"{table.path}: {quantity}: no column {key!r}{listed(table)}")
    _refuse_twice(table, [key])
    return table.names.index(key)


def _refuse_twice(table: Table, wanted: Sequence[str]) -> None:
    """Two columns of one name: which one is meant cannot be known."""
    for name in wanted:
        places = [k for k, each in enumerate(table.names or (), 1) if each.lower() == name.lower()]
        if len(places) > 1:
            raise LogError(
                f"{table.path}: columns {' and '.join(map(str, places))} are both called {name!r}; "
                "name columns by their numbers in the layout"
            )


def _by_pattern(table: Table, pattern: str, count: int, joints: Sequence[str]) -> list[int] | None:
    if table.names is None:
        return None
    known = {name.lower(): k for k, name in enumerate(table.names)}
    for start in (1, 0):
        names = (
            [pattern.format(k + start, joint=joint) for k, joint in enumerate(joints)]
            if count > 1
            else [pattern]
        )
        if count == 1 and "{" in pattern:
            names = [pattern.format(start, joint=joints[0])]
        found = [known.get(name.lower()) for name in names]
        if any(place is not None for place in found):
            _refuse_twice(table, names)
        if None not in found:
            return found  # type: ignore[return-value]
    return None


def listed(table: Table) -> str:
    """The columns that there are, for messages."""
    if table.names is None:
        return "; the file has no header"
    shown = ", ".join(table.names[:14]) + (", …" if len(table.names) > 14 else "")
    return f"; it has {shown}"
