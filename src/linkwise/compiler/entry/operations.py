"""The operations on memory that routines in the subset of ``emit.routines`` use, for editors and type checkers.

They exist in machine code only.
"""

from __future__ import annotations

from collections.abc import Callable


def inline(function: Callable[..., int]) -> Callable[..., int]:
    """A decorator: the function becomes part of those that call it."""
    return function


def load(address: int) -> int:
    """The 64-bit word at an address."""
    raise NotImplementedError


def load_int(address: int) -> int:
    """The 32-bit integer at an address."""
    raise NotImplementedError


def store(address: int, value: int) -> int:
    raise NotImplementedError


def stack(size: int) -> int:
    """The address of new memory, valid until the function returns; not to be used in a loop."""
    raise NotImplementedError


def call(function: int, *arguments: int) -> int:
    """Call a C function; its result as a 64-bit word."""
    raise NotImplementedError


def call_int(function: int, *arguments: int) -> int:
    """Call a C function that returns a 32-bit integer."""
    raise NotImplementedError


def call_double(function: int, argument: int, target: int) -> int:
    """Call a C function that returns a double, which is stored."""
    raise NotImplementedError


def copy_double(target: int, source: int) -> int:
    raise NotImplementedError


def copy_float(target: int, source: int) -> int:
    raise NotImplementedError


def float_to_double(target: int, source: int) -> int:
    raise NotImplementedError


def double_to_float(target: int, source: int) -> int:
    raise NotImplementedError


def int_to_double(target: int, source: int) -> int:
    raise NotImplementedError


def is_nan_double(address: int) -> int:
    raise NotImplementedError


def is_nan_float(address: int) -> int:
    raise NotImplementedError
