"""Output of the commands: tables in colour on a terminal, plain text in a pipe, JSON on request."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import click

from linkwise.cli.written import says_on_standard_error
from linkwise.records.table import Table

__all__ = ["Table", "jsonable", "number", "plain", "progress", "say", "say_json", "show", "status"]


def show(table: Table) -> None:
    """Print a table: with lines and colour on a terminal, as aligned columns in a pipe."""
    aside = says_on_standard_error()
    if (sys.stderr if aside else sys.stdout).isatty():
        _show_rich(table, stderr=aside)
    else:
        click.echo(plain(table), err=aside)


def say(text: str = "") -> None:
    """Print a line of plain text."""
    click.echo(text, err=says_on_standard_error())


def say_json(data: Any) -> None:
    """Print data as JSON; numbers that are not finite become null, arrays become lists."""
    click.echo(json.dumps(jsonable(data), indent=2, ensure_ascii=False))


def jsonable(data: Any) -> Any:
    """The same data in types that JSON has."""
    if isinstance(data, dict):
        return {str(key): jsonable(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [jsonable(value) for value in data]
    if hasattr(data, "tolist"):  # arrays and their scalars
        return jsonable(data.tolist())
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def plain(table: Table) -> str:
    """The table as aligned text."""
    headings = _headings(table)
    body = [[name for name, _ in headings], *table.rows]
    widths = [max(_width(row[k]) for row in body) for k in range(len(headings))]
    lines = [table.title] if table.title else []
    for row in body:
        cells = [_pad(cell, w, right) for cell, w, (_, right) in zip(row, widths, headings, strict=True)]
        lines.append(("  " + "  ".join(cells)).rstrip())
    lines += [f"  {note}" for note in table.notes]
    return "\n".join(lines) + "\n"


def number(value: float, digits: int = 4) -> str:
    """A number for reading: four significant digits, no trailing zeros, infinities as a sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}g}"


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error while the block runs; quiet in a pipe. The block calls what it is given."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


@contextlib.contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done; quiet in a pipe. The block calls what it is given."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as shown:
        yield lambda words: shown.update(words)


def _show_rich(table: Table, *, stderr: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=Text(table.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name, right in _headings(table):
        shown.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(cell, style=_style(cell)) for cell in row))
    console = Console(stderr=stderr)
    console.print(shown)
    for note in table.notes:
        console.print(Text(f"  {note}", style="dim"))


def _headings(table: Table) -> list[tuple[str, bool]]:
    """(name, aligned to the right) of each column."""
    return [(column.removeprefix(">"), column.startswith(">")) for column in table.columns]


def _style(cell: str) -> str:
    """Verdicts have a colour; everything else stays as it is."""
    return {"agrees": "green", "DISAGREES": "bold red", "refuses": "yellow"}.get(cell, "")


def _pad(text: str, width: int, right: bool) -> str:
    gap = " " * (width - _width(text))
    return gap + text if right else text + gap


def _width(text: str) -> int:
    """Columns on the screen: combining marks take none."""
    return sum(1 for character in text if not unicodedata.combining(character))
