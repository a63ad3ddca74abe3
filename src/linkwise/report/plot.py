"""Figures of a report as one drawing: shown by notebooks, saved as an SVG file."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from linkwise.core.summaries import Summary
from linkwise.errors import LinkwiseError
from linkwise.files import outputs
from linkwise.geometry.posture import bent_position
from linkwise.model import Model
from linkwise.model.coordinates import velocity_coordinates
from linkwise.report import sections
from linkwise.report.page import Figure
from linkwise.report.picture import robot_picture
from linkwise.report.plots import Legend, Line, legend, line_plot
from linkwise.report.svg import FONT, colour, escape, short

WIDTH = 760
LINE, LETTER = 20, 7.0  # height of a line of text, width of a letter
INK, GREY = "#1c2430", "#9aa5b3"
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
            size = _SIZE.search(drawing)
            assert size is not None
            drawing = drawing.replace("<svg ", f'<svg y="{y:g}" ', 1)
            parts += [*text, drawing]
            y, width = y + float(size[2]), max(width, float(size[1]))
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


def motion_plot(
    t: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, model: Model | None = None
) -> Plot:
    """Positions, velocities and accelerations over time.

    Args:
        t: times [s], shape (points,).
        q: positions [rad or m], shape (points, nq).
        qd: velocities, shape (points, n).
        qdd: accelerations, shape (points, n).
        model: names the joints and adds their limits; angles are then in degrees.
    """
    if model is not None:
        figures = sections.motion(model, t, q, qd).figures
        names = [each.name for each in velocity_coordinates(model)]
    else:
        names = [f"joint {k + 1}" for k in range(q.shape[1])]
        parts = (("position [rad or m]", q), ("velocity [rad/s or m/s]", qd))
        figures = [_lines(t, values, names, label) for label, values in parts]
    return Plot(
        [*figures, _lines(t, qdd, names, "acceleration [rad/s² or m/s²]")], f"a motion of {len(names)} joints"
    )


def usage_plot(t: np.ndarray, usage: Mapping[str, np.ndarray], model: Model) -> Plot:
    """Fractions of limits in use over time, a figure for each kind of limit that is in use.

    Args:
        t: times [s], shape (points,).
        usage: fractions by the name of the quantity, shape (points, n), or (points,) of the tip.
        model: names the joints.
    """
    names = [each.name for each in velocity_coordinates(model)]
    figures = []
    for quantity, values in usage.items():
        columns = values.reshape(len(t), -1)
        if columns.any():
            own = names if columns.shape[1] == len(names) else ["tip"]
            figures.append(_lines(t, columns, own, f"{quantity}, fraction of its limit"))
    return Plot(figures, f"limits of {model.name} in use")


def simulation_plot(
    model: Model, t: np.ndarray, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, error: np.ndarray | None
) -> Plot:
    """Positions, velocities, torques and errors of a simulation over time.

    Args:
        model: the robot.
        t: times [s], shape (points,).
        q: positions [rad or m], shape (points, nq).
        qd: velocities, shape (points, n).
        tau: torques [N·m or N], shape (points, n).
        error: q − q_d, shape (points, n); None without a reference.
    """
    figures = [*sections.motion(model, t, q, qd).figures, *sections.torques(model, t, tau).figures]
    if error is not None:
        figures += sections.tracking(model, t, {"error of the position": error}).figures
    return Plot(figures, f"a simulation of {model.name}")


def torque_plot(
    t: np.ndarray, measured: np.ndarray, predicted: np.ndarray, names: Sequence[str] | None = None
) -> Plot:
    """Measured and predicted torques, a figure for each joint.

    Args:
        t: times [s], shape (points,).
        measured: torques [N·m or N], shape (points, n).
        predicted: the same from a model.
        names: of the joints.
    """
    names = names or [f"joint {k + 1}" for k in range(measured.shape[1])]
    figures: list[Figure] = []
    for k, name in enumerate(names):
        lines = [Line("measured", measured[:, k], GREY), Line("predicted", predicted[:, k], colour(k))]
        key = legend(["measured", "predicted"], [GREY, colour(k)])
        svg = line_plot(t, lines, y_label="torque [N·m or N]", height=170, hover=False)
        figures.append(Figure(f"torques_{k + 1}", svg, name, key))
    return Plot(figures, f"torques of {len(names)} joints")


def _lines(t: np.ndarray, values: np.ndarray, names: Sequence[str], label: str) -> Figure:
    lines = [Line(name, values[:, k]) for k, name in enumerate(names)]
    return Figure(label.partition(" ")[0], line_plot(t, lines, y_label=label, hover=False), "", legend(names))


def robot_html(model: Model) -> str:
    """A robot for a notebook: a drawing beside its joints and their limits."""
    picture = robot_picture(model, bent_position(model), width=300, height=300)
    # an image, because pages that show stored notebooks leave drawings inside HTML out
    encoded = base64.b64encode(Plot([Figure("robot", picture)], model.name).svg.encode()).decode()
    rows: list[list[object]] = []
    for joint in model.coordinate_joints:
        limits = joint.limits
        scale, unit, force = (180.0 / np.pi, "°", "N·m") if joint.turns else (1000.0, " mm", "N")
        bounded = not joint.free and np.isfinite([limits.lower, limits.upper]).any()
        span = f"{short(scale * limits.lower)} … {short(scale * limits.upper)}{unit}" if bounded else ""
        speed, effort = scale * limits.largest_velocity, limits.largest_effort
        peaks = ((speed, f"{unit}/s"), (effort, f" {force}"))
        rows.append(
            [
                joint.name,
                joint.type,
                span,
                *(f"{short(x)}{word}" if np.isfinite(x) else "" for x, word in peaks),
            ]
        )
    columns = ("joint", "type", ">range", ">speed limit", ">effort limit")
    kept = [k for k in range(len(columns)) if k < 2 or any(row[k] for row in rows)]
    mass = sum(link.inertia.mass for link in model.links)
    title = f"{model.name}: {len(rows)} joint{'s' * (len(rows) != 1)}, {len(model.links)} links, {short(mass, 3)} kg"
    table = Summary(title, [columns[k] for k in kept], [[row[k] for k in kept] for row in rows]).html()
    return (
        '<div style="display:flex;flex-wrap:wrap;align-items:center;gap:16px">'
        f'<img alt="{escape(model.name)}" width="300" src="data:image/svg+xml;base64,{encoded}"/>{table}</div>'
    )
