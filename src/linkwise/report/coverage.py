"""Which states the fitted and the predicted recordings visit: predictions outside what was fitted are guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.report.page import Figure, Grid, HtmlTable, Section, Text
from linkwise.report.plots import legend, scatter_plot
from linkwise.report.svg import short

if TYPE_CHECKING:
    from linkwise.identify.result import Identification

CELLS = 24  # in each direction of position and speed
DOTS = 900
FITTED, INSIDE = "#9aa5b3", "#0072b2"
OUTSIDE = "#d55e00"


def coverage(found: Identification) -> Section:
    """Position and speed of every joint: fitted, predicted, and predicted where nothing was fitted."""
    fitted = [np.concatenate([s.q for s in found.signals]), np.concatenate([s.qd for s in found.signals])]
    fitted.append(np.concatenate([s.qdd for s in found.signals]))
    motions = [v.motion for v in found.validations if v.motion is not None]
    judged = [np.concatenate([motion[k] for motion in motions]) for k in range(3)]
    rows, figures = [], []
    for j, joint in enumerate(found.prior.moving_joints):
        own, other = ([x[:, j] for x in each] for each in (fitted, judged))
        new = outside(own[0], own[1], other[0], other[1])
        kinds = ("position", "speed", "acceleration")
        farther = [name for name, a, b in zip(kinds, own, other, strict=True) if _beyond(a, b)]
        rows.append(
            [joint.name, *(f"{_range(a)} | {_range(b)}" for a, b in zip(own, other, strict=True))]
            + [f"{100 * new.mean():.2g} %", ", ".join(farther) or "–"]
        )
        unit = "rad" if joint.revolute else "m"
        clouds = [
            ("fitted", own[0], own[1], FITTED),
            ("predicted", other[0][~new], other[1][~new], INSIDE),
            ("predicted, never fitted", other[0][new], other[1][new], OUTSIDE),
        ]
        svg = scatter_plot(
            [(x[_some(x)], y[_some(x)], tint) for _, x, y, tint in clouds],
            x_label=f"position of {joint.name} [{unit}]",
            y_label=f"speed [{unit}/s]",
        )
        names, tints = [name for name, *_ in clouds], [tint for *_, tint in clouds]
        figures.append(Figure(f"coverage_{j + 1}", svg, "", legend(names, tints)))
    columns = ["joint", ">position", ">speed", ">acceleration", ">never fitted", "beyond what was fitted"]
    notes = [
        "Ranges of the recordings that were fitted | that were predicted, SI units. Never fitted: samples of the "
        "predicted recordings in cells of position and speed (a grid of 24 × 24) that no fitted one came near to."
    ]
    words = (
        "A model is known where it was fitted. Orange dots are states of the predicted recordings that the fitted ones "
        "never visited: residuals there show how far the model carries. Many of them: the fitted motion was too small "
        "or too slow."
    )
    return Section("Coverage of states", [Text(words), HtmlTable(columns, rows, notes), Grid(figures)])


def outside(q: np.ndarray, qd: np.ndarray, other_q: np.ndarray, other_qd: np.ndarray) -> np.ndarray:
    """Which of the other states (N,) are in cells away from those of the first."""
    every = [np.concatenate(pair) for pair in ((q, other_q), (qd, other_qd))]
    low, size = [x.min() for x in every], [max(float(np.ptp(x)), 1e-12) for x in every]

    def cells(*states: np.ndarray) -> tuple[np.ndarray, ...]:
        shares = ((x - a) / s for x, a, s in zip(states, low, size, strict=True))
        return tuple(np.clip((CELLS * share).astype(int), 0, CELLS - 1) + 1 for share in shares)

    seen = np.zeros((CELLS + 2, CELLS + 2), bool)
    seen[cells(q, qd)] = True
    near = np.zeros_like(seen)
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            near |= np.roll(seen, (dx, dy), (0, 1))
    return ~near[cells(other_q, other_qd)]


def _beyond(fitted: np.ndarray, other: np.ndarray) -> bool:
    slack = 0.05 * float(np.ptp(fitted))
    return bool(other.min() < fitted.min() - slack or other.max() > fitted.max() + slack)


def _range(x: np.ndarray) -> str:
    return f"{short(float(x.min()), 2)} … {short(float(x.max()), 2)}"


def _some(x: np.ndarray) -> np.ndarray:
    return (
        np.unique(np.linspace(0, max(len(x) - 1, 0), min(len(x), DOTS)).astype(int))
        if len(x)
        else np.zeros(0, int)
    )
