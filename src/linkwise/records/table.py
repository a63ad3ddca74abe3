"""Tables and paragraphs, and how they look in a page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

WIDTH = 120  # of a page's prose


@dataclass(frozen=True)
class Table:
    """Rows of text under a title. ``columns`` starting with ">" are aligned to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def plain(self) -> Table:
        """Without Markdown's marks in the cells: for a terminal."""
        rows = [[cell.replace("**", "").replace("`", "") for cell in row] for row in self.rows]
        return replace(self, rows=rows)

    def markdown(self) -> str:
        """The table and its notes; the title is for the page to place."""
        names = [column.removeprefix(">") for column in self.columns]
        rules = ["--:" if column.startswith(">") else "---" for column in self.columns]
        lines = [_line(names), "|" + "|".join(rules) + "|", *(_line(row) for row in self.rows)]
        if self.notes:
            lines += ["", *(paragraph(note) for note in self.notes)]
        return "\n".join(lines)


def paragraph(text: str) -> str:
    """Words in lines of the page's width, however they were broken before."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
