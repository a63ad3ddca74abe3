"""The scalar variables of a generated model: a name for every number, with unit, role and start value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.core.foreign import ascii_line
from linkwise.embedded.arguments import UNITS
from linkwise.model.coordinates import Coordinate, position_coordinates, velocity_coordinates
from linkwise.robot.robot import Robot

POSITIONS = ("q", "q_d", "estimated_q", "q_measured", "start", "end", "next_q")
_VELOCITIES = ("qd", "qd_d", "estimated_qd", "next_qd")
_ACCELERATIONS = ("qdd", "qdd_d")
_TORQUES = ("tau", "torque_limits", "external_torque", "residual", "gravity_torques")
_OTHERS = ("contact", "kp", "kd", "ki")  # one number for each joint, without a unit
_ALONE = {"time": "s", "duration": "s", "step": "s", "kinetic_energy": "J", "potential_energy": "J"}
_PAYLOAD = ("kg", *["kg.m"] * 3, *["kg.m2"] * 6)

BASE_UNITS: dict[str, dict[str, int]] = {
    "rad": {"rad": 1},
    "m": {"m": 1},
    "rad/s": {"rad": 1, "s": -1},
    "m/s": {"m": 1, "s": -1},
    "rad/s2": {"rad": 1, "s": -2},
    "m/s2": {"m": 1, "s": -2},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "N": {"kg": 1, "m": 1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "s": {"s": 1},
    "kg": {"kg": 1},
    "kg.m": {"kg": 1, "m": 1},
    "kg.m2": {"kg": 1, "m": 2},
}
"""Every unit that variables have, as powers of SI units."""


@dataclass(frozen=True)
class Variable:
    """One number. ``reference`` is its place in the model's array of values."""

    name: str
    reference: int
    causality: str
    """independent, parameter, tunable (a parameter that may change between steps), input or output."""
    description: str
    unit: str | None = None
    start: float | None = None
    """Value at the start; None where it is calculated."""
    derivative: int | None = None
    """The reference of the variable that this one is the time derivative of."""

    @property
    def calculated(self) -> bool:
        return self.causality == "output" and self.start is None


def scalars(robot: Robot, title: str, size: int) -> list[tuple[str, str | None, str]]:
    """(name, unit, description) of every number of an argument: by joint where it has one for each.

    Args:
        robot: the robot.
        title: name of the argument, such as q or tau.
        size: how many numbers it has.
    """
    what = ascii_line(UNITS.get(title, title.replace("_", " "))).split(" [")[0]
    rows = _coordinates(robot, title)
    if rows is not None and len(rows) == size:
        return [
            (f"{title}.{_quoted(row.name)}", _unit(title, row), f"{what}: {ascii_line(row.name)}")
            for row in rows
        ]
    if size == 1:
        return [(title, _ALONE.get(title), what)]
    units: Sequence[str | None] = _PAYLOAD if title == "payload" and size == 10 else [None] * size
    return [(f"{title}[{k + 1}]", units[k], what) for k in range(size)]


def _coordinates(robot: Robot, title: str) -> list[Coordinate] | None:
    if title in POSITIONS:
        return position_coordinates(robot)
    if title in (*_VELOCITIES, *_ACCELERATIONS, *_TORQUES, *_OTHERS):
        return velocity_coordinates(robot)
    return None


def _unit(title: str, row: Coordinate) -> str | None:
    if row.quaternion or title in _OTHERS:
        return None
    kind = "rad" if row.revolute else "m"
    if title in POSITIONS:
        return kind
    if title in _VELOCITIES:
        return f"{kind}/s"
    if title in _ACCELERATIONS:
        return f"{kind}/s2"
    return "N.m" if row.revolute else "N"


def _quoted(name: str) -> str:
    """A joint's name in the structured naming convention of FMI: quoted where it is no identifier, with the codes of
    characters that FMI does not allow, so that different names stay different."""
    parts = name.split(".")
    if all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part) for part in parts):
        return name
    text = re.sub(r"[^ -~]|['\"\\`]", lambda found: f"{{{ord(found[0]):x}}}", name)
    return f"'{text}'"
