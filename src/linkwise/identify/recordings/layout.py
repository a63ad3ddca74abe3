"""What the columns of a recording mean: by their names, or by a short TOML file.

[columns]
time = "t"                      # a name, or a number: columns count from 1
position = "q{}"                # q1, q2, …; "{joint}" stands for the names of the joints
velocity = [8, 9, 10, 11, 12, 13]
current = "i{}"                 # or torque
base_orientation = "quat"       # of a floating base: base_position, base_velocity, gyro, accelerometer, contacts, …

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
topic = "/joint_states"         # of a rosbag, or what the names of columns begin with, where there are several
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.files.settings import Settings, read_toml
from linkwise.files.tables.columns import Columns
from linkwise.files.tables.units import FACTORS
from linkwise.identify.errors import LogError

QUANTITIES = ("time", "position", "velocity", "torque", "current")
BASE_QUANTITIES = (
    *(
        "base_position",
        "base_orientation",
        "base_velocity",
        "base_angular_velocity",
        "base_pose",
        "base_twist",
    ),
    *("gyro", "accelerometer", "contacts", "foot_forces"),
)
"""Of robots with a floating base: see ``identify.walking``."""
_SECTIONS = {
    "columns": (*QUANTITIES, *BASE_QUANTITIES),
    "units": QUANTITIES,
    "drive": ("gains", "reduction", "coupling", "offset", "sensed"),
    "recording": ("rate", "rows", "files", "topic"),
}


_FACTORS_OF_DRIVES = ("gains", "reduction", "coupling", "offset")


class LayoutSettings(Settings):
    """One section of a layout."""

    error = LogError


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
    topic: str | None = None

    def __post_init__(self) -> None:
        columns = LayoutSettings(self.columns, "layout: columns")
        columns.allow((*QUANTITIES, *BASE_QUANTITIES))
        for quantity, wanted in self.columns.items():
            each = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
            if not each or not all(isinstance(key, str) or _is_whole(key) for key in each):
                raise columns.fail(quantity, f"expected names or numbers of columns, got {wanted!r}")
            if len(set(each)) < len(each):
                raise columns.fail(quantity, f"a column is named twice: {wanted!r}")
        units = LayoutSettings(self.units, "layout: units")
        units.allow(QUANTITIES)
        for quantity in self.units:
            units.choice(quantity, FACTORS[quantity])
        drive = LayoutSettings({key: getattr(self, key) for key in _FACTORS_OF_DRIVES}, "layout: drive")
        for key in _FACTORS_OF_DRIVES:
            _check_numbers(drive, key)
        if self.topic is not None and not isinstance(self.topic, str):
            raise LogError(f"layout: topic: expected a name, got {self.topic!r}")
        rate = self.rate
        if rate is not None and not (_is_real(rate) and 0 < rate < math.inf):
            raise LogError(f"layout: rate: expected a positive number of samples per second, got {rate!r}")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Layout:
        """From a TOML file; files that it names lie beside it."""
        source = Path(path)
        data = read_toml(source, LogError)
        try:
            layout = cls.of(data)
        except (LogError, TypeError, ValueError) as error:
            raise LogError(f"{source}: {error}") from None
        return replace(layout, files={key: str(source.parent / name) for key, name in layout.files.items()})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Layout:
        """From the sections of such a file as a mapping."""
        sections = LayoutSettings(data, "layout")
        for section, keys in _SECTIONS.items():
            inside = sections.get(section, dict, {})
            LayoutSettings(inside, f"layout: {section}").allow(keys)
        sections.finish()
        recording = dict(data.get("recording", {}))
        if "rows" in recording:
            rows = recording["rows"]
            if not (isinstance(rows, Sequence) and len(rows) == 2 and all(map(_is_whole, rows))):
                raise LogError(f"layout: rows: expected [first, last], got {rows!r}")
            recording["rows"] = tuple(rows)
        files = recording.get("files", {})
        if not (isinstance(files, Mapping) and all(isinstance(name, str) for name in files.values())):
            raise LogError(f"layout: files: expected the name of a file for each quantity, got {files!r}")
        return cls(data.get("columns", {}), data.get("units", {}), **data.get("drive", {}), **recording)


def _is_real(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_numbers(drive: LayoutSettings, key: str) -> None:
    """Finite numbers, not zero where they are a factor."""
    given = drive.raw(key)
    if given is None:
        return
    try:
        numbers = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise drive.fail(key, f"expected numbers, got {given!r}") from None
    if not np.isfinite(numbers).all() or (key in ("gains", "reduction") and not numbers.all()):
        raise drive.fail(key, f"expected finite numbers other than zero, got {given!r}")
