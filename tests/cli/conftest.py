"""Runs commands in this process, as a pipe sees them."""

import json
from dataclasses import dataclass

import pytest
from widths import WIDTHS, check_width

from linkwise.cli import main
from linkwise.cli.support import layout


@dataclass(frozen=True)
class Ran:
    """What a command left: exit status, standard output, standard error."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    def refused(self) -> str:
        """The one line of a refusal: exit status 2, nothing but that line."""
        assert self.status == 2, self.err
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("linkwise: ")
        assert "Traceback" not in self.err
        return self.err


@pytest.fixture
def linkwise(capsys, monkeypatch):
    """Call it like the command: ``linkwise("info", "panda").out``. What it shows must fit terminals of every width."""
    lines, prose = layout.lines, layout.prose

    def checked_lines(table, width, **style):
        whole = "\n".join(lines(table, None))
        for each in WIDTHS:
            check_width(lines(table, each), each, whole)
        return lines(table, width, **style)

    def checked_prose(text, width):
        for each in WIDTHS:
            check_width(prose(text, each).split("\n"), each, text)
        return prose(text, width)

    monkeypatch.setattr(layout, "lines", checked_lines)
    monkeypatch.setattr(layout, "prose", checked_prose)

    def run(*arguments: object) -> Ran:
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(status, said.out, said.err)

    return run
