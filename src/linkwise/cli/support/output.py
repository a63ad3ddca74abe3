"""Output of the commands: tables in colour on a terminal, plain text in a pipe, JSON on request."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import IO, Any

import click

from linkwise.cli.support import headings, layout
from linkwise.cli.support.written import says_on_standard_error
from linkwise.core import foreign
from linkwise.records.table import Table

__all__ = [
    "Table",
    "fraction_done",
    "jsonable",
    "number",
    "plain",
    "progress",
    "say",
    "say_json",
    "say_verbatim",
    "show",
    "status",
]


def show(table: Table) -> None:
    """Print a table that fits the terminal: with a rule and colour there, as plain text in a pipe."""
    stream, table = _stream(), _readable(table)
    if stream.isatty():
        written = layout.lines(table, layout.width_of(stream), rule="─", style=_style)
        text = "\n".join([click.style(written[0], bold=bool(table.title)), *written[1:]]) + "\n"
        click.echo(text, file=stream)
    else:
        click.echo(plain(table), file=stream)


def say(text: str = "") -> None:
    """Print plain text; on a terminal lines are broken between words."""
    stream = _stream()
    click.echo(layout.prose(foreign.terminal(text), layout.width_of(stream)), file=stream)


def say_verbatim(text: str) -> None:
    """Print text whose lines must stay as they are: source code, Markdown."""
    click.echo(foreign.terminal(text), file=_stream())


def _stream() -> IO[str]:
    return sys.stderr if says_on_standard_error() else sys.stdout


def say_json(data: Any) -> None:
    """Print data as JSON; numbers that are not finite become null, arrays become lists."""
    lacking = not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    click.echo(foreign.json_text(jsonable(data), only_ascii=lacking, indent=2))


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
    """The table as aligned text; no wider than the variable COLUMNS says, if it is set."""
    return "\n".join(layout.lines(_readable(table), layout.width_of(None))) + "\n"


def _readable(table: Table) -> Table:
    """The table with names from files as people can read them."""
    return replace(
        table,
        title=foreign.line(table.title),
        columns=[foreign.line(name) for name in table.columns],
        rows=[[foreign.line(cell) for cell in row] for row in table.rows],
        notes=[foreign.line(note) for note in table.notes],
    )


def number(value: float, digits: int = 4) -> str:
    """A number for reading: four significant digits, no trailing zeros, infinities as a sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}g}"


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error while the block runs; quiet in a pipe. The block calls what it is given."""
    if not _shows_progress():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(_unmarked(what), total=total)
        yield lambda: bar.advance(task)
        bar.update(
            task, completed=total, refresh=True
        )  # fewer steps than foreseen: the work is done all the same


@contextlib.contextmanager
def fraction_done(what: str) -> Iterator[Callable[[str, float], None] | None]:
    """A progress bar with the time that is left, for work of which the fraction done is known; quiet in a pipe. The
    block calls what it is given with a text and the fraction; None: nothing is shown."""
    if not _shows_progress():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(_unmarked(what), total=1.0)

        def advance(words: str, fraction: float) -> None:
            if fraction == 0.0 and words:
                console.print(_unmarked(f"{words} (Ctrl+C stops it)"), highlight=False)
            bar.update(task, description=_unmarked(words), completed=fraction)

        yield advance


@contextlib.contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done; quiet in a pipe. The block calls what it is given."""
    if not _shows_progress():
        yield lambda words: None
        return
    from rich.console import Console

    with Console(stderr=True).status(_unmarked(what)) as shown:
        yield lambda words: shown.update(_unmarked(words))


def _shows_progress() -> bool:
    """On a terminal, unless ``--quiet`` was typed."""
    return sys.stderr.isatty() and not headings.is_quiet()


def _unmarked(text: str) -> str:
    """For rich, which reads colours and links between brackets."""
    from rich.markup import escape

    return escape(foreign.line(text))


_COLOURS: dict[str, dict[str, Any]] = {
    "agrees": {"fg": "green"},
    "DISAGREES": {"fg": "red", "bold": True},
    "refuses": {"fg": "yellow"},
}


def _style(cell: str) -> layout.Style:
    """Verdicts have a colour; everything else stays as it is."""
    return partial(click.style, **_COLOURS[cell]) if cell in _COLOURS else str
