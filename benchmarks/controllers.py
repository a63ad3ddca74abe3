"""Every controller by its name on many robots, with one call and default gains: step responses.

    python benchmarks/controllers.py [--robots NAMES] [--controllers NAMES] [--json FILE] [--quick]

Robots are names or files. A call is ``control.named(NAME, robot)``, whose frequency is 10 rad/s. The step is 0.1 rad
(or 0.1 of the range, where that is less) of every joint, from a regular position, and for joint-space laws from three
random ones as well; task-space laws get the same reference, whose kinematics is the tool's target. Cases:

* exact: the plant is the model. Sampled every 1 ms; torques come 2 ms late; velocities are differences of positions
  (cutoff 400 rad/s).
* wrong: the same, with every mass of the plant 30 % more or 30 % less than the model's, and noisy positions (10⁻⁵
  rad).

Friction of all robots is set to zero.

Figures: the time after which the error stays below 5 % of its start, times the frequency (exact); the largest error
in the last 0.2 s in parts of the step (exact), and the same after the last mean is taken off (wrong: how much it
still moves); and the overshoot in parts of the step (wrong). For joint-space laws the error is that of the joints,
for task-space laws that of the tool, measured as K measures it. Masses that are wrong leave an offset where gravity
is compensated from the model: it is not counted, as the documentation says.

What the documentation promises (``ROWS``) is checked; the worst robot is printed for every controller.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from task_space_parts import arms

import linkwise as lw
from linkwise import control
from linkwise.control.task_space.rotation_error import RotationError
from linkwise.simulate import Plant, Sensors, simulate

FREQUENCY, STEP, PERIOD, DELAY = 10.0, 0.1, 1e-3, 2
DURATION = 6.0
POSITIONS = 3
MASSES = (1.0, 0.7, 1.3)  # of the plant over those of the model
NOISE, CUTOFF = 1e-5, 400.0  # [rad or m], [rad/s]


@dataclass(frozen=True)
class Row:
    """A controller of the table: how it is made, and what its documentation promises."""

    make: Callable[[lw.Robot, str], Any]
    settles: float
    """ω times the time to 5 %, with an exact model, at most."""
    slower: float = 0.0
    """What is added to it for every time that the inertia is larger than that of the gains."""
    task: bool = False
    """Whether its error is the tool's."""
    overshoot: float = 0.01
    """With wrong masses, noise and delay, in parts of the step."""
    rests: float = 0.05
    """How much it still moves at the end, in parts of the step."""


def _joint(name: str) -> Callable[[lw.Robot, str], Any]:
    return lambda robot, frame: control.named(name, robot, torque_limits=False)


def _tool(name: str, **options: Any) -> Callable[[lw.Robot, str], Any]:
    return lambda robot, frame: control.named(name, robot, frame=frame, torque_limits=False, **options)


ROWS: dict[str, Row] = {
    "computed_torque": Row(_joint("computed_torque"), 6.0),
    "tracking": Row(_joint("tracking"), 6.0),
    "integral_tracking": Row(_joint("integral_tracking"), 9.0),
    "point_to_point": Row(_joint("point_to_point"), 6.0),
    "gravity_pd": Row(_joint("gravity_pd"), 6.0, slower=4.0, rests=0.01, overshoot=0.2),
    "operational_space": Row(_tool("operational_space"), 7.0, task=True),
    "hybrid_force_motion": Row(_tool("hybrid_force_motion", force="input"), 7.0, task=True),
    "cartesian_admittance": Row(_tool("cartesian_admittance", force="input"), 3.0, task=True),
    "cartesian_impedance": Row(_tool("cartesian_impedance"), 15.0, task=True, overshoot=0.5),
    "whole_body_tracking": Row(_tool("whole_body_tracking"), 6.0),
}
"""One line for every law. Predictive and whole-body controllers are further rows: ``make`` may give any controller of
``simulate``."""


def weights(robot: lw.Robot, frame: str) -> np.ndarray:
    """How much a turn counts against a shift: by the usual inertia, relative to the mass."""
    usual = control.usual_inertia(robot, frame, "base")
    return np.sqrt(usual / usual[3])


def tool_error(robot: lw.Robot, frame: str, q: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Distance of the tool from its target (..., times) [m], turns counted as ``weights`` says."""
    found = robot.pose(q, frame=frame)
    E = found[..., :3, :3] @ target[:3, :3].T
    entries: Any = [[E[..., i, j] for j in range(3)] for i in range(3)]
    turn = np.stack(RotationError.of(entries).vector(), -1)
    error = np.concatenate([turn, found[..., :3, 3] - target[:3, 3]], -1)
    return error * weights(robot, frame)


def masses(robot: lw.Robot) -> dict[str, np.ndarray]:
    """Masses, first moments and inertias of the links for every case, by their labels: (cases, 1)."""
    values = zip(robot.parameter_labels, robot.parameters, strict=True)
    bodies = {
        label: v for label, v in values if "friction" not in label and "rotor" not in label and v != 0.0
    }
    return {label: v * np.array(MASSES)[:, None] for label, v in bodies.items()}


def without_friction(robot: lw.Robot) -> lw.Robot:
    """The robot with friction of all joints set to zero: laws that compensate it are then like those that do not."""
    return robot.with_parameters({label: 0.0 for label in robot.parameter_labels if "friction" in label})


def errors(row: Row, robot: lw.Robot, frame: str, q: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """(times, components)."""
    if row.task:
        return tool_error(robot, frame, q, robot.pose(goal, frame=frame))
    return q - goal


def case(row: Row, robot: lw.Robot, frame: str, start: np.ndarray, goal: np.ndarray) -> dict[str, float]:
    """The figures of one controller on one robot: all cases are lanes of one simulation."""
    law = row.make(robot, frame)
    allowed = row.settles
    if row.slower:
        usual = law.gains["kp"] / FREQUENCY**2
        heavier = np.linalg.eigvals(robot.mass_matrix(goal) / usual[:, None]).real.max()
        allowed += row.slower * float(heavier)
    sensors = Sensors(position_noise=NOISE, velocity="difference", cutoff=CUTOFF)
    noise = np.where(np.array(MASSES) == 1.0, 0.0, NOISE)[:, None] * np.ones(robot.dof)
    result = simulate(
        Plant(robot, friction=False, sensors=sensors),
        law,
        goal,
        duration=max(DURATION, float(np.ceil(2.0 * allowed / FREQUENCY))),
        step=PERIOD,
        delay=DELAY,
        q=np.tile(start, (len(MASSES), 1)),
        vary={"position_noise": noise, **masses(robot)},
        warn=False,
    )
    found: dict[str, float] = {"moves": 0.0, "overshoot": 0.0, "allowed": allowed}
    for k, factor in enumerate(MASSES):
        error = errors(row, robot, frame, result.q[k], goal)
        size = np.linalg.norm(error, axis=-1) / np.linalg.norm(error[0])
        if factor == 1.0:
            late = np.flatnonzero(~(size < 0.05))
            found["settles"] = FREQUENCY * PERIOD * (late[-1] + 1 if len(late) else 0)
            found["left"] = float(size[-200:].max())
            continue
        settled = error[-200:].mean(0)
        moving = float(np.linalg.norm(error[-200:] - settled, axis=-1).max() / np.linalg.norm(error[0]))
        beyond = float(
            np.linalg.norm(error - settled, axis=-1).max() / np.linalg.norm(error[0] - settled) - 1.0
        )
        found["moves"] = max(found["moves"], moving if np.isfinite(moving) else np.inf)
        found["overshoot"] = max(found["overshoot"], beyond if np.isfinite(beyond) else np.inf)
    return found


def step_from(robot: lw.Robot, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(start, goal): a step towards the middle of the ranges."""
    lower, upper = np.maximum(robot.limits.lower, -3.0), np.minimum(robot.limits.upper, 3.0)
    way = np.minimum(STEP, 0.1 * (upper - lower))
    return start, start + np.where(start > 0.5 * (lower + upper), -way, way)


def wrong(row: Row, figures: dict[str, float]) -> list[str]:
    """Promises that are not kept."""
    broken = ["settles"] * bool(not figures["settles"] <= figures["allowed"])
    broken += ["moves"] * bool(not figures["moves"] < row.rests)
    return broken + ["overshoot"] * bool(not figures["overshoot"] < row.overshoot)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", help="names, with commas; default: all")
    parser.add_argument("--controllers", help="names, with commas; default: all")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--quick", action="store_true", help="do not check what is promised")
    options = parser.parse_args()
    robots = arms.for_laws(options.robots)
    chosen = options.controllers.split(",") if options.controllers else list(ROWS)
    table: list[dict[str, Any]] = []
    failed = 0
    for name in robots:
        robot = without_friction(arms.load(name))
        frame = arms.tool(robot)
        regular = step_from(robot, arms.regular_position(robot, frame))
        others = [step_from(robot, q) for q in arms.random_positions(robot, POSITIONS, seed=5)]
        for law in chosen:
            begin = time.perf_counter()
            steps = [regular] if ROWS[law].task or options.quick else [regular, *others]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = [case(ROWS[law], robot, frame, *step) for step in steps]
            broken = (
                [] if options.quick else sorted({key for each in found for key in wrong(ROWS[law], each)})
            )
            figures = {key: max(each[key] for each in found) for key in found[0]}
            failed += bool(broken)
            table.append({"robot": name, "controller": law, **figures})
            text = "  ".join(f"{key} {value:9.3g}" for key, value in figures.items())
            print(f"{name:14} {law:22} {text}  {time.perf_counter() - begin:4.1f} s", *broken, flush=True)
    print()
    for law in chosen:
        rows = [row for row in table if row["controller"] == law]
        worst = {key: max(rows, key=lambda row: row[key]) for key in ("settles", "moves", "overshoot")}
        text = ", ".join(f"{key} {row[key]:.3g} ({row['robot']})" for key, row in worst.items())
        print(f"{law:22} worst of {len(rows)}: {text}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
