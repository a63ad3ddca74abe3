"""Plots as files. Importing this needs matplotlib."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from linkwise.cli.experiment import Experiment

# Colours that colour-blind people tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def experiment(done: Experiment, path: Path) -> None:
    """Positions and torques over time; the shoulder, which the paper shows, is drawn heavier."""
    figure = Figure(figsize=(9, 9), layout="constrained")
    angles, arm, wrist = figure.subplots(3, 1, sharex=True)
    t = done.motion.t
    names = done.robot.joint_names
    for k, name in enumerate(names):
        style = {
            "color": COLOURS[k % len(COLOURS)],
            "label": name,
            "linewidth": 2.4 if name == "shoulder" else 1.4,
        }
        style["linestyle"] = "--" if name == "flange" else "-"  # it moves like the waist
        angles.plot(t, np.degrees(done.motion.q[:, k]), **style)
        (arm if k < 3 else wrist).plot(t, done.tau[:, k], **style)
    angles.set_title("PUMA 560: quintic moves of all joints (Kozłowski 1990, section 5)")
    angles.set_ylabel("position [°]")
    arm.set_ylabel("torque [N·m]")
    arm.set_title("arm; the shoulder is joint 5 of the paper, its Fig. 3", fontsize="medium")
    wrist.set_ylabel("torque [N·m]")
    wrist.set_title("wrist", fontsize="medium")
    wrist.set_xlabel("time [s]")
    for axes in (angles, arm, wrist):
        axes.grid(alpha=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    angles.set_xlim(0.0, float(t[-1]) if t is not None else None)
    figure.savefig(path, dpi=130)
