"""Heat map of a correlation matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.report.svg import FAINT, FONT, GRID, coordinate, escape

LEAST = 0.05  # smaller entries are not visible and left out
POSITIVE, NEGATIVE = "#0072b2", "#d55e00"


def heat_map(matrix: np.ndarray, labels: Sequence[str], *, width: float = 760) -> str:
    """An SVG picture of a matrix with entries from −1 to 1: blue is positive, orange negative, full colour is ±1.

    Args:
        matrix: shape (n, n).
        labels: of rows and columns, n texts.
        width: [pixels].
    """
    n = len(labels)
    left = min(16 + 6 * max((len(name) for name in labels), default=0), int(width) // 3)
    cell = min((width - left - 10) / max(n, 1), 22.0)
    height = n * cell + 8
    parts = [
        f'<rect x="{left}" y="4" width="{coordinate(n * cell)}" height="{coordinate(n * cell)}" fill="none" '
        f'stroke="{GRID}"/>'
    ]
    step = max(1, round(11 / cell)) if cell < 11 else 1  # omit labels that would overlap
    for i, name in enumerate(labels):
        if i % step == 0:
            parts.append(
                f'<text x="{left - 6}" y="{coordinate(4 + (i + 0.5) * cell)}" dy=".32em" text-anchor="end" '
                f'fill="{FAINT}">{escape(name)}</text>'
            )
        parts += [
            _cell(left + j * cell, 4 + i * cell, cell, float(matrix[i, j]), f"{name} and {labels[j]}")
            for j in range(n)
            if abs(matrix[i, j]) >= LEAST
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heat" viewBox="0 0 {width:g} {coordinate(height)}" role="img" '
        f'style="{FONT};font-size:{min(11.0, max(cell * step * 0.8, 6.0)):.1f}px">{"".join(parts)}</svg>'
    )


def _cell(x: float, y: float, size: float, value: float, words: str) -> str:
    tint = POSITIVE if value > 0 else NEGATIVE
    where = f'x="{coordinate(x)}" y="{coordinate(y)}" width="{coordinate(size)}" height="{coordinate(size)}"'
    faint = f'<rect {where} fill="{tint}" opacity="{min(abs(value), 1.0):.2f}"'
    if abs(value) < 0.3:  # too small to list
        return f"{faint}/>"
    return f"{faint}><title>{escape(words)}: {value:.2f}</title></rect>"
