"""A plot in the panel with a time marker that moves while a motion is played.

The marker is a separate element on top of the plot, so that only a few characters change per frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.report.plots import LEFT, RIGHT, Line, legend, line_plot

WIDTH, HEIGHT = 460, 230
POINTS = 160


class Plot:
    """An SVG plot of lines over time in a viser panel."""

    def __init__(self, gui: Any):
        self.gui = gui
        self.picture = gui.add_html("")
        self.mark = gui.add_html("")
        self.duration = 1.0

    def draw(
        self, t: np.ndarray, values: np.ndarray, names: Sequence[str], label: str, limits: Sequence[Any] = ()
    ) -> None:
        """Draw one line per joint.

        Args:
            t: times [s], shape (rows,).
            values: shape (rows, n).
            names: of the joints.
            label: of the vertical axis.
            limits: (lower, upper) per joint.
        """
        rows = np.unique(np.linspace(0, len(t) - 1, min(len(t), POINTS)).round().astype(int))
        lines = [Line(name, values[rows, k]) for k, name in enumerate(names)]
        picture = line_plot(
            t[rows], lines, y_label=label, limits=limits, height=HEIGHT, width=WIDTH, hover=False
        )
        self.duration = float(t[-1])
        self.picture.content = (
            f'<div class="lw-plot" style="{_COLOURS}">{_STYLE}{legend(names)}{picture}</div>'
        )
        self.at(0.0)

    def at(self, moment: float) -> None:
        """Move the marker to this time [s]."""
        x = LEFT + moment / max(self.duration, 1e-9) * (WIDTH - LEFT - RIGHT)
        self.mark.content = (
            f'<div style="height:0;position:relative"><svg viewBox="0 0 {WIDTH} {HEIGHT}" style="{_OVER}">'
            f'<path d="M{x:.1f} 12V{HEIGHT - 40}" stroke="currentColor" stroke-width="1.5" opacity=".8"/></svg></div>'
        )

    def clear(self) -> None:
        self.picture.content = self.mark.content = ""


_COLOURS = (
    "--ink:currentColor;--faint:color-mix(in srgb,currentColor 60%,transparent);--grid:rgba(128,138,150,.25)"
)
_OVER = "position:absolute;left:0;bottom:0;width:100%;pointer-events:none"
_STYLE = (
    "<style>.lw-plot .legend{display:flex;flex-wrap:wrap;gap:0 .9em;font-size:.75em;padding:0 .8em}"
    ".lw-plot .key i{display:inline-block;width:.9em;height:.25em;margin-right:.35em;vertical-align:middle}"
    ".lw-plot svg{width:100%;display:block}</style>"
)
