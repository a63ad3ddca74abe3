"""Tables of a study, and the names and numbers in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from linkwise.files.settings import Settings, shown
from linkwise.study.errors import StudyError

LONGEST_NAME = 150
"""Bytes of a name in UTF-8: file names end at 255, and endings are added."""


def file_name(name: str, where: str) -> None:
    """That a name can be that of a file or folder inside of a store, and nothing else."""
    long = len(name.encode(errors="replace")) > LONGEST_NAME
    if not name.isprintable() or not name or name.startswith(".") or name == "zarr.json" or long:
        reason = "a text that can be a file name: not empty or very long, no control characters, no dot first"
    elif "/" in name or "\\" in name:
        reason = "a name without / and \\, because it becomes that of a file"
    else:
        return
    raise StudyError(f"{where!r}: expected {reason}")


class StudySettings(Settings):
    """One table of a study."""

    error = StudyError


def numbers(value: Any, where: str) -> list[float]:
    """One number, or a list of numbers."""
    several = hasattr(value, "__iter__") and not isinstance(value, (str, Mapping))
    items: list[Any] = list(value) if several else [value]
    if not items:
        raise StudyError(f"{where}: expected numbers, got an empty list")
    for x in items:
        if isinstance(x, bool) or not hasattr(x, "__float__") or not math.isfinite(float(x)):
            raise StudyError(f"{where}: expected finite numbers, got {shown(x)}")
    return [float(x) for x in items]
