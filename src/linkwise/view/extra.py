"""Packages that only the 3-D page needs."""

from __future__ import annotations

import importlib
from types import ModuleType

from linkwise.errors import LinkwiseError


class MissingExtraError(LinkwiseError, ImportError):
    """A package of an extra is not installed; the message says which command installs it."""


def needed(package: str, extra: str = "view") -> ModuleType:
    """A package, or an error that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{package} is not installed: pip install 'linkwise[{extra}]' ({error})"
        ) from error
