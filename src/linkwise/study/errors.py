"""Errors of studies, each with a message of one line."""

from __future__ import annotations

from types import ModuleType

from linkwise import errors
from linkwise.errors import LinkwiseError

EXTRA = "cluster"


class StudyError(LinkwiseError, ValueError):
    """A study or its store is wrong; the message names the entry, what was expected and what came."""


class StoppedError(LinkwiseError, RuntimeError):
    """A run stopped before its end (a full disk, a lost cluster, a signal); the message says how to go on.

    Args:
        message: one line.
        signal: number of the signal that stopped it, if one did.
    """

    def __init__(self, message: str, signal: int | None = None):
        super().__init__(message)
        self.signal = signal

    def __reduce__(self):
        return type(self), (self.args[0], self.signal)


class StudyWarning(UserWarning):
    """Something about a store that was put right, such as damaged files that were computed again."""


def needed(module: str) -> ModuleType:
    """A module of an optional package, or an error that says how to get it."""
    return errors.needed(module, EXTRA)
