"""Predictive control by one call: a step of 0.4 rad in every joint, 2 s, on every robot at hand.

    python benchmarks/predictive_steps.py [--robots NAMES] [--starts 2] [--step 0.4] [--seconds 2] [--seed 0]

The controller is ``optimal.Predictive(robot)`` with defaults, every 4 ms. The plant is MuJoCo on a grid 8 times finer
than the controller's samples, with the friction of the robot; limits are measured on that grid. Robots that MuJoCo does
not take are moved by the project's own step. The first start is the rest position, the others are random ones within
the range; motors can hold the arm at both ends of a step. A joint goes 0.4 rad (or a tenth of its range, where that is
less) away from the nearer end of its range.

For every robot: what is left of the step after 2 s, beside ``computed_torque`` of the same frequency; the largest
speed by its limit; how far joints were out of their range; the largest torque by its limit; and the status.
The script fails where more than 5 % of a step is left and the status does not say so, where a joint is more than 5 %
faster than its limit or more than 0.01 rad or m out of its range, or where a torque exceeds its limit.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass

import mujoco
import numpy as np
from predictive_robots import Subject
from task_space_parts import arms

import linkwise as lw
from linkwise.bench.peers.base import Refusal
from linkwise.bench.peers.built import mujoco_model
from linkwise.control import named
from linkwise.optimal import Predictive
from linkwise.optimal.predictive.standard import rest_of
from linkwise.simulate.loop import step_kernel

PERIOD, FINER = 4e-3, 8
LEFT, FAST, BEYOND = 0.05, 1.05, 0.01
HELD = 0.7  # of the torque limits: what it takes to hold the arm at the start and at the target
FREQUENCY = 10.0  # [rad/s], that of Predictive


@dataclass
class Outcome:
    """One step of one robot."""

    left: float
    """Largest error after the time, by the step of that joint."""
    speed: float
    beyond: float
    torque: float
    status: str
    milliseconds: float
    """Of a sample, median."""


class Plant:
    """A robot in MuJoCo, with the viscous and Coulomb friction of the model."""

    def __init__(self, robot: lw.Robot):
        self.robot = robot
        own = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
        friction = {
            kind: [own.get(f"{name}.{kind}_friction", 0.0) for name in robot.joint_names]
            for kind in ("viscous", "coulomb")
        }
        try:
            self.model = mujoco_model(mujoco, robot)
        except Refusal:  # a table of 1986 with an inertia that no body has
            self.model, self.own = None, step_kernel(robot)
            return
        self.model.opt.gravity[:] = np.asarray(robot.gravity, dtype=float)
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.model.dof_damping[:], self.model.dof_frictionloss[:] = friction["viscous"], friction["coulomb"]
        self.data = mujoco.MjData(self.model)

    def moved(
        self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The state after a step [s]."""
        if self.model is None:
            return self.own(q, qd, tau, np.array([h]))
        self.model.opt.timestep = h
        self.data.qpos[:], self.data.qvel[:], self.data.qfrc_applied[:] = q, qd, tau
        mujoco.mj_step(self.model, self.data)
        return self.data.qpos.copy(), self.data.qvel.copy()


def starts(robot: lw.Robot, count: int, rng: np.random.Generator, size: float):
    """(start, target) pairs."""
    lower, upper = robot.limits.lower, robot.limits.upper
    low, high = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
    step = np.minimum(size, 0.1 * (high - low))
    q, found = rest_of(robot), 0
    for _ in range(1000):
        goal = q + np.where(q - low > high - q, -step, step)
        held = [np.abs(robot.gravity_torques(x)) <= HELD * robot.effort_limits for x in (q, goal)]
        if np.all(held):
            yield q, goal
            found += 1
            if found == count:
                return
        q = low + (0.2 + 0.6 * rng.random(robot.dof)) * (high - low)


def stepped(subject: Subject, law, plant: Plant, q: np.ndarray, goal: np.ndarray, seconds: float) -> Outcome:
    """One run of a controller f(t, q, qd)."""
    robot, finer = subject.robot, FINER
    limits, lower, upper = robot.effort_limits, robot.limits.lower, robot.limits.upper
    qd, way = np.zeros(robot.dof), np.abs(goal - q)
    speed = beyond = torque = 0.0
    times = []
    for k in range(round(seconds / PERIOD)):
        at = time.perf_counter()
        tau = np.asarray(law(k * PERIOD, q, qd))
        times.append(time.perf_counter() - at)
        torque = max(torque, float(np.max(np.abs(tau) / limits)))
        for _ in range(finer):
            q, qd = plant.moved(q, qd, tau, PERIOD / finer)
            speed = max(speed, float(np.max(np.abs(qd) / robot.velocity_limits)))
            beyond = max(beyond, float(np.max(np.maximum(q - upper, lower - q), initial=0.0)))
        if not np.isfinite(q).all():
            return Outcome(np.inf, np.inf, np.inf, torque, "diverged", 0.0)
    status = getattr(law, "status", "")
    reason = getattr(law, "reason", "")
    left = float(np.max(np.abs(goal - q) / np.maximum(way, 1e-9)))
    return Outcome(left, speed, beyond, torque, f"{status} {reason}".strip(), 1e3 * float(np.median(times)))


def computed_torque(robot: lw.Robot, goal: np.ndarray):
    """The law of the same frequency, as a function of (t, q, qd)."""
    kernel = named("computed_torque", robot, frequency=FREQUENCY).kernel(PERIOD)
    still = np.zeros(robot.dof)
    return lambda t, q, qd: kernel(q, qd, goal, still, still)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", help="names, by default all; files are found in LINKWISE_DATA")
    parser.add_argument("--starts", type=int, default=2)
    parser.add_argument("--step", type=float, default=0.4, help="[rad or m]")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    arms.FILES.update(arms.FURTHER)
    names = arms.names(options.robots)
    print("robot            left   comp. torque  speed  beyond   torque  ms     status")
    worst, wrong = ("", 0.0), []
    for name in names:
        subject = Subject.of(name)
        robot, law = subject.robot, Predictive(subject.robot)
        plant = Plant(robot)
        for k, (q, goal) in enumerate(
            starts(robot, options.starts, np.random.default_rng(options.seed), options.step)
        ):
            law.reset()
            law.aim({"joints.target": goal})
            run = stepped(subject, law, plant, q, goal, options.seconds)
            peer = stepped(subject, computed_torque(robot, goal), plant, q, goal, options.seconds)
            print(
                f"{name:15s} {100 * run.left:6.2f} %  {100 * peer.left:6.2f} %   {run.speed:6.3f}  {run.beyond:.4f} "
                f"  {run.torque:6.3f}  {run.milliseconds:5.2f}  {run.status}",
                flush=True,
            )
            worst = max(worst, (f"{name}, start {k}", run.left), key=lambda pair: pair[1])
            said = run.status.startswith(("stopped", "not converging")) or "at rest" in run.status
            bad = run.speed > FAST or run.beyond > BEYOND or run.torque > 1.0 + 1e-9
            wrong += [f"{name}, start {k}: {run}"] if bad or (run.left > LEFT and not said) else []
    print(f"worst: {worst[0]}: {100 * worst[1]:.2f} % of the step is left; {len(names)} robots")
    for line in wrong:
        print(f"wrong: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
