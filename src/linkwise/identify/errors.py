"""The errors and warnings of identification."""

from __future__ import annotations

from linkwise.errors import LinkwiseError
from linkwise.files.tables.table import TableError


class LogError(TableError):
    """A recording is wrong; the message names the file, the line or column, and the reason."""


class IdentificationError(LinkwiseError, ArithmeticError):
    """Parameters cannot be computed from this recording; the message says why."""


class IdentificationWarning(UserWarning):
    """Parameters were computed, but the recording or the robot makes them doubtful."""
