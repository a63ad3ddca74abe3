"""Outputs of a command: checked before the work, and kept apart from messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import click
import numpy as np

from linkwise.core import foreign
from linkwise.files import outputs
from linkwise.files.tables import render

_KEY = "linkwise.says_on_standard_error"


def check_targets(*paths: str | os.PathLike[str] | None) -> None:
    """Raise for an output that cannot be written, before any work is done for it.

    Where one of them goes to standard output, all other messages go to standard error.
    """
    context = click.get_current_context()
    to_stdout = [path for path in paths if outputs.is_standard_output(path)]
    if to_stdout and (len(to_stdout) > 1 or context.params.get("as_json")):
        what = "--json" if len(to_stdout) == 1 else str(to_stdout[1])
        raise click.UsageError(f"{to_stdout[0]} is standard output, and {what} goes there too")
    outputs.check(*(path for path in paths if path != "-"))
    context.meta[_KEY] = bool(to_stdout)


def says_on_standard_error() -> bool:
    """Whether standard output is taken by a table or a page, so that messages go to standard error."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_KEY, False)


def write(path: str, text: str) -> None:
    """Write an output; ``-`` is standard output."""
    if path == "-":
        click.echo(foreign.terminal(text) if sys.stdout.isatty() else text, nl=False)
    else:
        outputs.write(path, text)


def write_table(path: str | None, columns: Mapping[str, np.ndarray]) -> None:
    """Write named columns with all digits; None is standard output too."""
    write("-" if path is None else path, render(columns))
