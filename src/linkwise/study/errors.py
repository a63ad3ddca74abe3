"""What can be wrong with a study, said in one line."""

from __future__ import annotations

import importlib
from types import ModuleType

from linkwise.errors import LinkwiseError

EXTRA = "cluster"


class StudyError(LinkwiseError, ValueError):
    """A study or its store is wrong; the message names the entry, what was expected and what came."""


class StoppedError(LinkwiseError, RuntimeError):
    """A run stopped before its end (a full disk, a lost cluster); the message says how to go on."""


class MissingExtraError(LinkwiseError, ImportError):
    """A package of an extra is not installed; the message says which command installs it."""


def needed(module: str) -> ModuleType:
    """A module of an optional package, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise MissingExtraError(
            f"studies need {package}: pip install 'linkwise[{EXTRA}]' ({error})"
        ) from None
