"""Predictive control by one call on many robots: it reaches targets, keeps speed limits, or says why it does not.

    python benchmarks/predictive_robots.py [--runs 60] [--robots NAMES] [--seed 0] [--fault frozen] [--verbose]

Every run draws a robot, a target (joints or a pose, within reach or far outside), masses of 70, 100 or 130 % of those
of the model, sensor noise, a delay of up to one period (4 ms), and perhaps an encoder that freezes or jumps. The
controller is ``optimal.Predictive(robot)`` with defaults; robots without speed limits get 3 rad/s. A run ends when the
arm rests, or 0.1 s after a stop, when the brakes hold the arm.

The script fails where a joint of the simulated robot is faster than 1.05 times its limit, or where a run neither
settles, nor stops, nor says why. ``--runs 300`` is the figure of the documentation.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from task_space_parts import arms

import linkwise as lw
from linkwise.optimal import Predictive
from linkwise.simulate.loop import step_kernel

USUAL_SPEED = 3.0  # [rad/s or m/s] for robots without limits
PERIOD, STEPS = 4e-3, 4
LONGEST, BRAKES = 40.0, 0.1  # [s]: of a run, and from a stop until brakes hold the arm
ALLOWED = 1.05  # of the speed limits
MASSES = (0.7, 1.0, 1.3)
KINDS = ("joints near", "joints far", "pose near", "pose far")
FAULTS = ("none", "frozen", "frozen with its speed", "jump")


@dataclass
class Run:
    """What happened in one run."""

    robot: str
    kind: str
    mass: float
    noisy: bool
    delay: int
    fault: str
    outcome: str = ""
    reason: str = ""
    speed: float = 0.0
    """The largest, by its limit."""
    error: float = np.nan
    """Distance to the target at the end [rad or m]."""
    duration: float = 0.0


@dataclass
class Subject:
    """A robot, its controllers and plants, which are made once."""

    robot: lw.Robot
    speed: np.ndarray
    laws: dict[bool, Predictive] = field(default_factory=dict)
    plants: dict[float, object] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str) -> Subject:
        robot = arms.load(name)
        return cls(robot, np.where(np.isfinite(robot.velocity_limits), robot.velocity_limits, USUAL_SPEED))

    def law(self, pose: bool) -> Predictive:
        if pose not in self.laws:
            frame = self.robot.leaf_names[0]
            more = {"tip": True, "frame": frame} if pose else {}
            self.laws[pose] = Predictive(self.robot, velocity_limits=self.speed, **more)
        return self.laws[pose]

    def plant(self, mass: float):
        if mass not in self.plants:
            robot = self.robot
            labels = [label for label in robot.parameter_labels if is_mass(label)]
            values = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
            heavier = robot.with_parameters({label: mass * values[label] for label in labels})
            self.plants[mass] = step_kernel(heavier)
        return self.plants[mass]

    def steps(self) -> int:
        """Integration steps in a period: enough for the viscous friction of light links."""
        robot = self.robot
        own = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
        viscous = np.array([own.get(f"{name}.viscous_friction", 0.0) for name in robot.joint_names])
        lightest = min(MASSES) * np.asarray(robot.mass_matrix(robot.neutral))
        rate = float(np.max(np.diag(np.linalg.inv(lightest)) * viscous))
        return max(STEPS, int(np.ceil(PERIOD * rate)))


def is_mass(label: str) -> bool:
    """Whether a parameter is one of the ten of a link."""
    return label.rpartition(".")[2] in ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def start_and_target(subject: Subject, kind: str, rng: np.random.Generator):
    """A position to start from, and values for ``aim``."""
    robot = subject.robot
    lower, upper = robot.limits.lower, robot.limits.upper
    low, high = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    q = middle + 0.6 * half * rng.uniform(-1, 1, robot.dof) if rng.random() < 0.5 else np.clip(0.0, low, high)
    q = np.broadcast_to(q, (robot.dof,)).copy()
    if kind == "joints near":
        return q, {"joints.target": np.clip(q + rng.choice([-0.4, 0.4], robot.dof), low, high)}
    if kind == "joints far":
        return q, {
            "joints.target": q + rng.choice([-1.0, 1.0], robot.dof) * rng.uniform(3.0, 10.0, robot.dof)
        }
    frame = robot.leaf_names[0]
    other = np.clip(q + rng.uniform(-0.5, 0.5, robot.dof), low, high)
    pose = np.asarray(robot.pose(other, frame))
    if kind == "pose far":
        away = rng.normal(size=3)
        size = max(np.linalg.norm(np.asarray(robot.pose(q, frame))[:3, 3]), 0.3)
        pose = pose.copy()
        pose[:3, 3] = away / np.linalg.norm(away) * rng.uniform(2.0, 5.0) * size
    return q, {"tip.target": pose}


def simulated(subject: Subject, run: Run, rng: np.random.Generator) -> None:
    """One run."""
    law = subject.law(run.kind.startswith("pose"))
    law.reset()
    q, goal = start_and_target(subject, run.kind, rng)
    law.aim(goal)
    n, step, steps = subject.robot.dof, subject.plant(run.mass), subject.steps()
    qd, line, held = np.zeros(n), [], np.asarray(subject.robot.gravity_torques(q))
    joint, fails = int(rng.integers(n)), rng.uniform(0.05, 1.0)
    jump, frozen = rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 1.0), None
    stopped, resting, t = None, 0, 0.0
    for k in range(int(LONGEST / PERIOD)):
        t = k * PERIOD
        seen, speeds = q.copy(), qd.copy()
        if run.noisy:
            seen, speeds = seen + 1e-4 * rng.normal(size=n), speeds + 2e-3 * rng.normal(size=n)
        if run.fault != "none" and t >= fails:
            if run.fault == "jump":
                seen[joint] += jump
            else:
                frozen = seen[joint] if frozen is None else frozen
                seen[joint] = frozen
                if run.fault == "frozen":
                    speeds[joint] = 0.0
        line.append(law(t, seen, speeds))
        tau = line.pop(0) if len(line) > run.delay else held  # that of the brakes and the last controller
        for _ in range(steps):
            q, qd = step(q, qd, tau, np.array([PERIOD / steps]))
            run.speed = max(run.speed, float(np.max(np.abs(qd) / subject.speed)))
        if not np.isfinite(q).all():
            run.outcome, run.reason = "diverged", "the simulated state is not a number"
            break
        stops = law.status in ("stopped", "not converging")
        stopped = (t if stopped is None else stopped) if stops else None
        if stopped is not None and t - stopped >= BRAKES:
            run.outcome, run.reason = law.status, law.reason
            break
        resting = resting + 1 if law.settled or law.reason.startswith("at rest") else 0
        if resting >= 50 and (run.fault == "none" or t > fails + 0.5):
            run.outcome = "settled" if law.settled else "at rest elsewhere"
            run.reason = law.reason
            break
    else:
        run.outcome = "at rest elsewhere" if law.reason.startswith("at rest") else "under way"
        run.reason = law.reason
    run.duration, run.error = t, float(law.progress.distance)


def drawn(
    names: list[str], index: int, seed: int, always: str | None = None
) -> tuple[Run, np.random.Generator]:
    """A run with everything but its outcome.

    Args:
        names: of robots.
        index: number of the run.
        seed: of all runs.
        always: the fault of all runs; None: drawn, none in half of them.
    """
    rng = np.random.default_rng([seed, index])
    name = names[index % len(names)]
    kind = KINDS[(index // len(names)) % len(KINDS)]
    fault = FAULTS[int(rng.integers(len(FAULTS)))] if rng.random() < 0.5 else FAULTS[0]
    fault = fault if always is None else always
    mass = float(rng.choice(MASSES))
    return Run(name, kind, mass, bool(rng.random() < 0.5), int(rng.integers(2)), fault), rng


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", help="names, by default all; files are found in LINKWISE_DATA")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault", choices=FAULTS, help="the same in every run; by default drawn")
    parser.add_argument("--verbose", action="store_true", help="one line for each run")
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.SlowWarning)
    names = arms.names(options.robots)
    subjects: dict[str, Subject] = {}
    runs: list[Run] = []
    begin = time.perf_counter()
    for index in sorted(range(options.first, options.first + options.runs), key=lambda i: i % len(names)):
        run, rng = drawn(names, index, options.seed, options.fault)
        if run.robot not in subjects:
            subjects.clear()
            subjects[run.robot] = Subject.of(run.robot)
        simulated(subjects[run.robot], run, rng)
        runs.append(run)
        if options.verbose:
            print(f"{index:4d} {run}", flush=True)
    table(runs)
    print(
        f"{len(runs)} runs on {len({run.robot for run in runs})} robots in {time.perf_counter() - begin:.0f} s"
    )
    wrong = [run for run in runs if run.speed > ALLOWED or not explained(run)]
    for run in wrong:
        print(f"wrong: {run}")
    sys.exit(bool(wrong))


def explained(run: Run) -> bool:
    """Whether a run settled, stopped or says why not."""
    return run.outcome == "settled" or (
        run.outcome in ("stopped", "not converging", "at rest elsewhere") and bool(run.reason)
    )


def table(runs: list[Run]) -> None:
    """One line a robot, and the worst one."""
    print("robot           runs  fastest  error when settled  outcomes")
    worst = ("", 0.0)
    for name in dict.fromkeys(run.robot for run in runs):
        own = [run for run in runs if run.robot == name]
        fastest = max(run.speed for run in own)
        errors = [run.error for run in own if run.outcome == "settled"]
        counts = ", ".join(f"{count} {word}" for word, count in Counter(run.outcome for run in own).items())
        print(
            f"{name:15s} {len(own):4d}  {fastest:6.3f}   {max(errors, default=np.nan):8.4f}            {counts}"
        )
        worst = max(worst, (name, fastest), key=lambda pair: pair[1])
    print(f"worst: {worst[0]}, {worst[1]:.3f} of its speed limit")
    clean = [run for run in runs if run.fault == "none" and run.kind in ("joints near", "pose near")]
    print(f"targets within reach, sensors that work: {Counter(run.outcome for run in clean)}")


if __name__ == "__main__":
    main()
