"""Text that fits a width: words are never broken.

A table that is too wide has its cells wrapped between words. If that is not enough, a first column that repeats
itself becomes lines above its rows, and the columns are divided among several tables that repeat those that tell the
rows apart. If one name is longer than the line, every row becomes a paragraph.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwise.records.table import Table

INDENT = 2
GAPS = (2, 1)  # blanks between columns: the second where the first does not fit
NARROWEST = 20  # columns; a terminal that says it has fewer does not know its width

Style = Callable[[str], str]
"""Adds colour to a cell that is padded already."""


def width_of(stream: IO[Any] | None) -> int | None:
    """Columns of what is written there: of the terminal, or as the variable COLUMNS says; None without a limit."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return max(NARROWEST, int(said))
    try:
        if stream is None or not stream.isatty():
            return None
        return max(NARROWEST, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return None


def shown_width(text: str) -> int:
    """Columns on the screen: combining marks take none, wide characters two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def wrapped(text: str, width: int | None, hanging: int = 0) -> list[str]:
    """Lines of at most ``width`` columns, broken between words; all but the first are indented by ``hanging``.

    Blanks at the beginning and between words are kept in a line that fits.
    """
    if width is None or shown_width(text) <= width:
        return [text]
    begin = " " * (len(text) - len(text.lstrip()))
    lines, line = [], begin
    for word in text.split():
        added = line + word if not line.strip() else f"{line} {word}"
        if line.strip() and shown_width(added) > width:
            lines.append(line)
            added = " " * (len(begin) + hanging) + word
        line = added
    return [*lines, line]


def prose(text: str, width: int | None) -> str:
    """Every line of a text, wrapped; what continues a line is indented."""
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, width, hanging=2))


@dataclass(frozen=True)
class _Column:
    """One column: cells without the heading's mark, widths."""

    cells: list[str]  # the heading is the first
    right: bool

    @property
    def natural(self) -> int:
        """Nothing is wrapped."""
        return max(map(shown_width, self.cells))

    @property
    def narrow(self) -> int:
        """Only the heading is wrapped."""
        return max(longest_word(self.cells[0]), *map(shown_width, self.cells[1:]), 0)

    @property
    def least(self) -> int:
        """The longest word."""
        return max(map(longest_word, self.cells))


def longest_word(text: str) -> int:
    return max(map(shown_width, text.split()), default=0)


def lines(
    table: Table, width: int | None, *, rule: str = "", style: Callable[[str], Style] | None = None
) -> list[str]:
    """The table as lines of at most ``width`` columns, as far as its words allow that.

    Args:
        table: title, columns, rows, notes.
        width: columns; None without a limit.
        rule: the character of a line under the headings; none by default.
        style: gives the colour of a cell from its text.
    """
    columns = [
        _Column([name.removeprefix(">"), *(row[k] for row in table.rows)], name.startswith(">"))
        for k, name in enumerate(table.columns)
    ]
    written = wrapped(table.title, width) if table.title else []
    for number, part in enumerate(_parts(columns, width)):
        if number:
            written.append("")
        written += _grid(part, rule, style) if part.columns else _paragraphs(columns, width)
    for note in table.notes:
        written += wrapped(" " * INDENT + note, width, hanging=INDENT)
    return written


@dataclass(frozen=True)
class _Part:
    """A table that fits, or nothing where rows become paragraphs."""

    columns: Sequence[_Column] = ()
    widths: Sequence[int] = ()
    gap: int = 0
    groups: _Column | None = None  # its cells are lines above the rows that have them


def _parts(columns: Sequence[_Column], width: int | None) -> list[_Part]:
    """The tables that a table is divided into; mostly one."""
    if width is None:
        return [_Part(columns, [column.natural for column in columns], GAPS[0])]
    keys = _keys(columns)
    for gap, grouped in ((GAPS[0], False), (GAPS[1], False), (GAPS[0], True)):
        if not grouped or keys > 1:
            parts = _divided([], columns[grouped:], width, gap, columns[0] if grouped else None, most=1)
            if parts:
                return parts
    for grouped in (True, False) if keys > 1 else (False,):
        for count in range(keys, grouped, -1):
            groups = columns[0] if grouped else None
            parts = _divided(columns[grouped:count], columns[count:], width, GAPS[0], groups)
            if parts:
                return parts
    return [_Part()]


def _keys(columns: Sequence[_Column]) -> int:
    """How many columns at the left tell the rows apart."""
    rows = len(columns[0].cells)
    for count in range(1, len(columns)):
        if len(set(zip(*(column.cells for column in columns[:count]), strict=True))) == rows:
            return count
    return 1


def _divided(
    keys: Sequence[_Column],
    others: Sequence[_Column],
    width: int,
    gap: int,
    groups: _Column | None,
    most: int | None = None,
) -> list[_Part]:
    """At most so many tables that fit, each with the key columns and some of the others; none where that fails."""
    parts: list[_Part] = []
    room = width - INDENT * (1 if groups is None else 2)
    while others and (most is None or len(parts) < most):
        for count in range(len(others), 0, -1):
            chosen = [*keys, *others[:count]]
            widths = _widths(chosen, room, gap)
            if widths is not None:
                parts.append(_Part(chosen, widths, gap, groups))
                others = others[count:]
                break
        else:
            return []
    return [] if others else parts


def _widths(columns: Sequence[_Column], width: int, gap: int) -> list[int] | None:
    """Widths with which the columns fit: headings are wrapped first, then the widest cells; None if none fit."""
    room = width - gap * (len(columns) - 1)
    if sum(column.least for column in columns) > room:
        return None
    widths = [column.natural for column in columns]
    if sum(widths) > room:
        widths = [column.narrow for column in columns]
    while sum(widths) > room:
        _, widest = max((w, k) for k, w in enumerate(widths) if w > columns[k].least)
        widths[widest] -= 1
    for k, column in enumerate(columns):  # headings stay whole where there is room
        if sum(widths) - widths[k] + column.natural <= room:
            widths[k] = column.natural
    return widths


def _grid(part: _Part, rule: str, style: Callable[[str], Style] | None) -> list[str]:
    """Aligned columns under their headings."""
    written, group = [], None
    indent = " " * INDENT * (1 if part.groups is None else 2)
    for row in range(len(part.columns[0].cells)):
        if part.groups is not None and part.groups.cells[row] != group:
            group = part.groups.cells[row]
            written.append(" " * INDENT + group)
        cells = [wrapped(column.cells[row], w) for column, w in zip(part.columns, part.widths, strict=True)]
        for k in range(max(map(len, cells))):
            line = indent
            for number, (cell, column, w) in enumerate(zip(cells, part.columns, part.widths, strict=True)):
                text = cell[k] if k < len(cell) else ""
                blank = " " * (w - shown_width(text))
                coloured = style(column.cells[row])(text) if style is not None and row and text else text
                line += " " * part.gap * bool(number)
                line += blank + coloured if column.right else coloured + blank
            written.append(line.rstrip())
        if rule and not row:
            written.append(indent + rule * (sum(part.widths) + part.gap * (len(part.widths) - 1)))
    return written


def _paragraphs(columns: Sequence[_Column], width: int | None) -> list[str]:
    """Every row as its name and a list of its other cells."""
    first, *others = columns
    written = []
    for row in range(1, len(first.cells)):
        written += wrapped(" " * INDENT + first.cells[row], width, hanging=INDENT)
        said = [f"{column.cells[0]} {column.cells[row]}" for column in others if column.cells[row]]
        written += wrapped(" " * 2 * INDENT + ", ".join(said), width) if said else []
    return written
