"""Runs commands in this process, as a pipe sees them."""

import json
from dataclasses import dataclass

import pytest

from linkwise.cli import main


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
def linkwise(capsys):
    """Call it like the command: ``linkwise("info", "panda").out``."""

    def run(*arguments: object) -> Ran:
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(status, said.out, said.err)

    return run
