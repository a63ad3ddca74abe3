"""Whether time-optimal motions keep their limits: random and hard paths of every class of motion, judged by Pinocchio.

    python benchmarks/motion_limits.py [--quick] [--paths 1000] [--classes NAMES] [--robots NAMES] [--beside FILE]

Every motion is evaluated at 20 001 times and at both sides of the points at which its acceleration jumps. Torques are
those of Pinocchio, with the friction of the robot where it has some; jerk is a difference of accelerations. ``--json``
writes durations and the largest fraction of a limit; ``--beside`` compares durations with those of such a file, written
by another version (PYTHONPATH chooses the version).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from motion_parts.paths import CLASSES, HARD, middle

import linkwise as lw
from linkwise import motion
from linkwise.bench.peers.built import pinocchio_model
from linkwise.robot.engine_coordinates import coordinates

KINDS = CLASSES | HARD
POINTS = 20_001
ALLOWED = 1e-6  # relative: a limit counts as exceeded from here on
ROBOTS = "panda,ur10e,iiwa14,puma560,xarm7.urdf"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", default=ROBOTS, help="bundled names, or files of example-robot-data")
    parser.add_argument("--classes", default=",".join(KINDS), help="classes of motion, and hard paths")
    parser.add_argument("--payload", type=float, default=0.0, help="mass at the last link [kg]")
    parser.add_argument("--paths", type=int, default=1000, help="random paths of each class on each robot")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--beside", help="figures of another version, written by --json")
    parser.add_argument("--quick", action="store_true", help="two paths of each class on one robot")
    options = parser.parse_args()
    if options.quick:
        options.robots, options.paths = "panda", 2
    others = {}
    if options.beside:
        others = {
            (r["robot"], r["class"], r["path"]): r for r in json.loads(Path(options.beside).read_text())
        }
    rows: list[dict] = []
    print(
        "robot  class  paths  not possible  beyond a limit  worst use  ms a path  durations beside the others"
    )
    for name in options.robots.split(","):
        robot = loaded(name)
        if options.payload:
            robot = robot.with_payload(options.payload, (0.05, -0.03, 0.1))
        for kind in options.classes.split(","):
            some = measured(robot, kind, options)
            rows += some
            print(line(robot, kind, some, others), flush=True)
            if options.json:
                Path(options.json).write_text(json.dumps(rows, indent=0) + "\n")


def line(robot: lw.Robot, kind: str, rows: list[dict], others: dict) -> str:
    """One line of the table."""
    good = [row for row in rows if row["duration"] is not None]
    beyond = sum(row["used"] > 1 + ALLOWED for row in good)
    worst = max((row["used"] for row in good), default=float("nan"))
    spent = 1e3 * np.median([row["time"] for row in rows])
    text = f"{robot.name}  {kind}  {len(rows)}  {len(rows) - len(good)}  {beyond}  {worst:.7f}  {spent:.2f}"
    ratios = []
    for row in good:
        other = others.get((row["robot"], row["class"], row["path"]))
        if other is not None and other["duration"] is not None and other["used"] <= 1 + ALLOWED:
            ratios.append(row["duration"] / other["duration"])
    if ratios:
        above = sum(ratio > 1.01 for ratio in ratios)
        text += f"  {min(ratios):.4f} … {max(ratios):.4f}, median {np.median(ratios):.4f}"
        text += f"; {above} of {len(ratios)} above 1.01"
    return text


def measured(robot: lw.Robot, kind: str, options: argparse.Namespace) -> list[dict]:
    judge = Judge(robot)
    rows = []
    for k in range(options.paths):
        rng = np.random.default_rng([options.seed, k, list(KINDS).index(kind)])
        path, more = KINDS[kind](robot, rng)
        row = {"robot": robot.name, "class": kind, "path": k, "duration": None, "used": None}
        rows.append(row)
        start = time.process_time()
        if path is None:
            row["time"], row["why"] = 0.0, "no such path"
            continue
        try:
            found: Any = motion.time_optimal(
                robot, path, torque=judge.torque, velocity=judge.velocity, **more
            )
        except (motion.LimitError, ValueError) as error:
            row["time"], row["why"] = time.process_time() - start, str(error)
            continue
        row["time"] = time.process_time() - start
        row["duration"], row["used"] = found.duration, judge.used(found, more)
    return rows


class Judge:
    """Limits of a robot, and Pinocchio's torques."""

    def __init__(self, robot: lw.Robot):
        self.robot = robot
        self.pin: Any = importlib.import_module("pinocchio")
        self.model = pinocchio_model(self.pin, robot)
        self.model.gravity.linear = np.array(robot.gravity)
        self.engine = coordinates(robot, "pinocchio", self.model)
        self.pool = self.pin.ModelPool(self.model, 1)
        self.armature = np.array([joint.rotor_inertia for joint in robot.coordinate_joints])
        ways = middle(robot) + np.random.default_rng(0).uniform(-0.8, 0.8, (500, robot.dof))
        self.velocity = np.minimum(np.where(robot.velocity_limits > 0, robot.velocity_limits, 3.0), 5.0)
        hold = np.abs(robot.gravity_torques(ways)).max(axis=0)
        slow = 0.3 * self.velocity * np.sign(ways - middle(robot))
        for speed in (slow, -slow):  # friction of both directions
            rubbing = robot.inverse_dynamics(ways, speed, 0 * ways)
            rubbing -= robot.inverse_dynamics(ways, speed, 0 * ways, friction=False)
            hold = np.maximum(hold, np.abs(robot.gravity_torques(ways) + rubbing).max(axis=0))
        inertia = robot.mass_matrix(ways).diagonal(axis1=-2, axis2=-1).max(axis=0)
        weakest = 1.5 * hold + 5.0 * inertia + 0.5  # limits of files may be too low to hold the robot
        self.torque = np.where(
            np.isfinite(robot.effort_limits), np.maximum(robot.effort_limits, weakest), weakest
        )

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Pinocchio's, and friction as the difference that it makes in Linkwise."""
        parts = self.engine.positions(q), self.engine.velocities(q, qd), self.engine.accelerations(q, qd, qdd)
        columns = [np.asfortranarray(part.T) for part in parts]
        out = np.asfortranarray(np.empty(columns[1].shape))
        self.pin.rneaInParallel(1, self.pool, *columns, out)
        tau = self.engine.own_torques(q, out.T) + self.armature * qdd
        tau += self.robot.inverse_dynamics(q, qd, qdd)
        tau -= self.robot.inverse_dynamics(q, qd, qdd, friction=False)
        return tau

    def used(self, found: motion.TimeOptimal, more: dict) -> float:
        """The largest fraction of a limit."""
        tiny = 1e-7 * found.duration
        t = np.concatenate([np.linspace(0, found.duration, POINTS), found.grid - tiny, found.grid + tiny])
        q, qd, qdd = found.at(np.clip(t, tiny, found.duration - tiny))
        parts = [np.abs(self.torques(q, qd, qdd)) / self.torque, np.abs(qd) / self.velocity]
        if "acceleration" in more:
            parts.append(np.abs(qdd) / more["acceleration"])
        if "tip_speed" in more:
            parts.append(found.usage(np.clip(t, tiny, found.duration - tiny))["tip speed"])
        if "jerk" in more:
            parts.append(np.abs(np.diff(qdd[:POINTS], axis=0)) / (t[1] - t[0]) / more["jerk"])
        return float(max(part.max() for part in parts))


def loaded(name: str) -> lw.Robot:
    """A bundled robot, or a file of example-robot-data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not name.endswith(".urdf"):
            return lw.load(name)
        files = importlib.metadata.distribution("example-robot-data").files or []
        return lw.load(next(Path(str(file.locate())) for file in files if file.name == name))


if __name__ == "__main__":
    main()
