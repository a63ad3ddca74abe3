"""How results are printed: a title and a table, as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from linkwise.core import foreign

MOST_ROWS = 20
_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"


@dataclass(frozen=True)
class Summary:
    """What is printed; columns whose name starts with ">" are right-aligned."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Lines for a terminal."""
        shown = [[_cell(value) for value in row] for row in self._shown()]
        heads = [column.removeprefix(">") for column in self.columns]
        widths = [max([len(head), *(len(row[k]) for row in shown)]) for k, head in enumerate(heads)]
        lines = [self._line(row, widths) for row in ([heads] if any(heads) else []) + shown]
        return "\n".join(
            [
                foreign.line(self.title),
                *(f"  {line}".rstrip() for line in lines),
                *(f"  {foreign.line(x)}" for x in self._notes()),
            ]
        )

    def html(self) -> str:
        """A table for a notebook."""
        heads = self._html_row("th", [column.removeprefix(">") for column in self.columns])
        body = "".join(self._html_row("td", row) for row in self._shown())
        notes = "".join(f"<div>{_escaped(note)}</div>" for note in self._notes())
        return (
            f"<div><b>{_escaped(self.title)}</b><table style='{_STYLE}'><thead>{heads}</thead>"
            f"<tbody>{body}</tbody></table>{notes}</div>"
        )

    def _html_row(self, tag: str, row: Sequence[object]) -> str:
        ways = ["right" if column.startswith(">") else "left" for column in self.columns]
        cells = [
            f"<{tag} style='text-align:{way};padding:1px 8px'>{_escaped(x)}</{tag}>"
            for x, way in zip(row, ways, strict=True)
        ]
        return f"<tr>{''.join(cells)}</tr>"

    def _shown(self) -> Sequence[Sequence[object]]:
        return self.rows[:MOST_ROWS]

    def _notes(self) -> list[str]:
        left = len(self.rows) - MOST_ROWS
        return [*([f"… and {left} more"] if left > 0 else []), *self.notes]

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        return "  ".join(
            text.rjust(width) if column.startswith(">") else text.ljust(width)
            for text, width, column in zip(row, widths, self.columns, strict=True)
        )


class Summarised:
    """A base for results: ``repr`` and notebooks show ``_summary``, by default a row for every attribute."""

    __slots__ = ()

    def _summary(self) -> Summary:
        names = [each.name for each in fields(self)] if is_dataclass(self) else list(vars(self))
        rows = [[key, described(getattr(self, key))] for key in names if not key.startswith("_")]
        return Summary(type(self).__name__, ("", ""), rows)

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()


def described(value: Any) -> str:
    """A value in a few words: numbers as they are, arrays by shape and range, other results by their title."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (bool, np.bool_, str)) or value is None:
        return str(value)
    if isinstance(value, (int, float, np.number)):
        return _cell(value)
    if isinstance(value, Mapping):
        return f"{len(value)} by name: {_short(', '.join(map(str, value)))}" if value else "none"
    if isinstance(value, (list, tuple)):
        return f"{len(value)}: {_short(', '.join(map(described, value[:6])))}" if value else "none"
    if isinstance(value, Summarised):
        return value._summary().title
    return _short(
        repr(value).splitlines()[0] if type(value).__repr__ is not object.__repr__ else type(value).__name__
    )


def _array(value: np.ndarray) -> str:
    if value.ndim == 0:
        return _cell(value[()])
    if value.ndim == 1 and value.size <= 8 and value.dtype.kind in "biuf":
        return ", ".join(_cell(x) for x in value.tolist())
    size = " × ".join(map(str, value.shape))
    if value.dtype.kind in "iuf" and value.size:
        return f"{size} numbers, {_cell(np.nanmin(value))} … {_cell(np.nanmax(value))}"
    return f"{size} of {value.dtype}"


def _cell(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.4g}"
    return foreign.line(str(value))


def _short(text: str, most: int = 70) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(value: object) -> str:
    return foreign.html_text(_cell(value))
