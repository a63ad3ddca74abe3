"""Options that are either true or false. Everything else is refused: text such as "no" counts as true in Python."""

from __future__ import annotations

import reprlib
from typing import Any, cast

import numpy as np

from linkwise.errors import DtypeError


def flag(name: str, value: Any) -> bool:
    """The value of an option that is true or false.

    Args:
        name: of the option, for the message.
        value: what was given.

    Raises:
        DtypeError: the value is neither a bool nor a ``numpy.bool_``.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(cast(bool, value))
    raise DtypeError(f"{name}: expected True or False, got {reprlib.repr(value)}")


def flag_or_none(name: str, value: Any) -> bool | None:
    """The same for an option that may be None."""
    return None if value is None else flag(name, value)
