"""Errors of studies, each with a message of one line."""

from __future__ import annotations

from types import ModuleType

from linkwise import errors
from linkwise.errors import LinkwiseError

EXTRA = "cluster"


class StudyError(LinkwiseError, ValueError):
    """A study or its store is wrong; the message names the entry, what was expected and what came."""


class StoppedError(LinkwiseError, RuntimeError):
    """A run stopped before its end (a full disk, a lost cluster); the message says how to go on."""


class StudyWarning(UserWarning):
    """Something about a store that was put right, such as damaged files that were computed again."""


def needed(module: str) -> ModuleType:
    """A module of an optional package, or an error that says how to get it."""
    return errors.needed(module, EXTRA)
