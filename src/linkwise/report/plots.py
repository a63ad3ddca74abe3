"""Line plots and bar charts as SVG text, without any plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.core import foreign
from linkwise.report.svg import (
    COLOURS,
    FAINT,
    FONT,
    GRID,
    INK,
    colour,
    coordinate,
    escape,
    path,
    short,
    span,
    thinned,
    ticks,
)

MOST_POINTS = 400  # per line: more are not visible and make the page large
MOST_DOTS = 1200
NAMES = {"plot": "plot", "bars": "bar chart", "cells": "map"}  # for screen readers
STEADY = 'vector-effect="non-scaling-stroke"'  # lines stay as thin when the page zooms
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 40  # margins


@dataclass(frozen=True)
class Line:
    """One line of a plot; ``colour`` None: the next of the palette."""

    name: str
    y: np.ndarray
    colour: str | None = None
    dashed: bool = False

    def __post_init__(self) -> None:
        flag("dashed", self.dashed)


@dataclass(frozen=True)
class PlotAxes:
    """Mapping from data to coordinates of the drawing."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float
    height: float

    def across(self, value):
        return LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (self.width - LEFT - RIGHT)

    def up(self, value):
        return (
            self.height
            - BOTTOM
            - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - TOP - BOTTOM)
        )


def line_plot(
    x: np.ndarray,
    lines: Sequence[Line],
    *,
    x_label: str = "time [s]",
    y_label: str = "",
    limits: Sequence[tuple[float, float] | None] = (),
    height: float = 250,
    width: float = 760,
    zero: bool = False,
    cursor: float | None = None,
    hover: bool = True,
    dots: tuple[np.ndarray, np.ndarray] | None = None,
    detail: int = 200,
) -> str:
    """An SVG plot of lines over x.

    Args:
        x: shape (points,).
        lines: the lines, each with y of shape (points,).
        x_label: text below the plot.
        y_label: text above the plot.
        limits: (lower, upper) of each line, drawn dashed in its colour where they are near what is shown.
        height: [pixels].
        width: [pixels].
        zero: whether the range of y contains zero.
        cursor: x of a vertical mark.
        hover: whether the plot contains its numbers, for the page's script to show under the pointer.
        dots: (x, y) of points behind the lines, such as measurements.
        detail: points whose numbers the plot contains: what is seen of a line when one zooms in.
    """
    zero, hover = flag("zero", zero), flag("hover", hover)
    x = np.asarray(x, dtype=float)
    low, high = span([line.y for line in lines] + ([dots[1]] if dots is not None else []), zero=zero)
    low, high = _with_near_limits(low, high, limits)
    axes = PlotAxes(
        (float(x[0]), float(x[-1]) if x[-1] > x[0] else float(x[0]) + 1.0), (low, high), width, height
    )
    parts: list[str] = [] if dots is None else [_dots(axes, *dots)]
    colours = [line.colour or colour(k) for k, line in enumerate(lines)]
    for pair, tint in zip(limits, colours, strict=False):
        for limit in pair or ():
            if np.isfinite(limit) and low <= limit <= high:
                y = coordinate(axes.up(limit))
                parts.append(
                    f'<path d="M{LEFT} {y}H{width - RIGHT}" stroke="{tint}" stroke-dasharray="3 4" opacity=".65" '
                    f"{STEADY}/>"
                )
    shown = []
    for line, tint in zip(lines, colours, strict=True):
        xs, ys = thinned(x, np.asarray(line.y, dtype=float), MOST_POINTS)
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        parts.append(
            f'<path class="line" d="{path(axes.across(xs), axes.up(ys))}" stroke="{tint}" stroke-width="1.8" '
            f'fill="none" stroke-linejoin="round"{dash} {STEADY}><title>{escape(line.name)}</title></path>'
        )
        shown.append(line)
    parts = [_frame(axes, x_label, y_label), _area(axes, parts)]
    if cursor is not None:
        at = coordinate(axes.across(min(max(cursor, axes.x[0]), axes.x[1])))
        parts.append(
            f'<path d="M{at} {TOP}V{height - BOTTOM}" stroke="{INK}" stroke-width="1.4" class="cursor"/>'
        )
    data = _hover_data(x, shown, colours, axes, _unit(x_label), detail) if hover else ""
    return f"{_open(width, height, 'plot')}{''.join(parts)}</svg>{data}"


def scatter_plot(
    clouds: Sequence[tuple[np.ndarray, np.ndarray, str]],
    *,
    x_label: str,
    y_label: str,
    width: float = 460,
    height: float = 260,
) -> str:
    """An SVG plot of dots.

    Args:
        clouds: (x, y, colour) of each kind of dots, later ones in front.
        x_label: text below the plot.
        y_label: text beside the plot.
        width: [pixels].
        height: [pixels].
    """
    axes = PlotAxes(span([x for x, _, _ in clouds]), span([y for _, y, _ in clouds]), width, height)
    drawn = [_dots(axes, x, y, tint) for x, y, tint in clouds]
    data = _hover_data(np.zeros(0), [], [], axes, "", 0)
    return f"{_open(width, height, 'plot')}{_frame(axes, x_label, y_label)}{_area(axes, drawn)}</svg>{data}"


class Legend(str):
    """HTML text of a legend, with its ``keys``: names and colours."""

    __slots__ = ("keys",)
    keys: list[tuple[str, str]]


def legend(names: Sequence[str], colours: Sequence[str] | None = None) -> Legend:
    """HTML legend of names and colours.

    Args:
        names: of the lines.
        colours: of the lines; by default those of the palette.
    """
    keys = list(zip(names, colours or [colour(k) for k in range(len(names))], strict=True))
    spans = [
        f'<span class="key"><i style="background:{tint}"></i>{escape(name)}</span>' for name, tint in keys
    ]
    made = Legend(f'<div class="legend">{"".join(spans)}</div>')
    made.keys = keys
    return made


@dataclass(frozen=True)
class Bar:
    """A bar: length, label, and a group that determines its colour."""

    name: str
    value: float
    group: int = 0
    note: str = ""


def bar_chart(bars: Sequence[Bar], *, unit: str = "", width: float = 760) -> str:
    """Horizontal bars from zero with their values.

    Args:
        bars: the bars, from the top.
        unit: of the values.
        width: [pixels].
    """
    row, right = 24, 150
    left = min(16 + 7 * max((len(bar.name) for bar in bars), default=0), width // 2)
    height = row * len(bars) + 8
    top = max((bar.value for bar in bars if np.isfinite(bar.value)), default=1.0) or 1.0
    parts = []
    for k, bar in enumerate(bars):
        y = 4 + row * k
        length = max(1.0, bar.value / top * (width - left - right)) if np.isfinite(bar.value) else 0.0
        parts.append(
            f'<text x="{left - 8}" y="{y + 16}" text-anchor="end" fill="{INK}">{escape(bar.name)}</text>'
            f'<rect x="{left}" y="{y + 4}" width="{coordinate(length)}" height="15" rx="2" fill="{colour(bar.group)}">'
            f"<title>{escape(bar.name)}: {escape(bar.note or short(bar.value))}</title></rect>"
            f'<text x="{coordinate(left + length + 6)}" y="{y + 16}" fill="{INK}">'
            f"{escape(bar.note or short(bar.value) + (' ' + unit if unit else ''))}</text>"
        )
    return f"{_open(width, height, 'bars')}{''.join(parts)}</svg>"


def cell_map(
    x: np.ndarray,
    y: np.ndarray,
    values: np.ndarray,
    *,
    x_label: str,
    y_label: str,
    unit: str = "",
    width: float = 420,
    height: float = 460,
) -> str:
    """An SVG map of values over cells: the larger a value the darker its cell, zero in orange, a scale on the right.

    Args:
        x: edges of the columns, shape (columns + 1,).
        y: edges of the rows from below, shape (rows + 1,).
        values: not negative, shape (rows, columns); cells that are not finite stay empty.
        x_label: text below the map.
        y_label: text beside the map.
        unit: of the values.
        width: [pixels].
        height: [pixels].
    """
    right = 84
    axes = PlotAxes((float(x[0]), float(x[-1])), (float(y[0]), float(y[-1])), width - right, height)
    known = values[np.isfinite(values)]
    top = float(np.quantile(known, 0.98)) if known.size else 1.0
    top = top if top > 0 else 1.0
    parts = [_frame(axes, x_label, y_label)]
    for row, column in np.argwhere(np.isfinite(values)).tolist():
        value = float(values[row, column])
        left, low = axes.across(x[column]), axes.up(y[row])
        wide, high = axes.across(x[column + 1]) - left, low - axes.up(y[row + 1])
        tint, shade = (COLOURS[1], 0.85) if value <= 0 else (COLOURS[0], 0.08 + 0.92 * min(value / top, 1.0))
        parts.append(
            f'<rect x="{left:.1f}" y="{low - high:.1f}" width="{wide + 0.3:.1f}" height="{high + 0.3:.1f}" '
            f'fill="{tint}" opacity="{shade:.2f}"><title>{escape(short(value, 3))} {escape(unit)}</title></rect>'
        )
    parts.append(_scale(width - right + 22, height, top, unit))
    return f"{_open(width, height, 'cells')}{''.join(parts)}</svg>"


def _scale(left: float, height: float, top: float, unit: str) -> str:
    """The shades of a map and their values."""
    steps, bottom, tall = 12, height - BOTTOM, 0.6 * (height - TOP - BOTTOM)
    parts = []
    for k in range(steps):
        y = bottom - tall * (k + 1) / steps
        parts.append(
            f'<rect x="{left:g}" y="{y:.1f}" width="14" height="{tall / steps + 0.3:.1f}" fill="{COLOURS[0]}" '
            f'opacity="{0.08 + 0.92 * (k + 0.5) / steps:.2f}"/>'
        )
    for value in ticks(0.0, top, about=4):
        y = bottom - tall * value / top
        parts.append(
            f'<text x="{left + 20:g}" y="{y:.1f}" dy=".32em" fill="{FAINT}">{escape(short(value))}</text>'
        )
    name = f'<text x="{left:g}" y="{bottom - tall - 12:.1f}" fill="{FAINT}">{escape(unit)}</text>'
    return "".join([*parts, name])


def _open(width: float, height: float, kind: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{NAMES[kind]}" style="{FONT};font-size:12px">'
    )


def _with_near_limits(
    low: float, high: float, limits: Sequence[tuple[float, float] | None]
) -> tuple[float, float]:
    """The range, extended to limits that are not far outside it."""
    room = 0.5 * (high - low)
    near = [v for pair in limits if pair for v in pair if np.isfinite(v) and low - room <= v <= high + room]
    margin = 0.03 * (high - low)
    return min([low, *(v - margin for v in near)]), max([high, *(v + margin for v in near)])


def _frame(axes: PlotAxes, x_label: str, y_label: str) -> str:
    """Grid, numbers and labels; the script of the page writes the numbers again when it zooms."""
    rows, columns = [], []
    for value in ticks(*axes.y):
        y = coordinate(axes.up(value))
        rows.append(
            f'<path d="M{LEFT} {y}H{axes.width - RIGHT}" stroke="{INK if value == 0 else GRID}" stroke-width="1"/>'
            f'<text x="{LEFT - 8}" y="{y}" dy=".32em" text-anchor="end" fill="{FAINT}">{short(value)}</text>'
        )
    for value in ticks(*axes.x, about=8):
        x = coordinate(axes.across(value))
        columns.append(
            f'<path d="M{x} {axes.height - BOTTOM}v4" stroke="{FAINT}"/>'
            f'<text x="{x}" y="{axes.height - BOTTOM + 17}" text-anchor="middle" fill="{FAINT}">{short(value)}</text>'
        )
    middle = (TOP + axes.height - BOTTOM) / 2
    return (
        f'<g class="y">{"".join(rows)}</g><g class="x">{"".join(columns)}</g>'
        f'<text x="{(LEFT + axes.width - RIGHT) / 2:g}" y="{axes.height - 6:g}" text-anchor="middle" fill="{FAINT}">'
        f"{escape(x_label)}</text>"
        f'<text transform="translate(14 {middle:g}) rotate(-90)" text-anchor="middle" fill="{FAINT}">'
        f"{escape(y_label)}</text>"
    )


def _area(axes: PlotAxes, drawn: Sequence[str]) -> str:
    """Lines and dots, cut off at the edges of the plot."""
    wide, high = axes.width - LEFT - RIGHT, axes.height - TOP - BOTTOM
    return (
        f'<svg x="{LEFT}" y="{TOP}" width="{wide:g}" height="{high:g}" viewBox="{LEFT} {TOP} {wide:g} {high:g}" '
        f'preserveAspectRatio="none"><g class="data">{"".join(drawn)}</g></svg>'
    )


def _dots(axes: PlotAxes, x: np.ndarray, y: np.ndarray, tint: str = FAINT) -> str:
    """Small faint dots, evenly thinned, in one path to keep the file small."""
    inside = np.isfinite(x) & np.isfinite(y) & (x >= axes.x[0]) & (x <= axes.x[1])
    places = np.flatnonzero(inside)
    places = places[:: max(1, -(-len(places) // MOST_DOTS))]
    across, up = axes.across(x[places]).tolist(), axes.up(y[places]).tolist()
    d = "".join(f"M{coordinate(a)} {coordinate(b)}h0" for a, b in zip(across, up, strict=True))
    return f'<path d="{d}" stroke="{tint}" stroke-width="2.6" stroke-linecap="round" opacity=".45" {STEADY}/>'


def _unit(label: str) -> str:
    """The unit: text in the brackets of a label."""
    return label.partition("[")[2].partition("]")[0]


def _hover_data(
    x: np.ndarray, lines: Sequence[Line], colours: Sequence[str], axes: PlotAxes, unit: str, detail: int
) -> str:
    """Values of the plot as JSON for the hover script, evenly thinned."""
    index = np.unique(np.linspace(0, len(x) - 1, min(len(x), detail)).round().astype(int))
    data = {
        "box": [LEFT, TOP, axes.width - RIGHT, axes.height - BOTTOM],
        "x": [float(f"{v:.5g}") for v in x[index]],
        "lines": [
            {
                "name": line.name,
                "colour": tint,
                "y": [_plain(v) for v in np.asarray(line.y, dtype=float)[index]],
            }
            for line, tint in zip(lines, colours, strict=True)
        ],
        "range": [*axes.x, *axes.y],
        "unit": unit,
    }
    text = foreign.json_in_html(data, separators=(",", ":"))
    return f'<script type="application/json" class="data">{text}</script>'


def _plain(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None
