"""A report: sections with text, tables and figures in one self-contained HTML file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Protocol

from linkwise.arguments.flags import flag
from linkwise.core.foreign import file_name
from linkwise.files import outputs
from linkwise.report.svg import escape
from linkwise.version import __version__


@dataclass(frozen=True)
class Figure:
    """An SVG drawing with a file name and a caption."""

    name: str
    svg: str
    caption: str = ""
    legend: str = ""

    def html(self) -> str:
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f"<figure>{self.legend}{self.svg}{caption}</figure>"

    def file(self) -> str:
        """Contents of a stand-alone SVG file: explicit size and colours, no script."""
        drawing = re.sub(r"<script.*?</script>", "", self.svg, flags=re.DOTALL)
        return _with_size(re.sub(r"var\(--\w+,(#\w+)\)", r"\1", drawing))


@dataclass(frozen=True)
class HtmlTable:
    """Rows of text; columns whose name starts with ">" are right-aligned numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()

    def html(self) -> str:
        right = [column.startswith(">") for column in self.columns]
        head = "".join(
            _cell("th", column.removeprefix(">"), r) for column, r in zip(self.columns, right, strict=True)
        )
        body = "".join(
            f"<tr>{''.join(_cell('td', cell, r) for cell, r in zip(row, right, strict=True))}</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p class=note>{escape(note)}</p>" for note in self.notes)
        head = f"<thead><tr>{head}</tr></thead>" if any(self.columns) else ""
        return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>{notes}'


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str

    def html(self) -> str:
        return f"<p>{escape(self.words)}</p>"


@dataclass(frozen=True)
class Raw:
    """HTML made by this package."""

    text: str

    def html(self) -> str:
        return self.text


@dataclass(frozen=True)
class Commands:
    """What to type, each below the words that say what for, with a button that copies it."""

    rows: Sequence[tuple[str, str]]

    def html(self) -> str:
        return "".join(
            f'<div class="command"><p>{escape(words)}</p><pre tabindex="0"><code>{escape(typed)}</code></pre>'
            f'<button type="button" class="copy" aria-label="Copy: {escape(typed)}">Copy</button></div>'
            for words, typed in self.rows
        )


@dataclass(frozen=True)
class Framed:
    """Another page inside this one, of its own style and script."""

    title: str
    page: str
    height: int = 560

    def html(self) -> str:
        return (
            f'<iframe class="framed" title="{escape(self.title)}" style="height:{self.height}px" '
            f'loading="lazy" srcdoc="{escape(self.page)}"></iframe>'
        )


@dataclass(frozen=True)
class Warned:
    """A paragraph that should be noticed."""

    words: str

    def html(self) -> str:
        return f'<p class="warn">⚠ {escape(self.words)}</p>'


@dataclass(frozen=True)
class Grid:
    """Small figures side by side, below each other in a narrow window."""

    parts: Sequence[Figure]

    def html(self) -> str:
        return f'<div class="grid">{"".join(part.html() for part in self.parts)}</div>'


class Part(Protocol):
    """What a section contains."""

    def html(self) -> str: ...


@dataclass(frozen=True)
class Fold:
    """Contents under a heading that can be opened."""

    title: str
    parts: Sequence[Part]
    opened: bool = False

    def __post_init__(self) -> None:
        flag("opened", self.opened)

    def html(self) -> str:
        inside = "".join(part.html() for part in self.parts)
        start = '<details class="fold" open>' if self.opened else '<details class="fold">'
        return f"{start}<summary><h3>{escape(self.title)}</h3></summary>{inside}</details>"


@dataclass(frozen=True)
class Section:
    """A heading and its contents; ``folded``: the reader opens it."""

    title: str
    parts: Sequence[Part]
    folded: bool = False

    def __post_init__(self) -> None:
        flag("folded", self.folded)

    def html(self, number: int) -> str:
        inside, title = "".join(part.html() for part in self.parts), f"<h2>{escape(self.title)}</h2>"
        if self.folded:
            inside, title = f"<details><summary>{title}</summary>{inside}</details>", ""
        return f'<section id="s{number}">{title}{inside}</section>'

    @property
    def figures(self) -> list[Figure]:
        return _figures(self.parts)


def _figures(parts: Sequence[object]) -> list[Figure]:
    """All figures, also those in folds and grids."""
    figures: list[Figure] = []
    for part in parts:
        if isinstance(part, Figure):
            figures.append(part)
        elif isinstance(part, (Fold, Grid)):
            figures += _figures(part.parts)
    return figures


@dataclass
class Report:
    """A page of sections. ``write`` saves it; its figures can be saved as files too."""

    title: str
    subtitle: str = ""
    sections: list[Section] = field(default_factory=list)

    def add(self, section: Section) -> None:
        self.sections.append(section)

    def html(self) -> str:
        """The page as HTML with style, script and figures embedded."""
        style, script = (_asset(name) for name in ("style.css", "script.js"))
        links = "".join(f'<a href="#s{k}">{escape(s.title)}</a>' for k, s in enumerate(self.sections))
        body = "".join(section.html(k) for k, section in enumerate(self.sections))
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{style}</style></head><body>"
            f"<header><h1>{escape(self.title)}</h1><p>{escape(self.subtitle)}</p><nav>{links}</nav></header>"
            f"<main>{body}</main><footer>made by linkwise {__version__}</footer>"
            f"<script>{script}</script></body></html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; it appears whole or not at all."""
        target = Path(path)
        outputs.write(target, self.html())
        return target

    def write_figures(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every figure as an SVG file of its own."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        written = []
        for figure in (figure for section in self.sections for figure in section.figures):
            target = place / f"{file_name(figure.name)}.svg"
            outputs.write(target, figure.file())
            written.append(target)
        return written


def _cell(tag: str, content: object, right: bool) -> str:
    return f"<{tag}{' class=n' if right else ''}>{escape(content)}</{tag}>"


def _with_size(drawing: str) -> str:
    """Add an explicit size, which programs other than browsers need."""
    size = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', drawing)
    if size is None:
        return drawing
    return drawing.replace("<svg ", f'<svg width="{size[1]}" height="{size[2]}" ', 1)


def _asset(name: str) -> str:
    return resources.files("linkwise.report").joinpath(name).read_text(encoding="utf-8").strip()
