"""Whether time-optimal motions keep their limits: many random paths of every class of motion, judged by Pinocchio.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.bench.peers.built import pinocchio_model
from linkwise.engine_coordinates import coordinates

POINTS = 20_001
ALLOWED = 1e-6  # relative: a limit counts as exceeded from here on
ROBOTS = "panda,ur10e,iiwa14,puma560,xarm7.urdf"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", default=ROBOTS, help="bundled names, or files of example-robot-data")
    parser.add_argument("--classes", default=",".join(CLASSES), help="classes of motion")
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
        rng = np.random.default_rng([options.seed, k, list(CLASSES).index(kind)])
        path, more = CLASSES[kind](robot, rng)
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
        except motion.LimitError as error:
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


def middle(robot: lw.Robot) -> np.ndarray:
    """A position away from the limits of the joints."""
    low, high = (
        np.array([getattr(joint.limits, side) for joint in robot.coordinate_joints])
        for side in ("lower", "upper")
    )
    return np.where(np.isfinite(low) & np.isfinite(high), np.clip(0.5 * (low + high), -1.5, 1.5), 0.3)


# -- classes of motion: (path, further limits) for a robot and a random generator --------------------------------------


def ways(robot: lw.Robot, rng: np.random.Generator, count: int | None = None) -> np.ndarray:
    size = int(rng.integers(3, 8)) if count is None else count
    return middle(robot) + rng.uniform(-0.8, 0.8, (size, robot.dof))


def times(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(rng.uniform(0.3, 1.0, count - 1))])


def way_points(robot, rng):
    return ways(robot, rng), {}


def clamped(robot, rng):
    points = ways(robot, rng)
    return motion.cubic_spline(times(rng, len(points)), points), {}


def natural(robot, rng):
    points = ways(robot, rng)
    return motion.cubic_spline(times(rng, len(points)), points, velocity=None), {}


def quintic_spline(robot, rng):
    points = ways(robot, rng)
    return motion.quintic_spline(times(rng, len(points)), points), {}


def quintic(robot, rng):
    start, end = ways(robot, rng, 2)
    speeds = rng.uniform(-2, 2, (2, robot.dof)) * rng.integers(0, 2, (2, 1))
    return motion.quintic(start, end, 1.0, velocity=tuple(speeds), acceleration=tuple(3 * speeds[::-1])), {}


def nonic(robot, rng):
    start, end = ways(robot, rng, 2)
    return motion.nonic(start, end, 1.0), {}


def trapezoidal(robot, rng):
    return motion.trapezoidal(*ways(robot, rng, 2), velocity=1.0, acceleration=rng.uniform(1, 9)), {}


def jerk_limited(robot, rng):
    return motion.jerk_limited(
        *ways(robot, rng, 2), velocity=1.0, acceleration=3.0, jerk=rng.uniform(5, 90)
    ), {}


def ramp(robot, rng):
    start, end = ways(robot, rng, 2)
    return motion.ramp(start, end, 1.0), {}


def fourier(robot, rng):
    sine, cosine = rng.uniform(-0.3, 0.3, (2, int(rng.integers(1, 5)), robot.dof))
    return motion.FourierSeries(middle(robot), sine, cosine, 3.0), {}


def slowed(robot, rng):
    quick: Any = motion.time_optimal(robot, ways(robot, rng), torque=1e3, velocity=2.0)
    return motion.slowed(quick, 1.7), {}


def samples(robot, rng):
    return motion.through_samples(clamped(robot, rng)[0].sampled(points=int(rng.integers(5, 30)))), {}


def function(robot, rng):
    centre, size, phase = ways(robot, rng, 1)[0], *rng.uniform(-1, 1, (2, robot.dof))
    return lambda s: [
        c + 0.4 * d * np.sin(5 * s + 3 * e) for c, d, e in zip(centre, size, phase, strict=True)
    ], {}


def again(robot, rng):
    """A time-optimal motion as the path of another one."""
    path = clamped(robot, rng)[0]
    try:
        return motion.time_optimal(robot, path, torque=1e3, velocity=1.0, acceleration=5.0, cells=40), {}
    except motion.LimitError:
        return None, {}


def cartesian(make: Callable) -> Callable:
    def made(robot, rng):
        for _ in range(10):
            q = ways(robot, rng, 1)[0]
            try:
                return make(robot, rng, q, robot.pose(q)), {}
            except lw.LinkwiseError:
                continue
        return None, {}

    return made


@cartesian
def line_of_tip(robot, rng, q, start):
    end = start.copy()
    end[:3, :3] = motion.turn_about(rng.uniform(-0.4, 0.4, 3)) @ start[:3, :3]
    end[:3, 3] += rng.uniform(-0.15, 0.15, 3)
    return motion.line(robot, start, end, duration=1.0, q=q)


@cartesian
def arc_of_tip(robot, rng, q, start):
    centre = start[:3, 3] + rng.uniform(-0.1, 0.1, 3)
    return motion.arc(
        robot, start, centre=centre, axis=rng.normal(size=3), angle=rng.uniform(0.5, 3), duration=1.0, q=q
    )


def with_acceleration(robot, rng):
    return clamped(robot, rng)[0], {"acceleration": 12.0}


def with_jerk(robot, rng):
    return ways(robot, rng, 4), {"jerk": 300.0, "cells": 40}


def with_jerk_curved(robot, rng):
    points = ways(robot, rng, 4)
    return motion.quintic_spline(times(rng, 4), points), {"jerk": 300.0, "cells": 40}


CLASSES: dict[str, Callable] = {
    each.__name__: each
    for each in (
        way_points, clamped, natural, quintic_spline, quintic, nonic, trapezoidal, jerk_limited, ramp, fourier,
        slowed, samples, function, again, with_acceleration, with_jerk, with_jerk_curved,
    )
} | {"line": line_of_tip, "arc": arc_of_tip}  # fmt: skip


if __name__ == "__main__":
    main()
