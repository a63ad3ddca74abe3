"""What is left in the residuals, in words that a person can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.report.page import HtmlTable, Section, Text

if TYPE_CHECKING:
    from linkwise.identify.judging.validation import Validation
    from linkwise.identify.result import Identification

BINS = 24  # of positions and speeds
SPANS = 12  # of time
NOTICED = 0.25  # share of a residual's power from which it is said what it depends on
SMALL = 3.0  # [%] of the torque under which a residual needs no remedy

ADVICE = {
    "fast": "above {band:.3g} Hz: noise, ripple or elasticity, which no rigid model has; judge it below that frequency",
    "position": "repeats with the position: cables, a spring, a gear or motor with ripple; record more positions",
    "speed": "depends on the speed: another friction law; try --friction rich or presliding",
    "time": "drifts: a joint that warms up or a sensor; warm up before recording, fit shorter parts",
    "acceleration": "follows the acceleration: a lag between positions and torques, or a cut-off that is too low",
}


def shares(judged: Validation) -> dict[str, np.ndarray]:
    """Parts of each joint's residual power (n,) that are fast, or depend on position, speed, time or acceleration.

    They overlap, and what depends on nothing of these has none.
    """
    e = judged.residuals
    power = np.maximum((e**2).sum(axis=0), 1e-300)
    slow = judged.slow_residuals
    parts = {"fast": np.clip(1.0 - (slow**2).sum(axis=0) / power * (len(e) / len(slow)), 0.0, 1.0)}
    parts["time"] = _explained(np.arange(len(e))[:, None] * np.ones(e.shape[1]), e, SPANS)
    if judged.motion is not None:
        q, qd, qdd = judged.motion
        parts |= {"position": _explained(q, e, BINS), "speed": _explained(qd, e, BINS)}
        parts["acceleration"] = _explained(qdd, e, BINS)
    return parts


def _explained(x: np.ndarray, e: np.ndarray, bins: int) -> np.ndarray:
    """Share of the power of e (N, n) in its mean over bins of equal counts of x, less what chance would give."""
    share = np.zeros(e.shape[1])
    for j in range(e.shape[1]):
        order = np.argsort(x[:, j], kind="stable")
        parts = np.array_split(e[order, j], bins)
        means = sum(len(part) * float(part.mean()) ** 2 for part in parts if len(part))
        share[j] = means / max(float((e[:, j] ** 2).sum()), 1e-300)
    return np.clip(share - bins / max(len(e), 1), 0.0, 1.0)


def residual_patterns(found: Identification) -> Section:
    """For every joint: how large the residual is, what it depends on, and what helps."""
    judged = found.validation
    parts, rows = shares(judged), []
    for k, name in enumerate(found.row_names):
        own = {kind: float(value[k]) for kind, value in parts.items()}
        rows.append(
            [name, f"{judged.relative[k]:.3g} %"]
            + [f"{100 * own.get(kind, 0.0):.0f} %" for kind in ADVICE]
            + [_words(own, float(judged.relative[k]), judged.band)]
        )
    columns = ["joint", ">residual", *(f">{kind}" for kind in ADVICE), "what helps"]
    words = (
        f"What the residuals on {judged.log.name} depend on, in parts of their power: the mean over positions, speeds, "
        "accelerations or stretches of time that are alike, and what is faster than the band of the fit. Parts overlap."
    )
    return Section("What is left in the residuals", [Text(words), HtmlTable(columns, rows)])


def _words(own: dict[str, float], relative: float, band: float) -> str:
    largest = max(own, key=lambda kind: own[kind])
    if relative < SMALL:
        return "small: nothing to do"
    if own[largest] < NOTICED:
        return "no single cause; friction that depends on load or temperature, or a motion that excites too little"
    return ADVICE[largest].format(band=band)
