"""Columns of a base and of feet in a table, by the names that loggers of walking robots give them.

Positions of joints are often behind those of the base in one array: ``q`` with seven numbers more than there are joints
(position and quaternion first), ``v`` and ``tau`` with six more. Such arrays are divided here, so that the columns of
joints are found as those of arms are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.files.tables import NumberTable
from linkwise.files.tables.columns import find_columns
from linkwise.files.tables.naming import is_planned, plain
from linkwise.identify.errors import LogError
from linkwise.identify.walking.log import BASE_FIELDS, FEET_FIELDS

_BASE = "(?:floating_base|base_link|base|root|trunk|torso|body|pelvis|mocap|odometry|odom|state_estimator|estimator)"
_QUATERNION = "(?:(?:orientation_)?(?:quaternions?|quats?)|orientations?|ori|rotations?|rot|attitude)"
_SPIN = "(?:ang_?vels?|angular_?velocit(?:y|ies)|angular_?rates?|omegas?)"
NAMES: dict[str, str] = {
    "base_pose": f"{_BASE}_poses?|poses?_{_BASE}",
    "base_twist": f"{_BASE}_twists?|twists?_{_BASE}",
    "base_position": f"{_BASE}_(?:pos|positions?|xyz|translations?|p)|(?:pos|positions?|p)_{_BASE}",
    "base_orientation": f"(?:{_BASE}|imu)_{_QUATERNION}|{_QUATERNION}(?:_{_BASE})?",
    "base_angular_velocity": f"{_BASE}_(?:{_SPIN}|w)|(?:{_SPIN}|w)_{_BASE}",
    "base_velocity": f"{_BASE}_(?:(?:lin|linear)_?)?(?:vels?|velocit(?:y|ies)|v)|(?:vels?|velocit(?:y|ies)|v)_{_BASE}",
    "gyro": f"(?:(?:imu|{_BASE})_)?(?:gyros?|gyroscopes?)|imu_(?:{_SPIN}|w)",
    "accelerometer": f"(?:(?:imu|{_BASE})_)?(?:accelerometers?|accels?)|imu_(?:lin(?:ear)?_?)?acc(?:el|eleration)?s?"
    f"|{_BASE}_(?:lin(?:ear)?_?)?acc(?:eleration)?s?",
    "contacts": "(?:(?:foot|feet|leg|legs)_)?(?:in_)?contacts?(?:_(?:flags?|states?|status|measured))?|stances?",
    "foot_forces": "(?:(?:foot|feet|contact|ground_reaction)_?)(?:forces?|grfs?)(?:_z)?|grfs?",
}
"""Names of what is recorded of a base and of feet, without numbers and axes at their end; a prefix may be before."""
_WIDTHS = {**BASE_FIELDS, "base_pose": 7, "base_twist": 6}
_MEASURED = "(?:_(?:mes|meas|measured|m|est|estimated|filt|filtered))?"
_JOINTS = {
    "q": f"(?:.*_)?(?:q|qpos|qj|joint_?(?:pos|positions?|angles?|q)|positions?|pos){_MEASURED}",
    "qd": "(?:.*_)?(?:qd|dq|v|qvel|dqj|qjd|qdot|q_dot|joint_?(?:vels?|velocit(?:y|ies)|speeds?)|velocit(?:y|ies)|vel)"
    f"{_MEASURED}",
    "tau": "(?:.*_)?(?:taus?|torques?|tau_?j|(?:joint|motor)_?(?:torques?|efforts?|tau)|efforts?"
    f"|torques?_from_current(?:_measur\\w*)?){_MEASURED}",
}
"""Names of arrays of all joints, with or without those of the base before them."""
_AXES = "xyzw"
_OWN = "base|root|trunk|torso|pelvis"  # in names that can only be those of a robot's own base
UNIT = 0.02  # largest distance of a quaternion's length from one
MOVED = 0.01  # [m, rad, m/s] from which a base moves


@dataclass(frozen=True)
class BaseColumns:
    """Columns (from 0) of base and feet by quantity; ``named`` are quaternions whose order is in their names; ``feet``
    are the names of the feet, in the order of their columns, where these have some."""

    places: Mapping[str, list[int]] = field(default_factory=dict)
    named: bool = False
    feet: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.places)


def base_columns(
    table: NumberTable, joints: int, wanted: Mapping[str, str | int | Sequence[str | int]] | None = None
) -> tuple[NumberTable, BaseColumns]:
    """What of a table belongs to a base and to feet; and the table with the joints' arrays divided.

    Args:
        table: the table as it was read.
        joints: number of joints.
        wanted: columns that a layout names.
    """
    if table.names is None:
        return table, BaseColumns()
    stems = _stems(table)
    places: dict[str, list[int]] = {}
    named = False
    chosen: dict[str, str] = {}
    for quantity, pattern in NAMES.items():
        like = [
            stem for stem in stems if re.fullmatch(f"(?:.*_)?(?:{pattern})", stem) and not is_planned(stem)
        ]
        for stem in sorted(like, key=lambda stem: _worse(stem, chosen)):
            columns, width = stems[stem], _WIDTHS.get(quantity)
            if quantity not in places and len(columns) == width:
                places[quantity], chosen[quantity] = list(columns.values()), stem
                named |= quantity == "base_orientation" and set(columns) == set(_AXES)
            elif quantity not in places and width is None and len(columns) > 1:
                places[quantity] = list(columns.values())
            elif quantity == "base_velocity" and len(columns) == 6:
                places.setdefault("base_twist", list(columns.values()))
    feet: tuple[str, ...] = ()
    if "contacts" not in places:
        feet, places["contacts"] = _by_foot(table)
    for quantity, columns in (wanted or {}).items():
        count = [""] * _WIDTHS[quantity] if quantity in _WIDTHS else _width(table, columns)
        places[quantity] = find_columns(table, quantity, count, columns) or []
    table = _joints_alone(table, joints, stems, places)
    places = {key: columns for key, columns in places.items() if columns}
    return table, BaseColumns(places, named, feet)


def _worse(stem: str, chosen: Mapping[str, str]) -> tuple[bool, bool]:
    """Order of names for one quantity: those with the first word of a name that was chosen (``mocap_…`` beside
    ``mocap_…``), and accelerometers before accelerations that were computed."""
    firsts = {name.partition("_")[0] for name in chosen.values()}
    return bool(firsts) and stem.partition("_")[0] not in firsts, not stem.endswith("accelerometer")


def _width(table: NumberTable, wanted: str | int | Sequence[str | int]) -> list[str]:
    """As many names as columns are asked for, of a quantity that has one for each foot."""
    if isinstance(wanted, str) and table.groups and wanted in table.groups:
        return [""] * len(table.groups[wanted])
    return [""] * (1 if isinstance(wanted, (str, int)) else len(wanted))


def _stems(table: NumberTable) -> dict[str, dict[str, int]]:
    """Columns by their name without an axis or a number at its end: {stem: {axis or number: column}}, in order."""
    found: dict[str, dict[str, int]] = {}
    grouped = {k for columns in (table.groups or {}).values() for k in columns}
    for name, columns in (table.groups or {}).items():
        found[plain(name)] = {str(k): column for k, column in enumerate(columns)}
    for k, name in enumerate(table.names or ()):
        if k in grouped:
            continue
        match = re.fullmatch("(.*?)_?([0-9]+|(?<![a-z])[xyzw]|_[xyzw]|q[xyzw])", plain(name))
        if match and match[1]:
            end = match[2].lstrip("_").removeprefix("q")
            stem = match[1].rstrip("_") + ("_quat" if match[2].startswith("q") else "")
            found.setdefault(stem, {}).setdefault(end, k)
    return {stem: dict(sorted(columns.items(), key=_end)) for stem, columns in found.items()}


def _end(item: tuple[str, int]) -> tuple[int, str]:
    key = item[0]
    return (int(key), "") if key.isdigit() else (_AXES.index(key), key)


def _by_foot(table: NumberTable) -> tuple[tuple[str, ...], list[int]]:
    """Columns of contact that are called after feet: ``FL_contact``, ``contact_FL``."""
    found = {}
    for k, name in enumerate(table.names or ()):
        words = plain(name)
        match = re.fullmatch(
            "(?:(.*?)_)?(?:foot_|leg_)?(?:in_)?contacts?(?:_(?:flag|state))?(?:_(.*))?", words
        )
        if match and bool(match[1]) != bool(match[2]):
            found.setdefault(match[1] or match[2], k)
    return (tuple(found), list(found.values())) if len(found) > 1 else ((), [])


def _joints_alone(
    table: NumberTable, joints: int, stems: Mapping[str, Mapping[str, int]], places: dict[str, list[int]]
) -> NumberTable:
    """The table whose arrays of all coordinates are those of joints alone; what is of the base goes to ``places``."""
    names, groups = list(table.names or ()), dict(table.groups or {})
    taken = {k for columns in places.values() for k in columns}
    done: set[str] = set()
    for stem, own in stems.items():
        columns = list(own.values())
        for short, pattern in _JOINTS.items():
            extra = len(columns) - joints
            if short in done or taken & set(columns) or not re.fullmatch(pattern, stem) or is_planned(stem):
                continue
            if extra not in (0, 7 if short == "q" else 6):
                continue
            first, rest = columns[:extra], columns[extra:]
            if extra and short == "q":
                places.setdefault("base_pose", first)
            elif extra and short == "qd":
                places.setdefault("base_twist", first)
            for k, column in enumerate(rest, 1):
                names[column] = f"{short}{k}"
            for k, column in enumerate(first):
                names[column] = f"base_{short}_{k}"
            for name in [name for name, members in groups.items() if set(members) & set(columns)]:
                del groups[name]
            if groups or table.groups:
                groups[short] = tuple(rest)
            done.add(short)
            break
    return replace(table, names=tuple(names), groups=groups or None)


def refuse_moving_base(table: NumberTable, joints: int, robot: str) -> None:
    """Raise for a recording of a moving base that is read for a robot whose base is fixed.

    Args:
        table: the table as it was read.
        joints: number of joints.
        robot: name of the robot, for the message.

    Raises:
        LogError: columns of a base were found, and they move.
    """
    _, found = base_columns(table, joints)
    names = table.names or ()
    moving = [
        quantity
        for quantity, columns in found.places.items()
        if quantity not in (*FEET_FIELDS, "gyro", "accelerometer", "base_twist")
        and (re.search(_OWN, plain(names[columns[0]])) or _is_pose(table, columns))
        and _moves(table, columns)
    ]
    if moving:
        shown = ", ".join(f"{names[found.places[q][0]]} … ({q})" for q in moving[:3])
        raise LogError(
            f"{table.path}: columns of a moving base: {shown}; the base of {robot} is fixed: load it with "
            'base="floating" (--base floating) to identify it with them, or leave these columns out'
        )


def _moves(table: NumberTable, columns: Sequence[int]) -> bool:
    values = table.values[:, list(columns)]
    values = values[np.isfinite(values).all(axis=1)]
    return len(values) > 0 and bool(np.ptp(values, axis=0).max() > MOVED)


def _is_pose(table: NumberTable, columns: Sequence[int]) -> bool:
    """Whether seven columns end with a quaternion."""
    if len(columns) != 7:
        return False
    quaternions = table.values[:, list(columns)[3:]]
    return bool(np.abs(np.sqrt((quaternions**2).sum(axis=1)) - 1.0).max() < UNIT)
