"""Errors of GPUs."""

from __future__ import annotations

from linkwise.errors import LinkwiseError


class DeviceError(LinkwiseError, RuntimeError):
    """A GPU, its driver, its compiler or its memory is missing or fails; the message says which, in one line."""
