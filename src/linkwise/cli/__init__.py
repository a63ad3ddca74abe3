"""The command line: ``linkwise COMMAND``. One small file per command, each imported when it is called."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit status: 0, 1 for "no, they disagree", 2 for bad input."""
    from linkwise.cli.app import run

    return run(arguments)
