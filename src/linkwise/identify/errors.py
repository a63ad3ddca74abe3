"""The errors and warnings of identification."""

from __future__ import annotations

import importlib
from types import ModuleType

from linkwise.errors import LinkwiseError


class LogError(LinkwiseError, ValueError):
    """A recording is wrong; the message names the file, the line or column, and the reason."""


class IdentificationError(LinkwiseError, ArithmeticError):
    """Parameters cannot be computed from this recording; the message says why."""


class IdentificationWarning(UserWarning):
    """Parameters were computed, but the recording or the robot makes them doubtful."""


class MissingExtraError(LinkwiseError, ImportError):
    """A package that is not installed is needed; the message names the extra that brings it."""


def require(module: str, extra: str) -> ModuleType:
    """Import a package of an extra, or say which one to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"this needs the package {package!r}; install it with: pip install 'linkwise[{extra}]'"
        ) from error
