"""Settings from TOML files and mappings: every key is read by name and type, and keys that were not read are errors.

Robot files, layouts of recordings and studies are all read with ``Settings``; errors name the table, the key, what was
expected and what is there.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from linkwise.errors import LinkwiseError, suggest

T = TypeVar("T")
REQUIRED: Any = object()
MAX_BYTES = 16 << 20  # of a file
MOST_PARTS = 16  # of a key: a.b.c has three. The parser takes quadratic time for them
_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    dict: "a table",
    list: "a list",
}


def parse_toml(data: bytes, where: str, error: type[LinkwiseError]) -> dict[str, Any]:
    """The tables of a TOML file; ``where`` begins the message of an ``error``."""
    if len(data) > MAX_BYTES:
        raise error(f"{where}: {len(data)} bytes, more than the {MAX_BYTES} of a TOML file that are read")
    try:
        text = data.decode("utf-8-sig")
        if _has_long_key(text):
            raise error(f"{where}: a key has more than {MOST_PARTS} parts")
        return tomllib.loads(text)
    except UnicodeDecodeError as problem:
        raise error(f"{where}: not a text in UTF-8 ({problem.reason} at byte {problem.start})") from None
    except ValueError as problem:  # TOMLDecodeError, or an integer with thousands of digits
        raise error(f"{where}: not valid TOML: {problem}") from None
    except RecursionError:
        raise error(f"{where}: not valid TOML: nested too deeply") from None


_TOKEN = re.compile(
    r"""#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\.|[^A-Za-z0-9_. \t"'#-]+""",
    re.DOTALL,
)


def _has_long_key(text: str) -> bool:
    """Whether a key has too many parts; strings and comments are passed over, numbers have one point each."""
    points = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == ".":
            points += 1
            if points >= MOST_PARTS:
                return True
        elif first not in "\"'#":
            points = 0
    return False


def read_toml(path: str | os.PathLike[str], error: type[LinkwiseError]) -> dict[str, Any]:
    """The tables of a TOML file of at most ``MAX_BYTES``."""
    source = Path(path)
    try:
        if source.exists() and not source.is_file():
            raise error(f"{source}: not a regular file")
        with source.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise error(f"{source}: no such file") from None
    except OSError as problem:
        raise error(f"{source}: {problem.strerror}") from None
    except ValueError as problem:  # a NUL character in the name
        raise error(f"{str(source)!r}: {problem}") from None
    if len(data) > MAX_BYTES:
        raise error(f"{source}: more than the {MAX_BYTES} bytes that are read")
    return parse_toml(data, str(source), error)


class Settings:
    """One table of settings; ``path`` is how it is named in errors. A subclass says which error it raises."""

    error: ClassVar[type[LinkwiseError]] = LinkwiseError
    between: ClassVar[str] = "."
    """Between the name of a table and that of a key, in messages."""

    def __init__(self, values: Mapping[str, Any], path: str = ""):
        self.values = values
        self.path = path
        self._asked: dict[str, None] = {}

    def where(self, key: str) -> str:
        """How a key is named in messages."""
        return f"{self.path}{self.between}{key}" if self.path else key

    def fail(self, key: str, message: str) -> LinkwiseError:
        """An error about a key, to be raised; about the table as a whole where the key is empty."""
        return self.error(f"{self.where(key)}: {message}" if key else f"{self.path}: {message}")

    # -- which keys there are ---------------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        self._asked[key] = None
        return key in self.values

    def has(self, *keys: str) -> bool:
        """Whether one of the keys is there."""
        return any([key in self for key in keys])

    def one_of(self, *keys: str) -> str | None:
        """The key that is given, None if none is; two spellings of one quantity are a mistake."""
        given = [key for key in keys if key in self]
        if len(given) > 1:
            raise self.fail("", f"{given[0]!r} and {given[1]!r} exclude each other")
        return given[0] if given else None

    def allow(self, keys: Iterable[str]) -> None:
        """Raise for a key that is not one of these."""
        self._asked |= dict.fromkeys(keys)
        self.finish()

    def finish(self) -> None:
        """Raise for keys that were not read."""
        for key in self.values:
            if key not in self._asked:
                raise self.fail(str(key), f"unknown key; {suggest(str(key), self._asked)}")

    # -- values -----------------------------------------------------------------------------------------------

    def get(self, key: str, kind: type[T], default: Any = REQUIRED) -> T:
        """The value of a key, of this type; a whole number counts as a number, which is finite."""
        if key not in self:
            if default is REQUIRED:
                raise self.fail(key, f"missing; expected {_NAMES[kind]}")
            return default
        value = self.values[key]
        if kind is float:
            return self.finite(key, value)  # type: ignore[return-value]
        if kind is dict and isinstance(value, Mapping):
            return value  # type: ignore[return-value]
        if kind is list and isinstance(value, tuple):
            value = list(value)
        if kind is bool and isinstance(value, np.bool_):
            value = bool(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(key, f"expected {_NAMES[kind]}, got {shown(value)}")
        return value  # type: ignore[return-value]

    def raw(self, key: str, default: Any = None) -> Any:
        """The value of a key, of any type."""
        self._asked[key] = None
        return self.values.get(key, default)

    def whole(self, key: str, least: int, default: Any = REQUIRED) -> int:
        """A whole number from ``least`` on."""
        value = self.get(key, int, default)
        if value is not None and value < least:
            raise self.fail(key, f"expected a whole number from {least} on, got {value}")
        return value

    def choice(self, key: str, valid: Iterable[str], default: Any = REQUIRED) -> str:
        """One of these names."""
        value = self.get(key, str, default)
        valid = tuple(valid)
        if value not in valid and value is not default:
            raise self.fail(key, f"no {value!r}; {suggest(value, valid)}")
        return value

    def number(self, key: str, default: Any = REQUIRED, *, infinite: bool = False) -> float:
        """A number; NaN never is one, infinity where it is allowed."""
        if key in self:
            return self.finite(key, self.values[key], infinite)
        return self.get(key, float, default)

    def finite(self, key: str, value: Any, infinite: bool = False) -> float:
        """A value as a number; ``key`` is for messages."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fail(key, f"expected a number, got {shown(value)}")
        try:
            number = float(value)
        except OverflowError:
            raise self.fail(key, "the number is too large") from None
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise self.fail(key, f"{number} is not a finite number")
        return number

    def numbers(self, key: str, count: int, *, infinite: bool = False) -> list[float]:
        """A list of so many numbers."""
        value = self.raw(key)
        if not isinstance(value, (list, tuple)) or len(value) != count:
            got = f"{len(value)} entries" if isinstance(value, (list, tuple)) else shown(value)
            raise self.fail(key, f"expected a list of {count} numbers, got {got}")
        return [self.finite(key, entry, infinite) for entry in value]


def shown(value: Any) -> str:
    """A value for messages, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
