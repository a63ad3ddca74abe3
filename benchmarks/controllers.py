"""Every controller by its name on many robots, with one call and default gains: step responses.

    python benchmarks/controllers.py [--robots NAMES] [--controllers NAMES] [--json FILE] [--quick]

Robots are names or files, arms with a joint that follows another one (``coupled:NAME``), and arms on a floating base
that is moved by forces in all directions (``floating:NAME``). A call is ``control.named(NAME, robot)``, whose frequency
is 10 rad/s. The step is 0.1 rad (or 0.1 of the range, where that is less) of every joint, from a regular position, and
for joint-space laws that are compiled from three random ones as well; task-space laws get the same reference, whose
kinematics is the tool's target. Cases:

* exact: the plant is the model. Sampled every 1 ms; torques come 2 ms late; velocities are differences of positions
  (cutoff 400 rad/s).
* wrong: the same, with every mass of the plant 30 % more or 30 % less than the model's, and noisy positions (10⁻⁵
  rad). Sensors of floating bases have no noise.

Friction of all robots is set to zero, and no law has torque limits: Talos's arm with 1.3 of its masses needs 118 % of
one of them to stand at its target. Predictive control is sampled every 2 ms, so its torques come one sample late.
A controller that does not take a robot says why; that is printed.

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
DURATION, LEAST = 6.0, 2.0  # [s]: of a simulation; of one that is called from Python
POSITIONS = 3
REFUSED = "joints with one coordinate each"  # what controllers say that take no floating base
MASSES = (1.0, 0.7, 1.3)  # of the plant over those of the model
OF_LINKS = (
    "m",
    "hx",
    "hy",
    "hz",
    "Ixx",
    "Ixy",
    "Ixz",
    "Iyy",
    "Iyz",
    "Izz",
)  # not friction, rotors and springs
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
    called: bool = False
    """Whether it is called from Python, for one robot at a time."""


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
    "cartesian_impedance": Row(_tool("cartesian_impedance"), 15.0, task=True, overshoot=0.2),
    "whole_body_tracking": Row(_tool("whole_body_tracking"), 6.0),
    "predictive": Row(
        lambda robot, frame: control.named("predictive", robot, torque_limits=False),
        6.0,
        overshoot=0.02,
        called=True,
    ),
}
"""One line for every law."""


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
    bodies = {label: v for label, v in values if label.rpartition(".")[2] in OF_LINKS and v != 0.0}
    return {label: v * np.array(MASSES)[:, None] for label, v in bodies.items()}


def without_friction(robot: lw.Robot) -> lw.Robot:
    """The robot with friction of all joints set to zero: laws that compensate it are then like those that do not."""
    return robot.with_parameters({label: 0.0 for label in robot.parameter_labels if "friction" in label})


def errors(row: Row, robot: lw.Robot, frame: str, q: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """(times, components)."""
    if row.task:
        return tool_error(robot, frame, q, robot.pose(goal, frame=frame))
    return robot.difference(np.broadcast_to(goal, q.shape), q)


def motions(
    row: Row, law: Any, robot: lw.Robot, start: np.ndarray, goal: np.ndarray, time: float
) -> np.ndarray:
    """Positions (cases, times, nq), one row every ``PERIOD``."""
    options: dict[str, Any] = {"duration": time, "step": PERIOD, "warn": False}
    if not row.called:
        all_of_them, vary = np.tile(start, (len(MASSES), 1)), masses(robot)
        plant = Plant(robot, friction=False)
        if robot.nq == robot.dof:
            sensors = Sensors(position_noise=NOISE, velocity="difference", cutoff=CUTOFF)
            plant = Plant(robot, friction=False, sensors=sensors)
            noise = np.where(np.array(MASSES) == 1.0, 0.0, NOISE)
            vary["position_noise"] = noise[:, None] * np.ones(robot.dof)
        return simulate(plant, law, goal, delay=DELAY, q=all_of_them, vary=vary, **options).q
    found = []
    for k, factor in enumerate(MASSES):
        real = robot.with_parameters({label: float(values[k, 0]) for label, values in masses(robot).items()})
        noise = NOISE * (factor != 1.0)
        sensors = Sensors(position_noise=noise, velocity="difference", cutoff=CUTOFF)
        law.reset()
        result = simulate(
            Plant(real, friction=False, sensors=sensors),
            law,
            goal,
            control_period=DELAY * PERIOD,
            delay=1,
            q=start,
            torque_limits=False,
            **options,
        )
        found.append(np.repeat(result.q, DELAY, axis=0))
    return np.stack(found)


def case(row: Row, robot: lw.Robot, frame: str, start: np.ndarray, goal: np.ndarray) -> dict[str, float]:
    """The figures of one controller on one robot."""
    law = row.make(robot, frame)
    allowed = row.settles
    if row.slower:
        usual = law.gains["kp"] / FREQUENCY**2
        heavier = np.linalg.eigvals(robot.mass_matrix(goal) / usual[:, None]).real.max()
        allowed += row.slower * float(heavier)
    time = max(LEAST if row.called else DURATION, float(np.ceil(2.0 * allowed / FREQUENCY)))
    moved = motions(row, law, robot, start, goal, time)
    found: dict[str, float] = {"moves": 0.0, "overshoot": 0.0, "allowed": allowed}
    for k, factor in enumerate(MASSES):
        error = errors(row, robot, frame, moved[k], goal)
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
    lower, upper = arms.ranges(robot, 3.0)
    way = np.minimum(STEP, 0.1 * (upper - lower))
    at = arms.flat(robot, start)
    return start, robot.integrate(start, np.where(at > 0.5 * (lower + upper), -way, way))


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
            once = ROWS[law].task or ROWS[law].called or options.quick
            steps = [regular] if once else [regular, *others]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = [case(ROWS[law], robot, frame, *step) for step in steps]
                except lw.LinkwiseError as error:
                    print(f"{name:14} {law:22} {error}", flush=True)
                    failed += REFUSED not in str(error)
                    continue
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
        if not rows:  # refused by all robots
            continue
        worst = {key: max(rows, key=lambda row: row[key]) for key in ("settles", "moves", "overshoot")}
        text = ", ".join(f"{key} {row[key]:.3g} ({row['robot']})" for key, row in worst.items())
        print(f"{law:22} worst of {len(rows)}: {text}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
