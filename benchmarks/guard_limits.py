"""The guard of predictive control alone: it keeps joints in their range and below their speed limits under any torques.

    python benchmarks/guard_limits.py [--robots NAMES] [--runs 9] [--masses 1.0] [--seconds 3] [--seed 0]

Every run starts at rest within the range and asks for torques that no plan would: full torque of random signs, held for
random times (bang-bang), full torque towards one end of every range, or random torques in every sample. Masses are 70,
100 or 130 % of those of the model (``--masses``). The disturbance is estimated as in the controller; the state is
the true one. For each robot the table has the largest distance beyond a range [rad or m] and the largest speed by its
limit. Robots without speed limits get 3 rad/s, without torque limits what motions at that speed and 30 rad/s² need;
motors that cannot hold their arm get twice the torque that holds it.

The script fails where a joint is further than ``--beyond`` (0.01 rad or m) out of its range, or 5 % faster than its
limit.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
from predictive_robots import MASSES, Subject
from task_space_parts import arms

import linkwise as lw
from linkwise.optimal import reaching
from linkwise.optimal.predictive import watching
from linkwise.optimal.predictive.guard import Bounds, Guard

PERIOD = 4e-3
USUAL_ACCELERATION = 30.0  # [rad/s² or m/s²] of a joint without torque limit
ALLOWED = 1.05
KINDS = ("bang-bang", "one end", "random")


class Watched:
    """A robot behind its guard: torques go in, the next state comes out."""

    def __init__(self, subject: Subject, torque: np.ndarray):
        robot = subject.robot
        problem = reaching(robot, horizon=2, torque_limits=torque)
        self.guard = Guard(problem.dynamics, robot)
        self.torque, self.robot, self.subject = torque, robot, subject
        self.limits = Bounds.of(robot, velocity=subject.speed).numbers()
        self.steps = subject.steps()

    def start(self, q: np.ndarray, mass: float) -> None:
        n = self.robot.dof
        self.q, self.qd, self.plant = q, np.zeros(n), self.subject.plant(mass)
        self.memory, self.caused = np.zeros(watching.Memory(n).size), np.zeros(n)

    def moved(self, wanted: np.ndarray, first: bool) -> None:
        """One period."""
        state = np.concatenate([self.q, self.qd])
        _, _, disturbance, _, self.memory = self.guard.watch(
            self.q,
            self.qd,
            self.caused,
            np.array([0.0 if first else PERIOD]),
            self.limits["speed"],
            self.memory,
        )
        tau, self.caused, _ = self.guard.command(
            state, state, wanted, disturbance, np.zeros(1), np.array([PERIOD]), -self.torque, self.torque,
            *(self.limits[name] for name in ("lowest", "highest", "speed")),
        )  # fmt: skip
        for _ in range(self.steps):
            self.q, self.qd = self.plant(self.q, self.qd, tau, np.array([PERIOD / self.steps]))


def torques(subject: Subject) -> np.ndarray:
    """Limits of the motors' torques: those of the robot where they can hold it, with masses of 130 % and a reserve."""
    rng, robot = np.random.default_rng(1), subject.robot
    low, high = np.maximum(robot.limits.lower, -np.pi), np.minimum(robot.limits.upper, np.pi)
    q = low + (high - low) * rng.random((500, robot.dof))
    qd, qdd = (size * rng.uniform(-1.0, 1.0, q.shape) for size in (subject.speed, USUAL_ACCELERATION))
    holding = np.abs(np.asarray(robot.gravity_torques(q))).max(axis=0)
    strong = 2.0 * holding + np.abs(np.asarray(robot.inverse_dynamics(q, qd, qdd))).max(axis=0)
    own = np.asarray(robot.effort_limits)
    return np.where(np.isfinite(own), np.maximum(own, 2.0 * holding), strong)


def one_run(
    arm: Watched, index: int, seconds: float, mass: float, rng: np.random.Generator
) -> tuple[float, float]:
    """(distance beyond a range, speed by its limit), the largest ones."""
    lowest, highest = arm.limits["lowest"], arm.limits["highest"]
    low, high = np.maximum(lowest, -np.pi), np.minimum(highest, np.pi)
    n = arm.robot.dof
    arm.start(low + (high - low) * rng.uniform(0.1, 0.9, n), mass)
    signs, until, beyond, fastest = rng.choice([-1.0, 1.0], n), np.zeros(n), -np.inf, 0.0
    for k in range(int(seconds / PERIOD)):
        t = k * PERIOD
        if KINDS[index % len(KINDS)] == "bang-bang":
            turns = t >= until
            signs = np.where(turns, rng.choice([-1.0, 1.0], n), signs)
            until = np.where(turns, t + rng.exponential(0.3, n), until)
        elif KINDS[index % len(KINDS)] == "random":
            signs = rng.uniform(-1.0, 1.0, n)
        arm.moved(signs * arm.torque, k == 0)
        beyond = max(beyond, float(np.max(np.maximum(arm.q - highest, lowest - arm.q))))
        fastest = max(fastest, float(np.max(np.abs(arm.qd) / arm.subject.speed)))
        if not np.isfinite(arm.q).all():
            return np.inf, np.inf
    return beyond, fastest


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", help="names, by default all; files are found in LINKWISE_DATA")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--masses", default=",".join(map(str, MASSES)), help="by those of the model")
    parser.add_argument(
        "--beyond", type=float, default=0.01, help="allowed distance out of a range [rad or m]"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.SlowWarning)
    names = arms.names(options.robots)
    masses = [float(mass) for mass in options.masses.split(",")]
    wrong, begin = [], time.perf_counter()
    print("robot           beyond its range  fastest  runs that keep both")
    for name in names:
        subject = Subject.of(name)
        arm = Watched(subject, torques(subject))
        rows = [
            one_run(
                *(arm, k, options.seconds, masses[k // len(KINDS) % len(masses)]),
                np.random.default_rng([options.seed, k]),
            )
            for k in range(options.runs)
        ]
        beyond, fastest = max(row[0] for row in rows), max(row[1] for row in rows)
        kept = sum(row[0] <= options.beyond and row[1] <= ALLOWED for row in rows)
        print(
            f"{name:15s} {max(beyond, 0.0):10.4f}        {fastest:6.3f}   {kept} of {len(rows)}", flush=True
        )
        if kept < len(rows):
            wrong.append(name)
    print(f"{len(names)} robots in {time.perf_counter() - begin:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
