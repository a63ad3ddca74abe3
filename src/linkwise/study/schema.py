"""Reading nested tables of settings: every key is asked for by name and type, and what is left over is an error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from linkwise.model.model import suggest
from linkwise.study.errors import StudyError

T = TypeVar("T")
_REQUIRED = object()
_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    dict: "a table",
    list: "a list",
}


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


class Table:
    """One table of a study; ``path`` is how its entries are named in errors."""

    def __init__(self, values: Mapping[str, Any], path: str = ""):
        self.values = values
        self.path = path
        self._asked: dict[str, None] = {}

    def where(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def fail(self, key: str, message: str) -> StudyError:
        return StudyError(f"{self.where(key)}: {message}" if key else f"{self.path}: {message}")

    def __contains__(self, key: str) -> bool:
        self._asked[key] = None
        return key in self.values

    def get(self, key: str, kind: type[T], default: Any = _REQUIRED) -> T:
        """The value of a key, of this type; a whole number counts as a number."""
        self._asked[key] = None
        if key not in self.values:
            if default is _REQUIRED:
                raise self.fail(key, f"missing; expected {_NAMES[kind]}")
            return default
        value = self.values[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if kind is dict and isinstance(value, Mapping):
            return value  # type: ignore[return-value]
        if kind is list and isinstance(value, tuple):
            value = list(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(key, f"expected {_NAMES[kind]}, got {_shown(value)}")
        return value  # type: ignore[return-value]

    def raw(self, key: str, default: Any = None) -> Any:
        """The value of a key, of any type."""
        self._asked[key] = None
        return self.values.get(key, default)

    def whole(self, key: str, least: int, default: Any = _REQUIRED) -> int:
        """A whole number from ``least`` on."""
        value = self.get(key, int, default)
        if value is not None and value < least:
            raise self.fail(key, f"expected a whole number from {least} on, got {value}")
        return value

    def choice(self, key: str, valid: Iterable[str], default: Any = _REQUIRED) -> str:
        value = self.get(key, str, default)
        valid = tuple(valid)
        if value not in valid and value is not default:
            raise self.fail(key, f"no {value!r}; {suggest(value, valid)}")
        return value

    def finish(self) -> None:
        """Complain about a key that nobody asked for."""
        for key in self.values:
            if key not in self._asked:
                raise StudyError(f"{self.where(str(key))}: unknown key; {suggest(str(key), self._asked)}")


def numbers(value: Any, where: str) -> list[float]:
    """One number, or a list of numbers."""
    several = hasattr(value, "__iter__") and not isinstance(value, (str, Mapping))
    found: list[Any] = list(value) if several else [value]
    if not found:
        raise StudyError(f"{where}: expected numbers, got an empty list")
    for x in found:
        if isinstance(x, bool) or not hasattr(x, "__float__") or not math.isfinite(float(x)):
            raise StudyError(f"{where}: expected finite numbers, got {_shown(x)}")
    return [float(x) for x in found]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
