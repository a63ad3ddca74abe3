"""Figures of a report as one drawing: shown by notebooks, saved as an SVG file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from linkwise import outputs
from linkwise.errors import LinkwiseError
from linkwise.report.page import Figure
from linkwise.report.plots import Legend
from linkwise.report.svg import FONT, escape

WIDTH = 760
LINE, LETTER = 20, 7.0  # height of a line of text, width of a letter
INK = "#1c2430"
_SIZE = re.compile(r'<svg width="([0-9.]+)" height="([0-9.]+)" ')


class Plot:
    """One or several figures below each other. A notebook shows it; ``save`` writes an SVG file.

    Args:
        figures: what is shown, from top to bottom.
        title: text of ``repr``.
    """

    def __init__(self, figures: Sequence[Figure], title: str):
        self.figures = tuple(figures)
        self.title = title

    @property
    def svg(self) -> str:
        """The drawing as SVG text, with a white background, readable in light and dark notebooks."""
        parts, y, width = [], 0.0, 0.0
        for figure in self.figures:
            text, y = _heading(figure, y)
            drawing = figure.file()
            found = _SIZE.search(drawing)
            assert found is not None
            drawing = drawing.replace("<svg ", f'<svg y="{y:g}" ', 1)
            parts += [*text, drawing]
            y, width = y + float(found[2]), max(width, float(found[1]))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{y:g}" viewBox="0 0 {width:g} {y:g}" '
            f'style="{FONT};font-size:12px"><title>{escape(self.title)}</title>'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing as an .svg file, which appears whole or not at all."""
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise LinkwiseError(f"{target}: a plot is saved as .svg, got the ending {target.suffix!r}")
        outputs.write(target, self.svg + "\n")
        return target

    def __repr__(self) -> str:
        return f"<Plot: {self.title}; a notebook shows it, .save('plot.svg') writes it>"


def _heading(figure: Figure, y: float) -> tuple[list[str], float]:
    """Caption and legend of a figure, and where the drawing begins."""
    parts, x = [], 10.0
    if figure.caption:
        y += LINE
        parts.append(
            f'<text x="10" y="{y - 5:g}" font-weight="600" fill="{INK}">{escape(figure.caption)}</text>'
        )
    keys = figure.legend.keys if isinstance(figure.legend, Legend) else []
    if keys:
        y += LINE
    for name, tint in keys:
        needed = 26 + LETTER * len(name)
        if x > 10.0 and x + needed > WIDTH:
            x, y = 10.0, y + LINE
        parts.append(
            f'<rect x="{x:g}" y="{y - 14:g}" width="10" height="10" rx="2" fill="{tint}"/>'
            f'<text x="{x + 15:g}" y="{y - 5:g}" fill="{INK}">{escape(name)}</text>'
        )
        x += needed
    return parts, y
