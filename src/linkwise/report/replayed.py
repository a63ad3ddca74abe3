"""The recording beside simulations that its torques drive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.report.page import Figure, Fold, HtmlTable, Section, Text
from linkwise.report.plots import Line, legend, line_plot
from linkwise.report.svg import colour, short

if TYPE_CHECKING:
    from linkwise.identify.result import Identification

RECORDED, GIVEN = "#9aa5b3", "#cc79a7"
NOTE = "Root mean square at the end of windows in which the joint moves; –: it never does, or the simulation diverges."
FAR = 5.0  # times the motion, from which a simulation has nothing to do with the recording
SHOWN = 20.0  # [s] of the recording in the plots


def replayed(found: Identification) -> Section:
    """Positions of the first validation recording, simulated by the identified robot and by the one that was given."""
    title = "Simulation beside the recording"
    try:
        after, before = found.replay()
    except LinkwiseError as error:
        return Section(title, [Text(f"The identified robot could not be simulated: {error}")])
    rows, figures = [], []
    sizes = [
        after.moved,
        after.deviation,
        np.full(len(after.moved), np.nan) if before is None else before.deviation,
    ]
    shown = slice(0, int(np.searchsorted(after.t, SHOWN)))
    for k, joint in enumerate(found.prior.moving_joints):
        scale, unit = (180 / np.pi, "°") if joint.revolute else (1000.0, "mm")
        lines = [Line("recorded", scale * after.recorded[shown, k], RECORDED)]
        if before is not None and np.isfinite(before.deviation[k]):
            lines.append(
                Line(
                    "robot as given",
                    scale * _cut(before.simulated[shown, k], after.recorded[shown, k]),
                    GIVEN,
                )
            )
        lines.append(
            Line(
                "identified robot",
                scale * _cut(after.simulated[shown, k], after.recorded[shown, k]),
                colour(k),
            )
        )
        plot = line_plot(after.t[shown], lines, y_label=f"position [{unit}]", height=190, detail=800)
        key = legend([line.name for line in lines], [line.colour or "" for line in lines])
        figures.append(Figure(f"simulation_{joint.name}", plot, joint.name, key))
        moved = float(after.moved[k])
        rows.append([joint.name, *(_size(float(x[k]), moved, scale, unit) for x in sizes)])
    words = (
        f"Open loop: the measured torques of {found.validation.log.name} drive the robot without any controller, in "
        f"windows of {after.window:.2g} s that each start at the recorded state; friction is that of the recorded "
        "motion. Differences of a torque are integrated twice, so joints with little inertia drift first."
    )
    columns = ["joint", ">moved in a window", ">off by, identified robot", ">off by, robot as given"]
    table = HtmlTable(columns, rows, [NOTE])
    return Section(title, [Text(words), table, Fold(f"Plots of the first {SHOWN:g} s", figures)])


def _size(value: float, moved: float, scale: float, unit: str) -> str:
    if not np.isfinite(value):
        return "–"
    return "leaves the recording" if value > FAR * moved else f"{short(scale * value, 3)} {unit}"


def _cut(simulated: np.ndarray, recorded: np.ndarray) -> np.ndarray:
    """Without what is far outside the plot."""
    reach = max(float(np.ptp(recorded)), 1e-3)
    near = np.abs(simulated - recorded) < 2 * reach
    return np.where(near, simulated, np.nan)
