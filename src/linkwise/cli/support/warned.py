"""Warnings on the command line: one line each on standard error, each once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import click

from linkwise.core import foreign


def show_warnings(caught: Sequence[warnings.WarningMessage]) -> None:
    """Print the caught warnings, without those for programmers only."""
    seen = dict.fromkeys(
        " ".join(str(warning.message).split()) for warning in caught if _concerns_people(warning)
    )
    for message in seen:
        click.echo(f"linkwise: warning: {foreign.line(message)}", err=True)


def _concerns_people(warning: warnings.WarningMessage) -> bool:
    return not issubclass(warning.category, (DeprecationWarning, ImportWarning, ResourceWarning))
