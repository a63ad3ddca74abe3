"""What the columns of a recording mean: by their names, or by a short TOML file.

[columns]
time = "t"                      # a name, or a number: columns count from 1
position = "q{}"                # q1, q2, …; "{joint}" stands for the names of the joints
velocity = [8, 9, 10, 11, 12, 13]
current = "i{}"                 # or torque

[units]                         # rad, rad/s, m, N·m, s unless said otherwise
position = "deg"
time = "ms"

[drive]
gains = [14.9, 13.3, 11.1, 10.6, 11.0, 11.5]    # torque per unit of current (or of the torque column)
reduction = [32, 32, 45, -48, 45, 32]           # position, velocity and torque are those of the motors
coupling = [[…], …]                             # instead of reduction: the matrix R of p = R (q − offset)
offset = [0, -1.5708, 1.5708, 0, 0, 0]
sensed = "joint"                                # torque sensors behind the gear; else "motor"

[recording]
rate = 1000.0                   # [Hz], where there is no column of time
rows = [635, 3510]              # counted from 1, both included
files = { position = "angles.txt", torque = "motor.txt" }     # one quantity per file
"""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from linkwise.identify.errors import LogError
from linkwise.identify.tables import Table
from linkwise.model.model import suggest

Columns = str | int | Sequence[str | int]

# Names that mean a quantity when nothing else is said, in order of preference; {} is the number of the joint.
KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    "time": ("t", "time", "times", "timestamp", "t_s", "time_s", "stamp"),
    "position": (
        "q{}",
        "q_{}",
        "pos{}",
        "pos_{}",
        "position{}",
        "position_{}",
        "positions{}",
        "q.{joint}",
        "position.{joint}",
    ),
    "velocity": (
        "qd{}",
        "qd_{}",
        "dq{}",
        "dq_{}",
        "vel{}",
        "vel_{}",
        "velocity{}",
        "velocity_{}",
        "velocities{}",
        "qd.{joint}",
    ),
    "torque": (
        *(
            "tau{}",
            "tau_{}",
            "torque{}",
            "torque_{}",
            "torques{}",
            "effort{}",
            "effort_{}",
            "effort{}_Nm",
            "tau.{joint}",
        ),
        "effort.{joint}",
    ),
    "current": ("i{}", "i_{}", "current{}", "current_{}", "currents{}", "current.{joint}"),
}
FACTORS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": {"rad": 1.0, "deg": math.pi / 180, "m": 1.0, "mm": 1e-3, "turns": 2 * math.pi},
    "velocity": {"rad/s": 1.0, "deg/s": math.pi / 180, "m/s": 1.0, "mm/s": 1e-3, "rpm": 2 * math.pi / 60},
    "torque": {"Nm": 1.0, "N·m": 1.0, "Nmm": 1e-3, "N": 1.0, "kNm": 1e3},
    "current": {"A": 1.0, "mA": 1e-3},
}
_SECTIONS = {
    "columns": tuple(KNOWN_NAMES),
    "units": tuple(FACTORS),
    "drive": ("gains", "reduction", "coupling", "offset", "sensed"),
    "recording": ("rate", "rows", "files"),
}


@dataclass(frozen=True)
class Layout:
    """What the columns mean; see the head of this file. Empty: by their names."""

    columns: Mapping[str, Columns] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    gains: Sequence[float] | None = None
    reduction: Sequence[float] | None = None
    coupling: Sequence[Sequence[float]] | None = None
    offset: Sequence[float] | None = None
    sensed: str = "motor"
    rate: float | None = None
    rows: tuple[int, int] | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for section, given in (("columns", self.columns), ("units", self.units)):
            for key in given:
                if key not in KNOWN_NAMES:
                    raise LogError(f"layout: no quantity {key!r} in [{section}]; {suggest(key, KNOWN_NAMES)}")
        for quantity, unit in self.units.items():
            if unit not in FACTORS[quantity]:
                raise LogError(f"layout: unit of {quantity}: no {unit!r}; {suggest(unit, FACTORS[quantity])}")
        if self.rate is not None and not self.rate > 0:
            raise LogError(
                f"layout: rate: expected a positive number of samples per second, got {self.rate!r}"
            )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Layout:
        """From a TOML file; files that it names lie beside it."""
        source = Path(path)
        try:
            data = tomllib.loads(source.read_text(encoding="utf-8"))
        except OSError as error:
            raise LogError(f"{source}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise LogError(f"{source}: {error}") from None
        try:
            layout = cls.of(data)
        except (LogError, TypeError, ValueError) as error:
            raise LogError(f"{source}: {error}") from None
        return replace(layout, files={key: str(source.parent / name) for key, name in layout.files.items()})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Layout:
        """From the sections of such a file as a mapping."""
        for section, inside in data.items():
            if section not in _SECTIONS:
                raise LogError(f"layout: no section [{section}]; {suggest(section, _SECTIONS)}")
            if not isinstance(inside, Mapping):
                raise LogError(f"layout: [{section}] must be a section, got {inside!r}")
            for key in inside:
                if key not in _SECTIONS[section]:
                    raise LogError(
                        f"layout: no key {key!r} in [{section}]; {suggest(key, _SECTIONS[section])}"
                    )
        recording = dict(data.get("recording", {}))
        if "rows" in recording:
            first, last = recording["rows"]
            recording["rows"] = (int(first), int(last))
        return cls(data.get("columns", {}), data.get("units", {}), **data.get("drive", {}), **recording)

    def factor(self, quantity: str) -> float:
        """What a number of the file is multiplied with to be in SI units."""
        unit = self.units.get(quantity)
        return 1.0 if unit is None else FACTORS[quantity][unit]


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
    return None


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
        if table.groups and wanted in table.groups:
            return _counted(table, quantity, list(table.groups[wanted]), count)
        if "{" in wanted:
            found = _by_pattern(table, wanted, count, joints)
            if found is None:
                raise LogError(f"{table.path}: {quantity}: no columns {wanted!r}{_listed(table)}")
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
        raise LogError(f"{table.path}: {quantity}: no column {key!r}{_listed(table)}")
    return table.names.index(key)


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
        if None not in found:
            return found  # type: ignore[return-value]
    return None


def _listed(table: Table) -> str:
    if table.names is None:
        return "; the file has no header"
    shown = ", ".join(table.names[:14]) + (", …" if len(table.names) > 14 else "")
    return f"; it has {shown}"
