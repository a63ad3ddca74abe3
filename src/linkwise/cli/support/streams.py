"""Standard streams whose encoding has not all letters, such as ASCII: letters are spelt instead of ending the command.

click writes UTF-8 to a stream that says it is ASCII, and Python ends with an error at the first ``²``. Here both go
through ``foreign.spelt_letters``: ``m/s²`` is written as ``m/s^2``, and what has no spelling as an escape.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

from linkwise.core import foreign

SPELT = "linkwise.spelt"  # name of the handler of characters that an encoding does not have
_HANDLED_BY_PYTHON = ("strict", "surrogateescape", "backslashreplace")  # not chosen by the user


@contextlib.contextmanager
def all_letters_writable() -> Iterator[None]:
    """Every text can be written to standard output and standard error in the block."""
    codecs.register_error(SPELT, foreign.spelt_letters)
    before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    changed: dict[str, Spelling] = {}
    for name, stream in before.items():
        if _lacks_letters(stream):
            stream.flush()
            changed[name] = Spelling(stream)
            setattr(sys, name, changed[name])
    try:
        yield
    finally:
        for name, stream in changed.items():
            setattr(sys, name, before[name])
            with contextlib.suppress(OSError, ValueError):  # a full disk; the error was reported before
                stream.flush()
            with contextlib.suppress(OSError, ValueError):
                stream.detach()


def _lacks_letters(stream: Any) -> bool:
    """Whether this is a stream of bytes whose encoding is not one of Unicode."""
    if not isinstance(stream, io.TextIOWrapper):
        return False
    return not codecs.lookup(stream.encoding).name.startswith(("utf-", "utf_"))


class Spelling(io.TextIOWrapper):
    """A stream over the bytes of another one.

    Args:
        stream: the other one.
    """

    def __init__(self, stream: io.TextIOWrapper):
        handler = SPELT if stream.errors in _HANDLED_BY_PYTHON else stream.errors
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors=handler,
            line_buffering=stream.line_buffering,
            write_through=True,
        )

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the stream; Latin-1 instead of ASCII, as click replaces streams that say ASCII by UTF-8."""
        own = super().encoding
        return "latin-1" if codecs.lookup(own).name == "ascii" else own
