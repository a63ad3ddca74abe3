"""Units of the quantities in tables: what a number is multiplied with to be in SI units."""

from __future__ import annotations

import math
import re

_DEGREE = math.pi / 180
_TURN = 2 * math.pi

FACTORS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": {"rad": 1.0, "deg": _DEGREE, "m": 1.0, "mm": 1e-3, "turns": _TURN},
    "velocity": {"rad/s": 1.0, "deg/s": _DEGREE, "m/s": 1.0, "mm/s": 1e-3, "rpm": _TURN / 60},
    "acceleration": {"rad/s²": 1.0, "deg/s²": _DEGREE, "m/s²": 1.0, "mm/s²": 1e-3},
    "torque": {"Nm": 1.0, "N·m": 1.0, "Nmm": 1e-3, "mNm": 1e-3, "N": 1.0, "kNm": 1e3},
    "current": {"A": 1.0, "mA": 1e-3},
}
_OTHER_SPELLINGS = {
    "sec": "s",
    "seconds": "s",
    "µs": "us",
    "μs": "us",
    "°": "deg",
    "degree": "deg",
    "degrees": "deg",
    "radian": "rad",
    "radians": "rad",
    "°/s": "deg/s",
    "1/min": "rpm",
    "°/s²": "deg/s²",
    "N*m": "Nm",
    "N.m": "Nm",
    "N m": "Nm",
    "N⋅m": "Nm",
    "mN·m": "mNm",
    "mN.m": "mNm",
    "mN*m": "mNm",
}
_KNOWN = {unit for units in FACTORS.values() for unit in units}
LONGEST_NAME = 500  # characters of a name in which a unit is looked for
_LAST_WORDS = {  # units as the last word of a name; those of one letter are too often something else
    **{unit: unit for unit in ("deg", "rad", "mm", "ms", "us", "ns", "rpm", "turns")},
    "degrees": "deg",
    "radians": "rad",
    "nm": "Nm",
    "nmm": "Nmm",
    "mnm": "mNm",
    "knm": "kNm",
    "ma": "mA",
}
_SUFFIX = re.compile(rf"(.+)_({'|'.join(_LAST_WORDS)})(?:_(?:per_)?s(2?))?", re.IGNORECASE)
_RATES = ("deg", "rad", "mm")
_BRACKETS = re.compile(r"(.*?)\s*(?:\[([^\[\]]+)\]|\(([^()]+)\))")


def spelled(unit: str) -> str:
    """The usual spelling of a unit, with or without brackets."""
    text = unit.strip().removeprefix("[").removesuffix("]").removeprefix("(").removesuffix(")").strip()
    text = text.replace("^2", "²").replace("s2", "s²")
    return _OTHER_SPELLINGS.get(text, text)


def is_unit(text: str) -> bool:
    """Whether a text is a unit of one of the quantities."""
    return spelled(text) in _KNOWN


def split(name: str) -> tuple[str, str]:
    """A column's name and its unit: ``q1 [deg]`` and ``q1_deg`` are q1 in deg, ``v1_deg_s`` is v1 in deg/s.

    The unit is "" where none is known.
    """
    found = _BRACKETS.fullmatch(name.strip()) if len(name) <= LONGEST_NAME else None
    unit = (found[2] or found[3]) if found else ""
    if found is None or not found[1] or not is_unit(unit):
        return _last_word(name.strip()) or (name, "")
    return found[1], spelled(unit)


def _last_word(name: str) -> tuple[str, str] | None:
    found = _SUFFIX.fullmatch(name) if len(name) <= LONGEST_NAME else None
    if found is None:
        return None
    unit = _LAST_WORDS[found[2].lower()]
    if found[3] is None:
        return found[1], unit
    return (found[1], f"{unit}/s{'²' if found[3] else ''}") if unit in _RATES else None
