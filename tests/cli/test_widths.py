"""Tables, texts and help at 60, 80 and 120 columns: nothing is wider, and no word is broken."""

import importlib
import io
import sys
from pathlib import Path

import click
import pytest
from widths import WIDTHS, check_width, words

import linkwise as lw
from linkwise.cli.app import COMMANDS
from linkwise.cli.app import linkwise as group
from linkwise.cli.support import layout, output
from linkwise.cli.support.headings import OTHERS, REQUIRED, Command
from linkwise.records.table import Table

TABLES = {
    "small": Table("Title", ["name", ">mass [kg]"], [["a", "1.5"], ["b", "2"]], ["a note"]),
    "many columns": Table(
        "Joints", ["name", *(f">column number {k}" for k in range(12))], [["waist", *"123456789012"]] * 2
    ),
    "repeated first column": Table(
        "Checks",
        ["function", "by", ">worst difference", ">allowed", "verdict"],
        [["forward_dynamics", "preconditioned_conjugate_gradient", "1.0e-16", "1e-11", "agrees"]]
        + [["forward_dynamics", "compound_link", "1.0e-16", "1e-11", "agrees"]],
        ["a very long note " * 12],
    ),
    "a name longer than the line": Table(
        "T", ["name", "type", ">lower"], [["left_" * 30, "revolute", "1"], ["j", "", "2"]]
    ),
    "prose": Table("T", ["what", "why"], [["x", "because of many words " * 9], ["y", "no"]]),
    "wide characters": Table("T", ["名前", ">値"], [["関節" * 20, "1"], ["é" * 30, "2"]]),
    "no rows": Table("Nothing", ["name", ">value"], []),
    "one column": Table("", ["name"], [["long_" * 30]]),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [20, *WIDTHS])
def test_a_table_fits_and_keeps_its_words(name, width):
    table = TABLES[name]
    whole = "\n".join(layout.lines(table, None))
    written = layout.lines(table, width)
    check_width(written, width, whole)
    cells = {word.rstrip(",") for row in table.rows for cell in row for word in cell.split()}
    assert cells <= words("\n".join(written))
    if all(layout.shown_width(line) <= width for line in whole.split("\n")):
        assert "\n".join(written) == whole


def test_rows_stay_told_apart():
    written = layout.lines(TABLES["repeated first column"], 70)
    assert written[1:5] == [
        "  function",
        "    by                                      worst  allowed  verdict",
        "                                       difference",
        "  forward_dynamics",
    ]
    divided = layout.lines(TABLES["many columns"], 60)
    assert sum(line.startswith("  waist") for line in divided) == 4


@pytest.fixture(scope="module")
def robots(tmp_path_factory) -> dict[str, Path]:
    """Files of robots whose tables are hard to show: long names, sixty joints."""
    folder = tmp_path_factory.mktemp("robots")
    path = folder / "long.urdf"
    lw.save(lw.load("two_link"), path)
    text = path.read_text()
    for name in ("joint1", "joint2"):
        text = text.replace(f'"{name}"', f'"left_front_{name}_of_the_first_extremely_long_arm_assembly"')
    path.write_text(text)
    many = folder / "many.toml"
    lw.save(lw.general_chain(60), many)
    return {"LONG": path, "MANY": many}


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "LONG", "--base", "floating"],
        ["info", "MANY"],
        ["check", "LONG", "--states", "2"],
        ["inverse", "LONG", "--trajectory", "quintic", "--points", "5", "--to", "1,1", "--out", "/dev/null"],
        ["simulate", "LONG", "--duration", "0.1", "--out", "/dev/null"],
        ["operations", "LONG", "--function", "inverse_dynamics", "--stages"],
    ],
    ids=" ".join,
)
def test_long_names_and_many_joints_fit(linkwise, robots, arguments):
    """The fixture lays out everything that is shown at every width."""
    ran = linkwise(*(robots.get(word, word) for word in arguments))
    assert ran.status == 0, ran.err


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits(linkwise, monkeypatch, name):
    arguments = [name, "--help"] if name else ["--help"]
    monkeypatch.setenv("COLUMNS", "400")
    whole = words(linkwise(*arguments).out)
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        written = linkwise(*arguments).out
        for line in written.split("\n"):
            assert len(line) <= width, line
        broken = words(written) - whole - {"\\"}
        assert not broken, f"{width}: {broken}"


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_under_headings_and_required_ones_first(name):
    command = importlib.import_module(f"linkwise.cli.{name}").command
    assert isinstance(command, Command)
    context = click.Context(command, parent=click.Context(group))
    grouped = command.grouped(context)
    assert next(iter(grouped)) == REQUIRED
    assert sum(map(len, grouped.values())) == len(
        [option for option in command.get_params(context) if isinstance(option, click.Option)]
    )
    assert len(grouped[OTHERS]) <= 4, f"{name}: give these options a heading: {grouped[OTHERS]}"
    for heading, listed in command.headings.items():
        known = {option.lstrip("-") for each in command.get_params(context) for option in each.opts}
        assert set(listed.split()) <= known | {"open"}, f"{name}: {heading} names an option that is not there"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_ends_at_the_total(monkeypatch):
    """The last thing drawn is 16/16, also where fewer steps were needed than foreseen."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress("work", 16) as advance:
        for _ in range(13):
            advance()
    assert "16/16" in terminal.getvalue()


def test_a_terminal_is_asked_for_its_width_and_a_pipe_has_none(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert layout.width_of(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "77")
    assert layout.width_of(io.StringIO()) == 77
    monkeypatch.setenv("COLUMNS", "wide")
    assert layout.width_of(io.StringIO()) is None
